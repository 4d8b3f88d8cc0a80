//! What a run is judged by: resolved, and fixed before its first message.

use std::fmt;

use muster_model::{FleetId, Micros, StreamId};
use serde::{Deserialize, Serialize};

use crate::{Percentile, Share, StabilityBounds, ValidityBounds};

/// All rules of a run, with every default filled in. A part of the Plan: stored with its hash
/// before the first message, so that no later option moves a threshold unseen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// The SLOs, in the order of the scenario: top, fleets, streams.
    pub slos: Vec<Slo>,
    /// When the generator is to blame.
    pub validity: ValidityBounds,
    /// When stability is evaluated. It always is; it is judged only where a [`Slo`] names it.
    pub stability: StabilityBounds,
    /// What ends the measured phase early; the run then fails by rule `stop-if`.
    pub stop_if: Vec<StopIf>,
}

impl Rules {
    /// Begins with no named SLO and default bounds. `has_backend` tells whether arrivals are
    /// known, so that loss can be judged.
    #[must_use]
    pub fn builder(has_backend: bool) -> RulesBuilder {
        RulesBuilder {
            has_backend,
            named: Vec::new(),
            validity: ValidityBounds::default(),
            stability: StabilityBounds::default(),
            stop_if: Vec::new(),
        }
    }

    /// The bounds on one latency that concern one stream, ascending and without doubles: what the
    /// recorder must count exactly, since no rule is decided by a bucket.
    #[must_use]
    pub fn thresholds(&self, latency: Latency, fleet: FleetId, stream: StreamId) -> Vec<Micros> {
        let slos = self
            .slos
            .iter()
            .filter(|slo| slo.scope.contains(fleet, stream));
        let named = slos.filter_map(|slo| match slo.bound {
            SloBound::Latency { of, at_most, .. } => (of == latency).then_some(at_most),
            SloBound::Loss(_)
            | SloBound::FailureRatio(_)
            | SloBound::Connected(_)
            | SloBound::Disconnects(_)
            | SloBound::NotReceived(_)
            | SloBound::RepliesLost(_)
            | SloBound::ReceiveLoss(_)
            | SloBound::QueriesWithCommand(_)
            | SloBound::Stable => None,
        });
        let own = (latency == Latency::Lateness)
            .then(|| self.lateness_bound())
            .flatten();
        let mut bounds: Vec<Micros> = named.chain(own).collect();
        bounds.sort_unstable();
        bounds.dedup();
        bounds
    }

    /// The bound on the p99 of lateness as far as it is known before the run: the one the scenario
    /// names, else `max(1 ms, 5 % of the tightest response bound)`; none if there is no response
    /// bound, then the measured p99 decides.
    #[must_use]
    pub fn lateness_bound(&self) -> Option<Micros> {
        let tightest = self.slos.iter().filter_map(|slo| match slo.bound {
            SloBound::Latency {
                of: Latency::Response,
                at_most,
                ..
            } => Some(at_most),
            SloBound::Latency { .. }
            | SloBound::Loss(_)
            | SloBound::FailureRatio(_)
            | SloBound::Connected(_)
            | SloBound::Disconnects(_)
            | SloBound::NotReceived(_)
            | SloBound::RepliesLost(_)
            | SloBound::ReceiveLoss(_)
            | SloBound::QueriesWithCommand(_)
            | SloBound::Stable => None,
        });
        let derived = || {
            tightest
                .min()
                .map(|bound| LATENESS_FLOOR.max(Micros(bound.0 / 20)))
        };
        self.validity.lateness_p99.or_else(derived)
    }
}

/// Lateness below this never matters: the bound derived from a response bound is at least so much.
pub(crate) const LATENESS_FLOOR: Micros = Micros::from_millis(1);

/// Collects what the scenario names and fills in the defaults.
#[derive(Debug, Clone)]
pub struct RulesBuilder {
    has_backend: bool,
    named: Vec<Slo>,
    validity: ValidityBounds,
    stability: StabilityBounds,
    stop_if: Vec<StopIf>,
}

impl RulesBuilder {
    /// Adds an SLO that the scenario names.
    #[must_use]
    pub fn slo(mut self, scope: Scope, bound: SloBound) -> Self {
        self.named.push(Slo {
            scope,
            bound,
            named: true,
        });
        self
    }

    /// Replaces the bounds on the generator.
    #[must_use]
    pub fn validity(mut self, bounds: ValidityBounds) -> Self {
        self.validity = bounds;
        self
    }

    /// Replaces the settings of the stability test.
    #[must_use]
    pub fn stability(mut self, bounds: StabilityBounds) -> Self {
        self.stability = bounds;
        self
    }

    /// Adds a condition that ends the measured phase.
    #[must_use]
    pub fn stop_if(mut self, condition: StopIf) -> Self {
        self.stop_if.push(condition);
        self
    }

    /// The rules. If the scenario names no SLO at all: loss 0 (where there is a backend),
    /// failure-ratio 0, connected 100 % (SEMANTICS section 4). If it names some, but only in
    /// fleets or streams, those defaults stay that none of them replaces.
    #[must_use]
    pub fn build(self) -> Rules {
        let mut slos = Vec::new();
        if !self.named.iter().any(|slo| slo.scope == Scope::Run) {
            let loss = self
                .has_backend
                .then_some(SloBound::Loss(Allowance::Count(0)));
            let failures = SloBound::FailureRatio(Share::ZERO);
            let all = loss
                .into_iter()
                .chain([failures, SloBound::Connected(Share::ONE)]);
            let missing =
                all.filter(|bound| !self.named.iter().any(|slo| slo.bound.is_same_kind(bound)));
            slos.extend(missing.map(|bound| Slo {
                scope: Scope::Run,
                bound,
                named: false,
            }));
        }
        slos.extend(self.named);
        Rules {
            slos,
            validity: self.validity,
            stability: self.stability,
            stop_if: self.stop_if,
        }
    }
}

