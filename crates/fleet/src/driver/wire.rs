//! What stands between the socket of a link and its session.

use muster_conduct::Trouble;
use muster_device::Then;
use muster_model::{Cause, ConnectFailure, Micros};
use muster_net::{Io, Key};
use muster_protocol::layer::{Ended, Layer, LayerError, Layers, Pipe};
use muster_protocol::websocket::Fault;

use super::Driver;

/// Failures of layers that are told in detail: each cause once, of which there are fewer.
const TOLD_MAX: usize = 64;

impl<L: Layers> Driver<L> {
    /// The socket of a link stands: the layer speaks first, and the session once that is open.
    pub(super) fn open(&mut self, link: u32, now: Micros, layer: L::Layer) {
        let pipe = &mut self.pipes[link as usize];
        *pipe = Pipe::new(layer);
        pipe.layer.open(&mut self.out);
        if pipe.layer.is_open() {
            self.greet(link, now);
        }
    }

    fn greet(&mut self, link: u32, now: Micros) {
        let from = self.out.len();
        self.shard.opened(link, now, &mut self.out);
        self.wrap(link, from);
    }

    /// Turns what the session appended to the output into what goes over the wire.
    #[inline]
    pub(super) fn wrap(&mut self, link: u32, from: usize) {
        self.pipes[link as usize].layer.wrap(&mut self.out, from);
    }

    /// Takes bytes through the layer to the session: how many are used up, and what to do with the
    /// socket.
    pub(super) fn read(&mut self, link: u32, now: Micros, bytes: &mut [u8]) -> (usize, Then) {
        let pipe = &mut self.pipes[link as usize];
        let was_open = pipe.layer.is_open();
        let fed = pipe.receive(bytes, &mut self.out);
        if !was_open && pipe.layer.is_open() {
            self.greet(link, now);
        }
        let from = self.out.len();
        let plain = &bytes[..fed.plain];
        let (taken, then) = self.shard.received(link, now, plain, &mut self.out);
        self.wrap(link, from);
        let used = self.pipes[link as usize].keep(bytes, &fed, taken);
        match (fed.end, then) {
            (Some(end), Then::Stay) => (used, self.ended(link, now, end)),
            (_, then) => (used, then),
        }
    }

    /// The layer of a link is at its end, which ends the link.
    #[cold]
    pub(super) fn ended(&mut self, link: u32, now: Micros, end: Ended) -> Then {
        let error = match end {
            Ended::Closed(_) => return self.shard.lost(link, now, Cause::PeerClosed),
            Ended::Failed(error) => error,
        };
        self.tell(link, error);
        if self.shard.is_handshaking(link) {
            self.shard
                .connect_failed(link, now, failure_of_layer(error));
            return Then::Close;
        }
        self.shard.lost(link, now, cause_of_layer(error))
    }

    /// Tells of a failure once for each cause, with all that is known of it.
    fn tell(&mut self, link: u32, error: LayerError) {
        if self.told.contains(&error) || self.told.len() >= TOLD_MAX {
            return;
        }
        self.told.push(error);
        let detail = self.pipes[link as usize].layer.detail();
        let detail = detail.map_or_else(|| error.to_string(), str::to_owned);
        let text = format!("device `{}`: {detail}", self.shard.name_of(link));
        self.troubles.push(Trouble::Handshake(text));
    }

    /// Writes the goodbye of a layer; who does not hear it sees the connection end all the same.
    pub(super) fn say_last(&mut self, io: &mut Io, link: u32, key: Key) {
        self.pipes[link as usize].layer.close(&mut self.out);
        if !self.out.is_empty() {
            let _ = io.write(key, &self.out);
            self.out.clear();
        }
    }
}

/// What the end of a layer means for a link that was not up yet.
fn failure_of_layer(error: LayerError) -> ConnectFailure {
    match error {
        LayerError::WebSocket(Fault::Refused(status)) => ConnectFailure::UpgradeRefused(status),
        LayerError::WebSocket(_) => ConnectFailure::Malformed,
        LayerError::Tls(failure) => ConnectFailure::Tls(failure),
    }
}

/// What the end of a layer means for a link that was up.
fn cause_of_layer(error: LayerError) -> Cause {
    match error {
        LayerError::WebSocket(_) => Cause::Malformed,
        LayerError::Tls(failure) => Cause::Tls(failure),
    }
}
