//! The ledgers as they are written (docs/result.md; meaning: docs/semantics.md#states-and-sums).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{CommandLedger, Latencies, Rates, ReceiveLedger};

/// All ledgers of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Ledgers {
    /// Warm-up and measure: what the platform's own account must equal.
    pub uplink: UplinkLedger,
    /// The cohort due while measuring.
    pub measured: UplinkLedger,
    /// Commands; none where the scenario has none.
    pub command: Option<CommandLedger>,
    /// What devices got that subscribe to other devices' messages; none where none does.
    #[serde(default)]
    pub receive: Option<ReceiveLedger>,
    /// Each stream by `<fleet>/<stream>`.
    pub by_stream: BTreeMap<String, StreamAccount>,
    /// Each backend by its name.
    pub by_backend: BTreeMap<String, BackendAccount>,
}

/// Where the messages of the devices went.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UplinkLedger {
    /// Due by the declared rate; null for a run that was killed.
    pub nominal: Option<u64>,
    /// Due by the schedule as it ran; null for a run that was killed.
    pub scheduled: Option<u64>,
    /// Nominal less scheduled: what closed loops left out.
    pub omitted: Option<u64>,
    /// What counts as a failure of the platform: rejected, timed out, broken, in flight, and shed
    /// by a cause that is not the generator's.
    pub failed: u64,
    /// Never sent.
    pub shed: u64,
    /// Never sent, by cause.
    pub shed_by_cause: BTreeMap<String, u64>,
    /// Sent, counted at the socket.
    pub sent: u64,
    /// Further transmissions of the same message by the protocol.
    pub retransmitted: u64,
    /// Answers of CoAP in a message of their own.
    #[serde(default)]
    pub separate_responses: u64,
    /// Answers of CoAP, of either kind, that came again.
    #[serde(default)]
    pub duplicate_responses: u64,
    /// Further attempts of the same message by the application (`retry`).
    pub retried: u64,
    /// Accepted by the dialect's word.
    pub accepted: u64,
    /// Accepted although nobody had subscribed (MQTT 5 code 0x10).
    pub no_subscriber: u64,
    /// QoS 2 exchanges that came to their end.
    pub completed: u64,
    /// QoS 2 exchanges that the platform accepted and never completed.
    #[serde(default)]
    pub incomplete: u64,
    /// Refusals of messages whose answer nobody waited for; these are unacknowledged.
    #[serde(default)]
    pub refused_unawaited: u64,
    /// Acknowledged by the transport, where acceptance is the application's word.
    pub transport_acknowledged: u64,
    /// Refused.
    pub rejected: u64,
    /// Refused, by wire code.
    pub rejected_by_code: BTreeMap<String, u64>,
    /// No answer within the time-out.
    pub timed_out: u64,
    /// Answers that came after the time-out.
    pub answered_late: u64,
    /// Acknowledgements by the application of a message that it had acknowledged before.
    pub answered_again: u64,
    /// Acknowledgements by the application that name no message sent.
    pub answered_unknown: u64,
    /// Messages of acknowledgements that could not be read to their end.
    pub answered_malformed: u64,
    /// Commands that came to a link whose devices take none, or that named a device which it does not
    /// carry; what became of them is not kept.
    pub commands_received: u64,
    /// The link ended before the answer.
    pub broken: u64,
    /// The link ended before the answer, by cause.
    pub broken_by_cause: BTreeMap<String, u64>,
    /// Sent, and no answer exists by design.
    pub unacknowledged: u64,
    /// Open at the end of settling.
    pub in_flight: u64,
    /// The first backend's arrival figures.
    #[serde(flatten)]
    pub arrivals: Arrivals,
    /// Bytes of payload sent.
    pub bytes_payload: u64,
    /// Bytes written to sockets for the messages.
    pub bytes_wire: u64,
    /// Sum of the absolute differences of all equations: 0 if the ledger closes; null if it was
    /// never closed.
    pub residue: Option<u64>,
    /// The equations that do not hold.
    pub equations: Vec<Equation>,
}

/// An equation of docs/semantics.md#states-and-sums that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Equation {
    /// What is compared, and of which stream or backend.
    pub name: String,
    /// The left side's count.
    pub left: u64,
    /// The right side's count.
    pub right: u64,
    /// What it adds to the residue.
    pub difference: u64,
}

/// What a backend got; every figure is null without a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Arrivals {
    /// Every copy, counted before decoding.
    pub consumed: Option<u64>,
    /// First copies.
    pub arrived: Option<u64>,
    /// Accepted and absent.
    pub lost: Option<u64>,
    /// Unacknowledged and absent.
    pub lost_unacknowledged: Option<u64>,
    /// Absent, and perhaps still under way.
    pub outstanding: Option<u64>,
    /// Arrived after the stream's deadline; null without one.
    pub late: Option<u64>,
    /// Second copies of messages sent once.
    pub duplicates: Option<u64>,
    /// Second copies of messages sent more than once.
    pub duplicate_own: Option<u64>,
    /// Out of order (RFC 4737), within one session and partition.
    pub reordered: Option<u64>,
    /// Altered.
    pub corrupted: Option<u64>,
    /// Of another run.
    pub foreign: Option<u64>,
    /// Without a readable id.
    pub unstamped: Option<u64>,
    /// Arrived although refused.
    pub rejected_but_arrived: Option<u64>,
    /// Arrived although timed out.
    pub timed_out_but_arrived: Option<u64>,
    /// Arrived although the link broke.
    pub broken_but_arrived: Option<u64>,
}

/// One stream's ledger, rates and latencies.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StreamAccount {
    /// Warm-up and measure.
    pub ledger: UplinkLedger,
    /// The measured phase.
    pub rates: Rates,
    /// The measured cohort.
    pub latency: Latencies,
    /// The messages kept apart as cold; null where none are.
    pub latency_cold: Option<Latencies>,
    /// The measured cohort without them; null where none are kept apart.
    pub latency_warm: Option<Latencies>,
    /// Its commands or queries; null where it has none.
    #[serde(default)]
    pub command: Option<CommandLedger>,
    /// What its subscribers got; null where it has none.
    #[serde(default)]
    pub receive: Option<ReceiveLedger>,
    /// The most that a burst took from due to the last byte sent; null where it sends no bursts.
    #[serde(default)]
    pub burst_us: Option<u64>,
}

/// One backend's account of arrivals.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BackendAccount {
    /// Its place in the scenario, from 0; the ledgers above hold the arrival figures of 0.
    #[serde(default)]
    pub number: u32,
    /// Its arrival figures.
    #[serde(flatten)]
    pub arrivals: Arrivals,
    /// What the device side says (row) against what arrived (column).
    pub table: BTreeMap<String, StateRow>,
    /// First copies that more than one process took for the first: by so many the windows exceed
    /// the ledger; null for a run that was killed.
    #[serde(default)]
    pub split: Option<u64>,
    /// Which messages are lost.
    pub lost_ids: LostIds,
}

/// One row of a backend's table: where the messages of one state are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StateRow {
    /// Arrived.
    pub arrived: u64,
    /// Absent.
    pub absent: u64,
    /// Perhaps still under way.
    pub outstanding: u64,
}

/// Which messages are lost, as runs of sequence numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LostIds {
    /// First and last sequence of each run, by `<device>/<stream>`.
    #[serde(flatten)]
    pub ranges: BTreeMap<String, Vec<[u32; 2]>>,
    /// Whether there are more than are listed.
    pub truncated: bool,
}
