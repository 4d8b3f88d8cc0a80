//! The service levels of commands and of devices that subscribe.

use muster_judge::{Allowance, Latency, RulesBuilder, Scope, SloBound};
use muster_model::CommandTarget;

use super::{due_from, latency_slos, streams};
use crate::plan::{FleetPlan, StreamKind, StreamPlan};
use crate::units;
use crate::view::View;

/// How a bound on a count becomes one of the rules.
type Counted = fn(Allowance) -> SloBound;

/// The keys about percentiles.
const LEGS: [(&str, Latency, Needs); 3] = [
    ("command-request", Latency::CommandRequest, Needs::Queries),
    ("command-response", Latency::CommandResponse, Needs::Replies),
    ("command-loop", Latency::CommandLoop, Needs::Replies),
];
/// The keys about counts.
const COUNTS: [(&str, Counted, Needs); 3] = [
    (
        "commands-not-received",
        SloBound::NotReceived,
        Needs::Commands,
    ),
    ("replies-lost", SloBound::RepliesLost, Needs::Replies),
    ("receive-loss", SloBound::ReceiveLoss, Needs::Subscribers),
];
/// The key about a share.
const QUERIES: &str = "queries-with-command";
/// What a stream without messages of its own cannot be asked for.
const SLOS_OF_MESSAGES: [&str; 8] = [
    "loss",
    "failure-ratio",
    "connected",
    "disconnects",
    "response",
    "service",
    "end-to-end",
    "stable",
];

/// What a key is about, and so what its scope must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Queries,
    Commands,
    Replies,
    Subscribers,
}

/// Reads what an `slo` says of commands and subscribers.
pub(super) fn slos(
    mut builder: RulesBuilder,
    scope: &Scope,
    view: &View<'_>,
    fleets: &[FleetPlan],
) -> RulesBuilder {
    let covered = |needs: Needs| {
        let in_scope = streams(fleets).filter(|(fleet, of)| scope.contains(fleet.id, of.id));
        in_scope
            .filter(|(_, of)| needs.is_met_by(of))
            .map(|(_, of)| of)
            .collect::<Vec<_>>()
    };
    for (key, of, needs) in LEGS {
        let Some(percentiles) = view.get(key) else {
            continue;
        };
        let having = covered(needs);
        if is_possible(&percentiles, key, needs, &having) {
            let messages = messages(&having);
            builder = latency_slos(builder, scope, of, &percentiles, messages);
        }
    }
    if let Some(wanted) = view.read(QUERIES, units::share_at_least) {
        let place = view.get(QUERIES).unwrap_or_else(|| view.clone());
        if is_possible(&place, QUERIES, Needs::Queries, &covered(Needs::Queries)) {
            builder = builder.slo(scope.clone(), SloBound::QueriesWithCommand(wanted));
        }
    }
    for (key, bound, needs) in COUNTS {
        let Some(allowed) = view.read(key, units::count_at_most) else {
            continue;
        };
        let place = view.get(key).unwrap_or_else(|| view.clone());
        if is_possible(&place, key, needs, &covered(needs)) {
            builder = builder.slo(scope.clone(), bound(allowed));
        }
    }
    builder
}

/// Refuses what a stream without messages of its own cannot be asked for.
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

/// How many are due while measuring; as many as may be where they follow queries.
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
        | StreamKind::Receive => due_from(stream, stream.schedule.warm_up),
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
