//! Asks an address of CoAP for a sign of life, and over DTLS for a session, as a device would.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use muster_model::Micros;
use muster_net::Clock;
use muster_plan::PlatformPlan;
use muster_protocol::coap::{Client, ClientEvent, ClientSettings, Ticket};
use muster_protocol::dtls::{
    Certificates, Context, Datagrams, Dtls, Event, Fault, Incoming, Opening, Psk, Settings,
};
use muster_transport::AwsLc;

use crate::probe::Answer;

/// The one ping that is open.
const TICKET: Ticket = Ticket { lane: 0, name: 0 };
/// More than a datagram of a handshake has.
const DATAGRAM_MAX: usize = 1 << 14;

/// Whom a device asks for, how it proves who it is, and whether it shares its socket, so that it needs a
/// connection id.
pub(crate) enum Caller<'a> {
    /// Over UDP as it is.
    Plain,
    /// By an identity and the key that goes with it.
    Shared {
        identity: &'a [u8],
        key: &'a [u8],
        needs_id: bool,
    },
    /// By its certificate if it has one; the server's must be trusted and have this name.
    Certified {
        server: &'a str,
        certificates: &'a dyn Certificates,
        needs_id: bool,
    },
}

/// A socket towards one address, and the time that is left.
struct Line<'a> {
    platform: &'a PlatformPlan,
    socket: UdpSocket,
    clock: Clock,
    begun: Micros,
    end: Micros,
}

/// Asks at an address of a platform, for so long at the most.
pub(crate) fn ping(
    (platform, address): (&PlatformPlan, SocketAddr),
    at_most: Micros,
    caller: &Caller<'_>,
) -> Answer {
    let asked = Line::to((platform, address), at_most).and_then(|line| match caller {
        Caller::Plain => line.sign_of_life(),
        Caller::Shared { .. } | Caller::Certified { .. } => line.session(caller),
    });
    asked.unwrap_or_else(|error| {
        let is_closed = error.kind() == ErrorKind::ConnectionRefused;
        Answer::Silent(match is_closed {
            true => "nobody listens there".to_owned(),
            false => error.to_string(),
        })
    })
}

