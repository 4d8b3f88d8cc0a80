//! A server with a resource for each way to answer.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use muster_model::Micros;
use muster_protocol::coap::{
    Code, Incoming, Opt, OptionNumber, Pending, Reply, Server, ServerEvent, ServerSettings, Uint,
};

use crate::Failure;
use crate::wire::Wire;

/// Delay of the answer of `/separate`.
const SEPARATE: Micros = Micros::from_millis(300);

struct Serving {
    wire: Wire,
    settings: Arc<ServerSettings>,
    peers: BTreeMap<SocketAddr, Server>,
    /// Answers that are given later.
    later: Vec<(Micros, SocketAddr, Pending)>,
    stored: Vec<u8>,
    /// Requests that sessions reported, of each path.
    asked: BTreeMap<String, u32>,
}

pub(crate) fn serve(options: &[&str]) -> Result<(), Failure> {
    let wire = Wire::bind(options)?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", wire.port()?)?;
    out.flush()?;
    let settings = ServerSettings {
        body_max: 1 << 17,
        ..ServerSettings::default()
    };
    let serving = Serving {
        wire,
        settings: Arc::new(settings),
        peers: BTreeMap::new(),
        later: Vec::new(),
        stored: Vec::new(),
        asked: BTreeMap::new(),
    };
    serving.run()
}

impl Serving {
    fn run(mut self) -> Result<(), Failure> {
        let mut out = Vec::new();
        loop {
            let deadline = self.deadline();
            let received = self.wire.receive(deadline)?;
            let received = received.map(|(peer, datagram)| (peer, datagram.to_vec()));
            let now = self.wire.now();
            if let Some((peer, datagram)) = received {
                self.receive(now, peer, &datagram, &mut out)?;
            }
            self.answer_later(now, &mut out)?;
            self.wake(now, &mut out)?;
        }
    }

    fn deadline(&self) -> Option<Micros> {
        let sessions = self.peers.values().filter_map(Server::deadline);
        let later = self.later.iter().map(|(at, ..)| *at);
        sessions.chain(later).min()
    }

    fn receive(
        &mut self,
        now: Micros,
        peer: SocketAddr,
        datagram: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let new = || Server::new(Arc::clone(&self.settings), u64::from(peer.port()));
        let server = self.peers.entry(peer).or_insert_with(new);
        let event = server.receive(now, datagram, out);
        self.wire.send(peer, out)?;
        match event {
            Some(ServerEvent::Request(request)) => self.answer(now, peer, &request, out),
            Some(
                ServerEvent::Acknowledged { .. }
                | ServerEvent::Reset { .. }
                | ServerEvent::TimedOut { .. }
                | ServerEvent::Retransmitted,
            )
            | None => Ok(()),
        }
    }

    fn answer(
        &mut self,
        now: Micros,
        peer: SocketAddr,
        request: &Incoming<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let segments = request.options.all(OptionNumber::URI_PATH);
        let path: Vec<_> = segments.map(String::from_utf8_lossy).collect();
        let path = path.join("/");
        *self.asked.entry(path.clone()).or_default() += 1;
        let age = Uint::of(2);
        let unavailable = [Opt::new(OptionNumber::MAX_AGE, &age)];
        let large: Vec<u8> = (0..5_000u32).map(|at| (at % 251) as u8).collect();
        let asked = format!("{:?}", self.asked);
        let reply = match (request.method, path.as_str()) {
            (Code::GET, "hello") => Reply::new(Code::CONTENT, &[], b"hello"),
            (Code::GET, "large") => Reply::new(Code::CONTENT, &[], &large),
            (Code::GET, "asked") => Reply::new(Code::CONTENT, &[], asked.as_bytes()),
            (Code::GET, "busy") => Reply::new(Code::SERVICE_UNAVAILABLE, &unavailable, b"later"),
            (Code::GET, "separate") => return self.answer_separately(now, peer, request, out),
            (Code::PUT | Code::POST, "store") => {
                self.stored = request.payload.to_vec();
                Reply::new(Code::CHANGED, &[], b"")
            }
            (Code::GET, "store") => Reply::new(Code::CONTENT, &[], &self.stored),
            _ => Reply::new(Code::NOT_FOUND, &[], b"no such resource"),
        };
        let reply = Reply {
            is_confirmable: request.is_confirmable,
            ..reply
        };
        if let Some(server) = self.peers.get_mut(&peer) {
            server.respond(now, request.pending, &reply, out)?;
        }
        self.wire.send(peer, out)
    }

    fn answer_separately(
        &mut self,
        now: Micros,
        peer: SocketAddr,
        request: &Incoming<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        if let Some(server) = self.peers.get_mut(&peer) {
            let pending = server.acknowledge(request.pending, out);
            self.later.push((now + SEPARATE, peer, pending));
        }
        self.wire.send(peer, out)
    }

    fn answer_later(&mut self, now: Micros, out: &mut Vec<u8>) -> Result<(), Failure> {
        while let Some(at) = self.later.iter().position(|(at, ..)| *at <= now) {
            let (_, peer, pending) = self.later.remove(at);
            if let Some(server) = self.peers.get_mut(&peer) {
                let reply = Reply::new(Code::CONTENT, &[], b"at last");
                server.respond(now, pending, &reply, out)?;
            }
            self.wire.send(peer, out)?;
        }
        Ok(())
    }

    fn wake(&mut self, now: Micros, out: &mut Vec<u8>) -> Result<(), Failure> {
        for (peer, server) in &mut self.peers {
            while server.wake(now, out).is_some() {
                self.wire.send(*peer, out)?;
            }
        }
        Ok(())
    }
}
