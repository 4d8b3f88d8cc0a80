//! Requests that wait for a command, and commands that go to them.

use std::sync::Arc;

use muster_model::Micros;
use muster_net::{Io, TimerId};
use muster_platform::{CommandScratch, Commanded, HandedCommand, Manner, Status, Upload};
use muster_protocol::coap::Pending;
use muster_protocol::mqtt::{Publish, Qos};

use super::PeerRef;
use crate::message::Message;
use crate::shard::Shard;
use crate::shard::alarms::Alarm;
use crate::shared::{Mail, locked};

/// How long an answer may wait for a command before the request is acknowledged; Hono's own default
/// (`timeoutToAck`).
const ACKNOWLEDGED_AFTER: Micros = Micros::from_millis(500);
/// Most requests that wait: one for each of the devices that one process of a generator can have,
/// several times over.
pub(crate) const QUERIES_MAX: usize = 100_000;
/// Devices whose gateway is known at least: as many as a large run has, at some 150 bytes each.
pub(crate) const SPOKEN_FOR_MAX: usize = 500_000;
/// The status, as in HTTP, of a command whose device does not wait.
const NOBODY_WAITS: u16 = 503;
/// That of a command which cannot be told to any device, or not be put into an answer.
const MALFORMED: u16 = 400;

/// Names one request that waits, and never another one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct QueryRef {
    slot: u32,
    generation: u32,
}

/// A request that waits, as all threads know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) shard: u16,
    query: QueryRef,
}

/// A request that wants a command in its answer.
#[derive(Debug)]
pub(super) struct Query {
    peer: PeerRef,
    pending: Pending,
    tenant: Box<str>,
    device: Box<str>,
    manner: Manner,
    waits: Micros,
    until: Micros,
    alarm: Option<(TimerId, u64)>,
}

impl Shard {
    /// Notes a request that wants a command; none if too many do.
    pub(super) fn note_query(
        &mut self,
        peer: PeerRef,
        pending: Pending,
        upload: &Upload<'_>,
    ) -> Option<QueryRef> {
        if self.coap.queries.len() >= QUERIES_MAX {
            return None;
        }
        let query = Query {
            peer,
            pending,
            tenant: upload.tenant.into(),
            device: upload.device.into(),
            manner: upload.manner,
            waits: Micros::from_secs(u64::from(upload.ttd_s?)),
            until: Micros::MAX,
            alarm: None,
        };
        let (slot, generation) = self.coap.queries.insert_with(|_, _| query);
        Some(QueryRef { slot, generation })
    }

    /// The request is answered otherwise.
    pub(in crate::shard) fn forget_query(&mut self, query: Option<QueryRef>) {
        if let Some(query) = query {
            self.coap.queries.remove(query.slot, query.generation);
        }
    }

    /// The message was taken: the device waits from now on.
    pub(in crate::shard) fn wait_for_command(&mut self, io: &mut Io, of: QueryRef) {
        let now = io.now();
        let waiter = self.waiter(of);
        let Some(query) = self.coap.queries.get_mut(of.slot, of.generation) else {
            return;
        };
        query.until = now + query.waits;
        let at = query.until.min(now + ACKNOWLEDGED_AFTER);
        // Where too many wait, this one does and gets nothing.
        locked(&self.shared.waiting).wait(&query.tenant, &query.device, waiter);
        self.counts().queries.more();
        self.set_query_alarm(io, of, at);
    }

    fn waiter(&self, query: QueryRef) -> Waiter {
        Waiter {
            shard: self.index,
            query,
        }
    }

    fn set_query_alarm(&mut self, io: &mut Io, of: QueryRef, at: Micros) {
        let alarm = self.set_alarm(io, at, Alarm::Query(of));
        if let Some(query) = self.coap.queries.get_mut(of.slot, of.generation) {
            query.alarm = Some(alarm);
        }
    }

    /// The request has waited long enough: for its acknowledgement, or for a command.
    pub(in crate::shard) fn query_due(&mut self, io: &mut Io, of: QueryRef) {
        let now = io.now();
        let Some(query) = self.coap.queries.get_mut(of.slot, of.generation) else {
            return;
        };
        query.alarm = None;
        let (peer, pending, until) = (query.peer, query.pending, query.until);
        if now >= until {
            let waiter = self.waiter(of);
            let Some(query) = self.coap.queries.remove(of.slot, of.generation) else {
                return;
            };
            locked(&self.shared.waiting).end(&query.tenant, &query.device, waiter);
            self.counts().queries_without_command.more();
            return self.change(io, peer, pending);
        }
        let pending = self.separate(io, peer, pending);
        if let (Some(query), Some(pending)) =
            (self.coap.queries.get_mut(of.slot, of.generation), pending)
        {
            query.pending = pending;
        }
        self.set_query_alarm(io, of, until);
    }

    /// Hands a command on to the request of its device that waits: the number of copies, and if it is
    /// none the application is told.
    pub(in crate::shard) fn hand_to_query(&mut self, io: &mut Io, message: &Arc<Message>) -> usize {
        if self.is_handed(io, message) {
            return 1;
        }
        if let Some(command) = Commanded::of(&message.topic) {
            let (status, why) = match command.is_takeable() {
                true => (NOBODY_WAITS, "the device does not wait"),
                false => (MALFORMED, Commanded::TOO_LONG),
            };
            self.tell_undelivered(io, &command, status, why);
        }
        0
    }

    /// Hands a command on to the request of its device that waits, if one does.
    pub(in crate::shard) fn is_handed(&mut self, io: &mut Io, message: &Arc<Message>) -> bool {
        let command = Commanded::of(&message.topic).filter(Commanded::is_takeable);
        let Some(command) = command else {
            return false;
        };
        let waiter = locked(&self.shared.waiting).hand(command.tenant, command.device);
        let Some(to) = waiter else {
            return false;
        };
        if to.shard == self.index {
            self.put_into_answer(io, to, message);
        } else {
            let message = Arc::clone(message);
            self.outboxes[usize::from(to.shard)].push(Mail::Command { to, message });
        }
        true
    }

    /// Puts a command into the answer to a request, if that still waits.
    pub(in crate::shard) fn put_into_answer(&mut self, io: &mut Io, to: Waiter, message: &Message) {
        let Some(command) = Commanded::of(&message.topic) else {
            return;
        };
        let QueryRef { slot, generation } = to.query;
        let Some(query) = self.coap.queries.remove(slot, generation) else {
            return self.tell_undelivered(io, &command, NOBODY_WAITS, "the device waits no more");
        };
        self.cancel_alarm(io, query.alarm);
        let mut handed = HandedCommand::default();
        let manner = query.manner.towards(&query.device, command.device);
        if !handed.fill(manner, &command) {
            self.tell_undelivered(io, &command, MALFORMED, Commanded::NOT_TO_BE_HANDED);
            return self.change(io, query.peer, query.pending);
        }
        let answer = (Status::new(2, 4), handed.fields(), &message.payload[..]);
        if self.respond_with(io, query.peer, query.pending, answer) {
            self.counts().accepted.more();
            self.counts().commands_handed.more();
        }
    }

    /// Tells the application that a command was not delivered, where it can be told.
    fn tell_undelivered(&mut self, io: &mut Io, command: &Commanded<'_>, status: u16, why: &str) {
        self.counts().commands_undelivered.more();
        let mut notice = CommandScratch::default();
        if command.write_notice(status, why, &mut notice) {
            let publish = Publish {
                qos: Qos::AtLeastOnce,
                ..Publish::new(&notice.topic, &notice.payload)
            };
            self.publish(io, &publish, None, None);
        }
    }
}
