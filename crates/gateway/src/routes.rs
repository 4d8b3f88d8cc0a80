//! Subscriptions by topic filter, in a tree of levels (section 4.7).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use muster_protocol::mqtt::Qos;
use muster_protocol::mqtt::topic::Subscription as Parsed;
use rustc_hash::FxHashMap;
use slotmap::new_key_type;

new_key_type! {
    /// One session of a thread, and never another one after it.
    pub(crate) struct SessionKey;
}

/// One session on one thread, and never another one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SessionRef {
    pub(crate) shard: u16,
    pub(crate) key: SessionKey,
}

/// Copies in a session's queue above which publishers at QoS 1 and 2 are not read.
pub(crate) const QUEUE_HIGH: usize = 20_000;
/// Copies at which they are read again; far enough below that they do not flutter.
pub(crate) const QUEUE_LOW: usize = QUEUE_HIGH / 2;
/// Most copies in a queue: beyond it, copies at QoS 0 are dropped, and for an absent session all.
pub(crate) const QUEUE_MAX: usize = 100_000;

/// Fill level of a session's queue, known to the threads that send to it.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    /// Copies that wait for the session, on their way between threads or in its queue.
    pub(crate) waiting: AtomicUsize,
    pub(crate) online: AtomicBool,
    /// True if a publisher waits for room.
    pub(crate) congested: AtomicBool,
}

impl Gauge {
    /// True if publishers are to wait. The flag is set before the count is read again, and the
    /// reader lowers the count before it looks at the flag: one of the two sees the other.
    pub(crate) fn is_congested(&self) -> bool {
        if self.waiting.load(Ordering::SeqCst) < QUEUE_HIGH {
            return false;
        }
        self.congested.store(true, Ordering::SeqCst);
        self.waiting.load(Ordering::SeqCst) > QUEUE_LOW
    }
}

/// A client's session is wanted on another thread.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The session it was.
    pub(crate) of: SessionRef,
    /// The session it becomes.
    pub(crate) by: SessionRef,
    /// The gauge of that one.
    pub(crate) gauge: Arc<Gauge>,
    /// True if the session is to be thrown away (section 3.1.2.4).
    pub(crate) discard: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) qos: Qos,
    pub(crate) retain: bool,
    pub(crate) id: Option<u32>,
}

impl Grant {
    /// True if a copy is dropped rather than waited for.
    pub(crate) fn may_be_dropped(self) -> bool {
        self.qos == Qos::AtMostOnce
    }
}

/// A subscription as asked for (section 3.8.3.1).
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    pub(crate) session: SessionRef,
    pub(crate) gauge: Arc<Gauge>,
    pub(crate) qos: Qos,
    pub(crate) no_local: bool,
    pub(crate) retain_as_published: bool,
    pub(crate) id: Option<u32>,
}

#[derive(Debug, Default)]
pub(crate) struct Routes {
    root: Node,
    len: usize,
}

#[derive(Debug, Default)]
struct Node {
    /// By their levels: no topic has a level `+`, so that this one is the wildcard.
    children: FxHashMap<Box<str>, Node>,
    here: Subscribers,
    /// Subscribers with `#` behind this level: their filters match it and all below.
    below: Subscribers,
}

#[derive(Debug, Default)]
struct Subscribers {
    plain: Vec<Subscription>,
    groups: Vec<Group>,
}

/// The sharers of one filter (section 4.8.2).
#[derive(Debug)]
struct Group {
    name: Box<str>,
    members: Vec<Subscription>,
    turn: AtomicUsize,
}

impl Routes {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a subscription, or replaces the session's one to the same filter; whether it is new.
    pub(crate) fn insert(&mut self, parsed: Parsed<'_>, subscription: Subscription) -> bool {
        let is_new = self
            .root
            .subscribers(parsed.filter)
            .insert(parsed.group, subscription);
        self.len += usize::from(is_new);
        is_new
    }

    /// Ends a subscription; whether there was one.
    pub(crate) fn remove(&mut self, parsed: Parsed<'_>, session: SessionRef) -> bool {
        let was_there = self.root.remove(Some(parsed.filter), parsed.group, session);
        self.len -= usize::from(was_there);
        was_there
    }

