//! The UDP sockets of a plan's devices that speak CoAP.

use muster_model::Micros;
use muster_net::limits;
use muster_plan::{CoapSettings, FleetPlan, Plan, SocketUse, shared_receive_buffer};
use muster_protocol::coap::Transmission;
use serde_json::{Value, json};

/// For the environment of a result, fleet by fleet; none without CoAP.
pub(crate) fn described(plan: &Plan) -> Option<Value> {
    let fleets = with_coap(plan).map(|(fleet, coap)| {
        let lifetime = coap.client.transmission.exchange_lifetime;
        json!({
            "fleet": fleet.name,
            "links": fleet.links,
            "sockets": fleet.sockets(),
            "exchange_lifetime_s": lifetime.as_secs_f64(),
            "standard_exchange_lifetime_s": standard_lifetime(coap).as_secs_f64(),
        })
    });
    let fleets: Vec<Value> = fleets.collect();
    (!fleets.is_empty()).then(|| Value::Array(fleets))
}

/// For `muster check`, fleet by fleet.
pub(crate) fn in_words(plan: &Plan) -> Vec<String> {
    let most = limits::receive_buffer_max();
    with_coap(plan)
        .map(|(fleet, coap)| line(fleet, coap, most))
        .collect()
}

fn line(fleet: &FleetPlan, coap: &CoapSettings, most: Option<u64>) -> String {
    let (name, links, sockets) = (&fleet.name, fleet.links, fleet.sockets());
    let lifetime = coap.client.transmission.exchange_lifetime;
    let each = match coap.sockets {
        SocketUse::Own => {
            return format!(
                "sockets of fleet `{name}`: {sockets}, one a link; each has 65536 message ids in {lifetime}"
            );
        }
        SocketUse::SharedEndpoint { links } | SocketUse::SharedPort { links } => links,
    };
    let wanted = shared_receive_buffer(each) as u64;
    let granted = match most {
        Some(most) if most < wanted => format!("; the kernel grants {} KiB", most >> 10),
        _ => String::new(),
    };
    format!(
        "sockets of fleet `{name}`: {sockets} for {links} links, {each} at the most on one, so that \
         65536 message ids last for {lifetime}; receive buffers of {} KiB{granted}",
        wanted >> 10
    )
}

fn with_coap(plan: &Plan) -> impl Iterator<Item = (&FleetPlan, &CoapSettings)> {
    plan.fleets
        .iter()
        .filter_map(|fleet| Some((fleet, fleet.client.coap()?)))
}

/// The time that RFC 7252 section 4.8.2 derives from the others.
fn standard_lifetime(coap: &CoapSettings) -> Micros {
    let own = &coap.client.transmission;
    Transmission::of(own.ack_timeout, own.ack_random_factor, own.max_retransmit).exchange_lifetime
}
