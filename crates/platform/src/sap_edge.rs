//! SAP Edge Gateway Service over MQTT.
//!
//! A device publishes measures on `measures/<device>`, is acknowledged on `ack/<device>` by arrays
//! of `{ id, code, messages }`, and gets commands on `commands/<device>`, to which it does not reply. An id is the message's
//! `measureMessageId`; the codes 200 and 202 accept, any other rejects. What the gateway makes of
//! the measures beyond that is not Muster's to see.

mod acknowledgements;
mod measures;

pub(crate) use acknowledgements::AckArray;
pub(crate) use measures::measures;

use muster_model::{Promise, Stamp};

use crate::command::{CommandCopy, CommandScratch, Commanded, OutboundCommand, named};
use crate::downlink::{Acknowledgements, Downlink, Words};

use crate::json::Json;
use crate::spec::{
    Application, Defaults, ManagementApi, PLAIN, PLAIN_PUBLISHING, PLAIN_SERVER, PLAIN_TOPIC,
    Promises, PublishedFigures, Publishing, Rest, Server, Spec, Subscription, UplinkTopic,
};

pub(crate) static SAP_EDGE: Spec = Spec {
    name: "sap-edge",
    defaults: Defaults {
        fleet: &[("id", "PerfTest_${index}")],
        stream: &[
            ("topic", "measures/${id}"),
            ("qos", "0"),
            ("ack", "application"),
            ("payload", "{ sap-measures: { samples: 1 } }"),
            ("carrier", "application-id"),
        ],
        acknowledged: &[("timeout", "30s")],
        ..PLAIN.defaults
    },
    // PUBACK is the broker's word; the acknowledgement of a measure is that of the service behind it.
    promises: Promises {
        transport: Promise::Enqueued,
        application: Promise::Processed,
    },
    published_figures: PublishedFigures::ByDevice,
    shares_links: false,
    management: Some(ManagementApi::SapEdge),
    has_northbound: false,
    topic: |_| UplinkTopic {
        is_acknowledged: true,
        surfaces: false,
        ..PLAIN_TOPIC
    },
    application: Application {
        write_command,
        ..PLAIN.application
    },
    server: Server {
        rest: Some(Rest::Devices),
        // The published median. A client that publishes before its subscription is granted, as the
        // published one does, would miss an earlier acknowledgement.
        service_time: Some("2ms"),
        acceptance: 202,
        refusal: 503,
        is_refusal: |code| !accepts(code),
        read: |_, topic, payload| measures::read(topic, payload),
        write_acknowledgement_topic: |device, _, out| out.extend([ACK, device]),
        write_acknowledgement: acknowledgements::write_acknowledgement,
        command: |topic| topic.strip_prefix(COMMANDS).map(Commanded::to),
        ..PLAIN_SERVER
    },
    mqtt: Some(Publishing {
        subscriptions: &[
            Subscription {
                filter: "ack/${id}",
                qos: 0,
            },
            Subscription {
                filter: "commands/${id}",
                qos: 1,
            },
        ],
        batches: true,
        slides: true,
        downlink,
        ..PLAIN_PUBLISHING
    }),
    ..PLAIN
};

const ACK: &str = "ack/";
const COMMANDS: &str = "commands/";
const MEASURES: &str = "measures/";

const fn accepts(code: u16) -> bool {
    matches!(code, 200 | 202)
}

fn downlink<'a>(topic: &str, payload: &'a [u8]) -> Downlink<'a> {
    if topic.starts_with(ACK) {
        Downlink::Acknowledgements(Acknowledgements(Words::Array(AckArray::new(payload))))
    } else if topic.starts_with(COMMANDS) {
        Downlink::Command(CommandCopy {
            stamp: commanded(payload),
            ..CommandCopy::UNREADABLE
        })
    } else {
        Downlink::Other
    }
}

/// Renders a command: the values of a capability's properties; the id is one of them.
fn write_command(to: &OutboundCommand<'_>, out: &mut CommandScratch) {
    out.head(&[COMMANDS, to.device]);
    out.payload.clear();
    let head = r#"{"sensorAlternateId":"PerfTest","capabilityAlternateId":"PerfTest","command":"#;
    out.payload.extend_from_slice(head.as_bytes());
    out.write_named(to.stamp);
    out.payload.push(b'}');
}

/// Returns the stamp of a command; none for a payload that is no command of Muster's, or damaged.
fn commanded(payload: &[u8]) -> Option<Stamp> {
    let mut json = Json::new(payload);
    let mut command = None;
    json.members(|key, json| match key {
        b"command" => json.value().map(|value| command = Some(value)),
        _ => json.skip(),
    })?;
    named(command.filter(|_| json.is_at_end())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::stamp;

    #[test]
    fn a_command_reads_back_as_it_was_written_and_another_names_none() {
        let mut scratch = CommandScratch::default();
        let to = OutboundCommand {
            stamp: &stamp(),
            device: "PerfTest_3",
            tenant: "",
            is_two_way: false,
        };
        write_command(&to, &mut scratch);
        assert_eq!(scratch.topic, "commands/PerfTest_3");
        let read = |payload: &[u8]| match downlink("commands/PerfTest_3", payload) {
            Downlink::Command(copy) => copy.stamp,
            other @ (Downlink::Acknowledgements(_) | Downlink::Other) => panic!("{other:?}"),
        };
        assert_eq!(read(&scratch.payload), Some(stamp()));
        let last = scratch.payload.len() - 9;
        scratch.payload[last] ^= 1;
        assert_eq!(read(&scratch.payload), None);
        for other in ["", "{}", r#"{"command":{"LED":"true"}}"#, "null"] {
            assert_eq!(read(other.as_bytes()), None, "{other}");
        }
    }
}
