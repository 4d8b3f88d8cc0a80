//! The dialects there are: the one place that names them all.

mod commanding;
mod counting;
mod requesting;
mod serving;

use std::fmt;

use muster_load::PayloadSpec;
use muster_model::Promise;
use serde::{Deserialize, Serialize};

use crate::downlink::Downlink;
use crate::hono::DittoPayload;
use crate::kafka::KafkaClass;
use crate::thingsboard::{self, BoardPayload};
use crate::{hono, mqtt, sap_edge};

/// How devices and platform speak to each other. Each dialect is one folder of this crate, and the
/// compiler names every place here that a new one must fill.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Plain MQTT: topics and payloads are the scenario's, an answer is the transport's.
    #[default]
    Mqtt,
    /// SAP Edge Gateway Service over MQTT: measures acknowledged by the application.
    SapEdge,
    /// ThingsBoard over MQTT: data of devices that are known by their access token.
    Thingsboard,
    /// Eclipse Hono over CoAP: each message a request, commands in the answers.
    Hono,
}

/// What stands in a scenario of a dialect where a key is left out, each as it would be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Defaults {
    /// Keys of a fleet.
    pub fleet: &'static [(&'static str, &'static str)],
    /// Keys of `gateway`, where links carry several devices.
    pub gateway: &'static [(&'static str, &'static str)],
    /// Keys of a stream there, which go before those of any stream.
    pub gateway_stream: &'static [(&'static str, &'static str)],
    /// Keys of a stream.
    pub stream: &'static [(&'static str, &'static str)],
    /// Keys of a stream whose messages the application acknowledges.
    pub acknowledged: &'static [(&'static str, &'static str)],
}

/// How the figures of a published test are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedFigures {
    /// There are none.
    None,
    /// Device by device.
    ByDevice,
    /// From times in slots, stream by stream.
    BySlot,
}

/// The promises that a platform's acknowledgements make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Promises {
    /// The promise of the protocol's acknowledgement: PUBACK, PUBREC, 2.xx.
    pub transport: Promise,
    /// The promise of the application's acknowledgement; of no meaning where there is none.
    pub application: Promise,
}

/// What a link subscribes to before its devices may publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscription {
    /// The topic filter, in which `${id}` stands for the name of the link's first device.
    pub filter: &'static str,
    /// The quality of service, 0 to 2.
    pub qos: u8,
}

/// The most subscriptions of a link: those of its dialect, and those of its streams.
pub const SUBSCRIPTIONS_MAX: usize = 16;

