//! Webhooks: HTTP endpoints of ours to which the platform pushes messages.
//!
//! The rule engines of many platforms push what devices send to a URL. Here is that URL: each request that shows
//! the right proof is a copy of a message, or a batch of copies, and is answered with 200 once all are counted.

mod batch;
mod confirmation;
mod driver;
mod entrance;
mod patience;
mod proof;
mod refusals;

pub use driver::{WebhookEnds, Webhooks, webhooks_loop};
pub use patience::Bounds as WebhookBounds;
