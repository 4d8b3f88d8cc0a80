//! The topics of ThingsBoard that mean another thing on each link: all devices have the same few.

use crate::scope::scoped;

/// The topics of devices and gateways.
const OF_LINKS: [&str; 3] = ["v1/", "v2/", "/provision/"];

/// Returns true for a topic of links, or a filter that takes no other.
pub(super) fn is_of_link(topic: &str) -> bool {
    OF_LINKS.iter().any(|before| topic.starts_with(before))
}

/// Appends a topic of a link, or a filter, as it is routed, where it means another thing on each.
pub(super) fn route(link: &str, topic: &str, out: &mut String) -> bool {
    let is_scoped = is_of_link(topic);
    if is_scoped {
        scoped(&[link], topic, out);
    }
    is_scoped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scope::unscoped;

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
