//! The health of a run's processes second by second, as an archive has it.

use std::collections::BTreeMap;

use muster_conduct::ProcessSample;

/// Pulses that are kept of all processes together. Beyond it neighbours in time become one that
/// shows the worse of both, as windows of a result do: a run of days that was killed is read back
/// into some megabytes.
const PULSES_MAX: usize = 10_000;

/// Pulses by process and time.
#[derive(Debug)]
pub(crate) struct Pulses {
    every_s: u32,
    kept: BTreeMap<(usize, u32), ProcessSample>,
}

impl Default for Pulses {
    fn default() -> Self {
        Self {
            every_s: 1,
            kept: BTreeMap::new(),
        }
    }
}

impl Pulses {
    /// Adds a pulse of a process.
    pub(crate) fn add(&mut self, agent: usize, pulse: ProcessSample) {
        if self.kept.len() >= PULSES_MAX {
            self.every_s *= 2;
            let finer = std::mem::take(&mut self.kept);
            finer
                .into_iter()
                .for_each(|((agent, _), pulse)| self.put(agent, pulse));
        }
        self.put(agent, pulse);
    }

    /// Every pulse with the process that it is of, those of one process in order of time.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &ProcessSample)> {
        self.kept.iter().map(|((agent, _), pulse)| (*agent, pulse))
    }

    fn put(&mut self, agent: usize, pulse: ProcessSample) {
        let key = (agent, pulse.at.second() / self.every_s);
        match self.kept.get_mut(&key) {
            Some(known) => known.worsen(pulse),
            None => {
                self.kept.insert(key, pulse);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_conduct::ThreadSample;
    use muster_model::Micros;

    use super::*;

    fn pulse(second: u32) -> ProcessSample {
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
    fn a_run_of_days_keeps_few_pulses_and_the_worst_of_them() {
        let mut pulses = Pulses::default();
        for second in 0..200_000 {
            pulses.add(0, pulse(second));
            pulses.add(1, pulse(second));
        }
        assert!(pulses.iter().count() <= PULSES_MAX);
        let of_first = || pulses.iter().filter(|(agent, _)| *agent == 0);
        let worst = of_first().map(|(_, pulse)| pulse.threads[0].cpu);
        assert_eq!(worst.fold(0.0, f64::max), 0.9);
        assert!(of_first().is_sorted_by_key(|(_, pulse)| pulse.at));
        let last = of_first().last().map(|(_, pulse)| pulse.rss_bytes);
        assert_eq!(last, Some(199_999));
    }

    #[test]
    fn a_short_run_keeps_every_pulse() {
        let mut pulses = Pulses::default();
        (0..100).for_each(|second| pulses.add(0, pulse(second)));
        assert_eq!(pulses.iter().count(), 100);
    }
}
