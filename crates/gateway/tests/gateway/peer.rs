//! A small MQTT client over a blocking socket that writes down all it sees.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

use muster_gateway::Gateway;
use muster_model::{Micros, Reason};
use muster_net::Clock;
use muster_protocol::mqtt::{
    Client, ClientEvent, ClientLimits, Connect, Filter, Input, Property, Publish, Qos, Subscribe,
    Token, Version, reason,
};

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Micros = Micros::from_secs(20);

/// Something a peer saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Connected {
        present: bool,
    },
    Refused(Reason),
    Accepted {
        token: u32,
        reason: u8,
        at: Micros,
    },
    Rejected {
        token: u32,
        reason: Reason,
    },
    Completed {
        token: u32,
    },
    Answered {
        token: u32,
    },
    Resend {
        token: u32,
    },
    Subscribed {
        codes: Vec<u8>,
    },
    Unsubscribed {
        codes: Vec<u8>,
    },
    Message(Got),
    /// A further authentication succeeded.
    Authenticated,
    Disconnected(Reason),
    Closed,
}

/// A message a peer got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) topic: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) qos: Qos,
    pub(crate) retain: bool,
    pub(crate) dup: bool,
    pub(crate) subscription_ids: Vec<u32>,
    pub(crate) user: Vec<(String, String)>,
    /// All its properties, as they are written in an error message.
    pub(crate) properties: String,
    pub(crate) at: Micros,
}

/// One clock for all peers and devices, so that their instants can be compared.
pub(crate) static CLOCK: LazyLock<Clock> = LazyLock::new(Clock::start);

pub(crate) struct Peer {
    stream: TcpStream,
    pub(crate) client: Client,
    input: Vec<u8>,
    out: Vec<u8>,
    next_token: u32,
    /// Bytes that it puts behind the challenge when it is asked to authenticate.
    pub(crate) secret: &'static [u8],
    /// The client id that the gateway chose.
    pub(crate) assigned: Option<String>,
    pub(crate) seen: Vec<Seen>,
}

impl Peer {
    /// A peer that is connected, with a clean start.
    pub(crate) fn new(addr: SocketAddr, version: Version, client_id: &str) -> Self {
        let peer = Self::open(addr, version, &Connect::new(client_id));
        assert_eq!(peer.seen, [Seen::Connected { present: false }]);
        peer
    }

    /// A peer that got an answer to its CONNECT.
    pub(crate) fn open(addr: SocketAddr, version: Version, connect: &Connect<'_>) -> Self {
        Self::open_secret(addr, version, connect, b"")
    }

    /// The same, and it knows this secret.
    pub(crate) fn open_secret(
        addr: SocketAddr,
        version: Version,
        connect: &Connect<'_>,
        secret: &'static [u8],
    ) -> Self {
        let client = Client::new(version, &ClientLimits::default());
        Self::open_with(addr, client, secret, connect)
    }

    /// The same session on a new connection.
    pub(crate) fn reopen(mut self, addr: SocketAddr, connect: &Connect<'_>) -> Self {
        self.client.closed();
        Self::open_with(addr, self.client, self.secret, connect)
    }

    fn open_with(
        addr: SocketAddr,
        client: Client,
        secret: &'static [u8],
        connect: &Connect<'_>,
    ) -> Self {
        let stream = TcpStream::connect(addr).expect("the gateway listens");
        stream
            .set_read_timeout(Some(Duration::from_millis(5)))
            .expect("a time-out");
        stream.set_nodelay(true).expect("no delay");
        let mut peer = Self {
            stream,
            client,
            input: Vec::new(),
            out: Vec::new(),
            next_token: 1_000,
            secret,
            assigned: None,
            seen: Vec::new(),
        };
        peer.client
            .connect(peer.now(), connect, &mut peer.out)
            .expect("a fresh client");
        peer.write();
        peer.until("answer to CONNECT", |seen| !seen.is_empty());
        peer
    }

    pub(crate) fn now(&self) -> Micros {
        CLOCK.now()
    }

    /// Publishes and gives the token.
    pub(crate) fn publish(&mut self, topic: &str, payload: &[u8], qos: Qos) -> u32 {
        self.send(&Publish {
            qos,
            ..Publish::new(topic, payload)
        })
    }

    pub(crate) fn send(&mut self, publish: &Publish<'_>) -> u32 {
        self.next_token += 1;
        let (now, token) = (self.now(), Token(self.next_token));
        self.client
            .publish(now, token, publish, &mut self.out)
            .expect("it may be published");
        self.write();
        token.0
    }

