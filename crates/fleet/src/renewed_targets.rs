//! Addresses that devices connect to, as they were looked up last.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use muster_platform::Protocol;

/// Addresses that are looked up again while the run goes on: one thread writes them, and each shard reads
/// them before a link connects.
#[derive(Debug, Default)]
pub struct RenewedTargets {
    /// Number of changes so far, so that a shard takes the lock after a change only.
    version: AtomicU32,
    targets: Mutex<Vec<(Protocol, SocketAddr)>>,
}

impl RenewedTargets {
    /// Addresses from now on; links that stand are left as they are.
    pub fn set(&self, targets: Vec<(Protocol, SocketAddr)>) {
        let mut current = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if *current != targets {
            *current = targets;
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    /// Addresses of a protocol and the number of changes, if that is not `seen`.
    pub(crate) fn after(&self, seen: u32, protocol: Protocol) -> Option<(u32, Vec<SocketAddr>)> {
        let version = self.version.load(Ordering::Acquire);
        if version == seen {
            return None;
        }
        let targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let of_it = targets.iter().filter(|(of, _)| *of == protocol);
        Some((version, of_it.map(|(_, target)| *target).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_once_a_change() {
        let renewed = RenewedTargets::default();
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(renewed.after(0, Protocol::Http), None);
        let both = vec![(Protocol::Http, at(1)), (Protocol::Mqtt, at(2))];
        renewed.set(both.clone());
        assert_eq!(renewed.after(0, Protocol::Http), Some((1, vec![at(1)])));
        renewed.set(both);
        assert_eq!(renewed.after(1, Protocol::Http), None);
        renewed.set(vec![(Protocol::Http, at(3))]);
        assert_eq!(renewed.after(1, Protocol::Http), Some((2, vec![at(3)])));
    }
}
