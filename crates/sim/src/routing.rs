//! Routing of commands, replies and the messages that devices subscribe to, in the model platform.

use muster_model::Micros;
use muster_protocol::mqtt::{Incoming, reason};

use crate::account::Told;
use crate::platform::Platform;
use crate::queue::{Copy, Event, Queue};

/// Treatment of one command or reply.
struct Fate {
    answer: Option<u8>,
    copies: u8,
    late_by: Micros,
}

impl Platform {
    /// The application issued a command.
    pub(crate) fn command(&mut self, link: u32, publish: &Incoming<'_>, queue: &mut Queue) {
        let copy = Copy::of(publish, publish.topic.as_str().to_owned());
        let fate = self.fate_of_command(&copy.topic);
        self.treat(link, publish, (copy, fate), queue);
    }

    /// A device replied to a command.
    pub(crate) fn reply(&mut self, link: u32, publish: &Incoming<'_>, queue: &mut Queue) {
        let copy = Copy::of(publish, publish.topic.as_str().to_owned());
        let fate = self.fate_of_reply();
        self.treat(link, publish, (copy, fate), queue);
    }

    fn treat(
        &mut self,
        link: u32,
        publish: &Incoming<'_>,
        (copy, fate): (Copy, Fate),
        queue: &mut Queue,
    ) {
        let at = queue.now() + self.behaviour.deliver_after + fate.late_by;
        for _ in 0..fate.copies {
            queue.push(at, Event::Mail(copy.clone()));
        }
        if let Some(answer) = publish.pending.zip(fate.answer) {
            self.answer_after(Micros::ZERO, link, answer, queue);
        }
    }

    fn fate_of_command(&mut self, topic: &str) -> Fate {
        let is_heard = self.ends.iter().any(|end| end.mail.takes(topic).is_some());
        let (dice, ways) = (&mut self.dice, &self.behaviour.commands);
        let account = &mut self.account.commands;
        account.taken += 1;
        let mut fate = Fate {
            answer: Some(reason::SUCCESS),
            copies: 1,
            late_by: Micros::ZERO,
        };
        if !is_heard {
            account.unheard += 1;
            (fate.answer, fate.copies) = (Some(reason::NO_MATCHING_SUBSCRIBERS), 0);
        } else if dice.hits(ways.refuse) {
            account.refused += 1;
            (fate.answer, fate.copies) = (Some(reason::QUOTA_EXCEEDED), 0);
        } else if dice.hits(ways.lose) {
            account.lost += 1;
            fate.copies = 0;
        } else if dice.hits(ways.duplicate) {
            account.doubled += 1;
            fate.copies = 2;
        } else if dice.hits(ways.late) {
            account.delayed += 1;
            fate.late_by = self.behaviour.late_by;
        } else if dice.hits(ways.ignore) {
            account.ignored += 1;
            fate.answer = None;
        }
        fate
    }

    fn fate_of_reply(&mut self) -> Fate {
        let (dice, ways) = (&mut self.dice, &self.behaviour.commands);
        let account = &mut self.account.commands;
        account.replies += 1;
        let mut fate = Fate {
            answer: Some(reason::SUCCESS),
            copies: 1,
            late_by: Micros::ZERO,
        };
        if dice.hits(ways.refuse_reply) {
            account.replies_refused += 1;
            (fate.answer, fate.copies) = (Some(reason::QUOTA_EXCEEDED), 0);
        } else if dice.hits(ways.lose_reply) {
            account.replies_lost += 1;
            fate.copies = 0;
        } else if dice.hits(ways.duplicate_reply) {
            account.replies_doubled += 1;
            fate.copies = 2;
        } else if dice.hits(ways.ignore_reply) {
            account.replies_ignored += 1;
            fate.answer = None;
        }
        fate
    }

    /// A copy goes to every link that subscribed to its topic.
    pub(crate) fn route(&mut self, copy: &Copy, queue: &mut Queue) {
        for link in 0..self.ends.len() as u32 {
            self.ends[link as usize].mail.put(copy);
            self.hand_over(link, queue);
        }
    }

    /// Hands over what waits for a link, as far as its session takes it.
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

    /// Copies that were handed to each link.
    pub(crate) fn told(&self) -> Vec<Told> {
        self.ends.iter().map(|end| end.mail.told).collect()
    }
}
