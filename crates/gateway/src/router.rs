//! Path of an uplink between the protocol end that received it and its subscribers: it is treated
//! as the fault plan says.

use std::sync::Arc;

use muster_model::{Micros, mix};
use muster_protocol::mqtt::Publish;
use rustc_hash::FxHashMap;

use crate::amqp::{Offer, Offered, Passage};
use crate::broker::{Broker, Routed};
use crate::fault::{Delivery, Fault, Response};
use crate::lock::locked;
use crate::message::{Message, Parcel};
use crate::server::NoRoom;
use crate::thread::{Ctx, Pause};
use crate::uplink::{Alarm, Answer, Origin, Sender, Uplink};

/// Interval of the search for uplinks that wait in vain to be overtaken.
const OVERTAKING_LOOK: Micros = Micros::from_millis(250);
/// Time without an uplink after which the traffic counts as ended.
const OVERTAKING_QUIET: Micros = Micros::from_secs(1);

/// Takes uplinks of all protocol ends.
#[derive(Debug, Default)]
pub(crate) struct Router {
    broker: Broker,
    /// Uplinks that the next one of their sender and topic is to overtake.
    held: FxHashMap<Sender, Vec<Uplink>>,
    last_uplink: Micros,
    /// Uplinks that are offered to receivers over AMQP, and whose senders wait for the answer.
    offers_awaited: u64,
}

impl Router {
    pub(crate) fn broker(&mut self) -> &mut Broker {
        &mut self.broker
    }

    /// Takes an uplink. The answer goes to whoever asked; if there is none yet, it comes with
    /// [`Alarm::Settle`].
    pub(crate) fn uplink(
        &mut self,
        ctx: &mut Ctx<'_>,
        publish: &Publish<'_>,
        origin: Origin,
    ) -> Option<Answer> {
        let via = Some(origin.asker.protocol);
        let passage = passage(ctx, &origin, publish.topic);
        if !ctx.shared.behaves || passage == Passage::Direct {
            let message = Arc::new(Message::new(publish, ctx.now()).by(via));
            return match ctx.shared.behaves {
                true => self.offer(ctx, Uplink::good(origin, message), Response::Accept),
                false => self.misbehave(ctx, message, origin),
            };
        }
        if passage == Passage::Full {
            return Some(unavailable(ctx));
        }
        let (response, mut copies) = (Response::Accept, 1);
        if origin.is_routed {
            let parcel = Parcel {
                via,
                ..Parcel::new(publish, origin.session)
            };
            let routed = self.broker.publish(ctx, parcel);
            ctx.counts().processed.more();
            if routed.is_congested {
                ctx.hold_back(origin.sender.socket);
            }
            copies = routed.copies;
        }
        Some(Answer { response, copies })
    }

    /// The long way: something is wrong with this gateway.
    fn misbehave(
        &mut self,
        ctx: &mut Ctx<'_>,
        message: Arc<Message>,
        origin: Origin,
    ) -> Option<Answer> {
        // The turn may have begun before the message was sent.
        let (now, hash) = (ctx.io.fresh_now(), message.hash());
        self.last_uplink = now;
        let mut plan = locked(&ctx.shared.fault_plan);
        let is_first = plan.begin(now);
        let treatment = plan.treat(now, hash, origin.is_again);
        drop(plan);
        if is_first {
            ctx.announce_first_uplink();
        }
        let away = |response| {
            let copies = 0;
            Some(Answer { response, copies })
        };
        let (fault, served) = match treatment {
            Ok(taken) => taken,
            Err(NoRoom::Drop) => {
                ctx.counts().capacity_dropped.more();
                return away(Response::Silence);
            }
            Err(NoRoom::Reject) => {
                ctx.counts().capacity_rejected.more();
                return away(Response::Reject(ctx.shared.config.dialect.server.refusal));
            }
        };
        if let Some(until) = served.blocked_until {
            ctx.counts().capacity_blocked.more();
            ctx.pause(origin.sender.socket, Pause::Capacity);
            ctx.set_alarm(until, Alarm::Unblock(origin.sender.socket));
        }
        let uplink = Uplink {
            origin,
            message,
            hash,
            fault,
        };
        if served.done > now {
            ctx.set_alarm(served.done, Alarm::Settle(Box::new(uplink)));
            return None;
        }
        self.settle(ctx, uplink)
    }

