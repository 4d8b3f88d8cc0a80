//! Routing of commands, replies and the messages that devices subscribe to, in the model platform.

use muster_model::Micros;
use muster_protocol::mqtt::{Incoming, reason};

use crate::account::Delivered;
use crate::behaviour::Fault;
use crate::platform::Platform;
use crate::queue::{Answer, Copy, Event, Queue};

impl Platform {
    pub(crate) fn command(&mut self, link: u32, publish: &Incoming<'_>, queue: &mut Queue) {
        let mut ends = self.ends.iter();
        let is_subscribed = ends.any(|end| end.mail.takes(&publish.topic).is_some());
        let (ways, account) = (&self.behaviour.commands, &mut self.account.commands);
        account.taken += 1;
        if !is_subscribed {
            account.unheard += 1;
            let answer = Answer::new(publish, Some(reason::NO_MATCHING_SUBSCRIBERS));
            return self.answer_after(Micros::ZERO, link, answer, queue);
        }
        let fault = self.dice.first([
            (ways.refuse, Fault::Reject, &mut account.refused),
            (ways.lose, Fault::Lose, &mut account.lost),
            (ways.duplicate, Fault::Duplicate, &mut account.doubled),
            (ways.late, Fault::Late, &mut account.delayed),
            (ways.ignore, Fault::Ignore, &mut account.ignored),
        ]);
        self.treat(link, publish, fault, queue);
    }

    pub(crate) fn reply(&mut self, link: u32, publish: &Incoming<'_>, queue: &mut Queue) {
        let (ways, account) = (&self.behaviour.commands, &mut self.account.commands);
        account.replies += 1;
        let fault = self.dice.first([
            (
                ways.refuse_reply,
                Fault::Reject,
                &mut account.replies_refused,
            ),
            (ways.lose_reply, Fault::Lose, &mut account.replies_lost),
            (
                ways.duplicate_reply,
                Fault::Duplicate,
                &mut account.replies_doubled,
            ),
            (
                ways.ignore_reply,
                Fault::Ignore,
                &mut account.replies_ignored,
            ),
        ]);
        self.treat(link, publish, fault, queue);
    }

    fn treat(
        &mut self,
        link: u32,
        publish: &Incoming<'_>,
        fault: Option<Fault>,
        queue: &mut Queue,
    ) {
        let mut at = queue.now() + self.behaviour.deliver_after;
        if fault == Some(Fault::Late) {
            at += self.behaviour.late_by;
        }
        let copy = Copy::of(publish, publish.topic.as_str().to_owned());
        for _ in 0..Fault::copies(fault) {
            queue.push(at, Event::Mail(copy.clone()));
        }
        let answer = Answer::new(publish, Fault::answer(fault));
        self.answer_after(Micros::ZERO, link, answer, queue);
    }

    /// A copy goes to every link that subscribed to its topic.
    pub(crate) fn route(&mut self, copy: &Copy, queue: &mut Queue) {
        for link in 0..self.ends.len() as u32 {
            self.ends[link as usize].mail.put(copy);
            self.hand_over(link, queue);
        }
    }

    /// Hands over the waiting copies that the session of a link takes now.
    pub(crate) fn hand_over(&mut self, link: u32, queue: &mut Queue) {
        let dialect = self.dialect;
        let end = &mut self.ends[link as usize];
        let mut out = Vec::new();
        if let Some(server) = &mut end.server {
            let is_command = |topic: &str| (dialect.server.command)(topic).is_some();
            end.mail.hand_over(server, is_command, &mut out);
        }
        self.say(link, out, queue);
    }

    pub(crate) fn delivered(&self) -> Vec<Delivered> {
        self.ends.iter().map(|end| end.mail.delivered).collect()
    }
}
