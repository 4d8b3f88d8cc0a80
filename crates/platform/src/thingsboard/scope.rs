//! Topics that mean another thing on each link.
//!
//! All devices subscribe to the same few topics, and each is meant itself. Where the server end
//! routes messages by topic, a device's own topics stand below its name; the name is one level there,
//! whatever it holds.

/// Prefix of the name; no filter that begins with a wildcard takes it (MQTT-4.7.2-1).
const ROOT: &str = "$device/";
/// The topics of devices and gateways.
const OF_LINKS: [&str; 3] = ["v1/", "v2/", "/provision/"];

/// Appends a topic of a link, or a filter, as it is routed, where it means another thing on each.
pub(super) fn route(link: &str, topic: &str, out: &mut String) -> bool {
    let is_scoped = OF_LINKS.iter().any(|before| topic.starts_with(before));
    if is_scoped {
        scoped(link, topic, out);
    }
    is_scoped
}

/// Appends a topic of a link below its name.
pub(super) fn scoped(link: &str, topic: &str, out: &mut String) {
    out.push_str(ROOT);
    for character in link.chars() {
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
pub(super) fn unscoped(topic: &str) -> &str {
    let rest = topic.strip_prefix(ROOT);
    rest.and_then(|rest| rest.split_once('/'))
        .map_or(topic, |(_, topic)| topic)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn routed(link: &str, topic: &str) -> String {
        let mut routed = String::new();
        assert!(route(link, topic, &mut routed));
        routed
    }

    proptest! {
        /// A topic comes back as it was, no two links share one, and no name is a wildcard or two levels.
        #[test]
        fn a_topic_is_its_links_own(a in "[a/+#%2B]{1,6}", b in "[a/+#%2B]{1,6}", topic in "v1/[a-c/]{0,6}") {
            let of = |link| routed(link, &topic);
            let routed = of(&a);
            prop_assert_eq!(unscoped(&routed), &topic);
            prop_assert_eq!(of(&a) == of(&b), a == b);
            prop_assert!(!of(&a).contains(['+', '#']));
            prop_assert_eq!(of(&a).matches('/').count(), topic.matches('/').count() + 2);
        }
    }

    #[test]
    fn other_topics_are_the_same_for_all() {
        for topic in [
            "thingsboard/d/telemetry",
            "thingsboard-rpc/d/request",
            "#",
            "v1",
        ] {
            let mut routed = String::new();
            assert!(!route("d", topic, &mut routed) && routed.is_empty());
            assert_eq!(unscoped(topic), topic);
        }
    }
}
