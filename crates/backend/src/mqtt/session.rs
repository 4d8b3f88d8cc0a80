//! The MQTT session of one consumer.

use muster_model::{Micros, RunId};
use muster_plan::{BackendPlan, MqttNorthbound};
use muster_protocol::mqtt::{
    Client, ClientLimits, Connect, Filter, Qos, RetainHandling, Subscribe, Version,
};

use crate::consumers::{ConsumerPlan, client_id};

/// Seconds a broker keeps a consumer's session after its link ended, so that a consumer that
/// comes back finds what was queued for it meanwhile.
const SESSION_EXPIRY_S: u32 = 120;

/// The keep-alive of a consumer in seconds.
const KEEP_ALIVE_S: u16 = 30;

/// One session, which outlives its connections.
#[derive(Debug)]
pub(super) struct Session {
    mqtt: MqttNorthbound,
    client: Client,
    /// Bytes of the largest packet that it receives.
    limit: u32,
    client_id: String,
    /// Instant of its last ping that asks whether the broker has sent all that it has.
    asked: Micros,
}

impl Session {
    /// A session that receives packets of at most `limit` bytes.
    pub(super) fn new(
        consumer: &ConsumerPlan,
        mqtt: &MqttNorthbound,
        run: RunId,
        limit: u32,
    ) -> Self {
        let limits = ClientLimits {
            maximum_packet_size: limit,
            ..ClientLimits::default()
        };
        Self {
            mqtt: mqtt.clone(),
            client: Client::new(mqtt.version, &limits),
            limit,
            client_id: client_id(run, consumer),
            asked: Micros::ZERO,
        }
    }

    pub(super) fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    pub(super) fn version(&self) -> Version {
        self.mqtt.version
    }

    /// Returns the quality of service that it subscribes with.
    pub(super) fn qos(&self) -> Qos {
        self.mqtt.qos
    }

    /// Pings the broker, if that has been silent for `silence` since `received` and since the last ping.
    /// Returns true if it wrote a ping.
    pub(super) fn probe(
        &mut self,
        now: Micros,
        received: Micros,
        silence: Micros,
        out: &mut Vec<u8>,
    ) -> bool {
        let is_due = now >= received.max(self.asked) + silence;
        if is_due {
            self.asked = now;
            self.client.ping_unawaited(now, out);
        }
        is_due
    }

    /// Writes CONNECT. `continues` asks for the session of the connection before.
    pub(super) fn connect(
        &mut self,
        plan: &BackendPlan,
        continues: bool,
        now: Micros,
        out: &mut Vec<u8>,
    ) {
        let connect = Connect {
            // MQTT 3.1.1 has no expiry: a session that outlives its link would stay after the run.
            clean_start: !continues || self.mqtt.version == Version::V311,
            session_expiry: SESSION_EXPIRY_S,
            maximum_packet_size: Some(self.limit),
            keep_alive: KEEP_ALIVE_S,
            user: plan.user.as_ref().map(|user| user.expose().as_str()),
            password: plan
                .password
                .as_ref()
                .map(|secret| secret.expose().as_slice()),
            ..Connect::new(&self.client_id)
        };
        // The plan has checked the lengths of user name and password.
        let is_written = self.client.connect(now, &connect, out);
        debug_assert!(is_written.is_ok(), "a consumer's CONNECT can be written");
    }

    /// Writes SUBSCRIBE, with the filters in `further` besides that of the account.
    pub(super) fn subscribe(
        &mut self,
        plan: &BackendPlan,
        further: &[&str],
        now: Micros,
        out: &mut Vec<u8>,
    ) {
        let filter = self.mqtt.subscription(plan.shared.as_deref());
        // Retained messages were sent before the run, and a consumer that comes back has had them: as
        // copies of this run they would be duplicates that the target never made.
        let quiet = |filter, qos| Filter {
            retain_handling: RetainHandling::Keep,
            ..Filter::new(filter, qos)
        };
        let mut filters = vec![quiet(filter.as_str(), self.mqtt.qos)];
        filters.extend(further.iter().map(|filter| quiet(filter, Qos::AtLeastOnce)));
        let subscribe = Subscribe {
            id: 0,
            filters: &filters,
            subscription_id: None,
            user_properties: &[],
        };
        let is_written = self.client.subscribe(now, &subscribe, out);
        debug_assert!(is_written.is_ok(), "a consumer's SUBSCRIBE can be written");
    }
}
