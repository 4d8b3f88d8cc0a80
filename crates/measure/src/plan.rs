//! Knowledge of the run that a recorder needs before the first fact.

use muster_model::{DeviceId, DeviceSample, FleetId, LinkId, MessageId, Micros, RunId, StreamId};
use serde::{Deserialize, Serialize};

use crate::{Latency, Leg};

/// Plan of a recording: the run, its phases, and every stream, fleet and backend of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecorderPlan {
    /// The run; arrivals of another one are *foreign*.
    pub run: RunId,
    /// Length of the warm-up.
    pub warm_up: Micros,
    /// Length of the measured phase, as planned.
    pub measure: Micros,
    /// Every stream; the index is the `StreamId`.
    pub streams: Vec<StreamTrack>,
    /// Every fleet; the index is the `FleetId`.
    pub fleets: Vec<FleetTrack>,
    /// Sets of streams whose figures are summed up in addition to those of fleets and of the run, each
    /// ascending.
    pub groups: Vec<Vec<StreamId>>,
    /// Number of backends that keep an account of arrivals.
    pub backends: u8,
    /// Devices that are read of the last of these if it is a store, which is read back when the load has ended: what it
    /// keeps has no instant of arrival. None if it is no store.
    pub store: Option<DeviceSample>,
    /// Messages that are kept apart as cold.
    pub cold: Cold,
    /// Records kept for the figures of a published test.
    pub published: PublishedPlan,
}

/// Records kept for the figures of a published test, by its own formulas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum PublishedPlan {
    /// Nothing.
    #[default]
    Nothing,
    /// The figures of this number of devices, the first of the plan (SAP Edge).
    ByDevice(u32),
    /// The times of each stream in slots (Hono).
    BySlot,
}

/// Plan of one stream's recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamTrack {
    /// The fleet that owns it.
    pub fleet: FleetId,
    /// The fleet's first device.
    pub first_device: DeviceId,
    /// Number of devices of the fleet.
    pub devices: u32,
    /// More messages than any device of the stream can have; an id beyond it names no message
    /// of this run and is counted as foreign, so that a damaged id cannot take memory.
    pub most_per_device: u32,
    /// Role of the stream's messages.
    pub role: Role,
    /// True if an answer exists by design (`ack` is not `none`) whose time is a response: that of a
    /// query is not.
    pub answers: bool,
    /// Of a closed loop, whose due instants follow the answers and not the schedule: the shortest
    /// period of a device. What took no longer left no message out. None for an open loop.
    pub closed: Option<Micros>,
    /// True if its messages differ by their order alone at a backend: the n-th copy is then
    /// recorded as the n-th message that was due.
    pub by_order: bool,
    /// End-to-end time beyond which an arrival is late; none where nothing is late.
    pub deadline: Option<Micros>,
    /// Bounds for which messages above are counted exactly.
    pub bounds: Bounds,
}

/// Role of a stream's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Role {
    /// Messages of devices.
    #[default]
    Uplink,
    /// Messages of devices that ask for a command.
    Query,
    /// Commands to devices.
    Command,
    /// Other devices' messages, to which devices subscribe.
    Receive,
}

impl Role {
    /// Returns whether the stream has a part in the ledger of commands.
    pub const fn has_commands(self) -> bool {
        matches!(self, Self::Query | Self::Command)
    }

    /// Returns whether devices send its messages by themselves.
    pub const fn is_uplink(self) -> bool {
        matches!(self, Self::Uplink | Self::Query)
    }
}

/// The registered bounds of one stream, per latency; order and repetition do not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Bounds on response (`ended - due`).
    pub response: Vec<Micros>,
    /// Bounds on service (`ended - sent`).
    pub service: Vec<Micros>,
    /// Bounds on lateness (`taken - due`).
    pub lateness: Vec<Micros>,
    /// Bounds on held (`sent - taken`).
    pub held: Vec<Micros>,
    /// Bounds on end-to-end (`seen - due`).
    pub end_to_end: Vec<Micros>,
    /// Bounds on each leg of commands, at the index of [`Leg`]; ascending, each once.
    pub legs: [Vec<Micros>; Leg::ALL.len()],
}

/// The links of one fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetTrack {
    /// The fleet's first link.
    pub first_link: LinkId,
    /// Number of links that the fleet wants.
    pub links: u32,
    /// Number of devices that each link carries, at least 1; the last one may carry fewer.
    pub devices_per_link: u32,
}

/// Choice of the messages that are cold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Cold {
    /// None is kept apart.
    #[default]
    Nothing,
    /// Messages due within this time after the start of the measured phase.
    First(Micros),
    /// The first message of each device's stream.
    FirstMessage,
}

impl Cold {
    /// Returns whether a message is kept apart; `measure` is the start of the measured phase. If
    /// the due instant is not known, only the number can decide.
    pub fn holds(self, seq: u32, due: Option<Micros>, measure: Micros) -> bool {
        match self {
            Self::Nothing => false,
            Self::First(first) => due.is_some_and(|due| due >= measure && due - measure < first),
            Self::FirstMessage => seq == 0,
        }
    }
}

/// The phase of a run in which an instant lies.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
pub enum Phase {
    /// Before the first message could be due.
    #[default]
    Connect,
    /// Load runs, and nothing is judged but loss.
    WarmUp,
    /// Messages due here are the measured cohort.
    Measure,
    /// Nothing is due any more.
    Settle,
}

