//! The threads of device links, by what lies between their sockets and their sessions.

use std::net::SocketAddr;
use std::sync::Arc;

use muster_device::{Coap, Mqtt, SharedSockets};
use muster_fleet::{Datagrams, Lines, Secured, ShardSpec, Streams, shard_loop};
use muster_monitor::Role;
use muster_transport::{AwsLc, Clients};

use super::{Agent, AgentError, Office};
use crate::LinkLines;

impl Agent {
    /// Starts the links. The kind of line is decided once, so that a link pays for its own only.
    pub(super) fn start_links(
        &mut self,
        place: (Role, u16),
        office: Office<'_>,
        work: (ShardSpec, Vec<SocketAddr>),
        lines: LinkLines,
    ) -> Result<(), AgentError> {
        match lines {
            LinkLines::Datagrams => self.start_shard::<Coap, _>(place, office, work, Datagrams),
            LinkLines::Secured(certificates) => {
                let lines = Secured::new(Arc::clone(&work.0.plan), AwsLc::new(), certificates);
                self.start_shard::<Coap, _>(place, office, work, lines)
            }
            LinkLines::Streams(layers) => match *layers {
                Clients::Plain(on) => self.start_shard::<Mqtt, _>(place, office, work, Streams(on)),
                Clients::WebSocket(on) => {
                    self.start_shard::<Mqtt, _>(place, office, work, Streams(on))
                }
                Clients::Tls(on) => self.start_shard::<Mqtt, _>(place, office, work, Streams(on)),
                Clients::Both(on) => self.start_shard::<Mqtt, _>(place, office, work, Streams(on)),
            },
        }
    }

    fn start_shard<P, L>(
        &mut self,
        place: (Role, u16),
        office: Office<'_>,
        (spec, targets): (ShardSpec, Vec<SocketAddr>),
        lines: L,
    ) -> Result<(), AgentError>
    where
        P: SharedSockets<Settings: Send + Sync, State: Send, Key: Send, Unfit: Send>
            + Send
            + 'static,
        L: Lines<Line: Send> + Send + 'static,
    {
        self.start_thread(place, office, move |(writer, mailbox)| {
            Ok(shard_loop::<P, L>(&spec, targets, lines, writer, mailbox)?)
        })
    }
}
