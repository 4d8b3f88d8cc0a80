//! Whether the target of a plan answers: at each address a session is opened as the run would
//! open it, and closed at once. Nothing is published or subscribed to, and no will is left.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use muster_agent::{LinkLines, consumer_layers, link_lines};
use muster_backend::{Security, kafka_is_built};
use muster_conduct::{Placement, Slice, roster};
use muster_device::{Hello, Mqtt};
use muster_model::{BackendId, ConsumerId, LinkId, Micros, RunId};
use muster_net::Clock;
use muster_plan::{
    BackendPlan, Credential, Endpoint, FleetPlan, MqttNorthbound, Northbound, Plan, SocketUse,
};
use muster_protocol::layer::Layers;
use muster_protocol::mqtt::{Client, ClientLimits, Connect, Version};
use muster_transport::{Any, Clients, TlsClient};

use crate::probe::{Answer, Call, Proof, probe};
use crate::{ping, target};

/// How long a consumer of the run tries for one session.
const CONSUMER_AT_MOST: Micros = Micros::from_secs(10);

/// Somebody of the run at one of its addresses, and what was answered.
pub(crate) struct Reached {
    /// Who would connect there, and where that is.
    pub(crate) who: String,
    /// His name alone.
    pub(crate) name: String,
    /// Where the scenario says what he proves himself with.
    pub(crate) keys: String,
    pub(crate) answer: Answer,
}

/// A link of a fleet.
pub(crate) type FleetLink<'a> = (&'a FleetPlan, LinkId);

/// Where the scenario says how devices check certificates.
pub(crate) const DEVICE_TLS_KEYS: &str = "platform.tls";

/// What the links of a plan are opened with.
pub(crate) struct LinkTrial<'a> {
    plan: &'a Plan,
    lines: LinkLines,
}

impl<'a> LinkTrial<'a> {
    /// Reads the certificates of all links.
    pub(crate) fn new(plan: &'a Plan) -> Result<Self> {
        let lines = link_lines(plan, Slice::WHOLE)?;
        Ok(Self { plan, lines })
    }

    /// Opens some links at once, each where the run would connect it; over CoAP one after the other. The
    /// answers are in their order.
    pub(crate) fn open<'b>(
        &mut self,
        links: impl Iterator<Item = FleetLink<'b>>,
    ) -> Result<Vec<Reached>> {
        match &mut self.lines {
            LinkLines::Streams(layers) => {
                let callers =
                    links.filter_map(|(fleet, link)| device(self.plan, layers, fleet, link));
                answers(callers.collect())
            }
            LinkLines::Datagrams | LinkLines::Secured(_) => Ok(self.pings(links)),
        }
    }

    fn pings<'b>(&self, links: impl Iterator<Item = FleetLink<'b>>) -> Vec<Reached> {
        links.map(|(fleet, link)| self.ping(fleet, link)).collect()
    }
    /// Asks for a sign of life, or opens a session of DTLS.
    fn ping(&self, fleet: &FleetPlan, link: LinkId) -> Reached {
        let plan = self.plan;
        let endpoint = endpoint_of(plan, link);
        let (roster, device) = (roster(plan, fleet, 0), fleet.first_device_of(link));
        let mut name = String::new();
        fleet.render_link_name(link, &roster, &mut name);
        let (mut identity, mut key) = (Vec::new(), Vec::new());
        let caller = match (&self.lines, &fleet.credential) {
            (
                LinkLines::Secured(_),
                Credential::Psk {
                    identity: by,
                    secret,
                },
            ) => {
                roster.render_octets(by, device, &name, &mut identity);
                roster.render_octets(secret.expose(), device, &name, &mut key);
                ping::Caller::Shared {
                    identity: &identity,
                    key: &key,
                    needs_id: is_known_by_id(fleet),
                }
            }
            (LinkLines::Secured(certificates), _) => ping::Caller::Certified {
                server: plan
                    .platform
                    .tls
                    .server_name
                    .as_deref()
                    .unwrap_or(endpoint.host_name()),
                certificates: certificates.of(link.0),
                needs_id: is_known_by_id(fleet),
            },
            (LinkLines::Datagrams | LinkLines::Streams(_), _) => ping::Caller::Plain,
        };
        let at_most = fleet.connect.timeout;
        let answer = target::address(endpoint, Duration::ZERO)
            .map(|address| ping::ping((&plan.platform, address), at_most, &caller));
        Reached {
            who: format!("{endpoint}, device `{name}`"),
            name: name.clone(),
            keys: format!("`credential` of fleet `{}`", fleet.name),
            answer: answer.unwrap_or_else(|error| Answer::Silent(format!("failed to {error:#}"))),
        }
    }
}

/// Certificates and keys that cannot be used are an error of the scenario, found before anything is
/// started or opened.
pub(crate) fn check_layers(plan: &Plan) -> Result<()> {
    link_lines(plan, Slice::WHOLE).context("set up the devices' links")?;
    for backend in &plan.backends {
        match backend.northbound {
            Northbound::Mqtt(_) => {
                consumer_layers(plan, backend, [0]).context("set up the consumers")?;
            }
            Northbound::Kafka(_) => kafka_is_built(backend)?,
        }
    }
    Ok(())
}

