//! Plans whose load is connection attempts alone.

use muster_judge::{Rules, Scope, Slo, SloBound};
use muster_load::{HoldRate, PayloadSpec, Phase, ScheduleSpec, Shape};
use muster_model::StreamId;
use muster_platform::{Carrier, Protocol};

use crate::{Ack, FleetPlan, Plan, Policy, StreamKind, StreamPlan};

impl Plan {
    /// Connection attempts a second, as the scenario states them for the first connects of all fleets.
    pub(crate) fn stated_connects(&self) -> f64 {
        let rates = self.fleets.iter().map(|fleet| fleet.connect.rate.get());
        rates.sum()
    }

    /// Checks that each device can connect again and again, and that all rules are about that.
    pub(crate) fn check_connects(&self) -> Result<(), String> {
        for fleet in &self.fleets {
            if let Some(why) = why_not(fleet) {
                return Err(format!("fleet `{}` {why}", fleet.name));
            }
        }
        let mut named = self.rules.slos.iter().filter(|slo| slo.named);
        match named.find(|slo| !is_about_connects(slo)) {
            None => Ok(()),
            Some(slo) => Err(format!(
                "SLO `{}` [{}] is about messages, and a search of connects sends none: switch it off, such as by --set \
                 'slo.{}=any'",
                slo.bound.rule(),
                slo.scope,
                slo.bound.name()
            )),
        }
    }

    /// The same plan with connection attempts alone; none if some device cannot connect again and again.
    pub fn attempting(&self) -> Option<Self> {
        let can_attempt = self.fleets.iter().all(|fleet| why_not(fleet).is_none());
        can_attempt.then(|| self.clone().only_attempts())
    }

    /// The same plan, but each fleet has one stream of connection attempts, and nothing else. No backend consumes, and
    /// rules about messages are left out.
    #[must_use]
    pub(crate) fn only_attempts(mut self) -> Self {
        for (fleet, id) in self.fleets.iter_mut().zip(0..) {
            let attempts = attempts(fleet, StreamId(id));
            fleet.streams = attempts.into_iter().collect();
        }
        self.backends.clear();
        let Rules { slos, .. } = &mut self.rules;
        slos.retain(is_about_connects);
        self
    }
}

/// The reason, with the remedy, why devices of a fleet cannot connect again and again.
fn why_not(fleet: &FleetPlan) -> Option<&'static str> {
    if fleet.client.protocol() != Protocol::Mqtt {
        return Some("does not speak MQTT: only links of MQTT are searched for connects");
    }
    if fleet.devices_per_link > 1 {
        return Some("shares the links of gateways: remove `gateway`");
    }
    if fleet.connect.lifetime.is_some() || fleet.offline.is_some() {
        return Some("ends its links by itself: remove `lifetime` and `offline`");
    }
    if fleet.streams.is_empty() {
        return Some("has no stream: add one, such as `streams: [ { rate: 1/s } ]`");
    }
    None
}

fn is_about_connects(slo: &Slo) -> bool {
    let is_wider = matches!(slo.scope, Scope::Run | Scope::Fleet { .. });
    is_wider
        && match slo.bound {
            SloBound::FailureRatio(_) | SloBound::Disconnects(_) | SloBound::Connected(_) => true,
            SloBound::Latency { of, .. } => of.is_of_answers(),
            SloBound::Loss(_)
            | SloBound::Duplicates(_)
            | SloBound::NotReceived(_)
            | SloBound::RepliesLost(_)
            | SloBound::ReceiveLoss(_)
            | SloBound::QueriesWithCommand(_)
            | SloBound::Stable => false,
        }
}

/// The connection attempts of a fleet, in place of its first stream; none without one.
fn attempts(fleet: &FleetPlan, id: StreamId) -> Option<StreamPlan> {
    let first = fleet.streams.first()?.clone();
    Some(StreamPlan {
        name: "connects".to_owned(),
        id,
        kind: StreamKind::Connect,
        filter: None,
        schedule: ScheduleSpec {
            shape: Shape::Constant,
            rate: fleet.connect.rate,
            phase: Phase::Even,
            hold_rate: HoldRate::Multiplied,
            poisson: false,
            first_device: fleet.first_device,
            devices: fleet.devices,
            limit_per_device: None,
            ..first.schedule
        },
        // A device that still connects when its next attempt is due does not make that one.
        policy: Policy::Queue {
            bound: 1,
            in_flight: None,
        },
        ack: Ack::Transport,
        timeout: fleet.connect.timeout,
        deadline: None,
        payload: PayloadSpec::Size(0),
        largest: 0,
        carrier: Carrier::None,
        retry: 0,
        http: None,
        ..first
    })
}