/// Beginnings of the phases of a run, on the clock of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Start of the warm-up; `Micros::MAX` while it is not known.
    pub origin: Micros,
    /// Start of the measured phase.
    pub measure: Micros,
    /// Start of settling: planned, or earlier if the run was stopped.
    pub settle: Micros,
}

impl Timeline {
    /// The timeline of a run that still connects: every instant lies in [`Phase::Connect`].
    pub const CONNECTING: Timeline = Timeline {
        origin: Micros::MAX,
        measure: Micros::MAX,
        settle: Micros::MAX,
    };

    /// The timeline of a run whose warm-up starts at `origin`.
    pub fn starting(origin: Micros, warm_up: Micros, measure: Micros) -> Self {
        let start = origin + warm_up;
        Self {
            origin,
            measure: start,
            settle: start + measure,
        }
    }

    /// The same timeline if nothing is due from `at` on.
    pub fn stopped(&self, at: Micros) -> Self {
        Self {
            measure: self.measure.min(at),
            settle: self.settle.min(at),
            ..*self
        }
    }

    /// The phase in which `at` lies.
    pub fn phase(&self, at: Micros) -> Phase {
        if at < self.origin {
            Phase::Connect
        } else if at < self.measure {
            Phase::WarmUp
        } else if at < self.settle {
            Phase::Measure
        } else {
            Phase::Settle
        }
    }

    /// Length of the measured phase.
    pub fn measured(&self) -> Micros {
        self.settle - self.measure
    }
}

impl Bounds {
    /// The bounds on one latency; none for those that are not of a stream.
    pub fn of(&self, latency: Latency) -> &[Micros] {
        match latency {
            Latency::Response => &self.response,
            Latency::Service => &self.service,
            Latency::Lateness => &self.lateness,
            Latency::Held => &self.held,
            Latency::EndToEnd => &self.end_to_end,
            Latency::Connect => &[],
        }
    }

    /// Place of a bound's counter in [`crate::UplinkWindow::above`], or for end-to-end in
    /// [`crate::ArrivalWindow::above`]; none if the bound is not registered. Counters of lower times
    /// have the same places.
    pub fn place(&self, latency: Latency, bound: Micros) -> Option<usize> {
        let mut own = self.sorted(latency).into_iter();
        let at = own.position(|known| known == bound)?;
        Some(self.first_place(latency) + at)
    }

    /// Place of the first counter of a latency, which those of further bounds follow.
    pub(crate) fn first_place(&self, latency: Latency) -> usize {
        let before: &[Latency] = match latency {
            Latency::Response | Latency::EndToEnd | Latency::Connect => &[],
            Latency::Service => &[Latency::Response],
            Latency::Lateness => &[Latency::Response, Latency::Service],
            Latency::Held => &[Latency::Response, Latency::Service, Latency::Lateness],
        };
        before.iter().map(|of| self.sorted(*of).len()).sum()
    }

    /// The bounds on one latency in ascending order, each once: as counters are kept.
    pub fn sorted(&self, latency: Latency) -> Vec<Micros> {
        let mut bounds = self.of(latency).to_vec();
        bounds.sort_unstable();
        bounds.dedup();
        bounds
    }
}

impl RecorderPlan {
    /// Number of backends without the store: their arrivals have an instant.
    pub fn timed(&self) -> u8 {
        self.backends - u8::from(self.store.is_some())
    }

    /// Returns whether a backend is the store.
    pub(crate) fn is_store(&self, backend: usize) -> bool {
        self.read_of(backend).is_some()
    }

    /// Devices that are read of a backend if it is the store; none if it is not.
    pub(crate) fn read_of(&self, backend: usize) -> Option<DeviceSample> {
        self.store.filter(|_| backend >= usize::from(self.timed()))
    }

    /// Plan of a stream's recording; none if the plan has no such stream.
    pub fn stream(&self, stream: StreamId) -> Option<&StreamTrack> {
        self.streams.get(stream.index())
    }

    /// Returns whether the id names a message that this plan could have sent.
    pub fn knows(&self, id: &MessageId) -> bool {
        id.run == self.run
            && self.stream(id.stream).is_some_and(|track| {
                track.slot(id.device).is_some() && id.seq < track.most_per_device
            })
    }

    /// Returns whether the id names a message of this plan that a backend can have: a store has those of devices that are
    /// read.
    pub(crate) fn expects(&self, backend: usize, id: &MessageId) -> bool {
        let read_of = self.read_of(backend);
        self.knows(id) && read_of.is_none_or(|sample| sample.holds(id.device))
    }

    /// The link that carries a device of a stream; none if the plan has no such device.
    pub(crate) fn link_of(&self, stream: StreamId, device: DeviceId) -> Option<LinkId> {
        let track = self.stream(stream)?;
        let fleet = self.fleets.get(track.fleet.index())?;
        let place = track.slot(device)? / fleet.devices_per_link;
        Some(LinkId(fleet.first_link.0 + place))
    }

    /// The fleet of a link; none if the plan has no such link.
    pub fn fleet_of(&self, link: LinkId) -> Option<FleetId> {
        let holds = |fleet: &FleetTrack| {
            link.0
                .checked_sub(fleet.first_link.0)
                .is_some_and(|place| place < fleet.links)
        };
        self.fleets
            .iter()
            .position(holds)
            .map(|at| FleetId(at as u8))
    }
}

impl StreamTrack {
    /// The device's place within the stream, from 0; none if it is not one of the stream's.
    pub fn slot(&self, device: DeviceId) -> Option<u32> {
        device
            .0
            .checked_sub(self.first_device.0)
            .filter(|slot| *slot < self.devices)
    }
}
