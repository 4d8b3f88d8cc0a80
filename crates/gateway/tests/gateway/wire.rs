//! Carrier of a device's messages: UDP, or DTLS over it.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use muster_model::Micros;
use muster_protocol::dtls::{
    Connected, Context, Datagrams, Dtls, Event, Fault, Incoming, Opening, Psk, Settings, Timing,
};
use muster_transport::AwsLc;

use crate::device::Device;

/// Carrier of a device's messages.
pub(crate) struct Wire {
    pub(crate) socket: UdpSocket,
    guard: Option<Guard>,
}

/// A session of DTLS.
struct Guard {
    dtls: Dtls<AwsLc>,
    settings: Settings,
    crypto: AwsLc,
    out: Datagrams,
    connected: Option<Connected>,
    ended: Option<Ended>,
}

/// End of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Closed,
    Failed(Fault),
}

impl Guard {
    fn parts(&mut self) -> (&mut Dtls<AwsLc>, Context<'_, AwsLc>, &mut Datagrams) {
        let context = Context {
            crypto: &mut self.crypto,
            settings: &self.settings,
            certificates: None,
            keys: None,
            sessions: None,
        };
        (&mut self.dtls, context, &mut self.out)
    }

    fn note(&mut self, event: &Event<'_>) {
        match event {
            Event::Connected(connected) => self.connected = Some(*connected),
            Event::Closed => self.ended = Some(Ended::Closed),
            Event::Failed(fault) => self.ended = Some(Ended::Failed(*fault)),
            Event::Data(_) => {}
        }
    }
}

impl Wire {
    pub(crate) fn plain(to: SocketAddr) -> Self {
        Self {
            socket: socket(to),
            guard: None,
        }
    }

    /// Begins a handshake; `connection_id` is what the gateway is to write, where one is offered.
    pub(crate) fn secure(to: SocketAddr, psk: (&str, &str), connection_id: Option<&[u8]>) -> Self {
        Self::secure_by(socket(to), psk, connection_id)
    }

    /// The same by a socket that was used before.
    pub(crate) fn secure_by(
        socket: UdpSocket,
        (identity, key): (&str, &str),
        connection_id: Option<&[u8]>,
    ) -> Self {
        let mut guard = Guard {
            dtls: Dtls::default(),
            settings: Settings {
                timing: Timing {
                    first: Micros::from_millis(200),
                    give_up: Micros::from_secs(2),
                    ..Timing::default()
                },
                ..Settings::default()
            },
            crypto: AwsLc::new(),
            out: Datagrams::new(),
            connected: None,
            ended: None,
        };
        let opening = Opening {
            psk: Some(Psk {
                identity: identity.as_bytes(),
                key: key.as_bytes(),
            }),
            connection_id,
            ..Opening::default()
        };
        let (_, mut context, out) = guard.parts();
        let dtls = Dtls::client(Device::now(), &opening, &mut context, out);
        guard.dtls = dtls;
        let mut wire = Self {
            socket,
            guard: Some(guard),
        };
        wire.flush();
        wire
    }

    /// Result of the handshake; none before, and without DTLS.
    pub(crate) fn connected(&self) -> Option<Connected> {
        self.guard.as_ref()?.connected
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        self.guard.as_ref()?.ended
    }

    /// Says goodbye.
    pub(crate) fn close(&mut self) {
        if let Some(guard) = &mut self.guard {
            guard.dtls.close(&mut guard.out);
        }
        self.flush();
    }

    /// Goes on from another address.
    pub(crate) fn move_away(&mut self) {
        let to = self.socket.peer_addr().expect("connected");
        self.socket = socket(to);
    }

    pub(crate) fn send(&mut self, message: &[u8]) {
        let Some(guard) = &mut self.guard else {
            self.socket.send(message).expect("the gateway listens");
            return;
        };
        let mut record = message.to_vec();
        assert!(guard.dtls.wrap(&mut record, 0), "the session is open");
        self.socket.send(&record).expect("the gateway listens");
    }

    /// The next message, if one comes within a millisecond.
    pub(crate) fn receive(&mut self) -> Option<Vec<u8>> {
        let mut room = vec![0; 2_048];
        let length = self.socket.recv(&mut room).unwrap_or(0);
        room.truncate(length);
        let Some(guard) = &mut self.guard else {
            return (length > 0).then_some(room);
        };
        let mut said = None;
        let (dtls, mut context, out) = guard.parts();
        let due = dtls.deadline().is_some_and(|due| due <= Device::now());
        let expired = due.then(|| dtls.expire(Device::now(), &mut context, out));
        let mut events: Vec<Event<'_>> = expired.flatten().into_iter().collect();
        let mut input = Incoming::new(&mut room);
        while let Some(event) = dtls.poll(Device::now(), &mut context, &mut input, out) {
            events.push(event);
        }
        for event in &events {
            if let Event::Data(plain) = event {
                said = Some(plain.to_vec());
            }
            guard.note(event);
        }
        self.flush();
        said
    }

    fn flush(&mut self) {
        let Some(guard) = &mut self.guard else { return };
        for datagram in guard.out.iter() {
            self.socket.send(datagram).expect("the gateway listens");
        }
        guard.out.clear();
    }
}

fn socket(to: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    socket.connect(to).expect("an address");
    let wait = Some(Duration::from_millis(1));
    socket.set_read_timeout(wait).expect("a time-out");
    socket
}
