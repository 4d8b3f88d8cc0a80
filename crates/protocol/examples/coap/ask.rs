//! One request, as a client.

use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use muster_model::Micros;
use muster_protocol::coap::{
    BlockSize, Client, ClientEvent, ClientSettings, Code, ExchangeKey, Opt, OptionNumber, Request,
    Ticket,
};

use crate::wire::Wire;
use crate::{Failure, value};

const TICKET: Ticket = Ticket { slot: 0, name: 0 };

/// Parts of a path and a query, as options.
type Words<'a> = Vec<(OptionNumber, &'a str)>;

/// A request and its progress.
struct Asking {
    client: Client,
    wire: Wire,
    peer: SocketAddr,
    out: Vec<u8>,
    body: Vec<u8>,
    parts: u32,
}

pub(crate) fn ask(method: &str, uri: &str, options: &[&str]) -> Result<(), Failure> {
    let (peer, words) = split(uri)?;
    let path: Vec<Opt<'_>> = words
        .iter()
        .map(|(number, word)| Opt::text(*number, word))
        .collect();
    let payload = value(options, "body")
        .map(std::fs::read)
        .transpose()?
        .unwrap_or_default();
    let request = Request {
        is_confirmable: !options.contains(&"non"),
        ..Request::new(code(method)?, &path, &payload)
    };
    let mut asking = Asking::new(peer, options)?;
    let now = asking.wire.now();
    asking
        .client
        .request(now, TICKET, &request, &mut asking.out)?;
    let ended = asking.run(&request)?;
    if let Some(file) = value(options, "out") {
        std::fs::write(file, &asking.body)?;
    }
    asking.report(&ended)
}

pub(crate) fn ping(peer: &str, options: &[&str]) -> Result<(), Failure> {
    let peer = address(peer)?;
    let mut asking = Asking::new(peer, options)?;
    let now = asking.wire.now();
    asking.client.ping(now, TICKET, &mut asking.out)?;
    let ended = asking.run(&Request::new(Code::GET, &[], b""))?;
    asking.report(&ended)
}

impl Asking {
    fn new(peer: SocketAddr, options: &[&str]) -> Result<Self, Failure> {
        let bytes: usize = value(options, "block").unwrap_or("1024").parse()?;
        let settings = ClientSettings {
            block_size: BlockSize::within(bytes).ok_or("a block has at least 16 bytes")?,
            asks_block_size: options.contains(&"early"),
            body_max: 1 << 24,
            ..ClientSettings::default()
        };
        // Two processes started within a microsecond of each other would share message ids, which
        // harms nobody: they have ports of their own.
        let seed = u64::from(std::process::id());
        Ok(Self {
            client: Client::new(Arc::new(settings), seed),
            wire: Wire::bind(options)?,
            peer,
            out: Vec::new(),
            body: Vec::new(),
            parts: 0,
        })
    }

    /// Until the exchange is over; its last event in words.
    fn run(&mut self, request: &Request<'_>) -> Result<String, Failure> {
        loop {
            self.wire.send(self.peer, &mut self.out)?;
            let deadline = self.client.deadline();
            let datagram = self
                .wire
                .receive(deadline)?
                .map(|(_, datagram)| datagram.to_vec());
            let now = self.wire.now();
            let event = match &datagram {
                Some(datagram) => self.client.receive(now, datagram, &mut self.out),
                None => self.client.wake(now, &mut self.out),
            };
            let Some(event) = event else { continue };
            self.wire.send(self.peer, &mut self.out)?;
            if let Some(ended) = self.handle(now, &event, request)? {
                return Ok(ended);
            }
        }
    }

    /// Handles an event; returns a text if the exchange has ended.
    fn handle(
        &mut self,
        now: Micros,
        event: &ClientEvent<'_>,
        request: &Request<'_>,
    ) -> Result<Option<String>, Failure> {
        match event {
            ClientEvent::Response(response) => {
                self.body.extend_from_slice(response.payload);
                let manner = if response.is_separate {
                    "separate"
                } else {
                    "piggybacked"
                };
                let age = response.options.max_age();
                let age = age.map_or(String::new(), |age| format!(" max-age={age}"));
                return Ok(Some(format!("{} {manner}{age}", response.code)));
            }
            ClientEvent::Part(response) => {
                self.parts += 1;
                self.body.extend_from_slice(response.payload);
                self.again(now, response.key, request)?;
            }
            ClientEvent::Again { key, .. } => self.again(now, *key, request)?,
            ClientEvent::Failed { cause, .. } => return Ok(Some(format!("failed: {cause}"))),
            ClientEvent::Pong { .. } => return Ok(Some("pong".into())),
            // It does not observe.
            ClientEvent::Notification(_) => {}
            ClientEvent::AnsweredLate { .. } => return Ok(Some("answered late".into())),
            ClientEvent::Acknowledged { .. }
            | ClientEvent::Duplicate { .. }
            | ClientEvent::PingedAgain => {}
        }
        Ok(None)
    }

    fn again(
        &mut self,
        now: Micros,
        key: ExchangeKey,
        request: &Request<'_>,
    ) -> Result<(), Failure> {
        Ok(self.client.again(now, key, request, &mut self.out)?)
    }

    fn report(&self, ended: &str) -> Result<(), Failure> {
        let counts = self.client.counts();
        writeln!(
            std::io::stdout(),
            "{ended}; bytes={} parts={} retransmitted={} duplicates={} stray={} malformed={}",
            self.body.len(),
            self.parts,
            counts.retransmitted,
            counts.duplicates,
            counts.stray,
            counts.malformed,
        )?;
        Ok(())
    }
}

fn code(method: &str) -> Result<Code, Failure> {
    Ok(match method {
        "get" => Code::GET,
        "post" => Code::POST,
        "put" => Code::PUT,
        "delete" => Code::DELETE,
        "fetch" => Code::FETCH,
        _ => return Err(format!("{method} is none of get, post, put, delete, fetch").into()),
    })
}

/// The address, and the path and query as options, of a URI (section 6.4, without percent-encoding).
fn split(uri: &str) -> Result<(SocketAddr, Words<'_>), Failure> {
    let rest = uri.strip_prefix("coap://").ok_or("the scheme is coap")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (path, query) = path
        .split_once('?')
        .map_or((path, None), |(path, query)| (path, Some(query)));
    let segments = path.split('/').filter(|_| !path.is_empty());
    let mut options: Words<'_> = segments
        .map(|segment| (OptionNumber::URI_PATH, segment))
        .collect();
    let arguments = query.into_iter().flat_map(|query| query.split('&'));
    options.extend(arguments.map(|argument| (OptionNumber::URI_QUERY, argument)));
    Ok((address(authority)?, options))
}

fn address(authority: &str) -> Result<SocketAddr, Failure> {
    let mut addresses = authority.to_socket_addrs()?;
    Ok(addresses.next().ok_or("the host has no address")?)
}
