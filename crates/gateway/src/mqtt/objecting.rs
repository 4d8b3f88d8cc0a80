//! Refusals of what a device published, where the platform says more than the protocol can.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use muster_platform::{CommandScratch, Objection, OnRefusal};
use muster_protocol::mqtt::{Publish, reason};

use super::request::Refusable;
use crate::end::Work;
use crate::message::Parcel;

/// The statuses, as of HTTP, of what is refused whatever the behaviour.
pub(super) const UNKNOWN_DEVICE: u16 = 404;
pub(super) const UNACKNOWLEDGED_EVENT: u16 = 400;

/// Refuses a message: publishes the refusal to the link if that subscribed to refusals, and treats message and
/// link as the dialect has it. In a dialect without refusals the link ends.
pub(super) fn object(work: &mut Work<'_>, refused: &Refusable, status: u16) {
    let publish = refused.publish;
    let Some(link) = work.router.broker().links().get(publish.key) else {
        if publish.pending.is_some() {
            work.ctx.counts().unanswerable.more();
        }
        return;
    };
    let name = link.name.clone();
    let at = wall_clock();
    let objection = Objection {
        link: name.as_deref().unwrap_or_default(),
        topic: &refused.topic,
        packet_id: publish.pending.map(|pending| pending.packet_id),
        status,
        at: &at,
    };
    let is_published = say(work, &objection);
    let objections = work.ctx.shared.config.dialect.server.objections;
    let treatment = objections.map_or(OnRefusal::Disconnect, |objections| {
        (objections.treatment)(&refused.topic, is_published)
    });
    let (ctx, broker) = (&mut work.ctx, work.router.broker());
    if is_published {
        ctx.counts().rejected.more();
    }
    match treatment {
        OnRefusal::Disconnect => {
            ctx.counts().closed_links.more();
            broker.end(ctx, publish.key, true);
        }
        OnRefusal::Acknowledge => {
            broker.links().ack_uncounted(publish, reason::SUCCESS);
        }
        OnRefusal::Ignore if publish.pending.is_some() => ctx.counts().unanswered.more(),
        OnRefusal::Ignore => {}
    }
}

/// The wall clock as ISO 8601 has it.
#[expect(
    clippy::disallowed_methods,
    reason = "a refusal says when it was, as Hono's does; nothing is measured by it"
)]
fn wall_clock() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let ms = since.map_or(0, |since| since.as_millis());
    let at = Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(i64::MAX));
    at.unwrap_or(Timestamp::MAX).to_string()
}

/// Publishes a refusal to the link that it is for; returns whether the link subscribed to refusals.
fn say(work: &mut Work<'_>, objection: &Objection<'_>) -> bool {
    let (ctx, broker) = (&mut work.ctx, work.router.broker());
    let Some(objections) = ctx.shared.config.dialect.server.objections else {
        return false;
    };
    let mut said = CommandScratch::default();
    let mut form = 0;
    while (objections.write)(form, objection, &mut said) {
        let refusal = Publish::new(&said.topic, &said.payload);
        if broker.publish(ctx, Parcel::new(&refusal, None)).copies > 0 {
            return true;
        }
        form += 1;
    }
    false
}
