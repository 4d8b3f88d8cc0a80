//! Layers between the sockets and the sessions of a plan.

use muster_conduct::{Slice, directory};
use muster_fleet::LinkCertificates;
use muster_load::Template;
use muster_model::mix;
use muster_plan::{
    BackendPlan, Credential, Endpoint, FleetPlan, PemFile, Plan, Scheme, TlsPlan, TlsVersions,
};
use muster_transport::{
    ClientSpec, Clients, DtlsCertificates, Own, Peer, Pem, TlsSpec, TransportError, Versions,
};

/// Name of HTTP over TLS (RFC 7301): a server that speaks more than HTTP wants to know.
const HTTP: &str = "http/1.1";

/// Setting that a link or a backend cannot use.
#[derive(Debug, thiserror::Error)]
pub enum LayersError {
    /// Common settings of the addresses cannot be used.
    #[error("{who}: {error}")]
    Transport {
        /// Owner of the addresses: the devices, or a backend.
        who: String,
        /// Fault of the settings.
        error: TransportError,
    },
    /// A fleet that the addresses of the platform do not fit: no loop would carry it.
    #[error(
        "fleet `{0}` does not speak the protocol of the platform's addresses; give it a scenario of its own"
    )]
    Protocol(String),
    /// A device's certificate or key cannot be used.
    #[error("device `{device}`: {error}")]
    Credential {
        /// The device.
        device: String,
        /// Fault of the certificate or key.
        error: TransportError,
    },
}

/// Kind of line between the sockets of links and their sessions.
#[derive(Debug)]
pub enum LinkLines {
    /// Streams of bytes, with these layers.
    Streams(Box<Clients>),
    /// Datagrams as they are.
    Datagrams,
    /// DTLS, with these certificates.
    Secured(LinkCertificates),
}

/// Returns the lines between the sockets and the sessions of a share of a plan's links.
///
/// # Errors
/// [`LayersError`], which names the device and the file.
pub fn link_lines(plan: &Plan, slice: Slice) -> Result<LinkLines, LayersError> {
    let scheme = plan.platform.scheme();
    let is_other = |fleet: &&FleetPlan| fleet.client.coap().is_some() != scheme.is_coap();
    if let Some(fleet) = plan.fleets.iter().find(is_other) {
        return Err(LayersError::Protocol(fleet.name.clone()));
    }
    if !scheme.is_coap() {
        let own = own_certificates(plan, slice)?;
        let spec = spec(&plan.platform.endpoints, &plan.platform.tls, plan.seed);
        let layers = Clients::new(&spec, own).map_err(of_devices)?;
        return Ok(LinkLines::Streams(Box::new(layers)));
    }
    if !scheme.is_dtls() {
        return Ok(LinkLines::Datagrams);
    }
    Ok(LinkLines::Secured(link_certificates(plan, slice)?))
}

/// By whom servers are judged, and what links show of themselves.
fn link_certificates(plan: &Plan, slice: Slice) -> Result<LinkCertificates, LayersError> {
    let spec = spec(&plan.platform.endpoints, &plan.platform.tls, plan.seed);
    let common = DtlsCertificates::new(None, &spec.tls, None).map_err(of_devices)?;
    let own = own_certificates(plan, slice)?.into_iter();
    let own = own.map(|(link, own)| (link, Box::new(common.of(own)) as _));
    let own = own.collect();
    Ok(LinkCertificates::new(Box::new(common), own))
}

fn of_devices(error: TransportError) -> LayersError {
    LayersError::Transport {
        who: "devices".to_owned(),
        error,
    }
}

/// The links of a share of a plan that show a certificate, with what they show.
fn own_certificates(plan: &Plan, slice: Slice) -> Result<Vec<(u32, Own)>, LayersError> {
    let mut own = Vec::new();
    for fleet in &plan.fleets {
        if let Credential::Certificate { cert, key } = &fleet.credential {
            credentials(plan, fleet, [cert, key], slice, &mut own)?;
        }
    }
    Ok(own)
}

