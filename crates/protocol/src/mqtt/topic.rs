//! Topic names, topic filters and shared subscriptions (sections 4.7 and 4.8.2).

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use thiserror::Error;

/// Longest name or filter in bytes (MQTT-4.7.3-3).
pub const TOPIC_MAXIMUM: usize = u16::MAX as usize;

/// The topic of a received message.
#[derive(Clone)]
pub enum Topic<'a> {
    /// As it stood in the packet.
    Wire(&'a str),
    /// A topic from an earlier packet's alias.
    Alias(Arc<str>),
}

impl Topic<'_> {
    /// The name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Wire(name) => name,
            Self::Alias(name) => name,
        }
    }
}

impl Deref for Topic<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Topic<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Topic<'_> {}

impl PartialEq<str> for Topic<'_> {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Topic<'_> {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Debug for Topic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Reason that a text is no topic filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum FilterError {
    /// Empty (MQTT-4.7.3-1).
    #[error("a topic filter has at least one character")]
    Empty,
    /// Longer than [`TOPIC_MAXIMUM`] (MQTT-4.7.3-3).
    #[error("a topic filter has at most 65,535 bytes")]
    TooLong,
    /// Contains U+0000 (MQTT-4.7.3-2).
    #[error("a topic filter holds no null character")]
    Null,
    /// `#` that is not the whole last level (MQTT-4.7.1-1).
    #[error("`#` must be the last level, alone in it")]
    Hash,
    /// `+` together with other characters in its level (MQTT-4.7.1-2).
    #[error("`+` must be alone in its level")]
    Plus,
    /// `$share/` without a group, or with `+` or `#` in it (MQTT-4.8.2-1, MQTT-4.8.2-2).
    #[error("a shared subscription is `$share/group/filter`, the group without `/`, `+` and `#`")]
    Share,
}

/// Returns true if text is a topic name: not empty, not too long, without wildcards and U+0000.
#[inline]
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= TOPIC_MAXIMUM
        && !text.bytes().any(|byte| matches!(byte, 0 | b'+' | b'#'))
}

/// Checks that text is a topic filter; of a shared subscription, the part behind the group.
///
/// # Errors
/// [`FilterError`] says which rule it breaks.
pub fn check_filter(text: &str) -> Result<(), FilterError> {
    if text.is_empty() {
        return Err(FilterError::Empty);
    }
    if text.len() > TOPIC_MAXIMUM {
        return Err(FilterError::TooLong);
    }
    if text.contains('\0') {
        return Err(FilterError::Null);
    }
    let mut levels = text.split('/').peekable();
    while let Some(level) = levels.next() {
        let is_last = levels.peek().is_none();
        if level.contains('#') && !(is_last && level == "#") {
            return Err(FilterError::Hash);
        }
        if level.contains('+') && level != "+" {
            return Err(FilterError::Plus);
        }
    }
    Ok(())
}

/// A subscription: a filter, and the group that shares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subscription<'a> {
    /// The group of a shared subscription (section 4.8.2).
    pub group: Option<&'a str>,
    /// The filter that names are matched with.
    pub filter: &'a str,
}

impl<'a> Subscription<'a> {
    /// Reads `filter` or `$share/group/filter`.
    ///
    /// # Errors
    /// [`FilterError`] says which rule it breaks.
    pub fn parse(text: &'a str) -> Result<Self, FilterError> {
        if text.len() > TOPIC_MAXIMUM {
            return Err(FilterError::TooLong);
        }
        let (group, filter) = match text.strip_prefix("$share/") {
            None if text == "$share" => return Err(FilterError::Share),
            None => (None, text),
            Some(rest) => {
                let (group, filter) = rest.split_once('/').ok_or(FilterError::Share)?;
                if group.is_empty() || group.contains(['+', '#', '\0']) {
                    return Err(FilterError::Share);
                }
                (Some(group), filter)
            }
        };
        check_filter(filter)?;
        Ok(Self { group, filter })
    }

    /// Returns true if a message with this topic name comes with the subscription.
    pub fn matches(&self, name: &str) -> bool {
        matches(self.filter, name)
    }
}

