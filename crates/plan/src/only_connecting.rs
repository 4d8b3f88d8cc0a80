//! The plan of a check: links and consumers come up, and nothing is due.

use muster_model::{DeviceId, LinkId, Micros};

use muster_platform::Protocol;

use crate::{ClientPlan, Northbound, Plan, Scheme, SocketUse};

/// The most handshakes of a fleet under way at once.
const PENDING_MAX: u32 = 256;
/// The wait for a second try, which no check lasts.
const NO_SECOND_TRY: Micros = Micros::from_secs(365 * 86_400);

impl Plan {
    /// This plan without load: each link connects once, leaves no will, and no platform gets to know of
    /// devices. Consumers join no group of MQTT, and those of AMQP grant no credit. A link of CoAP without security asks for a sign of life.
    pub fn only_connecting(&self) -> Self {
        let mut plan = self.clone();
        let coap = plan.platform.scheme_of(Protocol::Coap);
        let is_plain = !coap.is_some_and(Scheme::is_dtls);
        for fleet in &mut plan.fleets {
            (fleet.reconnect.min, fleet.reconnect.max) = (NO_SECOND_TRY, NO_SECOND_TRY);
            (fleet.connect.lifetime, fleet.offline) = (None, None);
            fleet.connect.pending = fleet.connect.pending.min(PENDING_MAX);
            fleet.is_gateway = false;
            let needed_packet = fleet.largest_packet();
            fleet.client.only_connecting(needed_packet, is_plain);
        }
        for backend in &mut plan.backends {
            // A member of an MQTT group would take messages from the others.
            backend.shared = backend.shared.take().filter(|_| backend.kafka().is_some());
            // So would a receiver from a queue.
            if let Northbound::Amqp(amqp) = &mut backend.northbound {
                amqp.credit = 0;
            }
        }
        plan
    }

    /// This plan with the first links of each fleet alone, at most as many as `most` says of its
    /// protocol; no two share a socket.
    #[must_use]
    pub fn with_first_links(mut self, most: impl Fn(Protocol) -> u32) -> Self {
        let (mut first_device, mut first_link) = (0, 0);
        for fleet in &mut self.fleets {
            fleet.links = fleet.links.min(most(fleet.client.protocol()));
            fleet.devices = fleet
                .devices
                .min(fleet.links.saturating_mul(fleet.devices_per_link));
            fleet.first_device = DeviceId(first_device);
            fleet.first_link = LinkId(first_link);
            for stream in &mut fleet.streams {
                stream.schedule.first_device = fleet.first_device;
                stream.schedule.devices = fleet.devices;
            }
            if let ClientPlan::Coap(coap) = &mut fleet.client
                && let SocketUse::SharedPort { links } = &mut coap.sockets
            {
                *links = 1;
            }
            first_device += fleet.devices;
            first_link += fleet.links;
        }
        self
    }
}

impl SocketUse {
    /// The same use, but with an endpoint for each link.
    pub(crate) const fn apart(self) -> Self {
        match self {
            Self::SharedEndpoint { .. } => Self::Own,
            Self::Own | Self::SharedPort { .. } => self,
        }
    }
}
