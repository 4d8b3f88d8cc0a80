//! ThingsBoard over MQTT, HTTP and CoAP.
//!
//! All devices publish on the same topics, `v1/devices/me/...` or the short `v2/...`, and are known by
//! the access token that their link gave as its user name; a gateway's link names its devices in
//! the payload (`v1/gateway/...`). Nothing of that is a broker: what the platform hands on is
//! up to its rule chains. The server end does what a chain with an MQTT node would, and publishes
//! each message again on `thingsboard/<device>/telemetry` or `.../attributes`. Requests over HTTP and CoAP have the
//! token in their path instead (`paths`); streams have the same topics there.

mod counters;
mod gateways;
mod numbered;
mod paths;
mod payloads;
mod points;
mod provisioning;
mod requests;
pub mod rest;
mod rpc;
mod scope;
mod uplinks;

pub(crate) use payloads::payload;
pub use payloads::{BoardPayload, BoardShare, BoardValues, Rare};
pub use uplinks::{Data, Devices};

use muster_model::Promise;

use self::numbered::{Kind, Numbered};
use crate::command::Commanded;
use crate::downlink::{Acknowledgements, Downlink, Words};
use crate::protocol::Protocol;
use crate::scope::unscoped;
use crate::server::Reply;
use crate::spec::{
    Announcement, Application, Default, Defaults, Handover, ManagementApi, PLAIN, PLAIN_PUBLISHING,
    PLAIN_SERVER, PLAIN_TOPIC, Promises, Publishing, Rest, Server, Spec, TopicLack, UplinkTopic,
};

pub(crate) static THINGSBOARD: Spec = Spec {
    name: "thingsboard",
    defaults: Defaults {
        fleet: &[("credential", "{ kind: token }")],
        gateway: &[("id", "GW${index:08}")],
        gateway_stream: &[("topic", "v1/gateway/telemetry")],
        stream: &[
            ("topic", "v1/devices/me/telemetry"),
            ("payload", "smart-meter"),
        ],
        ..PLAIN.defaults
    },
    // PUBACK is sent once the message is in the queue of the rule engine; a request is answered by the
    // application.
    promises: Promises {
        transport: Promise::Enqueued,
        application: Promise::Processed,
    },
    knows_links: true,
    management: Some(ManagementApi::ThingsBoard),
    takes_bare_templates: true,
    rewrites_bodies: true,
    counters: Some(counters::COUNTERS),
    topic,
    point_instant: points::instant,
    write_reply: rpc::write_reply,
    application: Application {
        replies: Some("thingsboard-rpc/+/response"),
        write_command: rpc::write_command,
        returned: rpc::returned,
        calls: Some(rpc::CALLS),
        ..PLAIN.application
    },
    server: Server {
        rest: Some(Rest::Stored),
        link_name: provisioning::link_name,
        answers_unasked: provisioning::is_provisioning,
        read: uplinks::read,
        write_acknowledgement_topic,
        write_acknowledgement,
        nobodys,
        route: scope::route,
        unrouted: unscoped,
        has_filter: scope::is_of_link,
        command: |topic| rpc::commanded(topic).map(Commanded::to),
        is_refusal: |code| matches!(code, 0x80..=0xff | 400..=599),
        // As where a limit of the tenant or the device is reached.
        ends_link: |code| code == 0x83,
        takes_command: rpc::is_call,
        handover: Handover::RewrittenOrInAnswer(rpc::hand),
        surfaced_reply: rpc::surfaced,
        reply_number: rpc::reply_number,
        question: requests::question,
        unanswered: requests::UNANSWERED,
        lifetime_s: provisioning::lifetime_s,
        ..PLAIN_SERVER
    },
    mqtt: Some(Publishing {
        commands: Some("v1/devices/me/rpc/request/+"),
        gateway_commands: Some(rpc::GATEWAY),
        announcement: Some(Announcement {
            topic: gateways::ANNOUNCE,
            write: gateways::write_announcement,
            remedy: "ThingsBoard answers it only to a gateway: give the device of this link's token `additionalInfo.gateway = true`",
        }),
        requests: &REQUESTS,
        // MQTT at QoS 2 is none of ThingsBoard's.
        qos_maximum: 1,
        // Where it is not configured otherwise (`NETTY_MAX_PAYLOAD_SIZE`).
        payload_limit: Some(65_536),
        downlink,
        ..PLAIN_PUBLISHING
    }),
    requests: &[(Protocol::Coap, paths::COAP), (Protocol::Http, paths::HTTP)],
    ..PLAIN
};

/// Returns the defaults of a stream of requests with this payload.
const fn request(payload: &'static str) -> [Default; 3] {
    [
        ("payload", payload),
        ("ack", "application"),
        ("carrier", "application-id"),
    ]
}

