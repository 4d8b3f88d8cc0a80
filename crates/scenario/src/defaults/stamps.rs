//! Stamps that would only add to messages, since nobody reads them.

use muster_plan::BackendKind;
use muster_platform::Dialect;

use super::{backend_kind, default, is_embedded, is_uplink, list_mut, text};
use crate::build::{DITTO_MODIFY, board};
use crate::tree::{Node, Value};

/// Leaves out stamps that would only add to messages, where neither a backend nor a read-back looks for them.
pub(super) fn leave_out(root: &mut Node, dialect: Dialect) {
    let streams = root.get("fleet").map_or(&[][..], Node::items).iter();
    let mut streams = streams.flat_map(|it| it.get("streams").map_or(&[][..], Node::items));
    let surfaces = dialect.has_northbound
        && streams
            .all(|stream| !is_uplink(stream) || (dialect.topic)(text(stream, "topic")).surfaces);
    let backend = root.get("platform").and_then(|it| it.get("backend"));
    let consumes = |it: &&Node| backend_kind(it) != BackendKind::Rpc;
    let is_consumed = backend.is_some_and(|it| match &it.value {
        Value::List(items) => items.iter().any(|it| consumes(&it)),
        Value::Map(_) | Value::Scalar { .. } => consumes(&it),
    });
    let provision = root.get("provision");
    let read_back = provision.and_then(|it| it.get("read-back"));
    let reads_back = read_back.is_some_and(|it| it.text().is_none_or(|text| text == "true"));
    let is_looked_for = is_consumed || reads_back || (is_embedded(root) && backend.is_none());
    if surfaces && is_looked_for {
        return;
    }
    for fleet in list_mut(root, "fleet") {
        for stream in list_mut(fleet, "streams") {
            if is_uplink(stream) && is_stamped_by_name(stream, dialect) {
                default(stream, "carrier", "none");
            }
        }
    }
}

/// Returns true if the stamp of a stream would be an addition to its payload: to one that has a
/// name, or, where the dialect takes it as it is, to a template that has no place for it.
fn is_stamped_by_name(stream: &Node, dialect: Dialect) -> bool {
    let Some(payload) = stream.get("payload") else {
        return false;
    };
    let mut names = board::NAMES.into_iter().chain([DITTO_MODIFY]);
    let template = payload.get("template").and_then(Node::text);
    let is_bare = template.is_some_and(|template| !template.contains("${stamp}"));
    let is_named = names.any(|name| payload.text() == Some(name) || payload.get(name).is_some());
    is_named || (is_bare && dialect.takes_bare_templates)
}
