//! The plan of a check: one device of each fleet, and one message of each stream.

use muster_load::{Phase, Shape};
use muster_model::{DeviceId, LinkId, Micros};

use crate::{FleetPlan, Phases, Plan, Settle};

/// Length of the measured phase; all messages are due at once.
const MEASURE: Micros = Micros::from_secs(1);
/// Longest wait for answers and arrivals. Longer time-outs are for load.
const PATIENCE: Micros = Micros::from_secs(30);
/// Time without arrivals after which the rest counts as lost.
const QUIET: Micros = Micros::from_secs(3);

impl Plan {
    /// This plan with the first device of each fleet alone, which says one message of each stream, at
    /// once; nobody pauses.
    pub fn one_of_each(&self) -> Self {
        let mut plan = self.clone();
        let at_most = plan.phases.settle.at_most.min(PATIENCE);
        plan.phases = Phases {
            warm_up: Micros::ZERO,
            measure: MEASURE,
            settle: Settle {
                at_most,
                quiet: QUIET.min(at_most),
            },
        };
        for (number, fleet) in (0..).zip(&mut plan.fleets) {
            keep_one(fleet, number);
        }
        for backend in &mut plan.backends {
            backend.pause.clear();
        }
        plan
    }
}

fn keep_one(fleet: &mut FleetPlan, number: u32) {
    fleet.first_device = DeviceId(number);
    fleet.first_link = LinkId(number);
    (fleet.devices, fleet.links, fleet.devices_per_link) = (1, 1, 1);
    fleet.offline = None;
    for stream in &mut fleet.streams {
        let schedule = &mut stream.schedule;
        (schedule.shape, schedule.phase) = (Shape::Constant, Phase::Together);
        schedule.poisson = false;
        (schedule.first_device, schedule.devices) = (fleet.first_device, 1);
        schedule.limit_per_device = Some(1);
        (schedule.warm_up, schedule.measure) = (Micros::ZERO, MEASURE);
    }
}
