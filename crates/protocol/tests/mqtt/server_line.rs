//! A server session with its connection's output.

use muster_model::Micros;
use muster_protocol::mqtt::{Accept, Input, Publish, Qos, Refused, Server, ServerLimits, Token};

pub(crate) const NOW: Micros = Micros(1_000_000);
pub(crate) const CONNECT_V311: &[u8] = b"\x10\x0d\x00\x04MQTT\x04\x00\x00\x0a\x00\x01c";
pub(crate) const CONNECT_V5: &[u8] = b"\x10\x0e\x00\x04MQTT\x05\x00\x00\x0a\x00\x00\x01c";

/// The payload of a CONNECT: the client id alone.
pub(crate) const NAME: &[u8] = b"\x00\x01c";

/// A CONNECT of MQTT 5 by its flags, properties and payload.
pub(crate) fn connect(flags: u8, properties: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = 11 + properties.len() + payload.len();
    let mut bytes = vec![0x10, length as u8, 0, 4];
    bytes.extend_from_slice(b"MQTT\x05");
    bytes.extend_from_slice(&[flags, 0, 10, properties.len() as u8]);
    [&bytes[..], properties, payload].concat()
}

/// A server with its connection's output.
pub(crate) struct Line {
    pub(crate) server: Server,
    pub(crate) out: Vec<u8>,
}

impl Line {
    pub(crate) fn new(limits: &ServerLimits) -> Self {
        Self {
            server: Server::new(limits),
            out: Vec::new(),
        }
    }

    pub(crate) fn open(connect: &[u8]) -> Self {
        let limits = ServerLimits {
            receive_maximum: 2,
            ..ServerLimits::default()
        };
        let mut line = Self::new(&limits);
        assert_eq!(line.feed(connect).len(), 1);
        line.server
            .accept(NOW, &Accept::default(), &mut line.out)
            .unwrap();
        line.written();
        line
    }

    /// One whose CONNECT waits for a decision, and which announces nothing of its own.
    pub(crate) fn asked(connect: &[u8]) -> Self {
        let limits = ServerLimits {
            receive_maximum: u16::MAX,
            maximum_packet_size: u32::MAX,
            topic_alias_maximum: 0,
        };
        let mut line = Self::new(&limits);
        let events = line.feed(connect);
        assert!(events[0].starts_with("Connect("), "{events:?}");
        line
    }

    /// A new connection that goes on with this one's session.
    pub(crate) fn resumed(mut self, connect: &[u8]) -> Self {
        let state = self.server.take_session();
        let mut line = Self::new(&ServerLimits::default());
        line.feed(connect);
        line.server.resume(state);
        line.server
            .accept(NOW, &Accept::default(), &mut line.out)
            .unwrap();
        assert_eq!(line.written()[2], 1, "a session is present");
        line
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut input = Input::new(bytes);
        let mut events = Vec::new();
        while let Some(event) = self.server.poll(NOW, &mut input, &mut self.out) {
            events.push(format!("{event:?}"));
        }
        events
    }

    pub(crate) fn deliver(&mut self, token: u32, qos: Qos) -> Result<(), Refused> {
        let publish = Publish {
            qos,
            ..Publish::new("t", b"x")
        };
        self.server.deliver(Token(token), &publish, &mut self.out)
    }

    pub(crate) fn written(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}
