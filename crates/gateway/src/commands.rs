//! Commands on their way to devices, whatever those speak.

use std::sync::Arc;

use muster_platform::{CommandScratch, Commanded, Handing, Handover, Protocol, Rewrite};
use muster_protocol::mqtt::{Publish, Qos};

use crate::end::Work;
use crate::lock::locked;
use crate::mail::Mail;
use crate::message::{Message, Parcel};
use crate::routes::SessionRef;
use crate::thread::Ctx;

/// The status, as in HTTP, of a command whose device does not wait.
pub(crate) const NOBODY_WAITS: u16 = 503;
/// The status of a command that cannot be sent to any device, or not be put into an answer.
pub(crate) const MALFORMED: u16 = 400;

/// Passes a command on in the form that its device asked for: the number of copies.
pub(crate) fn route(work: &mut Work<'_>, message: &Arc<Message>, from: SessionRef) -> usize {
    let ctx = &mut work.ctx;
    let copies = match ctx.shared.config.dialect.server.handover {
        Handover::AsItCame => {
            let broker = work.router.broker();
            broker.publish_kept(ctx, message, Some(from)).copies
        }
        Handover::Rewritten(rewrite) => publish_rewritten(work, message, from, rewrite),
        Handover::InAnswer => answer_with(work, message),
    };
    work.ctx.counts().commands_routed.add(copies as u64);
    copies
}

/// Passes a second copy of a command on. If no device waits for it, the application gets no notice: the
/// first copy was passed on, or had its own notice.
pub(crate) fn route_again(work: &mut Work<'_>, message: &Arc<Message>, from: SessionRef) {
    if matches!(
        work.ctx.shared.config.dialect.server.handover,
        Handover::InAnswer
    ) {
        let copies = pass_to_waiter(work, message).unwrap_or(0);
        work.ctx.counts().commands_routed.add(copies as u64);
    } else {
        route(work, message, from);
    }
}

fn publish_rewritten(
    work: &mut Work<'_>,
    message: &Message,
    from: SessionRef,
    rewrite: Rewrite,
) -> usize {
    let ctx = &mut work.ctx;
    let Some(Commanded { device, .. }) = commanded(ctx, message) else {
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
        let parcel = Parcel::new(&publish, Some(from));
        let copies = work.router.broker().publish(ctx, parcel).copies;
        if copies > 0 {
            return copies;
        }
    }
    0
}

/// Passes a command on to the request of its device that waits: the number of copies. If it is none, the
/// application gets a notice.
pub(crate) fn answer_with(work: &mut Work<'_>, message: &Arc<Message>) -> usize {
    if let Some(copies) = pass_to_waiter(work, message) {
        return copies;
    }
    if let Some(command) = commanded(&work.ctx, message) {
        let (status, why) = match unfit(&work.ctx, &command) {
            Some(why) => (MALFORMED, why),
            None => (NOBODY_WAITS, "the device does not wait"),
        };
        note_undelivered(work, &command, status, why);
    }
    0
}

/// Passes a command on to the request of its device that waits: the number of copies that went there;
/// none if no request waits.
fn pass_to_waiter(work: &mut Work<'_>, message: &Arc<Message>) -> Option<usize> {
    let ctx = &mut work.ctx;
    let command = commanded(ctx, message)?;
    if unfit(ctx, &command).is_some() {
        return None;
    }
    let to = locked(&ctx.shared.waiting).hand(command.tenant, command.device)?;
    if to.shard == ctx.index() {
        let is_answered = work.with(to.protocol, |end, work| {
            end.deliver(work, to.query, message)
        });
        return Some(usize::from(is_answered == Some(true)));
    }
    let message = Arc::clone(message);
    ctx.mail(to.shard, Mail::Command { to, message });
    Some(1)
}

/// Reason for which a command fits no answer, whatever its device speaks.
fn unfit(ctx: &Ctx<'_>, command: &Commanded<'_>) -> Option<&'static str> {
    (ctx.shared.config.dialect.requests(Protocol::Coap).unfit)(command)
}

pub(crate) fn commanded<'a>(ctx: &Ctx<'_>, message: &'a Message) -> Option<Commanded<'a>> {
    (ctx.shared.config.dialect.server.command)(&message.topic)
}

/// Publishes a notice that a command was not delivered, if the dialect has such notices.
pub(crate) fn note_undelivered(
    work: &mut Work<'_>,
    command: &Commanded<'_>,
    status: u16,
    why: &str,
) {
    let ctx = &mut work.ctx;
    ctx.counts().commands_undelivered.more();
    let mut notice = CommandScratch::default();
    let server = &ctx.shared.config.dialect.spec().server;
    if (server.write_notice)(command, status, why, &mut notice) {
        let publish = Publish {
            qos: Qos::AtLeastOnce,
            ..Publish::new(&notice.topic, &notice.payload)
        };
        let parcel = Parcel::new(&publish, None);
        work.router.broker().publish(ctx, parcel);
    }
}
