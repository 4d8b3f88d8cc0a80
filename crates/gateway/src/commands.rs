//! Commands on their way to devices, whatever those speak.

use std::sync::Arc;

use muster_platform::{CommandScratch, Commanded, Handing, Handover, Rewrite};
use muster_protocol::mqtt::{Publish, Qos};

use crate::account::command_hash;
use crate::end::Work;
use crate::fault::Fault;
use crate::lock::locked;
use crate::mail::Mail;
use crate::message::{Message, Parcel};
use crate::routes::SessionRef;
use crate::thread::Ctx;
use crate::uplink::Alarm;
use crate::waiter::Waiter;

/// The status, as in HTTP, of a command whose device does not wait.
const NOBODY_WAITS: u16 = 503;
/// The status of a command that cannot be sent to any device, or not be put into an answer.
const MALFORMED: u16 = 400;

/// A command on its way into an answer.
#[derive(Debug)]
pub(crate) struct Outgoing<'a> {
    pub(crate) to: Commanded<'a>,
    pub(crate) payload: &'a [u8],
    /// The number that it has; none has it get the next one.
    pub(crate) number: Option<u32>,
}

/// Result of putting a command into an answer.
pub(crate) type Handed = Result<(), Undelivered>;

/// The reason for which a command comes back: a status as of HTTP, and words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Undelivered {
    status: u16,
    why: &'static str,
}

impl Undelivered {
    /// No request of the device waits.
    const NOBODY: Self = Self::unreached("the device does not wait");
    /// The request of the device has ended meanwhile.
    pub(crate) const GONE: Self = Self::unreached("the device waits no more");
    /// The request of the device waits, and no answer can be written to it.
    pub(crate) const UNANSWERABLE: Self =
        Self::unreached("the device's request cannot be answered");

    const fn unreached(why: &'static str) -> Self {
        let status = NOBODY_WAITS;
        Self { status, why }
    }

    /// No answer carries the command.
    pub(crate) const fn malformed(why: &'static str) -> Self {
        let status = MALFORMED;
        Self { status, why }
    }
}

/// Takes a command of the business application, which is treated badly by the counts for commands: the number
/// of copies, or none if it is no command that the platform takes.
pub(crate) fn take(
    work: &mut Work<'_>,
    message: &Arc<Message>,
    from: Option<SessionRef>,
    is_again: bool,
) -> Option<usize> {
    let ctx = &mut work.ctx;
    if !(ctx.shared.config.dialect.server.takes_command)(&message.payload) {
        ctx.counts().unreadable.more();
        return None;
    }
    let now = ctx.now();
    let (fault, at) = if is_again || ctx.shared.behaves {
        (Fault::Behave, now)
    } else {
        let named = command_hash(&message.topic, &message.payload);
        locked(&ctx.shared.fault_plan).command(now, named)
    };
    if !is_again {
        ctx.counts().commands.more();
    }
    // Nothing else is asked for of commands.
    let mut copies = 1;
    let passes = if fault == Fault::LoseAfterAccept {
        0
    } else if fault == Fault::Duplicate {
        2
    } else {
        1
    };
    for pass in 0..passes {
        if at > now {
            let message = Arc::clone(message);
            let alarm = Alarm::Command { from, message };
            work.ctx.set_alarm(at, alarm);
        } else if pass == 0 {
            copies = route(work, message, from);
        } else {
            route_again(work, message, from);
        }
    }
    Some(copies)
}

/// Passes a command on in the form that its device asked for: the number of copies.
pub(crate) fn route(
    work: &mut Work<'_>,
    message: &Arc<Message>,
    from: Option<SessionRef>,
) -> usize {
    let ctx = &mut work.ctx;
    let copies = match ctx.shared.config.dialect.server.handover {
        Handover::AsItCame => {
            let broker = work.router.broker();
            broker.publish_kept(ctx, message, from).copies
        }
        Handover::Rewritten(rewrite) => publish_rewritten(work, message, from, rewrite),
        Handover::RewrittenOrInAnswer(rewrite) => {
            match publish_rewritten(work, message, from, rewrite) {
                0 => answer_with(work, message),
                copies => copies,
            }
        }
    };
    work.ctx.counts().commands_routed.add(copies as u64);
    copies
}

