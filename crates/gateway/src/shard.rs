//! One thread of the gateway: passes events to the end or the part that they concern.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use muster_model::Micros;
use muster_model::behaviour::{CloseLinks, Stall};
use muster_net::{Closed, Handler, Io, Key, ListenerId};

use crate::commands;
use crate::end::{Datagram, End, Ends, Work};
use crate::listen_addresses::ListenAt;
use crate::mail::Mail;
use crate::router::Router;
use crate::shared::Shared;
use crate::start_error::StartError;
use crate::thread::{Ctx, Pause, Thread};
use crate::uplink::Alarm;

/// Keeps the choice of links to close apart from other draws of the seed.
const CLOSE_STREAM: u64 = 0xc105_e000;

#[derive(Debug)]
pub(crate) struct Shard {
    shared: Arc<Shared>,
    thread: Thread,
    router: Router,
    ends: Ends,
    inbox: VecDeque<Mail>,
}

impl Shard {
    pub(crate) fn new(index: u16, shared: Arc<Shared>, ends: Ends) -> Self {
        Self {
            thread: Thread::new(index, shared.threads()),
            router: Router::default(),
            ends,
            inbox: VecDeque::new(),
            shared,
        }
    }

    /// Listens at the addresses of all ends.
    ///
    /// # Errors
    /// [`StartError`] if one is not to be had.
    pub(crate) fn listen(&mut self, io: &mut Io, at: &mut ListenAt<'_>) -> Result<(), StartError> {
        let mut result = Ok(());
        self.work(io).each(|end, work| {
            if result.is_ok() {
                result = end.listen(&mut work.ctx, at);
            }
        });
        result
    }

    fn work<'a>(&'a mut self, io: &'a mut Io) -> Work<'a> {
        Work {
            ctx: self.thread.context(&self.shared, io),
            router: &mut self.router,
            ends: &mut self.ends,
        }
    }

    fn at<T>(
        &mut self,
        io: &mut Io,
        key: Key,
        act: impl FnOnce(&mut dyn End, &mut Work<'_>) -> T,
    ) -> Option<T> {
        let protocol = self.thread.protocol_of(key)?;
        self.work(io).with(protocol, |end, work| act(end, work))
    }
}

fn ring(work: &mut Work<'_>, alarm: Alarm) {
    let (ctx, router) = (&mut work.ctx, &mut *work.router);
    match alarm {
        Alarm::End(protocol, timer) => {
            work.with(protocol, |end, work| end.due(work, timer));
        }
        Alarm::Settle(uplink) => {
            let asker = uplink.origin.asker.clone();
            if let Some(answer) = router.settle(ctx, *uplink) {
                work.respond(asker, answer);
            }
        }
        Alarm::Answer { asker, answer } => work.respond(asker, answer),
        Alarm::Deliver { from, message } => {
            router.broker().publish_kept(ctx, &message, from);
        }
        Alarm::Command { from, message } => {
            commands::route(work, &message, from);
        }
        Alarm::Unblock(key) => ctx.resume(key, Pause::Capacity),
        Alarm::Will(session) => router.broker().publish_pending_will(ctx, session),
        Alarm::Expire(session) => router.broker().remove_session(ctx, session),
        Alarm::Overtaken => router.release_all(ctx),
        Alarm::Stall(stall) => stand_still(ctx, stall),
        Alarm::CloseLinks(CloseLinks { share, .. }) => {
            let seed = ctx.shared.config.seed ^ CLOSE_STREAM;
            let share = share.clamp(0.0, 1.0);
            work.each(|end, work| end.close_share(work, seed, share));
        }
    }
}

/// Neither reads nor sends, as all other threads do. The end of the gateway wakes it.
fn stand_still(ctx: &mut Ctx<'_>, stall: Stall) {
    if ctx.index() == 0 {
        ctx.counts().stalled.more();
    }
    let until = ctx.now() + stall.lasts;
    let left = |ctx: &Ctx<'_>| until - ctx.io.clock().now();
    while left(ctx) > Micros::ZERO {
        if ctx.shared.stopping.load(Ordering::Acquire) {
            return;
        }
        std::thread::park_timeout(Duration::from_micros(left(ctx).get()));
    }
    ctx.io.fresh_now();
}

fn read_mail(work: &mut Work<'_>, mail: Mail) {
    let (ctx, broker) = (&mut work.ctx, work.router.broker());
    match mail {
        Mail::Deliver { to, grant, message } => broker.arrived(ctx, to, grant, message),
        Mail::Claim(claim) => broker.claimed(ctx, claim),
        Mail::Granted { to, session } => broker.granted(ctx, to, session),
        Mail::FirstUplink(at) => ctx.plan_incidents(at),
        Mail::Room => ctx.resume_waiting(),
        Mail::Offered { offered, is_taken } => {
            let asker = offered.uplink.origin.asker.clone();
            let answer = work.router.offered(ctx, offered, is_taken);
            work.respond(asker, answer);
        }
        Mail::Sending(sending) => sending.take(work),
        Mail::Command { to, message } => {
            commands::hand_over(work, to, &message);
        }
        Mail::Call {
            message,
            is_again,
            is_last,
            routed,
        } => {
            let copies = commands::take(work, &message, None, is_again).unwrap_or(0);
            if copies == 0 && is_last {
                work.ctx.counts().commands_undelivered.more();
            }
            // Whoever asked may have gone.
            let _ = routed.send(copies);
        }
    }
}

impl Handler for Shard {
    fn opened(&mut self, io: &mut Io, key: Key) {
        // The gateway connects to nobody.
        io.reset(key);
    }

