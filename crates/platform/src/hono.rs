//! Eclipse Hono: its protocol adapters, southbound over CoAP, HTTP and MQTT. What follows is of requests; `mqtt`
//! has the topics of MQTT.
//!
//! A device uploads with POST on `telemetry` or `event` (short: `t`, `e`) what is its own by its
//! credentials; a gateway, or a device without credentials, with PUT on `telemetry/<tenant>/<device>`,
//! where an empty tenant is the gateway's own. The parameter `hono-ttd` says for how many seconds the
//! device waits for a command, which comes in the answer: `hono-command=<name>` among the parameters, and in
//! the path where the reply goes, which is used as it came.
//!
//! Northbound Hono speaks Kafka or AMQP. The server end here uses MQTT in their place: messages surface
//! on `telemetry/<tenant>/<device>` and `event/<tenant>/<device>`, commands are taken on
//! `command/<tenant>/<device>/<correlation-id>/<name>`, and replies surface on
//! `command_response/<tenant>/<device>/<correlation-id>/<status>`.
//!
//! # Device end
//!
//! [`Requests::uplink`](crate::Requests::uplink) makes a request of what
//! [`Uplink::render`](crate::Uplink::render) rendered: the stream's topic is the path.
//! [`Requests::answered`](crate::Requests::answered) reads the answer, and
//! [`Requests::reply`](crate::Requests::reply) makes the request that replies to a command.
//!
//! # Server end
//!
//! [`Incoming`](crate::Incoming) takes what came, and [`Requests::read`](crate::Requests::read) says what it
//! means. [`Waiting`](crate::Waiting) holds who waits for a command.

mod amqp;
mod amqp_server;
mod commands;
mod counters;
mod ditto;
mod http;
mod identity;
mod kafka;
mod meanings;
mod mqtt;
mod northbound;
mod requests;
mod server;

pub use ditto::DittoPayload;
pub(crate) use ditto::payload;
pub use identity::Identity;
pub use kafka::CONTENT_TYPE;
pub use mqtt::{PropertyBag, Published};
pub use northbound::is_own_media_type;
pub use requests::{Endpoint, Who};

use muster_model::{Micros, Promise};

use crate::kafka::Kafka;
use crate::protocol::Protocol;
use crate::request::{RequestLimits, Status};
use crate::scope::unscoped;
use crate::spec::{
    Application, Defaults, Handover, ManagementApi, Objections, PLAIN, PLAIN_PUBLISHING,
    PLAIN_REQUESTS, PLAIN_SERVER, PLAIN_TOPIC, Promises, PublishedFigures, Publishing, Refusals,
    Requests, Server, Spec, UplinkTopic,
};

/// The tenant that Hono's own examples have.
pub const DEFAULT_TENANT: &str = "DEFAULT_TENANT";

/// The answer of the adapter of CoAP to all that it takes.
const CHANGED: Status = Status(204);

