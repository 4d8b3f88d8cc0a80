//! Input of judge and report: ledgers, rates, latencies, exact counters and series per scope.

use muster_model::{BackendId, FleetId, Listening, Micros, StreamId};
use serde::{Deserialize, Serialize};

use crate::merge::merge_fields;
use crate::{
    AtLeast, BackendLedger, Bounded, CommandSummary, Distribution, Flow, Latency, Ledger,
    LinkLedger, Outcomes, Phase, ReceptionSummary, TimeSums, Timeline,
};

/// A whole run in figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Beginnings of the phases.
    pub timeline: Timeline,
    /// Instant at which settling ended.
    pub end: Micros,
    /// Listening of the consumers until then.
    pub listening: Listening,
    /// True if senders and consumers read one clock; else no end-to-end time is known.
    pub has_one_clock: bool,
    /// Length of the measured phase, in seconds.
    pub measured_s: f64,
    /// All streams together.
    pub run: ScopeSummary,
    /// Each fleet; the index is the `FleetId`.
    pub fleets: Vec<ScopeSummary>,
    /// Each stream; the index is the `StreamId`.
    pub streams: Vec<ScopeSummary>,
    /// The sets of streams that the recorder's plan names.
    pub groups: Vec<GroupSummary>,
    /// Each backend's account; the index is the `BackendId`.
    pub backends: Vec<BackendLedger>,
    /// Sum of all residues, of the links' too; null where it cannot be known.
    pub residue: Option<u64>,
}

/// Subject of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scope {
    /// All streams.
    Run,
    /// The streams of one fleet.
    Fleet(FleetId),
    /// One stream.
    Stream(StreamId),
    /// One of the sets of streams that the recorder's plan names.
    Group,
}

/// A set of streams in figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// The streams, ascending.
    pub streams: Vec<StreamId>,
    /// Their figures; those of links are of all fleets.
    pub scope: ScopeSummary,
}

/// One scope in figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScopeSummary {
    /// Streams in the summary.
    pub scope: Scope,
    /// Warm-up and measured phase.
    pub uplink: Ledger,
    /// The cohort due while measuring.
    pub measured: Ledger,
    /// The four rates, and `accepted`.
    pub rates: Rates,
    /// The times of all messages of the measured cohort.
    pub times: TimeSums,
    /// Latencies of the measured cohort.
    pub latency: LatencyTable,
    /// Latencies of the cold messages, those due in the warm-up among them; none if nothing is
    /// kept apart. It has no `connect`, which is of links.
    pub cold: Option<LatencyTable>,
    /// Latencies of the measured cohort without the cold messages, without `connect` too; none if
    /// nothing is kept apart.
    pub warm: Option<LatencyTable>,
    /// Copies that may be of another message than the one whose due they were recorded with, where
    /// messages differ by their order alone; then no end-to-end time of the scope is known.
    pub unsure_by_order: u64,
    /// Exact counters of the measured cohort for every bound registered on all streams of the
    /// scope that have the latency.
    pub above: Vec<Above>,
    /// Counters by second that decide a rule on end-to-end times again without some seconds: for
    /// every bound registered on all streams of the scope, and every backend.
    pub delivery: Vec<DeliverySeconds>,
    /// Events second by second, in order.
    pub series: Vec<SecondRow>,
    /// The links of the fleet, of the stream's fleet, or of all.
    pub links: LinkLedger,
    /// Commands, with their latencies; none where the scope has neither queries nor commands.
    pub command: Option<CommandSummary>,
    /// Receptions of subscribers among the devices; none where the scope has none.
    pub reception: Option<ReceptionSummary>,
}

/// Events whose own instant lies in the measured phase, per second.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Rates {
    /// Due, by the nominal schedule; null for a run that was killed.
    pub offered: Option<f64>,
    /// Sent.
    pub issued: Option<f64>,
    /// Ended with an answer.
    pub completed: Option<f64>,
    /// Accepted.
    pub accepted: Option<f64>,
    /// First copies at the first backend; null without one.
    pub arrived: Option<f64>,
}

/// The distribution of one latency of one cohort.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LatencyFigures {
    /// Answered messages; for end-to-end the arrived.
    pub count: u64,
    /// Unanswered messages; they count in `all_due` at their lower bound.
    pub censored: u64,
    /// Mean of the answered, in microseconds.
    pub mean_us: Option<u64>,
    /// Percentiles of the answered.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// Values not below the histogram's top, one hour.
    pub above_top: u64,
    /// Largest value of the answered, in microseconds.
    pub max_us: Option<u64>,
    /// Percentiles of all due; null if nothing can be censored.
    pub all_due: Option<Percentiles>,
    /// Percentiles of the answered without the generator's own delay; null for legs with one time.
    pub lower: Option<Percentiles>,
}

