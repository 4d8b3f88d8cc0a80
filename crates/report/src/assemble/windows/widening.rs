//! Percentiles of windows with few values: as many windows are taken together as a percentile needs.

use std::ops::Range;

use muster_measure::Distribution;

use crate::{PercentileSpans, Percentiles};

/// Known values and lower bounds of one latency in one window.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    known: &'a Distribution,
    /// The lower bounds of others; none where every value is known.
    censored: Option<&'a Distribution>,
}

impl<'a> Values<'a> {
    pub(super) const fn new(known: &'a Distribution, censored: Option<&'a Distribution>) -> Self {
        Self { known, censored }
    }

    fn add_to(&self, known: &mut Distribution, censored: &mut Distribution) {
        known.merge(self.known);
        self.censored.iter().for_each(|more| censored.merge(more));
    }
}

/// One latency in one window, and where its percentiles go.
pub(super) struct Seen<'a> {
    pub(super) phase: String,
    pub(super) for_s: f64,
    pub(super) values: Values<'a>,
    pub(super) percentiles: &'a mut Percentiles,
    pub(super) spans: &'a mut PercentileSpans,
}

/// One percentile.
struct Rank {
    /// Its name among those that may be lower bounds.
    name: &'static str,
    /// Its value; none if there are too few.
    of: fn(&Percentiles) -> Option<u64>,
    value: fn(&mut Percentiles) -> &mut Option<u64>,
    span: fn(&mut PercentileSpans) -> &mut Option<f64>,
}

macro_rules! rank {
    ($value:ident, $span:ident) => {
        Rank {
            name: stringify!($value),
            of: |of| of.$value,
            value: |to| &mut to.$value,
            span: |to| &mut to.$span,
        }
    };
}

const RANKS: [Rank; 5] = [
    rank!(p50_us, p50_s),
    rank!(p90_us, p90_s),
    rank!(p95_us, p95_s),
    rank!(p99_us, p99_s),
    rank!(p99_9_us, p99_9_s),
];

/// Fills in every percentile: where a window has too few values, those of its neighbours of the same phase
/// are taken with it, and each of them shows the result. A rest at the end of a phase joins those before it.
pub(super) fn widen(mut windows: Vec<Seen<'_>>) {
    let mut phases: Vec<Range<usize>> = Vec::new();
    for at in 0..windows.len() {
        match phases.last_mut() {
            Some(last) if windows[last.start].phase == windows[at].phase => last.end = at + 1,
            Some(_) | None => phases.push(at..at + 1),
        }
    }
    for phase in phases {
        for rank in &RANKS {
            widen_phase(&mut windows[phase.clone()], rank);
        }
    }
}

fn widen_phase(windows: &mut [Seen<'_>], rank: &Rank) {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let (mut from, mut gathered) = (0, Distribution::default());
    for (at, window) in windows.iter().enumerate() {
        let mut censored = Distribution::default();
        window.values.add_to(&mut gathered, &mut censored);
        gathered.merge(&censored);
        if (rank.of)(&Percentiles::of(&gathered)).is_some() {
            blocks.push(from..at + 1);
            (from, gathered) = (at + 1, Distribution::default());
        }
    }
    if let Some(last) = blocks.last_mut().filter(|_| gathered.count > 0) {
        last.end = windows.len();
    }
    for block in blocks {
        show(&mut windows[block], rank);
    }
}

/// Shows one percentile of all these windows in each of them.
fn show(windows: &mut [Seen<'_>], rank: &Rank) {
    let (mut known, mut censored) = (Distribution::default(), Distribution::default());
    for window in windows.iter() {
        window.values.add_to(&mut known, &mut censored);
    }
    let all = Percentiles::of_all_due(&known, &censored);
    let (value, is_at_least) = ((rank.of)(&all), all.at_least.holds(rank.name));
    let over_s = windows.iter().map(|window| window.for_s).sum();
    for window in windows {
        *(rank.value)(window.percentiles) = value;
        if is_at_least {
            window.percentiles.at_least.add(rank.name);
        }
        *(rank.span)(window.spans) = Some(over_s);
    }
}

#[cfg(test)]
mod tests {
    use muster_model::Micros;

    use super::*;

    /// p99 and its span in windows of a second, with so many values of so many microseconds each.
    fn p99(windows: &[(&str, u64, u64)]) -> Vec<(Option<u64>, Option<f64>)> {
        let values = windows.iter().map(|(_, count, us)| {
            let mut values = Distribution::default();
            values.record_n(Micros(*us), *count);
            values
        });
        let values: Vec<Distribution> = values.collect();
        let mut shown = vec![(Percentiles::default(), PercentileSpans::default()); windows.len()];
        let seen = windows.iter().zip(&values).zip(&mut shown);
        let seen = seen.map(|(((phase, _, _), values), (percentiles, spans))| Seen {
            phase: (*phase).to_owned(),
            for_s: 1.0,
            values: Values::new(values, None),
            percentiles,
            spans,
        });
        widen(seen.collect());
        shown
            .iter()
            .map(|(of, over)| (of.p99_us, over.p99_s))
            .collect()
    }

    #[test]
    fn a_window_with_enough_values_stands_alone() {
        let all = p99(&[("measure", 1_000, 10), ("measure", 1_000, 20)]);
        assert_eq!(all, [(Some(10), Some(1.0)), (Some(20), Some(1.0))]);
    }

    #[test]
    fn windows_are_taken_together_until_they_have_enough_and_the_rest_joins_them() {
        let slow = [
            ("measure", 400, 10),
            ("measure", 400, 10),
            ("measure", 400, 20),
        ];
        let rest = [("measure", 1_000, 30), ("measure", 5, 40)];
        let all = p99(&[&slow[..], &rest[..]].concat());
        assert_eq!(all[..3], [(Some(20), Some(3.0)); 3]);
        assert_eq!(all[3..], [(Some(30), Some(2.0)); 2]);
    }

    #[test]
    fn no_percentile_is_taken_over_two_phases() {
        let all = p99(&[
            ("warm-up", 900, 10),
            ("measure", 900, 20),
            ("measure", 900, 20),
        ]);
        assert_eq!(all[0], (None, None));
        assert_eq!(all[1], (Some(20), Some(2.0)));
    }

    #[test]
    fn a_phase_with_too_few_values_has_no_percentile() {
        assert_eq!(
            p99(&[("measure", 499, 10), ("measure", 500, 10)]),
            [(None, None); 2]
        );
    }
}
