//! Devices that wait for a command at the server end.

use std::collections::HashMap;

/// The requests that wait for a command, one a device. A command goes to the request that came last,
/// and to no other; what becomes of a request whose time is over is its owner's to say.
#[derive(Debug)]
pub struct Waiting<T> {
    by_device: HashMap<String, T>,
    /// By device: the gateway that spoke for it last.
    gateways: Recent,
    most: usize,
    /// Buffer of a key.
    key: String,
}

impl<T: Copy + PartialEq> Waiting<T> {
    /// A register in which nobody waits. At most `most` devices may wait. The gateways of the last
    /// `spoken_for` devices that a gateway acted for are known.
    pub fn new(most: usize, spoken_for: usize) -> Self {
        Self {
            by_device: HashMap::new(),
            gateways: Recent::new(spoken_for),
            most,
            key: String::new(),
        }
    }

    /// A device waits by this request; an earlier one of its waits on and gets nothing. False if too
    /// many wait, so that this one gets nothing either.
    pub fn wait(&mut self, tenant: &str, device: &str, request: T) -> bool {
        self.name(tenant, device);
        if let Some(earlier) = self.by_device.get_mut(&self.key) {
            *earlier = request;
            return true;
        }
        let has_room = self.by_device.len() < self.most;
        if has_room {
            self.by_device.insert(self.key.clone(), request);
        }
        has_room
    }

    /// A gateway spoke for a device: commands to that go to the gateway where it waits and the device does
    /// not. Where too many devices have gateways, those that were not spoken for longest are forgotten.
    pub fn speaks_for(&mut self, tenant: &str, gateway: &str, device: &str) {
        self.name(tenant, device);
        let is_same = |known: &String| {
            let rest = known.strip_prefix(tenant);
            rest.and_then(|rest| rest.strip_prefix(SEPARATOR)) == Some(gateway)
        };
        if !self.gateways.renew(&self.key).is_some_and(is_same) {
            let gateway = [tenant, SEPARATOR, gateway].concat();
            self.gateways.insert(self.key.clone(), gateway);
        }
    }

    /// The gateway that spoke for a device last; none if none did.
    pub fn gateway_of(&mut self, tenant: &str, device: &str) -> Option<&str> {
        self.name(tenant, device);
        let gateway = self.gateways.get(&self.key)?;
        let (_, gateway) = gateway.split_once(SEPARATOR)?;
        Some(gateway)
    }

    /// The request that a command to a device goes to, which then waits no longer: its own, else its
    /// gateway's. None if neither waits, so that the command is refused with 503.
    pub fn hand(&mut self, tenant: &str, device: &str) -> Option<T> {
        self.name(tenant, device);
        let own = self.by_device.remove(&self.key);
        own.or_else(|| self.by_device.remove(self.gateways.get(&self.key)?))
    }

    /// The request that a command to a device would go to.
    pub fn find(&mut self, tenant: &str, device: &str) -> Option<T> {
        self.name(tenant, device);
        let own = self.by_device.get(&self.key);
        let of = own.or_else(|| self.by_device.get(self.gateways.get(&self.key)?));
        of.copied()
    }

    /// A request's time is over, or its link is gone.
    pub fn end(&mut self, tenant: &str, device: &str, request: T) {
        self.name(tenant, device);
        if self.by_device.get(&self.key) == Some(&request) {
            self.by_device.remove(&self.key);
        }
    }

    /// Returns how many devices wait.
    pub fn len(&self) -> usize {
        self.by_device.len()
    }

    /// Returns true if no device waits.
    pub fn is_empty(&self) -> bool {
        self.by_device.is_empty()
    }

    fn name(&mut self, tenant: &str, device: &str) {
        self.key.clear();
        self.key.extend([tenant, SEPARATOR, device]);
    }
}

/// Names by name, those that were used last: when the newer half is full, the older one is forgotten.
#[derive(Debug)]
struct Recent {
    newer: HashMap<String, String>,
    older: HashMap<String, String>,
    /// Names of one half.
    most: usize,
}

