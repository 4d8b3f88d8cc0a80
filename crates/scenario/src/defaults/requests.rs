//! Defaults of keys that are left out where devices send requests.

use muster_platform::{Dialect, Endpoint, Protocol, Requests, Who};

use super::{default, default_text, list_mut, text};
use crate::tree::Node;

/// Fills in what follows from a protocol of requests, on a platform that takes them.
pub(super) fn fill(root: &mut Node, dialect: Dialect, protocol: Protocol) {
    if dialect.speaks(protocol) {
        let fleets = list_mut(root, "fleet");
        fleets.for_each(|fleet| fill_fleet(fleet, dialect.requests(protocol)));
    }
}

/// Fills in the topics and identities of devices.
fn fill_fleet(fleet: &mut Node, requests: &Requests) {
    let kind = fleet.get("credential").map_or("", |it| text(it, "kind"));
    let who = match kind {
        "" | "none" => Who::Nobody,
        _ if fleet.get("gateway").is_some() => Who::Gateway,
        _ => Who::Device,
    };
    if kind == "psk"
        && let Some(credential) = fleet.get_mut("credential")
    {
        default_text(credential, "user", requests.login.to_owned());
    }
    for stream in list_mut(fleet, "streams") {
        // An empty notification has no room for an id.
        if text(stream, "payload") == "empty" {
            default(stream, "carrier", "order");
        }
        let endpoint = match text(stream, "kind") {
            "event" => Endpoint::Event,
            _ => Endpoint::Telemetry,
        };
        default_text(
            stream,
            "topic",
            (requests.resource)(endpoint, who).to_owned(),
        );
    }
}
