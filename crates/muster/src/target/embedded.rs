//! The embedded gateway's listeners, keys and certificate, from the plan.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use anyhow::Result;
use muster_conduct::directory;
use muster_gateway::{
    GatewayConfig, GatewayDtls, GatewayTls, ListenAddresses, User, WebhookConfig,
};
use muster_model::LinkId;
use muster_plan::{
    Credential, Endpoint, FleetPlan, PemFile, Plan, Scheme, WebhookNorthbound, WebhookProof,
};
use muster_platform::Protocol;
use muster_transport::throwaway;

use super::{Addresses, DeviceAddress, GatewayProcess};

/// Name of the gateway's address for MQTT, over whatever it is carried.
const BROKER: &str = "mqtt";
/// Name of its address for calls of the REST API.
pub(super) const MANAGEMENT: &str = "management";

/// The listeners of the embedded gateway, and its users.
pub(super) fn listening(plan: &Plan, found: &Addresses, own: Option<GatewayTls>) -> GatewayConfig {
    let devices = &found.devices;
    let address_of = |protocol| {
        let mut devices = devices.iter();
        let found = devices.find(|(of, _)| *of == protocol);
        found.map(|(_, address)| *address)
    };
    let is_carried = |protocol, by: fn(Scheme) -> bool| {
        let scheme = plan.platform.scheme_of(protocol);
        scheme.is_some_and(by)
    };
    let mut backends = plan.backends.iter();
    let is_amqps = backends.any(|it| it.amqp().is_some() && it.endpoint.scheme.is_tls());
    let amqps = own.clone().filter(|_| is_amqps);
    // Devices alone come to the other addresses over TLS.
    let own = own.map(|tls| GatewayTls {
        needs_client_cert: tls.client_ca.is_some(),
        ..tls
    });
    // If no device speaks MQTT, the business application has a port of its own.
    let northbound = || SocketAddr::new(devices[0].1.ip(), 0);
    let broker = address_of(Protocol::Mqtt).unwrap_or_else(northbound);
    let mut listen = ListenAddresses::new(broker);
    for endpoint in &plan.platform.endpoints {
        let protocol = endpoint.scheme.protocol();
        listen = listen.with(listener_of(endpoint), address_of(protocol));
    }
    for (backend, addresses) in plan.backends.iter().zip(&found.backends) {
        if backend.kind().has_gateway_listener {
            let name = backend.endpoint.scheme.name();
            listen = listen.with(name, addresses.first().copied());
        }
    }
    GatewayConfig {
        listen,
        coaps: is_carried(Protocol::Coap, Scheme::is_dtls).then_some(GatewayDtls {
            connection_id: true,
            secret: None,
            certificate: own.clone(),
        }),
        https: own.filter(|_| is_carried(Protocol::Http, Scheme::is_tls)),
        amqps,
        users: users(plan),
        ..GatewayConfig::default()
    }
}

/// The name of the gateway's address for the devices of an endpoint.
fn listener_of(endpoint: &Endpoint) -> &'static str {
    match endpoint.scheme.protocol().is_applications {
        true => BROKER,
        false => endpoint.scheme.name(),
    }
}

/// The webhook to which the embedded gateway pushes; none where no backend is one.
pub(super) fn pushed_to(plan: &Plan, found: &Addresses) -> Option<WebhookConfig> {
    let mut backends = plan.backends.iter();
    let (backend, webhook) = backends.find_map(|it| Some((it, it.webhook()?)))?;
    let secret = backend.password.as_ref().map_or(&[][..], |it| it.expose());
    let secret = String::from_utf8_lossy(secret);
    let proof = webhook.proof.as_ref().and_then(|proof| match proof {
        WebhookProof::Secret(header) if header == WebhookNorthbound::HEADER => {
            Some((header.clone(), format!("Bearer {secret}")))
        }
        WebhookProof::Secret(header) => Some((header.clone(), secret.into_owned())),
        // The scenario's checks let none through.
        WebhookProof::Basic => None,
    });
    Some(WebhookConfig {
        address: *found.own.first()?,
        host: backend.endpoint.http_host(),
        path: backend.endpoint.path.clone(),
        topic_header: webhook.topic.clone(),
        proof,
    })
}

