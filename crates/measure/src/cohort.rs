//! The two cohorts a ledger is made for.

use crate::{Phase, WindowKey};

/// A set of messages that is accounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cohort {
    /// All that came due, in warm-up and measured phase.
    Uplink,
    /// Messages due while measuring.
    Measured,
}

impl Cohort {
    pub(crate) const BOTH: [Cohort; 2] = [Cohort::Uplink, Cohort::Measured];

    /// Returns whether the cohort includes the messages of a window.
    pub(crate) fn holds(self, key: &WindowKey) -> bool {
        match self {
            Cohort::Uplink => true,
            Cohort::Measured => key.phase == Phase::Measure,
        }
    }
}

/// One value for each cohort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PerCohort<T> {
    pub(crate) uplink: T,
    pub(crate) measured: T,
}

impl<T> PerCohort<T> {
    pub(crate) fn of(&self, cohort: Cohort) -> &T {
        match cohort {
            Cohort::Uplink => &self.uplink,
            Cohort::Measured => &self.measured,
        }
    }

    pub(crate) fn of_mut(&mut self, cohort: Cohort) -> &mut T {
        match cohort {
            Cohort::Uplink => &mut self.uplink,
            Cohort::Measured => &mut self.measured,
        }
    }
}
