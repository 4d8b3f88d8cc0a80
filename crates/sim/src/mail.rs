//! Mail of one link that subscribes: its filters, and the messages that it is still to get.

use std::collections::{BTreeMap, VecDeque};

use muster_platform::PROPERTY_NAME;
use muster_protocol::mqtt::packet::Subscribe;
use muster_protocol::mqtt::{Publish, Qos, Server, Token, topic};

use crate::account::Delivered;
use crate::queue::Copy;

/// The subscriptions of one session, and what it is still to get.
#[derive(Debug, Default)]
pub(crate) struct Mail {
    filters: Vec<(String, Qos)>,
    waiting: VecDeque<Copy>,
    /// Handed over at QoS 1 or 2 and not acknowledged, by token.
    open: BTreeMap<u32, Copy>,
    tokens: u32,
    /// Copies handed over, over all sessions of the link.
    pub(crate) delivered: Delivered,
}

impl Mail {
    /// The mail of a session that follows another one without going on with it.
    pub(crate) fn after(before: &Self) -> Self {
        Self {
            delivered: before.delivered,
            ..Self::default()
        }
    }

    /// Adds filters; one that stands already is replaced.
    pub(crate) fn subscribe(&mut self, subscribe: &Subscribe<'_>) {
        for filter in subscribe.filters.iter() {
            self.filters.retain(|(known, _)| known != filter.filter);
            self.filters.push((filter.filter.to_owned(), filter.qos));
        }
    }

    /// The quality of service at which a topic comes; none if it does not.
    pub(crate) fn takes(&self, topic: &str) -> Option<Qos> {
        let matching = self
            .filters
            .iter()
            .filter(|(filter, _)| topic::matches(filter, topic));
        matching.map(|(_, qos)| *qos).max()
    }

    /// A copy waits for its link, if that subscribed to it.
    pub(crate) fn put(&mut self, copy: &Copy) {
        if let Some(granted) = self.takes(&copy.topic) {
            let qos = copy.qos.min(granted);
            let copy = copy.clone();
            self.waiting.push_back(Copy { qos, ..copy });
        }
    }

    /// Hands over what the session takes now.
    pub(crate) fn hand_over(
        &mut self,
        server: &mut Server,
        is_command: impl Fn(&str) -> bool,
        out: &mut Vec<u8>,
    ) {
        while let Some(copy) = self.waiting.front() {
            let token = Token(self.tokens);
            let is_said = with_publish(copy, |publish| server.deliver(token, publish, out).is_ok());
            if !is_said {
                return;
            }
            let delivered = &mut self.delivered;
            match is_command(&copy.topic) {
                true => delivered.commands += 1,
                false => delivered.messages += 1,
            }
            if let Some(copy) = self.waiting.pop_front()
                && copy.qos != Qos::AtMostOnce
            {
                self.open.insert(self.tokens, copy);
                self.tokens += 1;
            }
        }
    }

    /// The client has a copy; at QoS 2 it may say so twice.
    pub(crate) fn acknowledged(&mut self, token: Token) {
        self.open.remove(&token.0);
    }

    /// A session that goes on gets again what it did not acknowledge.
    pub(crate) fn send_again(&self, token: Token, server: &mut Server, out: &mut Vec<u8>) {
        let is_said = self.open.get(&token.0).is_some_and(|copy| {
            with_publish(copy, |publish| {
                server.redeliver(token, publish, out).is_ok()
            })
        });
        if !is_said {
            server.forget(token);
        }
    }
}

fn with_publish<T>(copy: &Copy, act: impl FnOnce(&Publish<'_>) -> T) -> T {
    let property = copy.property.as_deref().map(|text| (PROPERTY_NAME, text));
    act(&Publish {
        qos: copy.qos,
        user_properties: property.as_slice(),
        ..Publish::new(&copy.topic, &copy.payload)
    })
}
