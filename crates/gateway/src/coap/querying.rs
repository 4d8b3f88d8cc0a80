//! Requests that wait for a command, and commands that go to them.

use muster_model::Micros;
use muster_platform::{Commanded, HandedCommand, Protocol, Upload};

use super::queries::Query;
use super::request::{PeerRef, RequestRef};
use super::{Coap, Content};
use crate::commands::{MALFORMED, NOBODY_WAITS};
use crate::lock::locked;
use crate::message::Message;
use crate::shared::QUERIES_MAX;
use crate::thread::Ctx;
use crate::uplink::{Alarm, Timer};
use crate::waiter::{QueryRef, Waiter};

/// Longest wait of an answer for a command before the request is acknowledged; Hono's own default
/// (`timeoutToAck`).
const ACKNOWLEDGED_AFTER: Micros = Micros::from_millis(500);
/// Reason for the return of a command if its device waits and cannot be answered.
const UNANSWERABLE: &str = "the device's request cannot be answered";

impl Coap {
    /// Notes a request that wants a command; none if too many do.
    pub(super) fn note_query(
        &mut self,
        request: RequestRef,
        upload: &Upload<'_>,
    ) -> Option<QueryRef> {
        if self.queries.len() >= QUERIES_MAX {
            return None;
        }
        let query = Query {
            request,
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

    pub(super) fn wait_for_command(&mut self, ctx: &mut Ctx<'_>, of: QueryRef) {
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
        let alarm = ctx.set_alarm(at, Alarm::End(Protocol::Coap, Timer::Query(of)));
        if let Some(query) = self.queries.get_mut(of) {
            query.alarm = Some(alarm);
        }
    }

    /// The request has waited long enough: for its acknowledgement, or for a command.
    pub(super) fn query_due(&mut self, ctx: &mut Ctx<'_>, of: QueryRef) {
        let now = ctx.now();
        let Some(query) = self.queries.get_mut(of) else {
            return;
        };
        query.alarm = None;
        let (request, until) = (query.request, query.until);
        if now >= until {
            let waiter = waiter(ctx, of);
            let Some(query) = self.queries.remove(of) else {
                return;
            };
            locked(&ctx.shared.waiting).end(&query.tenant, &query.device, waiter);
            ctx.counts().queries_without_command.more();
            return self.endpoint.change(ctx, request, 1);
        }
        let pending = self.endpoint.separate(ctx, request);
        if let (Some(query), Some(pending)) = (self.queries.get_mut(of), pending) {
            query.request.pending = pending;
        }
        self.set_query_alarm(ctx, of, until);
    }

    /// Puts a command into the answer to a request.
    ///
    /// # Errors
    /// Status and reason if the request waits no more, or cannot be answered so.
    pub(super) fn answer_with(
        &mut self,
        ctx: &mut Ctx<'_>,
        to: QueryRef,
        command: &Commanded<'_>,
        message: &Message,
    ) -> Result<(), (u16, &'static str)> {
        let query = self.queries.remove(to);
        let query = query.ok_or((NOBODY_WAITS, "the device waits no more"))?;
        ctx.cancel_alarm(query.alarm);
        let mut handed = HandedCommand::default();
        let manner = query.manner.towards(&query.device, command.device);
        let requests = ctx.shared.config.dialect.requests(Protocol::Coap);
        if let Err(why) = (requests.hand)(manner, command, &mut handed) {
            self.endpoint.change(ctx, query.request, 1);
            return Err((MALFORMED, why));
        }
        let content = Content {
            status: requests.commanded,
            fields: handed.fields().collect(),
            body: &message.payload,
        };
        if !self.respond_with(ctx, query.request, &content) {
            return Err((NOBODY_WAITS, UNANSWERABLE));
        }
        ctx.counts().accepted.more();
        ctx.counts().commands_handed.more();
        Ok(())
    }
}

fn waiter(ctx: &Ctx<'_>, query: QueryRef) -> Waiter {
    let (shard, protocol) = (ctx.index(), Protocol::Coap);
    Waiter {
        shard,
        protocol,
        query,
    }
}
