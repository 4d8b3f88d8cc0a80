//! Devices that were offline on purpose, and how long the platform took to bring them what it had
//! kept for them.

mod close;
mod ledger;
mod sets;

pub(crate) use close::{DrainClosed, DrainSums};
pub use ledger::{DrainLedger, DrainSummary};
pub(crate) use sets::{Absence, Drains};
