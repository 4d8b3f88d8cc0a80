//! The CoAP of a plan's fleets.

use std::sync::Arc;

use muster_device::{Coap, CoapSettings, SocketUse};
use muster_protocol::coap::ClientSettings;
use muster_scenario::{ClientPlan, FleetPlan, Plan, Sockets};

use super::Protocol;

impl Protocol for Coap {
    fn settings(plan: &Plan, fleet: &FleetPlan) -> Option<CoapSettings> {
        let limit = plan.receive_limit();
        match &fleet.client {
            ClientPlan::Mqtt(_) => None,
            ClientPlan::Coap(coap) => Some(CoapSettings {
                client: Arc::new(ClientSettings {
                    body_max: limit,
                    ..coap.settings()
                }),
                sockets: match coap.sockets {
                    Sockets::PerDevice => SocketUse::Own,
                    Sockets::OneEndpoint { links } => SocketUse::SharedEndpoint { links },
                    Sockets::ByConnectionId { links } => SocketUse::SharedPort { links },
                },
            }),
        }
    }
}
