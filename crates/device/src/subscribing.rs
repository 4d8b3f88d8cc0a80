//! What a link subscribes to before its devices may publish.

use muster_model::{ConnectFailure, Micros, Reason};
use muster_platform::SUBSCRIPTIONS_MAX;
use muster_protocol::mqtt::{self, Filter, Qos, Subscribe};

use crate::link::State;
use crate::{Shard, Sink, Then};

impl<S: Sink> Shard<S> {
    /// CONNACK came: the link is up, or asks for what its dialect subscribes to.
    pub(crate) fn subscribe(&mut self, link: u32, now: Micros, out: &mut Vec<u8>) -> Then {
        let id = self.link_id(link);
        let state = &mut self.links[link as usize];
        let class = &self.classes[state.class as usize];
        let wanted = class.dialect.subscriptions();
        if wanted.is_empty() {
            return self.announce(link, now, out);
        }
        let scratch = &mut self.scratch;
        let device = class.first_device_of(id);
        class.roster.render_name(device, &mut scratch.name);
        for (subscription, filter) in wanted.iter().zip(&mut scratch.filters) {
            subscription.render(&scratch.name, filter);
        }
        let filters: [Filter<'_>; SUBSCRIPTIONS_MAX] = std::array::from_fn(|place| {
            let qos = wanted.get(place).map_or(0, |subscription| subscription.qos);
            let qos = Qos::from_bits(qos).unwrap_or(Qos::AtMostOnce);
            Filter::new(&scratch.filters[place], qos)
        });
        let request = Subscribe {
            id: 0,
            filters: &filters[..wanted.len()],
            subscription_id: None,
            user_properties: &[],
        };
        let is_written = state.session.subscribe(now, &request, out).is_ok();
        let since = state.since;
        self.enter(link, State::Subscribing, since);
        if is_written {
            return Then::Stay;
        }
        // A peer with so small a packet takes no message either.
        let reason = Reason::Mqtt(mqtt::reason::PACKET_TOO_LARGE);
        self.unsubscribed(link, now, ConnectFailure::SubscribeRejected(reason), out)
    }

    /// SUBACK came: the link is up if all was granted.
    pub(crate) fn subscribed(
        &mut self,
        link: u32,
        now: Micros,
        codes: &[u8],
        out: &mut Vec<u8>,
    ) -> Then {
        if self.links[link as usize].state != State::Subscribing {
            return Then::Stay;
        }
        let client = &self.class(link).client;
        let refused = codes.iter().find(|code| **code >= 0x80);
        if let Some(code) = refused {
            let reason = match client.version {
                mqtt::Version::V311 => Reason::MqttSuback(*code),
                mqtt::Version::V5 => Reason::Mqtt(*code),
            };
            let failure = ConnectFailure::SubscribeRejected(reason);
            return self.unsubscribed(link, now, failure, out);
        }
        if codes.len() != self.class(link).dialect.subscriptions().len() {
            return self.unsubscribed(link, now, ConnectFailure::Malformed, out);
        }
        self.announce(link, now, out)
    }

    fn unsubscribed(
        &mut self,
        link: u32,
        now: Micros,
        failure: ConnectFailure,
        out: &mut Vec<u8>,
    ) -> Then {
        self.links[link as usize].session.disconnect(0, out);
        self.connect_failed(link, now, failure);
        Then::Close
    }
}
