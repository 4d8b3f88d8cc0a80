//! Searches of the same instances: one that could not be judged is repeated.

use crate::growth::{End, Measured, Outcome};

/// The first rate of a search is this part of the one at which the service levels did not hold.
const RETREAT: f64 = 0.25;
/// Searches of the same instances, at the most.
const MOST: usize = 2;

/// Searches of the same instances, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tries(Vec<Outcome>);

/// The judgement on instances after a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Judged {
    /// Their capacity.
    Found(Measured),
    /// None yet: they are searched again.
    Again,
    /// None: no further search would find it.
    Not,
}

impl Tries {
    /// Takes the outcome of a search.
    pub(crate) fn record(&mut self, outcome: &Outcome) -> Judged {
        self.0.push(outcome.clone());
        match outcome {
            Outcome::Found(measured) => Judged::Found(*measured),
            Outcome::AtLeast { .. } => Judged::Not,
            Outcome::FailsAtFirst { .. } | Outcome::Idle { .. } | Outcome::Unclear { .. } => {
                match self.0.len() < MOST {
                    true => Judged::Again,
                    false => Judged::Not,
                }
            }
        }
    }

    /// The last outcome.
    pub(crate) fn last(&self) -> Option<&Outcome> {
        self.0.last()
    }

    /// True if no further search is to be made.
    pub(crate) fn are_over(&self) -> bool {
        let is_clear = |outcome| matches!(outcome, &Outcome::Found(_) | &Outcome::AtLeast { .. });
        self.0.len() >= MOST || self.last().is_some_and(is_clear)
    }

    /// The first rate of the next search: `usual`, or far below one at which the service levels did not hold.
    pub(crate) fn first(&self, usual: f64) -> f64 {
        let failed = self.0.iter().filter_map(|outcome| match outcome {
            Outcome::FailsAtFirst { rate } => Some(*rate * RETREAT),
            Outcome::Found(_)
            | Outcome::AtLeast { .. }
            | Outcome::Idle { .. }
            | Outcome::Unclear { .. } => None,
        });
        failed.fold(usual, f64::min)
    }

    /// The end of a growth at instances that could not be judged. `are_first` is true if none were judged before.
    pub(crate) fn end<N>(&self, instances: N, are_first: bool) -> End<N> {
        match self.last() {
            Some(Outcome::AtLeast { rate, bound }) => End::AtLeast {
                instances,
                rate: *rate,
                bound: bound.clone(),
            },
            Some(Outcome::FailsAtFirst { rate }) if are_first => End::FailsAtFirst { rate: *rate },
            Some(Outcome::FailsAtFirst { rate }) => {
                let why = format!("the SLOs fail at {rate:.0}/s, which fewer instances carried");
                self.unclear(instances, why)
            }
            Some(Outcome::Idle { address }) => {
                let why = format!("the instance at {address} received no load");
                self.unclear(instances, why)
            }
            Some(Outcome::Unclear { why, .. }) => self.unclear(instances, why.clone()),
            Some(Outcome::Found(_)) | None => End::AtMost,
        }
    }

    /// The end of a growth at instances that were not judged for a reason, with what is known of them.
    pub(crate) fn unclear<N>(&self, instances: N, why: String) -> End<N> {
        End::Unclear {
            instances,
            why,
            known: self.0.iter().rev().find_map(Outcome::known),
        }
    }
}