impl Recent {
    fn new(most: usize) -> Self {
        Self {
            newer: HashMap::new(),
            older: HashMap::new(),
            most: most.max(1),
        }
    }

    fn get(&self, key: &str) -> Option<&String> {
        self.newer.get(key).or_else(|| self.older.get(key))
    }

    /// Returns the value of a name, which counts as used now.
    fn renew(&mut self, key: &str) -> Option<&String> {
        if let Some((key, value)) = self.older.remove_entry(key) {
            self.insert(key, value);
        }
        self.newer.get(key)
    }

    fn insert(&mut self, key: String, value: String) {
        if self.newer.len() >= self.most && !self.newer.contains_key(&key) {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(key, value);
    }
}

/// No name holds NUL, so that no two devices have one key.
const SEPARATOR: &str = "\0";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_gets_one_command_for_one_query() {
        let mut waiting = Waiting::new(10, 10);
        assert!(waiting.wait("t", "d", 1) && waiting.wait("t", "e", 2));
        assert_eq!(waiting.hand("t", "d"), Some(1));
        assert_eq!(waiting.hand("t", "d"), None);
        assert_eq!((waiting.hand("", "td"), waiting.len()), (None, 1));
    }

    #[test]
    fn the_last_of_two_queries_gets_the_command() {
        let mut waiting = Waiting::new(10, 10);
        assert!(waiting.wait("t", "d", 1) && waiting.wait("t", "d", 2));
        waiting.end("t", "d", 1);
        assert_eq!(waiting.hand("t", "d"), Some(2));
        waiting.end("t", "d", 2);
        assert!(waiting.is_empty());
    }

    #[test]
    fn a_gateway_that_waits_gets_the_command_of_a_device_that_does_not() {
        let mut waiting = Waiting::new(10, 10);
        waiting.speaks_for("t", "gw", "d");
        assert_eq!(waiting.hand("t", "d"), None, "it does not wait");
        assert!(waiting.wait("t", "gw", 1) && waiting.wait("t", "d", 2));
        assert_eq!(waiting.hand("t", "e"), None, "it never spoke for that one");
        assert_eq!(waiting.hand("u", "d"), None, "of another tenant");
        assert_eq!(
            (waiting.find("t", "d"), waiting.find("t", "e")),
            (Some(2), None)
        );
        assert_eq!(waiting.hand("t", "d"), Some(2));
        assert_eq!(waiting.find("t", "d"), Some(1));
        assert_eq!(waiting.hand("t", "d"), Some(1));
        assert!(waiting.is_empty());
        waiting.speaks_for("t", "other", "d");
        assert!(waiting.wait("t", "gw", 3) && waiting.wait("t", "other", 4));
        assert_eq!(
            waiting.hand("t", "d"),
            Some(4),
            "the last that spoke for it"
        );
    }

    #[test]
    fn the_devices_that_were_not_spoken_for_longest_lose_their_gateway_first() {
        let mut waiting = Waiting::new(1, 2);
        for device in ["a", "b", "c", "a", "d", "e"] {
            waiting.speaks_for("t", "gw", device);
        }
        let mut is_known = |device| {
            assert!(waiting.wait("t", "gw", 1));
            waiting.hand("t", device) == Some(1)
        };
        assert!(["a", "d", "e"].into_iter().all(&mut is_known));
        assert!(!is_known("b"), "the oldest but one that spoke again");
    }

    #[test]
    fn no_more_wait_than_may() {
        let mut waiting = Waiting::new(1, 1);
        assert!(waiting.wait("t", "d", 1) && !waiting.wait("t", "e", 2));
        assert!(waiting.wait("t", "d", 3));
        assert_eq!(
            (waiting.hand("t", "e"), waiting.hand("t", "d")),
            (None, Some(3))
        );
    }
}
