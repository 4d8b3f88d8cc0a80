//! Defaults of keys that are left out where devices speak HTTP.

use muster_platform::Dialect;

use super::{default, default_text, is_uplink, list_mut, text};
use crate::tree::Node;

/// Fills in what follows from HTTP, before the defaults of the language.
pub(super) fn fill(fleet: &mut Node, dialect: Dialect) {
    default(fleet, "obey-retry-after", "true");
    default(fleet, "client", "{}");
    if let Some(client) = fleet.get_mut("client") {
        default(client, "http", "{}");
    }
    for stream in list_mut(fleet, "streams") {
        // A request is answered at whatever level.
        default(stream, "ack", "transport");
        if dialect.has_free_calls && is_uplink(stream) {
            fill_call(stream);
        }
    }
}

/// Fills in the form of a request, with the media type of its payload, which most APIs want to know.
fn fill_call(stream: &mut Node) {
    default(stream, "method", "POST");
    default(stream, "success", "2xx");
    default(stream, "payload", "{ size: 100 }");
    let Some(payload) = stream.get_mut("payload") else {
        return;
    };
    let media_type = match payload.get("template").map(|_| text(payload, "template")) {
        Some(template) if template.trim_start().starts_with(['{', '[']) => "application/json",
        Some(_) => "text/plain",
        None if payload.get("size").is_some() => "application/octet-stream",
        None => return,
    };
    default_text(payload, "content-type", media_type.to_owned());
}
