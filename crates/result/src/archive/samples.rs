//! The health of a run's processes second by second, as an archive has it.

use std::collections::BTreeMap;

use muster_conduct::ProcessSample;

/// Samples that are kept of all processes together. Beyond it neighbours in time become one that
/// shows the worse of both, as windows of a result do: a run of days that was killed is read back
/// into some megabytes.
const SAMPLES_MAX: usize = 10_000;

/// Samples by process and time.
#[derive(Debug)]
pub(crate) struct SampleSeries {
    every_s: u32,
    kept: BTreeMap<(usize, u32), ProcessSample>,
}

impl Default for SampleSeries {
    fn default() -> Self {
        Self {
            every_s: 1,
            kept: BTreeMap::new(),
        }
    }
}

impl SampleSeries {
    /// Adds a sample of a process.
    pub(crate) fn add(&mut self, agent: usize, sample: ProcessSample) {
        if self.kept.len() >= SAMPLES_MAX {
            self.every_s *= 2;
            let finer = std::mem::take(&mut self.kept);
            finer
                .into_iter()
                .for_each(|((agent, _), sample)| self.put(agent, sample));
        }
        self.put(agent, sample);
    }

    /// Every sample with the process that it is of, those of one process in order of time.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &ProcessSample)> {
        self.kept
            .iter()
            .map(|((agent, _), sample)| (*agent, sample))
    }

    fn put(&mut self, agent: usize, sample: ProcessSample) {
        let key = (agent, sample.at.second() / self.every_s);
        match self.kept.get_mut(&key) {
            Some(known) => known.worsen(sample),
            None => {
                self.kept.insert(key, sample);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_conduct::ThreadSample;
    use muster_model::Micros;

    use super::*;

    fn sample(second: u32) -> ProcessSample {
        let thread = ThreadSample {
            is_consumer: false,
            cpu: if second == 7_777 { 0.9 } else { 0.1 },
            wait: 0.0,
        };
        ProcessSample {
            at: Micros::from_secs(u64::from(second)),
            threads: vec![thread],
            rss_bytes: u64::from(second),
            steal: None,
            incidents: Vec::new(),
        }
    }

    #[test]
    fn a_run_of_days_keeps_few_samples_and_the_worst_of_them() {
        let mut samples = SampleSeries::default();
        for second in 0..200_000 {
            samples.add(0, sample(second));
            samples.add(1, sample(second));
        }
        assert!(samples.iter().count() <= SAMPLES_MAX);
        let of_first = || samples.iter().filter(|(agent, _)| *agent == 0);
        let worst = of_first().map(|(_, sample)| sample.threads[0].cpu);
        assert_eq!(worst.fold(0.0, f64::max), 0.9);
        assert!(of_first().is_sorted_by_key(|(_, sample)| sample.at));
        let last = of_first().last().map(|(_, sample)| sample.rss_bytes);
        assert_eq!(last, Some(199_999));
    }

    #[test]
    fn a_short_run_keeps_every_sample() {
        let mut samples = SampleSeries::default();
        (0..100).for_each(|second| samples.add(0, sample(second)));
        assert_eq!(samples.iter().count(), 100);
    }
}
