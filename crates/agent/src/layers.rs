//! Layers between the sockets and the sessions of a plan.

use std::sync::Arc;

use muster_conduct::{FactWriter, Slice, directory};
use muster_device::{Coap, Http, Mqtt, Session, SharedSockets};
use muster_fleet::{
    Datagrams, LinkCertificates, MakeDriver, Secured, ShardSpec, Streams, datagram_driver,
    stream_driver,
};
use muster_model::{LinkId, mix};
use muster_plan::{
    BackendPlan, Credential, Endpoint, FleetPlan, PemFile, Plan, Scheme, TlsPlan, TlsVersions,
};
use muster_platform::Protocol;
use muster_transport::{
    AwsLc, ClientSpec, Clients, DtlsCertificates, Own, Peer, Pem, ServerSpec, ServerTls, Servers,
    TlsSpec, TransportError, Versions,
};

use crate::{CredentialFaults, Writers};

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
    /// Certificates or keys of devices cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialFaults),
}

/// Makes the driver of the links of a share of a plan that speak a protocol; the writer receives every fact.
type Links = fn(&Plan, Slice, Option<Box<dyn FactWriter>>) -> Result<MakeDriver, LayersError>;

/// The drivers of a protocol's links.
const fn links_of(protocol: Protocol) -> Links {
    match protocol {
        Protocol::Mqtt => streams::<Mqtt>,
        Protocol::Coap => datagrams::<Coap>,
        Protocol::Http => streams::<Http>,
    }
}

/// Makes the drivers of a share of a plan's links, one for each protocol of its fleets. Certificates and
/// keys are read at once.
///
/// # Errors
/// [`LayersError`], which names the device and the file.
pub fn link_drivers(
    plan: &Plan,
    slice: Slice,
    writer: Writers<'_>,
) -> Result<Vec<MakeDriver>, LayersError> {
    let is_used = |protocol: &Protocol| {
        let mut fleets = plan.fleets.iter();
        fleets.any(|fleet| fleet.client.protocol() == *protocol)
    };
    let used = Protocol::ALL.into_iter().filter(is_used);
    used.map(|protocol| links_of(protocol)(plan, slice, writer()))
        .collect()
}

/// Links over TCP. The layers are chosen once, so that a link pays for its own only.
fn streams<P: Session + 'static>(
    plan: &Plan,
    slice: Slice,
    writer: Option<Box<dyn FactWriter>>,
) -> Result<MakeDriver, LayersError> {
    let own = own_certificates(plan, slice, P::PROTOCOL)?;
    let layers = Clients::new(&spec_of(plan, P::PROTOCOL), own).map_err(of_devices)?;
    Ok(match layers {
        Clients::Plain(on) => stream_driver::<P, _>(move |_| Streams(on), writer),
        Clients::WebSocket(on) => stream_driver::<P, _>(move |_| Streams(on), writer),
        Clients::Tls(on) => stream_driver::<P, _>(move |_| Streams(on), writer),
        Clients::Both(on) => stream_driver::<P, _>(move |_| Streams(on), writer),
    })
}

/// Links over UDP, as it is or with DTLS.
fn datagrams<P: SharedSockets + 'static>(
    plan: &Plan,
    slice: Slice,
    writer: Option<Box<dyn FactWriter>>,
) -> Result<MakeDriver, LayersError> {
    if !plan
        .platform
        .scheme_of(P::PROTOCOL)
        .is_some_and(Scheme::is_dtls)
    {
        return Ok(datagram_driver::<P, _>(|_| Datagrams, writer));
    }
    let certificates = link_certificates(plan, slice, P::PROTOCOL)?;
    let lines =
        move |spec: &ShardSpec| Secured::new(Arc::clone(&spec.plan), AwsLc::new(), certificates);
    Ok(datagram_driver::<P, _>(lines, writer))
}

/// The settings of the addresses that a protocol's devices connect to.
fn spec_of(plan: &Plan, protocol: Protocol) -> ClientSpec {
    let endpoints: Vec<&Endpoint> = plan.platform.endpoints_of(protocol).collect();
    spec(&endpoints, &plan.platform.tls, plan.seed)
}