    /// Makes the uplink's fault come true; gives its answer. If there is none yet, it comes with
    /// [`Mail::Offered`](crate::mail::Mail::Offered).
    pub(crate) fn settle(&mut self, ctx: &mut Ctx<'_>, uplink: Uplink) -> Option<Answer> {
        let config = &ctx.shared.config;
        let (fault, origin) = (uplink.fault, &uplink.origin);
        let behaviour = &config.behaviour;
        let refusal = config.dialect.server.refusal;
        let code = behaviour.reject.map_or(refusal, |reject| reject.code);
        let response = fault.response(behaviour, code);
        if fault.is_immediate(behaviour) {
            match passage(ctx, origin, &uplink.message.topic) {
                Passage::Direct => return self.offer(ctx, damaged(ctx, uplink), response),
                Passage::Full => return Some(unavailable(ctx)),
                Passage::Open => {}
            }
        }
        // Whether it is overtaken shows later. What is wrong with an answer cannot befall an uplink that
        // has none.
        let is_later = fault == Fault::Reorder && origin.is_routed;
        let is_booked = !is_later && (!fault.is_about_answer() || origin.is_answered);
        if fault != Fault::Behave && is_booked {
            book(ctx, &uplink);
        }
        if !origin.is_routed {
            let copies = 1;
            return Some(Answer { response, copies });
        }
        // What is lost, dropped or refused goes no further.
        let delivery = fault.delivery(&config.behaviour);
        if delivery != Delivery::Never {
            ctx.counts().processed.more();
        }
        let mut copies = 1;
        match delivery {
            Delivery::Never => {}
            Delivery::Once => copies = self.deliver(ctx, &uplink),
            Delivery::Twice => {
                copies = self.deliver(ctx, &uplink);
                self.deliver(ctx, &uplink);
            }
            Delivery::Corrupted => copies = self.deliver(ctx, &damaged(ctx, uplink)),
            Delivery::Unstored => copies = self.deliver(ctx, &unstored(uplink)),
            Delivery::Overtaken => self.hold(ctx, uplink),
            Delivery::Late(by) => {
                let late = Alarm::Deliver {
                    from: uplink.origin.session,
                    message: uplink.message,
                };
                ctx.set_alarm(ctx.now() + by, late);
            }
        }
        Some(Answer { response, copies })
    }

    /// Offers an uplink to the receivers over AMQP; its answer waits for them. If there are none, the answer is
    /// given at once.
    fn offer(&mut self, ctx: &mut Ctx<'_>, uplink: Uplink, response: Response) -> Option<Answer> {
        self.offers_awaited += u64::from(uplink.origin.is_answered);
        let uplink = Box::new(uplink);
        let offer = Offer {
            shard: ctx.index(),
            offered: Offered { uplink, response },
        };
        let exchange = ctx.shared.outlets.exchange.as_ref();
        let refused = exchange.and_then(|exchange| exchange.offer(offer).err());
        refused.map(|offer| self.offered(ctx, offer.offered, false))
    }

    /// An uplink comes back from the receivers: one has taken it, or its sender is refused and its fault did not
    /// happen. Subscribers get it in both ways or in neither.
    pub(crate) fn offered(
        &mut self,
        ctx: &mut Ctx<'_>,
        offered: Offered,
        is_taken: bool,
    ) -> Answer {
        let Offered { uplink, response } = offered;
        let (fault, origin) = (uplink.fault, &uplink.origin);
        self.offers_awaited -= u64::from(origin.is_answered);
        if !is_taken {
            let answer = unavailable(ctx);
            let is_refused_anyway = matches!(response, Response::Reject(_));
            let response = if is_refused_anyway {
                response
            } else {
                answer.response
            };
            return Answer { response, ..answer };
        }
        if fault != Fault::Behave && (!fault.is_about_answer() || origin.is_answered) {
            book(ctx, &uplink);
        }
        ctx.counts().processed.more();
        let copies = 1 + self.deliver_taken(ctx, &uplink);
        if fault == Fault::Duplicate {
            self.deliver(ctx, &uplink);
        }
        Answer { response, copies }
    }

    /// The gateway ends: what receivers over AMQP were offered has no answer any more.
    pub(crate) fn give_up_offers(&mut self, ctx: &Ctx<'_>) {
        let awaited = std::mem::take(&mut self.offers_awaited);
        ctx.counts().unanswered.add(awaited);
    }

