//! Consumers of a backend that do not come up, or that receive no copies for a while.

use std::borrow::Cow;
use std::fmt;

use muster_model::{ConsumerId, Reason, figure};
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

/// Requests that a webhook refused for one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushRefusal {
    /// The webhook.
    pub consumer: ConsumerName,
    /// The requests.
    pub requests: RefusedRequests,
}

/// The first request that was refused for a cause, or all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRequests {
    /// Number of requests, or of connections if no request was answered.
    pub count: u64,
    /// The status of the answer; none if the connection was ended instead.
    pub status: Option<u16>,
    /// The mistake and its remedy.
    pub why: String,
    /// True if they are all of the run.
    pub is_total: bool,
    /// True if the scenario wants them refused.
    pub is_planned: bool,
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

impl RefusedRequests {
    /// Returns the number and the answer, such as "2 requests were answered with 401".
    pub fn answer(&self) -> String {
        let (things, were) = match (self.status, self.count) {
            (None, 1) => ("connection", "was"),
            (None, _) => ("connections", "were"),
            (Some(_), 1) => ("request", "was"),
            (Some(_), _) => ("requests", "were"),
        };
        let count = figure::count(self.count);
        match self.status {
            Some(status) => format!("{count} {things} {were} answered with {status}"),
            None => format!("{count} {things} {were} ended"),
        }
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

impl fmt::Display for PushRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { consumer, requests } = self;
        let in_all = if requests.is_total { " in all" } else { "" };
        let (place, answer) = (consumer.place(), requests.answer());
        write!(f, "{place}: {answer}{in_all}: {}", requests.why)
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