/// Percentiles in microseconds, null if there are too few values
/// (docs/semantics.md#when-a-percentile-is-printed). Each is the upper edge of a histogram cell, at most
/// 0.1 % above the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// Median, from 20 values on.
    pub p50_us: Option<u64>,
    /// 90 %, from 100 values on.
    pub p90_us: Option<u64>,
    /// 95 %, from 200 values on.
    pub p95_us: Option<u64>,
    /// 99 %, from 1,000 values on.
    pub p99_us: Option<u64>,
    /// 99.9 %, from 10,000 values on.
    pub p99_9_us: Option<u64>,
    /// Names of percentiles that are lower bounds; absent if all are exact.
    #[serde(default, skip_serializing_if = "AtLeast::is_none")]
    pub at_least: AtLeast,
}

/// All latencies of one cohort; null where the latency does not exist by design.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LatencyTable {
    /// `ended - due`.
    pub response: Option<LatencyView>,
    /// `ended - due - own` of the same messages: their lower times, the unanswered in full.
    pub response_lower: Option<LatencyView>,
    /// `ended - sent`.
    pub service: Option<LatencyView>,
    /// `taken - due`.
    pub lateness: Option<LatencyView>,
    /// `sent - taken`.
    pub held: Option<LatencyView>,
    /// `seen - due`, at the first backend.
    pub end_to_end: Option<LatencyView>,
    /// From the first SYN to a usable link, over the whole run; none of cold and warm messages.
    pub connect: Option<LatencyView>,
}

/// A latency in figures, with the distributions they were read from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LatencyView {
    /// The figures to print.
    pub figures: LatencyFigures,
    /// The known times.
    pub known: Distribution,
    /// The lower bounds of the others.
    pub censored: Distribution,
}

/// The exact counters that decide a rule `pX <= bound`.
///
/// The rule holds iff `above + missing <= (1 - X) * n`, with no rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Above {
    /// The latency.
    pub latency: Latency,
    /// At which backend, for end-to-end.
    pub backend: Option<BackendId>,
    /// The bound.
    pub bound: Micros,
    /// Messages known to be above it.
    pub above: u64,
    /// Messages whose lower time is above it; equals `above` for latencies without two times.
    pub above_lower: u64,
    /// Messages without a time that count as above. Response: shed, timed out, broken, in
    /// flight. Service: the same without shed. End-to-end: neither arrived nor rejected, and
    /// arrived without a due instant. Lateness and held: none.
    pub missing: u64,
    /// The number of messages. Response: scheduled. Service and held: sent. Lateness: taken.
    /// End-to-end: scheduled without those rejected and not arrived.
    pub n: u64,
}

/// The counters of [`Above`] for one end-to-end bound at one backend, second by second of due.
///
/// Over all seconds they sum to that `Above`, unless a border of phases cuts a second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliverySeconds {
    /// At which backend.
    pub backend: BackendId,
    /// The bound.
    pub bound: Micros,
    /// The seconds of the measured phase in which a message was due, in order.
    pub seconds: Vec<DeliverySecond>,
}

/// The messages due in one second at one backend, against one bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeliverySecond {
    /// The second since T0.
    pub second: u32,
    /// Largest lateness of those due in it.
    pub lateness_max_us: u64,
    /// Messages known to be above the bound.
    pub above: u64,
    /// Messages above it by their lower time.
    pub above_lower: u64,
    /// Messages without a time that count as above.
    pub missing: u64,
    /// The number of messages: scheduled without those rejected and not arrived.
    pub n: u64,
}

/// One second of one scope, cut at the borders of the phases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondRow {
    /// The second since T0.
    pub second: u32,
    /// The phase.
    pub phase: Phase,
    /// True if the whole second lies in the phase.
    pub is_whole: bool,
    /// Messages the nominal schedule wanted in it; null for a run that was killed.
    pub offered: Option<u64>,
    /// Messages due in it that are final, by state and code.
    pub due: Outcomes,
    /// Refusals of messages due whose answer nobody waited for.
    pub refused_unawaited_due: u64,
    /// Events of the second.
    pub flow: Flow,
    /// Per backend.
    pub arrivals: Vec<ArrivalRow>,
    /// 99th percentile of lateness of those due in it.
    pub lateness_p99_us: Option<u64>,
    /// Largest lateness of those due in it.
    pub lateness_max_us: Option<u64>,
    /// Known responses of those due in it.
    pub response: Distribution,
    /// Lower times of the same messages, without our own delay.
    pub lower: Distribution,
    /// Lower bounds of the unanswered due in it.
    pub censored: Distribution,
    /// Known end-to-end times at the first backend of those due in it.
    pub end_to_end: Distribution,
}

