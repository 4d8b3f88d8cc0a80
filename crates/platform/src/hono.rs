//! Eclipse Hono: its protocol adapters, southbound over CoAP.
//!
//! A device uploads with POST on `telemetry` or `event` (short: `t`, `e`) what is its own by its
//! credentials; a gateway, or a device without credentials, with PUT on `telemetry/<tenant>/<device>`,
//! where an empty tenant is the gateway's own. The parameter `hono-ttd` says for how many seconds the
//! device waits for a command, which comes in the answer: `hono-command=<name>` among the parameters, and in
//! the path where the reply goes, which is used as it came.
//!
//! Northbound Hono speaks Kafka or AMQP. The server end here stands in for it over MQTT: messages surface
//! on `telemetry/<tenant>/<device>` and `event/<tenant>/<device>`, commands are taken on
//! `command/<tenant>/<device>/<correlation-id>/<name>`, and replies surface on
//! `command_response/<tenant>/<device>/<correlation-id>/<status>`.
//!
//! # Device end
//!
//! [`Dialect::ask`](crate::Dialect::ask) makes a [`Request`] of what [`Uplink::render`](crate::Uplink::render)
//! rendered: the stream's topic is the path. [`Dialect::answered`](crate::Dialect::answered) reads the
//! answer, and [`Dialect::ask_reply`](crate::Dialect::ask_reply) makes the request that replies to a command.
//!
//! # Server end
//!
//! [`Incoming`](crate::Incoming) takes what came, and [`Dialect::hear_request`](crate::Dialect::hear_request)
//! says what it means. [`Waiting`](crate::Waiting) holds who waits for a command.

mod commands;
mod counters;
mod ditto;
mod identity;
mod kafka;
mod meanings;
mod northbound;
mod requests;
mod server;

pub(crate) use commands::{answered, ask_reply, write_reply};
pub(crate) use counters::{COUNTERS, counted_as};
pub use ditto::DittoPayload;
pub(crate) use ditto::payload;
pub use identity::Identity;
pub use kafka::CONTENT_TYPE;
pub(crate) use kafka::{TOPICS as KAFKA_TOPICS, kafka_command, returned};
pub(crate) use meanings::{HANDSHAKE_HINT, hint};
pub use northbound::{Commanded, Notice, is_own_media_type};
pub(crate) use northbound::{NOTICES, REPLIES, reply, surface, write_command};
pub(crate) use requests::ask;
pub use requests::{Endpoint, Who, resource};
pub(crate) use server::hear;
pub use server::{HandedCommand, Manner, ReplyUpload, Upload, Wanted};

use muster_model::Micros;

use muster_model::Promise;

use crate::dialect::{Defaults, Promises};
use crate::request::RequestLimits;

/// The tenant that Hono's own examples have.
pub const DEFAULT_TENANT: &str = "DEFAULT_TENANT";

/// An adapter answers 2.04 once the messaging network has the message.
pub(crate) const PROMISES: Promises = Promises {
    transport: Promise::Forwarded,
    application: Promise::Nothing,
};

pub(crate) const DEFAULTS: Defaults = Defaults {
    fleet: &[("tenant", DEFAULT_TENANT)],
    gateway: &[],
    gateway_stream: &[("topic", "telemetry//${id}")],
    stream: &[("topic", "telemetry"), ("payload", "ditto-modify")],
    acknowledged: &[],
};

/// What the CoAP adapter takes in a request unless it is configured otherwise.
pub(crate) const REQUEST_LIMITS: RequestLimits = RequestLimits {
    body: 2_048,
    body_key: "`maxPayloadSize` of the adapter",
    ttd: Micros::from_secs(60),
    ttd_key: "`max-ttd` of the adapter hono-coap in the tenant",
};

/// The code of the server end's yes, as in HTTP.
pub(crate) const ACCEPTED: u16 = 204;
/// The code of its no where none is named.
pub(crate) const UNAVAILABLE: u16 = 503;

/// Whether a code, as in HTTP, is a no that CoAP can carry.
pub(crate) const fn is_refusal(code: u16) -> bool {
    matches!(code / 100, 4 | 5) && code % 100 < 32
}