pub(crate) static HONO: Spec = Spec {
    name: "hono",
    defaults: Defaults {
        fleet: &[("tenant", DEFAULT_TENANT)],
        gateway_stream: &[("topic", "telemetry//${id}")],
        stream: &[("topic", "telemetry"), ("payload", "ditto-modify")],
        ..PLAIN.defaults
    },
    // An adapter answers 2.04 once the messaging network has the message.
    promises: Promises {
        transport: Promise::Forwarded,
        ..PLAIN.promises
    },
    published_figures: PublishedFigures::BySlot,
    knows_links: true,
    takes_bare_templates: true,
    management: Some(ManagementApi::HonoRegistry),
    counters: Some(counters::COUNTERS),
    topic,
    write_reply: mqtt::write_reply,
    application: Application {
        replies: Some("command_response/#"),
        replies_with_status: true,
        notices: Some("command_failure/#"),
        write_command: northbound::write_command,
        returned: northbound::returned,
        kafka: Some(Kafka {
            topics: &kafka::TOPICS,
            command: kafka::record,
            returned: kafka::returned,
        }),
        amqp: Some(amqp::AMQP),
        calls: None,
    },
    server: Server {
        acceptance: 204,
        refusal: 503,
        // A code that CoAP can carry too.
        is_refusal: |code| matches!(code / 100, 4 | 5) && code % 100 < 32,
        amqp: amqp_server::AMQP,
        hides_logins: true,
        link_name: mqtt::link_name,
        read: mqtt::read,
        route: mqtt::route,
        unrouted: unscoped,
        command: northbound::command,
        unfit: server::unfit,
        handover: Handover::RewrittenOrInAnswer(mqtt::hand),
        objections: Some(Objections {
            treatment: mqtt::treatment,
            write: mqtt::write_refusal,
        }),
        write_notice: northbound::write_notice,
        surfaced_reply: mqtt::surfaced_reply,
        ..PLAIN_SERVER
    },
    // The adapter of MQTT refuses QoS 2.
    mqtt: Some(Publishing {
        commands: Some(mqtt::COMMANDS),
        gateway_commands: Some(mqtt::GATEWAY_COMMANDS),
        nameless_commands: Some(mqtt::NAMELESS_COMMANDS),
        names_replies: true,
        refusals: Some(Refusals {
            filter: mqtt::REFUSALS,
            nameless: mqtt::NAMELESS_REFUSALS,
        }),
        has_free_client_ids: true,
        qos_maximum: 1,
        downlink: mqtt::downlink,
        ..PLAIN_PUBLISHING
    }),
    requests: &[(Protocol::Coap, COAP), (Protocol::Http, http::REQUESTS)],
    ..PLAIN
};

/// Both ends of requests over CoAP.
const COAP: Requests = Requests {
    limits: Some(RequestLimits {
        body: 2_048,
        body_code: "4.13",
        body_key: "`maxPayloadSize` of the adapter",
        ttd: Micros::from_secs(60),
        ttd_key: "`max-ttd` of the adapter hono-coap in the tenant",
    }),
    resource: requests::resource,
    login: "${id}@${tenant}",
    uplink: requests::ask,
    reply: commands::ask_reply,
    answered: commands::answered,
    accepted: CHANGED,
    commanded: CHANGED,
    hint: meanings::hint,
    handshake_hint: meanings::HANDSHAKE_HINT,
    read: server::read,
    hand: server::hand,
    ..PLAIN_REQUESTS
};

/// Facts about a path: both words of an endpoint are one, and surface as one.
fn topic(path: &str) -> UplinkTopic {
    let (_, properties) = PropertyBag::split(path);
    let id = properties.raw(PropertyBag::CORRELATION_ID);
    let word = path.split('/').next().unwrap_or_default();
    let (counted_as, surface) = match Endpoint::named(word) {
        Some((Endpoint::Telemetry, _)) => (Some("telemetry"), Some("telemetry/${tenant}/${id}")),
        Some((Endpoint::Event, _)) => (Some("event"), Some("event/${tenant}/${id}")),
        None => (None, None),
    };
    UplinkTopic {
        counted_as,
        surface,
        names_messages: id.is_some_and(|id| id.ends_with("${seq}")),
        ..PLAIN_TOPIC
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_words_of_a_path_surface_and_are_counted_as_one() {
        for (path, counted) in [
            ("telemetry", Some("telemetry")),
            ("t", Some("telemetry")),
            ("t//${id}", Some("telemetry")),
            ("telemetry/${tenant}/${id}", Some("telemetry")),
            ("event/${tenant}/${id}", Some("event")),
            ("e", Some("event")),
            ("t/?hono-ttl=3", Some("telemetry")),
            ("command_response/x", None),
            ("muster/${id}/t", None),
            ("", None),
        ] {
            let surface = counted.map(|word| format!("{word}/${{tenant}}/${{id}}"));
            let known = topic(path);
            assert_eq!(known.counted_as, counted, "{path}");
            assert_eq!(known.surface, surface.as_deref(), "{path}");
        }
    }
}