/// One second of one scope at one backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ArrivalRow {
    /// First copies, by event.
    pub arrived: u64,
    /// Further copies, by event.
    pub again: u64,
    /// First copies of messages due in this second.
    pub arrived_due: u64,
    /// Messages due in this second, accepted or unacknowledged, that are lost.
    pub lost_due: u64,
    /// Messages due in this second, accepted or unacknowledged, that are outstanding.
    pub outstanding_due: u64,
    /// Messages due in this second, rejected, that did not arrive.
    pub rejected_absent_due: u64,
    /// Messages due in this second, timed out, broken or in flight, that did not arrive and will
    /// not: a target that still delivers what it never answered in time has a backlog of it.
    pub failed_absent_due: u64,
}

impl Summary {
    /// The summary of a scope; none if the plan has no such fleet or stream.
    pub fn scope(&self, scope: Scope) -> Option<&ScopeSummary> {
        match scope {
            Scope::Run => Some(&self.run),
            Scope::Fleet(fleet) => self.fleets.get(fleet.index()),
            Scope::Stream(stream) => self.streams.get(stream.index()),
            Scope::Group => None,
        }
    }

    /// The summary of a set of streams; none if the recorder's plan has no such set.
    pub fn group(&self, streams: &[StreamId]) -> Option<&ScopeSummary> {
        let group = self.groups.iter().find(|group| group.streams == streams)?;
        Some(&group.scope)
    }
}

impl ScopeSummary {
    /// The counters of a registered bound; for end-to-end at the given backend.
    pub fn above(
        &self,
        latency: Latency,
        bound: Micros,
        backend: Option<BackendId>,
    ) -> Option<&Above> {
        let is_it = |above: &&Above| {
            above.latency == latency && above.bound == bound && above.backend == backend
        };
        self.above.iter().find(is_it)
    }

    /// The seconds of a registered end-to-end bound at a backend.
    pub fn delivery(&self, bound: Micros, backend: BackendId) -> Option<&DeliverySeconds> {
        let mut known = self.delivery.iter();
        known.find(|known| known.bound == bound && known.backend == backend)
    }
}

impl LatencyView {
    /// The figures with the percentiles of their lower times.
    pub fn with_lower(&self, lower: Option<&Self>) -> LatencyFigures {
        LatencyFigures {
            lower: lower.map(|view| view.figures.percentiles),
            ..self.figures.clone()
        }
    }
}

impl LatencyTable {
    /// One latency; none where it does not exist by design.
    pub fn of(&self, latency: Latency) -> Option<&LatencyView> {
        match latency {
            Latency::Response => self.response.as_ref(),
            Latency::Service => self.service.as_ref(),
            Latency::Lateness => self.lateness.as_ref(),
            Latency::Held => self.held.as_ref(),
            Latency::EndToEnd => self.end_to_end.as_ref(),
            Latency::Connect => self.connect.as_ref(),
        }
    }
}

impl Percentiles {
    /// Number of values that `pX` needs to be printed: `10 / (1 - X)`, `share` being X in `(0, 1)`.
    pub fn needed(share: f64) -> u64 {
        (10.0 / (1.0 - share)).round() as u64
    }

    /// One of them by its field's name, such as `p99_us`.
    pub fn us(&self, name: &str) -> Option<u64> {
        match name {
            "p50_us" => self.p50_us,
            "p90_us" => self.p90_us,
            "p95_us" => self.p95_us,
            "p99_us" => self.p99_us,
            "p99_9_us" => self.p99_9_us,
            _ => None,
        }
    }

    /// Reads the percentiles that the number of values allows.
    pub fn of(distribution: &Distribution) -> Self {
        let read = |share: f64| {
            let is_enough = distribution.count >= Self::needed(share);
            is_enough.then(|| distribution.quantile_us(share)).flatten()
        };
        Self {
            p50_us: read(0.5),
            p90_us: read(0.9),
            p95_us: read(0.95),
            p99_us: read(0.99),
            p99_9_us: read(0.999),
            at_least: AtLeast::default(),
        }
    }

    /// As [`Percentiles::of`], of known times and of the lower bounds of others together.
    pub fn of_all_due(known: &Distribution, censored: &Distribution) -> Self {
        let mut all = known.clone();
        all.merge(censored);
        let of_all = Self::of(&all);
        let shares = [
            (of_all.p50_us, 0.5),
            (of_all.p90_us, 0.9),
            (of_all.p95_us, 0.95),
            (of_all.p99_us, 0.99),
            (of_all.p99_9_us, 0.999),
        ];
        let places = shares.into_iter().enumerate();
        let is_at_least = |(_, (shown, share)): &(usize, (Option<u64>, f64))| {
            let bounded = shown.and_then(|_| Bounded::of(known, censored, *share));
            bounded.is_some_and(|bounded| bounded.is_at_least)
        };
        Self {
            at_least: AtLeast::at(places.filter(is_at_least).map(|(place, _)| place)),
            ..of_all
        }
    }
}

merge_fields! {
    ArrivalRow {
        arrived, again, arrived_due, lost_due, outstanding_due, rejected_absent_due,
        failed_absent_due,
    }
}
