//! Decisions on the load of a run that goes on: those of a search, or of a policy that grows load and target.

use std::path::Path;

use anyhow::Result;
use muster_conduct::{Delivery, ProcessSample, Standing, Steer};
use muster_measure::WindowDelta;
use muster_net::Clock;
use muster_plan::Plan;
use muster_result::{CapacitySearch, Note, PublishedGrowth};

use crate::commands::scale::published::{GrowthInRun, PreparedGrowth};
use crate::searching::{Prepared, Searching};

/// Decider on the load, before its run.
pub(crate) enum Decider {
    /// The scenario itself.
    Scenario,
    /// A search for the capacity.
    Search(Box<Prepared>),
    /// The published policy of `muster scale`.
    Published(Box<PreparedGrowth>),
}

/// Decider on the load, while the run goes on.
pub(crate) enum Steering {
    Search(Box<Searching>),
    Published(Box<GrowthInRun>),
}

/// Decider on the load, after the run.
pub(crate) enum Steered {
    Search(Box<CapacitySearch>),
    Published(Box<PublishedGrowth>),
}

impl Decider {
    /// The first record behind the header of the run; none without a search.
    pub(crate) fn first_note(&self) -> Option<Note> {
        match self {
            Self::Search(prepared) => Some(Note::Search(Box::new(prepared.begun.clone()))),
            Self::Scenario | Self::Published(_) => None,
        }
    }

    /// Begins to decide on the plan as it is run, in the folder of its result; none where the load is planned.
    pub(crate) fn begin(
        &self,
        plan: &Plan,
        folder: &Path,
        clock: Clock,
    ) -> Result<Option<Steering>> {
        Ok(match self {
            Self::Scenario => None,
            Self::Search(prepared) => Some(Steering::Search(Box::new(Searching::begin(
                prepared, plan, folder,
            )?))),
            Self::Published(prepared) => Some(Steering::Published(Box::new(GrowthInRun::begin(
                prepared, plan, clock,
            )?))),
        })
    }
}

impl Steering {
    /// Takes in what came.
    pub(crate) fn windows(&mut self, delta: &WindowDelta) {
        match self {
            Self::Search(searching) => searching.search().windows(delta),
            Self::Published(growing) => growing.windows(delta),
        }
    }

    /// Adds a health sample.
    pub(crate) fn process_sample(&mut self, agent: usize, sample: &ProcessSample) {
        match self {
            Self::Search(searching) => searching.search().process_sample(agent, sample),
            Self::Published(_) => {}
        }
    }

    /// The next order; none while the load stays as it is. `record` gets what the archive of the run has to have.
    pub(crate) fn steer(
        &mut self,
        standing: &Standing,
        delivery: &Delivery,
        record: &mut dyn FnMut(&Note),
    ) -> Option<Steer> {
        match self {
            Self::Search(searching) => searching.steer(standing, delivery, record),
            Self::Published(growing) => growing.steer(standing),
        }
    }

    pub(crate) fn end(self) -> Steered {
        match self {
            Self::Search(searching) => Steered::Search(Box::new(searching.into_search())),
            Self::Published(growing) => Steered::Published(Box::new(growing.into_growth())),
        }
    }
}

impl Steered {
    /// Adds every hold of the run to its plan.
    pub(crate) fn add_to(&self, plan: &mut Plan) {
        match self {
            Self::Search(search) => search.add_to(plan),
            Self::Published(growth) => growth.add_to(plan),
        }
    }
}