/// Sets up the layers of a backend's consumers; `consumers` are their numbers.
///
/// # Errors
/// [`LayersError`], which names the file.
pub fn consumer_layers(
    plan: &Plan,
    backend: &BackendPlan,
    consumers: impl IntoIterator<Item = u32>,
) -> Result<Clients, LayersError> {
    let make = || {
        let own = backend.tls.own.as_ref();
        let own = own.map(|(cert, key)| Own::new(&pem(cert), &pem(key.expose())));
        let own = own.transpose()?;
        let endpoint = std::slice::from_ref(&backend.endpoint);
        let spec = spec(endpoint, &backend.tls, !plan.seed);
        let consumers = consumers.into_iter();
        Clients::new(
            &spec,
            consumers.filter_map(|number| Some((number, own.clone()?))),
        )
    };
    make().map_err(|error| LayersError::Transport {
        who: format!("backend `{}`", backend.name),
        error,
    })
}

/// The certificates of a fleet's links, as far as a slice has them.
fn credentials(
    plan: &Plan,
    fleet: &FleetPlan,
    paths: [&Template; 2],
    slice: Slice,
    own: &mut Vec<(u32, Own)>,
) -> Result<(), LayersError> {
    let directory = directory(plan, fleet, 0);
    let mut name = String::new();
    let [mut cert, mut key] = [String::new(), String::new()];
    let is_dtls = plan.platform.scheme().is_dtls();
    for link in slice.cut(fleet.first_link.0, fleet.links) {
        let device = fleet.first_device_of(muster_model::LinkId(link));
        fleet.render_link_name(muster_model::LinkId(link), &directory, &mut name);
        directory.render_text(paths[0], device, &name, &mut cert);
        directory.render_text(paths[1], device, &name, &mut key);
        let read = Own::read(&cert, &key).and_then(|own| match is_dtls {
            true => own.for_dtls(&key),
            false => Ok(own),
        });
        let read = read.map_err(|error| LayersError::Credential {
            device: name.clone(),
            error,
        })?;
        own.push((link, read));
    }
    Ok(())
}

fn spec(endpoints: &[Endpoint], tls: &TlsPlan, seed: u64) -> ClientSpec {
    let scheme = endpoints.first().map_or(Scheme::Mqtt, |first| first.scheme);
    let alpn = tls.alpn.clone();
    let peers = endpoints.iter().map(|endpoint| Peer {
        name: tls
            .server_name
            .clone()
            .unwrap_or_else(|| endpoint.host_name().to_owned()),
        authority: endpoint.authority_without_zone(),
        path: endpoint.path.clone(),
    });
    ClientSpec {
        is_tls: scheme.is_tls(),
        is_websocket: scheme.is_websocket(),
        peers: peers.collect(),
        tls: TlsSpec {
            ca: tls.ca.as_ref().map(pem),
            insecure: tls.insecure,
            versions: match tls.versions {
                TlsVersions::Both => Versions::Both,
                TlsVersions::Only12 => Versions::Only12,
                TlsVersions::Only13 => Versions::Only13,
            },
            alpn: alpn.or_else(|| (scheme == Scheme::Wss).then(|| HTTP.to_owned())),
            resumption: tls.resumes(scheme),
        },
        seed: mix(seed, u64::from(u32::from_be_bytes(*b"mask"))),
    }
}

fn pem(file: &PemFile) -> Pem {
    Pem::new(&file.name, file.text.clone())
}

#[cfg(test)]
mod tests {
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    fn plan(platform: &str) -> Plan {
        let text = format!(
            "name: t\nplatform: {{ {platform} }}\nfleet: [ {{ name: a, tenant: t1, streams: [ {{ rate: 1/s }} ] }}, {{ name: b, \
             tenant: t1, streams: [ {{ rate: 1/s }} ] }} ]\nphases: {{ measure: 1s }}\n"
        );
        let (name, text) = ("t.yaml", text.as_str());
        parse(Source { name, text }, &Overrides::default(), &NoFiles).unwrap()
    }

    #[test]
    fn a_fleet_of_another_protocol_is_refused_by_name() {
        let coap = plan("kind: hono, devices: [ 'coap://127.0.0.1' ]");
        let mut mqtt = plan("kind: mqtt, devices: [ 'mqtt://127.0.0.1' ]");
        assert!(link_lines(&coap, Slice::WHOLE).is_ok());
        assert!(link_lines(&mqtt, Slice::WHOLE).is_ok());
        mqtt.fleets[1].client = coap.fleets[1].client.clone();
        let refused = link_lines(&mqtt, Slice::WHOLE).unwrap_err();
        assert!(refused.to_string().contains("fleet `b`"), "{refused}");
    }
}
