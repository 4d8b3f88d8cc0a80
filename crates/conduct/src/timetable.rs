//! Length and begin of a run's phases.

use muster_model::Micros;
use serde::{Deserialize, Serialize};

/// The lengths that a run keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timetable {
    /// The connect phase ends at the latest after this: the ramp and one connect time-out.
    pub connect_at_most: Micros,
    /// Lead of the origin's announcement, so that every agent receives it in time.
    pub lead: Micros,
    /// Length of the warm-up.
    pub warm_up: Micros,
    /// Length of the measured phase.
    pub measure: Micros,
    /// Settling ends at the latest after this.
    pub settle_at_most: Micros,
    /// Settling ends when nothing arrived for this long.
    pub quiet: Micros,
    /// The origin, where conductors of several parts of a run have agreed on it beforehand; else
    /// the connect phase ends as soon as it can.
    pub agreed_origin: Option<Micros>,
    /// True if others carry parts of the run whose messages this conductor cannot see. Their
    /// receivers then listen until settling is at its bound, since nobody here knows if all
    /// messages are final, unless the others report it ([`crate::Conductor::see_all_parts`]).
    pub is_part: bool,
    /// True if there are links: a part that has the backend alone waits for none.
    pub has_links: bool,
    /// True if links are registered once they are refused, and come back.
    pub registers_refused: bool,
    /// True if devices receive: the plan has commands, or streams of kind `receive`.
    pub devices_receive: bool,
}

impl Timetable {
    /// Distance of an agreed origin from the connect phase's bound: a part that started its ramp a
    /// little late must not miss it.
    const AGREED_GRACE: Micros = Micros::from_secs(1);

    /// The same timetable with the origin that every conductor who shares T0 agrees on, because
    /// it follows from the timetable alone.
    pub fn agreed(self) -> Self {
        let origin = self.origin_after(self.connect_at_most + Self::AGREED_GRACE);
        Self {
            agreed_origin: Some(origin),
            ..self
        }
    }

    /// Returns true if links of this conductor may still receive when all that they sent is final.
    pub(crate) fn receives_at_links(&self) -> bool {
        self.has_links && self.devices_receive
    }

    /// The first origin from `earliest` on with which the measured phase starts on a whole second
    /// of the run's clock, so that no one-second window is cut by it.
    pub(crate) fn origin_after(&self, earliest: Micros) -> Micros {
        const SECOND: u64 = 1_000_000;
        let start = (earliest + self.warm_up).get().next_multiple_of(SECOND);
        Micros(start) - self.warm_up
    }
}
