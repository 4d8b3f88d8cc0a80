//! Plans whose load is decided while they run.

use muster_load::{AddedHold, PayloadSpec, Phase, Shape};
use muster_model::{CommandTarget, Dimension, Micros};
use serde::{Deserialize, Serialize};

use crate::{FleetPlan, Plan, Policy, StreamKind, StreamPlan};

/// The holds that are added while a run goes on. Their factors are multiples of the load that the scenario states.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AddedLoad {
    /// The dimension that the factors multiply.
    pub dimension: Dimension,
    /// Factor of the first hold.
    pub first: f64,
    /// Highest factor.
    pub most: f64,
}

impl AddedLoad {
    /// The share of each fleet's devices that connects at first; none where all of them do.
    pub fn first_share(&self) -> Option<f64> {
        (self.dimension == Dimension::Devices).then_some(self.first)
    }
}

impl Plan {
    /// The rate of all messages that devices send, as the scenario states it, per second.
    pub fn stated_rate(&self) -> f64 {
        self.uplinks()
            .map(|(_, stream)| stream.schedule.rate.get())
            .sum()
    }

    /// The load that the scenario states in a dimension.
    pub fn stated_load(&self, dimension: Dimension) -> f64 {
        match dimension {
            Dimension::Rate => self.stated_rate(),
            Dimension::Devices => f64::from(self.devices()),
            Dimension::Commands => {
                let streams = self.streams().filter(|(_, stream)| stream.is_command());
                streams.map(|(_, stream)| stream.schedule.rate.get()).sum()
            }
            Dimension::Connects => self.stated_connects(),
            Dimension::Payload => {
                let sizes = self.uplinks().filter_map(|(_, stream)| size_of(stream));
                f64::from(sizes.max().unwrap_or(0))
            }
        }
    }

    /// The least load that a step in a dimension can have.
    pub fn least_load(&self, dimension: Dimension) -> f64 {
        match dimension {
            Dimension::Rate | Dimension::Commands | Dimension::Connects => 0.0,
            Dimension::Devices => 1.0,
            Dimension::Payload => {
                let least = self.uplinks().map(|(_, stream)| least_size(stream));
                f64::from(least.max().unwrap_or(1))
            }
        }
    }

    /// Checks that a load of the plan can be multiplied.
    ///
    /// # Errors
    /// The reason, with the remedy, if that of some stream cannot.
    pub fn check_load(&self, dimension: Dimension) -> Result<(), String> {
        if dimension == Dimension::Connects {
            // Its streams play no part.
            self.check_connects()?;
        } else {
            self.check_streams(dimension)?;
        }
        let is_of_messages = matches!(
            dimension,
            Dimension::Rate | Dimension::Devices | Dimension::Payload
        );
        if is_of_messages && self.stated_rate() == 0.0 || self.stated_load(dimension) == 0.0 {
            return Err(lacking(dimension).to_owned());
        }
        match dimension {
            Dimension::Devices => self.fleets.iter().try_for_each(have_own_links),
            Dimension::Payload => self.has_one_size(),
            Dimension::Rate | Dimension::Commands | Dimension::Connects => Ok(()),
        }
    }

    fn check_streams(&self, dimension: Dimension) -> Result<(), String> {
        let mut reasons = self
            .streams()
            .filter_map(|(fleet, stream)| Some((fleet, stream, why_not(stream, dimension)?)));
        match reasons.next() {
            None => Ok(()),
            Some((fleet, stream, why)) => {
                Err(format!("stream `{}/{}` {why}", fleet.name, stream.name))
            }
        }
    }

    /// Refuses streams whose messages have different sizes: a number of bytes would be that of some of them only.
    fn has_one_size(&self) -> Result<(), String> {
        let stated = self.stated_load(Dimension::Payload);
        let mut uplinks = self.uplinks();
        let differs = |stream: &StreamPlan| size_of(stream).map(f64::from) != Some(stated);
        match uplinks.find(|(_, stream)| differs(stream)) {
            None => Ok(()),
            Some((fleet, stream)) => Err(format!(
                "stream `{}/{}` has other bytes than the {stated} of another one: give all streams the same `size`",
                fleet.name, stream.name
            )),
        }
    }

    /// The same plan without any load but that of holds which are added while it runs, for `budget` at the
    /// most. No `stop-if` ends it: a load that is too high is part of it.
    ///
    /// # Errors
    /// As [`Plan::check_load`].
    pub fn adding(mut self, budget: Micros, load: AddedLoad) -> Result<Self, String> {
        self.check_load(load.dimension)?;
        if load.dimension == Dimension::Connects {
            self = self.only_attempts();
        }
        for stream in self.fleets.iter_mut().flat_map(|fleet| &mut fleet.streams) {
            let is_command = stream.is_command();
            if load.dimension == Dimension::Payload
                && let Some(stated) = size_of(stream)
            {
                let least = least_size(stream);
                stream.payload = PayloadSpec::Held { stated, least };
                stream.largest = (f64::from(stated) * load.most).ceil() as u32;
            }
            let spec = stream.schedule.clone().silent();
            let mut spec = match load.dimension {
                Dimension::Devices => spec.with_active_devices(),
                Dimension::Commands if !is_command => spec.with_stated_rate(),
                Dimension::Payload => spec.with_stated_rate(),
                Dimension::Rate | Dimension::Commands | Dimension::Connects => spec,
            };
            (spec.warm_up, spec.measure) = (Micros::ZERO, budget);
            stream.schedule = spec;
        }
        self.phases.warm_up = Micros::ZERO;
        self.phases.measure = budget;
        self.added = Some(load);
        self.rules.stop_if.clear();
        Ok(self)
    }

