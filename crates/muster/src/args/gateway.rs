//! The command line of `muster gateway`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use muster_gateway::Dialect;

use super::dialect;

#[derive(Debug, Args)]
pub(crate) struct GatewayArgs {
    /// The address to listen on; port 0 is a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:1883")]
    pub(crate) listen: SocketAddr,
    /// The address for CoAP, besides MQTT for the application; port 0 is a free port. Only with
    /// --dialect hono.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) coap: Option<SocketAddr>,
    /// The same over DTLS. Shared keys are the names and passwords of --users, such as
    /// `sensor1@tenant:key`. With --cert it shows a certificate. With --client-ca it asks devices without
    /// a shared key for theirs, whose common name is the identity.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) coaps: Option<SocketAddr>,
    /// The address for HTTP, besides MQTT for the application; port 0 is a free port. Only with --dialect hono
    /// or http. Users of --users show their names and passwords by Basic.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<SocketAddr>,
    /// The same over TLS, with the certificate of --cert. A client's certificate names its device, as with
    /// --coaps.
    #[arg(long, value_name = "ADDRESS", requires = "cert")]
    pub(crate) https: Option<SocketAddr>,
    /// Push each message that surfaces to this endpoint of the application, such as
    /// http://127.0.0.1:8088/muster: one POST, with the topic behind the path.
    #[arg(long, value_name = "URL")]
    pub(crate) webhook: Option<String>,
    /// The file of the bearer token that each push shows.
    #[arg(long, value_name = "FILE", requires = "webhook")]
    pub(crate) webhook_token: Option<PathBuf>,
    /// The address for applications over AMQP 1.0; port 0 is a free port. Telemetry of Hono's devices is
    /// then refused while no receiver has credit.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) amqp: Option<SocketAddr>,
    /// The same over TLS, with the certificate of --cert. With --client-ca applications show theirs, whose common
    /// name logs in by EXTERNAL.
    #[arg(long, value_name = "ADDRESS", requires = "cert")]
    pub(crate) amqps: Option<SocketAddr>,
    /// The file of the key of every identity that --users does not name; without it those get no
    /// answer.
    #[arg(long, value_name = "FILE", requires = "coaps")]
    pub(crate) psk: Option<PathBuf>,
    /// Decline connection ids (RFC 9146), as Hono does; devices then cannot share sockets.
    #[arg(long, requires = "coaps")]
    pub(crate) no_connection_id: bool,
    /// Refuse longer payloads of requests (4.13, 413), as the `maxPayloadSize` of Hono's adapters does; by
    /// default 2048 with --dialect hono.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_payload: Option<u32>,
    /// A file of the registered devices, in lines `device@tenant`: requests of others are refused (4.04, 404).
    /// Without it every device is registered.
    #[arg(long, value_name = "FILE")]
    pub(crate) devices: Option<PathBuf>,
    /// Threads; by default one a core.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<u16>,
    /// Let other gateways of this user listen on the same ports of devices, for `muster scale`.
    #[arg(long)]
    pub(crate) shared_port: bool,
    /// The dialect: mqtt, hono, thingsboard, sap-edge or http.
    #[arg(long, value_name = "NAME", default_value = "mqtt", value_parser = dialect)]
    pub(crate) dialect: Dialect,
    /// Serve MQTT over WebSocket, at any path.
    #[arg(long)]
    pub(crate) websocket: bool,
    /// Serve over TLS: the file of the certificate and its chain.
    #[arg(long, value_name = "FILE")]
    pub(crate) cert: Option<PathBuf>,
    /// The file of its key; by default that of the certificate.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Refuse clients without a certificate that one of this file signed.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) client_ca: Option<PathBuf>,
    /// The misbehaviour, as keys of `platform.behaviour` in YAML.
    #[arg(long, value_name = "YAML")]
    pub(crate) behaviour: Option<String>,
    /// The seed that chooses the positions of the faults.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The number of uplinks that are expected: counts are positions among them.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) expect: u64,
    /// A file of those who may connect, in lines `name:password`; without it everybody may.
    #[arg(long, value_name = "FILE")]
    pub(crate) users: Option<PathBuf>,
    /// A file with one line `method:secret` for the enhanced authentication of MQTT 5. The gateway
    /// sends a challenge of 16 bytes; the device answers with it and the secret behind it
    /// (`authentication: { method, answer, echo: true }` of a scenario's client).
    #[arg(long, value_name = "FILE")]
    pub(crate) authentication: Option<PathBuf>,
    /// Serve the management API over HTTP: devices of SAP Edge, or the REST API of ThingsBoard. Port 0 is a free port. Only with --dialect sap-edge or thingsboard.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) rest: Option<SocketAddr>,
    /// The file of the bearer token that each call of the management API must show; with thingsboard the
    /// password of tenant@thingsboard.org, by default `tenant`.
    #[arg(long, value_name = "FILE", requires = "rest")]
    pub(crate) rest_token: Option<PathBuf>,
    /// The gateway's own alternate id at the management API; with thingsboard the service's id.
    #[arg(
        long,
        value_name = "NAME",
        requires = "rest",
        default_value = "muster-gateway"
    )]
    pub(crate) rest_gateway: String,
    /// Keep what the REST API of ThingsBoard stores in this file, which outlives the gateway; without it
    /// in memory.
    #[arg(long, value_name = "FILE", requires = "rest")]
    pub(crate) store: Option<PathBuf>,
    /// Refuse devices that were not created by the management API.
    #[arg(long, requires = "rest")]
    pub(crate) only_provisioned: bool,
    /// The most messages at QoS 1 and 2 that a device may have unanswered at once.
    #[arg(long, value_name = "N", default_value_t = u16::MAX,
        value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) receive_maximum: u16,
    /// Read at most this number of bytes from each device in each 10 ms.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) read_slowly: Option<u32>,
    /// Serve one run: its configuration comes on standard input, its end ends the gateway.
    #[arg(long, hide = true)]
    pub(crate) embedded: bool,
}
