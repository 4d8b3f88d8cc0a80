//! ThingsBoard over MQTT.
//!
//! All devices publish on the same topics, `v1/devices/me/...` or the short `v2/...`, and are known by
//! the access token that their link gave as its user name; a gateway's link names its devices in
//! the payload (`v1/gateway/...`). Nothing of that is a broker: what the platform hands on is
//! up to its rule chains. The server end does what a chain with an MQTT node would, and publishes
//! each message again on `thingsboard/<device>/telemetry` or `.../attributes`.

mod gateways;
mod payloads;
mod uplinks;

pub(crate) use gateways::{ANNOUNCE, write_announcement};
pub(crate) use payloads::payload;
pub use payloads::{BoardPayload, BoardValues, Rare};
pub use uplinks::{Data, Devices};
pub(crate) use uplinks::{hear, surface};

use crate::dialect::Defaults;

/// MQTT at QoS 2 is none of ThingsBoard's.
pub(crate) const QOS_MAXIMUM: u8 = 1;

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
}

/// The topics there are; `/j` is JSON whatever the device's profile says.
const TOPICS: [(&str, Topic); 10] = [
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
];

impl Topic {
    pub(crate) fn of(topic: &str) -> Option<Self> {
        let known = TOPICS.iter().find(|(text, _)| *text == topic);
        known.map(|(_, topic)| *topic)
    }

    /// Whether a link publishes for several devices on it.
    pub(crate) const fn is_gateways(self) -> bool {
        match self {
            Self::Telemetry | Self::Attributes => false,
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
            Self::GatewayConnect | Self::GatewayDisconnect => None,
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
    Topic::of(topic).map(Topic::is_gateways)
}
