//! Counter-based randomness for simulations.

use muster_model::{mix, unit};

/// Random numbers, each a pure function of a seed and of how many were drawn before.
pub(crate) struct Random {
    seed: u64,
    drawn: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        self.drawn += 1;
        unit(mix(self.seed, self.drawn))
    }

    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.uniform()).ln()
    }

    /// Box and Muller (1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