/// Tries each address of the devices, for each fleet with the first of its links that the run
/// would connect there, and each of MQTT's backends with its first consumer.
pub(crate) fn reach(plan: &Plan) -> Result<Vec<Reached>> {
    let run = RunId(Clock::start().t0_ns() as u32);
    let mut reached = LinkTrial::new(plan)?.open(first_links(plan))?;
    let backends = (0..).map(BackendId).zip(&plan.backends);
    let consumers = backends
        .filter_map(|(id, backend)| Some(consumer(plan, (backend, backend.mqtt()?), id, run)));
    reached.extend(answers(consumers.collect())?);
    Ok(reached)
}

/// For each address the first link of each fleet that the run would connect there.
fn first_links(plan: &Plan) -> impl Iterator<Item = FleetLink<'_>> {
    plan.fleets.iter().flat_map(|fleet| {
        let addresses = plan.platform.endpoints.len() as u32;
        let first = fleet.first_link.0;
        let links = first..first + fleet.links.min(addresses);
        links.map(move |link| (fleet, LinkId(link)))
    })
}

fn endpoint_of(plan: &Plan, link: LinkId) -> &Endpoint {
    let endpoints = &plan.platform.endpoints;
    &endpoints[link.0 as usize % endpoints.len()]
}

/// Somebody who would connect; with an error, his address has none.
struct Caller {
    who: String,
    name: String,
    keys: String,
    call: Result<Call>,
}

fn answers(callers: Vec<Caller>) -> Result<Vec<Reached>> {
    let mut calls = Vec::new();
    let mut tried = Vec::new();
    for caller in callers {
        let call = caller.call.map(|call| calls.push(call));
        tried.push((caller.who, caller.name, caller.keys, call));
    }
    let mut answers = probe(calls).context("open a connection")?.into_iter();
    let reached = tried.into_iter().map(|(who, name, keys, call)| Reached {
        who,
        name,
        keys,
        answer: match call {
            Err(error) => Answer::Silent(format!("failed to {error:#}")),
            Ok(()) => answers
                .next()
                .unwrap_or_else(|| Answer::Silent("no answer".to_owned())),
        },
    });
    Ok(reached.collect())
}

/// Whether the links of a fleet share sockets, on which a connection id tells them apart.
fn is_known_by_id(fleet: &FleetPlan) -> bool {
    let sockets = fleet.client.coap().map(|coap| coap.sockets);
    matches!(sockets, Some(SocketUse::SharedPort { .. }))
}

/// One device that speaks MQTT.
fn device(plan: &Plan, layers: &mut Clients, fleet: &FleetPlan, link: LinkId) -> Option<Caller> {
    let endpoint = endpoint_of(plan, link);
    let client = Placement::client::<Mqtt>(fleet)?;
    let (roster, device) = (roster(plan, fleet, 0), fleet.first_device_of(link));
    let mut hello = Hello::default();
    let settings = &client.settings;
    let proof = settings.authentication.as_ref().map(|known| Proof {
        answer: hello.answer(&roster, known, device, &[]).to_vec(),
        echo: known.echo,
    });
    hello.fill(&roster, &client, device);
    // A check that is killed must not have the platform publish.
    let connect = Connect {
        will: None,
        ..hello.connect(&client)
    };
    let at_most = client.handshake_timeout;
    let mut name = String::new();
    fleet.render_link_name(link, &roster, &mut name);
    Some(Caller {
        who: format!("{endpoint}, device `{name}`"),
        name,
        keys: format!("`credential` of fleet `{}`", fleet.name),
        call: target::address(endpoint, Duration::from_micros(at_most.get()))
            .and_then(|address| {
                let layer = layers.layer(link.0)?;
                let security = Security::new(endpoint.scheme, DEVICE_TLS_KEYS);
                let session = (settings.version, &connect);
                call((address, layer), security, session, at_most)
            })
            .map(|call| Call {
                proof,
                packet: fleet.largest_packet(),
                ..call
            }),
    })
}

fn consumer(
    plan: &Plan,
    (backend, mqtt): (&BackendPlan, &MqttNorthbound),
    id: BackendId,
    run: RunId,
) -> Caller {
    let client_id = muster_backend::client_id(run, id, ConsumerId(0));
    let connect = muster_backend::hello(backend, &client_id, plan.receive_limit());
    Caller {
        who: format!("{}, backend `{}`", backend.endpoint, backend.name),
        name: backend.name.clone(),
        keys: muster_backend::CREDENTIAL_KEYS.to_owned(),
        call: target::address(&backend.endpoint, target::patience(plan)).and_then(|address| {
            let layer = consumer_layers(plan, backend, [0])?.layer(0)?;
            let security = Security::new(backend.endpoint.scheme, muster_backend::TLS_KEYS);
            let session = (mqtt.version, &connect);
            call((address, layer), security, session, CONSUMER_AT_MOST)
        }),
    }
}

fn call(
    (address, layer): (SocketAddr, Any<TlsClient>),
    security: Security,
    (version, connect): (Version, &Connect<'_>),
    at_most: Micros,
) -> Result<Call> {
    let mut session = Client::new(version, &ClientLimits::default());
    let mut bytes = Vec::new();
    session
        .connect(Micros::ZERO, connect, &mut bytes)
        .context("write a CONNECT")?;
    Ok(Call {
        address,
        layer,
        session,
        connect: bytes,
        proof: None,
        security,
        at_most,
        packet: 0,
    })
}
