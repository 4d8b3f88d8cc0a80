//! The application's word on a device's messages, where the dialect has one.

use muster_net::Key;
use muster_platform::Reply;
use muster_protocol::mqtt::{Publish, Qos, reason};

use crate::broker::Broker;
use crate::broker::links::{Acknowledgement, Batch};
use crate::fault::Response;
use crate::message::Parcel;
use crate::thread::Ctx;
use crate::uplink::{Alarm, Answer, Asked, Asker, PublishRef};

/// Bytes that cannot be read as acknowledgements.
const GARBLED: &[u8] = b"[{\"id\":\"";
/// The code for a message that cannot be read.
const UNREADABLE: u16 = 400;

/// Answers an uplink that the application acknowledges.
pub(crate) fn respond(ctx: &mut Ctx<'_>, broker: &mut Broker, asked: Asked, answer: Answer) {
    let server = &ctx.shared.config.dialect.spec().server;
    let mut acknowledge = |ctx: &mut Ctx<'_>, code, is_counted| {
        let id = asked.id.clone();
        let answer = Acknowledgement {
            id,
            code,
            is_counted,
        };
        add_answer(ctx, broker, &asked, answer);
    };
    match answer.response {
        Response::Accept => acknowledge(ctx, server.acceptance, true),
        Response::AcceptTwice => {
            acknowledge(ctx, server.acceptance, true);
            acknowledge(ctx, server.acceptance, false);
        }
        Response::AcceptLate(by) => {
            let late = answer.late(Asker::Application(asked));
            ctx.set_alarm(ctx.now() + by, late);
        }
        Response::Garbled => {
            ctx.counts().unanswered.more();
            send(ctx, broker, &asked, GARBLED);
        }
        Response::Misnamed => {
            ctx.counts().unanswered.more();
            let nobodys = (server.nobodys)(asked.id.as_deref());
            let wrong = Acknowledgement {
                id: Some(nobodys.into()),
                code: server.acceptance,
                is_counted: false,
            };
            add_answer(ctx, broker, &asked, wrong);
        }
        Response::Reject(code) => acknowledge(ctx, code, true),
        Response::Silence => ctx.counts().unanswered.more(),
    }
}

/// The application cannot read what a device sent.
pub(super) fn unreadable(
    ctx: &mut Ctx<'_>,
    broker: &mut Broker,
    publish: PublishRef,
    asked: &Asked,
) {
    ctx.counts().unreadable.more();
    acknowledge_transport(ctx, broker, publish);
    let refusal = Acknowledgement {
        id: None,
        code: UNREADABLE,
        is_counted: false,
    };
    write_answers(ctx, broker, asked, &[refusal]);
}

/// The transport's answer says only that the message came.
pub(super) fn acknowledge_transport(ctx: &Ctx<'_>, broker: &mut Broker, publish: PublishRef) {
    if broker.links().ack_uncounted(publish, reason::SUCCESS) {
        ctx.counts().transport_acknowledged.more();
    }
}

/// Writes an acknowledgement, or lets it wait for others of its device.
fn add_answer(ctx: &mut Ctx<'_>, broker: &mut Broker, asked: &Asked, answer: Acknowledgement) {
    let Some(how) = ctx.shared.config.behaviour.answer_batch else {
        return write_answers(ctx, broker, asked, &[answer]);
    };
    let key = asked.key;
    let Some(link) = broker.links().get(key) else {
        return count_answers(ctx, &[answer], 0);
    };
    let batch = link.batch.as_ref();
    if batch.is_some_and(|batch| *batch.device != *asked.device) {
        write_batch(ctx, broker, key);
    }
    let Some(link) = broker.links().get(key) else {
        return;
    };
    let is_first = link.batch.is_none();
    let batch = link.batch.get_or_insert_with(|| {
        Box::new(Batch {
            device: asked.device.clone(),
            answers: Vec::new(),
        })
    });
    batch.answers.push(answer);
    if batch.answers.len() >= how.most as usize {
        write_batch(ctx, broker, key);
    } else if is_first {
        ctx.set_alarm(ctx.now() + how.within, Alarm::Batch(key));
    }
}

/// Writes the acknowledgements of a link that wait for others.
pub(crate) fn write_batch(ctx: &mut Ctx<'_>, broker: &mut Broker, key: Key) {
    let batch = broker.links().get(key).and_then(|link| link.batch.take());
    if let Some(batch) = batch {
        let (device, id) = (batch.device, None);
        let asked = Asked { key, device, id };
        write_answers(ctx, broker, &asked, &batch.answers);
    }
}

/// Writes acknowledgements of one device, under the topic of the first one's message.
fn write_answers(ctx: &mut Ctx<'_>, broker: &mut Broker, to: &Asked, answers: &[Acknowledgement]) {
    let mut text = std::mem::take(&mut ctx.scratch().payload);
    text.clear();
    let mut replies = answers.iter().map(|answer| Reply {
        id: answer.id.as_deref(),
        code: answer.code,
    });
    let write = ctx.shared.config.dialect.server.write_acknowledgement;
    write(&mut replies, &mut text);
    let first = Asked {
        id: answers.first().and_then(|answer| answer.id.clone()),
        ..to.clone()
    };
    let copies = send(ctx, broker, &first, &text);
    count_answers(ctx, answers, copies);
    ctx.scratch().payload = text;
}

/// Publishes on the topic of the acknowledgement of a device's message: the number of copies.
fn send(ctx: &mut Ctx<'_>, broker: &mut Broker, asked: &Asked, payload: &[u8]) -> usize {
    let (mut topic, mut routed) = (String::new(), String::new());
    let (server, device) = (&ctx.shared.config.dialect.spec().server, &asked.device);
    (server.write_acknowledgement_topic)(device, asked.id.as_deref(), &mut topic);
    let is_routed = (server.route)(device, &topic, &mut routed);
    let publish = Publish {
        qos: Qos::AtLeastOnce,
        ..Publish::new(if is_routed { &routed } else { &topic }, payload)
    };
    ctx.counts().acknowledgements.more();
    if (server.answers_unasked)(device) {
        return broker.send_unasked(ctx, asked.key, &publish);
    }
    let routed = broker.publish(ctx, Parcel::new(&publish, None));
    if routed.is_congested {
        ctx.hold_back(asked.key);
    }
    routed.copies
}

fn count_answers(ctx: &Ctx<'_>, answers: &[Acknowledgement], copies: usize) {
    let is_refusal = ctx.shared.config.dialect.server.is_refusal;
    let counts = ctx.counts();
    for answer in answers.iter().filter(|answer| answer.is_counted) {
        if copies == 0 {
            counts.unanswerable.more();
        } else if is_refusal(answer.code) {
            counts.rejected.more();
        } else {
            counts.accepted.more();
        }
    }
}
