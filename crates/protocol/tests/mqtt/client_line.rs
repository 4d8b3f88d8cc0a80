//! A client session with its connection's output.

use muster_model::Micros;
use muster_protocol::mqtt::packet::Packet;
use muster_protocol::mqtt::{
    Client, ClientLimits, Connect, Input, Properties, Property, Publish, Qos, Refused, Token,
    Version,
};

pub(crate) const NOW: Micros = Micros(1_000_000);

/// A client with its connection's output.
pub(crate) struct Line {
    pub(crate) client: Client,
    pub(crate) out: Vec<u8>,
}

impl Line {
    pub(crate) fn new(version: Version, connect: &Connect<'_>) -> Self {
        let mut client = Client::new(version, &ClientLimits::default());
        let mut out = Vec::new();
        client.connect(NOW, connect, &mut out).unwrap();
        out.clear();
        Self { client, out }
    }

    /// Connected, with these properties in the CONNACK.
    pub(crate) fn open(version: Version, properties: &[Property<'_>]) -> Self {
        let connect = Connect {
            clean_start: false,
            ..Connect::new("c")
        };
        let mut line = Self::new(version, &connect);
        let event = line.connack(version, false, properties);
        assert!(event.starts_with("Connected"), "{event}");
        line
    }

    pub(crate) fn connack(
        &mut self,
        version: Version,
        present: bool,
        properties: &[Property<'_>],
    ) -> String {
        let properties = Properties::new(properties);
        let connack = muster_protocol::mqtt::packet::Connack {
            session_present: present,
            code: 0,
            properties,
        };
        let mut bytes = Vec::new();
        Packet::Connack(connack)
            .encode(version, &mut bytes)
            .unwrap();
        self.feed(&bytes).join(" ")
    }

    /// The transport ends and a new one is opened; the server keeps the session or not.
    pub(crate) fn reconnect(&mut self, present: bool, properties: &[Property<'_>]) -> String {
        self.client.closed();
        let connect = Connect {
            clean_start: false,
            ..Connect::new("c")
        };
        self.out.clear();
        self.client.connect(NOW, &connect, &mut self.out).unwrap();
        self.out.clear();
        self.connack(self.client.version(), present, properties)
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        self.feed_at(NOW, bytes)
    }

    pub(crate) fn feed_at(&mut self, now: Micros, bytes: &[u8]) -> Vec<String> {
        let mut input = Input::new(bytes);
        let mut events = Vec::new();
        while let Some(event) = self.client.poll(now, &mut input, &mut self.out) {
            events.push(format!("{event:?}"));
        }
        events
    }

    pub(crate) fn publish(&mut self, token: u32, qos: Qos) -> Result<(), Refused> {
        let publish = Publish {
            qos,
            ..Publish::new("t", b"x")
        };
        self.client
            .publish(NOW, Token(token), &publish, &mut self.out)
    }

    pub(crate) fn republish(&mut self, token: u32, qos: Qos) -> Result<(), Refused> {
        let publish = Publish {
            qos,
            ..Publish::new("t", b"x")
        };
        self.client
            .republish(NOW, Token(token), &publish, &mut self.out)
    }

    pub(crate) fn written(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }
}