/// One service level objective.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slo {
    /// What it is about.
    pub scope: Scope,
    /// What must hold.
    pub bound: SloBound,
    /// Whether the scenario names it; if not, it is a default. A named SLO that cannot be
    /// evaluated makes the run invalid, a default one does not.
    pub named: bool,
}

/// Which messages and links a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// All of them.
    Run,
    /// Those of one fleet.
    Fleet {
        /// Which fleet.
        id: FleetId,
        /// Its name in the scenario.
        name: String,
    },
    /// Those of one stream.
    Stream {
        /// The fleet that owns the stream.
        fleet: FleetId,
        /// Which stream.
        id: StreamId,
        /// `<fleet>/<stream>`, as in the result.
        name: String,
    },
}

impl Scope {
    /// Whether a stream of a fleet belongs to this scope.
    #[must_use]
    pub fn contains(&self, of_fleet: FleetId, stream: StreamId) -> bool {
        match self {
            Self::Run => true,
            Self::Fleet { id, .. } => *id == of_fleet,
            Self::Stream { id, .. } => *id == stream,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run => f.write_str("run"),
            Self::Fleet { name, .. } | Self::Stream { name, .. } => f.write_str(name),
        }
    }
}

/// What an SLO demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SloBound {
    /// `lost + lost_unacknowledged` over the whole run is at most so much; a ratio is of the
    /// accepted and unacknowledged.
    Loss(Allowance),
    /// Rejected, timed out, broken, in flight and shed by no fault of ours are together at most
    /// this share of the scheduled, measured cohort.
    FailureRatio(Share),
    /// At least this share of the wanted links is up at the end of the connect phase.
    Connected(Share),
    /// Links lost after they were connected; a ratio is of the connected.
    Disconnects(Allowance),
    /// At least X of the messages take at most so long.
    Latency {
        /// Which latency.
        of: Latency,
        /// The X.
        percentile: Percentile,
        /// The bound, itself allowed.
        at_most: Micros,
    },
    /// Commands that the platform delivered, as it says, and that were not received, over the
    /// whole run; a ratio is of the delivered.
    NotReceived(Allowance),
    /// Replies that the platform took and that will not come to the backend any more, over the
    /// whole run; a ratio is of the answered.
    RepliesLost(Allowance),
    /// Messages that subscribers among the devices were to get and will not get any more, over the
    /// whole run; a ratio is of the expected.
    ReceiveLoss(Allowance),
    /// At least this share of the queries due while measuring had a command; what was shed or refused is
    /// one without.
    QueriesWithCommand(Share),
    /// The backlog does not grow (SEMANTICS section 6).
    Stable,
}

impl SloBound {
    /// The rule's name, as in the scenario and the result: `loss`, `response p99`.
    #[must_use]
    pub fn rule(&self) -> String {
        match self {
            Self::Loss(_) => "loss".to_owned(),
            Self::FailureRatio(_) => "failure-ratio".to_owned(),
            Self::Connected(_) => "connected".to_owned(),
            Self::Disconnects(_) => "disconnects".to_owned(),
            Self::Latency { of, percentile, .. } => format!("{} {percentile}", of.name()),
            Self::NotReceived(_) => "commands-not-received".to_owned(),
            Self::RepliesLost(_) => "replies-lost".to_owned(),
            Self::ReceiveLoss(_) => "receive-loss".to_owned(),
            Self::QueriesWithCommand(_) => "queries-with-command".to_owned(),
            Self::Stable => "stable".to_owned(),
        }
    }

    /// Whether both are of the same rule, whatever their bounds.
    fn is_same_kind(&self, other: &SloBound) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A number of messages or links, or a share of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Allowance {
    /// At most so many.
    Count(u64),
    /// At most this share.
    Ratio(Share),
}

/// A length of time that a message takes (SEMANTICS section 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Latency {
    /// From due to the answer.
    Response,
    /// From sent to the answer.
    Service,
    /// From due to the backend.
    EndToEnd,
    /// From due to taken: the generator's own.
    Lateness,
    /// From a query's due instant to its answer.
    CommandRequest,
    /// From the instant a device's reply to a command is due to the platform's answer to it.
    CommandResponse,
    /// From a command's issue to its reply at the backend.
    CommandLoop,
}

impl Latency {
    /// The name used in scenarios and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Service => "service",
            Self::EndToEnd => "end-to-end",
            Self::Lateness => "lateness",
            Self::CommandRequest => "command-request",
            Self::CommandResponse => "command-response",
            Self::CommandLoop => "command-loop",
        }
    }
}

/// A condition that, once it has held for a while, ends the measured phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopIf {
    /// What is watched.
    pub trigger: StopTrigger,
    /// For how long it must hold without a break.
    pub lasting: Micros,
}

/// What a [`StopIf`] watches, window by window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopTrigger {
    /// Of the messages that became final in the window, more than this share failed.
    FailureRatioAbove(Share),
    /// Less than this share of the wanted links is up.
    ConnectedBelow(Share),
}
