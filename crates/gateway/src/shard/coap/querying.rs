//! Requests that wait for a command, and commands that go to them.

use std::sync::Arc;

use muster_model::Micros;
use muster_net::{Io, TimerId};
use muster_platform::{
    CommandScratch, Commanded, HandedCommand, Manner, Protocol, Requests, Status, Upload,
};
use muster_protocol::coap::Pending;
use muster_protocol::mqtt::{Publish, Qos};

use super::{PeerRef, QueryRef};
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
/// Why a command comes back whose device waits and cannot be answered.
const UNANSWERABLE: &str = "the device's request cannot be answered";

/// A request that waits, as all threads know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiter {
    pub(crate) shard: u16,
    query: QueryRef,
}

/// A request that wants a command in its answer.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) peer: PeerRef,
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
        Some(self.coap.queries.insert(query))
    }

    /// The request is answered otherwise.
    pub(in crate::shard) fn forget_query(&mut self, query: Option<QueryRef>) {
        if let Some(query) = query {
            self.coap.queries.remove(query);
        }
    }

    /// A peer is gone, and what it asked waits no more: commands find nobody.
    pub(super) fn end_queries(&mut self, io: &mut Io, of: PeerRef) {
        while let Some(query) = self.coap.queries.last_of(of)
            && let Some(ended) = self.coap.queries.remove(query)
        {
            self.cancel_alarm(io, ended.alarm);
            let waiter = self.waiter(query);
            locked(&self.shared.waiting).end(&ended.tenant, &ended.device, waiter);
            if ended.until < Micros::MAX {
                self.counts().queries_abandoned.more();
            }
        }
    }

    /// The message was taken: the device waits from now on, unless it is gone.
    pub(in crate::shard) fn wait_for_command(&mut self, io: &mut Io, of: QueryRef) {
        let now = io.now();
        let waiter = self.waiter(of);
        let Some(query) = self.coap.queries.get_mut(of) else {
            return self.counts().unanswerable.more();
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
        if let Some(query) = self.coap.queries.get_mut(of) {
            query.alarm = Some(alarm);
        }
    }

    /// The request has waited long enough: for its acknowledgement, or for a command.
    pub(in crate::shard) fn query_due(&mut self, io: &mut Io, of: QueryRef) {
        let now = io.now();
        let Some(query) = self.coap.queries.get_mut(of) else {
            return;
        };
        query.alarm = None;
        let (peer, pending, until) = (query.peer, query.pending, query.until);
        if now >= until {
            let waiter = self.waiter(of);
            let Some(query) = self.coap.queries.remove(of) else {
                return;
            };
            locked(&self.shared.waiting).end(&query.tenant, &query.device, waiter);
            self.counts().queries_without_command.more();
            return self.change(io, peer, pending);
        }
        let pending = self.separate(io, peer, pending);
        if let (Some(query), Some(pending)) = (self.coap.queries.get_mut(of), pending) {
            query.pending = pending;
        }
        self.set_query_alarm(io, of, until);
    }

    /// Hands a command on to the request of its device that waits: the number of copies, and if it is
    /// none the application is told.
    pub(in crate::shard) fn hand_to_query(&mut self, io: &mut Io, message: &Arc<Message>) -> usize {
        if let Some(copies) = self.pass_to_query(io, message) {
            return copies;
        }
        if let Some(command) = self.commanded(message) {
            let (status, why) = match (self.requests().unfit)(&command) {
                Some(why) => (MALFORMED, why),
                None => (NOBODY_WAITS, "the device does not wait"),
            };
            self.tell_undelivered(io, &command, status, why);
        }
        0
    }

    /// Hands a command on to the request of its device that waits: the number of copies that went there;
    /// none if no request waits.
    pub(in crate::shard) fn pass_to_query(
        &mut self,
        io: &mut Io,
        message: &Arc<Message>,
    ) -> Option<usize> {
        let command = self.commanded(message)?;
        if (self.requests().unfit)(&command).is_some() {
            return None;
        }
        let to = locked(&self.shared.waiting).hand(command.tenant, command.device)?;
        if to.shard == self.index {
            return Some(usize::from(self.put_into_answer(io, to, message)));
        }
        let message = Arc::clone(message);
        self.outboxes[usize::from(to.shard)].push(Mail::Command { to, message });
        Some(1)
    }

    /// Puts a command into the answer to a request; false, and the application is told, if that waits no
    /// more or cannot be answered so.
    pub(in crate::shard) fn put_into_answer(
        &mut self,
        io: &mut Io,
        to: Waiter,
        message: &Message,
    ) -> bool {
        let Some(command) = self.commanded(message) else {
            return false;
        };
        let Some(query) = self.coap.queries.remove(to.query) else {
            self.tell_undelivered(io, &command, NOBODY_WAITS, "the device waits no more");
            return false;
        };
        self.cancel_alarm(io, query.alarm);
        let mut handed = HandedCommand::default();
        let manner = query.manner.towards(&query.device, command.device);
        if let Err(why) = (self.requests().hand)(manner, &command, &mut handed) {
            self.tell_undelivered(io, &command, MALFORMED, why);
            self.change(io, query.peer, query.pending);
            return false;
        }
        let answer = (Status::new(2, 4), handed.fields(), &message.payload[..]);
        if !self.respond_with(io, query.peer, query.pending, answer) {
            self.tell_undelivered(io, &command, NOBODY_WAITS, UNANSWERABLE);
            return false;
        }
        self.counts().accepted.more();
        self.counts().commands_handed.more();
        true
    }

    fn requests(&self) -> &'static Requests {
        self.shared.config.dialect.requests(Protocol::Coap)
    }

    fn commanded<'a>(&self, message: &'a Message) -> Option<Commanded<'a>> {
        (self.shared.config.dialect.server.command)(&message.topic)
    }

    /// Tells the application that a command was not delivered, where it can be told.
    fn tell_undelivered(&mut self, io: &mut Io, command: &Commanded<'_>, status: u16, why: &str) {
        self.counts().commands_undelivered.more();
        let mut notice = CommandScratch::default();
        let server = &self.shared.config.dialect.spec().server;
        if (server.write_notice)(command, status, why, &mut notice) {
            let publish = Publish {
                qos: Qos::AtLeastOnce,
                ..Publish::new(&notice.topic, &notice.payload)
            };
            self.publish(io, &publish, None, None);
        }
    }
}
