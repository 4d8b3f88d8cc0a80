//! All that a verdict is made from.

use std::collections::BTreeMap;

use muster_load::{Schedule, Shape, StreamSchedule};
use muster_measure::{ArrivalFigures, Phase, Summary, WindowDelta};
use muster_model::{FleetId, Micros, Promise, Rate, StreamId};

use crate::{
    GeneratorHealth, Hints, Latency, ResourceOutlook, RuleName, Slo, Stop, Unevaluated, Warning,
};

/// Everything that a run has shown. The judge adds nothing to it and asks for nothing else.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The figures of the target.
    pub summary: &'a Summary,
    /// The merged windows that they were made of.
    pub windows: &'a WindowDelta,
    /// The health of the generator.
    pub health: &'a GeneratorHealth,
    /// Every stream of the plan; the index is the `StreamId`.
    pub streams: &'a [StreamEvidence],
    /// The name of every fleet; the index is the `FleetId`.
    pub fleets: &'a [String],
    /// The first words of the platform for a cause, by the cause's name (reason strings of MQTT 5).
    pub reason_strings: &'a BTreeMap<String, String>,
    /// Further words for the causes.
    pub hints: &'a Hints,
    /// The name of every backend; the index is the `BackendId`.
    pub backends: &'a [String],
    /// Ending of the run.
    pub ending: &'a Ending,
    /// True if this is one part of a run, so that nothing of the target can be judged by it.
    pub is_part: bool,
    /// Findings outside the figures that are worth a warning.
    pub found: &'a [Warning],
    /// Outlooks of the resources of the target that have a limit; empty unless the scenario has `soak`.
    pub resources: &'a [ResourceOutlook],
}

impl<'a> Evidence<'a> {
    /// Returns a backend's name for a sentence, or a general one if the scenario gave it none.
    pub(crate) fn backend(&self, at: usize) -> String {
        match self.backends.get(at).map(String::as_str) {
            None | Some("" | UNNAMED) => format!("the {UNNAMED}"),
            Some(name) => format!("backend {name}"),
        }
    }

    /// Returns where messages are lost: at a backend, or behind the acknowledgement.
    pub(crate) fn lost_at(&self, at: usize) -> String {
        match self.summary.backends[at].is_store {
            true => "accepted but not stored".to_owned(),
            false => format!("at {}", self.backend(at)),
        }
    }

    /// Returns whether the run went beyond its connect phase.
    pub(crate) fn has_begun(&self) -> bool {
        self.summary.timeline.origin < Micros::MAX
    }

    /// True if the user did not wait for what was open when nothing was due any more.
    pub(crate) fn is_settling_cut(&self) -> bool {
        matches!(self.ending, Ending::SettlingInterrupted { .. })
    }

    /// The roles of the streams that a rule covers.
    pub(crate) fn roles(&self, slo: &Slo) -> impl Iterator<Item = StreamRole> {
        let streams = self.streams.iter().zip(0u8..=u8::MAX);
        let covered = streams.filter(|(of, id)| slo.covers(of.fleet, StreamId(*id)));
        covered.map(|(of, _)| of.role)
    }

    /// Of the arrival figures of all streams those of the streams that a rule covers.
    pub(crate) fn covered(
        &self,
        slo: &'a Slo,
        streams: &'a [ArrivalFigures],
    ) -> impl Iterator<Item = &'a ArrivalFigures> {
        let streams = streams.iter().zip(self.streams).zip(0u8..=u8::MAX);
        let covered = streams.filter(|((_, of), id)| slo.covers(of.fleet, StreamId(*id)));
        covered.map(|((figures, _), _)| figures)
    }

    /// True if two rules about messages of devices share a stream.
    pub(crate) fn is_shared(&self, one: &Slo, other: &Slo) -> bool {
        let mut streams = self.streams.iter().zip(0u8..=u8::MAX);
        let is_common = streams.any(|(of, id)| {
            let covers = |slo: &Slo| slo.covers(of.fleet, StreamId(id));
            of.role.is_uplink() && covers(one) && covers(other)
        });
        is_common && one.sets.share_one_with(&other.sets)
    }

    /// Returns whether connecting ended without a link, and nothing but our own part may have kept
    /// them all down.
    pub(crate) fn is_kept_down_by_us(&self) -> bool {
        *self.ending == Ending::NoLinkUp && self.summary.run.links.is_down_by_us()
    }

    /// Returns whether connecting ended without a link and the platform refused at least one by
    /// protocol.
    pub(crate) fn was_refused(&self) -> bool {
        let connecting = self.windows.links.iter();
        let mut connecting = connecting.filter(|((_, key), _)| key.phase == Phase::Connect);
        let is_refused = connecting.any(|(_, window)| {
            let mut failures = window.counts.failures.iter();
            failures.any(|(failure, count)| count > 0 && failure.is_refusal())
        });
        *self.ending == Ending::NoLinkUp && is_refused
    }
}

/// The name of a backend that the scenario gave none.
const UNNAMED: &str = "backend";