/// Returns true if a valid filter matches a valid name (section 4.7.1).
///
/// A wildcard at the front does not match a name that begins with `$` (MQTT-4.7.2-1).
pub fn matches(filter: &str, name: &str) -> bool {
    if name.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    let mut filter = Some(filter);
    let mut name = Some(name);
    loop {
        let (Some(wanted), given) = (filter, name) else {
            return name.is_none();
        };
        let (level, next) = split_level(wanted);
        if level == "#" {
            // `a/#` matches `a` too (section 4.7.1.2), so that the name may be used up.
            return true;
        }
        let Some(given) = given else {
            return false;
        };
        let (actual, rest) = split_level(given);
        if level != "+" && level != actual {
            return false;
        }
        filter = next;
        name = rest;
    }
}

/// Returns true if some name is matched by both of two valid filters.
pub fn overlap(one: &str, other: &str) -> bool {
    let is_apart = |one: &str, other: &str| one.starts_with('$') && other.starts_with(['+', '#']);
    if is_apart(one, other) || is_apart(other, one) {
        return false;
    }
    let (mut one, mut other) = (Some(one), Some(other));
    loop {
        match (one.map(split_level), other.map(split_level)) {
            (None, None) | (Some(("#", _)), _) | (_, Some(("#", _))) => return true,
            (Some((a, next)), Some((b, rest))) if a == b || a == "+" || b == "+" => {
                (one, other) = (next, rest);
            }
            _ => return false,
        }
    }
}

