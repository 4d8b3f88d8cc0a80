//! The application's word on a device's messages, where the dialect has one.

use std::sync::Arc;

use muster_model::Micros;
use muster_net::Key;
use muster_platform::{Protocol, Reply};
use muster_protocol::mqtt::{Publish, Qos, reason};

use super::asker;
use super::request::{Asked, PublishRef, Said};
use crate::broker::links::{Acknowledgement, Batch};
use crate::end::Work;
use crate::fault::Response;
use crate::message::Parcel;
use crate::thread::Ctx;
use crate::uplink::{Alarm, Answer, Request, Timer};

/// Bytes that cannot be read as acknowledgements.
const GARBLED: &[u8] = b"[{\"id\":\"";
/// The code for a message that cannot be read.
const UNREADABLE: u16 = 400;

/// Answers an uplink that the application acknowledges.
pub(super) fn respond(work: &mut Work<'_>, asked: Asked, answer: Answer) {
    let server = &work.ctx.shared.config.dialect.spec().server;
    let acknowledge = |work: &mut Work<'_>, code, is_counted| {
        let id = asked.id.clone();
        let answer = Acknowledgement {
            id,
            code,
            is_counted,
        };
        add_answer(work, &asked, answer);
    };
    match answer.response {
        Response::Accept => acknowledge(work, server.acceptance, true),
        Response::AcceptTwice => {
            acknowledge(work, server.acceptance, true);
            acknowledge(work, server.acceptance, false);
        }
        Response::AcceptLate(by) => {
            let late = answer.late(asker(Request::Application(asked)));
            work.ctx.set_alarm(work.ctx.now() + by, late);
        }
        Response::Garbled => {
            work.ctx.counts().unanswered.more();
            send(work, &asked, GARBLED);
        }
        Response::Misnamed => {
            work.ctx.counts().unanswered.more();
            let nobodys = (server.nobodys)(asked.id.as_deref());
            let wrong = Acknowledgement {
                id: Some(nobodys.into()),
                code: server.acceptance,
                is_counted: false,
            };
            add_answer(work, &asked, wrong);
        }
        Response::Reject(code) => acknowledge(work, code, true),
        Response::Unavailable => acknowledge(work, server.refusal, true),
        Response::Silence => work.ctx.counts().unanswered.more(),
    }
}

/// Nobody answers a question: its sender gets an error once its time is over.
pub(super) fn time_out(work: &mut Work<'_>, mut asked: Asked) {
    let ctx = &mut work.ctx;
    let unanswered = ctx.shared.config.dialect.server.unanswered;
    let (code, body) = (unanswered.code, unanswered.body.to_vec());
    asked.said = Some(Arc::new(Said { code, body }));
    let asker = asker(Request::Application(asked));
    let answer = Answer {
        response: Response::Reject(code),
        copies: 0,
    };
    let at = ctx.now() + Micros::from_secs(u64::from(unanswered.after_s));
    ctx.set_alarm(at, Alarm::Answer { asker, answer });
}

/// The application cannot read what a device sent.
pub(super) fn unreadable(work: &mut Work<'_>, publish: PublishRef, asked: &Asked) {
    work.ctx.counts().unreadable.more();
    acknowledge_transport(work, publish);
    let refusal = Acknowledgement {
        id: None,
        code: UNREADABLE,
        is_counted: false,
    };
    write_answers(work, asked, &[refusal]);
}

/// The transport's answer says only that the message came.
pub(super) fn acknowledge_transport(work: &mut Work<'_>, publish: PublishRef) {
    let links = work.router.broker().links();
    if links.ack_uncounted(publish, reason::SUCCESS) {
        work.ctx.counts().transport_acknowledged.more();
    }
}

/// Writes an acknowledgement, or lets it wait for others of its device.
fn add_answer(work: &mut Work<'_>, asked: &Asked, answer: Acknowledgement) {
    let Some(how) = work.ctx.shared.config.behaviour.answer_batch else {
        return write_answers(work, asked, &[answer]);
    };
    let key = asked.key;
    let mut link = work.router.broker().links().get(key);
    let batch = link.as_mut().and_then(|link| link.batch.as_ref());
    if batch.is_some_and(|batch| *batch.device != *asked.device) {
        write_batch(work, key);
        link = work.router.broker().links().get(key);
    }
    let Some(link) = link else {
        return count_answers(&work.ctx, &[answer], 0);
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
        write_batch(work, key);
    } else if is_first {
        let timer = Alarm::End(Protocol::Mqtt, Timer::Batch(key));
        work.ctx.set_alarm(work.ctx.now() + how.within, timer);
    }
}

/// Writes the acknowledgements of a link that wait for others.
pub(super) fn write_batch(work: &mut Work<'_>, key: Key) {
    let link = work.router.broker().links().get(key);
    if let Some(batch) = link.and_then(|link| link.batch.take()) {
        let (device, id) = (batch.device, None);
        let asked = Asked {
            key,
            device,
            id,
            said: None,
        };
        write_answers(work, &asked, &batch.answers);
    }
}

/// Writes acknowledgements of one device, under the topic of the first one's message.
fn write_answers(work: &mut Work<'_>, to: &Asked, answers: &[Acknowledgement]) {
    let mut text = std::mem::take(&mut work.ctx.scratch().payload);
    text.clear();
    let mut replies = answers.iter().map(|answer| Reply {
        id: answer.id.as_deref(),
        code: answer.code,
    });
    let write = work.ctx.shared.config.dialect.server.write_acknowledgement;
    write(&mut replies, &mut text);
    if let ([answer], Some(said)) = (answers, &to.said)
        && answer.code == said.code
    {
        text.clone_from(&said.body);
    }
    let first = Asked {
        id: answers.first().and_then(|answer| answer.id.clone()),
        ..to.clone()
    };
    let copies = send(work, &first, &text);
    count_answers(&work.ctx, answers, copies);
    work.ctx.scratch().payload = text;
}

/// Publishes on the topic of the acknowledgement of a device's message: the number of copies.
fn send(work: &mut Work<'_>, asked: &Asked, payload: &[u8]) -> usize {
    let (ctx, broker) = (&mut work.ctx, work.router.broker());
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
