//! Stretches of the measured phase in which something was wanted and did not happen.

use std::collections::BTreeMap;

use muster_measure::{Phase, ScopeSummary, SecondRow, State, Summary, WindowDelta};
use muster_report::Event;

/// Seconds without one of the things that happen all the time, before it is called an event.
const GAP_MIN: u32 = 2;

/// One message in this number of those wanted in a second, or fewer, is next to none.
const SOME_OF: u64 = 20;

/// The event for a stretch without one of the things that happen all the time.
#[derive(Debug, Clone, Copy)]
struct Absence {
    kind: &'static str,
    detail: &'static str,
}

const NO_ANSWER: Absence = Absence {
    kind: "no-answer",
    detail: "none, or next to none, of what was sent was answered",
};
const NO_ARRIVAL: Absence = Absence {
    kind: "no-arrival",
    detail: "nothing, or next to nothing, arrived at the backend",
};

/// Amounts of one second.
#[derive(Debug, Clone, Copy, Default)]
struct Amounts {
    wanted: u64,
    happened: u64,
}

/// Events for stretches in which next to nothing was answered by the platform.
///
/// An answer is wanted for each message that waits for one, and for each that its link could not carry. A device
/// that the platform asked to wait sends nothing, and wants none.
pub(crate) fn without_answers(
    summary: &Summary,
    windows: &WindowDelta,
    scopes: &[&ScopeSummary],
) -> Vec<Event> {
    let mut seconds: BTreeMap<u32, Answers> = BTreeMap::new();
    for row in scopes.iter().flat_map(|scope| &scope.series) {
        seconds.entry(row.second).or_default().add(row);
    }
    let links = Links::new(windows, summary.run.links.wanted);
    let mut waiting = 0;
    let rows = seconds.into_iter().filter_map(|(second, answers)| {
        let before = waiting;
        waiting = answers.waiting_after(before);
        let possible = before + answers.sent + links.share_down(second, answers.wanted);
        let wanted = answers.wanted.min(possible);
        let amounts = Amounts {
            wanted,
            happened: answers.answered,
        };
        answers.is_measured.then_some((second, amounts))
    });
    events(summary, NO_ANSWER, rows)
}

/// Events for stretches in which next to nothing arrived at the first backend.
pub(crate) fn without_arrivals(summary: &Summary) -> Vec<Event> {
    let rows = summary.run.series.iter().filter(|row| is_measured(row));
    let mut seconds: BTreeMap<u32, Amounts> = BTreeMap::new();
    for row in rows {
        let arrived = row.arrivals.first().map_or(0, |arrival| arrival.arrived);
        let expected = row.flow.of(State::Accepted) + row.flow.of(State::Unacknowledged);
        let sum = seconds.entry(row.second).or_default();
        sum.wanted += expected;
        sum.happened += arrived;
    }
    events(summary, NO_ARRIVAL, seconds.into_iter())
}

fn is_measured(row: &SecondRow) -> bool {
    row.phase == Phase::Measure && row.is_whole
}

/// The messages of some scopes in one second.
#[derive(Debug, Default)]
struct Answers {
    is_measured: bool,
    /// Messages due or sent in it, the greater number of each scope.
    wanted: u64,
    sent: u64,
    answered: u64,
    /// Messages that reached a final state after they were sent.
    ended: u64,
}

impl Answers {
    fn add(&mut self, row: &SecondRow) {
        let flow = &row.flow;
        if is_measured(row) {
            self.is_measured = true;
            self.wanted += flow.sent.max(row.offered.unwrap_or(0));
            self.answered += flow.answered();
        }
        self.sent += flow.sent;
        self.ended += flow.ended.iter().sum::<u64>() - flow.of(State::Shed);
    }

    /// Messages that wait for an answer at the end of the second, of those that did at its beginning.
    fn waiting_after(&self, before: u64) -> u64 {
        (before + self.sent).saturating_sub(self.ended)
    }
}

/// The links that are down, by second.
struct Links {
    wanted: u64,
    /// Links that are up or need no connection, from this second on.
    usable: BTreeMap<u32, u64>,
}

impl Links {
    fn new(windows: &WindowDelta, wanted: u64) -> Self {
        let seconds = windows.links_by_second().into_iter();
        let usable = seconds.map(|at| (at.second, at.up)).collect();
        Self { wanted, usable }
    }

    /// The part of messages whose links are down at the end of a second, rounded up.
    fn share_down(&self, second: u32, messages: u64) -> u64 {
        let usable = self.usable.range(..=second).next_back();
        let usable = usable.map_or(0, |(_, usable)| *usable);
        let down = self.wanted.saturating_sub(usable);
        (messages * down).div_ceil(self.wanted.max(1))
    }
}

fn events(
    summary: &Summary,
    absence: Absence,
    rows: impl Iterator<Item = (u32, Amounts)>,
) -> Vec<Event> {
    let found = stretches(rows, summary.timeline.settle.second()).into_iter();
    let event = |(from, until): (u32, u32)| {
        Event::new(from.into(), absence.kind, absence.detail.to_owned()).until(until.into())
    };
    found.map(event).collect()
}

/// From which second to which next to nothing of what was wanted happened. A target that stands
/// still in mid-second has done a little in it, so that a little does not end a stretch.
fn stretches(rows: impl Iterator<Item = (u32, Amounts)>, end: u32) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    let mut since = None;
    for (second, amounts) in rows {
        if amounts.wanted > amounts.happened * SOME_OF {
            since.get_or_insert(second);
        } else if let Some(from) = since.take() {
            found.push((from, second));
        }
    }
    found.extend(since.map(|from| (from, end.max(from))));
    found.retain(|(from, until)| *until >= from + GAP_MIN);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rows: &[(u64, u64)]) -> Vec<(u32, u32)> {
        let end = rows.len() as u32;
        let amounts = rows
            .iter()
            .map(|&(wanted, happened)| Amounts { wanted, happened });
        stretches((0..).zip(amounts), end)
    }

    #[test]
    fn a_target_that_stands_still_in_mid_second_has_a_gap_all_the_same() {
        let stall = [(2_000, 2_000), (2_000, 1), (2_000, 0), (2_000, 6_000)];
        assert_eq!(found(&stall), [(1, 3)]);
    }

    #[test]
    fn a_gap_of_one_second_or_of_nothing_wanted_is_none() {
        assert_eq!(found(&[(9, 9), (9, 0), (9, 9)]), []);
        assert_eq!(found(&[(9, 9), (0, 0), (0, 0), (9, 9)]), []);
    }

    #[test]
    fn a_gap_may_last_to_the_end() {
        assert_eq!(found(&[(9, 9), (9, 0), (9, 0)]), [(1, 3)]);
    }
}
