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

use crate::command::CommandCopy;
use crate::dialect::{Defaults, Subscription};
use crate::downlink::{Acknowledgements, Downlink};

/// The code of the server end's yes.
pub(crate) const ACCEPTED: u16 = 202;
/// The code of the server end's no where none is named.
pub(crate) const OVERLOADED: u16 = 503;

const ACK: &str = "ack/";
const COMMANDS: &str = "commands/";
const MEASURES: &str = "measures/";

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
        Downlink::Acknowledgements(Acknowledgements(AckArray::new(payload)))
    } else if topic.starts_with(COMMANDS) {
        // Nobody who issues them tells which one it is.
        Downlink::Command(CommandCopy { stamp: None })
    } else {
        Downlink::Other
    }
}

pub(crate) fn write_acknowledgement_topic(device: &str, out: &mut String) {
    out.extend([ACK, device]);
}
