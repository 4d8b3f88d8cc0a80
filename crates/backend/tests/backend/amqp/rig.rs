//! Plans with a peer of AMQP, messages of its devices, and consumers.

use std::net::SocketAddr;

use fe2o3_amqp::types::messaging::{ApplicationProperties, Body, Data, Properties};
use muster_backend::amqp_loop;
use muster_plan::{AmqpLogin, Northbound, Plan, Scheme};
use muster_protocol::layer::Plain;
use muster_transport::{ClientSpec, Clients, Own, Peer, throwaway};

use super::peer::{Content, IDENTITY};
use crate::rig::{Rig, Sent, parsed, sent};

/// A broker's queue `readings`, with further keys of the backend.
pub(crate) fn queue(address: SocketAddr, keys: &str) -> Plan {
    parsed(&format!(
        "name: amqp
platform:
  kind: mqtt
  devices: [ 'mqtt://127.0.0.1:1883' ]
  backend: {{ url: 'amqp://{address}', addresses: [ readings ]{keys} }}
fleet: [ {{ name: meters, count: 10, streams: [ {{ name: r, rate: 10/s, payload: {{ size: 64 }} }} ] }} ]
phases: {{ measure: 60s }}
"
    ))
}

/// Hono with devices of tenant t1, with further keys of the backend.
pub(crate) fn hono(address: SocketAddr, keys: &str) -> Plan {
    hono_of(&["t1"], address, keys)
}

/// The same with devices of these tenants.
pub(crate) fn hono_of(tenants: &[&str], address: SocketAddr, keys: &str) -> Plan {
    let commands = match keys.contains("commands") {
        true => ", { kind: command }",
        false => "",
    };
    let fleet = |tenant: &&str| {
        let streams = format!("[ {{ name: r, rate: 10/s }}{commands} ]");
        format!("{{ name: meters-{tenant}, count: 10, tenant: {tenant}, streams: {streams} }}")
    };
    let fleets: Vec<String> = tenants.iter().map(fleet).collect();
    let fleets = fleets.join(", ");
    parsed(&format!(
        "name: amqp
platform:
  kind: hono
  devices: [ 'coap://127.0.0.1:5683' ]
  backend: {{ url: 'amqp://{address}'{keys} }}
fleet: [ {fleets} ]
phases: {{ measure: 60s }}
"
    ))
}

/// A message of a device of the plan, as a platform passes it on.
pub(crate) fn message(plan: &Plan, number: u32) -> Content {
    let Sent { device, scratch } = sent(plan, number);
    let of_device = ApplicationProperties::builder().insert("device_id", device);
    let mut content = data(&scratch.payload);
    content.application_properties = Some(of_device.build());
    content
}

/// A message with this body.
pub(crate) fn data(payload: &[u8]) -> Content {
    Content {
        body: Body::from(Data::from(payload)),
        ..empty()
    }
}

/// Hono's own notification that a device waits for a command.
pub(crate) fn notification() -> Content {
    let media_type = "application/vnd.eclipse-hono-empty-notification";
    let ttd = ApplicationProperties::builder()
        .insert("device_id", "meters-00000001")
        .insert("ttd", 30_i32);
    Content {
        properties: Some(Properties::builder().content_type(media_type).build()),
        application_properties: Some(ttd.build()),
        ..empty()
    }
}

pub(crate) fn empty() -> Content {
    Content {
        header: None,
        delivery_annotations: None,
        message_annotations: None,
        properties: None,
        application_properties: None,
        body: Body::Empty,
        footer: None,
    }
}

pub(crate) fn start(plan: &Plan) -> Rig {
    over(plan, Clients::Plain(Plain))
}

/// A consumer that is up, and whose run has begun.
pub(crate) fn up(plan: &Plan) -> Rig {
    start(plan).begun()
}

/// A consumer over TLS, with the certificate of the peer's authority; `trusts` says that it trusts the peer.
pub(crate) fn over_tls(plan: &Plan, trusts: bool) -> Rig {
    let mut plan = plan.clone();
    plan.backends[0].endpoint.scheme = Scheme::Amqps;
    if let Northbound::Amqp(amqp) = &mut plan.backends[0].northbound {
        amqp.login = AmqpLogin::External;
    }
    let mut spec = ClientSpec::new(Peer::new("127.0.0.1", "127.0.0.1"));
    let stranger = throwaway(&["127.0.0.1".to_owned()]).unwrap().ca;
    let ca = if trusts {
        IDENTITY.ca.clone()
    } else {
        stranger
    };
    (spec.is_tls, spec.tls.ca) = (true, Some(ca));
    let own = Own::new(&IDENTITY.cert, &IDENTITY.key).unwrap();
    over(&plan, Clients::new(&spec, [(0, own)]).unwrap())
}

fn over(plan: &Plan, mut layers: Clients) -> Rig {
    let target = ([127, 0, 0, 1], plan.backends[0].endpoint.port).into();
    Rig::start(plan, target, |spec, mailbox| {
        amqp_loop(spec, &mut layers, None, mailbox)
    })
}
