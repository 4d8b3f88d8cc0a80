//! The seven final states of a message on the device side, without their codes and causes.

use muster_model::Outcome;
use serde::{Deserialize, Serialize};

/// A final state; rows of a backend's table and identity sets are named by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum State {
    /// The platform took responsibility.
    Accepted,
    /// The platform answered no.
    Rejected,
    /// No answer in time.
    TimedOut,
    /// The link ended before the answer.
    Broken,
    /// Sent, and no answer exists by design.
    Unacknowledged,
    /// Still open when settling ended.
    InFlight,
    /// Never sent.
    Shed,
}

impl State {
    /// Every state, in the order of the report.
    pub const ALL: [State; 7] = [
        State::Accepted,
        State::Rejected,
        State::TimedOut,
        State::Broken,
        State::Unacknowledged,
        State::InFlight,
        State::Shed,
    ];

    /// The states of messages that were sent: the rows of a backend's table.
    pub const SENT: [State; 6] = [
        State::Accepted,
        State::Rejected,
        State::TimedOut,
        State::Broken,
        State::Unacknowledged,
        State::InFlight,
    ];

    /// The state's place in [`State::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns whether a message in this state is expected at every backend.
    pub const fn is_expected(self) -> bool {
        matches!(self, Self::Accepted | Self::Unacknowledged)
    }

    /// Returns whether the state is an answer of the platform.
    pub const fn is_answer(self) -> bool {
        matches!(self, Self::Accepted | Self::Rejected)
    }

    /// The name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::TimedOut => "timed_out",
            Self::Broken => "broken",
            Self::Unacknowledged => "unacknowledged",
            Self::InFlight => "in_flight",
            Self::Shed => "shed",
        }
    }
}

impl From<&Outcome> for State {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Accepted => Self::Accepted,
            Outcome::Rejected(_) => Self::Rejected,
            Outcome::TimedOut => Self::TimedOut,
            Outcome::Broken(_) => Self::Broken,
            Outcome::Unacknowledged => Self::Unacknowledged,
            Outcome::Shed(_) => Self::Shed,
            Outcome::InFlight => Self::InFlight,
        }
    }
}
