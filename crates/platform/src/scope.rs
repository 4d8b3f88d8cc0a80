//! Topics that mean another thing on each link.
//!
//! Devices of some platforms subscribe to the same few topics, and each is meant itself. Where the
//! server end routes messages by topic, a link's own topics stand below its name; the name is one level
//! there, whatever it holds.

/// Prefix of the name; no filter that begins with a wildcard takes it (MQTT-4.7.2-1).
const ROOT: &str = "$device/";

/// Appends a topic of a link below its name, which may come in parts.
pub(crate) fn scoped(link: &[&str], topic: &str, out: &mut String) {
    out.push_str(ROOT);
    for character in link.iter().flat_map(|part| part.chars()) {
        match character {
            '/' => out.push_str("%2F"),
            '+' => out.push_str("%2B"),
            '#' => out.push_str("%23"),
            '%' => out.push_str("%25"),
            _ => out.push(character),
        }
    }
    out.push('/');
    out.push_str(topic);
}

/// A routed topic as its link knows it.
pub(crate) fn unscoped(topic: &str) -> &str {
    let rest = topic.strip_prefix(ROOT);
    rest.and_then(|rest| rest.split_once('/'))
        .map_or(topic, |(_, topic)| topic)
}
