//! Receptions of one stream's subscribers, counted where they happened or from the Facts.

use muster_model::Reception;
use serde::{Deserialize, Serialize};

use crate::checksummed_count::digest_of;
use crate::merge::merge_fields;
use crate::{ChecksummedCount, Distribution, digest};

/// Receptions of one stream's subscribers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReceptionAccount {
    /// Every copy, counted before decoding.
    pub consumed: u64,
    /// Copies whose id could be read, by who got them.
    pub read: ChecksummedCount,
    /// Copies without a readable id.
    pub unstamped: u64,
}

/// The subscribers of one stream in one window.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReceptionWindow {
    /// First copies, each subscriber by itself, by event.
    pub arrived: u64,
    /// Further copies, by event.
    pub again: u64,
    /// Copies that name no message of this run, by event.
    pub foreign: u64,
    /// Copies without a readable id, by event.
    pub unstamped: u64,
    /// Altered copies, by event.
    pub corrupted: u64,
    /// By due: `seen - due` of first copies.
    pub end_to_end: Distribution,
}

impl ReceptionAccount {
    /// Counts a decoded copy.
    pub fn read(&mut self, reception: &Reception) {
        match &reception.id {
            Some(id) => {
                let copy = digest_of(digest(id), reception.integrity);
                self.read.add(digest_of(copy, reception.subscriber));
            }
            None => self.unstamped += 1,
        }
    }
}

impl ReceptionWindow {
    /// Every copy.
    pub(crate) fn copies(&self) -> u64 {
        self.arrived + self.again + self.foreign + self.unstamped
    }
}

merge_fields! {
    ReceptionAccount { consumed, read, unstamped }
    ReceptionWindow { arrived, again, foreign, unstamped, corrupted, end_to_end }
}
