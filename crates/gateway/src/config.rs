//! Configuration of a gateway.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use muster_model::behaviour::{Amount, Behaviour, Reject};
use muster_model::{Micros, Rate, mix};
use muster_net::Clock;
use muster_platform::{Dialect, Protocol};
use muster_protocol::coap::Transmission;
use muster_protocol::mqtt::MAXIMUM_PACKET_SIZE;
use muster_transport::{Pem, ServerSpec, ServerTls};
use serde::{Deserialize, Serialize};

use crate::listen_addresses::ListenAddresses;
use crate::webhook::WebhookConfig;

/// A name and its password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The name.
    pub name: String,
    /// The password, compared byte by byte; empty is as good as none.
    pub password: Vec<u8>,
}

/// A device that a gateway knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownDevice {
    /// Its tenant.
    pub tenant: String,
    /// Its name.
    pub device: String,
}

/// A method of enhanced authentication that devices have to use (MQTT 5 section 4.12).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// Method that the CONNECT has to name.
    pub method: String,
    /// Secret that has to follow the gateway's challenge in the client's answer.
    pub secret: String,
}

/// Configuration of the management API (dialects SAP Edge and ThingsBoard).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ManagementConfig {
    /// Address of the management API; port 0 is a free port.
    pub listen: SocketAddr,
    /// The bearer token that every call must show; none asks for none. With ThingsBoard it is the password of
    /// `tenant@thingsboard.org`, by default `tenant`.
    pub token: Option<String>,
    /// The alternate id of the gateway itself, to which devices belong; with ThingsBoard the service in the keys
    /// of counts.
    pub gateway: String,
    /// True if a device that was not provisioned is refused.
    pub only_provisioned: bool,
    /// File of the store (dialect ThingsBoard); none keeps it in memory.
    pub store: Option<PathBuf>,
}

impl Default for ManagementConfig {
    /// A free port of 127.0.0.1, no token, everyone admitted.
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            token: None,
            gateway: "muster-gateway".to_owned(),
            only_provisioned: false,
            store: None,
        }
    }
}

/// Prints no token.
impl fmt::Debug for ManagementConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagementConfig").finish_non_exhaustive()
    }
}

/// Limit on the rate at which a publisher is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowReader {
    /// Most bytes, above zero,
    pub bytes: u32,
    /// in each interval of this length.
    pub every: Micros,
}

/// Configuration of TLS.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GatewayTls {
    /// The text of its certificate and chain (RFC 7468).
    pub cert: String,
    /// The text of its key.
    pub key: String,
    /// The text of the CA certificates of clients; without it no client is asked for a certificate.
    pub client_ca: Option<String>,
    /// True if a client that shows no certificate is sent away.
    pub needs_client_cert: bool,
}

/// Prints no key.
impl fmt::Debug for GatewayTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayTls").finish_non_exhaustive()
    }
}

impl GatewayTls {
    pub(crate) fn server(&self) -> ServerTls {
        let pem = |name: &str, text: &str| Pem::new(name, text.as_bytes().to_vec());
        let client_ca = self.client_ca.as_ref();
        ServerTls {
            client_ca: client_ca.map(|ca| pem("the CA certificate of clients", ca)),
            is_client_cert_needed: self.needs_client_cert,
            ..ServerTls::new(
                pem("the gateway's certificate", &self.cert),
                pem("the gateway's key", &self.key),
            )
        }
    }
}

/// Configuration of DTLS: by keys that it shares with its devices, whose identities and keys are
/// the names and passwords of [`GatewayConfig::users`], and by certificates.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GatewayDtls {
    /// True if it agrees upon connection ids (RFC 9146), without which devices cannot share a
    /// socket; Hono does not.
    pub connection_id: bool,
    /// The key of identities that no user has as a name; none leaves them without an answer.
    pub secret: Option<String>,
    /// Its certificate, of a key of P-256, for devices without a shared key; none refuses those. They are
    /// asked for certificates where [`GatewayTls::needs_client_cert`] says that they must show one.
    pub certificate: Option<GatewayTls>,
}

/// Prints no key.
impl fmt::Debug for GatewayDtls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayDtls").finish_non_exhaustive()
    }
}

