//! One thread of the gateway: hands what happens to the part that it concerns.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use muster_model::Micros;
use muster_model::behaviour::{CloseLinks, Stall};
use muster_net::{Closed, Handler, Io, Key, ListenerId};
use muster_protocol::layer::Ended;
use muster_protocol::mqtt::{Input, ServerEvent};
use muster_transport::Servers;

use crate::broker::Broker;
use crate::coap::{Coap, Datagram};
use crate::commands;
use crate::mail::Mail;
use crate::mqtt::{self, Received, acknowledging};
use crate::router::Router;
use crate::shared::Shared;
use crate::thread::{Ctx, Pause, Thread};
use crate::uplink::{Alarm, Answer, Asker};

/// Keeps the choice of links to close apart from other draws of the seed.
const CLOSE_STREAM: u64 = 0xc105_e000;

/// One thread of the gateway.
#[derive(Debug)]
pub(crate) struct Shard {
    shared: Arc<Shared>,
    thread: Thread,
    router: Router,
    coap: Coap,
    inbox: VecDeque<Mail>,
}

/// The parts of a thread at work.
struct Parts<'a> {
    ctx: Ctx<'a>,
    router: &'a mut Router,
    coap: &'a mut Coap,
}

impl Shard {
    pub(crate) fn new(index: u16, shared: Arc<Shared>, layers: Servers) -> Self {
        let config = &shared.config;
        Self {
            thread: Thread::new(index, shared.threads()),
            router: Router::new(Broker::new(config, layers)),
            coap: Coap::new(config),
            inbox: VecDeque::new(),
            shared,
        }
    }

    pub(crate) fn coap(&mut self) -> &mut Coap {
        &mut self.coap
    }

    fn parts<'a>(&'a mut self, io: &'a mut Io) -> Parts<'a> {
        Parts {
            ctx: self.thread.context(&self.shared, io),
            router: &mut self.router,
            coap: &mut self.coap,
        }
    }
}

impl Parts<'_> {
    /// Takes bytes through a link's layer to its session: how many are used up.
    fn read(&mut self, key: Key, bytes: &mut [u8]) -> usize {
        let ctx = &mut self.ctx;
        let Some(link) = self.router.broker().links().get(key) else {
            return bytes.len();
        };
        let was_open = link.wire.is_open();
        let fed = link.wire.receive(bytes);
        if !was_open
            && link.wire.is_open()
            && let Some(tls) = link.wire.tls()
        {
            ctx.counts().tls_handshakes.more();
            if tls.is_resumed() == Some(true) {
                ctx.counts().tls_resumed.more();
            }
        }
        if let Some(Ended::Failed(error)) = &fed.end {
            ctx.shared.account.handshake_failed(&error.to_string());
        }
        let mut input = Input::new(&bytes[..fed.plain]);
        self.pump(key, &mut input);
        let taken = input.consumed();
        let (ctx, broker) = (&mut self.ctx, self.router.broker());
        let Some(link) = broker.links().get(key) else {
            return bytes.len();
        };
        let used = link.wire.keep(bytes, &fed, taken);
        // A link that is not read yet has more to say than its last word.
        if link.wire.has_ended && !ctx.is_paused(key) {
            broker.end(ctx, key, true);
        }
        used
    }

    /// Takes packets as long as the link may be read.
    fn pump(&mut self, key: Key, input: &mut Input<'_>) {
        while !self.ctx.is_paused(key)
            && let Some(link) = self.router.broker().links().get(key)
            && let Some(event) = link.server.poll(self.ctx.now(), input, &mut link.wire.out)
        {
            let (ctx, router) = (&mut self.ctx, &mut *self.router);
            let ServerEvent::Publish(incoming) = event else {
                router.broker().handle(ctx, key, &event);
                continue;
            };
            let Some(received) = Received::new(ctx, router.broker(), key, &incoming) else {
                continue;
            };
            let is_command = ctx.shared.config.dialect.server.command;
            if is_command(&incoming.topic).is_some() {
                commands::take(ctx, router.broker(), self.coap, &received);
            } else {
                received.take(ctx, router);
            }
        }
    }

    /// Answers an uplink, whoever asked.
    fn respond(&mut self, asker: Asker, answer: Answer) {
        let (ctx, broker) = (&mut self.ctx, self.router.broker());
        match asker {
            Asker::Publish(publish) => mqtt::respond(ctx, broker, publish, answer),
            Asker::Application(asked) => acknowledging::respond(ctx, broker, asked, answer),
            Asker::Request(request) => self.coap.respond(ctx, request, answer),
        }
    }

    fn ring(&mut self, alarm: Alarm) {
        let (ctx, router) = (&mut self.ctx, &mut *self.router);
        match alarm {
            Alarm::Link(key) => router.broker().check(ctx, key),
            Alarm::Peer(peer) => self.coap.wake_peer(ctx, router, peer),
            Alarm::Query(query) => self.coap.query_due(ctx, query),
            Alarm::Settle(uplink) => {
                let asker = uplink.origin.asker.clone();
                let answer = router.settle(ctx, *uplink);
                self.respond(asker, answer);
            }
            Alarm::Answer { asker, answer } => self.respond(asker, answer),
            Alarm::Batch(key) => acknowledging::write_batch(ctx, router.broker(), key),
            Alarm::Deliver { from, message } => {
                router.broker().publish_kept(ctx, &message, from);
            }
            Alarm::Command { from, message } => {
                commands::route(ctx, router.broker(), self.coap, &message, from);
            }
            Alarm::Unblock(key) => ctx.resume(key, Pause::Capacity),
            Alarm::Will(session) => router.broker().publish_pending_will(ctx, session),
            Alarm::Expire(session) => router.broker().remove_session(ctx, session),
            Alarm::Overtaken => router.release_all(ctx),
            Alarm::Stall(stall) => self.stall(stall),
            Alarm::CloseLinks(CloseLinks { share, .. }) => {
                let seed = ctx.shared.config.seed ^ CLOSE_STREAM;
                let share = share.clamp(0.0, 1.0);
                router.broker().close_share(ctx, seed, share);
                self.coap.close_share(ctx, seed, share);
            }
        }
    }

    /// Stands still as all other threads do: nothing is read or sent. The end of the gateway wakes it.
    fn stall(&mut self, stall: Stall) {
        let ctx = &mut self.ctx;
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

    fn read_mail(&mut self, mail: Mail) {
        let (ctx, broker) = (&mut self.ctx, self.router.broker());
        match mail {
            Mail::Deliver { to, grant, message } => broker.arrived(ctx, to, grant, message),
            Mail::Claim(claim) => broker.claimed(ctx, claim),
            Mail::Granted { to, session } => broker.granted(ctx, to, session),
            Mail::FirstUplink(at) => ctx.plan_incidents(at),
            Mail::Room => ctx.resume_waiting(),
            Mail::Command { to, message } => {
                self.coap.put_into_answer(ctx, broker, to, &message);
            }
        }
    }
}