/// Passes a second copy of a command on. If no device waits for it, the application gets no notice: the
/// first copy was passed on, or had its own notice.
fn route_again(work: &mut Work<'_>, message: &Arc<Message>, from: Option<SessionRef>) {
    let Handover::RewrittenOrInAnswer(rewrite) = work.ctx.shared.config.dialect.server.handover
    else {
        route(work, message, from);
        return;
    };
    let copies = match publish_rewritten(work, message, from, rewrite) {
        0 => pass_to_waiter(work, message).unwrap_or(0),
        copies => copies,
    };
    work.ctx.counts().commands_routed.add(copies as u64);
}

fn publish_rewritten(
    work: &mut Work<'_>,
    message: &Message,
    from: Option<SessionRef>,
    rewrite: Rewrite,
) -> usize {
    let ctx = &mut work.ctx;
    let Some(command) = commanded(ctx, message) else {
        return 0;
    };
    let announced = locked(&ctx.shared.gateways).get(command.device).cloned();
    let gateway = announced.or_else(|| {
        let mut waiting = locked(&ctx.shared.waiting);
        let gateway = waiting.gateway_of(command.tenant, command.device);
        gateway.map(Arc::from)
    });
    let to = Handing {
        command,
        gateway: gateway.as_deref(),
        request: message.call.unwrap_or_else(|| ctx.shared.next_request()),
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
        let parcel = Parcel::new(&publish, from);
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
    // A command of the REST API is tried again, and whoever issued it gets an answer there.
    if message.call.is_some() {
        return 0;
    }
    if let Some(command) = commanded(&work.ctx, message) {
        let why = unfit(&work.ctx, &command);
        let undelivered = why.map_or(Undelivered::NOBODY, Undelivered::malformed);
        note_undelivered(work, &command, undelivered);
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
    let to = {
        let mut waiting = locked(&ctx.shared.waiting);
        let to = waiting.find(command.tenant, command.device)?;
        if !to.observes {
            waiting.hand(command.tenant, command.device);
        }
        to
    };
    if to.shard == ctx.index() {
        return Some(usize::from(hand_over(work, to, message)));
    }
    let message = Arc::clone(message);
    ctx.mail(to.shard, Mail::Command { to, message });
    Some(1)
}

/// Puts a command into the answer to a request of this thread; if that cannot be, the application gets a
/// notice. Returns whether the answer was written.
pub(crate) fn hand_over(work: &mut Work<'_>, to: Waiter, message: &Message) -> bool {
    let Some(to_device) = commanded(&work.ctx, message) else {
        return false;
    };
    let command = Outgoing {
        to: to_device,
        payload: &message.payload,
        number: message.call,
    };
    let handed = work.with(to.protocol, |end, work| {
        end.hand_over(&mut work.ctx, to.query, &command)
    });
    if let Some(Err(undelivered)) = handed {
        note_undelivered(work, &command.to, undelivered);
    }
    handed == Some(Ok(()))
}

/// Reason for which a command fits no answer, whatever its device speaks.
pub(crate) fn unfit(ctx: &Ctx<'_>, command: &Commanded<'_>) -> Option<&'static str> {
    (ctx.shared.config.dialect.server.unfit)(command)
}

fn commanded<'a>(ctx: &Ctx<'_>, message: &'a Message) -> Option<Commanded<'a>> {
    (ctx.shared.config.dialect.server.command)(&message.topic)
}

/// Publishes a notice that a command was not delivered, if the dialect has such notices.
fn note_undelivered(work: &mut Work<'_>, command: &Commanded<'_>, undelivered: Undelivered) {
    let Undelivered { status, why } = undelivered;
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