    /// The same plan with this number of bytes in each message whose size the scenario states.
    #[must_use]
    pub fn with_size(mut self, bytes: u32) -> Self {
        for stream in self.fleets.iter_mut().flat_map(|fleet| &mut fleet.streams) {
            if size_of(stream).is_some() {
                stream.payload = PayloadSpec::Size(bytes);
                stream.largest = bytes;
            }
        }
        self
    }

    /// Adds a hold to every stream.
    pub fn add_hold(&mut self, hold: &AddedHold) {
        for stream in self.fleets.iter_mut().flat_map(|fleet| &mut fleet.streams) {
            stream.schedule = stream.schedule.clone().with_hold(hold);
        }
    }
}

/// Bytes of each message of a stream; none if it has no size by itself.
fn size_of(stream: &StreamPlan) -> Option<u32> {
    match stream.payload {
        PayloadSpec::Size(size) | PayloadSpec::Held { stated: size, .. } => Some(size),
        PayloadSpec::Template(_)
        | PayloadSpec::LogNormal { .. }
        | PayloadSpec::File(_)
        | PayloadSpec::Mix(_) => None,
    }
}

/// The least bytes of a message of a stream: the room that its id needs, and one at least.
fn least_size(stream: &StreamPlan) -> u32 {
    stream.carrier.least_payload(false).max(1) as u32
}

/// Refuses a fleet whose devices cannot connect one by one.
fn have_own_links(fleet: &FleetPlan) -> Result<(), String> {
    let name = &fleet.name;
    if fleet.is_gateway {
        return Err(format!(
            "devices of fleet `{name}` share the links of gateways: remove `gateway`, so that each connects by itself"
        ));
    }
    let mut streams = fleet.streams.iter();
    if let Some(stream) = streams.find(|it| it.schedule.phase == Phase::Together) {
        return Err(format!(
            "stream `{name}/{}` has `phase: together`: remove it, since devices that come and go send one after the \
             other",
            stream.name
        ));
    }
    Ok(())
}

/// The reason, with the remedy, why a plan without any load of a dimension has nothing to multiply.
const fn lacking(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Rate | Dimension::Devices | Dimension::Payload => {
            "devices send nothing: add a stream with a `rate`"
        }
        Dimension::Connects => "devices connect all at once: add `connect: { rate: 100/s }`",
        Dimension::Commands => {
            "the backend issues no commands: add `commands: { rate: 50/s, mode: two-way }` to it, and a stream of kind \
             `command`"
        }
    }
}

/// The reason, with the remedy, why holds cannot have a stream.
fn why_not(stream: &StreamPlan, dimension: Dimension) -> Option<&'static str> {
    if let StreamKind::Command { is_two_way, to, .. } = stream.kind
        && dimension == Dimension::Commands
    {
        return why_not_commands(is_two_way, to);
    }
    if !stream.is_uplink() || stream.is_query() {
        return Some(match dimension {
            Dimension::Commands => {
                "is about queries or receives: remove it, since a step holds what devices send and commands with a rate"
            }
            Dimension::Rate | Dimension::Devices | Dimension::Payload | Dimension::Connects => {
                "is about commands or receives: remove it, since only what devices send is multiplied"
            }
        });
    }
    if dimension == Dimension::Payload && size_of(stream).is_none() {
        return Some(
            "has a payload whose text, file or distribution gives its size: use `payload: { size: 100 }`",
        );
    }
    if stream.policy == Policy::Closed {
        return Some("is a closed loop, which has no rate: use `loop: open`");
    }
    if stream.schedule.shape != Shape::Constant {
        return Some("has a shape: remove it, so that its `rate` can be multiplied");
    }
    if stream.schedule.limit_per_device.is_some() {
        return Some("has a `count`, after which devices stop: remove it");
    }
    None
}

/// The reason, with the remedy, why commands cannot be multiplied or judged.
const fn why_not_commands(is_two_way: bool, to: CommandTarget) -> Option<&'static str> {
    match to {
        CommandTarget::Waiting => {
            Some("has commands that follow queries: use `commands: { rate: 50/s, to: online }`")
        }
        CommandTarget::Absent | CommandTarget::All => {
            Some("has commands to absent devices, which never reply: use `to: online`")
        }
        CommandTarget::Online if !is_two_way => Some(
            "has one-way commands, whose time nothing reports: use `commands: { mode: two-way }`",
        ),
        CommandTarget::Online => None,
    }
}
