//! The requests of one end in one thread that wait for a command, found by their names and by their
//! senders.

use std::collections::BTreeSet;

use muster_model::Micros;
use muster_platform::{Manner, Protocol, Refusal, Upload};
use slotmap::{KeyData, SlotMap};

use crate::lock::locked;
use crate::shared::QUERIES_MAX;
use crate::thread::Ctx;
use crate::uplink::{Alarm, AlarmId, Sender, Timer};
use crate::waiter::{QueryRef, Waiter};

/// A request that wants a command in its answer.
#[derive(Debug)]
pub(crate) struct Query<R> {
    pub(crate) request: R,
    sender: Sender,
    tenant: Box<str>,
    device: Box<str>,
    manner: Manner,
    waits: Micros,
    until: Micros,
    /// The answer if no command comes in time; none if that is a yes.
    over: Option<Refusal>,
    alarm: Option<AlarmId>,
    /// The number of its last notification, if it observes; else none, and a command ends it.
    notified: Option<u32>,
}

impl<R> Query<R> {
    /// True once its uplink was accepted.
    fn is_waiting(&self) -> bool {
        self.until < Micros::MAX
    }
}

/// A request that a command goes to.
#[derive(Debug)]
pub(crate) struct Taken<R> {
    pub(crate) request: R,
    /// The manner in which the command is addressed.
    pub(crate) manner: Manner,
    /// The number of the notification that carries it; none if it goes into the one answer.
    pub(crate) notification: Option<u32>,
}

/// Step that is due of a request that waits.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Due<R> {
    /// No command came in its time, and it waits no more; with the answer, unless that is a yes.
    Over(R, Option<Refusal>),
    /// Postpone it; it waits on.
    Postponed(R),
}

#[derive(Debug)]
pub(crate) struct Queries<R> {
    protocol: Protocol,
    all: SlotMap<QueryRef, Query<R>>,
    of_senders: BTreeSet<(Sender, QueryRef)>,
}

