//! ThingsBoard over MQTT.
//!
//! All devices publish on the same topics, `v1/devices/me/...` or the short `v2/...`, and are known by
//! the access token that their link gave as its user name; a gateway's link names its devices in
//! the payload (`v1/gateway/...`). Nothing of that is a broker: what the platform hands on is
//! up to its rule chains. The server end does what a chain with an MQTT node would, and publishes
//! each message again on `thingsboard/<device>/telemetry` or `.../attributes`.

mod gateways;
mod numbered;
mod payloads;
mod provisioning;
mod requests;
mod rpc;
mod scope;
mod uplinks;

pub(crate) use gateways::{ANNOUNCE, write_announcement};
pub(crate) use payloads::payload;
pub use payloads::{BoardPayload, BoardShare, BoardValues, Rare};
pub(crate) use provisioning::link_name;
pub(crate) use requests::{answers, numbered as numbered_topic};
pub(crate) use rpc::{
    COMMANDS, GATEWAY as GATEWAY_RPC, REPLIES, commanded, hand, is_call, reply, surfaced,
    write_command, write_reply,
};
pub(crate) use scope::{is_scoped, scoped, unscoped};
pub use uplinks::{Data, Devices};
pub(crate) use uplinks::{hear, surface};

use muster_model::Promise;

use self::numbered::{Kind, Numbered};
use crate::dialect::{Defaults, Promises};
use crate::downlink::{Acknowledgements, Downlink, Words};
use crate::server::Reply;

/// MQTT at QoS 2 is none of ThingsBoard's.
pub(crate) const QOS_MAXIMUM: u8 = 1;

/// The longest payload that ThingsBoard takes over MQTT, where it is not configured otherwise
/// (`NETTY_MAX_PAYLOAD_SIZE`).
pub(crate) const PAYLOAD_MAX: usize = 65_536;

/// What to look at if nothing answers an announcement.
pub(crate) const ANNOUNCEMENT_REMEDY: &str = "ThingsBoard answers it only to a gateway: give the device of this link's token `additionalInfo.gateway = true`";

/// PUBACK is sent once the message is in the queue of the rule engine; a request is answered by the application.
pub(crate) const PROMISES: Promises = Promises {
    transport: Promise::Enqueued,
    application: Promise::Processed,
};

pub(crate) const DEFAULTS: Defaults = Defaults {
    fleet: &[("credential", "{ kind: token }")],
    gateway: &[("id", "GW${index:08}")],
    gateway_stream: &[("topic", "v1/gateway/telemetry")],
    stream: &[
        ("topic", "v1/devices/me/telemetry"),
        ("payload", "smart-meter"),
    ],
    acknowledged: &[],
};

/// What a stream of requests leaves out.
const ATTRIBUTES_REQUEST: [(&str, &str); 3] = [
    (
        "payload",
        r#"{ template: '{"clientKeys":"model","sharedKeys":"interval"}' }"#,
    ),
    ("ack", "application"),
    ("carrier", "application-id"),
];
const RPC_REQUEST: [(&str, &str); 3] = [
    (
        "payload",
        r#"{ template: '{"method":"getTime","params":{}}' }"#,
    ),
    ("ack", "application"),
    ("carrier", "application-id"),
];
const PROVISION: [(&str, &str); 3] = [
    ("payload", provisioning::PAYLOAD),
    ("ack", "application"),
    ("carrier", "application-id"),
];
const CLAIM: [(&str, &str); 2] = [
    (
        "payload",
        r#"{ template: '{"secretKey":"muster","durationMs":60000}' }"#,
    ),
    ("carrier", "none"),
];

/// What a stream on that topic leaves out.
pub(crate) fn stream_defaults(topic: &str) -> &'static [(&'static str, &'static str)] {
    if topic == provisioning::REQUEST {
        return &PROVISION;
    }
    if Topic::of(topic) == Some(Topic::Claim) {
        return &CLAIM;
    }
    match answers(topic) {
        Some(filter) if filter.contains("/a") => &ATTRIBUTES_REQUEST,
        Some(_) => &RPC_REQUEST,
        None => &[],
    }
}

/// The topics on which devices ask, without the numbers.
pub(crate) const REQUESTS: [&str; 7] = [
    "v1/devices/me/attributes/request",
    "v2/a/req",
    "v2/a/req/j",
    "v1/devices/me/rpc/request",
    "v2/r/req",
    "v2/r/req/j",
    provisioning::REQUEST,
];

/// What a topic of devices is for.
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

    /// Whether a link publishes for several devices on it.
    pub(crate) const fn is_gateways(self) -> bool {
        match self {
            Self::Telemetry | Self::Attributes | Self::Claim => false,
            Self::GatewayTelemetry
            | Self::GatewayAttributes
            | Self::GatewayConnect
            | Self::GatewayDisconnect => true,
        }
    }

    /// The last level of the topic that its data surface on.
    const fn kind(self) -> Option<&'static str> {
        match self {
            Self::Telemetry | Self::GatewayTelemetry => Some("telemetry"),
            Self::Attributes | Self::GatewayAttributes => Some("attributes"),
            Self::GatewayConnect | Self::GatewayDisconnect | Self::Claim => None,
        }
    }

    /// The topic that a device's data surface on.
    fn write_surface(self, device: &str, out: &mut String) {
        if let Some(kind) = self.kind() {
            out.extend(["thingsboard/", device, "/", kind]);
        }
    }
}

