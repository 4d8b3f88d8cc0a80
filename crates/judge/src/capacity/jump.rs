//! Shares of bad messages that jump at the capacity, as at a hard limit of the payload.

use super::margin::Margin;

/// Every part of a step above a jump has at least this share of bad messages: no episode explains them.
const BAD_THROUGHOUT: f64 = 0.1;
/// The share jumps if it grows this many times faster than the steepest curve.
const FASTER: f64 = 4.0;

/// The extent to which messages of a step were bad.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Logarithm of the rate.
    rate: f64,
    /// Logarithm of the share of bad messages by the allowed one; at least one message counts as bad.
    excess: f64,
    /// The share of bad messages in the part that has the least.
    throughout: f64,
}

impl Extent {
    /// The extent in a step whose rate has this logarithm.
    pub(super) fn new(rate: f64, margin: &Margin) -> Self {
        let allowed = (margin.messages() * margin.allowed).max(f64::MIN_POSITIVE);
        let shares = margin.batches.iter();
        let shares = shares.map(|batch| batch.bad as f64 / batch.messages.max(1) as f64);
        Self {
            rate,
            excess: margin.ratio().max(1.0 / allowed).ln(),
            throughout: shares.reduce(f64::min).unwrap_or(0.0),
        }
    }

    /// Returns whether the share jumps between this step and one with a higher rate. `steepest` is the slope of the steepest
    /// curve.
    pub(super) fn jumps_to(&self, higher: &Self, steepest: f64) -> bool {
        let slope = (higher.excess - self.excess) / (higher.rate - self.rate);
        higher.rate > self.rate && higher.throughout >= BAD_THROUGHOUT && slope > FASTER * steepest
    }
}
