//! Consumers of a backend that do not come up, or that receive no copies for a while.

use std::borrow::Cow;
use std::fmt;

use muster_model::{ConsumerId, Reason};
use serde::{Deserialize, Serialize};

/// A consumer as diagnostics name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerName {
    /// Its number within the run.
    pub number: ConsumerId,
    /// The name of its backend.
    pub backend: String,
    /// The address, or addresses, that it connects to.
    pub address: String,
}

/// A consumer that does not come up, or whose commands are refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerRefusal {
    /// The consumer.
    pub consumer: ConsumerName,
    /// The cause.
    pub cause: RefusalCause,
}

/// A consumer that receives no copies any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerAbsence {
    /// The consumer.
    pub consumer: ConsumerName,
    /// Description of the cause.
    pub why: String,
}

/// Cause of a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalCause {
    /// Its kind.
    pub kind: RefusalKind,
    /// The code that the platform gave; none if it gave none.
    pub reason: Option<Reason>,
    /// Description of the failure.
    pub what: String,
    /// The place to look at, or the action to take.
    pub remedy: Remedy,
}

/// Kind of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalKind {
    /// The platform, or this machine, refuses the consumer.
    Refused,
    /// The platform is not ready yet, as a partition is before it has a leader.
    NotReady,
    /// The peer speaks another protocol.
    OtherProtocol,
    /// No peer answers.
    Unreachable,
    /// The consumer may be up, but its commands are refused.
    Commands,
}

/// Remedy for a refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Remedy {
    /// None is known.
    None,
    /// Keys of the scenario, or another place, to look at.
    See(Cow<'static, str>),
    /// An action, or a question to answer.
    Do(Cow<'static, str>),
}

impl ConsumerName {
    /// Returns the backend and its address, which all consumers of the backend share.
    pub fn place(&self) -> String {
        format!("backend `{}` at {}", self.backend, self.address)
    }
}

impl RefusalCause {
    /// A cause without a code and without a remedy.
    pub const fn new(kind: RefusalKind, what: String) -> Self {
        Self {
            kind,
            reason: None,
            what,
            remedy: Remedy::None,
        }
    }

    /// Returns true if both call for the same action: their remedies are equal, or their codes if no
    /// remedy is known.
    pub fn is_like(&self, other: &Self) -> bool {
        let has_remedy = self.remedy != Remedy::None;
        self.remedy == other.remedy && (has_remedy || self.reason == other.reason)
    }
}

impl Remedy {
    /// A place to look at.
    pub const fn see(place: &'static str) -> Self {
        Self::See(Cow::Borrowed(place))
    }

    /// An action.
    pub const fn act(action: &'static str) -> Self {
        Self::Do(Cow::Borrowed(action))
    }
}

impl fmt::Display for ConsumerAbsence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.consumer, self.why)
    }
}

impl fmt::Display for ConsumerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "consumer {} of {}", self.number.0, self.place())
    }
}

impl fmt::Display for ConsumerRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.consumer, self.cause)
    }
}

impl fmt::Display for RefusalCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.what, self.remedy)
    }
}

/// The end of a sentence.
impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::See(place) => write!(f, "; see {place}"),
            Self::Do(action) => write!(f, "; {action}"),
        }
    }
}
