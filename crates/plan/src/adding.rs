//! Plans whose load is decided while they run.

use muster_load::{AddedHold, Shape};
use muster_model::Micros;

use crate::{Plan, Policy, StreamPlan};

impl Plan {
    /// The rate of all messages that devices send, as the scenario states it, per second.
    pub fn stated_rate(&self) -> f64 {
        self.uplinks()
            .map(|(_, stream)| stream.schedule.rate.get())
            .sum()
    }

    /// The same plan without any load but that of holds which are added while it runs, for `budget` at the
    /// most; `adds_up_to` is their highest factor. No `stop-if` ends it: a load that is too high is part of it.
    ///
    /// # Errors
    /// The reason, with the remedy, if the load of some stream cannot be multiplied.
    pub fn adding(mut self, budget: Micros, adds_up_to: f64) -> Result<Self, String> {
        for (fleet, stream) in self.streams() {
            if let Some(why) = why_not(stream) {
                return Err(format!("stream `{}/{}` {why}", fleet.name, stream.name));
            }
        }
        for stream in self.fleets.iter_mut().flat_map(|fleet| &mut fleet.streams) {
            let mut spec = stream.schedule.clone().silent();
            (spec.warm_up, spec.measure) = (Micros::ZERO, budget);
            stream.schedule = spec;
        }
        self.phases.warm_up = Micros::ZERO;
        self.phases.measure = budget;
        self.adds_up_to = Some(adds_up_to);
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