    /// Delivers, and then what this uplink was to overtake.
    fn deliver(&mut self, ctx: &mut Ctx<'_>, uplink: &Uplink) -> usize {
        let (message, origin) = (&uplink.message, &uplink.origin);
        let routed = self.broker.publish_kept(ctx, message, origin.session);
        self.delivered(ctx, uplink, routed)
    }

    /// The same where a receiver over AMQP has it already.
    fn deliver_taken(&mut self, ctx: &mut Ctx<'_>, uplink: &Uplink) -> usize {
        let (message, origin) = (&uplink.message, &uplink.origin);
        let routed = self.broker.publish_taken(ctx, message, origin.session);
        self.delivered(ctx, uplink, routed)
    }

    fn delivered(&mut self, ctx: &mut Ctx<'_>, uplink: &Uplink, routed: Routed) -> usize {
        let (message, origin) = (&uplink.message, &uplink.origin);
        if routed.is_congested {
            ctx.hold_back(origin.sender.socket);
        }
        if let Some(held) = self.held.get_mut(&origin.sender) {
            let overtaken = held.extract_if(.., |held| held.message.topic == message.topic);
            let overtaken = overtaken.collect::<Vec<Uplink>>();
            overtaken.iter().for_each(|held| book(ctx, held));
            self.release(ctx, overtaken);
        }
        routed.copies
    }

    fn hold(&mut self, ctx: &mut Ctx<'_>, uplink: Uplink) {
        if self.held.is_empty() {
            ctx.set_alarm(ctx.now() + OVERTAKING_LOOK, Alarm::Overtaken);
        }
        let held = self.held.entry(uplink.origin.sender).or_default();
        held.push(uplink);
    }

    /// Delivers uplinks that nothing overtook, once the traffic has ended; they were not
    /// reordered and are not booked.
    pub(crate) fn release_all(&mut self, ctx: &mut Ctx<'_>) {
        if ctx.now() < self.last_uplink + OVERTAKING_QUIET {
            ctx.set_alarm(ctx.now() + OVERTAKING_LOOK, Alarm::Overtaken);
            return;
        }
        for held in std::mem::take(&mut self.held).into_values() {
            self.release(ctx, held);
        }
    }

    /// The same with those whose sender is gone.
    pub(crate) fn release_gone(&mut self, ctx: &mut Ctx<'_>) {
        for sender in ctx.take_gone() {
            let held = self.held.get_mut(&sender).map(std::mem::take);
            self.release(ctx, held.unwrap_or_default());
        }
    }

    fn release(&mut self, ctx: &mut Ctx<'_>, held: Vec<Uplink>) {
        for uplink in held {
            self.broker
                .publish_kept(ctx, &uplink.message, uplink.origin.session);
        }
    }
}

/// Writes into the account what befell an uplink.
fn book(ctx: &Ctx<'_>, uplink: &Uplink) {
    locked(&ctx.shared.fault_plan).book(uplink.fault, uplink.hash);
}

/// The way that is open to an uplink over AMQP.
fn passage(ctx: &Ctx<'_>, origin: &Origin, topic: &str) -> Passage {
    match &ctx.shared.outlets.exchange {
        Some(exchange) if origin.is_routed => exchange.passage(topic),
        Some(_) | None => Passage::Open,
    }
}

/// The answer to an uplink that no receiver takes.
fn unavailable(ctx: &Ctx<'_>) -> Answer {
    ctx.counts().unavailable.more();
    Answer {
        response: Response::Unavailable,
        copies: 0,
    }
}

/// The uplink as it goes on: corrupted if that is its fault.
fn damaged(ctx: &Ctx<'_>, uplink: Uplink) -> Uplink {
    if uplink.fault == Fault::Corrupt {
        return corrupted(ctx, uplink);
    }
    uplink
}

/// The uplink as one that the store never gets.
fn unstored(uplink: Uplink) -> Uplink {
    let mut message = (*uplink.message).clone();
    message.is_unstored = true;
    Uplink {
        message: Arc::new(message),
        ..uplink
    }
}

/// The uplink with one bit flipped; an empty payload has none to flip.
fn corrupted(ctx: &Ctx<'_>, uplink: Uplink) -> Uplink {
    let bits = uplink.message.payload.len() as u64 * 8;
    if bits == 0 {
        return uplink;
    }
    let mut message = (*uplink.message).clone();
    let bit = mix(ctx.shared.config.seed, uplink.hash) % bits;
    message.payload[(bit / 8) as usize] ^= 1 << (bit % 8);
    Uplink {
        message: Arc::new(message),
        ..uplink
    }
}
