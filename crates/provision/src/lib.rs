//! Registers a plan's devices with the platform before they connect: creates, verifies, removes.
//!
//! Layer 6. A [`Provisioner`] calls a platform's management API at a bounded rate and with a bounded
//! number of calls under way. What is there already with the same content is left alone; what is
//! there with another is an error with a name. A [`Registrar`] does so for those that the platform refuses
//! while a run goes on. A [`Journal`] holds what was created, written before
//! and after each call, so that a run that was killed can be taken up again and that nothing else is
//! ever removed. It must never know a schedule, a link or the ledger.
//!
//! A platform is one file: a [`Provisioner`] and its line in [`provisioner`].

mod authorization;
mod error;
mod hono;
mod journal;
mod links;
mod pacer;
mod provisioner;
mod registrar;
mod rest;
mod sap_edge;
mod store;
mod summary;
mod thingsboard;
mod threads;
mod work;

pub use error::ProvisionError;
pub use journal::{JOURNAL, Journal};
pub use provisioner::{Provisioner, Watch, distinct, provisioner};
pub use registrar::{Registered, Registrar};
pub use store::{Store, Stored, StoredPoint, store};
pub use summary::{Counts, Summary};
pub use thingsboard::{NodeCounts, ServerCounter};
