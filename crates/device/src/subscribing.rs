//! What a link subscribes to before its devices may publish.

use muster_model::{ConnectFailure, DeviceId, Micros, Reason};
use muster_platform::{SUBSCRIPTIONS_MAX, Subscription};
use muster_protocol::mqtt::{self, Filter, Qos, Subscribe};

use crate::class::{Class, ClassStream, Kind};
use crate::link::State;
use crate::{Shard, Sink, Then};

impl<S: Sink> Shard<S> {
    /// CONNACK came: the link is up, or asks for what its dialect subscribes to.
    pub(crate) fn subscribe(&mut self, link: u32, now: Micros, out: &mut Vec<u8>) -> Then {
        let id = self.link_id(link);
        let state = &mut self.links[link as usize];
        let class = &self.classes[state.class as usize];
        let wanted = class.subscriptions();
        if wanted == 0 {
            return self.announce(link, now, out);
        }
        let scratch = &mut self.scratch;
        let device = class.first_device_of(id);
        class.roster.render_name(device, &mut scratch.name);
        let mut qos = [Qos::AtMostOnce; SUBSCRIPTIONS_MAX];
        class.render_filters(device, &scratch.name, (&mut scratch.filters, &mut qos));
        let filters: [Filter<'_>; SUBSCRIPTIONS_MAX] =
            std::array::from_fn(|place| Filter::new(&scratch.filters[place], qos[place]));
        let request = Subscribe {
            id: 0,
            filters: &filters[..wanted],
            subscription_id: None,
            user_properties: &[],
        };
        let client = state.session.mqtt();
        let is_written = client.is_some_and(|it| it.subscribe(now, &request, out).is_ok());
        let since = state.since;
        self.enter(link, State::Subscribing, since);
        if is_written {
            return Then::Stay;
        }
        // A peer with so small a packet takes no message either.
        self.unsubscribed(link, now, ConnectFailure::Unsendable, out)
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
            let reason = match client.mqtt().map(|settings| settings.version) {
                Some(mqtt::Version::V311) => Reason::MqttSuback(*code),
                Some(mqtt::Version::V5) | None => Reason::Mqtt(*code),
            };
            let failure = ConnectFailure::SubscribeRejected(reason);
            return self.unsubscribed(link, now, failure, out);
        }
        if codes.len() != self.class(link).subscriptions() {
            return self.unsubscribed(link, now, ConnectFailure::Malformed, out);
        }
        self.note_granted(link, codes);
        self.announce(link, now, out)
    }

    /// Notes the first subscription that was granted at a lower QoS than was asked for.
    fn note_granted(&mut self, link: u32, codes: &[u8]) {
        let asked = self.class(link).requested_qos().map(Qos::bits);
        let lower = asked.zip(codes).find(|(asked, granted)| *granted < asked);
        let Some((asked, granted)) = lower else {
            return;
        };
        let mut refusals = std::mem::take(&mut self.refusals);
        refusals.note_lower_qos(|| {
            let name = self.name_of(link);
            format!("device `{name}`: asked for QoS {asked} and was granted {granted}")
        });
        self.refusals = refusals;
    }

    /// Notes the first SUBSCRIBE that a platform left unanswered, with its filters.
    pub(crate) fn note_unsubscribed(&mut self, link: u32) {
        let mut refusals = std::mem::take(&mut self.refusals);
        refusals.note_unanswered("SUBSCRIBE", || {
            let (class, name) = (self.class(link), self.name_of(link));
            let device = class.first_device_of(self.link_id(link));
            let mut filters = vec![String::new(); class.subscriptions()];
            let mut qos = [Qos::AtMostOnce; SUBSCRIPTIONS_MAX];
            let mut of_device = String::new();
            class.roster.render_name(device, &mut of_device);
            class.render_filters(device, &of_device, (&mut filters, &mut qos));
            format!(
                "link `{name}`: SUBSCRIBE to `{}` was not answered within {}; others like it are not told",
                filters.join("`, `"),
                class.client.handshake_timeout
            )
        });
        self.refusals = refusals;
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

impl Class {
    /// How many filters a link subscribes to: those of the dialect, then those of the streams.
    fn subscriptions(&self) -> usize {
        let of_streams = self
            .streams
            .iter()
            .filter(|stream| self.has_filter(stream))
            .count();
        (self.dialect.publishing().subscriptions.len() + of_streams).min(SUBSCRIPTIONS_MAX)
    }

    /// The QoS of each filter, in their order.
    fn requested_qos(&self) -> impl Iterator<Item = Qos> {
        let of_dialect = self.dialect.publishing().subscriptions.iter();
        let of_dialect = of_dialect.map(|it| Qos::from_bits(it.qos).unwrap_or(Qos::AtMostOnce));
        let streams = self.streams.iter().filter(|stream| self.has_filter(stream));
        of_dialect.chain(streams.map(|stream| stream.qos))
    }

    fn has_filter(&self, stream: &ClassStream) -> bool {
        stream.is_receive() || self.filter_of_dialect(stream).is_some()
    }

    /// What the dialect has a link subscribe to for a stream: its commands, or the answers to its
    /// requests.
    fn filter_of_dialect(&self, stream: &ClassStream) -> Option<&'static str> {
        if stream.is_command() {
            let publishing = self.dialect.publishing();
            return publishing.filter_of_commands(self.client.gateway.is_some());
        }
        let topic = stream.uplink.topic().source();
        let answers = stream
            .is_acknowledged()
            .then(|| (self.dialect.topic)(topic).answers);
        answers.flatten()
    }

    fn render_filters(
        &self,
        device: DeviceId,
        name: &str,
        (filters, qos): (&mut [String], &mut [Qos]),
    ) {
        let mut places = filters.iter_mut().zip(qos);
        for subscription in self.dialect.publishing().subscriptions {
            let Some((filter, qos)) = places.next() else {
                return;
            };
            subscription.render(name, filter);
            *qos = Qos::from_bits(subscription.qos).unwrap_or(Qos::AtMostOnce);
        }
        let streams = self.streams.iter().filter(|stream| self.has_filter(stream));
        for (stream, (filter, qos)) in streams.zip(places) {
            self.render_filter(stream, device, name, filter);
            *qos = stream.qos;
        }
    }

    /// Puts what a stream subscribes to into `out`, which is emptied first.
    pub(crate) fn render_filter(
        &self,
        stream: &ClassStream,
        device: DeviceId,
        name: &str,
        out: &mut String,
    ) {
        match &stream.kind {
            Kind::Receive { filter } => self.roster.render_text(filter, device, name, out),
            Kind::Command { .. } | Kind::Uplink | Kind::Query { .. } => {
                let filter = self.filter_of_dialect(stream).unwrap_or_default();
                Subscription { filter, qos: 0 }.render(name, out);
            }
        }
    }
}
