//! The CoAP of a plan's fleets.

use std::sync::Arc;

use muster_device::{Coap, CoapSettings, SocketUse};
use muster_plan::{ClientPlan, FleetPlan, Plan, Sockets};
use muster_protocol::coap::ClientSettings;

use super::Protocol;

impl Protocol for Coap {
    fn settings(plan: &Plan, fleet: &FleetPlan) -> Option<CoapSettings> {
        let ClientPlan::Coap(coap) = &fleet.client else {
            return None;
        };
        Some(CoapSettings {
            client: Arc::new(ClientSettings {
                body_max: plan.receive_limit(),
                ..coap.settings()
            }),
            sockets: match coap.sockets {
                Sockets::PerDevice => SocketUse::Own,
                Sockets::OneEndpoint { links } => SocketUse::SharedEndpoint { links },
                Sockets::ByConnectionId { links } => SocketUse::SharedPort { links },
            },
        })
    }
}
