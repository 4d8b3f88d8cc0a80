//! Names of peers and of their requests.

use muster_protocol::coap::Pending;
use slotmap::{Key as _, KeyData, new_key_type};

new_key_type! {
    /// Names one peer, and never another one after it.
    pub(crate) struct PeerRef;
}

impl PeerRef {
    /// Bytes of a connection id, which is the name.
    pub(crate) const ID: usize = 8;

    pub(crate) fn id(self) -> [u8; Self::ID] {
        self.number().to_be_bytes()
    }

    /// The name as a number.
    pub(crate) fn number(self) -> u64 {
        self.data().as_ffi()
    }

    pub(crate) fn from_id(id: &[u8]) -> Option<Self> {
        let number = u64::from_be_bytes(id.try_into().ok()?);
        Some(KeyData::from_ffi(number).into())
    }
}

/// A request of a peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestRef {
    pub(crate) peer: PeerRef,
    pub(crate) pending: Pending,
}