    /// Calls `each` for every subscription that the message is due to; of a group for one member,
    /// in turn, connected ones first.
    pub(crate) fn matching(&self, topic: &str, mut each: impl FnMut(&Subscription)) {
        // A wildcard at the front does not match a name that begins with `$` (MQTT-4.7.2-1).
        let is_system = topic.starts_with('$');
        self.root.matching(Some(topic), !is_system, &mut each);
    }
}

impl Node {
    fn subscribers(&mut self, filter: &str) -> &mut Subscribers {
        let mut node = self;
        for level in filter.split('/') {
            if level == "#" {
                return &mut node.below;
            }
            node = node.children.entry(level.into()).or_default();
        }
        &mut node.here
    }

    /// Removes and prunes on the way back; deep filters are bounded by the topic's length.
    fn remove(&mut self, filter: Option<&str>, group: Option<&str>, who: SessionRef) -> bool {
        let Some(filter) = filter else {
            return self.here.remove(group, who);
        };
        let (level, rest) = split(filter);
        if level == "#" {
            return self.below.remove(group, who);
        }
        let Some(node) = self.children.get_mut(level) else {
            return false;
        };
        let was_there = node.remove(rest, group, who);
        if node.is_empty() {
            self.children.remove(level);
        }
        was_there
    }

    fn is_empty(&self) -> bool {
        self.children.is_empty() && self.here.is_empty() && self.below.is_empty()
    }

    fn matching(&self, topic: Option<&str>, wild: bool, each: &mut impl FnMut(&Subscription)) {
        if wild {
            self.below.each(each);
        }
        let Some(topic) = topic else {
            return self.here.each(each);
        };
        let (level, rest) = split(topic);
        // A request over CoAP may name a device `+`: its topic takes the wildcard's way once.
        let wildcard = (wild && level != "+").then_some("+");
        for level in [Some(level), wildcard].into_iter().flatten() {
            if let Some(node) = self.children.get(level) {
                node.matching(rest, true, each);
            }
        }
    }
}

impl Subscribers {
    fn insert(&mut self, group: Option<&str>, subscription: Subscription) -> bool {
        let members = self.members(group);
        let session = subscription.session;
        let known = members.iter_mut().find(|member| member.session == session);
        let is_new = known.is_none();
        match known {
            Some(member) => *member = subscription,
            None => members.push(subscription),
        }
        is_new
    }

    fn members(&mut self, group: Option<&str>) -> &mut Vec<Subscription> {
        let Some(name) = group else {
            return &mut self.plain;
        };
        let known = self.groups.iter().position(|group| &*group.name == name);
        let at = known.unwrap_or(self.groups.len());
        if known.is_none() {
            self.groups.push(Group {
                name: name.into(),
                members: Vec::new(),
                turn: AtomicUsize::new(0),
            });
        }
        &mut self.groups[at].members
    }

    fn remove(&mut self, group: Option<&str>, who: SessionRef) -> bool {
        let members = self.members(group);
        let place = members.iter().position(|member| member.session == who);
        if let Some(place) = place {
            members.swap_remove(place);
        }
        self.groups.retain(|group| !group.members.is_empty());
        place.is_some()
    }

    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.groups.is_empty()
    }

    fn each(&self, each: &mut impl FnMut(&Subscription)) {
        self.plain.iter().for_each(&mut *each);
        for group in &self.groups {
            each(group.next());
        }
    }
}

impl Group {
    fn next(&self) -> &Subscription {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let count = self.members.len();
        let member = |step: usize| &self.members[turn.wrapping_add(step) % count];
        let online = |step: &usize| member(*step).gauge.online.load(Ordering::Relaxed);
        member((0..count).find(online).unwrap_or(0))
    }
}

fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once('/') {
        Some((level, rest)) => (level, Some(rest)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use slotmap::{Key, KeyData};

    use super::*;

    fn slot_of(subscription: &Subscription) -> u32 {
        subscription.session.key.data().as_ffi() as u32
    }

    fn subscription(slot: u32) -> Subscription {
        let gauge = Arc::new(Gauge::default());
        gauge.online.store(true, Ordering::Relaxed);
        Subscription {
            session: SessionRef {
                shard: 0,
                key: KeyData::from_ffi(slot.into()).into(),
            },
            gauge,
            qos: Qos::AtLeastOnce,
            no_local: false,
            retain_as_published: false,
            id: None,
        }
    }

    fn parsed(text: &str) -> Parsed<'_> {
        Parsed::parse(text).expect("a filter")
    }

    fn matched(routes: &Routes, topic: &str) -> Vec<u32> {
        let mut slots = Vec::new();
        routes.matching(topic, |subscription| slots.push(slot_of(subscription)));
        slots.sort_unstable();
        slots
    }

    #[test]
    fn a_level_that_is_a_plus_matches_the_wildcard_once() {
        let mut routes = Routes::default();
        routes.insert(parsed("a/+/b"), subscription(1));
        assert_eq!(matched(&routes, "a/+/b"), [1]);
    }

    proptest! {
        /// The tree gives exactly the subscriptions whose filter matches, as the protocol's own
        /// matcher says; what was removed is gone, and an empty tree holds nothing.
        /// MQTT-3.3.2-3, MQTT-4.5.0-1.
        #[test]
        fn the_tree_is_the_list_of_matching_filters(
            filters in prop::collection::vec("([ab+]?/){0,3}[ab+#]?", 1..40),
            topics in prop::collection::vec("([ab$]?/){0,3}[ab]?", 1..20),
            removed in prop::collection::vec(any::<bool>(), 40),
        ) {
            let mut routes = Routes::default();
            let filters: Vec<String> =
                filters.into_iter().filter(|filter| Parsed::parse(filter).is_ok()).collect();
            for (slot, filter) in filters.iter().enumerate() {
                prop_assert!(routes.insert(parsed(filter), subscription(slot as u32)));
            }
            for (slot, filter) in filters.iter().enumerate().filter(|(slot, _)| removed[*slot]) {
                let who = subscription(slot as u32).session;
                prop_assert!(routes.remove(parsed(filter), who));
                prop_assert!(!routes.remove(parsed(filter), who));
            }
            for topic in topics.iter().filter(|topic| !topic.is_empty()) {
                let expected: Vec<u32> = (0..filters.len())
                    .filter(|slot| !removed[*slot] && parsed(&filters[*slot]).matches(topic))
                    .map(|slot| slot as u32)
                    .collect();
                prop_assert_eq!(matched(&routes, topic), expected);
            }
            for (slot, filter) in filters.iter().enumerate() {
                routes.remove(parsed(filter), subscription(slot as u32).session);
            }
            prop_assert!(routes.root.is_empty() && routes.len() == 0);
        }
    }

    #[test]
    fn a_group_takes_turns_and_skips_the_absent() {
        let mut routes = Routes::default();
        for slot in 0..3 {
            routes.insert(parsed("$share/g/t/#"), subscription(slot));
        }
        routes.insert(parsed("$share/h/t/#"), subscription(9));
        let mut seen: Vec<u32> = (0..6).flat_map(|_| matched(&routes, "t/1")).collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 0, 1, 1, 2, 2, 9, 9, 9, 9, 9, 9]);
        routes.root.children["t"].below.groups[0].members[1]
            .gauge
            .online
            .store(false, Ordering::Relaxed);
        assert!((0..6).all(|_| !matched(&routes, "t/1").contains(&1)));
    }

    /// MQTT-3.8.4-3.
    #[test]
    fn a_second_subscription_to_the_same_filter_replaces_the_first() {
        let mut routes = Routes::default();
        assert!(routes.insert(parsed("t"), subscription(1)));
        let again = Subscription {
            id: Some(5),
            ..subscription(1)
        };
        assert!(!routes.insert(parsed("t"), again));
        let mut ids = Vec::new();
        routes.matching("t", |subscription| ids.push(subscription.id));
        assert_eq!(ids, [Some(5)]);
    }
}
