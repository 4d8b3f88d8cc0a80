//! Counts of one stream's commands, made by backend and devices where it happened, or made from the
//! Facts.

use muster_model::{Answer, Command, Issue, Met, Query, Receipt, Reply};
use serde::{Deserialize, Serialize};

use super::{
    ANSWERINGS, DELIVERIES, PRESENCES, QUERIES, answering_at, delivery_at, presence_at, query_at,
};
use crate::checksummed_count::digest_of;
use crate::merge::merge_fields;
use crate::{ChecksummedCount, digest};

/// The commands of one stream, counted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandAccount {
    /// Queries by their end.
    pub queries: [ChecksummedCount; QUERIES],
    /// Commands handed to the socket, counted there.
    pub issued: ChecksummedCount,
    /// Commands by what the backend knows of them.
    pub issues: [ChecksummedCount; DELIVERIES],
    /// Commands by where their device stood when they came due.
    pub met: [ChecksummedCount; PRESENCES],
    /// Copies that came to devices, counted before decoding.
    pub taken: u64,
    /// Copies at devices whose id may be believed.
    pub read: ChecksummedCount,
    /// Copies at devices whose id may not be believed, by device.
    pub damaged: ChecksummedCount,
    /// First copies, as the device knows them by itself.
    pub received: ChecksummedCount,
    /// Commands by the end of their answer.
    pub answers: [ChecksummedCount; ANSWERINGS],
    /// Replies whose first transmission the kernel took, counted at the socket.
    pub replied: ChecksummedCount,
    /// Copies of replies that came to the backend, counted before decoding.
    pub replies_taken: u64,
    /// Copies of replies whose id may be believed.
    pub replies_read: ChecksummedCount,
    /// Copies of replies whose id may not be believed.
    pub replies_damaged: u64,
}

impl CommandAccount {
    /// Counts the end of a query, a command or an answer, where a device stood, or a decoded copy.
    pub fn count(&mut self, command: &Command) {
        match command {
            Command::Query(Query { id, outcome, .. }) => {
                self.queries[query_at(outcome)].add(digest_of(digest(id), outcome));
            }
            Command::Issue(Issue { id, delivery, .. }) => {
                self.issues[delivery_at(delivery)].add(digest_of(digest(id), delivery));
            }
            Command::Met(Met { id, presence, .. }) => {
                self.met[presence_at(*presence)].add(digest_of(digest(id), *presence));
            }
            Command::Receipt(receipt) => self.receipt(receipt),
            Command::Answer(Answer { id, outcome, .. }) => {
                self.answers[answering_at(outcome)].add(digest_of(digest(id), outcome));
            }
            Command::Reply(reply) => self.reply(reply),
        }
    }

    fn receipt(&mut self, receipt: &Receipt) {
        match &receipt.id {
            Some(id) => {
                let copy = digest_of(digest(id), receipt.integrity);
                self.read.add(digest_of(copy, receipt.device));
            }
            None => self.damaged.add(digest_of(receipt.device.0.into(), ())),
        }
    }

    fn reply(&mut self, reply: &Reply) {
        match &reply.id {
            Some(id) => self
                .replies_read
                .add(digest_of(digest(id), reply.integrity)),
            None => self.replies_damaged += 1,
        }
    }
}

merge_fields! {
    CommandAccount {
        queries, issued, issues, met, taken, read, damaged, received, answers, replied,
        replies_taken, replies_read, replies_damaged,
    }
}
