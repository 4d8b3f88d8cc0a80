//! Requests that wait for a command, and commands that go to them.

use std::sync::Arc;

use muster_model::Micros;
use muster_platform::{
    CommandScratch, Commanded, HandedCommand, Protocol, Requests, Status, Upload,
};
use muster_protocol::coap::Pending;
use muster_protocol::mqtt::{Publish, Qos};

use super::bounds::QUERIES_MAX;
use super::queries::Query;
use super::request::{PeerRef, QueryRef, Waiter};
use super::{Coap, Content};
use crate::broker::Broker;
use crate::lock::locked;
use crate::mail::Mail;
use crate::message::{Message, Parcel};
use crate::thread::Ctx;
use crate::uplink::Alarm;

/// Longest wait of an answer for a command before the request is acknowledged; Hono's own default
/// (`timeoutToAck`).
const ACKNOWLEDGED_AFTER: Micros = Micros::from_millis(500);
/// The status, as in HTTP, of a command whose device does not wait.
const NOBODY_WAITS: u16 = 503;
/// The status of a command that cannot be sent to any device, or not be put into an answer.
const MALFORMED: u16 = 400;
/// Reason for the return of a command if its device waits and cannot be answered.
const UNANSWERABLE: &str = "the device's request cannot be answered";

impl Coap {
    /// Notes a request that wants a command; none if too many do.
    pub(super) fn note_query(
        &mut self,
        peer: PeerRef,
        pending: Pending,
        upload: &Upload<'_>,
    ) -> Option<QueryRef> {
        if self.queries.len() >= QUERIES_MAX {
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
        Some(self.queries.insert(query))
    }

    /// A peer is gone, and what it asked waits no more: commands find nobody.
    pub(super) fn end_queries(&mut self, ctx: &mut Ctx<'_>, of: PeerRef) {
        while let Some(query) = self.queries.any_of(of)
            && let Some(ended) = self.queries.remove(query)
        {
            ctx.cancel_alarm(ended.alarm);
            let waiter = waiter(ctx, query);
            locked(&ctx.shared.waiting).end(&ended.tenant, &ended.device, waiter);
            if ended.until < Micros::MAX {
                ctx.counts().queries_abandoned.more();
            }
        }
    }

    /// The message was taken: the device waits from now on, unless it is gone.
    pub(crate) fn wait_for_command(&mut self, ctx: &mut Ctx<'_>, of: QueryRef) {
        let now = ctx.now();
        let waiter = waiter(ctx, of);
        let Some(query) = self.queries.get_mut(of) else {
            return ctx.counts().unanswerable.more();
        };
        query.until = now + query.waits;
        let at = query.until.min(now + ACKNOWLEDGED_AFTER);
        // Where too many wait, this one does and gets nothing.
        locked(&ctx.shared.waiting).wait(&query.tenant, &query.device, waiter);
        ctx.counts().queries.more();
        self.set_query_alarm(ctx, of, at);
    }

    fn set_query_alarm(&mut self, ctx: &mut Ctx<'_>, of: QueryRef, at: Micros) {
        let alarm = ctx.set_alarm(at, Alarm::Query(of));
        if let Some(query) = self.queries.get_mut(of) {
            query.alarm = Some(alarm);
        }
    }

    /// The request has waited long enough: for its acknowledgement, or for a command.
    pub(crate) fn query_due(&mut self, ctx: &mut Ctx<'_>, of: QueryRef) {
        let now = ctx.now();
        let Some(query) = self.queries.get_mut(of) else {
            return;
        };
        query.alarm = None;
        let (peer, pending, until) = (query.peer, query.pending, query.until);
        if now >= until {
            let waiter = waiter(ctx, of);
            let Some(query) = self.queries.remove(of) else {
                return;
            };
            locked(&ctx.shared.waiting).end(&query.tenant, &query.device, waiter);
            ctx.counts().queries_without_command.more();
            return self.endpoint.change(ctx, peer, pending);
        }
        let pending = self.endpoint.separate(ctx, peer, pending);
        if let (Some(query), Some(pending)) = (self.queries.get_mut(of), pending) {
            query.pending = pending;
        }
        self.set_query_alarm(ctx, of, until);
    }

    /// Hands a command on to the request of its device that waits: the number of copies, and if it is
    /// none the application is told.
    pub(crate) fn hand_to_query(
        &mut self,
        ctx: &mut Ctx<'_>,
        broker: &mut Broker,
        message: &Arc<Message>,
    ) -> usize {
        if let Some(copies) = self.pass_to_query(ctx, broker, message) {
            return copies;
        }
        if let Some(command) = commanded(ctx, message) {
            let (status, why) = match (requests(ctx).unfit)(&command) {
                Some(why) => (MALFORMED, why),
                None => (NOBODY_WAITS, "the device does not wait"),
            };
            tell_undelivered(ctx, broker, &command, status, why);
        }
        0
    }

    /// Hands a command on to the request of its device that waits: the number of copies that went there;
    /// none if no request waits.
    pub(crate) fn pass_to_query(
        &mut self,
        ctx: &mut Ctx<'_>,
        broker: &mut Broker,
        message: &Arc<Message>,
    ) -> Option<usize> {
        let command = commanded(ctx, message)?;
        if (requests(ctx).unfit)(&command).is_some() {
            return None;
        }
        let to = locked(&ctx.shared.waiting).hand(command.tenant, command.device)?;
        if to.shard == ctx.index() {
            return Some(usize::from(self.put_into_answer(ctx, broker, to, message)));
        }
        let message = Arc::clone(message);
        ctx.mail(to.shard, Mail::Command { to, message });
        Some(1)
    }

    /// Puts a command into the answer to a request; false, and the application is told, if that waits no
    /// more or cannot be answered so.
    pub(crate) fn put_into_answer(
        &mut self,
        ctx: &mut Ctx<'_>,
        broker: &mut Broker,
        to: Waiter,
        message: &Message,
    ) -> bool {
        let Some(command) = commanded(ctx, message) else {
            return false;
        };
        let Some(query) = self.queries.remove(to.query) else {
            tell_undelivered(
                ctx,
                broker,
                &command,
                NOBODY_WAITS,
                "the device waits no more",
            );
            return false;
        };
        ctx.cancel_alarm(query.alarm);
        let mut handed = HandedCommand::default();
        let manner = query.manner.towards(&query.device, command.device);
        if let Err(why) = (requests(ctx).hand)(manner, &command, &mut handed) {
            tell_undelivered(ctx, broker, &command, MALFORMED, why);
            self.endpoint.change(ctx, query.peer, query.pending);
            return false;
        }
        let content = Content {
            status: Status::new(2, 4),
            fields: handed.fields().collect(),
            body: &message.payload,
        };
        if !self.respond_with(ctx, query.peer, query.pending, &content) {
            tell_undelivered(ctx, broker, &command, NOBODY_WAITS, UNANSWERABLE);
            return false;
        }
        ctx.counts().accepted.more();
        ctx.counts().commands_handed.more();
        true
    }
}

fn waiter(ctx: &Ctx<'_>, query: QueryRef) -> Waiter {
    let shard = ctx.index();
    Waiter { shard, query }
}

fn requests(ctx: &Ctx<'_>) -> &'static Requests {
    ctx.shared.config.dialect.requests(Protocol::Coap)
}

fn commanded<'a>(ctx: &Ctx<'_>, message: &'a Message) -> Option<Commanded<'a>> {
    (ctx.shared.config.dialect.server.command)(&message.topic)
}

/// Tells the application that a command was not delivered, where it can be told.
fn tell_undelivered(
    ctx: &mut Ctx<'_>,
    broker: &mut Broker,
    command: &Commanded<'_>,
    status: u16,
    why: &str,
) {
    ctx.counts().commands_undelivered.more();
    let mut notice = CommandScratch::default();
    let server = &ctx.shared.config.dialect.spec().server;
    if (server.write_notice)(command, status, why, &mut notice) {
        let publish = Publish {
            qos: Qos::AtLeastOnce,
            ..Publish::new(&notice.topic, &notice.payload)
        };
        broker.publish(ctx, Parcel::new(&publish, None));
    }
}
