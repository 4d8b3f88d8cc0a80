//! The bytes between the socket of a connection and its session.

use muster_net::{Io, Key, Written};
use muster_protocol::layer::{Ended, Fed, Layer, Pipe};
use muster_transport::{Any, TlsServer};

use crate::thread::Ctx;

/// The bytes between the socket of a connection and its session.
#[derive(Debug)]
pub(crate) struct Wire {
    pipe: Pipe<Any<TlsServer>>,
    /// Gathered for the next write.
    pub(crate) out: Vec<u8>,
    /// Number of bytes at the start of `out` that are as they go over the wire.
    wrapped: usize,
    /// The layer has come to its end: the link ends when all before that has been read.
    pub(crate) has_ended: bool,
    /// The kernel has not taken the last write whole.
    pub(crate) is_held: bool,
    pub(crate) is_dirty: bool,
}

impl Wire {
    /// Larger buffers are given back after a burst.
    const OUT_KEPT: usize = 256 * 1024;

    pub(crate) fn new(layer: Any<TlsServer>) -> Self {
        let (mut pipe, mut out) = (Pipe::new(layer), Vec::new());
        pipe.layer.open(&mut out);
        Self {
            pipe,
            out,
            wrapped: 0,
            has_ended: false,
            is_held: false,
            is_dirty: false,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.pipe.layer.is_open()
    }

    pub(crate) fn tls(&self) -> Option<&TlsServer> {
        self.pipe.layer.tls()
    }

    /// Takes bytes through the layer; the account has handshakes that ended with them.
    pub(crate) fn receive(&mut self, ctx: &Ctx<'_>, bytes: &mut [u8]) -> Fed {
        let was_open = self.is_open();
        self.wrap();
        let fed = self.pipe.receive(bytes, &mut self.out);
        self.wrapped = self.out.len();
        self.has_ended |= fed.end.is_some();
        if !was_open
            && self.is_open()
            && let Some(tls) = self.tls()
        {
            ctx.counts().tls_handshakes.more();
            if tls.is_resumed() == Some(true) {
                ctx.counts().tls_resumed.more();
            }
        }
        if let Some(Ended::Failed(error)) = &fed.end {
            ctx.shared.account.handshake_failed(&error.to_string());
        }
        fed
    }

    /// Leaves what the session did not take: how many bytes are used up.
    pub(crate) fn keep(&mut self, bytes: &mut [u8], fed: &Fed, taken: usize) -> usize {
        self.pipe.keep(bytes, fed, taken)
    }

    /// Turns what was gathered into what goes over the wire.
    fn wrap(&mut self) {
        self.pipe.layer.wrap(&mut self.out, self.wrapped);
        self.wrapped = self.out.len();
    }

    /// Writes what has been gathered, if the kernel takes it; false if the link cannot go on.
    pub(crate) fn write(&mut self, io: &mut Io, key: Key) -> bool {
        if self.is_held || self.out.is_empty() {
            return true;
        }
        self.wrap();
        let written = io.write(key, &self.out);
        match written {
            Written::Busy | Written::Exhausted => {}
            // Of one that is lost, `closed` follows. The last is only of datagrams.
            Written::Whole | Written::Held | Written::Lost | Written::Refused => self.clear(),
        }
        self.is_held |= written == Written::Held;
        written != Written::Exhausted
    }

    /// Writes the last bytes; a client that does not get them sees the connection end all the same.
    pub(crate) fn close(&mut self, io: &mut Io, key: Key) {
        if !self.is_held {
            self.wrap();
            self.pipe.layer.close(&mut self.out);
            if !self.out.is_empty() {
                let _ = io.write(key, &self.out);
            }
        }
        io.finish(key);
    }

    fn clear(&mut self) {
        self.out.clear();
        self.wrapped = 0;
        if self.out.capacity() > Self::OUT_KEPT {
            self.out = Vec::new();
        }
    }
}
