//! Rules that judge a run: resolved, and fixed before its first message.

use std::fmt;

use muster_model::{FleetId, Micros, StreamId};
use serde::{Deserialize, Serialize};

use crate::{Percentile, RuleName, RulesBuilder, SetNames, Share, StabilityBounds, ValidityBounds};

/// All rules of a run, with every default filled in. A part of the Plan: stored with its hash
/// before the first message, so that no later option moves a threshold unseen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// The SLOs, defaults first, then in the order of the scenario: top, fleets, streams.
    pub slos: Vec<Slo>,
    /// Names of the sets of SLOs, in the order of the scenario; none if it names no sets. A run is judged by all of them.
    pub sets: Vec<String>,
    /// The rules that the scenario switched off by `any`, in its order.
    pub switched_off: Vec<SwitchedOff>,
    /// Bounds beyond which the generator is to blame.
    pub validity: ValidityBounds,
    /// Bounds for evaluating stability. It always is evaluated; it is judged only where a [`Slo`]
    /// names it.
    pub stability: StabilityBounds,
    /// Conditions that end the measured phase early; the run then fails by rule `stop-if`.
    pub stop_if: Vec<StopIf>,
    /// The time that each resource of the target must last under the load; none if the scenario has no `soak`.
    pub soak: Option<Micros>,
}

impl Rules {
    /// Begins with no named SLO and default bounds. `has_backend` is true if arrivals are
    /// known, so that loss can be judged.
    pub fn builder(has_backend: bool) -> RulesBuilder {
        RulesBuilder::new(has_backend)
    }

    /// The bounds on one latency that concern one stream, ascending and without doubles: what the
    /// recorder must count exactly, since no rule is decided by a bucket.
    pub fn thresholds(&self, latency: Latency, fleet: FleetId, stream: StreamId) -> Vec<Micros> {
        let slos = self.slos.iter().filter(|slo| slo.covers(fleet, stream));
        let named = slos.filter_map(|slo| {
            if let SloBound::Latency { of, at_most, .. } = slo.bound {
                (of == latency).then_some(at_most)
            } else {
                None
            }
        });
        let own = (latency == Latency::Lateness).then_some(self.validity.lateness_p99);
        let stops = self.stop_if.iter().filter_map(|stop| match stop.trigger {
            StopTrigger::LatencyAbove { of, bound, .. } => (of == latency).then_some(bound),
            StopTrigger::FailureRatioAbove(_) | StopTrigger::ConnectedBelow(_) => None,
        });
        let mut bounds: Vec<Micros> = named.chain(own).chain(stops).collect();
        bounds.sort_unstable();
        bounds.dedup();
        bounds
    }

    /// The SLOs of a named set; all of them without a name.
    pub fn of_set<'a>(&'a self, set: Option<&'a str>) -> impl Iterator<Item = &'a Slo> {
        let is_of_set = move |slo: &&Slo| set.is_none_or(|set| slo.sets.contain(set));
        self.slos.iter().filter(is_of_set)
    }

    /// Returns whether `any` in the scopes of a stream switched a rule off there. A narrower rule
    /// of that name is judged all the same.
    pub fn is_switched_off(&self, rule: RuleName, fleet: FleetId, stream: StreamId) -> bool {
        let mut all = self.switched_off.iter();
        all.any(|off| off.rule.replaces(rule) && off.scope.contains(fleet, stream))
    }

    /// The sets of streams that a wider rule is left with, where narrower ones took some of its
    /// streams out: figures of each set are needed in addition to those of fleets and of the run.
    pub fn groups(&self, streams: &[(FleetId, StreamId)]) -> Vec<Vec<StreamId>> {
        let narrowed = self.slos.iter().filter(|slo| slo.is_narrowed());
        let mut groups: Vec<Vec<StreamId>> = narrowed.map(|slo| slo.streams(streams)).collect();
        groups.retain(|group| !group.is_empty());
        groups.sort_unstable();
        groups.dedup();
        groups
    }
}

/// One service level objective.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slo {
    /// Streams and links that the SLO is about.
    pub scope: Scope,
    /// Bound that must hold.
    pub bound: SloBound,
    /// True if the scenario names the SLO; otherwise it is a default.
    pub named: bool,
    /// Fleets and streams within the scope that have a rule of the same name, or `any`.
    pub except: Vec<Scope>,
    /// The sets of SLOs that it belongs to.
    pub sets: SetNames,
}

/// A rule that a scenario switched off by `any`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchedOff {
    /// Scope in which the rule is off.
    pub scope: Scope,
    /// Name of the rule.
    pub rule: RuleName,
}

impl Slo {
    /// Returns whether the rule is about a stream of a fleet.
    pub fn covers(&self, fleet: FleetId, stream: StreamId) -> bool {
        let is_out = |scope: &Scope| scope.contains(fleet, stream);
        self.scope.contains(fleet, stream) && !self.except.iter().any(is_out)
    }

    /// Returns whether the links of a fleet count for the rule.
    pub fn covers_links(&self, fleet: FleetId) -> bool {
        let is_its = |scope: &Scope| scope.fleet().is_none_or(|of| of == fleet);
        is_its(&self.scope) && !self.except.iter().any(is_its)
    }