/// Trust anchors for servers, and the certificates of links.
fn link_certificates(
    plan: &Plan,
    slice: Slice,
    protocol: Protocol,
) -> Result<LinkCertificates, LayersError> {
    let spec = spec_of(plan, protocol);
    let common = DtlsCertificates::new(None, &spec.tls, None).map_err(of_devices)?;
    let own = own_certificates(plan, slice, protocol)?.into_iter();
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
fn own_certificates(
    plan: &Plan,
    slice: Slice,
    protocol: Protocol,
) -> Result<Vec<(u32, Own)>, LayersError> {
    let (mut own, mut faults) = (Vec::new(), CredentialFaults::default());
    let fleets = plan.fleets.iter();
    for fleet in fleets.filter(|fleet| fleet.client.protocol() == protocol) {
        let read = credentials(plan, fleet, slice);
        for (link, device, read) in read.into_iter().flatten() {
            match read {
                Ok(read) => own.push((link, read)),
                Err(error) => faults.add(fleet, device, &error),
            }
        }
    }
    faults.into_result()?;
    Ok(own)
}

/// Sets up the layers of a backend's consumers; `consumers` are their numbers.
///
/// # Errors
/// [`LayersError`], which names the file.
pub(crate) fn consumer_layers(
    plan: &Plan,
    backend: &BackendPlan,
    consumers: impl IntoIterator<Item = u32>,
) -> Result<Clients, LayersError> {
    let make = || {
        let own = backend.tls.own.as_ref();
        let own = own.map(|(cert, key)| Own::new(&pem(cert), &pem(key.expose())));
        let own = own.transpose()?;
        let spec = spec(&[&backend.endpoint], &backend.tls, !plan.seed);
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

/// Sets up the layers of a webhook's connections.
///
/// # Errors
/// [`LayersError`], which names the file.
pub(crate) fn webhook_layers(backend: &BackendPlan) -> Result<Servers, LayersError> {
    let own = backend.tls.own.as_ref();
    let own = own.filter(|_| backend.endpoint.scheme.is_tls());
    let spec = ServerSpec {
        tls: own.map(|(cert, key)| ServerTls::new(pem(cert), pem(key.expose()))),
        ..ServerSpec::default()
    };
    Servers::new(&spec).map_err(|error| LayersError::Transport {
        who: format!("backend `{}`", backend.name),
        error,
    })
}

/// The certificates of those links of a fleet that are in a slice, as their files are read: the link, the device that
/// shows it, and the certificate or its fault. None if the fleet shows none.
fn credentials(
    plan: &Plan,
    fleet: &FleetPlan,
    slice: Slice,
) -> Option<impl Iterator<Item = (u32, String, Result<Own, TransportError>)>> {
    let Credential::Certificate { cert, key, .. } = &fleet.credential else {
        return None;
    };
    let directory = directory(plan, fleet, 0);
    let scheme = plan.platform.scheme_of(fleet.client.protocol());
    let is_dtls = scheme.is_some_and(Scheme::is_dtls);
    let (mut cert_path, mut key_path) = (String::new(), String::new());
    let links = slice.cut(fleet.first_link.0, fleet.links);
    Some(links.map(move |link| {
        let mut name = String::new();
        let device = fleet.first_device_of(LinkId(link));
        fleet.render_link_name(LinkId(link), &directory, &mut name);
        directory.render_text(cert, device, &name, &mut cert_path);
        directory.render_text(key, device, &name, &mut key_path);
        let read = Own::read(&cert_path, &key_path).and_then(|own| match is_dtls {
            true => own.for_dtls(&key_path),
            false => Ok(own),
        });
        (link, name, read)
    }))
}

fn spec(endpoints: &[&Endpoint], tls: &TlsPlan, seed: u64) -> ClientSpec {
    let scheme = endpoints.first().map_or(Scheme::Mqtt, |first| first.scheme);
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
            alpn: tls
                .alpn
                .clone()
                .or_else(|| scheme.spec().alpn.map(str::to_owned)),
            resumption: tls.resumes(scheme),
        },
        seed: mix(seed, u64::from(u32::from_be_bytes(*b"mask"))),
    }
}

fn pem(file: &PemFile) -> Pem {
    Pem::new(&file.name, file.text.clone())
}
