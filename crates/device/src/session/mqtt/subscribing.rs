//! Subscriptions of a link before its devices may publish.

use muster_model::{ConnectFailure, DeviceId, Reason};
use muster_platform::{SUBSCRIPTIONS_MAX, Subscription};
use muster_protocol::mqtt::{self, Filter, Qos, Subscribe};

use super::{Mqtt, MqttSettings, Step, refuse};
use crate::class::{Class, ClassStream, Kind};
use crate::session::{Context, Event};

impl Mqtt {
    /// CONNACK came: the link is ready, or asks for what its dialect subscribes to.
    pub(super) fn subscribe(
        &mut self,
        at: &mut Context<'_, Self>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'static>> {
        let class = at.class;
        let wanted = class.subscriptions();
        if wanted == 0 {
            return self.announce(at, out);
        }
        let device = class.first_device_of(at.id);
        class.directory.render_name(device, &mut self.name);
        let mut qos = [Qos::AtMostOnce; SUBSCRIPTIONS_MAX];
        class.render_filters(device, &self.name, (&mut self.filters, &mut qos));
        let filters: [Filter<'_>; SUBSCRIPTIONS_MAX] =
            std::array::from_fn(|place| Filter::new(&self.filters[place], qos[place]));
        let request = Subscribe {
            id: 0,
            filters: &filters[..wanted],
            subscription_id: None,
            user_properties: &[],
        };
        self.steps.insert(at.link, Step::Subscribing);
        if at.state.client.subscribe(at.now, &request, out).is_ok() {
            return None;
        }
        // A peer with so small a packet takes no message either.
        Some(refuse(at, ConnectFailure::Unsendable, out))
    }

    /// SUBACK came: the link goes on if all was granted.
    pub(super) fn subscribed<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        codes: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<Event<'a>> {
        if self.steps.get(&at.link) != Some(&Step::Subscribing) {
            return None;
        }
        if let Some(code) = codes.iter().find(|code| **code >= 0x80) {
            let reason = match at.class.client.settings.version {
                mqtt::Version::V311 => Reason::MqttSuback(*code),
                mqtt::Version::V5 => Reason::Mqtt(*code),
            };
            return Some(refuse(at, ConnectFailure::SubscribeRejected(reason), out));
        }
        if codes.len() != at.class.subscriptions() {
            return Some(refuse(at, ConnectFailure::Malformed, out));
        }
        note_granted(at, codes);
        self.announce(at, out)
    }
}

/// Notes the first subscription that was granted at a lower QoS than was asked for.
fn note_granted(at: &mut Context<'_, Mqtt>, codes: &[u8]) {
    let (class, id) = (at.class, at.id);
    let asked = class.requested_qos().map(Qos::bits);
    let lower = asked.zip(codes).find(|(asked, granted)| *granted < asked);
    if let Some((asked, granted)) = lower {
        at.refusals.note_lower_qos(|| {
            let name = class.name_of(id);
            format!("device `{name}`: asked for QoS {asked} and was granted {granted}")
        });
    }
}

/// Notes the first SUBSCRIBE that a platform left unanswered, with its filters.
pub(super) fn note_unanswered(at: &mut Context<'_, Mqtt>) {
    let (class, id) = (at.class, at.id);
    at.refusals.note_once("SUBSCRIBE", || {
        let (name, device) = (class.name_of(id), class.first_device_of(id));
        let mut filters = vec![String::new(); class.subscriptions()];
        let mut qos = [Qos::AtMostOnce; SUBSCRIPTIONS_MAX];
        let mut of_device = String::new();
        class.directory.render_name(device, &mut of_device);
        class.render_filters(device, &of_device, (&mut filters, &mut qos));
        format!(
            "link `{name}`: SUBSCRIBE to `{}` was not answered within {}; others like it are not reported",
            filters.join("`, `"),
            class.client.handshake_timeout
        )
    });
}

impl Class<MqttSettings> {
    /// The number of filters that a link subscribes to: those of the dialect, then those of the streams.
    fn subscriptions(&self) -> usize {
        let of_streams = self
            .streams
            .iter()
            .filter(|stream| self.has_filter(stream))
            .count();
        (self.of_every_link().count() + of_streams).min(SUBSCRIPTIONS_MAX)
    }

    /// The filters that each link of the fleet subscribes to: those of the dialect, and that of refusals
    /// where the fleet wants them.
    fn of_every_link(&self) -> impl Iterator<Item = Subscription> {
        let publishing = self.dialect.publishing();
        let filter = publishing.filter_of_refusals(self.role());
        let refusals = filter.filter(|_| self.client.settings.error_topic);
        let refusals = refusals.map(|filter| Subscription { filter, qos: 0 });
        publishing.subscriptions.iter().copied().chain(refusals)
    }

    /// The QoS of each filter, in their order.
    fn requested_qos(&self) -> impl Iterator<Item = Qos> {
        let of_dialect = self.of_every_link();
        let of_dialect = of_dialect.map(|it| Qos::from_bits(it.qos).unwrap_or(Qos::AtMostOnce));
        let streams = self.streams.iter().filter(|stream| self.has_filter(stream));
        of_dialect.chain(streams.map(|stream| stream.qos.into()))
    }

    fn render_filters(
        &self,
        device: DeviceId,
        name: &str,
        (filters, qos): (&mut [String], &mut [Qos]),
    ) {
        let mut places = filters.iter_mut().zip(qos);
        for subscription in self.of_every_link() {
            let Some((filter, qos)) = places.next() else {
                return;
            };
            subscription.render(self.directory.tenant(), name, filter);
            *qos = Qos::from_bits(subscription.qos).unwrap_or(Qos::AtMostOnce);
        }
        let streams = self.streams.iter().filter(|stream| self.has_filter(stream));
        for (stream, (filter, qos)) in streams.zip(places) {
            self.render_filter(stream, device, name, filter);
            *qos = stream.qos.into();
        }
    }
}

impl<C> Class<C> {
    fn has_filter(&self, stream: &ClassStream) -> bool {
        stream.is_receive() || self.filter_of_dialect(stream).is_some()
    }

    /// The dialect's filter for a stream: that of its commands, or of the answers to its
    /// requests.
    fn filter_of_dialect(&self, stream: &ClassStream) -> Option<&'static str> {
        if stream.is_command() {
            let publishing = self.dialect.publishing();
            return publishing.filter_of_commands(self.role());
        }
        let topic = stream.uplink.topic().source();
        let answers = stream
            .is_acknowledged()
            .then(|| (self.dialect.topic)(topic).answers);
        answers.flatten()
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
            Kind::Receive { filter } => self.directory.render_text(filter, device, name, out),
            Kind::Command { .. } | Kind::Uplink | Kind::Query { .. } | Kind::Connect => {
                let filter = self.filter_of_dialect(stream).unwrap_or_default();
                Subscription { filter, qos: 0 }.render(self.directory.tenant(), name, out);
            }
        }
    }
}