impl Handler for Shard {
    fn opened(&mut self, io: &mut Io, key: Key) {
        // The gateway connects to nobody.
        io.reset(key);
    }

    fn accepted(&mut self, io: &mut Io, key: Key, _listener: ListenerId) {
        let Parts {
            mut ctx, router, ..
        } = self.parts(io);
        router.broker().links().accept(&mut ctx, key);
    }

    fn received(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        let mut parts = self.parts(io);
        let used = parts.read(key, bytes);
        let Parts {
            mut ctx, router, ..
        } = parts;
        router.broker().links().send(&mut ctx, key);
        router.broker().links().throttle(&mut ctx, key);
        used
    }

    fn datagram(&mut self, io: &mut Io, socket: Key, from: SocketAddr, bytes: &mut [u8]) {
        let Parts {
            mut ctx,
            router,
            coap,
        } = self.parts(io);
        let datagram = Datagram {
            socket,
            from,
            bytes,
        };
        coap.datagram(&mut ctx, router, datagram);
    }

    fn flushed(&mut self, io: &mut Io, key: Key) {
        let Parts {
            mut ctx, router, ..
        } = self.parts(io);
        let broker = router.broker();
        if let Some(link) = broker.links().get(key) {
            link.wire.is_held = false;
            broker.links().send(&mut ctx, key);
            broker.drain(&mut ctx, key);
            broker.links().throttle(&mut ctx, key);
        }
    }

    fn closed(&mut self, io: &mut Io, key: Key, _why: Closed) {
        let Parts {
            mut ctx, router, ..
        } = self.parts(io);
        router.broker().end(&mut ctx, key, true);
    }

    fn timer(&mut self, io: &mut Io, token: u64) {
        let mut parts = self.parts(io);
        if let Some(alarm) = parts.ctx.take_alarm(token) {
            parts.ring(alarm);
        }
    }

    fn woken(&mut self, io: &mut Io) {
        let mut inbox = std::mem::take(&mut self.inbox);
        let mut parts = self.parts(io);
        parts.ctx.collect_mail(&mut inbox);
        inbox.drain(..).for_each(|mail| parts.read_mail(mail));
        let Parts { mut ctx, coap, .. } = parts;
        if ctx.shared.stopping.load(Ordering::Acquire) {
            coap.count_datagrams(&mut ctx, true);
            ctx.io.stop();
        }
        self.inbox = inbox;
    }

    fn turn(&mut self, io: &mut Io) -> Option<Micros> {
        let Parts {
            mut ctx,
            router,
            coap,
        } = self.parts(io);
        for exhausted in router.broker().links().flush(&mut ctx) {
            router.broker().end(&mut ctx, exhausted, true);
        }
        router.release_gone(&mut ctx);
        coap.count_datagrams(&mut ctx, false);
        ctx.send_mail();
        // Links that ended leave wills and uplinks, which others are to get.
        let is_settled = router.broker().links().is_settled();
        (!is_settled).then_some(Micros::ZERO)
    }
}
