//! Simulated holds, a pure function of a seed, and how often they are judged unstable.

use muster_judge::stability::{HoldSeries, Point, Stability};
use muster_model::mix;

use crate::random::Random;

/// The simulated process.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Process {
    /// A backlog that does not grow: first-order noise of this correlation (0 is white) and of
    /// this deviation in seconds of traffic, and latencies of the same correlation that vary by a
    /// fifth of 20 ms.
    Noise { correlation: f64, deviation_s: f64 },
    /// A queue with Poisson arrivals and one exponential server (M/M/1), offered `load` times
    /// what it can serve. Below 1 it runs for ten seconds before the hold, above 1 it starts
    /// empty.
    Queue { load: f64 },
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Case {
    pub(crate) process: Process,
    /// Offered, per second.
    pub(crate) rate: f64,
    /// Length of the hold, in windows of a second.
    pub(crate) windows: usize,
}

/// Numbers of simulated holds by how they were judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Findings {
    pub(crate) holds: u32,
    pub(crate) unstable: u32,
    pub(crate) unclear: u32,
}

impl Case {
    /// Judges `holds` simulated holds; hold `i` is a function of the seed, the case and `i` alone.
    pub(crate) fn judged(&self, seed: u64, holds: u32) -> Findings {
        let mut found = Findings {
            holds,
            ..Findings::default()
        };
        for hold in 0..holds {
            let mut random = Random::new(mix(mix(seed, self.key()), u64::from(hold)));
            match self.series(&mut random).assess() {
                Some(Stability::Unstable { .. }) => found.unstable += 1,
                Some(Stability::Unclear { .. }) => found.unclear += 1,
                Some(Stability::Stable { .. }) => {}
                None => unreachable!("a simulated hold has windows and an offered rate"),
            }
        }
        found
    }

    fn key(&self) -> u64 {
        let process = match self.process {
            Process::Noise {
                correlation,
                deviation_s,
            } => mix(correlation.to_bits(), deviation_s.to_bits()),
            Process::Queue { load } => mix(1, load.to_bits()),
        };
        mix(process, mix(self.rate.to_bits(), self.windows as u64))
    }

    pub(crate) fn series(&self, random: &mut Random) -> HoldSeries {
        match self.process {
            Process::Noise {
                correlation,
                deviation_s,
            } => self.noise(random, correlation, deviation_s),
            Process::Queue { load } => self.queue(random, load),
        }
    }

    fn noise(&self, random: &mut Random, correlation: f64, deviation_s: f64) -> HoldSeries {
        let mut around = |mean: f64, deviation: f64| {
            let noise = first_order(random, correlation, self.windows);
            let values = noise.into_iter().map(|value| mean + deviation * value);
            points(values)
        };
        HoldSeries {
            offered: self.rate,
            backlogs: vec![("noise".to_owned(), around(0.0, deviation_s * self.rate))],
            latencies: vec![
                ("p50".to_owned(), around(20_000.0, 4_000.0)),
                ("p90".to_owned(), around(40_000.0, 8_000.0)),
            ],
        }
    }

    fn queue(&self, random: &mut Random, load: f64) -> HoldSeries {
        let before = if load < 1.0 { 10 } else { 0 };
        let seconds = before + self.windows;
        let mut joined = vec![0_i64; seconds];
        let mut left = vec![0_i64; seconds];
        let mut waits: Vec<Vec<f64>> = vec![Vec::new(); seconds];
        let (mut now, mut free) = (0.0, 0.0_f64);
        loop {
            now += random.exponential() / self.rate;
            let Some(waits) = waits.get_mut(now as usize) else {
                break;
            };
            free = free.max(now) + random.exponential() * load / self.rate;
            joined[now as usize] += 1;
            if let Some(left) = left.get_mut(free as usize) {
                *left += 1;
            }
            waits.push((free - now) * 1e6);
        }
        let mut backlog = 0;
        let backlogs = joined.iter().zip(&left).map(|(joins, leaves)| {
            backlog += joins - leaves;
            backlog as f64
        });
        let backlogs: Vec<f64> = backlogs.collect();
        let measured = &mut waits[before..];
        measured
            .iter_mut()
            .for_each(|waits| waits.sort_unstable_by(f64::total_cmp));
        let percentile = |share: f64| {
            let at = |waits: &Vec<f64>| {
                waits
                    .get((waits.len() as f64 * share) as usize)
                    .copied()
                    .unwrap_or(0.0)
            };
            points(measured.iter().map(at))
        };
        HoldSeries {
            offered: self.rate,
            backlogs: vec![(
                "queue".to_owned(),
                points(backlogs[before..].iter().copied()),
            )],
            latencies: vec![
                ("p50".to_owned(), percentile(0.5)),
                ("p90".to_owned(), percentile(0.9)),
            ],
        }
    }
}

/// Standard normal values, each correlated with the one before it.
pub(crate) fn first_order(random: &mut Random, correlation: f64, count: usize) -> Vec<f64> {
    let fresh = (1.0 - correlation * correlation).sqrt();
    let mut value = random.normal();
    let next = |_| {
        value = correlation * value + fresh * random.normal();
        value
    };
    (0..count).map(next).collect()
}

fn points(values: impl Iterator<Item = f64>) -> Vec<Point> {
    values
        .enumerate()
        .map(|(second, value)| Point {
            t_s: second as f64,
            value,
        })
        .collect()
}
