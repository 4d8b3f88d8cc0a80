//! The names of the rules that a scenario may give a bound, whatever the bound.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Latency, Percentile};

/// A rule by its name, without a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RuleName {
    /// Rule `loss`.
    Loss,
    /// Rule `failure-ratio`.
    FailureRatio,
    /// Rule `connected`.
    Connected,
    /// Rule `disconnects`.
    Disconnects,
    /// Rule `duplicates`.
    Duplicates,
    /// Percentiles of one latency.
    Latency {
        /// The latency.
        of: Latency,
        /// The percentile; none stands for all of them.
        percentile: Option<Percentile>,
    },
    /// Rule `commands-not-received`.
    NotReceived,
    /// Rule `replies-lost`.
    RepliesLost,
    /// Rule `receive-loss`.
    ReceiveLoss,
    /// Rule `queries-with-command`.
    QueriesWithCommand,
    /// Rule `stable`.
    Stable,
}

impl RuleName {
    /// Returns whether a rule of this name, in a fleet or a stream, takes the place of a wider rule
    /// named `other`.
    pub fn replaces(self, other: Self) -> bool {
        match (self, other) {
            (
                Self::Latency {
                    of,
                    percentile: None,
                },
                Self::Latency { of: theirs, .. },
            ) => of == theirs,
            _ => self == other,
        }
    }

    /// Returns whether the rule is about links, which belong to a fleet, and not about messages.
    pub const fn is_about_links(self) -> bool {
        matches!(self, Self::Connected | Self::Disconnects)
    }
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loss => "loss",
            Self::FailureRatio => "failure-ratio",
            Self::Connected => "connected",
            Self::Disconnects => "disconnects",
            Self::Duplicates => "duplicates",
            Self::Latency {
                of,
                percentile: Some(percentile),
            } => return write!(f, "{} {percentile}", of.name()),
            Self::Latency { of, .. } => of.name(),
            Self::NotReceived => "commands-not-received",
            Self::RepliesLost => "replies-lost",
            Self::ReceiveLoss => "receive-loss",
            Self::QueriesWithCommand => "queries-with-command",
            Self::Stable => "stable",
        })
    }
}
