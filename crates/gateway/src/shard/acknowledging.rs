//! The application's word on a device's messages, where the dialect has one.

use std::sync::Arc;

use muster_net::{Io, Key};
use muster_platform::Reply;
use muster_protocol::mqtt::{Incoming, Pending, Publish, Qos, reason};

use super::Shard;
use super::alarms::Alarm;
use super::uplink::Uplink;
use crate::fate::Fate;
use crate::message::Message;
use crate::shared::Grant;

/// What cannot be read as acknowledgements.
const GARBLED: &[u8] = b"[{\"id\":\"";
/// The code for a message that cannot be read.
const UNREADABLE: u16 = 400;

/// Who wants to be acknowledged, and what.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The link by which the message came.
    pub(super) key: Key,
    device: Box<str>,
    id: Option<Box<[u8]>>,
}

/// One acknowledgement that is to be written.
#[derive(Debug)]
pub(crate) struct Answer {
    id: Option<Box<[u8]>>,
    code: u16,
    /// Whether it is the answer to an uplink, and not a second or a wrong one.
    is_counted: bool,
}

/// Acknowledgements of one device that are written together.
#[derive(Debug)]
pub(crate) struct Batch {
    device: Box<str>,
    answers: Vec<Answer>,
}

impl Shard {
    /// The application cannot read what a device sent.
    pub(super) fn answer_unreadable(
        &mut self,
        io: &mut Io,
        key: Key,
        device: &str,
        pending: Option<Pending>,
    ) {
        self.counts().unreadable.more();
        self.take_over_transport(key, pending);
        let refusal = Answer {
            id: None,
            code: UNREADABLE,
            is_counted: false,
        };
        self.write_answers(io, key, device, &[refusal]);
    }

    /// Takes an uplink that the application acknowledges.
    pub(super) fn ask_of(
        &mut self,
        io: &mut Io,
        key: Key,
        incoming: &Incoming<'_>,
        (device, id): (&str, Option<&[u8]>),
    ) {
        self.take_over_transport(key, incoming.pending);
        let asked = Asked {
            key,
            device: device.into(),
            id: id.map(Into::into),
        };
        self.ask(io, key, incoming, asked);
    }

    /// The transport's answer says only that the message came.
    fn take_over_transport(&mut self, key: Key, pending: Option<Pending>) {
        if let (Some(pending), Some(link)) = (pending, self.link(key)) {
            link.server.ack(pending, reason::SUCCESS, &mut link.out);
            self.mark_dirty(key);
            self.counts().transport_acknowledged.more();
        }
    }

    /// Makes the fate of an uplink that asks for an acknowledgement come true.
    pub(super) fn settle_asked(&mut self, io: &mut Io, uplink: &Uplink, asked: Asked) {
        let (key, now) = (asked.key, io.now());
        let (yes, no) = (
            self.shared.config.dialect.server.acceptance,
            self.reject_code(),
        );
        match uplink.fate() {
            Fate::Behave
            | Fate::LoseAfterAccept
            | Fate::Duplicate
            | Fate::Reorder
            | Fate::DeliverLate
            | Fate::Corrupt => self.acknowledge(io, key, asked, yes),
            Fate::Drop | Fate::Ignore => self.counts().unanswered.more(),
            Fate::AnswerLate => {
                let at = now + self.shared.config.behaviour.answer_late.by;
                let code = yes;
                self.set_alarm(io, at, Alarm::Acknowledge { key, asked, code });
            }
            Fate::AnswerTwice => {
                let again = Answer {
                    id: asked.id.clone(),
                    code: yes,
                    is_counted: false,
                };
                let device = asked.device.clone();
                self.acknowledge(io, key, asked, yes);
                self.add_answer(io, key, &device, again);
            }
            Fate::AnswerGarbled => {
                self.counts().unanswered.more();
                let (device, id) = (&asked.device, asked.id.as_deref());
                self.say(io, key, (device, id), GARBLED);
            }
            Fate::AnswerUnknown => {
                self.counts().unanswered.more();
                let nobodys = (self.shared.config.dialect.server.nobodys)(asked.id.as_deref());
                let wrong = Answer {
                    id: Some(nobodys.into()),
                    code: yes,
                    is_counted: false,
                };
                self.add_answer(io, key, &asked.device, wrong);
            }
            Fate::Reject | Fate::RejectButDeliver => self.acknowledge(io, key, asked, no),
        }
    }

