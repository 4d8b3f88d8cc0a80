//! Merge of two ascending lists of runs: the algebra of sets of sequence numbers.

use std::ops::Range;

/// A stretch of numbers that all are, or are not, in each of two sets; in at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) range: Range<u32>,
    pub(crate) in_first: bool,
    pub(crate) in_second: bool,
}

/// Merges two ascending lists of runs into stretches.
pub(crate) fn merge_runs(
    first: impl Iterator<Item = Range<u32>>,
    second: impl Iterator<Item = Range<u32>>,
) -> impl Iterator<Item = Stretch> {
    let (mut first, mut second) = (first, second);
    let (mut a, mut b) = (first.next(), second.next());
    std::iter::from_fn(move || {
        let start = match (&a, &b) {
            (None, None) => return None,
            (Some(run), None) | (None, Some(run)) => run.start,
            (Some(a), Some(b)) => a.start.min(b.start),
        };
        let border = |run: &Option<Range<u32>>| match run {
            Some(run) if run.start == start => run.end,
            Some(run) => run.start,
            None => u32::MAX,
        };
        let is_in = |run: &Option<Range<u32>>| run.as_ref().is_some_and(|run| run.start == start);
        let range = start..border(&a).min(border(&b));
        let stretch = Stretch {
            in_first: is_in(&a),
            in_second: is_in(&b),
            range,
        };
        let end = stretch.range.end;
        if stretch.in_first {
            a = rest_of(a.take(), end).or_else(|| first.next());
        }
        if stretch.in_second {
            b = rest_of(b.take(), end).or_else(|| second.next());
        }
        Some(stretch)
    })
}

/// Part of a run from `end` on.
fn rest_of(run: Option<Range<u32>>, end: u32) -> Option<Range<u32>> {
    run.map(|run| end..run.end).filter(|run| !run.is_empty())
}

/// The parts of ascending runs that lie within `bounds`.
pub(crate) fn clip(
    runs: impl Iterator<Item = Range<u32>>,
    bounds: Range<u32>,
) -> impl Iterator<Item = Range<u32>> {
    runs.map(move |run| run.start.max(bounds.start)..run.end.min(bounds.end))
        .filter(|run| run.start < run.end)
}

/// Number of sequence numbers in a range.
pub(crate) fn len(range: &Range<u32>) -> u64 {
    u64::from(range.end.saturating_sub(range.start))
}

/// Sum of the runs' lengths.
pub(crate) fn count(runs: impl Iterator<Item = Range<u32>>) -> u64 {
    runs.map(|run| len(&run)).sum()
}