/// Whether a topic is a gateway's; none if it is none of ThingsBoard's.
pub(crate) fn is_for_gateways(topic: &str) -> Option<bool> {
    let is_of_devices = answers(topic).is_some() || topic == provisioning::REQUEST;
    let known = Topic::of(topic).map(Topic::is_gateways);
    known.or(is_of_devices.then_some(false))
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

/// Whether ThingsBoard has a topic.
pub(crate) fn knows_topic(topic: &str) -> bool {
    let is_further = FURTHER_TOPICS
        .iter()
        .any(|known| match known.ends_with('/') {
            true => topic.len() > known.len() && topic.starts_with(known),
            false => topic == *known,
        });
    is_further || is_for_gateways(topic).is_some()
}

/// Whether what is published on a topic is stored as keys and values.
pub(crate) fn has_data(topic: &str) -> bool {
    Topic::of(topic).is_some_and(|topic| topic.kind().is_some())
}

/// Whether these values are a series.
pub(crate) fn has_instants(topic: &str) -> bool {
    Topic::of(topic).is_some_and(|topic| topic.kind() == Some("telemetry"))
}

/// Whether a request on a topic asks for a device.
pub(crate) fn makes_devices(topic: &str) -> bool {
    topic == provisioning::REQUEST
}

/// Whether what is published on a topic surfaces northbound; a topic that is none of ThingsBoard's may.
pub(crate) fn surfaces(topic: &str) -> bool {
    let is_known = is_for_gateways(topic).is_some();
    !is_known || Topic::of(topic).is_some_and(|topic| topic.kind().is_some())
}

/// Whether the application's own answer follows what is published on a topic.
pub(crate) fn acknowledges_on(topic: &str) -> bool {
    answers(topic).is_some() || topic == provisioning::REQUEST
}

/// Reads a message that came to a device or a gateway.
pub(crate) fn downlink<'a>(topic: &str, payload: &'a [u8]) -> Downlink<'a> {
    let one = |word| Downlink::Acknowledgements(Acknowledgements(Words::One(Some(word))));
    if topic == GATEWAY_RPC {
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

/// The topic of a request that no device made, of the kind of one that it did: what an answer names
/// that is nobody's.
pub(crate) fn nobodys(id: Option<&[u8]>) -> Vec<u8> {
    let asked = id.and_then(|id| std::str::from_utf8(id).ok());
    match asked.and_then(Numbered::of) {
        Some(asked) => format!("{}{}", asked.stem, i32::MAX).into_bytes(),
        None => b"\"nobody\"".to_vec(),
    }
}

/// Appends the topic of the answer to a request.
pub(crate) fn write_acknowledgement_topic(id: Option<&[u8]>, out: &mut String) {
    let asked = id.and_then(|id| std::str::from_utf8(id).ok());
    if !asked.is_some_and(|asked| requests::write_answer_topic(asked, out)) {
        out.push_str(provisioning::RESPONSE);
    }
}

/// Appends the answer to a request; a message holds no more than one.
pub(crate) fn write_acknowledgement(reply: &Reply<'_>, out: &mut Vec<u8>) {
    let asked = reply.id.and_then(|id| std::str::from_utf8(id).ok());
    match asked.and_then(Numbered::of) {
        Some(_) => requests::write_answer(reply, out),
        None => provisioning::write_answer(reply, out),
    }
}

/// Whether a link is answered though it never subscribed.
pub(crate) fn answers_unasked(link: &str) -> bool {
    provisioning::is_provisioning(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_answered_and_surfaces_nowhere() {
        for topic in REQUESTS {
            assert!(acknowledges_on(topic) && !surfaces(topic), "{topic}");
            assert_eq!(is_for_gateways(topic), Some(false), "{topic}");
            assert_eq!(stream_defaults(topic).len(), 3, "{topic}");
        }
        for (topic, kind) in TOPICS {
            assert!(!acknowledges_on(topic), "{topic}");
            assert_eq!(surfaces(topic), kind.kind().is_some(), "{topic}");
        }
        assert!(surfaces("somebody/elses") && stream_defaults("v2/t").is_empty());
    }

    #[test]
    fn a_topic_that_leads_nowhere_is_told() {
        let ours = TOPICS.map(|(topic, _)| topic).into_iter().chain(REQUESTS);
        let further = [
            "v1/devices/me/rpc/response/5",
            "v1/gateway/rpc",
            "v2/fw/request/0/chunk/1",
            "v2/t/p",
            "spBv1.0/group/DDATA/node/device",
        ];
        for topic in ours.chain(further) {
            assert!(knows_topic(topic), "{topic}");
        }
        for topic in [
            "muster/a/t",
            "v1/devices/me",
            "v1/devices/me/telemetri",
            "v1/gateway/telemetries",
            "v2/x",
            "telemetry",
            "/v1/devices/me/telemetry",
        ] {
            assert!(!knows_topic(topic), "{topic}");
        }
    }
}
