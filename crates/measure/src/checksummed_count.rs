//! A count that also knows *what* was counted.
//!
//! Two such counts of the same things agree in count and in sum, in whatever order and grouping they
//! were made. If one thing is missing, doubled, or another one than it should be, count or sum
//! differs, but for one chance in 2^64.

use std::hash::{Hash, Hasher};

use muster_model::{MessageId, mix};
use rustc_hash::FxHasher;
use serde::{Deserialize, Serialize};

use crate::merge::Merge;

/// Number of things counted, and the wrapping sum of their digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChecksummedCount {
    /// Number of things counted.
    pub count: u64,
    /// Wrapping sum of the digests.
    pub sum: u64,
}

impl ChecksummedCount {
    /// Counts one thing by its digest.
    pub fn add(&mut self, digest: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(digest);
    }

    /// Distance between two counts of the same things: the difference of the counts, and at least 1
    /// if they did not count the same things.
    pub fn distance(&self, other: &ChecksummedCount) -> u64 {
        self.count
            .abs_diff(other.count)
            .max(u64::from(self.sum != other.sum))
    }
}

impl Merge for ChecksummedCount {
    fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

/// The digest of a message.
pub fn digest(id: &MessageId) -> u64 {
    let who = (u64::from(id.run.0) << 32) | u64::from(id.device.0);
    let which = (u64::from(id.stream.0) << 32) | u64::from(id.seq);
    mix(who, which)
}

/// The digest of a thing together with what happened to it, such as an outcome. Both counts of a
/// thing are made by one process, so that the hash need not be the same on every machine.
pub(crate) fn digest_of(thing: u64, what: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    what.hash(&mut hasher);
    mix(thing, hasher.finish())
}