    /// Returns whether narrower rules took streams out of the rule.
    pub fn is_narrowed(&self) -> bool {
        !self.except.is_empty() && !self.bound.name().is_about_links()
    }

    /// The streams that the rule is about, ascending.
    pub fn streams(&self, all: &[(FleetId, StreamId)]) -> Vec<StreamId> {
        let covered = all
            .iter()
            .filter(|(fleet, stream)| self.covers(*fleet, *stream));
        let mut streams: Vec<StreamId> = covered.map(|(_, stream)| *stream).collect();
        streams.sort_unstable();
        streams
    }
}

/// Messages and links that a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// All of them.
    Run,
    /// Messages and links of one fleet.
    Fleet {
        /// The fleet.
        id: FleetId,
        /// Its name in the scenario.
        name: String,
    },
    /// Messages and links of one stream.
    Stream {
        /// The fleet that owns the stream.
        fleet: FleetId,
        /// The stream.
        id: StreamId,
        /// `<fleet>/<stream>`, as in the result.
        name: String,
    },
}

impl Scope {
    /// Returns whether a stream of a fleet belongs to this scope.
    pub fn contains(&self, of_fleet: FleetId, stream: StreamId) -> bool {
        match self {
            Self::Run => true,
            Self::Fleet { id, .. } => *id == of_fleet,
            Self::Stream { id, .. } => *id == stream,
        }
    }

    /// The fleet whose links the scope has; none for all of them.
    pub const fn fleet(&self) -> Option<FleetId> {
        match self {
            Self::Run => None,
            Self::Fleet { id, .. } => Some(*id),
            Self::Stream { fleet, .. } => Some(*fleet),
        }
    }

    /// Returns whether the other scope is a part of this one.
    pub fn is_wider_than(&self, other: &Scope) -> bool {
        match (self, other) {
            (Self::Run, Self::Fleet { .. } | Self::Stream { .. }) => true,
            (Self::Fleet { id, .. }, Self::Stream { fleet, .. }) => id == fleet,
            (_, Self::Run | Self::Fleet { .. }) | (Self::Stream { .. }, Self::Stream { .. }) => {
                false
            }
        }
    }

    /// Returns whether a rule in `narrower` takes something out of the same rule in this scope. A
    /// stream has the links of its fleet, so that a rule about links in a stream narrows that of
    /// the run.
    pub(crate) fn is_narrowed_by(&self, narrower: &Scope, rule: RuleName) -> bool {
        let is_of_same_links = *self != Self::Run && rule.is_about_links();
        self.is_wider_than(narrower) && !is_of_same_links
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

/// Demand of an SLO.
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
    /// Links that the platform ended between their first use and the end of measuring; a ratio is
    /// of the connected.
    Disconnects(Allowance),
    /// Further copies of messages that we sent once, at any one backend, over the whole run; a ratio
    /// is of the arrived.
    Duplicates(Allowance),
    /// At least X of the messages take at most so long.
    Latency {
        /// The latency.
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
    /// The backlog does not grow (docs/semantics.md#stability).
    Stable,
}

impl SloBound {
    /// The rule's name, without the bound.
    pub const fn name(&self) -> RuleName {
        match self {
            Self::Loss(_) => RuleName::Loss,
            Self::FailureRatio(_) => RuleName::FailureRatio,
            Self::Connected(_) => RuleName::Connected,
            Self::Disconnects(_) => RuleName::Disconnects,
            Self::Duplicates(_) => RuleName::Duplicates,
            Self::Latency { of, percentile, .. } => RuleName::Latency {
                of: *of,
                percentile: Some(*percentile),
            },
            Self::NotReceived(_) => RuleName::NotReceived,
            Self::RepliesLost(_) => RuleName::RepliesLost,
            Self::ReceiveLoss(_) => RuleName::ReceiveLoss,
            Self::QueriesWithCommand(_) => RuleName::QueriesWithCommand,
            Self::Stable => RuleName::Stable,
        }
    }

    /// The rule's name, as in the scenario and the result: `loss`, `response p99`.
    pub fn rule(&self) -> String {
        self.name().to_string()
    }
}

/// A number of messages or links, or a share of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Allowance {
    /// At most this number.
    Count(u64),
    /// At most this share.
    Ratio(Share),
}

/// A length of time that a message takes (docs/semantics.md#instants).
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
    /// Returns whether it is of messages that are answered, wherever they go.
    pub const fn is_of_answers(self) -> bool {
        matches!(self, Self::Response | Self::Service | Self::Lateness)
    }

    /// The name used in scenarios and results.
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
    /// Trigger that is watched.
    pub trigger: StopTrigger,
    /// For how long it must hold without a break.
    pub lasting: Micros,
}

/// Trigger of a [`StopIf`], watched window by window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopTrigger {
    /// Of the messages that became final in the window, more than this share failed.
    FailureRatioAbove(Share),
    /// Less than this share of the wanted links is up.
    ConnectedBelow(Share),
    /// Of the messages due in the step, more than the percentile allows took longer than this, or had no
    /// answer.
    LatencyAbove {
        /// The latency: response or end-to-end.
        of: Latency,
        /// The percentile.
        percentile: Percentile,
        /// The bound.
        bound: Micros,
    },
}