const ATTRIBUTES_REQUEST: [Default; 3] =
    request(r#"{ template: '{"clientKeys":"model","sharedKeys":"interval"}' }"#);
const RPC_REQUEST: [Default; 3] = request(r#"{ template: '{"method":"getTime","params":{}}' }"#);
const PROVISION: [Default; 3] = request(provisioning::PAYLOAD);
const CLAIM: [Default; 2] = [
    (
        "payload",
        r#"{ template: '{"secretKey":"muster","durationMs":60000}' }"#,
    ),
    ("carrier", "none"),
];

/// The topics on which devices ask, without the numbers.
const REQUESTS: [&str; 7] = [
    "v1/devices/me/attributes/request",
    "v2/a/req",
    "v2/a/req/j",
    "v1/devices/me/rpc/request",
    "v2/r/req",
    "v2/r/req/j",
    provisioning::REQUEST,
];

/// The topic of streams that wait for commands by requests; over MQTT none has it.
const POLL: &str = "v1/devices/me/rpc";

/// Purpose of a device's topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    Telemetry,
    Attributes,
    GatewayTelemetry,
    GatewayAttributes,
    /// A gateway's device is there, or is gone.
    GatewayConnect,
    GatewayDisconnect,
    /// A device is to be claimed.
    Claim,
}

/// The topics there are; `/j` is JSON whatever the device's profile says.
const TOPICS: [(&str, Topic); 11] = [
    ("v1/devices/me/telemetry", Topic::Telemetry),
    ("v1/devices/me/attributes", Topic::Attributes),
    ("v2/t", Topic::Telemetry),
    ("v2/t/j", Topic::Telemetry),
    ("v2/a", Topic::Attributes),
    ("v2/a/j", Topic::Attributes),
    ("v1/gateway/telemetry", Topic::GatewayTelemetry),
    ("v1/gateway/attributes", Topic::GatewayAttributes),
    ("v1/gateway/connect", Topic::GatewayConnect),
    ("v1/gateway/disconnect", Topic::GatewayDisconnect),
    ("v1/devices/me/claim", Topic::Claim),
];

impl Topic {
    pub(crate) fn of(topic: &str) -> Option<Self> {
        let known = TOPICS.iter().find(|(text, _)| *text == topic);
        known.map(|(_, topic)| *topic)
    }

    /// Returns true if a link publishes for several devices on it.
    pub(crate) const fn is_gateways(self) -> bool {
        match self {
            Self::Telemetry | Self::Attributes | Self::Claim => false,
            Self::GatewayTelemetry
            | Self::GatewayAttributes
            | Self::GatewayConnect
            | Self::GatewayDisconnect => true,
        }
    }

    /// The template of the topics that its data surface on.
    const fn surface(self) -> Option<&'static str> {
        match self {
            Self::Telemetry | Self::GatewayTelemetry => Some("thingsboard/${id}/telemetry"),
            Self::Attributes | Self::GatewayAttributes => Some("thingsboard/${id}/attributes"),
            Self::GatewayConnect | Self::GatewayDisconnect | Self::Claim => None,
        }
    }
}

/// Topics of ThingsBoard that no stream has by default: answers, firmware and other forms of payload.
const FURTHER_TOPICS: [&str; 14] = [
    "v1/devices/me/attributes/request/",
    "v1/devices/me/rpc/request/",
    "v1/devices/me/rpc/response/",
    "v1/gateway/attributes/request",
    "v1/gateway/claim",
    "v1/gateway/metrics",
    "v1/gateway/rpc",
    "v2/a/",
    "v2/fw/request/",
    "v2/r/",
    "v2/sw/request/",
    "v2/t/",
    "spBv1.0/",
    "/provision/",
];

/// Words on a topic that is none of these.
const LACK: TopicLack = TopicLack {
    what: "is no topic of thingsboard, which acknowledges such a message and drops it",
    help: "such as v1/devices/me/telemetry; a topic that only a device profile names is none of the gateway's",
};

/// Facts about a topic; one that is none of ThingsBoard's may surface wherever somebody has it do so.
fn topic(text: &str) -> UplinkTopic {
    let known = Topic::of(text);
    let answers = requests::answers(text);
    let makes_devices = text == provisioning::REQUEST;
    let is_request = answers.is_some() || makes_devices;
    let is_for_gateways = known.map(Topic::is_gateways);
    let is_for_gateways = is_for_gateways.or(is_request.then_some(false));
    let is_known = is_for_gateways.is_some() || is_further(text) || text == POLL;
    let surface = known.and_then(Topic::surface);
    UplinkTopic {
        lack: (!is_known).then_some(LACK),
        is_acknowledged: is_request,
        answers,
        surfaces: (is_for_gateways.is_none() && text != POLL) || surface.is_some(),
        surface,
        is_for_gateways,
        has_data: surface.is_some(),
        has_instants: matches!(known, Some(Topic::Telemetry | Topic::GatewayTelemetry)),
        makes_devices,
        counted_as: surface.map(|_| "rule engine"),
        defaults: match answers {
            _ if makes_devices => &PROVISION,
            _ if known == Some(Topic::Claim) => &CLAIM,
            Some(filter) if filter.contains("/a") => &ATTRIBUTES_REQUEST,
            Some(_) => &RPC_REQUEST,
            None => &[],
        },
        ..PLAIN_TOPIC
    }
}