/// Facts of the plan about one stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvidence {
    /// The direction of its messages, and with it the rules that can be about it.
    pub role: StreamRole,
    /// `<fleet>/<stream>`.
    pub name: String,
    /// The fleet that owns it.
    pub fleet: FleetId,
    /// The promise of its acknowledgements.
    pub promise: Promise,
    /// True if a backend, a counter of the platform or a read-back reports what was delivered.
    pub is_delivery_seen: bool,
    /// True if the next message is due only after the answer.
    pub is_closed: bool,
    /// The intervals of constant offered rate in the measured phase ([`holds`]).
    pub holds: Vec<Hold>,
}

/// The part of a stream in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamRole {
    /// Messages that devices send.
    Uplink,
    /// Messages that devices send to ask for a command.
    Query,
    /// Commands to devices.
    Command {
        /// True if devices reply.
        is_two_way: bool,
    },
    /// Messages to which devices subscribe.
    Receive,
}

impl StreamRole {
    /// Returns whether devices send its messages by themselves.
    pub const fn is_uplink(self) -> bool {
        match self {
            Self::Uplink | Self::Query => true,
            Self::Command { .. } | Self::Receive => false,
        }
    }

    /// Returns whether a rule of this name can be about such a stream. Rules about links are about
    /// fleets.
    pub(crate) const fn is_object_of(self, rule: RuleName) -> bool {
        match rule {
            RuleName::Connected | RuleName::Disconnects => true,
            RuleName::Loss | RuleName::FailureRatio | RuleName::Duplicates | RuleName::Stable => {
                self.is_uplink()
            }
            RuleName::Latency { of, .. } => match of {
                Latency::Response | Latency::Service | Latency::EndToEnd | Latency::Lateness => {
                    self.is_uplink()
                }
                Latency::CommandRequest => matches!(self, Self::Query),
                Latency::CommandResponse | Latency::CommandLoop => self.has_replies(),
            },
            RuleName::QueriesWithCommand => matches!(self, Self::Query),
            RuleName::NotReceived => matches!(self, Self::Command { .. }),
            RuleName::RepliesLost => self.has_replies(),
            RuleName::ReceiveLoss => matches!(self, Self::Receive),
        }
    }

    const fn has_replies(self) -> bool {
        matches!(self, Self::Command { is_two_way: true })
    }
}

/// Ending of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The measured phase was over.
    Planned,
    /// A `stop-if` condition held.
    Stopped(Stop),
    /// The user stopped the run.
    Interrupted,
    /// The user stopped it while it settled: what was open then might still have ended well.
    SettlingInterrupted {
        /// The `stop-if` condition that had ended measuring before, if one did.
        stop: Option<Stop>,
    },
    /// No link was up when connecting ended, though the target answered.
    NoLinkUp,
    /// The run has not ended normally: it is read while it runs, or was killed.
    Unfinished {
        /// True if the run still goes on.
        is_running: bool,
        /// Time that the run had reached.
        at: Micros,
    },
    /// The run failed before the first message was due, for this reason.
    NotBegun(String),
}

impl Ending {
    /// Reason why nothing can be decided that needs the whole run; none where it has an end.
    pub(crate) const fn why_open(&self) -> Option<Unevaluated> {
        match self {
            Self::Unfinished { is_running, .. } if *is_running => Some(Unevaluated::Running),
            Self::Unfinished { .. } => Some(Unevaluated::Unknown),
            Self::Planned
            | Self::Stopped(_)
            | Self::Interrupted
            | Self::SettlingInterrupted { .. }
            | Self::NoLinkUp
            | Self::NotBegun(_) => None,
        }
    }
}

/// An interval of constant offered rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hold {
    /// Instant at which the hold begins, on the clock of the run.
    pub from: Micros,
    /// Instant at which the hold ends.
    pub until: Micros,
    /// The rate of the whole stream.
    pub offered: Rate,
}

/// The intervals of the measured phase in which a stream's offered rate is constant, on the clock
/// of the run, whose warm-up starts at `origin`.
pub fn holds(schedule: &StreamSchedule, origin: Micros) -> Vec<Hold> {
    let spec = schedule.spec();
    let last_due = schedule
        .count()
        .checked_sub(1)
        .and_then(|last| schedule.due(last));
    let Some(last_due) = last_due else {
        return Vec::new();
    };
    let measured = spec.warm_up + spec.measure;
    // A stream whose devices stop after `count` messages holds its rate until then. At the
    // planned end the last due lies up to one period before it, which is no reason to cut.
    let end = match spec.limit_per_device {
        Some(_) => measured.min(last_due),
        None => measured,
    };
    let start = origin + spec.warm_up;
    let pieces = constant_pieces(&spec.shape, spec.rate, spec.devices, spec.measure);
    let on_the_clock = pieces.into_iter().map(|(from, until, offered)| Hold {
        from: start + from,
        until: (start + until).min(origin + end),
        offered,
    });
    on_the_clock
        .filter(|hold| hold.from < hold.until && hold.offered > Rate::ZERO)
        .collect()
}

