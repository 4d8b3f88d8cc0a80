//! Who waits for a command at the server end.

use std::collections::HashMap;

/// The requests that wait for a command, one a device. A command goes to the request that came last,
/// and to no other; what becomes of a request whose time is over is its owner's to say.
#[derive(Debug)]
pub struct Waiting<T> {
    by_device: HashMap<String, T>,
    most: usize,
    /// Where a key is put together.
    key: String,
}

impl<T: Copy + PartialEq> Waiting<T> {
    /// Nobody waits; at most so many devices may.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self {
            by_device: HashMap::new(),
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

    /// The request that a command to a device goes to, which then waits no longer; none if the device
    /// does not wait, so that the command is refused with 503.
    pub fn hand(&mut self, tenant: &str, device: &str) -> Option<T> {
        self.name(tenant, device);
        self.by_device.remove(&self.key)
    }

    /// A request's time is over, or its link is gone.
    pub fn end(&mut self, tenant: &str, device: &str, request: T) {
        self.name(tenant, device);
        if self.by_device.get(&self.key) == Some(&request) {
            self.by_device.remove(&self.key);
        }
    }

    /// How many devices wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_device.len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_device.is_empty()
    }

    /// No name holds NUL, so that no two devices have one key.
    fn name(&mut self, tenant: &str, device: &str) {
        self.key.clear();
        self.key.extend([tenant, "\0", device]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_gets_one_command_for_one_query() {
        let mut waiting = Waiting::new(10);
        assert!(waiting.wait("t", "d", 1) && waiting.wait("t", "e", 2));
        assert_eq!(waiting.hand("t", "d"), Some(1));
        assert_eq!(waiting.hand("t", "d"), None);
        assert_eq!((waiting.hand("", "td"), waiting.len()), (None, 1));
    }

    #[test]
    fn the_last_of_two_queries_gets_the_command() {
        let mut waiting = Waiting::new(10);
        assert!(waiting.wait("t", "d", 1) && waiting.wait("t", "d", 2));
        waiting.end("t", "d", 1);
        assert_eq!(waiting.hand("t", "d"), Some(2));
        waiting.end("t", "d", 2);
        assert!(waiting.is_empty());
    }

    #[test]
    fn no_more_wait_than_may() {
        let mut waiting = Waiting::new(1);
        assert!(waiting.wait("t", "d", 1) && !waiting.wait("t", "e", 2));
        assert!(waiting.wait("t", "d", 3));
        assert_eq!(
            (waiting.hand("t", "e"), waiting.hand("t", "d")),
            (None, Some(3))
        );
    }
}
