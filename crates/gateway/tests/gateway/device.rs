//! A small device over CoAP and a non-blocking socket that writes down all it sees.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use muster_model::Micros;
use muster_protocol::coap::{
    Again, Client, ClientEvent, ClientSettings, Code, ExchangeKey, Opt, OptionNumber, Request,
    Response, Ticket, Transmission, Uint, content_format,
};

use crate::peer::CLOCK;
use crate::wire::Wire;

/// Longer than anything here takes, even on a busy machine.
pub(crate) const PATIENCE: Micros = Micros::from_secs(20);

/// A request of a device.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) method: Code,
    pub(crate) path: String,
    pub(crate) query: &'static str,
    pub(crate) payload: Vec<u8>,
    pub(crate) is_confirmable: bool,
    /// True if it asks for notifications.
    pub(crate) observes: bool,
}

impl Ask {
    pub(crate) fn put(path: &str, payload: &[u8]) -> Self {
        Self {
            method: Code::PUT,
            path: path.to_owned(),
            query: "",
            payload: payload.to_vec(),
            is_confirmable: true,
            observes: false,
        }
    }

    /// Asks to be notified of what is at a path.
    pub(crate) fn observe(path: &str) -> Self {
        Self {
            method: Code::GET,
            observes: true,
            ..Self::put(path, b"")
        }
    }

    pub(crate) fn post(path: &str, payload: &[u8]) -> Self {
        Self {
            method: Code::POST,
            ..Self::put(path, payload)
        }
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) code: Code,
    pub(crate) at: Micros,
    pub(crate) is_separate: bool,
    pub(crate) location: Vec<String>,
    pub(crate) parameters: Vec<String>,
    pub(crate) max_age: Option<u32>,
    pub(crate) payload: Vec<u8>,
}

/// A device that has a socket of its own.
pub(crate) struct Device {
    pub(crate) wire: Wire,
    client: Client,
    asks: Vec<Ask>,
    out: Vec<u8>,
    pub(crate) answers: BTreeMap<u32, Answer>,
    pub(crate) failed: Vec<u32>,
    /// Payloads of the notifications that came.
    pub(crate) notified: Vec<Vec<u8>>,
    pub(crate) acknowledged: Vec<u32>,
    pub(crate) retransmitted: u32,
    /// Datagrams that came.
    pub(crate) came: u32,
    /// The last datagram that went out.
    pub(crate) last: Vec<u8>,
}

impl Device {
    pub(crate) fn new(addr: SocketAddr) -> Self {
        Self::with(addr, Transmission::default())
    }

    pub(crate) fn with(addr: SocketAddr, transmission: Transmission) -> Self {
        Self::over(Wire::plain(addr), transmission)
    }

    /// A device whose session of DTLS is open.
    pub(crate) fn secure(addr: SocketAddr, psk: (&str, &str)) -> Self {
        let wire = Wire::secure(addr, psk, None);
        let mut device = Self::over(wire, Transmission::default());
        device.until("open", |device| device.wire.connected().is_some());
        device
    }

    pub(crate) fn over(wire: Wire, transmission: Transmission) -> Self {
        let settings = ClientSettings {
            transmission,
            nstart: 1_000,
            exchanges_max: 1_000,
            obeys_max_age: false,
            ..ClientSettings::default()
        };
        let seed = u64::from(wire.socket.local_addr().expect("bound").port());
        Self {
            wire,
            client: Client::new(Arc::new(settings), seed),
            asks: Vec::new(),
            out: Vec::new(),
            answers: BTreeMap::new(),
            failed: Vec::new(),
            notified: Vec::new(),
            acknowledged: Vec::new(),
            retransmitted: 0,
            came: 0,
            last: Vec::new(),
        }
    }

    pub(crate) fn now() -> Micros {
        CLOCK.now()
    }

    /// Asks, and gives the number under which the answer will be.
    pub(crate) fn ask(&mut self, ask: Ask) -> u32 {
        let name = self.asks.len() as u32;
        self.asks.push(ask);
        let ticket = Ticket { slot: 0, name };
        let observes = self.asks[name as usize].observes;
        self.render(name, |client, request, out| {
            let sent = match observes {
                true => client.observe(CLOCK.now(), ticket, request, out),
                false => client.request(CLOCK.now(), ticket, request, out),
            };
            sent.expect("it may ask");
        });
        name
    }

    /// Asks and waits for the answer.
    pub(crate) fn answer(&mut self, ask: Ask) -> Answer {
        let name = self.ask(ask);
        self.until("an answer", |device| device.answers.contains_key(&name));
        self.answers[&name].clone()
    }

