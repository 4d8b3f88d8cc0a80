//! Seconds of due that say nothing of arrivals, because a consumer of ours had too little CPU.

use std::collections::BTreeSet;

use muster_measure::{SecondRow, State, Summary};

use crate::strain::{CPU, CPU_WAIT};
use crate::{GeneratorHealth, IncidentKind, ThreadRole, ThreadWindow};

/// Seconds of due before a starved window that may have been delivered in it.
const BEFORE_S: u32 = 10;

/// Seconds from ten before each starved window to its end. In a starved window a consumer waited
/// for a CPU for more than 10 % of it, or was on CPU for more than 85 %.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StarvedSeconds(BTreeSet<u32>);

/// Counts of the starved seconds at one backend.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Apart {
    /// Accepted or unacknowledged.
    pub(crate) expected: u64,
    /// Of these, absent.
    pub(crate) lost: u64,
    /// Of these, outstanding.
    pub(crate) outstanding: u64,
}

impl StarvedSeconds {
    pub(crate) fn of(health: &GeneratorHealth) -> Self {
        let consumers = health.threads.iter();
        let consumers = consumers.filter(|thread| thread.role == ThreadRole::Consumer);
        let windows = consumers.flat_map(|thread| &thread.windows);
        let starved = windows.filter(|window| is_starved(window));
        let seconds = starved.flat_map(|window| {
            // A window ends about at a second, so that its own second is the one before.
            let last = window.until.0.saturating_sub(1) / 1_000_000;
            let last = u32::try_from(last).unwrap_or(u32::MAX);
            last.saturating_sub(BEFORE_S)..=last
        });
        Self(seconds.collect())
    }

    /// The starved seconds in which the platform left our consumers their sessions. What is absent of the
    /// other seconds is explained by the end of a session, whatever the consumer waited for.
    pub(crate) fn with_sessions(health: &GeneratorHealth) -> Self {
        let Self(mut seconds) = Self::of(health);
        let ended = health.incidents.iter();
        let ended = ended.filter(|incident| incident.kind == IncidentKind::ConsumerLost);
        for incident in ended {
            let (from, until) = (incident.from.second(), incident.until.second());
            seconds.retain(|second| !(from..=until).contains(second));
        }
        Self(seconds)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, second: u32) -> bool {
        self.0.contains(&second)
    }

    /// Counts of what was due in these seconds, of a series, at a backend. No consumer of ours stands before a store.
    pub(crate) fn apart(&self, series: &[SecondRow], summary: &Summary, backend: usize) -> Apart {
        if summary.backends[backend].is_store {
            return Apart::default();
        }
        let rows = series.iter().filter(|row| self.contains(row.second));
        rows.fold(Apart::default(), |sum, row| {
            let at = row.arrivals.get(backend).copied().unwrap_or_default();
            let expected = row.due.of(State::Accepted) + row.due.of(State::Unacknowledged);
            Apart {
                expected: sum.expected + expected,
                lost: sum.lost + at.lost_due,
                outstanding: sum.outstanding + at.outstanding_due,
            }
        })
    }
}

fn is_starved(window: &ThreadWindow) -> bool {
    window.cpu > CPU || window.waiting.is_some_and(|waiting| waiting > CPU_WAIT)
}

#[cfg(test)]
mod tests {
    use muster_model::Micros;

    use super::*;
    use crate::ThreadHealth;

    #[test]
    fn a_starved_window_reaches_ten_seconds_back_and_to_its_own_end() {
        let seconds = |role, cpu, waiting| {
            let window = ThreadWindow {
                until: Micros::from_secs(20),
                cpu,
                waiting,
            };
            let thread = ThreadHealth {
                name: "consumer 0".to_owned(),
                role,
                windows: vec![window],
            };
            StarvedSeconds::of(&GeneratorHealth {
                threads: vec![thread],
                ..GeneratorHealth::default()
            })
        };
        let consumer = ThreadRole::Consumer;
        for starved in [
            seconds(consumer, 0.1, Some(0.11)),
            seconds(consumer, 0.86, None),
        ] {
            assert_eq!(starved, StarvedSeconds((9..=19).collect()));
        }
        for fed in [
            seconds(consumer, 0.85, Some(0.10)),
            seconds(ThreadRole::Shard, 0.9, Some(0.9)),
        ] {
            assert!(fed.is_empty());
        }
    }
}
