//! Property bags: metadata that a device appends to the topic of a message.

use muster_model::percent::{self, Part};

/// Stands between a topic and its bag.
const START: &str = "/?";

/// The properties behind a topic, such as `content-type=text%2Fplain&hono-ttl=30`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PropertyBag<'a>(&'a str);

impl<'a> PropertyBag<'a> {
    /// Media type of the payload.
    pub const CONTENT_TYPE: &'static str = "content-type";
    /// Seconds for which an event is kept.
    pub const TTL: &'static str = "hono-ttl";
    /// Treatment of the message if it is refused.
    pub const ON_ERROR: &'static str = "on-error";
    /// Name of the message in its refusal.
    pub const CORRELATION_ID: &'static str = "correlation-id";

    /// Parts a topic from the bag behind it.
    pub fn split(topic: &'a str) -> (&'a str, Self) {
        match topic.rsplit_once(START) {
            Some((before, bag)) if !before.is_empty() => (before, Self(bag)),
            _ => (topic, Self("")),
        }
    }

    /// Appends a property to a topic and the bag that it has by now. A value that is `written` already
    /// is not encoded.
    pub fn append(topic: &mut String, name: &str, value: &str, written: bool) {
        let (before, bag) = PropertyBag::split(topic);
        topic.push_str(match (before.len() < topic.len(), bag.0.is_empty()) {
            (false, _) => START,
            (true, true) => "",
            (true, false) => "&",
        });
        topic.push_str(name);
        topic.push('=');
        match written {
            true => topic.push_str(value),
            // No character that a topic name must not hold stays as it is.
            false => Part::Value.encode(value, topic),
        }
    }

    /// The value of a property as it is written; none if the bag has it not.
    pub(crate) fn raw(self, name: &str) -> Option<&'a str> {
        let mut pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find_map(|(key, value)| (key == name).then_some(value))
    }

    /// Puts the value of a property into `out`, which is emptied first. Returns false if the bag has it not,
    /// or it is no text.
    pub fn read(self, name: &str, out: &mut String) -> bool {
        out.clear();
        self.raw(name).is_some_and(|value| decode(value, out))
    }
}

/// Appends the text of a value; false if it is none. A plus sign is a space, as in forms of HTML.
fn decode(value: &str, out: &mut String) -> bool {
    let spaced = value.replace('+', " ");
    let text = percent::decode(&spaced);
    out.push_str(text.as_deref().unwrap_or_default());
    text.is_some()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_bag_is_written_as_the_reference_has_it() {
        let mut topic = "telemetry".to_owned();
        let json = "application/json";
        PropertyBag::append(&mut topic, PropertyBag::CONTENT_TYPE, json, false);
        PropertyBag::append(&mut topic, PropertyBag::TTL, "30", false);
        PropertyBag::append(&mut topic, PropertyBag::CORRELATION_ID, "${seq}", true);
        let expected =
            "telemetry/?content-type=application%2Fjson&hono-ttl=30&correlation-id=${seq}";
        assert_eq!(topic, expected);
        let (path, bag) = PropertyBag::split(&topic);
        let mut value = String::new();
        assert!(bag.read(PropertyBag::CONTENT_TYPE, &mut value));
        assert_eq!((path, value.as_str()), ("telemetry", json));
        assert_eq!(bag.raw(PropertyBag::TTL), Some("30"));
        assert!(!bag.read(PropertyBag::ON_ERROR, &mut value) && value.is_empty());
        let mut topic = "telemetry/?".to_owned();
        PropertyBag::append(&mut topic, PropertyBag::TTL, "30", false);
        assert_eq!(topic, "telemetry/?hono-ttl=30");
    }

    #[test]
    fn what_is_no_bag_is_the_topics() {
        for topic in ["telemetry", "e//d-1", "/?a=b", ""] {
            assert_eq!(PropertyBag::split(topic), (topic, PropertyBag("")));
        }
        for broken in ["%", "%2", "%zz", "%ff"] {
            assert!(!decode(broken, &mut String::new()), "{broken}");
        }
    }

    proptest! {
        /// Law: a value comes back as it was written, whatever it holds, and makes a topic name.
        #[test]
        fn a_value_comes_back(value: String, other: String) {
            let mut topic = "t//d-1".to_owned();
            PropertyBag::append(&mut topic, "a", &other, false);
            PropertyBag::append(&mut topic, "b", &value, false);
            prop_assert!(!topic.contains(['+', '#', '\0']));
            let (path, bag) = PropertyBag::split(&topic);
            let mut read = String::new();
            prop_assert!(bag.read("b", &mut read));
            prop_assert_eq!((path, read), ("t//d-1", value));
        }
    }
}
