//! Defaults of keys that are left out where the scenario gives requests their form.

use super::{default_text, text};
use crate::tree::Node;

/// Fills in the media type of a stream's payload, which most APIs want to know.
pub(super) fn fill(stream: &mut Node) {
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
