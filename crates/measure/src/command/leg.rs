//! The legs of commands, counted exactly where a rule looks at them.

use std::collections::BTreeMap;

use muster_model::Micros;
use serde::{Deserialize, Serialize};

use crate::above::count_above;
use crate::merge::merge_fields;

/// A way that a command, its query or its reply takes (docs/semantics.md#commands).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Leg {
    /// From a query's due instant to its answer.
    Request,
    /// From the instant a device's reply is due to the platform's answer to it.
    Response,
    /// From a command's issue to the first copy of its reply.
    Loop,
}

/// One leg in one window, by the instant at which it began.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LegCounts {
    /// Number of legs that began, or ought to have.
    pub begun: u64,
    /// Number of legs that ended.
    pub ended: u64,
    /// Number of legs that cannot end, as reported by the platform.
    pub excused: u64,
    /// Number of ended legs above each registered bound; empty while none ended.
    pub above: Vec<u64>,
    /// The same by the lower time, without our own delay.
    pub above_lower: Vec<u64>,
}

/// One leg of the measured cohort of one scope.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LegSummary {
    /// Number of legs that began, or ought to have.
    pub begun: u64,
    /// Number of legs that ended.
    pub ended: u64,
    /// Number of legs that cannot end, as reported by the platform.
    pub excused: u64,
    /// Number of ended legs above each bound; too few if a stream lacks the bound.
    pub above: BTreeMap<Micros, u64>,
    /// The same by the lower time, without our own delay; of [`Leg::Loop`] equal to `above`.
    pub above_lower: BTreeMap<Micros, u64>,
}

impl Leg {
    /// Every leg; its place is its index.
    pub const ALL: [Leg; 3] = [Leg::Request, Leg::Response, Leg::Loop];

    /// Its place in every table of legs.
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl LegCounts {
    /// Counts an end by its upper and its lower time.
    pub(crate) fn end(&mut self, bounds: &[Micros], upper: Micros, lower: Micros) {
        self.ended += 1;
        count_above(&mut self.above, bounds, upper);
        count_above(&mut self.above_lower, bounds, lower);
    }
}

impl LegSummary {
    /// Number of legs that began and did not end, excused ones left out.
    pub fn missing(&self) -> u64 {
        self.begun.saturating_sub(self.ended + self.excused)
    }

    /// Adds one stream's, whose bounds these are.
    pub(crate) fn add(&mut self, counts: &LegCounts, bounds: &[Micros]) {
        self.begun += counts.begun;
        self.ended += counts.ended;
        self.excused += counts.excused;
        for (place, bound) in bounds.iter().enumerate() {
            let at_place = |above: &[u64]| above.get(place).copied().unwrap_or(0);
            *self.above.entry(*bound).or_default() += at_place(&counts.above);
            *self.above_lower.entry(*bound).or_default() += at_place(&counts.above_lower);
        }
    }
}

merge_fields! {
    LegCounts { begun, ended, excused, above, above_lower }
    LegSummary { begun, ended, excused, above, above_lower }
}
