//! The service levels of commands and of devices that subscribe.

use muster_judge::{Allowance, Latency, RuleName, RulesBuilder, SloBound};
use muster_model::CommandTarget;
use muster_plan::{StreamKind, StreamPlan};

use super::{Place, has_bound, streams};
use crate::build::expected::due_from;
use crate::units::{self, Demand};
use crate::view::View;

/// Function that turns a bound on a count into one of the rules.
pub(super) type Counted = fn(Allowance) -> SloBound;

const LEGS: [(&str, Latency, Needs); 3] = [
    ("command-request", Latency::CommandRequest, Needs::Queries),
    ("command-response", Latency::CommandResponse, Needs::Replies),
    ("command-loop", Latency::CommandLoop, Needs::Replies),
];
const COUNTS: [(&str, Counted, Needs); 3] = [
    (
        "commands-not-received",
        SloBound::NotReceived,
        Needs::Commands,
    ),
    ("replies-lost", SloBound::RepliesLost, Needs::Replies),
    ("receive-loss", SloBound::ReceiveLoss, Needs::Subscribers),
];
const QUERIES: &str = "queries-with-command";
/// Keys that a stream without uplinks cannot have.
const SLOS_OF_MESSAGES: [&str; 9] = [
    "loss",
    "duplicates",
    "failure-ratio",
    "connected",
    "disconnects",
    "response",
    "service",
    "end-to-end",
    "stable",
];

/// Streams that a key needs in its scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Queries,
    Commands,
    Replies,
    Subscribers,
}

/// Reads what an `slo` says of commands and subscribers.
pub(super) fn slos(mut builder: RulesBuilder, place: &Place<'_, '_>) -> RulesBuilder {
    let (scope, view) = (place.scope, place.view);
    let covered = |needs: Needs| {
        let all = streams(place.judged.fleets);
        let in_scope = all.filter(|(fleet, of)| scope.contains(fleet.id, of.id));
        in_scope
            .filter(|(_, of)| needs.is_met_by(of))
            .map(|(_, of)| of)
            .collect::<Vec<_>>()
    };
    let can_be = |key: &str, needs: Needs| {
        let found = view.get(key).unwrap_or_else(|| view.clone());
        is_possible(&found, key, needs, &covered(needs))
    };
    for (key, of, needs) in LEGS {
        let Some(percentiles) = view.get(key) else {
            continue;
        };
        if !has_bound(&percentiles) || can_be(key, needs) {
            let messages = messages(&covered(needs));
            builder = place.latency_slos(builder, of, (&percentiles, messages));
        }
    }
    let wanted = view.demand(QUERIES, units::share_at_least);
    if !is_bound(&wanted) || can_be(QUERIES, Needs::Queries) {
        let rule = RuleName::QueriesWithCommand;
        builder = place.add(builder, rule, wanted, SloBound::QueriesWithCommand);
    }
    for (key, bound, needs) in COUNTS {
        let allowed = view.demand(key, units::count_at_most);
        if !is_bound(&allowed) || can_be(key, needs) {
            let rule = bound(Allowance::Count(0)).name();
            builder = place.add(builder, rule, allowed, bound);
        }
    }
    builder
}

fn is_bound<T>(demand: &Option<Demand<T>>) -> bool {
    matches!(demand, Some(Demand::Bound(_)))
}

/// Refuses these keys.
pub(super) fn only(view: &View<'_>) {
    for key in SLOS_OF_MESSAGES {
        if let Some(stray) = view.get(key) {
            let what = format!("`{key}` is about messages that devices send");
            let help = "put it into another stream; for commands there are `command-response`, \
                        `command-loop`, `commands-not-received` and `replies-lost`, for \
                        subscribers `receive-loss`";
            stray.wrong(what, help);
        }
    }
}

fn is_possible(view: &View<'_>, key: &str, needs: Needs, having: &[&StreamPlan]) -> bool {
    if having.is_empty() {
        let what = format!(
            "`{key}` can never be evaluated here: there is no {}",
            needs.what()
        );
        view.wrong(what, "add one, or put the SLO where there is one");
    }
    !having.is_empty()
}

/// Number of messages due while measuring; as many as may be where they follow queries.
fn messages(having: &[&StreamPlan]) -> u64 {
    let due = having.iter().map(|stream| match stream.kind {
        StreamKind::Command {
            to: CommandTarget::Waiting,
            ..
        } => u64::MAX,
        StreamKind::Command { .. }
        | StreamKind::CommandQuery { .. }
        | StreamKind::Telemetry
        | StreamKind::Event
        | StreamKind::Receive
        | StreamKind::Connect => due_from(stream, stream.schedule.warm_up),
    });
    due.fold(0, u64::saturating_add)
}

impl Needs {
    fn is_met_by(self, stream: &StreamPlan) -> bool {
        match self {
            Self::Queries => matches!(stream.kind, StreamKind::CommandQuery { .. }),
            Self::Commands => matches!(stream.kind, StreamKind::Command { .. }),
            Self::Replies => matches!(
                stream.kind,
                StreamKind::Command {
                    is_two_way: true,
                    ..
                }
            ),
            Self::Subscribers => stream.kind == StreamKind::Receive,
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Queries => "stream of kind command-query",
            Self::Commands => "stream of kind command",
            Self::Replies => "stream of kind command that replies (`commands: { mode: two-way }`)",
            Self::Subscribers => "stream of kind receive",
        }
    }
}
