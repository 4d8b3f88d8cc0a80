//! Plans whose load is decided while they run.

use muster_load::{AddedHold, Phase, Shape};
use muster_model::{Dimension, Micros};
use serde::{Deserialize, Serialize};

use crate::{FleetPlan, Plan, Policy, StreamPlan};

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
        match self.dimension {
            Dimension::Rate => None,
            Dimension::Devices => Some(self.first),
        }
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
        }
    }

    /// The same plan without any load but that of holds which are added while it runs, for `budget` at the
    /// most. No `stop-if` ends it: a load that is too high is part of it.
    ///
    /// # Errors
    /// The reason, with the remedy, if the load of some stream cannot be multiplied.
    pub fn adding(mut self, budget: Micros, load: AddedLoad) -> Result<Self, String> {
        for (fleet, stream) in self.streams() {
            if let Some(why) = why_not(stream) {
                return Err(format!("stream `{}/{}` {why}", fleet.name, stream.name));
            }
        }
        if self.stated_rate() == 0.0 {
            return Err("devices send nothing: add a stream with a `rate`".to_owned());
        }
        if load.dimension == Dimension::Devices {
            self.fleets.iter().try_for_each(have_own_links)?;
        }
        for stream in self.fleets.iter_mut().flat_map(|fleet| &mut fleet.streams) {
            let mut spec = stream.schedule.clone().silent();
            if load.dimension == Dimension::Devices {
                spec = spec.with_active_devices();
            }
            (spec.warm_up, spec.measure) = (Micros::ZERO, budget);
            stream.schedule = spec;
        }
        self.phases.warm_up = Micros::ZERO;
        self.phases.measure = budget;
        self.added = Some(load);
        self.rules.stop_if.clear();
        Ok(self)
    }

    /// Adds a hold to every stream.
    pub fn add_hold(&mut self, hold: &AddedHold) {
        for stream in self.fleets.iter_mut().flat_map(|fleet| &mut fleet.streams) {
            stream.schedule = stream.schedule.clone().with_hold(hold);
        }
    }
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

fn why_not(stream: &StreamPlan) -> Option<&'static str> {
    if !stream.is_uplink() || stream.is_query() {
        return Some(
            "is about commands or receives: remove it, since only what devices send is multiplied",
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
