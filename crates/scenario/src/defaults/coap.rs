//! Defaults of keys that are left out where devices speak CoAP.

use muster_model::Micros;
use muster_protocol::coap::Transmission;

use super::{default, list_mut, text, written};
use crate::tree::Node;
use crate::units;

/// Fills in what follows from CoAP, before the defaults of the language.
pub(super) fn fill(fleet: &mut Node) {
    default(fleet, "client", "{}");
    let Some(client) = fleet.get_mut("client") else {
        return;
    };
    default(client, "coap", "{}");
    let Some(coap) = client.get_mut("coap") else {
        return;
    };
    let derived = derived(coap);
    default(coap, "exchange-lifetime", &time(derived.exchange_lifetime));
    default(coap, "non-lifetime", &time(derived.non_lifetime));
    let lifetimes = ["exchange-lifetime", "non-lifetime"].map(|key| text(coap, key).to_owned());
    for stream in list_mut(fleet, "streams") {
        fill_stream(stream, &lifetimes);
    }
}

/// Fills in a stream; answers have as long as the message layer (docs/semantics.md#time-outs).
fn fill_stream(stream: &mut Node, [exchange, non]: &[String; 2]) {
    let is_confirmable = text(stream, "confirmable") != "false";
    let (ack, timeout) = match is_confirmable {
        true => ("transport", exchange),
        false => ("none", non),
    };
    default(stream, "ack", ack);
    // A query waits for as long as its device waits for a command, and some more.
    if text(stream, "kind") != "command-query" {
        default(stream, "timeout", timeout);
    }
}

/// The parameters as they stand, with the lifetimes that follow from them (RFC 7252 section 4.8.2).
fn derived(coap: &Node) -> Transmission {
    let usual = Transmission::default();
    let retransmit = units::whole(text(coap, "max-retransmit"), 0, 16);
    Transmission::of(
        units::time(text(coap, "ack-timeout")).unwrap_or(usual.ack_timeout),
        units::factor(text(coap, "ack-random-factor")).unwrap_or(usual.ack_random_factor),
        retransmit.map_or(usual.max_retransmit, |copies| copies as u8),
    )
}

fn time(time: Micros) -> String {
    written(time.get())
}
