//! The one table of the metrics: name, form, unit, labels, meaning, and place in the result.

/// One metric.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name behind `muster.`: a group, a dot, and the rest.
    pub name: &'static str,
    /// Its form.
    pub kind: Kind,
    /// Its unit.
    pub unit: Unit,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// Its meaning in one line.
    pub help: &'static str,
    /// Its place in the result.
    pub place: Place,
}

/// Form of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A count that only grows.
    Counter,
    /// A value of one instant.
    Gauge,
    /// Quantiles, their number of values and their sum, from the begin of the measured phase on.
    Summary,
    /// Quantiles of the running second.
    Quantiles,
}

/// Unit of a metric: a base unit, or the thing that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Things of this name.
    Things(&'static str),
    /// Things of this name a second.
    PerSecond(&'static str),
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A share from 0 to 1.
    Ratio,
    /// 1, or absent.
    One,
    /// The unit that the label `unit` names.
    Named,
}

/// Place of a metric in `result.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// This key, whose last value is the one of the result. `{label}` stands for any key, whose name is
    /// the value of the label.
    Result(&'static str),
    /// This key, which is known only once the run has ended.
    AtEnd(&'static str),
    /// This key of one window: a figure of the running second.
    Window(&'static str),
    /// None: a figure of the moment.
    Nowhere,
}

/// Fleet and stream, as the rows of `ledger.by_stream` are named.
const OF_STREAM: &[&str] = &["fleet", "stream"];

macro_rules! metrics {
    ($($id:ident: $name:literal $kind:ident $unit:expr, $labels:expr, $place:expr, $help:literal;)+) => {
        $(
            #[doc = $help]
            pub(crate) static $id: Metric = Metric {
                name: $name,
                kind: Kind::$kind,
                unit: $unit,
                labels: $labels,
                help: $help,
                place: $place,
            };
        )+

        /// Every metric, in the order of its group.
        pub static TABLE: &[&Metric] = &[$(&$id),+];
    };
}

const MESSAGES: Unit = Unit::Things("message");
const COPIES: Unit = Unit::Things("copy");
const LINKS: Unit = Unit::Things("link");
const COMMANDS: Unit = Unit::Things("command");

metrics! {
    RUN_INFO: "run.info" Gauge Unit::One, &["run", "scenario", "target", "version", "part"], Place::Nowhere,
        "The run that these figures belong to.";
    RUN_PHASE: "run.phase" Gauge Unit::One, &["phase"], Place::Nowhere,
        "Phase of the run: connect, warm-up, measure, settle or finish.";
    RUN_ELAPSED: "run.elapsed" Gauge Unit::Seconds, &[], Place::Nowhere,
        "Time since the connect phase began.";
    RUN_FINISHED: "run.finished" Gauge Unit::One, &[], Place::Nowhere,
        "Present once the values are those of result.json.";
    RUN_VERDICT: "run.verdict" Gauge Unit::One, &["result"], Place::AtEnd("verdict.result"),
        "Result of the run: pass, fail, invalid or none.";
    RUN_RESIDUE: "run.residue" Gauge MESSAGES, &[], Place::AtEnd("ledger.uplink.residue"),
        "Sum of the differences of all equations of the ledger.";
    RUN_FAILING_SLOS: "run.failing_slos" Gauge Unit::Things("rule"), &[], Place::Nowhere,
        "SLOs that do not hold so far, without those that only the end decides.";

    SCHEDULED: "messages.scheduled" Counter MESSAGES, OF_STREAM,
        Place::AtEnd("ledger.by_stream.{fleet}/{stream}.ledger.scheduled"), "Messages that came due.";
    SENT: "messages.sent" Counter MESSAGES, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.ledger.sent"), "Messages sent.";
    ENDED: "messages.ended" Counter MESSAGES, &["fleet", "stream", "state"],
        Place::Result("ledger.by_stream.{fleet}/{stream}.ledger.{state=accepted|rejected|timed_out|broken|unacknowledged|in_flight|shed}"),
        "Messages by their final state.";
    FAILED: "messages.failed" Counter MESSAGES, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.ledger.failed"),
        "Messages that count as failed in the rule failure-ratio.";
    REJECTED: "messages.rejected" Counter MESSAGES, &["fleet", "stream", "code"],
        Place::Result("ledger.by_stream.{fleet}/{stream}.ledger.rejected_by_code.{code}"),
        "Messages that the platform refused, by its code.";
    BROKEN: "messages.broken" Counter MESSAGES, &["fleet", "stream", "cause"],
        Place::Result("ledger.by_stream.{fleet}/{stream}.ledger.broken_by_cause.{cause}"),
        "Messages whose link ended before the answer, by cause.";
    SHED: "messages.shed" Counter MESSAGES, &["fleet", "stream", "cause"],
        Place::Result("ledger.by_stream.{fleet}/{stream}.ledger.shed_by_cause.{cause}"),
        "Messages that were due and never sent, by cause.";
    RETRANSMITTED: "messages.retransmitted" Counter MESSAGES, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.ledger.retransmitted"),
        "Further transmissions by the protocol.";
    RETRIED: "messages.retried" Counter MESSAGES, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.ledger.retried"),
        "Further attempts by the application.";
    PAYLOAD: "messages.payload" Counter Unit::Bytes, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.ledger.bytes_payload"),
        "Bytes of payload handed to the socket.";
    WIRE: "messages.wire" Counter Unit::Bytes, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.ledger.bytes_wire"),
        "Bytes of the protocol for the messages, without TLS and WebSocket.";

    CONSUMED: "copies.consumed" Counter COPIES, &["backend"],
        Place::Result("ledger.by_backend.{backend}.consumed"), "Every copy that the backend received.";
    ARRIVED: "copies.arrived" Counter COPIES, &["backend"],
        Place::Result("ledger.by_backend.{backend}.arrived"), "First copies of messages.";
    FOREIGN: "copies.foreign" Counter COPIES, &["backend"],
        Place::Result("ledger.by_backend.{backend}.foreign"), "Copies that name no message of this run.";
    UNSTAMPED: "copies.unstamped" Counter COPIES, &["backend"],
        Place::Result("ledger.by_backend.{backend}.unstamped"), "Copies without a readable id.";
    CORRUPTED: "copies.corrupted" Counter COPIES, &["backend"],
        Place::Result("ledger.by_backend.{backend}.corrupted"), "Altered copies.";
    NOT_ARRIVED: "copies.not_arrived" Gauge MESSAGES, &[], Place::Nowhere,
        "Messages that were accepted and have not arrived: lost ones, and those on their way.";
    LOST: "copies.lost" Gauge MESSAGES, &["backend"],
        Place::AtEnd("ledger.by_backend.{backend}.lost"), "Messages accepted and absent.";
    LOST_UNACKNOWLEDGED: "copies.lost_unacknowledged" Gauge MESSAGES, &["backend"],
        Place::AtEnd("ledger.by_backend.{backend}.lost_unacknowledged"),
        "Messages without an answer by design, and absent.";
    OUTSTANDING: "copies.outstanding" Gauge MESSAGES, &["backend"],
        Place::AtEnd("ledger.by_backend.{backend}.outstanding"), "Messages that may still arrive.";
    DUPLICATES: "copies.duplicates" Gauge COPIES, &["backend"],
        Place::AtEnd("ledger.by_backend.{backend}.duplicates"),
        "Further copies of messages that were sent once.";
    LATE: "copies.late" Gauge COPIES, &["backend"],
        Place::AtEnd("ledger.by_backend.{backend}.late"), "First copies beyond the stream's deadline.";
    REORDERED: "copies.reordered" Gauge COPIES, &["backend"],
        Place::AtEnd("ledger.by_backend.{backend}.reordered"),
        "Copies overtaken by a later message of their stream.";

    QUERIES: "commands.queries" Counter Unit::Things("query"), &["fleet", "stream", "end"],
        Place::Result("ledger.by_stream.{fleet}/{stream}.command.{end=received_by_query|no_command|query_rejected|query_timed_out|query_broken|query_in_flight}"),
        "Queries of devices by their end.";
    DELIVERIES: "commands.deliveries" Counter COMMANDS, &["fleet", "stream", "delivery"],
        Place::Result("ledger.by_stream.{fleet}/{stream}.command.{delivery=delivered|expired|undeliverable|unknown|withheld}"),
        "Commands by the platform's word on them; withheld ones were never issued.";
    RECEIVED: "commands.received" Counter COMMANDS, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.command.received"), "First copies of commands at devices.";
    ANSWERS: "commands.answers" Counter COMMANDS, &["fleet", "stream", "end"],
        Place::Result("ledger.by_stream.{fleet}/{stream}.command.{end=answered|one_way|answer_rejected|answer_timed_out|answer_broken|answer_in_flight|answer_shed}"),
        "Received commands by the end of their reply.";
    REPLIES: "commands.replies" Counter Unit::Things("reply"), &["fleet", "stream", "status"],
        Place::Result("ledger.by_stream.{fleet}/{stream}.command.replies_by_status.{status}"),
        "First copies of replies at the backend, by the status in them.";
    NOT_RECEIVED: "commands.not_received" Gauge COMMANDS, OF_STREAM,
        Place::AtEnd("ledger.by_stream.{fleet}/{stream}.command.delivered_not_received"),
        "Commands delivered according to the platform, and not received.";
    REPLIES_ARRIVED: "commands.replies_arrived" Gauge Unit::Things("reply"), OF_STREAM,
        Place::AtEnd("ledger.by_stream.{fleet}/{stream}.command.replies_arrived"),
        "Replies that the platform took and that arrived at the backend.";
    REPLIES_LOST: "commands.replies_lost" Gauge Unit::Things("reply"), OF_STREAM,
        Place::AtEnd("ledger.by_stream.{fleet}/{stream}.command.replies_lost"),
        "Replies that the platform took and that are lost.";

    TAKEN_IN: "receive.arrived" Counter COPIES, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.receive.arrived"),
        "First copies at subscribing devices, each by itself.";
    FOREIGN_TO_DEVICES: "receive.foreign" Counter COPIES, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.receive.foreign"),
        "Copies at subscribing devices that name no message of this run.";
    CORRUPTED_AT_DEVICES: "receive.corrupted" Counter COPIES, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.receive.corrupted"),
        "Altered copies at subscribing devices.";
    LOST_TO_DEVICES: "receive.lost" Gauge COPIES, OF_STREAM,
        Place::AtEnd("ledger.by_stream.{fleet}/{stream}.receive.lost"),
        "Messages that subscribing devices should have received, and are lost.";
    TWICE_AT_DEVICES: "receive.duplicates" Gauge COPIES, OF_STREAM,
        Place::AtEnd("ledger.by_stream.{fleet}/{stream}.receive.duplicates"),
        "Further copies at subscribing devices of messages that were sent once.";

    LINKS_WANTED: "links.wanted" Gauge LINKS, &[], Place::Result("links.wanted"), "Links that the plan wants.";
    LINKS_UP: "links.up" Gauge LINKS, &[], Place::Result("links.open_at_end"), "Usable links.";
    LINKS_OPENED: "links.opened" Counter Unit::Things("try"), &[], Place::Result("links.opened"),
        "Tries to connect.";
    LINKS_CONNECTED: "links.connected" Counter LINKS, &[], Place::Result("links.connected"),
        "Tries that ended with a usable link.";
    LINKS_FAILED: "links.failed" Counter Unit::Things("try"), &["cause"],
        Place::Result("links.connect_failures.{cause}"), "Tries that ended without a link, by cause.";
    LINKS_ENDED: "links.ended" Counter LINKS, &["cause"], Place::Result("links.disconnects.{cause}"),
        "Usable links that ended, by cause.";

    RESPONSE: "latency.response" Summary Unit::Seconds, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.latency.response"),
        "Due to answer, of the answered messages of the measured phase.";
    END_TO_END: "latency.end_to_end" Summary Unit::Seconds, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.latency.end_to_end"),
        "Due to arrival at the first backend, of the measured phase.";
    LATENESS: "latency.lateness" Summary Unit::Seconds, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.latency.lateness"),
        "Due to taken, of the measured phase: the generator's own delay.";
    CONNECT: "latency.connect" Summary Unit::Seconds, &[], Place::Result("latency.connect"),
        "Begin of a connection to a usable link.";

    COMMAND_REQUEST: "latency.command_request" Summary Unit::Seconds, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.latency.command_request"),
        "Due of a query to its answer, of the measured phase.";
    COMMAND_RESPONSE: "latency.command_response" Summary Unit::Seconds, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.latency.command_response"),
        "Due of a reply to its answer, of the measured phase.";
    COMMAND_LOOP: "latency.command_loop" Summary Unit::Seconds, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.latency.command_loop"),
        "Issue of a command to the arrival of its reply, of the measured phase.";
    RECEPTION: "latency.receive" Summary Unit::Seconds, OF_STREAM,
        Place::Result("ledger.by_stream.{fleet}/{stream}.receive.end_to_end"),
        "Due to arrival at a subscribing device, of the measured phase.";

    OFFERED: "rates.offered" Gauge Unit::PerSecond("message"), &[], Place::Window("offered"),
        "Messages due in the last full second.";
    ISSUED: "rates.issued" Gauge Unit::PerSecond("message"), &[], Place::Window("issued"),
        "Messages sent in the last full second.";
    COMPLETED: "rates.completed" Gauge Unit::PerSecond("message"), &[], Place::Window("completed"),
        "Messages that ended with an answer in the last full second.";
    ARRIVING: "rates.arrived" Gauge Unit::PerSecond("message"), &[], Place::Window("arrived"),
        "First copies at the first backend in the last full second.";
    RECENT_RESPONSE: "recent.response" Quantiles Unit::Seconds, &[], Place::Window("response"),
        "Due to answer, of the last full second; the unanswered count with their age.";
    RECENT_END_TO_END: "recent.end_to_end" Quantiles Unit::Seconds, &[], Place::Window("end_to_end"),
        "Due to arrival at the first backend, of the last full second.";
    BACKLOG: "recent.backlog" Gauge Unit::Seconds, &[], Place::Nowhere,
        "Messages due and not final, in seconds of offered traffic.";
    DELIVERY_BACKLOG: "recent.delivery_backlog" Gauge Unit::Seconds, &[], Place::Nowhere,
        "Messages not arrived, in seconds of offered traffic.";

    SHARD_CPU: "generator.shard_cpu" Gauge Unit::Ratio, &[], Place::Window("generator.shard_cpu"),
        "Share of a CPU that the busiest device shard uses.";
    CONSUMER_CPU: "generator.consumer_cpu" Gauge Unit::Ratio, &[], Place::Window("generator.consumer_cpu"),
        "Share of a CPU that the busiest consumer thread uses.";
    CPU_WAIT: "generator.cpu_wait" Gauge Unit::Ratio, &[], Place::Window("generator.cpu_wait"),
        "Share of the time that the worst thread waits for a CPU.";
    OWN_LATENESS: "generator.lateness" Quantiles Unit::Seconds, &[], Place::Window("lateness"),
        "Lateness of the last full second.";
    RSS: "generator.resident_memory" Gauge Unit::Bytes, &[], Place::Nowhere,
        "Resident set of all processes of the generator.";
    FAULTS: "generator.faults" Gauge Unit::Things("rule"), &[], Place::Nowhere,
        "Validity rules that do not hold so far: the run would be invalid.";
    STRAINS: "generator.warnings" Gauge Unit::Things("rule"), &[], Place::Nowhere,
        "Rules on the generator that the last second alone breaks.";

    TARGET_USE: "target.use" Gauge Unit::Named, &["name", "resource", "unit"], Place::Nowhere,
        "Last sample of a resource of the target, by the entry of `monitor`.";
}

impl Metric {
    /// True if its values are whole numbers.
    pub const fn is_whole(&self) -> bool {
        matches!(self.kind, Kind::Counter)
            || matches!(self.unit, Unit::Things(_) | Unit::One | Unit::Bytes)
    }

    /// True if its value belongs to one second of the run rather than to an instant.
    pub const fn is_of_second(&self) -> bool {
        matches!(self.place, Place::Window(_))
    }

    /// Values that the place admits for a label, in the order of the counts in windows.
    pub(crate) fn admitted(&self) -> impl Iterator<Item = &'static str> {
        let (Place::Result(path) | Place::AtEnd(path) | Place::Window(path)) = self.place else {
            return "".split('|');
        };
        let admitted = path.split_once('=').map_or("", |(_, admitted)| admitted);
        admitted.trim_end_matches('}').split('|')
    }

    /// The group: the first part of its name.
    pub fn group(&self) -> &'static str {
        self.name
            .split_once('.')
            .map_or(self.name, |(group, _)| group)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_name_stands_once_and_has_a_group() {
        let names: BTreeSet<&str> = TABLE.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), TABLE.len());
        for metric in TABLE {
            let plain = |c: char| c.is_ascii_lowercase() || c == '_' || c == '.';
            assert!(metric.name.chars().all(plain), "{}", metric.name);
            assert_eq!(metric.name.matches('.').count(), 1, "{}", metric.name);
            assert!(metric.help.ends_with('.'), "{}", metric.name);
        }
    }

    #[test]
    fn each_label_stands_in_the_place() {
        for metric in TABLE {
            let (Place::Result(path) | Place::AtEnd(path)) = metric.place else {
                continue;
            };
            // The verdict is a text, which is the value of its label.
            let named = metric.labels.iter().filter(|label| **label != "result");
            for label in named {
                let is_in = [format!("{{{label}}}"), format!("{{{label}=")];
                assert!(
                    is_in.iter().any(|label| path.contains(label)),
                    "{path}: {label}"
                );
            }
        }
    }
}