/// Configuration of a gateway.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct GatewayConfig {
    /// Address for MQTT, and for each further protocol that the dialect's devices speak.
    pub listen: ListenAddresses,
    /// Configuration of DTLS, without which nothing listens for `coaps`.
    pub coaps: Option<GatewayDtls>,
    /// Times after which its own messages over CoAP are sent again and given up, and for which
    /// copies of requests are known (RFC 7252 section 4.8).
    pub transmission: Transmission,
    /// Configuration of TLS for devices over HTTP, without which nothing listens for `https`.
    pub https: Option<GatewayTls>,
    /// Configuration of TLS for applications over AMQP, without which nothing listens for `amqps`.
    pub amqps: Option<GatewayTls>,
    /// Bytes of the longest payload that it takes in a request, whatever it comes in; a longer one is
    /// refused (4.13, 413). None is the dialect's own, `limits` of its requests.
    pub max_payload: Option<u32>,
    /// Bytes of the largest packet that it takes over MQTT, as announced to MQTT 5 clients; none is the
    /// largest of the protocol.
    pub max_packet: Option<u32>,
    /// Threads, each with its own event loop and listening socket; at least one.
    pub threads: u16,
    /// True if other gateways of this user may listen on the same ports of devices; the kernel spreads connections
    /// over them (`SO_REUSEPORT`).
    pub shares_port: bool,
    /// Dialect of its devices.
    pub dialect: Dialect,
    /// True if MQTT comes over WebSocket; any path is served.
    pub websocket: bool,
    /// Configuration of TLS; none if it does not use TLS.
    pub tls: Option<GatewayTls>,
    /// Misbehaviour.
    pub behaviour: Behaviour,
    /// Chooses the uplinks that are treated badly, and service times.
    pub seed: u64,
    /// Uplinks that the run will send at most; the badly treated ones are spread over them.
    pub expected_uplinks: u64,
    /// Commands that the run will issue at most; the badly treated ones are spread over them.
    pub expected_commands: u64,
    /// The devices whose requests it takes over CoAP and HTTP; those of others are refused (4.04, 404). None
    /// knows all.
    pub devices: Option<Vec<KnownDevice>>,
    /// Device users; empty admits everyone, with or without a name.
    pub users: Vec<User>,
    /// The user of northbound consumers, whose links are never closed by `close-links`.
    pub northbound: Option<User>,
    /// Authentication of devices beyond name and password; none asks for nothing more.
    pub authentication: Option<Demand>,
    /// Uplinks at QoS 1 and 2 that a client may have without an answer (MQTT 5 section
    /// 3.2.2.3.3); at least one.
    pub receive_maximum: u16,
    /// Management API, for provisioning; without it, any device is admitted.
    pub management: Option<ManagementConfig>,
    /// Reads each publisher slowly, through a small receive buffer; none reads as fast as it can.
    pub slow_reader: Option<SlowReader>,
    /// Endpoint to which each message that surfaces is pushed; none pushes nothing.
    pub webhook: Option<WebhookConfig>,
    /// Longest wait for the disposition of an uplink over AMQP that travels at least once; then its device is
    /// refused. Hono's own default (`sendMessageTimeout`) is a second.
    pub disposition_within: Micros,
    /// Raw reading of CLOCK_MONOTONIC that is T0, in nanoseconds; its own start if none.
    pub t0_ns: Option<u64>,
}

