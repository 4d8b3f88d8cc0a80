//! Reasons why a rule could not be evaluated, with what it would have needed.

use std::fmt;

use muster_model::figure;
use serde::{Deserialize, Serialize};

use crate::OwnDelay;

/// The reason of a `not-evaluated`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unevaluated {
    /// A percentile of too few messages says nothing.
    TooFewMessages {
        /// Number of messages.
        have: u64,
        /// Number of messages needed: `10 / (1 - X)`.
        needed: u64,
    },
    /// A trend in too few windows says nothing.
    TooFewWindows {
        /// Number of one-second windows of constant rate at a stretch.
        have: u32,
        /// Number of windows needed (`stability.min-windows`).
        needed: u32,
    },
    /// The offered rate is nowhere constant.
    NotConstant,
    /// The latency rises and the backlog does not, so far.
    Unclear {
        /// Length that the hold would need to decide, in seconds.
        needed_s: u64,
    },
    /// The trend of a resource of the target decides nothing so far.
    Trend {
        /// Length that the measured phase would need, in seconds.
        needed_s: u64,
    },
    /// No resource of the target with a limit was sampled.
    NoLimit,
    /// Nothing was due in the scope.
    NothingDue,
    /// The scope wants no links.
    NoLinks,
    /// The run was interrupted before this was decided.
    CutShort,
    /// No backend reports arrivals.
    NoBackend,
    /// No accepted message of the scope is in the sample of the store.
    OutsideSample,
    /// The latency does not exist in the scope by design.
    NoSuchLatency,
    /// Our own consumer was away, so that what did not arrive is no proof.
    ConsumerDisturbed,
    /// Senders and consumers read clocks of different hosts.
    ClocksApart,
    /// Messages differ by their order alone, and some that were due did not arrive.
    OrderUnsure,
    /// The acknowledgements promise no delivery, and nothing looks behind them.
    DeliveryUnknown,
    /// The acknowledgements promise no delivery, and behind them there is a store alone, which says nothing of when.
    NoTimes,
    /// The run was killed before this could be known.
    Unknown,
    /// The run has not ended.
    Running,
    /// The rule is decided on the whole run, and this is one part.
    OnePart,
    /// The rule fails, and our own part could have made it fail.
    OwnDelay(OwnDelay),
}

impl Unevaluated {
    /// Returns whether there was nothing that the rule could be about. A default rule then does not
    /// apply.
    pub const fn is_without_object(self) -> bool {
        matches!(
            self,
            Self::NothingDue | Self::NoLinks | Self::NoBackend | Self::NoSuchLatency
        )
    }
}

impl fmt::Display for Unevaluated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFewMessages { have, needed } => {
                let (needed, have) = (figure::count(*needed), figure::count(*have));
                write!(f, "needs {needed} messages, had {have}")
            }
            Self::TooFewWindows { have, needed } => {
                write!(f, "needs {needed} s of constant rate, had {have} s")
            }
            Self::NotConstant => f.write_str("the offered rate is nowhere constant"),
            Self::Unclear { needed_s } => {
                let hold = figure::span(*needed_s);
                write!(
                    f,
                    "unclear: latency rises, backlog does not; hold {hold} to decide"
                )
            }
            Self::Trend { needed_s } => {
                write!(f, "unclear: needs at least {}", figure::span(*needed_s))
            }
            Self::NoLimit => {
                f.write_str("no resource with a limit was sampled while measuring; see `monitor`")
            }
            Self::NothingDue => f.write_str("nothing was due"),
            Self::CutShort => f.write_str("the run was interrupted before"),
            Self::NoLinks => f.write_str("no links are wanted"),
            Self::NoBackend => f.write_str("no backend reports arrivals"),
            Self::OutsideSample => f.write_str(
                "no accepted message of it is in the sample of the read-back",
            ),
            Self::NoSuchLatency => f.write_str("no message of the scope has this latency"),
            Self::ConsumerDisturbed => {
                f.write_str("our own consumer was away, so absence proves nothing")
            }
            Self::ClocksApart => {
                f.write_str("senders and consumers ran on hosts whose clocks may differ")
            }
            Self::OrderUnsure => f.write_str(
                "messages differ by their order alone, and not all that were due arrived",
            ),
            Self::DeliveryUnknown => f.write_str(
                "delivery unknown: no backend, counter or read-back looks behind the acknowledgements",
            ),
            Self::NoTimes => f.write_str(
                "the acknowledgements promise no delivery, and a read-back does not show when messages were stored",
            ),
            Self::Unknown => f.write_str("not measured: the run stopped first"),
            Self::Running => f.write_str("the run has not ended"),
            Self::OnePart => f.write_str("judged once the parts are merged"),
            Self::OwnDelay(own) => own.fmt(f),
        }
    }
}