impl<'a> Line<'a> {
    fn to(
        (platform, address): (&'a PlatformPlan, SocketAddr),
        at_most: Micros,
    ) -> io::Result<Self> {
        let any = match address {
            SocketAddr::V4(_) => "0.0.0.0:0",
            SocketAddr::V6(_) => "[::]:0",
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(address)?;
        let clock = Clock::start();
        let begun = clock.now();
        Ok(Self {
            platform,
            socket,
            clock,
            begun,
            end: begun + at_most,
        })
    }

    fn took(&self) -> Answer {
        Answer::Taken(self.clock.now() - self.begun)
    }

    /// The next datagram; none if there is none until an instant.
    fn receive<'b>(&self, until: Micros, room: &'b mut [u8]) -> io::Result<Option<&'b mut [u8]>> {
        let left = until - self.clock.now();
        // No time at all would be for ever.
        let left = Duration::from_micros(left.get().max(1_000));
        self.socket.set_read_timeout(Some(left))?;
        match self.socket.recv(room) {
            Ok(length) => Ok(Some(&mut room[..length])),
            Err(error) if is_silence(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn sign_of_life(&self) -> io::Result<Answer> {
        let seed = self.clock.wall_ms_at_t0();
        let mut client = Client::new(Arc::new(ClientSettings::default()), seed);
        let (mut out, mut room) = (Vec::new(), [0; DATAGRAM_MAX]);
        // A new session has room for one.
        let _ = client.ping(self.clock.now(), TICKET, &mut out);
        loop {
            if !out.is_empty() {
                self.socket.send(&out)?;
                out.clear();
            }
            let deadline = client.deadline().filter(|_| self.clock.now() < self.end);
            let Some(again) = deadline else {
                return Ok(Answer::Silent("no answer to a ping of CoAP".to_owned()));
            };
            let Some(datagram) = self.receive(again.min(self.end), &mut room)? else {
                client.wake(self.clock.now(), &mut out);
                continue;
            };
            let event = client.receive(self.clock.now(), datagram, &mut out);
            if let Some(ClientEvent::Pong { .. }) = event {
                return Ok(self.took());
            }
            let what = "it answered a ping of CoAP with something else than a reset";
            return Ok(Answer::Nonsense(what.to_owned()));
        }
    }

    fn session(&self, caller: &Caller<'_>) -> io::Result<Answer> {
        let (mut crypto, settings) = (AwsLc::new(), Settings::default());
        let (opening, needs_id, certificates) = match caller {
            Caller::Plain => (Opening::default(), false, None),
            Caller::Shared {
                identity,
                key,
                needs_id,
            } => (by_key(identity, key), *needs_id, None),
            Caller::Certified {
                server,
                certificates,
                needs_id,
            } => (for_server(server), *needs_id, Some(*certificates)),
        };
        let opening = Opening {
            connection_id: needs_id.then_some(b"muster"),
            needs_connection_id: needs_id,
            ..opening
        };
        let mut context = Context {
            crypto: &mut crypto,
            settings: &settings,
            certificates,
            keys: None,
            sessions: None,
        };
        let (mut out, mut room) = (Datagrams::new(), [0; DATAGRAM_MAX]);
        let mut dtls = Dtls::client(self.clock.now(), &opening, &mut context, &mut out);
        loop {
            self.send(&mut out)?;
            let now = self.clock.now();
            if now >= self.end {
                return Ok(self.no_handshake(Fault::TimedOut));
            }
            let until = dtls.deadline().map_or(self.end, |at| at.min(self.end));
            let event = match self.receive(until, &mut room)? {
                Some(datagram) => {
                    let mut incoming = Incoming::new(datagram);
                    dtls.poll(self.clock.now(), &mut context, &mut incoming, &mut out)
                }
                None => dtls.expire(self.clock.now(), &mut context, &mut out),
            };
            match event {
                Some(Event::Connected(_)) => {
                    dtls.close(&mut out);
                    self.send(&mut out)?;
                    return Ok(self.took());
                }
                Some(Event::Failed(fault)) => {
                    self.send(&mut out)?;
                    return Ok(self.no_handshake(fault));
                }
                Some(Event::Closed) => {
                    return Ok(self.no_handshake(Fault::ClosedEarly));
                }
                Some(Event::Data(_)) | None => {}
            }
        }
    }

    fn no_handshake(&self, fault: Fault) -> Answer {
        let remedy = muster_agent::remedy(fault, self.platform);
        Answer::NoHandshake(format!("{fault}{remedy}"))
    }

    fn send(&self, out: &mut Datagrams) -> io::Result<()> {
        for datagram in out.iter() {
            self.socket.send(datagram)?;
        }
        out.clear();
        Ok(())
    }
}

fn is_silence(error: &io::Error) -> bool {
    [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind())
}

fn by_key<'a>(identity: &'a [u8], key: &'a [u8]) -> Opening<'a> {
    Opening {
        psk: Some(Psk { identity, key }),
        ..Opening::default()
    }
}

fn for_server(name: &str) -> Opening<'_> {
    Opening {
        server_name: Some(name),
        ..Opening::default()
    }
}

#[cfg(test)]
mod tests {
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    /// Answers a ping by changing it so.
    fn peer(answer: fn(&mut [u8])) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("its address");
        std::thread::spawn(move || {
            let mut room = [0; 64];
            let (length, from) = socket.recv_from(&mut room).expect("a ping");
            assert_eq!(room[..2], [0x40, 0x00], "an empty CON");
            answer(&mut room[..length]);
            socket.send_to(&room[..length], from).expect("it is sent");
        });
        address
    }

    fn platform() -> PlatformPlan {
        let source = Source {
            name: "t.yaml",
            text: "name: t\nplatform: { kind: hono, devices: [ 'coap://127.0.0.1' ] }\nfleet: [ { streams: [] } ]\n",
        };
        let plan = parse(source, &Overrides::new(), &NoFiles);
        plan.unwrap_or_else(|problems| panic!("{problems}"))
            .platform
    }

    #[test]
    fn a_reset_is_a_sign_of_life_and_nothing_else_is() {
        let platform = platform();
        let ask = |address| ping((&platform, address), Micros::from_secs(10), &Caller::Plain);
        let reset = peer(|ping| ping[0] = 0x70);
        assert!(matches!(ask(reset), Answer::Taken(_)));
        let reset_of_another = peer(|ping| (ping[0], ping[3]) = (0x70, !ping[3]));
        assert!(matches!(ask(reset_of_another), Answer::Nonsense(_)));
        let other = peer(|ping| ping.copy_from_slice(b"hell"));
        assert!(matches!(ask(other), Answer::Nonsense(_)));
        let closed = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = closed.local_addr().expect("its address");
        drop(closed);
        assert_eq!(
            ask(address),
            Answer::Silent("nobody listens there".to_owned())
        );
    }
}