fn split_level(text: &str) -> (&str, Option<&str>) {
    match text.split_once('/') {
        Some((level, rest)) => (level, Some(rest)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// MQTT-4.7.2-1, MQTT-4.7.3-4.
    #[test]
    fn filters_match_as_in_the_standards_examples() {
        // Section 4.7.1, 4.7.2 and 4.7.3, all examples.
        let table = [
            ("sport/tennis/player1/#", "sport/tennis/player1", true),
            (
                "sport/tennis/player1/#",
                "sport/tennis/player1/ranking",
                true,
            ),
            (
                "sport/tennis/player1/#",
                "sport/tennis/player1/score/wimbledon",
                true,
            ),
            ("sport/#", "sport", true),
            ("#", "sport/tennis", true),
            ("sport/tennis/+", "sport/tennis/player1", true),
            ("sport/tennis/+", "sport/tennis/player2", true),
            ("sport/tennis/+", "sport/tennis/player1/ranking", false),
            ("sport/+", "sport", false),
            ("sport/+", "sport/", true),
            ("+/+", "/finance", true),
            ("/+", "/finance", true),
            ("+", "/finance", false),
            ("#", "$SYS/monitor/Clients", false),
            ("+/monitor/Clients", "$SYS/monitor/Clients", false),
            ("$SYS/#", "$SYS/monitor/Clients", true),
            ("$SYS/monitor/+", "$SYS/monitor/Clients", true),
            ("ACCOUNTS", "Accounts", false),
            ("a//b", "a//b", true),
            ("a/+/b", "a//b", true),
            ("a/#", "ab", false),
            ("+/#", "a", true),
            ("a/+/#", "a", false),
        ];
        for (filter, name, is_match) in table {
            assert_eq!(matches(filter, name), is_match, "{filter} on {name}");
            assert_eq!(check_filter(filter), Ok(()), "{filter}");
            assert!(is_name(name), "{name}");
        }
    }

    /// Every path of at most three of these levels, the last one of these or those.
    fn paths(levels: &[&str], last: &[&str]) -> Vec<String> {
        let mut fronts = vec![String::new()];
        let mut paths = Vec::new();
        for _ in 0..3 {
            let ends = || levels.iter().chain(last);
            let of_front = |front: &String| {
                ends()
                    .map(move |end| format!("{front}{end}"))
                    .collect::<Vec<_>>()
            };
            paths.extend(fronts.iter().flat_map(of_front));
            let longer = |front: &String| {
                levels
                    .iter()
                    .map(move |level| format!("{front}{level}/"))
                    .collect::<Vec<_>>()
            };
            fronts = fronts.iter().flat_map(longer).collect();
        }
        paths
    }

    /// Law: filters overlap if and only if there is a name that both match.
    #[test]
    fn filters_overlap_where_a_name_has_both() {
        let filters = paths(&["a", "$", "+"], &["#"]);
        let names = paths(&["a", "$"], &[]);
        let has_both = |one: &str, other: &str| {
            let mut names = names.iter();
            names.any(|name| matches(one, name) && matches(other, name))
        };
        let mut overlapping = 0;
        for one in &filters {
            for other in &filters {
                assert_eq!(
                    overlap(one, other),
                    has_both(one, other),
                    "{one} and {other}"
                );
                overlapping += usize::from(overlap(one, other));
            }
        }
        assert!((1..filters.len() * filters.len()).contains(&overlapping));
    }

    /// MQTT-4.7.1-1, MQTT-4.7.1-2, MQTT-4.7.3-1, MQTT-4.7.3-2, MQTT-4.7.3-3.
    #[test]
    fn a_filter_with_a_misplaced_wildcard_is_refused() {
        let table = [
            ("", FilterError::Empty),
            ("sport/tennis#", FilterError::Hash),
            ("sport/tennis/#/ranking", FilterError::Hash),
            ("##", FilterError::Hash),
            ("sport+", FilterError::Plus),
            ("a/++/b", FilterError::Plus),
            ("a\0", FilterError::Null),
        ];
        for (filter, error) in table {
            assert_eq!(check_filter(filter), Err(error), "{filter:?}");
        }
        assert_eq!(check_filter(&"a".repeat(65_536)), Err(FilterError::TooLong));
        assert_eq!(check_filter(&"a".repeat(65_535)), Ok(()));
    }

    /// MQTT-3.3.2-2, MQTT-4.7.0-1, MQTT-4.7.3-1, MQTT-4.7.3-2.
    #[test]
    fn a_name_has_no_wildcard() {
        for name in ["", "a/+", "#", "a\0b"] {
            assert!(!is_name(name), "{name:?}");
        }
        assert!(is_name("/"));
        assert!(is_name("Accounts payable"));
    }

    /// MQTT-4.8.2-1.
    #[test]
    fn a_shared_subscription_is_group_and_filter() {
        let shared = Subscription {
            group: Some("consumer1"),
            filter: "sport/tennis/+",
        };
        assert_eq!(
            Subscription::parse("$share/consumer1/sport/tennis/+"),
            Ok(shared)
        );
        let rooted = Subscription {
            group: Some("g"),
            filter: "/finance",
        };
        assert_eq!(Subscription::parse("$share/g//finance"), Ok(rooted));
        let plain = Subscription {
            group: None,
            filter: "$shared/g/x",
        };
        assert_eq!(Subscription::parse("$shared/g/x"), Ok(plain));
        assert!(shared.matches("sport/tennis/player1"));
    }

    /// MQTT-4.8.2-1, MQTT-4.8.2-2.
    #[test]
    fn a_shared_subscription_without_group_or_filter_is_refused() {
        for text in [
            "$share",
            "$share/",
            "$share/g",
            "$share//x",
            "$share/a+/x",
            "$share/#/x",
        ] {
            assert_eq!(Subscription::parse(text), Err(FilterError::Share), "{text}");
        }
        assert_eq!(Subscription::parse("$share/g/"), Err(FilterError::Empty));
        assert_eq!(Subscription::parse("$share/g/a#"), Err(FilterError::Hash));
    }

    /// The definition of section 4.7.1, level by level, as the slow witness.
    fn matches_by_definition(filter: &[&str], name: &[&str]) -> bool {
        match (filter, name) {
            (["#"], _) => true,
            ([], []) => true,
            (["+", filter @ ..], [_, name @ ..]) => matches_by_definition(filter, name),
            ([level, filter @ ..], [given, name @ ..]) => {
                level == given && matches_by_definition(filter, name)
            }
            ([], _) | (_, []) => false,
        }
    }

    proptest! {
        /// Matching is the definition, level by level, but for names under `$`.
        #[test]
        fn matching_is_the_definition(
            filter in "([ab+]?/){0,4}[ab+#]?", name in "([ab]?/){0,4}[ab]?"
        ) {
            prop_assume!(check_filter(&filter).is_ok() && is_name(&name));
            let filter_levels: Vec<&str> = filter.split('/').collect();
            let name_levels: Vec<&str> = name.split('/').collect();
            let expected = matches_by_definition(&filter_levels, &name_levels);
            prop_assert_eq!(matches(&filter, &name), expected);
        }

        /// A name, taken as a filter, matches itself and no other name.
        #[test]
        fn a_name_matches_itself_only(name in "[$a-c/]{1,6}", other in "[$a-c/]{1,6}") {
            prop_assert!(matches(&name, &name));
            prop_assert_eq!(matches(&name, &other), name == other);
        }

        /// No text makes parsing or matching panic.
        #[test]
        fn any_text_can_be_matched(filter: String, name: String) {
            let _ = Subscription::parse(&filter);
            let _ = matches(&filter, &name);
        }
    }
}
