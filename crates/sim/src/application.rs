//! The application of a model platform, where its dialect acknowledges messages.

use muster_platform::{DevicePublish, Reply};
use muster_protocol::mqtt::packet::Subscribe;
use muster_protocol::mqtt::{Incoming, Publish, Server, Token, reason};

use crate::behaviour::Fault;
use crate::platform::Platform;
use crate::queue::{Answered, Event, Queue};

impl Platform {
    /// Grants what a device subscribes to, or refuses it; false if the connection is over.
    pub(crate) fn subscribe(
        &mut self,
        link: u32,
        server: &mut Server,
        subscribe: &Subscribe<'_>,
        out: &mut Vec<u8>,
    ) -> bool {
        let is_refused = self.is_device(link) && self.dice.hits(self.behaviour.refuse_subscribe);
        let codes = subscribe.filters.iter().map(|filter| match is_refused {
            true => reason::NOT_AUTHORIZED,
            false => filter.qos.bits(),
        });
        let codes: Vec<u8> = codes.collect();
        self.account.subscribed += u64::from(!is_refused);
        let end = &mut self.ends[link as usize];
        end.has_subscribed |= !is_refused;
        if !is_refused {
            end.mail.subscribe(subscribe);
        }
        server.suback(subscribe.packet_id, &codes, out).is_ok()
    }

    /// Takes a publish that the application acknowledges; false if it is none.
    pub(crate) fn asks(&mut self, link: u32, publish: &Incoming<'_>, queue: &mut Queue) -> bool {
        let name = &self.ends[link as usize].name;
        let read = (self.dialect.server.read)(name, &publish.topic, publish.payload);
        let DevicePublish::Message { device, id } = read else {
            return false;
        };
        if !self.ends[link as usize].has_subscribed && !(self.dialect.server.answers_unasked)(name)
        {
            self.account.unsubscribed += 1;
        }
        let answered = |id: Option<&[u8]>, code| Answered {
            device: device.to_owned(),
            id: id.map(<[u8]>::to_vec),
            code,
            is_garbled: false,
        };
        let nobodys = (self.dialect.server.nobodys)(id);
        let (yes, no) = (self.dialect.server.acceptance, self.dialect.server.refusal);
        let (dice, ways, account) = (&mut self.dice, &self.behaviour, &mut self.account);
        let fault = dice.first([
            (ways.reject, Fault::Reject, &mut account.rejected),
            (ways.drop, Fault::Drop, &mut account.dropped),
            (ways.ignore, Fault::Ignore, &mut account.ignored),
            (ways.garble, Fault::Garble, &mut account.garbled),
            (ways.mislead, Fault::Mislead, &mut account.misled),
            (ways.duplicate, Fault::Duplicate, &mut account.duplicated),
        ]);
        let answers = match fault {
            Some(Fault::Reject) => vec![answered(id, no)],
            Some(Fault::Garble) => vec![Answered {
                is_garbled: true,
                ..answered(id, yes)
            }],
            Some(Fault::Mislead) => vec![answered(Some(&nobodys), yes)],
            Some(Fault::Duplicate) => vec![answered(id, yes), answered(id, yes)],
            Some(_) => Vec::new(),
            None => vec![answered(id, yes)],
        };
        account.accepted += u64::from(matches!(fault, None | Some(Fault::Duplicate)));
        let mut at = queue.now() + ways.answer_after;
        if dice.hits(ways.late) {
            at += ways.late_by;
        }
        for answered in answers {
            queue.push(at, Event::Acknowledge { link, answered });
        }
        true
    }

    pub(crate) fn acknowledge(&mut self, link: u32, answered: &Answered, queue: &mut Queue) {
        let end = &mut self.ends[link as usize];
        let is_received = end.has_subscribed || (self.dialect.server.answers_unasked)(&end.name);
        if end.is_mute || !is_received {
            self.account.unheard += 1;
            return;
        }
        let (mut topic, mut payload) = (String::new(), Vec::new());
        let id = answered.id.as_deref();
        (self.dialect.server.write_acknowledgement_topic)(&answered.device, id, &mut topic);
        let reply = Reply {
            id,
            code: answered.code,
        };
        (self.dialect.server.write_acknowledgement)(&mut std::iter::once(reply), &mut payload);
        if answered.is_garbled {
            payload.truncate(payload.len() / 2);
        }
        let mut out = Vec::new();
        let is_said = end.server.as_mut().is_some_and(|server| {
            let publish = Publish::new(&topic, &payload);
            server.deliver(Token(0), &publish, &mut out).is_ok()
        });
        self.account.unheard += u64::from(!is_said);
        self.say(link, out, queue);
    }
}