    pub(crate) fn subscribe(&mut self, filter: &str, qos: Qos) {
        let codes = self.ask([Filter::new(filter, qos)], None);
        assert_eq!(codes, [qos.bits()]);
    }

    /// Subscribes and gives the codes of the answer.
    pub(crate) fn ask<const N: usize>(
        &mut self,
        filters: [Filter<'_>; N],
        subscription_id: Option<u32>,
    ) -> Vec<u8> {
        let subscribe = Subscribe {
            id: 1,
            filters: &filters,
            subscription_id,
            user_properties: &[],
        };
        self.client
            .subscribe(self.now(), &subscribe, &mut self.out)
            .expect("connected");
        self.write();
        let before = self.codes().len();
        self.until("SUBACK", |seen| {
            seen.iter()
                .filter(|event| matches!(event, Seen::Subscribed { .. }))
                .count()
                > before
        });
        self.codes().pop().expect("it came")
    }

    fn codes(&self) -> Vec<Vec<u8>> {
        let codes = |event: &Seen| {
            if let Seen::Subscribed { codes } = event {
                Some(codes.clone())
            } else {
                None
            }
        };
        self.seen.iter().filter_map(codes).collect()
    }

    pub(crate) fn unsubscribe(&mut self, filter: &str) {
        self.unask(&[filter]);
    }

    /// Ends subscriptions and gives the codes of the answer.
    pub(crate) fn unask(&mut self, filters: &[&str]) -> Vec<u8> {
        self.client
            .unsubscribe(self.now(), 2, filters, &mut self.out)
            .expect("connected");
        self.write();
        let before = self.seen.len();
        let mut codes = None;
        self.until("UNSUBACK", |seen| {
            codes = seen[before..].iter().find_map(|event| {
                if let Seen::Unsubscribed { codes } = event {
                    Some(codes.clone())
                } else {
                    None
                }
            });
            codes.is_some()
        });
        codes.expect("it came")
    }

    /// Authenticates again with what it knows.
    pub(crate) fn reauthenticate(&mut self) {
        self.client
            .reauthenticate(self.now(), b"", &mut self.out)
            .expect("it authenticated before");
        self.write();
    }

    pub(crate) fn resend(&mut self, token: u32, publish: &Publish<'_>) {
        let now = self.now();
        self.client
            .republish(now, Token(token), publish, &mut self.out)
            .expect("in flight");
        self.write();
    }

    /// Says goodbye.
    pub(crate) fn disconnect(mut self) {
        self.client.disconnect(0, &mut self.out);
        self.write();
        self.until("closed", |seen| seen.last() == Some(&Seen::Closed));
    }

    /// Ends the connection without a word. The gateway has noticed once it closes its side.
    pub(crate) fn cut(mut self) {
        self.stream.shutdown(Shutdown::Write).expect("it stands");
        self.until("closed", |seen| seen.last() == Some(&Seen::Closed));
    }

    /// Writes bytes as they are.
    pub(crate) fn write_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("it stands");
    }

    /// Reads until `done`; fails if that takes too long.
    pub(crate) fn until(&mut self, what: &str, mut done: impl FnMut(&[Seen]) -> bool) {
        let give_up = self.now() + PATIENCE;
        while !done(&self.seen) {
            let tail = &self.seen[self.seen.len().saturating_sub(5)..];
            assert!(
                self.now() < give_up,
                "never: {what}; {} seen, {tail:?}",
                self.seen.len()
            );
            self.read();
        }
    }

    /// Reads all that the gateway had sent by now, once it has all that was sent to it: its answer to a request
    /// that changes nothing comes behind them.
    pub(crate) fn catch_up(&mut self) {
        self.unask(&["nobody/has/this"]);
    }

    /// Reads until the gateway has so many subscriptions.
    pub(crate) fn until_subscribed(&mut self, gateway: &Gateway, count: u64) {
        let give_up = self.now() + PATIENCE;
        while gateway.account().subscriptions != count {
            assert!(self.now() < give_up, "never: {count} subscriptions");
            self.read();
        }
    }

    /// Reads for so long.
    pub(crate) fn watch(&mut self, length: Micros) {
        let until = self.now() + length;
        while self.now() < until {
            self.read();
        }
    }