/// Pieces of constant rate as (from, until, rate), counted from the start of the measured phase.
fn constant_pieces(
    shape: &Shape,
    rate: Rate,
    devices: u32,
    measure: Micros,
) -> Vec<(Micros, Micros, Rate)> {
    match shape {
        Shape::Constant => vec![(Micros::ZERO, measure, rate)],
        Shape::Ramp { from: _, over } => vec![(*over, measure, rate)],
        Shape::Spike { to, at, lasts } => vec![
            (Micros::ZERO, *at, rate),
            (*at, *at + *lasts, *to),
            (*at + *lasts, measure, rate),
        ],
        Shape::Stages(_) => {
            let stretches = shape.stretches(measure).into_iter();
            let holds = stretches.filter(|it| it.is_hold);
            holds
                .map(|it| (it.from, it.until.min(measure), it.rate))
                .collect()
        }
        Shape::Burst { n, every } => burst_rate(*n, *every, devices)
            .map(|rate| (Micros::ZERO, measure, rate))
            .into_iter()
            .collect(),
        Shape::Sine { .. } | Shape::Replay(_) => Vec::new(),
    }
}

/// Bursts make a constant rate only if every window holds the same number of them.
fn burst_rate(n: u32, every: Micros, devices: u32) -> Option<Rate> {
    let window = Micros::from_secs(1).get();
    let is_even = every.get() > 0 && window.is_multiple_of(every.get());
    let per_second = f64::from(n) * f64::from(devices) / every.as_secs_f64();
    is_even.then(|| Rate::per_second(per_second)).flatten()
}

#[cfg(test)]
mod tests {
    use muster_load::{HoldRate, Phase, ScheduleSpec, Stage};
    use muster_model::DeviceId;

    use super::*;

    fn rate(per_second: f64) -> Rate {
        Rate::per_second(per_second).expect("a rate")
    }

    fn secs(seconds: u64) -> Micros {
        Micros::from_secs(seconds)
    }

    /// The holds of a shape, as (from, until, rate) in seconds, of a run that starts at 3 s, warms
    /// up for 2 s and measures for 60 s.
    fn holds_of(shape: Shape, limit: Option<u32>) -> Vec<(f64, f64, f64)> {
        let schedule = StreamSchedule::new(ScheduleSpec {
            shape,
            rate: rate(100.0),
            phase: Phase::Even,
            hold_rate: HoldRate::default(),
            poisson: false,
            first_device: DeviceId(0),
            devices: 10,
            limit_per_device: limit,
            warm_up: secs(2),
            measure: secs(60),
            seed: 1,
        });
        let holds = holds(&schedule.expect("a possible schedule"), secs(3));
        let words = |h: &Hold| (h.from.as_secs_f64(), h.until.as_secs_f64(), h.offered.get());
        holds.iter().map(words).collect()
    }

    #[test]
    fn a_shape_holds_where_its_rate_does_not_change() {
        assert_eq!(holds_of(Shape::Constant, None), [(5.0, 65.0, 100.0)]);
        let ramp = Shape::Ramp {
            from: rate(1.0),
            over: secs(20),
        };
        assert_eq!(holds_of(ramp, None), [(25.0, 65.0, 100.0)]);
        let spike = Shape::Spike {
            to: rate(500.0),
            at: secs(10),
            lasts: secs(5),
        };
        let expected = [(5.0, 15.0, 100.0), (15.0, 20.0, 500.0), (20.0, 65.0, 100.0)];
        assert_eq!(holds_of(spike, None), expected);
        let stage = |to, over, hold| Stage {
            to: rate(to),
            over: secs(over),
            hold: secs(hold),
        };
        let stages = Shape::Stages(vec![stage(50.0, 0, 20), stage(80.0, 10, 10)]);
        assert_eq!(
            holds_of(stages, None),
            [(5.0, 25.0, 50.0), (35.0, 65.0, 80.0)]
        );
        let sine = Shape::Sine {
            from: rate(10.0),
            to: rate(90.0),
            period: secs(30),
        };
        assert_eq!(holds_of(sine, None), []);
    }

    #[test]
    fn bursts_hold_if_every_second_has_as_many() {
        let burst = |every_ms| Shape::Burst {
            n: 2,
            every: Micros::from_millis(every_ms),
        };
        assert_eq!(holds_of(burst(500), None), [(5.0, 65.0, 40.0)]);
        assert_eq!(holds_of(burst(400), None), []);
        assert_eq!(holds_of(burst(2_000), None), []);
    }

    #[test]
    fn a_stream_that_stops_after_its_count_holds_until_then() {
        // 10 devices of 300 messages at 100/s: 30 s from the start of the warm-up.
        let holds = holds_of(Shape::Constant, Some(300));
        assert_eq!(holds.len(), 1);
        assert!((32.9..=33.0).contains(&holds[0].1), "{holds:?}");
    }
}
