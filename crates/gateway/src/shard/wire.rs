//! What stands between the socket of a link and its session.

use muster_net::{Io, Key};
use muster_protocol::layer::{Ended, Layer};
use muster_protocol::mqtt::Input;

use super::Shard;
use super::link::Link;

impl Link {
    /// Turns what was gathered into what goes over the wire.
    pub(super) fn wrap(&mut self) {
        self.pipe.layer.wrap(&mut self.out, self.wrapped);
        self.wrapped = self.out.len();
    }
}

impl Shard {
    /// Takes bytes through a link's layer to its session: how many are used up.
    pub(super) fn read(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        let Some(link) = self.link(key) else {
            return bytes.len();
        };
        link.wrap();
        let was_open = link.pipe.layer.is_open();
        let fed = link.pipe.receive(bytes, &mut link.out);
        link.wrapped = link.out.len();
        link.has_ended |= fed.end.is_some();
        if !was_open && link.pipe.layer.is_open() {
            self.shaken(key);
        }
        if let Some(Ended::Failed(error)) = fed.end {
            self.shared.handshake_failed(&error.to_string());
        }
        let mut input = Input::new(&bytes[..fed.plain]);
        self.pump(io, key, &mut input);
        let taken = input.consumed();
        let Some(link) = self.link(key) else {
            return bytes.len();
        };
        let used = link.pipe.keep(bytes, &fed, taken);
        // A link that is not read yet has more to say than its last word.
        if link.has_ended && !link.is_paused() {
            self.end(io, key, true);
        }
        used
    }

    /// The layers of a link are open.
    fn shaken(&mut self, key: Key) {
        let tls = self.link(key).and_then(|link| link.pipe.layer.tls());
        let Some(is_resumed) = tls.map(|tls| tls.is_resumed() == Some(true)) else {
            return;
        };
        self.counts().tls_handshakes.more();
        if is_resumed {
            self.counts().tls_resumed.more();
        }
    }

    /// Notes who a client is by its certificate, beside what it calls itself.
    pub(super) fn note_subject(&mut self, key: Key, client_id: &str) {
        let tls = self.link(key).and_then(|link| link.pipe.layer.tls());
        if let Some(peer) = tls.and_then(|tls| tls.peer()) {
            self.shared.note_subject(peer, client_id);
        }
    }
}
