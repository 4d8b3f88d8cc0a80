//! Defaults of keys that are left out where devices send requests.

use muster_platform::{Dialect, Endpoint, Protocol, Who};

use super::{default, default_text, list_mut, text};
use crate::tree::Node;

/// Fills in the topics and identities of a fleet's devices, on a platform that takes requests. Devices that
/// publish there do so on the same paths. One that shows a certificate gives no name over MQTT.
pub(super) fn fill(fleet: &mut Node, dialect: Dialect, protocol: Protocol) {
    let mut protocols = Protocol::ALL
        .into_iter()
        .filter(|it| it.asks && dialect.speaks(*it));
    let Some(asked) = protocols.find(|it| *it == protocol || !protocol.asks) else {
        return;
    };
    let requests = dialect.requests(asked);
    let kind = fleet.get("credential").map_or("", |it| text(it, "kind"));
    let who = match kind {
        "" | "none" => Who::Nobody,
        "certificate" if !protocol.asks => Who::Nobody,
        _ if fleet.get("gateway").is_some() => Who::Gateway,
        _ => Who::Device,
    };
    if matches!(kind, "psk" | "password")
        && !requests.login.is_empty()
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
        if protocol.asks
            && text(stream, "kind") == "command-query"
            && let Some(poll) = requests.poll
        {
            default_text(stream, "topic", poll.to_owned());
            default(stream, "payload", "{ template: '{}' }");
            default(stream, "carrier", "none");
        }
        // The answer to a request is its own, and needs no id.
        if protocol.asks && (dialect.topic)(text(stream, "topic")).is_acknowledged {
            default(stream, "ack", "transport");
            default(stream, "carrier", "none");
        }
        let resource = (requests.resource)(endpoint, who);
        if !resource.is_empty() {
            default_text(stream, "topic", resource.to_owned());
        }
    }
}
