//! Requests that wait for a command, and those that observe all commands to their device.

use muster_platform::{HandedCommand, Handing, Refusal, Status, Upload};

use super::{Content, RequestEnd, decline, refuse};
use crate::commands::{Handed, Outgoing, Undelivered};
use crate::queries::Due;
use crate::thread::Ctx;
use crate::waiter::QueryRef;

/// No command came while the device waited, which is what it asked for.
const REQUEST_TIMEOUT: Status = Status(408);
/// The answer to an observer: commands follow (2.03).
const VALID: Status = Status(203);

/// A device observes its commands from now on, and no more by an earlier request.
pub(super) fn observe<E: RequestEnd>(
    end: &mut E,
    ctx: &mut Ctx<'_>,
    request: E::Request,
    wanted: &Upload<'_>,
) {
    let observer = end.sender(request).zip(E::observed(request));
    let is_noted = observer
        .is_some_and(|(sender, observed)| end.queries().observe(ctx, observed, sender, wanted));
    if !is_noted {
        return refuse(end, ctx, request, &Refusal::UNAVAILABLE);
    }
    let content = Content {
        status: VALID,
        fields: Vec::new(),
        body: b"",
        copies: 1,
        notification: Some(0),
    };
    end.write(ctx, request, &content);
}

/// Takes the step that is due of a request that waits for a command.
pub(crate) fn query_due<E: RequestEnd>(end: &mut E, ctx: &mut Ctx<'_>, of: QueryRef) {
    match end.queries().due(ctx, of) {
        Some(Due::Over(request, None)) => end.accept(ctx, request, 1),
        Some(Due::Over(request, Some(refusal))) => {
            let is_written = decline(end, ctx, request, (&refusal, &[]));
            match (is_written, refusal.status) {
                (true, REQUEST_TIMEOUT) => ctx.counts().accepted.more(),
                (true, _) => ctx.counts().rejected.more(),
                (false, _) => {}
            }
        }
        Some(Due::Postponed(request)) => {
            let postponed = end.postpone(ctx, request);
            end.queries().wait_on(ctx, of, postponed);
        }
        None => {}
    }
}

/// The gateway ends: requests that wait for a command have no answer any more.
pub(crate) fn give_up_queries<E: RequestEnd>(end: &mut E, ctx: &Ctx<'_>) {
    let waiting = end.queries().waiting();
    let awaited = waiting.filter(|request| E::is_answered(*request)).count();
    ctx.counts().unanswered.add(awaited as u64);
}

/// Puts a command into the answer to a request that waits for one, or into a notification of its observer; an error
/// if it waits no more, or cannot be answered so.
pub(crate) fn hand_over<E: RequestEnd>(
    end: &mut E,
    ctx: &mut Ctx<'_>,
    to: QueryRef,
    command: &Outgoing<'_>,
) -> Handed {
    let queries = end.queries();
    let taken = queries.take(ctx, to, command.to.device);
    let taken = taken.ok_or(Undelivered::GONE)?;
    let mut handed = HandedCommand::default();
    let requests = ctx.shared.config.dialect.requests(E::PROTOCOL);
    if let Err(why) = (requests.hand)(taken.manner, &command.to, &mut handed) {
        if taken.notification.is_none() {
            end.accept(ctx, taken.request, 1);
        }
        return Err(Undelivered::malformed(why));
    }
    let to = Handing {
        command: command.to,
        gateway: None,
        request: command.number.unwrap_or_else(|| ctx.shared.next_request()),
    };
    let mut body = Vec::new();
    let is_rewritten = (requests.command_body)(&to, command.payload, &mut body);
    let content = Content {
        status: requests.commanded,
        fields: handed.fields().collect(),
        body: if is_rewritten { &body } else { command.payload },
        copies: 1,
        notification: taken.notification,
    };
    if !end.write(ctx, taken.request, &content) {
        return Err(Undelivered::UNANSWERABLE);
    }
    if taken.notification.is_none() {
        ctx.counts().accepted.more();
    }
    ctx.counts().commands_handed.more();
    Ok(())
}
