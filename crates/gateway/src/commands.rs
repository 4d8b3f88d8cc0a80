//! Treatment of commands on their way to devices.

use std::sync::Arc;

use muster_platform::{CommandScratch, Commanded, Handing, Handover, Rewrite};
use muster_protocol::mqtt::{Publish, reason};

use crate::account::command_hash;
use crate::broker::Broker;
use crate::coap::Coap;
use crate::fault::Fault;
use crate::lock::locked;
use crate::message::{Message, Parcel, published};
use crate::mqtt::{Received, reject};
use crate::routes::SessionRef;
use crate::thread::Ctx;
use crate::uplink::Alarm;

/// Takes a command: routed as any message, but treated badly by counts of its own. Whoever issues
/// commands hears that nobody was there, whatever devices hear of their messages.
pub(crate) fn take(
    ctx: &mut Ctx<'_>,
    broker: &mut Broker,
    coap: &mut Coap,
    received: &Received<'_>,
) {
    let (incoming, from) = (received.incoming, received.from);
    if !(ctx.shared.config.dialect.server.takes_command)(incoming.payload) {
        ctx.counts().unreadable.more();
        let code = u16::from(reason::PAYLOAD_FORMAT_INVALID);
        return reject(ctx, broker, received.asker(), code);
    }
    let named = command_hash(&incoming.topic, incoming.payload);
    let fault = if incoming.dup || ctx.shared.behaves {
        Fault::Behave
    } else {
        locked(&ctx.shared.fault_plan).command(named)
    };
    if !incoming.dup {
        ctx.counts().commands.more();
    }
    let mut user = Vec::new();
    let message = Arc::new(Message::new(&published(incoming, &mut user), ctx.now()));
    // Nothing else is asked for of commands.
    let mut copies = 1;
    if fault == Fault::DeliverLate {
        let by = ctx.shared.config.behaviour.delay_commands.by;
        ctx.set_alarm(ctx.now() + by, Alarm::Command { from, message });
    } else if fault != Fault::LoseAfterAccept {
        copies = route(ctx, broker, coap, &message, from);
        if fault == Fault::Duplicate {
            route_again(ctx, broker, coap, &message, from);
        }
    }
    let code = match copies {
        0 => reason::NO_MATCHING_SUBSCRIBERS,
        _ => reason::SUCCESS,
    };
    broker.links().ack(ctx, received.asker(), code);
}

/// Hands a command on, in the form that its device asked for.
pub(crate) fn route(
    ctx: &mut Ctx<'_>,
    broker: &mut Broker,
    coap: &mut Coap,
    message: &Arc<Message>,
    from: SessionRef,
) -> usize {
    let copies = match ctx.shared.config.dialect.server.handover {
        Handover::AsItCame => broker.publish_kept(ctx, message, Some(from)).copies,
        Handover::Rewritten(rewrite) => hand(ctx, broker, message, from, rewrite),
        Handover::InAnswer => coap.hand_to_query(ctx, broker, message),
    };
    ctx.counts().commands_routed.add(copies as u64);
    copies
}

/// Hands a second copy of a command on. Where that finds no device waiting nobody is told, for the
/// first was handed on, or its notice was sent.
fn route_again(
    ctx: &mut Ctx<'_>,
    broker: &mut Broker,
    coap: &mut Coap,
    message: &Arc<Message>,
    from: SessionRef,
) {
    if matches!(
        ctx.shared.config.dialect.server.handover,
        Handover::InAnswer
    ) {
        let copies = coap.pass_to_query(ctx, broker, message).unwrap_or(0);
        ctx.counts().commands_routed.add(copies as u64);
    } else {
        route(ctx, broker, coap, message, from);
    }
}

fn hand(
    ctx: &mut Ctx<'_>,
    broker: &mut Broker,
    message: &Message,
    from: SessionRef,
    rewrite: Rewrite,
) -> usize {
    let command = (ctx.shared.config.dialect.server.command)(&message.topic);
    let Some(Commanded { device, .. }) = command else {
        return 0;
    };
    let gateway = locked(&ctx.shared.gateways).get(device).cloned();
    let to = Handing {
        device,
        gateway: gateway.as_deref(),
        request: ctx.shared.next_request(),
    };
    let mut handed = CommandScratch::default();
    for form in 0.. {
        if !rewrite(form, &to, &message.payload, &mut handed) {
            break;
        }
        let publish = Publish {
            qos: message.qos,
            ..Publish::new(&handed.topic, &handed.payload)
        };
        let copies = broker
            .publish(ctx, Parcel::new(&publish, Some(from)))
            .copies;
        if copies > 0 {
            return copies;
        }
    }
    0
}