impl<R: Copy> Queries<R> {
    pub(crate) fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            all: SlotMap::with_key(),
            of_senders: BTreeSet::new(),
        }
    }

    /// Notes a request that wants a command; none if too many do.
    pub(crate) fn note(
        &mut self,
        request: R,
        sender: Sender,
        upload: &Upload<'_>,
    ) -> Option<QueryRef> {
        if self.all.len() >= QUERIES_MAX {
            return None;
        }
        let query = Query {
            request,
            sender,
            tenant: upload.tenant.into(),
            device: upload.device.into(),
            manner: upload.manner,
            waits: Micros::from_secs(u64::from(upload.ttd_s?)),
            until: Micros::MAX,
            over: upload.over,
            alarm: None,
            notified: None,
        };
        let added = self.all.insert(query);
        self.of_senders.insert((sender, added));
        Some(added)
    }

    /// Notes a request that wants all commands from now on, in place of an earlier one of its device; false if
    /// too many do.
    pub(crate) fn observe(
        &mut self,
        ctx: &Ctx<'_>,
        request: R,
        sender: Sender,
        upload: &Upload<'_>,
    ) -> bool {
        let earlier = locked(&ctx.shared.waiting).find(upload.tenant, upload.device);
        let is_ours = |it: &Waiter| it.shard == ctx.index() && it.protocol == self.protocol;
        if let Some(earlier) = earlier.filter(is_ours).filter(|it| it.observes) {
            self.end(ctx, earlier.query);
        }
        let Some(added) = self.note(request, sender, upload) else {
            return false;
        };
        if let Some(query) = self.all.get_mut(added) {
            query.notified = Some(0);
        }
        let waiter = self.waiter(ctx, added);
        let is_noted = locked(&ctx.shared.waiting).wait(upload.tenant, upload.device, waiter);
        if !is_noted {
            self.forget(added);
        }
        is_noted
    }

    /// A sender did not acknowledge a notification: it observes no more.
    pub(crate) fn end_observations_of(&mut self, ctx: &Ctx<'_>, sender: Sender) {
        let least = KeyData::from_ffi(0).into();
        let of_sender = self.of_senders.range((sender, least)..);
        let of_sender = of_sender.take_while(|(of, _)| *of == sender);
        let observes = |query: &QueryRef| {
            let query = self.all.get(*query);
            query.is_some_and(|query| query.notified.is_some())
        };
        let ended: Vec<_> = of_sender
            .map(|(_, query)| *query)
            .filter(observes)
            .collect();
        for query in ended {
            self.end(ctx, query);
        }
    }

    /// Has a request wait from now on; it is postponed after that time, if there is one.
    pub(crate) fn wait(
        &mut self,
        ctx: &mut Ctx<'_>,
        of: QueryRef,
        postponed_after: Option<Micros>,
    ) {
        let now = ctx.now();
        let waiter = self.waiter(ctx, of);
        let Some(query) = self.all.get_mut(of) else {
            return ctx.counts().unanswerable.more();
        };
        query.until = now + query.waits;
        let until = query.until;
        // Where too many wait, this one does and gets nothing.
        locked(&ctx.shared.waiting).wait(&query.tenant, &query.device, waiter);
        ctx.counts().queries.more();
        let at = postponed_after.map_or(until, |after| until.min(now + after));
        self.set_alarm(ctx, of, at);
    }

    /// Takes the step that is due of a request; none if it is not there any more.
    pub(crate) fn due(&mut self, ctx: &mut Ctx<'_>, of: QueryRef) -> Option<Due<R>> {
        let query = self.all.get_mut(of)?;
        query.alarm = None;
        if ctx.now() < query.until {
            return Some(Due::Postponed(query.request));
        }
        let query = self.end(ctx, of)?;
        ctx.counts().queries_without_command.more();
        Some(Due::Over(query.request, query.over))
    }

    /// Has a request that was postponed wait on, under the name that it has then.
    pub(crate) fn wait_on(&mut self, ctx: &mut Ctx<'_>, of: QueryRef, postponed: Option<R>) {
        let Some(query) = self.all.get_mut(of) else {
            return;
        };
        query.request = postponed.unwrap_or(query.request);
        let until = query.until;
        self.set_alarm(ctx, of, until);
    }

    /// The request that a command to a device goes to, which then waits no more unless it observes.
    pub(crate) fn take(
        &mut self,
        ctx: &mut Ctx<'_>,
        of: QueryRef,
        device: &str,
    ) -> Option<Taken<R>> {
        let query = self.all.get_mut(of)?;
        // The option has three bytes.
        query.notified = query.notified.map(|number| (number + 1) & 0x00ff_ffff);
        let taken = Taken {
            request: query.request,
            manner: query.manner.towards(&query.device, device),
            notification: query.notified,
        };
        if taken.notification.is_none() {
            let query = self.forget(of)?;
            ctx.cancel_alarm(query.alarm);
        }
        Some(taken)
    }

    /// A request is answered without having waited.
    pub(crate) fn forget(&mut self, of: QueryRef) -> Option<Query<R>> {
        let gone = self.all.remove(of)?;
        self.of_senders.remove(&(gone.sender, of));
        Some(gone)
    }

    /// A sender is gone, and what it asked waits no more: commands find nobody.
    pub(crate) fn end_of(&mut self, ctx: &mut Ctx<'_>, sender: Sender) {
        while let Some(query) = self.any_of(sender)
            && let Some(ended) = self.end(ctx, query)
        {
            ctx.cancel_alarm(ended.alarm);
            if ended.is_waiting() {
                ctx.counts().queries_abandoned.more();
            }
        }
    }

    /// The requests that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = R> {
        let waiting = self.all.values().filter(|query| query.is_waiting());
        waiting.map(|query| query.request)
    }

    fn end(&mut self, ctx: &Ctx<'_>, of: QueryRef) -> Option<Query<R>> {
        let waiter = self.waiter(ctx, of);
        let query = self.forget(of)?;
        locked(&ctx.shared.waiting).end(&query.tenant, &query.device, waiter);
        Some(query)
    }

    fn any_of(&self, sender: Sender) -> Option<QueryRef> {
        let least = KeyData::from_ffi(0).into();
        let (of, query) = self.of_senders.range((sender, least)..).next()?;
        (*of == sender).then_some(*query)
    }

    fn set_alarm(&mut self, ctx: &mut Ctx<'_>, of: QueryRef, at: Micros) {
        let alarm = ctx.set_alarm(at, Alarm::End(self.protocol, Timer::Query(of)));
        if let Some(query) = self.all.get_mut(of) {
            query.alarm = Some(alarm);
        }
    }

    fn waiter(&self, ctx: &Ctx<'_>, query: QueryRef) -> Waiter {
        let observes = self.all.get(query);
        Waiter {
            shard: ctx.index(),
            protocol: self.protocol,
            query,
            observes: observes.is_some_and(|query| query.notified.is_some()),
        }
    }
}

#[cfg(test)]
impl<R> Queries<R> {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}