    fn accepted(&mut self, io: &mut Io, key: Key, listener: ListenerId) {
        self.thread.accept(key, listener);
        self.at(io, key, |end, work| {
            end.accepted(work, key, listener);
            work.ctx.admit_link(key);
        });
    }

    fn received(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        let unknown = bytes.len();
        let used = self.at(io, key, |end, work| end.received(work, key, bytes));
        used.unwrap_or(unknown)
    }

    fn datagram(&mut self, io: &mut Io, socket: Key, from: SocketAddr, bytes: &mut [u8]) {
        let datagram = Datagram {
            socket,
            from,
            bytes,
        };
        self.at(io, socket, |end, work| end.datagram(work, datagram));
    }

    fn flushed(&mut self, io: &mut Io, key: Key) {
        self.at(io, key, |end, work| end.flushed(work, key));
    }

    fn closed(&mut self, io: &mut Io, key: Key, _why: Closed) {
        self.at(io, key, |end, work| end.closed(work, key));
    }

    fn timer(&mut self, io: &mut Io, token: u64) {
        let mut work = self.work(io);
        if let Some(alarm) = work.ctx.take_alarm(token) {
            ring(&mut work, alarm);
        }
    }

    fn woken(&mut self, io: &mut Io) {
        let mut inbox = std::mem::take(&mut self.inbox);
        let mut work = self.work(io);
        let ctx = &work.ctx;
        ctx.shared.post(ctx.index()).collect(&mut inbox);
        inbox.drain(..).for_each(|mail| read_mail(&mut work, mail));
        if work.ctx.shared.stopping.load(Ordering::Acquire) {
            work.each(|end, work| end.turn(work, true));
            work.ctx.give_up_answers();
            work.router.give_up_offers(&work.ctx);
            work.ctx.io.stop();
        }
        self.inbox = inbox;
    }

    fn turn(&mut self, io: &mut Io) -> Option<Micros> {
        let mut work = self.work(io);
        work.each(|end, work| end.turn(work, false));
        let Work { ctx, router, .. } = &mut work;
        router.release_gone(ctx);
        ctx.send_mail();
        // Links that ended leave wills and uplinks, which others are to get.
        let is_settled = router.broker().links().is_settled();
        (!is_settled).then_some(Micros::ZERO)
    }
}