/// The addresses of the embedded gateway for devices and consumers; webhooks keep theirs.
pub(super) fn met_at(plan: &Plan, gateways: &[GatewayProcess], found: &Addresses) -> Addresses {
    let at = |name: &str| -> Vec<SocketAddr> {
        let addresses = gateways.iter().map(|process| process.gateway.addresses());
        addresses.filter_map(|at| at.get(name)).collect()
    };
    let endpoints = plan.platform.endpoints.iter();
    let devices = endpoints.flat_map(|endpoint| {
        let protocol = endpoint.scheme.protocol();
        let addresses = at(listener_of(endpoint)).into_iter();
        addresses.map(move |at| (protocol, at))
    });
    let devices = devices.collect();
    let own = |number: usize| found.backends.get(number).cloned().unwrap_or_default();
    let backends = plan.backends.iter().enumerate();
    let backends = backends.map(|(number, backend)| {
        let kind = backend.kind();
        if kind.listens {
            own(number)
        } else if kind.only_commands {
            at(MANAGEMENT)
        } else if kind.has_gateway_listener {
            at(backend.endpoint.scheme.name())
        } else {
            at(BROKER)
        }
    });
    Addresses {
        devices,
        backends: backends.collect(),
        own: found.own.clone(),
    }
}

/// The users of the embedded gateway: none, so that it lets everybody in, unless links share a key with it.
/// Then whoever logs in with a password has to be known too.
fn users(plan: &Plan) -> Vec<User> {
    let is_shared = |fleet: &FleetPlan| matches!(fleet.credential, Credential::Psk { .. });
    if !plan.fleets.iter().any(is_shared) {
        return Vec::new();
    }
    let mut users = Vec::new();
    for fleet in &plan.fleets {
        let directory = directory(plan, fleet, 0);
        let mut link_name = String::new();
        for link in fleet.first_link.0..fleet.first_link.0 + fleet.links {
            let device = fleet.first_device_of(LinkId(link));
            fleet.render_link_name(LinkId(link), &directory, &mut link_name);
            let (name, secret) = match &fleet.credential {
                Credential::Psk { identity, secret } => {
                    let mut octets = Vec::new();
                    directory.render_octets(identity, device, &link_name, &mut octets);
                    // An identity that is no text is no device's to the gateway, as it is to Hono.
                    (String::from_utf8(octets).ok(), secret)
                }
                Credential::Password { user, secret } => {
                    let mut name = String::new();
                    directory.render_text(user, device, &link_name, &mut name);
                    (Some(name), secret)
                }
                Credential::None | Credential::Token { .. } | Credential::Certificate { .. } => {
                    break;
                }
            };
            let mut password = Vec::new();
            directory.render_octets(secret.expose(), device, &link_name, &mut password);
            users.extend(name.map(|name| User { name, password }));
        }
    }
    users
}

/// The endpoints at which the plan's applications over AMQP come to the embedded gateway.
fn amqp_endpoints(plan: &Plan) -> impl Iterator<Item = &Endpoint> {
    let backends = plan.backends.iter().filter(|it| it.amqp().is_some());
    backends.map(|backend| &backend.endpoint)
}

/// The embedded gateway's certificate, made for this run, which then trusts it.
pub(super) fn own_tls(plan: &mut Plan, devices: &[DeviceAddress]) -> Result<Option<GatewayTls>> {
    let shares_no_key = |fleet: &FleetPlan| {
        let is_secured = plan.scheme_of(fleet).is_dtls();
        is_secured && !matches!(fleet.credential, Credential::Psk { .. })
    };
    let is_dtls = plan.fleets.iter().any(shares_no_key);
    let devices_at = plan.platform.endpoints.iter();
    let is_tls = devices_at
        .chain(amqp_endpoints(plan))
        .any(|endpoint| endpoint.scheme.is_tls());
    if !is_tls && !is_dtls {
        return Ok(None);
    }
    let endpoints = plan.platform.endpoints.iter().chain(amqp_endpoints(plan));
    let hosts = endpoints.map(|endpoint| endpoint.host_name().to_owned());
    let listen = devices.iter().map(|(_, address)| address.ip().to_string());
    let server_name = plan.platform.tls.server_name.clone();
    let names: BTreeSet<String> = hosts.chain(listen).chain(server_name).collect();
    let made = throwaway(&names.into_iter().collect::<Vec<_>>())?;
    let ca = PemFile {
        name: made.ca.name.clone(),
        text: made.ca.text().to_vec(),
    };
    for backend in &mut plan.backends {
        backend.tls.ca = Some(ca.clone());
    }
    plan.platform.tls.ca = Some(ca);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let client_ca = plan.platform.tls.client_ca.as_ref();
    Ok(Some(GatewayTls {
        cert: text(made.cert.text()),
        key: text(made.key.text()),
        client_ca: client_ca.map(|ca| text(&ca.text)),
        // Over TLS consumers come to the same address, and show none.
        needs_client_cert: false,
    }))
}