/// True if ThingsBoard has a topic that no stream has by default.
fn is_further(topic: &str) -> bool {
    FURTHER_TOPICS
        .iter()
        .any(|known| match known.ends_with('/') {
            true => topic.len() > known.len() && topic.starts_with(known),
            false => topic == *known,
        })
}

/// Reads a message that came to a device or a gateway.
fn downlink<'a>(topic: &str, payload: &'a [u8]) -> Downlink<'a> {
    let one = |word| Downlink::Acknowledgements(Acknowledgements(Words::One(Some(word))));
    if topic == rpc::GATEWAY {
        return rpc::command_of_gateway(payload);
    }
    if topic == provisioning::RESPONSE {
        return one(provisioning::answer(payload));
    }
    let Some(Numbered { kind, number, .. }) = Numbered::of(topic) else {
        return Downlink::Other;
    };
    match kind {
        Kind::RpcRequest => rpc::command(number, payload),
        Kind::AttributesResponse | Kind::RpcResponse => one(requests::answer(number, payload)),
        Kind::AttributesRequest => Downlink::Other,
    }
}

/// Returns the topic of a request that no device made, of the same kind as the given one. An answer with
/// this topic matches no request.
fn nobodys(id: Option<&[u8]>) -> Vec<u8> {
    let asked = id.and_then(|id| std::str::from_utf8(id).ok());
    match asked.and_then(Numbered::of) {
        Some(asked) => format!("{}{}", asked.stem, i32::MAX).into_bytes(),
        None => b"\"nobody\"".to_vec(),
    }
}

/// Appends the topic of the answer to a request.
fn write_acknowledgement_topic(_: &str, id: Option<&[u8]>, out: &mut String) {
    let asked = id.and_then(|id| std::str::from_utf8(id).ok());
    if !asked.is_some_and(|asked| requests::write_answer_topic(asked, out)) {
        out.push_str(provisioning::RESPONSE);
    }
}

/// Appends the answer to the first request; a message holds no more than one.
fn write_acknowledgement(replies: &mut dyn Iterator<Item = Reply<'_>>, out: &mut Vec<u8>) {
    let Some(reply) = replies.next() else { return };
    let asked = reply.id.and_then(|id| std::str::from_utf8(id).ok());
    match asked.and_then(Numbered::of) {
        Some(_) => requests::write_answer(&reply, out),
        None => provisioning::write_answer(&reply, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_answered_and_surfaces_nowhere() {
        for request in REQUESTS {
            let known = topic(request);
            assert!(known.is_acknowledged && !known.surfaces, "{request}");
            assert_eq!(known.is_for_gateways, Some(false), "{request}");
            assert_eq!(known.defaults.len(), 3, "{request}");
        }
        for (text, kind) in TOPICS {
            let known = topic(text);
            assert!(!known.is_acknowledged, "{text}");
            assert_eq!(known.surfaces, kind.surface().is_some(), "{text}");
        }
        assert!(topic("somebody/elses").surfaces && topic("v2/t").defaults.is_empty());
    }

    #[test]
    fn a_stream_surfaces_under_the_names_of_its_devices() {
        for (text, expected) in [
            ("v2/t", Some("thingsboard/${id}/telemetry")),
            (
                "v1/gateway/attributes",
                Some("thingsboard/${id}/attributes"),
            ),
            ("muster/${id}/t", None),
        ] {
            assert_eq!(topic(text).surface, expected, "{text}");
        }
    }

    #[test]
    fn a_topic_that_leads_nowhere_is_told() {
        let ours = TOPICS.map(|(known, _)| known).into_iter().chain(REQUESTS);
        let further = [
            "v1/devices/me/rpc/response/5",
            "v1/gateway/rpc",
            "v2/fw/request/0/chunk/1",
            "v2/t/p",
            "spBv1.0/group/DDATA/node/device",
        ];
        for known in ours.chain(further) {
            assert_eq!(topic(known).lack, None, "{known}");
        }
        for unknown in [
            "muster/a/t",
            "v1/devices/me",
            "v1/devices/me/telemetri",
            "v1/gateway/telemetries",
            "v2/x",
            "telemetry",
            "/v1/devices/me/telemetry",
        ] {
            assert_eq!(topic(unknown).lack, Some(LACK), "{unknown}");
        }
    }
}
