//! Datagrams that are not the first of their messages: copies, and further blocks.

use muster_model::Micros;

use crate::session::{Further, Session};
use crate::slots::SlotId;
use crate::token::{Token, stream_of};
use crate::{Shard, Sink};

impl<P: Session, S: Sink> Shard<P, S> {
    /// Takes the datagram appended last to an output, if it belongs to a request and is not its first.
    /// A driver that can write it says so by [`Shard::leaves_again`] or [`Shard::written_again`].
    #[inline]
    pub fn take_further(&mut self) -> Option<Further<P::Key>> {
        self.session.take_further()
    }

    /// It is on its way to the kernel: from now on its message may be there twice.
    pub fn leaves_again(&mut self, further: &Further<P::Key>) {
        if let Some(id) = self.open_request(further.link, further.token, further.key) {
            self.slots.get_mut(id).resent |= further.is_copy;
        }
    }

    /// The kernel took it, at `at`.
    pub fn written_again(&mut self, further: &Further<P::Key>, at: Micros) {
        self.leaves_again(further);
        let of_block = || self.open_request(further.link, further.token, further.key);
        if let Some(id) = further.is_block.then(of_block).flatten() {
            self.sent_further(id, at);
        }
        let counts = self.sink.counts(stream_of(further.token), at);
        counts.bytes_wire += u64::from(further.wire);
        counts.bytes_payload += u64::from(further.payload);
        counts.retransmitted += u64::from(further.is_copy);
    }

    fn open_request(&self, link: u32, token: Token, key: P::Key) -> Option<SlotId> {
        self.slots.open_request(link, token, key)
    }
}