    /// Reads until so many messages came.
    pub(crate) fn messages(&mut self, count: usize) -> Vec<Got> {
        self.until(&format!("{count} messages"), |seen| {
            got(seen).count() >= count
        });
        self.got()
    }

    pub(crate) fn got(&self) -> Vec<Got> {
        got(&self.seen).cloned().collect()
    }

    /// Reads until so many answers of any kind came.
    pub(crate) fn answers(&mut self, count: usize) {
        self.until(&format!("{count} answers"), |seen| {
            seen.iter()
                .filter(|seen| matches!(seen, Seen::Accepted { .. } | Seen::Rejected { .. }))
                .count()
                >= count
        });
    }

    fn write(&mut self) {
        if !self.out.is_empty() {
            // A connection that the gateway closed shows when it is read.
            let _ = self.stream.write_all(&self.out);
            self.out.clear();
        }
    }

    /// One read, at most a millisecond.
    pub(crate) fn read(&mut self) {
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.close(),
            Ok(count) => self.take(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.close(),
        }
    }

    /// Waits until something lies in its socket, and leaves it there.
    pub(crate) fn await_unread(&self) {
        let give_up = self.now() + PATIENCE;
        while !self.stream.peek(&mut [0]).is_ok_and(|count| count > 0) {
            assert!(self.now() < give_up, "nothing came");
        }
    }

    fn close(&mut self) {
        if self.seen.last() != Some(&Seen::Closed) {
            self.seen.push(Seen::Closed);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let now = self.now();
        let mut input = Input::new(&self.input);
        while let Some(event) = self.client.poll(now, &mut input, &mut self.out) {
            if let ClientEvent::Connected(connected) = &event {
                self.assigned = connected.properties.find(assigned).map(str::to_owned);
            }
            if let ClientEvent::Auth(auth) = &event
                && auth.reason == reason::CONTINUE_AUTHENTICATION
            {
                let answer = [auth.data().unwrap_or_default(), self.secret].concat();
                self.client
                    .authenticate(now, &answer, &mut self.out)
                    .expect("it was asked");
            }
            if let Some(seen) = seen(&event, now) {
                self.seen.push(seen);
            }
        }
        let used = input.consumed();
        self.input.drain(..used);
        self.write();
    }
}

fn got(seen: &[Seen]) -> impl Iterator<Item = &Got> {
    seen.iter().filter_map(|event| {
        if let Seen::Message(got) = event {
            Some(got)
        } else {
            None
        }
    })
}

fn assigned(property: Property<'_>) -> Option<&str> {
    if let Property::AssignedClientId(id) = property {
        Some(id)
    } else {
        None
    }
}

fn seen(event: &ClientEvent<'_>, at: Micros) -> Option<Seen> {
    Some(match event {
        ClientEvent::Connected(connected) => Seen::Connected {
            present: connected.session_present,
        },
        ClientEvent::Refused { reason, .. } => Seen::Refused(*reason),
        ClientEvent::Accepted { token, reason } => Seen::Accepted {
            token: token.0,
            reason: *reason,
            at,
        },
        ClientEvent::Rejected { token, reason } => Seen::Rejected {
            token: token.0,
            reason: *reason,
        },
        ClientEvent::Completed { token } => Seen::Completed { token: token.0 },
        ClientEvent::AnsweredLate { token, .. } => Seen::Answered { token: token.0 },
        ClientEvent::Resend { token } => Seen::Resend { token: token.0 },
        ClientEvent::Subscribed { codes, .. } => Seen::Subscribed {
            codes: codes.to_vec(),
        },
        ClientEvent::Unsubscribed { codes, .. } => Seen::Unsubscribed {
            codes: codes.to_vec(),
        },
        ClientEvent::Message(message) => Seen::Message(Got {
            topic: message.topic.to_string(),
            payload: message.payload.to_vec(),
            qos: message.qos,
            retain: message.retain,
            dup: message.dup,
            subscription_ids: message.properties.subscription_ids().collect(),
            user: message
                .properties
                .user()
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .collect(),
            properties: format!("{:?}", message.properties),
            at,
        }),
        ClientEvent::Auth(auth) if auth.reason == reason::SUCCESS => Seen::Authenticated,
        ClientEvent::Disconnected { reason, .. } => Seen::Disconnected(*reason),
        ClientEvent::Malformed(malformed) => panic!("the gateway wrote nonsense: {malformed}"),
        ClientEvent::Pong | ClientEvent::Auth { .. } | ClientEvent::KeepAliveExpired => {
            return None;
        }
    })
}