    /// Knows of no request any more.
    pub(crate) fn forget_all(&mut self) {
        self.client.drop_all(|_| {});
    }

    /// True if each request was answered or given up.
    pub(crate) fn is_done(&self) -> bool {
        self.answers.len() + self.failed.len() == self.asks.len()
    }

    /// Sends a datagram as it is.
    pub(crate) fn send(&mut self, datagram: &[u8]) {
        self.wire.send(datagram);
    }

    /// Reads until `done`; fails if that takes too long.
    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&Self) -> bool) {
        let give_up = Self::now() + PATIENCE;
        while !done(self) {
            assert!(Self::now() < give_up, "never: {what}; {:?}", self.answers);
            self.read();
        }
    }

    /// Reads a datagram if one has come, and does what is due.
    pub(crate) fn read(&mut self) {
        self.read_one();
        let is_due = self.client.deadline().is_some_and(|due| due <= CLOCK.now());
        if is_due {
            self.take(|client, out| client.wake(CLOCK.now(), out));
        }
    }

    /// Reads all that has come.
    pub(crate) fn read_all(&mut self) {
        while self.read_one() {}
    }

    fn read_one(&mut self) -> bool {
        let Some(message) = self.wire.receive() else {
            return false;
        };
        self.came += 1;
        self.take(|client, out| client.receive(CLOCK.now(), &message, out));
        true
    }

    fn take<'d>(
        &mut self,
        event: impl FnOnce(&mut Client, &mut Vec<u8>) -> Option<ClientEvent<'d>>,
    ) {
        let mut out = std::mem::take(&mut self.out);
        let event = event(&mut self.client, &mut out);
        self.out = out;
        self.flush();
        match event {
            Some(ClientEvent::Response(response)) => self.note(&response),
            Some(ClientEvent::Notification(response)) => {
                self.notified.push(response.payload.to_vec());
            }
            Some(ClientEvent::Again { ticket, key, cause }) => {
                self.retransmitted += u32::from(cause == Again::Retransmission);
                self.again(ticket.name, key);
            }
            Some(ClientEvent::Part(response)) => self.again(response.ticket.name, response.key),
            Some(ClientEvent::Acknowledged { ticket, .. }) => {
                self.acknowledged.push(ticket.name);
            }
            Some(ClientEvent::Failed { ticket, .. }) => self.failed.push(ticket.name),
            Some(
                ClientEvent::AnsweredLate { .. }
                | ClientEvent::Pong { .. }
                | ClientEvent::Duplicate { .. }
                | ClientEvent::PingedAgain,
            )
            | None => {}
        }
    }

    fn again(&mut self, name: u32, key: ExchangeKey) {
        self.render(name, |client, request, out| {
            client
                .again(CLOCK.now(), key, request, out)
                .expect("it is due");
        });
    }

    fn note(&mut self, response: &Response<'_>) {
        let texts = |number| {
            let all = response.options.all(number);
            let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
            all.map(text).collect()
        };
        let answer = Answer {
            code: response.code,
            at: CLOCK.now(),
            is_separate: response.is_separate,
            location: texts(OptionNumber::LOCATION_PATH),
            parameters: texts(OptionNumber::LOCATION_QUERY),
            max_age: response.options.uint(OptionNumber::MAX_AGE),
            payload: response.payload.to_vec(),
        };
        self.answers.insert(response.ticket.name, answer);
    }

    fn render(&mut self, name: u32, with: impl FnOnce(&mut Client, &Request<'_>, &mut Vec<u8>)) {
        let ask = &self.asks[name as usize];
        let json = Uint::of(u32::from(content_format::JSON));
        let path = ask.path.split('/');
        let observe = ask.observes.then_some(Opt::new(OptionNumber::OBSERVE, &[]));
        let path = path.map(|segment| Opt::text(OptionNumber::URI_PATH, segment));
        let mut options: Vec<Opt<'_>> = observe.into_iter().chain(path).collect();
        if !ask.payload.is_empty() {
            options.push(Opt::new(OptionNumber::CONTENT_FORMAT, &json));
        }
        let parameters = ask.query.split('&').filter(|text| !text.is_empty());
        options.extend(parameters.map(|text| Opt::text(OptionNumber::URI_QUERY, text)));
        let request = Request {
            is_confirmable: ask.is_confirmable,
            ..Request::new(ask.method, &options, &ask.payload)
        };
        with(&mut self.client, &request, &mut self.out);
        self.flush();
    }

    fn flush(&mut self) {
        if !self.out.is_empty() {
            self.wire.send(&self.out);
            self.last = std::mem::take(&mut self.out);
        }
    }
}
