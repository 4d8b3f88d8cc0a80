//! A count that also knows *what* was counted.
//!
//! Two tallies of the same things agree in count and in sum, in whatever order and grouping they
//! were made. If one thing is missing, doubled, or another one than it should be, count or sum
//! differs, but for one chance in 2^64.

use muster_model::{
    Answering, Cause, ConnectFailure, Delivery, DeviceId, Integrity, LinkId, MessageId, Outcome,
    Presence, QueryOutcome, Reason, ShedCause, TlsFailure, mix,
};
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

/// The digest of a message in its final state; `message` is the digest of the message.
pub(crate) fn digest_ended(message: u64, outcome: &Outcome, resent: bool) -> u64 {
    mix(message, outcome_key(outcome) << 1 | u64::from(resent))
}

/// The digest of a decoded copy.
pub(crate) fn digest_copy(message: u64, integrity: Integrity) -> u64 {
    let key = match integrity {
        Integrity::Intact => 1,
        Integrity::Corrupted => 2,
        Integrity::Unchecked => 3,
    };
    mix(message, key)
}

/// The digest of a copy that came to a device.
pub(crate) fn digest_receipt(copy: u64, device: DeviceId) -> u64 {
    mix(copy, u64::from(device.0))
}

/// The digest of a query and its end.
pub(crate) fn digest_query(message: u64, outcome: &QueryOutcome) -> u64 {
    let key = match outcome {
        QueryOutcome::Received => 1 << 32,
        QueryOutcome::NoCommand => 2 << 32,
        QueryOutcome::Rejected(reason) => 3 << 32 | reason_key(reason),
        QueryOutcome::TimedOut => 4 << 32,
        QueryOutcome::Broken(cause) => 5 << 32 | cause_key(cause),
        QueryOutcome::InFlight => 6 << 32,
    };
    mix(message, key)
}

/// The digest of a command and what the backend knows of it.
pub(crate) fn digest_delivery(message: u64, delivery: &Delivery) -> u64 {
    let key = match delivery {
        Delivery::Delivered => 1 << 32,
        Delivery::Expired => 2 << 32,
        Delivery::Undeliverable(reason) => 3 << 32 | reason_key(reason),
        Delivery::Unknown => 4 << 32,
        Delivery::Withheld(cause) => 5 << 32 | shed_key(*cause),
    };
    mix(message, key)
}

/// The digest of a command and where its device stood.
pub(crate) fn digest_met(message: u64, presence: Presence) -> u64 {
    mix(message, 1 + presence as u64)
}

/// The digest of a command and the end of its answer.
pub(crate) fn digest_answering(message: u64, outcome: &Answering) -> u64 {
    let key = match outcome {
        Answering::Answered => 1 << 32,
        Answering::OneWay => 2 << 32,
        Answering::Rejected(reason) => 3 << 32 | reason_key(reason),
        Answering::TimedOut => 4 << 32,
        Answering::Broken(cause) => 5 << 32 | cause_key(cause),
        Answering::InFlight => 6 << 32,
        Answering::Shed(cause) => 7 << 32 | shed_key(*cause),
    };
    mix(message, key)
}

/// The digest of a link event, whose key says which one.
pub(crate) fn digest_link(link: LinkId, key: u64) -> u64 {
    mix(u64::from(link.0), key)
}

pub(crate) fn failure_key(failure: &ConnectFailure) -> u64 {
    match failure {
        ConnectFailure::Dns => 1 << 16,
        ConnectFailure::Refused => 2 << 16,
        ConnectFailure::Unreachable => 3 << 16,
        ConnectFailure::TimedOut => 4 << 16,
        ConnectFailure::Closed => 5 << 16,
        ConnectFailure::Tls(failure) => 6 << 16 | tls_key(failure),
        ConnectFailure::Malformed => 7 << 16,
        ConnectFailure::Rejected(reason) => 8 << 16 | reason_key(reason),
        ConnectFailure::SubscribeRejected(reason) => 9 << 16 | reason_key(reason),
        ConnectFailure::GeneratorLimit => 10 << 16,
        ConnectFailure::RunEnded => 11 << 16,
        ConnectFailure::UpgradeRefused(status) => 12 << 16 | u64::from(*status),
        ConnectFailure::Unsendable => 13 << 16,
        ConnectFailure::AnnouncementUnanswered => 14 << 16,
        ConnectFailure::SubscribeUnanswered => 15 << 16,
    }
}

pub(crate) fn cause_key(cause: &Cause) -> u64 {
    match cause {
        Cause::PeerClosed => 1 << 16,
        Cause::Reset => 2 << 16,
        Cause::Network => 3 << 16,
        Cause::PeerDisconnect(reason) => 4 << 16 | reason_key(reason),
        Cause::PingUnanswered => 5 << 16,
        Cause::Malformed => 6 << 16,
        Cause::Lifetime => 7 << 16,
        Cause::SessionLost => 8 << 16,
        Cause::Unsendable => 9 << 16,
        Cause::Tls(failure) => 10 << 16 | tls_key(failure),
        Cause::Offline => 11 << 16,
        Cause::KeepAliveMissed => 12 << 16,
        Cause::OwnLimit => 13 << 16,
    }
}

fn tls_key(failure: &TlsFailure) -> u64 {
    match failure {
        TlsFailure::UnknownIssuer => 1 << 8,
        TlsFailure::Expired => 2 << 8,
        TlsFailure::NotYetValid => 3 << 8,
        TlsFailure::WrongName => 4 << 8,
        TlsFailure::BadCertificate => 5 << 8,
        TlsFailure::NothingInCommon => 6 << 8,
        TlsFailure::Alert(code) => 7 << 8 | u64::from(*code),
        TlsFailure::Malformed => 8 << 8,
        TlsFailure::OwnCredential => 9 << 8,
    }
}

fn outcome_key(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Accepted => 1 << 32,
        Outcome::Rejected(reason) => 2 << 32 | reason_key(reason),
        Outcome::TimedOut => 3 << 32,
        Outcome::Broken(cause) => 4 << 32 | cause_key(cause),
        Outcome::Unacknowledged => 5 << 32,
        Outcome::Shed(cause) => 6 << 32 | shed_key(*cause),
        Outcome::InFlight => 7 << 32,
    }
}

fn shed_key(cause: ShedCause) -> u64 {
    cause as u64
}

fn reason_key(reason: &Reason) -> u64 {
    match reason {
        Reason::Mqtt(code) => 1 << 8 | u64::from(*code),
        Reason::MqttConnack(code) => 2 << 8 | u64::from(*code),
        Reason::MqttSuback(code) => 3 << 8 | u64::from(*code),
        Reason::Coap(code) => 4 << 8 | u64::from(*code),
        Reason::Application(code) => 1 << 24 | u64::from(*code),
        Reason::Kafka(code) => 2 << 24 | u64::from(*code),
    }
}
