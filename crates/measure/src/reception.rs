//! Receptions of devices that subscribe to other devices' messages: each subscriber is an account.

mod account;
mod close;
mod ledger;
mod record;
mod sets;

pub use account::{ReceptionAccount, ReceptionWindow};
pub(crate) use close::ReceptionsClosed;
pub use ledger::{ReceptionLedger, ReceptionSummary, SubscriberRow};
pub(crate) use record::ReceptionFilling;
pub use sets::PAIRS_MAX;
pub(crate) use sets::Receptions;
