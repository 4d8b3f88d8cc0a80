//! Subscriptions that come and go.

use std::sync::Arc;

use muster_model::Micros;
use muster_net::{Io, Key};
use muster_protocol::mqtt::packet::{Subscribe, Unsubscribe};
use muster_protocol::mqtt::topic::Subscription as Parsed;
use muster_protocol::mqtt::{Filter, RetainHandling, reason};

use super::Shard;
use crate::message::Message;
use crate::routes::{SessionRef, Subscription};
use crate::shared::{Grant, locked};

/// Most subscriptions of one session: consumers have a handful, devices one or two.
const SUBSCRIPTIONS_MAX: usize = 1_000;

impl Shard {
    pub(super) fn subscribe(&mut self, io: &mut Io, key: Key, subscribe: &Subscribe<'_>) {
        let Some(link) = self.link(key) else { return };
        let Some(me) = link.session else { return };
        link.has_subscribed = true;
        let is_v5 = link.is_v5();
        let name = link.name.clone();
        let name = name.as_deref().unwrap_or_default();
        let dialect = self.shared.config.dialect;
        if (dialect.server.answers_unasked)(name) {
            return;
        }
        let id = subscribe.subscription_id();
        let mut retained = Vec::new();
        let mut codes = Vec::new();
        for filter in subscribe.filters {
            let mut routed = String::new();
            let filter = match (dialect.server.route)(name, filter.filter, &mut routed) {
                true => Filter {
                    filter: &routed,
                    ..filter
                },
                false => filter,
            };
            match self.subscribe_one(me, &filter, id, io.now()) {
                Ok(mut messages) => {
                    codes.push(filter.qos.bits());
                    retained.append(&mut messages);
                }
                // MQTT 3.1.1 knows one failure only (section 3.9.3 there).
                Err(code) => codes.push(if is_v5 {
                    code
                } else {
                    reason::UNSPECIFIED_ERROR
                }),
            }
        }
        let Some(link) = self.link(key) else { return };
        let answered = link
            .server
            .suback(subscribe.packet_id, &codes, &mut link.out);
        if answered.is_err() {
            return self.expel(io, key, reason::PACKET_TOO_LARGE);
        }
        self.mark_dirty(key);
        for (grant, message) in retained {
            self.deliver_kept(io, me, grant, &message);
        }
    }

    /// Takes one subscription and gives the retained messages it brings, or the code why not.
    fn subscribe_one(
        &mut self,
        me: SessionRef,
        filter: &Filter<'_>,
        id: Option<u32>,
        now: Micros,
    ) -> Result<Vec<(Grant, Arc<Message>)>, u8> {
        let parsed = Parsed::parse(filter.filter).map_err(|_| reason::TOPIC_FILTER_INVALID)?;
        let Some(session) = self.session(me) else {
            return Err(reason::UNSPECIFIED_ERROR);
        };
        let subscription = Subscription {
            session: me,
            gauge: Arc::clone(&session.gauge),
            qos: filter.qos,
            no_local: filter.no_local,
            retain_as_published: filter.retain_as_published,
            id,
        };
        let known = &mut session.subscriptions;
        match known.iter().position(|(text, _)| **text == *filter.filter) {
            Some(place) => known[place].1 = subscription.clone(),
            None if known.len() >= SUBSCRIPTIONS_MAX => return Err(reason::QUOTA_EXCEEDED),
            None => known.push((filter.filter.into(), subscription.clone())),
        }
        let Ok(mut routes) = self.shared.routes.write() else {
            return Err(reason::UNSPECIFIED_ERROR);
        };
        let is_new = routes.insert(parsed, subscription);
        drop(routes);
        // MQTT-3.3.1-9 to -11; a shared subscription brings none (section 4.8.2).
        let wants_retained = match filter.retain_handling {
            RetainHandling::Send => true,
            RetainHandling::SendIfNew => is_new,
            RetainHandling::Keep => false,
        };
        if !wants_retained || parsed.group.is_some() {
            return Ok(Vec::new());
        }
        let messages = locked(&self.shared.retained).matching(parsed.filter, now);
        let grant = |message: Arc<Message>| {
            (
                Grant {
                    qos: filter.qos.min(message.qos),
                    retain: true,
                    id,
                },
                message,
            )
        };
        Ok(messages.into_iter().map(grant).collect())
    }

    pub(super) fn unsubscribe(&mut self, io: &mut Io, key: Key, unsubscribe: &Unsubscribe<'_>) {
        let Some(link) = self.link(key) else { return };
        let Some(me) = link.session else { return };
        let name = link.name.clone();
        let name = name.as_deref().unwrap_or_default();
        let dialect = self.shared.config.dialect;
        let filters = unsubscribe.filters.iter();
        let codes = filters.map(|filter| {
            let mut routed = String::new();
            let is_routed = (dialect.server.route)(name, filter, &mut routed);
            self.unsubscribe_one(me, if is_routed { &routed } else { filter })
        });
        let codes: Vec<u8> = codes.collect();
        let Some(link) = self.link(key) else { return };
        let answered = link
            .server
            .unsuback(unsubscribe.packet_id, &codes, &mut link.out);
        if answered.is_err() {
            return self.expel(io, key, reason::PACKET_TOO_LARGE);
        }
        self.mark_dirty(key);
    }

    fn unsubscribe_one(&mut self, me: SessionRef, filter: &str) -> u8 {
        let Ok(parsed) = Parsed::parse(filter) else {
            return reason::TOPIC_FILTER_INVALID;
        };
        if let Some(session) = self.session(me) {
            session.subscriptions.retain(|(text, _)| **text != *filter);
        }
        let Ok(mut routes) = self.shared.routes.write() else {
            return reason::UNSPECIFIED_ERROR;
        };
        if routes.remove(parsed, me) {
            reason::SUCCESS
        } else {
            reason::NO_SUBSCRIPTION_EXISTED
        }
    }
}
