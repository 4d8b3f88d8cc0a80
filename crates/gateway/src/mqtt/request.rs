//! PUBLISH packets that wait for an answer.

use std::sync::Arc;

use muster_net::Key;
use muster_protocol::mqtt::Pending;

/// A PUBLISH; at QoS 0 it waits for nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PublishRef {
    pub(crate) key: Key,
    pub(crate) pending: Option<Pending>,
}

/// A PUBLISH whose refusal names it by its topic.
#[derive(Debug, Clone)]
pub(crate) struct Refusable {
    pub(crate) publish: PublishRef,
    pub(crate) topic: Arc<str>,
}

/// A message of a device that the application acknowledges.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) key: Key,
    pub(crate) device: Arc<str>,
    pub(crate) id: Option<Arc<[u8]>>,
    /// The answer, if it is not the one that the dialect writes for its code.
    pub(crate) said: Option<Arc<Said>>,
}

/// An answer of the platform's store.
#[derive(Debug)]
pub(crate) struct Said {
    /// The code that it stands for.
    pub(crate) code: u16,
    pub(crate) body: Vec<u8>,
}