/// A payload that a dialect knows by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedPayload<'a> {
    /// The measures of SAP Edge, so many samples a message.
    SapMeasures {
        /// At least 1.
        samples: u32,
    },
    /// A payload of the published performance tests of ThingsBoard.
    Board(BoardPayload<'a>),
    /// A message of the Ditto protocol.
    Ditto(DittoPayload<'a>),
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Dialect; 4] = [
        Dialect::Mqtt,
        Dialect::SapEdge,
        Dialect::Thingsboard,
        Dialect::Hono,
    ];

    /// The name in a scenario, and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mqtt => "mqtt",
            Self::SapEdge => "sap-edge",
            Self::Thingsboard => "thingsboard",
            Self::Hono => "hono",
        }
    }

    /// The dialect of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// What stands where a key is left out.
    #[must_use]
    pub const fn defaults(self) -> &'static Defaults {
        match self {
            Self::Mqtt => &mqtt::DEFAULTS,
            Self::SapEdge => &sap_edge::DEFAULTS,
            Self::Thingsboard => &thingsboard::DEFAULTS,
            Self::Hono => &hono::DEFAULTS,
        }
    }

    /// What a link subscribes to; it is up only once all of it was granted. At most
    /// [`SUBSCRIPTIONS_MAX`].
    #[must_use]
    pub const fn subscriptions(self) -> &'static [Subscription] {
        match self {
            Self::Mqtt | Self::Thingsboard | Self::Hono => &[],
            Self::SapEdge => &sap_edge::SUBSCRIPTIONS,
        }
    }

    /// Whether the application acknowledges what is published on a topic, so that `ack: application`
    /// has a meaning.
    #[must_use]
    pub fn acknowledges_on(self, topic: &str) -> bool {
        match self {
            Self::Mqtt | Self::Hono => false,
            Self::SapEdge => true,
            Self::Thingsboard => thingsboard::acknowledges_on(topic),
        }
    }

    /// The promises that its acknowledgements make.
    #[must_use]
    pub const fn promises(self) -> Promises {
        match self {
            Self::Mqtt => mqtt::PROMISES,
            Self::SapEdge => sap_edge::PROMISES,
            Self::Thingsboard => thingsboard::PROMISES,
            Self::Hono => hono::PROMISES,
        }
    }

    /// The topics on which devices ask the platform and are answered by its application, where these
    /// are others than the one that stands where a stream names none.
    #[must_use]
    pub const fn requests(self) -> &'static [&'static str] {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => &[],
            Self::Thingsboard => &thingsboard::REQUESTS,
        }
    }

    /// Whether several acknowledgements may stand in one message.
    #[must_use]
    pub const fn batches(self) -> bool {
        match self {
            Self::Mqtt | Self::Thingsboard | Self::Hono => false,
            Self::SapEdge => true,
        }
    }

    /// What stands in a stream on that topic where a key is left out, before the defaults of all
    /// streams.
    #[must_use]
    pub fn stream_defaults(self, topic: &str) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => &[],
            Self::Thingsboard => thingsboard::stream_defaults(topic),
        }
    }

    /// The template of the topics that the stream at `lane` of its fleet publishes on, from what the
    /// scenario says: some name the message there.
    #[must_use]
    pub fn topic(self, topic: &str, lane: u8) -> String {
        let numbered = match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => None,
            Self::Thingsboard => thingsboard::numbered_topic(topic, lane),
        };
        numbered.unwrap_or_else(|| topic.to_owned())
    }

    /// What a link subscribes to for the answers to what a stream publishes on that topic, beyond
    /// [`Dialect::subscriptions`].
    #[must_use]
    pub fn answers(self, topic: &str) -> Option<&'static str> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => None,
            Self::Thingsboard => thingsboard::answers(topic),
        }
    }

    /// Whether what is published on a topic surfaces northbound where a backend can consume it.
    #[must_use]
    pub fn surfaces(self, topic: &str) -> bool {
        match self {
            Self::Mqtt | Self::Hono => true,
            Self::SapEdge => false,
            Self::Thingsboard => thingsboard::surfaces(topic),
        }
    }

    /// On which topics of Kafka the platform publishes; empty where it has no names of its own for
    /// them, so that a scenario names them.
    #[must_use]
    pub const fn kafka_topics(self) -> &'static [KafkaClass] {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Thingsboard => &[],
            Self::Hono => &hono::KAFKA_TOPICS,
        }
    }

    /// Whether the platform knows devices by something else than their MQTT client ids, so that a run
    /// may choose these.
    #[must_use]
    pub const fn has_free_client_ids(self) -> bool {
        match self {
            Self::Mqtt => true,
            Self::Thingsboard | Self::Hono | Self::SapEdge => false,
        }
    }

    /// Whether the time-out of what the application acknowledges begins anew with each
    /// acknowledgement that the device gets.
    #[must_use]
    pub const fn slides(self) -> bool {
        match self {
            Self::Mqtt | Self::Thingsboard | Self::Hono => false,
            Self::SapEdge => true,
        }
    }

    /// Whether messages surface northbound where a backend can consume them.
    #[must_use]
    pub const fn has_northbound(self) -> bool {
        match self {
            Self::Mqtt | Self::Thingsboard | Self::Hono => true,
            Self::SapEdge => false,
        }
    }

    /// Whether the platform has to be told of its devices, and can be by Muster.
    #[must_use]
    pub const fn is_provisioned(self) -> bool {
        match self {
            Self::Mqtt => false,
            Self::SapEdge | Self::Hono => true,
            Self::Thingsboard => false,
        }
    }

    /// Whether the server end for the reference gateway has calls over HTTP beside MQTT.
    #[must_use]
    pub const fn has_rest(self) -> bool {
        match self {
            Self::Mqtt | Self::Hono => false,
            Self::SapEdge | Self::Thingsboard => true,
        }
    }

    /// How results hold the figures of the test that was published for this platform.
    #[must_use]
    pub const fn published_figures(self) -> PublishedFigures {
        match self {
            Self::Mqtt | Self::Thingsboard => PublishedFigures::None,
            Self::SapEdge => PublishedFigures::ByDevice,
            Self::Hono => PublishedFigures::BySlot,
        }
    }

    /// Whether a link may carry many devices.
    #[must_use]
    pub const fn shares_links(self) -> bool {
        match self {
            Self::Mqtt | Self::Thingsboard | Self::Hono => true,
            Self::SapEdge => false,
        }
    }

    /// Whether a topic is for links of `gateway`, which name their devices in the payload, or for
    /// links of one device; none if for either.
    #[must_use]
    pub fn is_for_gateways(self, topic: &str) -> Option<bool> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => None,
            Self::Thingsboard => thingsboard::is_for_gateways(topic),
        }
    }

    /// Whether the platform, or what stands behind it, writes payloads anew before they surface, so that
    /// numbers and the order of keys change.
    #[must_use]
    pub const fn rewrites_bodies(self) -> bool {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => false,
            Self::Thingsboard => true,
        }
    }

    /// Whether the platform has a topic; one that it does not have leads nowhere.
    #[must_use]
    pub fn knows_topic(self, topic: &str) -> bool {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => true,
            Self::Thingsboard => thingsboard::knows_topic(topic),
        }
    }

    /// Whether the platform stores what is published on a topic as keys and values.
    #[must_use]
    pub fn has_data(self, topic: &str) -> bool {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => false,
            Self::Thingsboard => thingsboard::has_data(topic),
        }
    }

    /// Whether each of these values has an instant, and replaces the one of the same instant.
    #[must_use]
    pub fn has_instants(self, topic: &str) -> bool {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => false,
            Self::Thingsboard => thingsboard::has_instants(topic),
        }
    }

    /// Whether a request on a topic asks the platform to make a device, whose credential the answer names.
    #[must_use]
    pub fn makes_devices(self, topic: &str) -> bool {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => false,
            Self::Thingsboard => thingsboard::makes_devices(topic),
        }
    }

    /// The longest payload that the platform takes over MQTT; none where no such limit is known.
    #[must_use]
    pub const fn payload_limit(self) -> Option<usize> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => None,
            Self::Thingsboard => Some(thingsboard::PAYLOAD_MAX),
        }
    }

    /// What to look at if the platform leaves an announcement of [`Dialect::announces`] unanswered.
    #[must_use]
    pub const fn announcement_remedy(self) -> &'static str {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => "",
            Self::Thingsboard => thingsboard::ANNOUNCEMENT_REMEDY,
        }
    }

    /// The topic on which a link of `gateway` says, for each of its devices, that it is there, at QoS 1
    /// and before it publishes; none if it need not.
    #[must_use]
    pub const fn announces(self) -> Option<&'static str> {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => None,
            Self::Thingsboard => Some(thingsboard::ANNOUNCE),
        }
    }

    /// Appends what is said there.
    pub fn write_announcement(self, device: &str, out: &mut Vec<u8>) {
        match self {
            Self::Mqtt | Self::SapEdge | Self::Hono => {}
            Self::Thingsboard => thingsboard::write_announcement(device, out),
        }
    }

    /// Reads a message that came to a device.
    #[must_use]
    pub fn downlink<'a>(self, topic: &str, payload: &'a [u8]) -> Downlink<'a> {
        match self {
            Self::Mqtt => mqtt::downlink(topic, payload),
            Self::SapEdge => sap_edge::downlink(topic, payload),
            Self::Thingsboard => thingsboard::downlink(topic, payload),
            Self::Hono => Downlink::Other,
        }
    }

    /// A payload that the dialect knows by name, for the stream at `lane` of its fleet.
    #[must_use]
    pub fn payload(self, named: NamedPayload<'_>, lane: u8) -> PayloadSpec {
        match named {
            NamedPayload::Board(payload) => thingsboard::payload(payload),
            NamedPayload::Ditto(payload) => hono::payload(payload),
            NamedPayload::SapMeasures { samples } => sap_edge::measures(samples, lane),
        }
    }

    /// The template of the topics on which a stream's messages surface northbound, from that of the
    /// topics they are published on.
    #[must_use]
    pub fn surface(self, topic: &str) -> String {
        match self {
            Self::Mqtt | Self::SapEdge => topic.to_owned(),
            Self::Thingsboard => thingsboard::surface(topic).unwrap_or_else(|| topic.to_owned()),
            Self::Hono => hono::surface(topic).unwrap_or_else(|| topic.to_owned()),
        }
    }
}

impl Subscription {
    /// Puts the filter of a link into `out`, which is emptied first.
    pub fn render(&self, name: &str, out: &mut String) {
        out.clear();
        match self.filter.split_once("${id}") {
            Some((before, after)) => out.extend([before, name, after]),
            None => out.push_str(self.filter),
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialect_is_found_by_its_name() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::named(dialect.name()), Some(dialect));
            assert!(dialect.subscriptions().len() <= SUBSCRIPTIONS_MAX);
        }
        assert_eq!(Dialect::named("nobody"), None);
    }

    #[test]
    fn a_filter_names_the_device() {
        let mut filter = "old".to_owned();
        let subscription = |filter| Subscription { filter, qos: 0 };
        subscription("ack/${id}").render("d-1", &mut filter);
        assert_eq!(filter, "ack/d-1");
        subscription("v1/devices/me/rpc/request/+").render("d-1", &mut filter);
        assert_eq!(filter, "v1/devices/me/rpc/request/+");
    }
}
