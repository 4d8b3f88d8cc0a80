//! The figures of the published test of Eclipse Hono, from slots and ledgers.

use std::collections::BTreeMap;

use muster_measure::{CommandLedger, Ledger, LinkLedger, SlotTimes, Summary};
use muster_plan::{FleetPlan, Plan, StreamKind};
use muster_platform::Protocol;
use muster_report::{HonoClasses, HonoFigures, SlotFigures};

/// The published name of what ended without an answer.
const UNKNOWN: &str = "unknownCoapError";
/// The published name of an answer to a query without a command.
const MISSING: &str = "missingCommand";
/// The cause of connects that failed by the generator's own limits.
const OWN: &str = "generator-limit";

/// The classes of the published test.
#[derive(Clone, Copy)]
enum Class {
    Telemetry,
    Event,
    Request,
    Response,
}

/// One class over all its streams.
#[derive(Default)]
struct ClassCounts {
    sent: u64,
    not_issued: u64,
    errors: BTreeMap<String, u64>,
    times: SlotTimes,
}

/// The figures of the devices that speak CoAP, as the published test's do; over a whole run.
pub(super) fn figures(plan: &Plan, slots: &[SlotTimes], summary: &Summary) -> HonoFigures {
    let classes = [
        Class::Telemetry,
        Class::Event,
        Class::Request,
        Class::Response,
    ];
    let all = classes.map(|class| class_counts(plan, slots, summary, class));
    let by_class = |count: fn(&ClassCounts) -> u64| {
        let [telemetry, event, command_request, command_response] = all.each_ref().map(count);
        HonoClasses {
            telemetry,
            event,
            command_request,
            command_response,
        }
    };
    let in_flight_at_stop = by_class(ClassCounts::in_flight);
    let not_issued = by_class(|of| of.not_issued);
    let [telemetry, event, request, response] = all;
    HonoFigures {
        r#type: "device-simulator".to_owned(),
        published_telemetry_count: telemetry.sent,
        published_events_count: event.sent,
        published_command_queries: request.sent,
        received_commands: request.times.count(),
        answered_commands_count: response.times.count(),
        coap_rtt_send_telemetry: times(&telemetry.times),
        coap_rtt_send_event: times(&event.times),
        coap_rtt_send_command_request: times(&request.times),
        coap_rtt_send_command_response: times(&response.times),
        coap_errors_send_telemetry: telemetry.errors,
        coap_errors_send_event: event.errors,
        coap_errors_send_command_request: request.errors,
        coap_errors_send_command_response: response.errors,
        runtime_in_minutes: minutes(plan),
        in_flight_at_stop,
        not_issued,
        ..connects(plan, summary)
    }
}

/// True if the devices of a fleet are such as the published test has.
pub(super) fn speaks_coap(fleet: &FleetPlan) -> bool {
    fleet.client.protocol() == Protocol::Coap
}

fn connects(plan: &Plan, summary: &Summary) -> HonoFigures {
    let sum = |count: fn(&LinkLedger) -> u64| -> u64 {
        let fleets = plan.fleets.iter().filter(|fleet| speaks_coap(fleet));
        fleets
            .map(|fleet| count(&summary.fleets[fleet.id.index()].links))
            .sum()
    };
    let own = sum(|links| links.connect_failures.get(OWN).copied().unwrap_or_default());
    HonoFigures {
        num_client_successful_connects: sum(|links| links.connected),
        num_client_disconnects: sum(|links| links.disconnects.values().sum()),
        num_client_connect_failure_clients: sum(|links| links.connect_failures.values().sum())
            - own,
        num_client_exception_while_opening: own,
        ..HonoFigures::default()
    }
}

fn minutes(plan: &Plan) -> u64 {
    let planned = plan.phases.warm_up + plan.phases.measure;
    (planned.as_secs_f64() / 60.0).round() as u64
}

fn class_counts(plan: &Plan, slots: &[SlotTimes], summary: &Summary, class: Class) -> ClassCounts {
    let mut counts = ClassCounts::default();
    let streams = plan.streams().filter(|(fleet, _)| speaks_coap(fleet));
    for (_, stream) in streams {
        let at = stream.id.index();
        let scope = &summary.streams[at];
        let command = scope.command.as_ref().map(|command| &command.ledger);
        match (class, stream.kind) {
            (Class::Telemetry, StreamKind::Telemetry) | (Class::Event, StreamKind::Event) => {
                counts.messages(&scope.uplink);
            }
            (Class::Request, StreamKind::CommandQuery { .. }) => {
                counts.not_issued += scope.uplink.shed;
                command
                    .into_iter()
                    .for_each(|ledger| counts.queries(ledger));
            }
            (Class::Response, StreamKind::Command { .. }) => {
                command
                    .into_iter()
                    .for_each(|ledger| counts.replies(ledger));
            }
            (
                Class::Telemetry | Class::Event | Class::Request | Class::Response,
                StreamKind::Telemetry
                | StreamKind::Event
                | StreamKind::CommandQuery { .. }
                | StreamKind::Command { .. }
                | StreamKind::Receive
                | StreamKind::Connect,
            ) => continue,
        }
        if let Some(slots) = slots.get(at) {
            counts.times.merge(slots);
        }
    }
    counts
}

impl ClassCounts {
    fn messages(&mut self, ledger: &Ledger) {
        self.sent += ledger.sent;
        self.not_issued += ledger.shed;
        self.failed(&ledger.rejected_by_code);
        self.fail(UNKNOWN, ledger.timed_out + ledger.broken);
    }

    fn queries(&mut self, ledger: &CommandLedger) {
        self.sent += ledger.queries;
        self.failed(&ledger.query_rejected_by_code);
        self.fail(MISSING, ledger.no_command);
        self.fail(UNKNOWN, ledger.query_timed_out + ledger.query_broken);
    }

    fn replies(&mut self, ledger: &CommandLedger) {
        let refused = ledger.answer_rejected;
        let silent = ledger.answer_timed_out + ledger.answer_broken;
        self.sent += ledger.answered + refused + silent + ledger.answer_in_flight;
        self.not_issued += ledger.answer_shed;
        self.failed(&ledger.answer_rejected_by_code);
        self.fail(UNKNOWN, silent);
    }

    fn failed(&mut self, by_code: &BTreeMap<String, u64>) {
        for (code, times) in by_code {
            self.fail(code, *times);
        }
    }

    /// The published form names only what befell.
    fn fail(&mut self, how: &str, times: u64) {
        if times > 0 {
            *self.errors.entry(how.to_owned()).or_default() += times;
        }
    }

    fn in_flight(&self) -> u64 {
        let ended = self.times.count() + self.errors.values().sum::<u64>();
        self.sent.saturating_sub(ended)
    }
}

fn times(of: &SlotTimes) -> SlotFigures {
    let text = |ms: Option<u64>| ms.map(|ms| format!("{ms} ms"));
    SlotFigures {
        all: of.count(),
        avg: text(of.mean_ms()),
        p95: text(of.percentile_ms(950)),
        p99: text(of.percentile_ms(990)),
        p99_9: text(of.percentile_ms(999)),
        max: text(of.max_ms()),
    }
}