    pub(super) fn acknowledge(&mut self, io: &mut Io, key: Key, asked: Asked, code: u16) {
        let answer = Answer {
            id: asked.id,
            code,
            is_counted: true,
        };
        self.add_answer(io, key, &asked.device, answer);
    }

    /// Writes an acknowledgement, or lets it wait for others of its device.
    fn add_answer(&mut self, io: &mut Io, key: Key, device: &str, answer: Answer) {
        let Some(how) = self.shared.config.behaviour.answer_batch else {
            return self.write_answers(io, key, device, &[answer]);
        };
        let Some(link) = self.link(key) else {
            return self.count_answers(&[answer], 0);
        };
        if link
            .batch
            .as_ref()
            .is_some_and(|batch| *batch.device != *device)
        {
            self.write_batch(io, key);
        }
        let Some(link) = self.link(key) else { return };
        let is_first = link.batch.is_none();
        let batch = link.batch.get_or_insert_with(|| {
            Box::new(Batch {
                device: device.into(),
                answers: Vec::new(),
            })
        });
        batch.answers.push(answer);
        if batch.answers.len() >= how.most as usize {
            self.write_batch(io, key);
        } else if is_first {
            let at = io.now() + how.within;
            self.set_alarm(io, at, Alarm::Batch(key));
        }
    }

    /// Writes the acknowledgements of a link that wait for others.
    pub(super) fn write_batch(&mut self, io: &mut Io, key: Key) {
        let batch = self.link(key).and_then(|link| link.batch.take());
        if let Some(batch) = batch {
            self.write_answers(io, key, &batch.device, &batch.answers);
        }
    }

    /// A link is gone, and with it those whom its acknowledgements are for.
    pub(super) fn drop_batch(&self, batch: Option<Box<Batch>>) {
        if let Some(batch) = batch {
            self.count_answers(&batch.answers, 0);
        }
    }

    fn write_answers(&mut self, io: &mut Io, key: Key, device: &str, answers: &[Answer]) {
        let dialect = self.shared.config.dialect;
        let mut text = std::mem::take(&mut self.answers);
        text.clear();
        let mut replies = answers.iter().map(|answer| Reply {
            id: answer.id.as_deref(),
            code: answer.code,
        });
        (dialect.server.write_acknowledgement)(&mut replies, &mut text);
        let first = answers.first().and_then(|answer| answer.id.as_deref());
        let copies = self.say(io, key, (device, first), &text);
        self.count_answers(answers, copies);
        self.answers = text;
    }

    /// Publishes on the topic of the acknowledgement of a device's message; answers with the number
    /// of those who hear it.
    fn say(
        &mut self,
        io: &mut Io,
        key: Key,
        (device, id): (&str, Option<&[u8]>),
        payload: &[u8],
    ) -> usize {
        let (mut topic, mut routed) = (String::new(), String::new());
        let dialect = self.shared.config.dialect;
        (dialect.server.write_acknowledgement_topic)(device, id, &mut topic);
        let is_routed = (dialect.server.route)(device, &topic, &mut routed);
        let publish = Publish {
            qos: Qos::AtLeastOnce,
            ..Publish::new(if is_routed { &routed } else { &topic }, payload)
        };
        self.counts().acknowledgements.more();
        if (dialect.server.answers_unasked)(device) {
            return self.tell(io, key, &publish);
        }
        let routed = self.publish(io, &publish, None, None);
        if routed.is_congested {
            self.hold_back(io, key);
        }
        routed.copies
    }

    /// Says something to a link that has not subscribed; answers with the number of those who hear it.
    fn tell(&mut self, io: &mut Io, key: Key, publish: &Publish<'_>) -> usize {
        let Some(to) = self.link(key).and_then(|link| link.session) else {
            return 0;
        };
        let grant = Grant {
            qos: Qos::AtMostOnce,
            retain: false,
            id: None,
        };
        self.deliver_kept(io, to, grant, &Arc::new(Message::new(publish, io.now())));
        1
    }

    fn count_answers(&self, answers: &[Answer], copies: usize) {
        let dialect = self.shared.config.dialect;
        let counts = self.counts();
        for answer in answers.iter().filter(|answer| answer.is_counted) {
            if copies == 0 {
                counts.unanswerable.more();
            } else if (dialect.server.is_refusal)(answer.code) {
                counts.rejected.more();
            } else {
                counts.accepted.more();
            }
        }
    }
}
