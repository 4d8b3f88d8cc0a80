//! SAP Edge Gateway Service over MQTT.
//!
//! A device publishes measures on `measures/<device>`, is acknowledged on `ack/<device>` by arrays
//! of `{ id, code, messages }`, and gets commands on `commands/<device>`, to which it does not reply. An id is the message's
//! `measureMessageId`; the codes 200 and 202 accept, any other rejects. What the gateway makes of
//! the measures beyond that is not Muster's to see.

mod acknowledgements;
mod measures;

pub(crate) use acknowledgements::{AckArray, write_acknowledgement};
pub(crate) use measures::{hear, measures};

use muster_model::{Promise, Stamp};

use crate::command::{CommandCopy, CommandScratch, named};
use crate::dialect::{Defaults, Promises, Subscription};
use crate::downlink::{Acknowledgements, Downlink, Words};
use crate::json::Json;

/// The code of the server end's yes.
pub(crate) const ACCEPTED: u16 = 202;
/// The code of the server end's no where none is named.
pub(crate) const OVERLOADED: u16 = 503;

/// How long the server end takes for a message: the published median. A client that publishes before its
/// subscription is granted, as the published one does, would miss an earlier acknowledgement.
pub(crate) const SERVICE_TIME: &str = "2ms";

const ACK: &str = "ack/";
const COMMANDS: &str = "commands/";
const MEASURES: &str = "measures/";

/// PUBACK is the broker's word; the acknowledgement of a measure is that of the service behind it.
pub(crate) const PROMISES: Promises = Promises {
    transport: Promise::Enqueued,
    application: Promise::Processed,
};

pub(crate) const DEFAULTS: Defaults = Defaults {
    fleet: &[("id", "PerfTest_${index}")],
    gateway: &[],
    gateway_stream: &[],
    stream: &[
        ("topic", "measures/${id}"),
        ("qos", "0"),
        ("ack", "application"),
        ("payload", "{ sap-measures: { samples: 1 } }"),
        ("carrier", "application-id"),
    ],
    acknowledged: &[("timeout", "30s")],
};

pub(crate) const SUBSCRIPTIONS: [Subscription; 2] = [
    Subscription {
        filter: "ack/${id}",
        qos: 0,
    },
    Subscription {
        filter: "commands/${id}",
        qos: 1,
    },
];

pub(crate) const fn accepts(code: u16) -> bool {
    matches!(code, 200 | 202)
}

pub(crate) fn downlink<'a>(topic: &str, payload: &'a [u8]) -> Downlink<'a> {
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

pub(crate) fn write_acknowledgement_topic(device: &str, out: &mut String) {
    out.extend([ACK, device]);
}

/// Renders a command: the values of a capability's properties, of which the id is one.
pub(crate) fn write_command(stamp: &Stamp, device: &str, out: &mut CommandScratch) {
    out.head(&[COMMANDS, device]);
    out.payload.clear();
    let head = r#"{"sensorAlternateId":"PerfTest","capabilityAlternateId":"PerfTest","command":"#;
    out.payload.extend_from_slice(head.as_bytes());
    out.write_named(stamp);
    out.payload.push(b'}');
}

pub(crate) fn is_command(topic: &str) -> bool {
    topic.starts_with(COMMANDS)
}

/// Which command a payload is; none if it is no command of Muster's, or damaged.
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
        write_command(&stamp(), "PerfTest_3", &mut scratch);
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