impl Default for GatewayConfig {
    /// A free port of 127.0.0.1, one thread, no misbehaviour, everyone admitted.
    fn default() -> Self {
        Self {
            listen: ListenAddresses::new(SocketAddr::from(([127, 0, 0, 1], 0))),
            coaps: None,
            https: None,
            amqps: None,
            transmission: Transmission::default(),
            max_payload: None,
            max_packet: None,
            threads: 1,
            shares_port: false,
            dialect: Dialect::Mqtt,
            websocket: false,
            tls: None,
            behaviour: Behaviour::default(),
            seed: 1,
            expected_uplinks: 0,
            expected_commands: 0,
            devices: None,
            users: Vec::new(),
            northbound: None,
            authentication: None,
            receive_maximum: u16::MAX,
            management: None,
            slow_reader: None,
            webhook: None,
            disposition_within: Micros::from_secs(1),
            t0_ns: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A device, or anyone where no users are declared.
    Device,
    Northbound,
}

impl GatewayConfig {
    /// The share of one of several gateway processes that serve one run side by side: counts are
    /// split so that they add up, the one server becomes one for each with its part of rate and
    /// queue, and every process has another seed. Needed beyond the descriptors that
    /// one process can have.
    pub fn part(&self, part: u32, parts: u32) -> Self {
        let parts = parts.max(1);
        let split = |count: u32| split(u64::from(count), part, parts) as u32;
        let mut config = self.clone();
        config.seed = mix(self.seed, u64::from(part));
        config.expected_uplinks = crate::config::split(self.expected_uplinks, part, parts);
        config.expected_commands = crate::config::split(self.expected_commands, part, parts);
        let behaviour = &mut config.behaviour;
        for count in [
            &mut behaviour.lose_after_accept,
            &mut behaviour.drop,
            &mut behaviour.ignore,
            &mut behaviour.answer_late.count,
            &mut behaviour.answer_twice,
            &mut behaviour.answer_garbled,
            &mut behaviour.answer_unknown,
            &mut behaviour.duplicate,
            &mut behaviour.reorder,
            &mut behaviour.deliver_late.count,
            &mut behaviour.corrupt,
            &mut behaviour.reject_but_deliver.count,
            &mut behaviour.lose_stored,
            &mut behaviour.lose_commands,
            &mut behaviour.duplicate_commands,
            &mut behaviour.delay_commands.count,
        ] {
            *count = split(*count);
        }
        if let Some(Reject {
            amount: Amount::Count(count),
            ..
        }) = &mut behaviour.reject
        {
            *count = split(*count);
        }
        if let Some(capacity) = &mut behaviour.capacity {
            let rate = capacity.rate.get() / f64::from(parts);
            capacity.rate = Rate::per_second(rate).unwrap_or(capacity.rate);
            capacity.queue = split(capacity.queue);
        }
        let rates = [&mut behaviour.command_rate, &mut behaviour.connect_rate];
        for rate in rates.into_iter().flatten() {
            *rate = Rate::per_second(rate.get() / f64::from(parts)).unwrap_or(*rate);
        }
        if let Some(leak) = &mut behaviour.leak {
            let rate = leak.bytes.get() / f64::from(parts);
            leak.bytes = Rate::per_second(rate).unwrap_or(leak.bytes);
            leak.at_most = crate::config::split(leak.at_most, part, parts);
        }
        if let Some(sawtooth) = &mut behaviour.sawtooth {
            sawtooth.bytes = crate::config::split(sawtooth.bytes, part, parts);
        }
        config
    }

    pub(crate) fn layers(&self) -> ServerSpec {
        let tls = self.tls.as_ref().map(GatewayTls::server);
        ServerSpec {
            tls,
            is_websocket: self.websocket,
        }
    }

    /// Bytes of the longest payload over a protocol of requests; none if no limit is known.
    pub(crate) fn max_payload(&self, protocol: Protocol) -> Option<u32> {
        let usual = self.dialect.requests(protocol).limits;
        self.max_payload.or(usual.map(|limits| limits.body))
    }

    /// Bytes of the largest packet over MQTT.
    pub(crate) fn max_packet(&self) -> u32 {
        self.max_packet.unwrap_or(MAXIMUM_PACKET_SIZE)
    }

    /// Scheme of its addresses.
    pub fn scheme(&self) -> &'static str {
        match (self.websocket, self.tls.is_some()) {
            (false, false) => "mqtt",
            (false, true) => "mqtts",
            (true, false) => "ws",
            (true, true) => "wss",
        }
    }

    pub(crate) fn clock(&self) -> Clock {
        self.t0_ns.map_or_else(Clock::start, Clock::at)
    }

    /// Role of the user with these credentials; none if they are wrong.
    pub(crate) fn role(&self, user: Option<&str>, password: Option<&[u8]>) -> Option<Role> {
        let password = password.unwrap_or_default();
        let is =
            |known: &User| user == Some(known.name.as_str()) && password == &known.password[..];
        if self.northbound.as_ref().is_some_and(is) {
            return Some(Role::Northbound);
        }
        (self.users.is_empty() || self.users.iter().any(is)).then_some(Role::Device)
    }
}

/// The part of a count, so that all parts add up to it.
fn split(count: u64, part: u32, parts: u32) -> u64 {
    let edge = |part: u32| (u128::from(count) * u128::from(part) / u128::from(parts)) as u64;
    edge(part + 1) - edge(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_gateway_add_up() {
        let reject = Reject {
            code: 0x97,
            amount: Amount::Count(10),
        };
        let whole = GatewayConfig {
            behaviour: Behaviour {
                lose_after_accept: 37,
                reject: Some(reject),
                ..Behaviour::default()
            },
            expected_uplinks: 1_001,
            ..GatewayConfig::default()
        };
        let parts: Vec<GatewayConfig> = (0..3).map(|part| whole.part(part, 3)).collect();
        let lost: u32 = parts
            .iter()
            .map(|part| part.behaviour.lose_after_accept)
            .sum();
        let expected: u64 = parts.iter().map(|part| part.expected_uplinks).sum();
        let rejected = parts.iter().filter_map(|part| part.behaviour.reject);
        let rejected: u64 = rejected.map(|reject| reject.amount.of(0)).sum();
        assert_eq!((lost, expected, rejected), (37, 1_001, 10));
        assert_ne!(parts[0].seed, parts[1].seed);
    }
}
