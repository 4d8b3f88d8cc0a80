//! One consumer session of MQTT.

use muster_model::{BackendId, ConsumerId, Listening, Micros, Reason, RunId};
use muster_net::{Key, TimerId};
use muster_plan::{BackendPlan, MqttNorthbound};
use muster_protocol::layer::Pipe;
use muster_protocol::mqtt::{self, Connect, Filter, Qos, RetainHandling, Subscribe};
use muster_transport::{Any, TlsClient};

use crate::consumers::Seat;

/// Seconds a broker keeps a consumer's session after its link ended, so that a consumer that
/// comes back finds what was queued for it meanwhile.
const SESSION_EXPIRY_S: u32 = 120;

/// The keep-alive of a consumer in seconds.
const KEEP_ALIVE_S: u16 = 30;

/// One consumer session.
#[derive(Debug)]
pub(super) struct Consumer {
    pub(super) seat: Seat,
    pub(super) mqtt: MqttNorthbound,
    pub(super) session: mqtt::Client,
    /// Bytes of the largest packet that it receives.
    limit: u32,
    pub(super) key: Option<Key>,
    pub(super) state: State,
    /// The instant at which its last try to connect began.
    pub(super) since: Micros,
    /// The last instant at which its broker is known to have sent all that it has: something came, or a ping was answered.
    pub(super) heard: Micros,
    /// The instant of its last ping for that.
    pub(super) asked: Micros,
    /// Since when it hears what comes, while it does.
    pub(super) hears_since: Micros,
    pub(super) client_id: String,
    /// Tries that failed since the last success.
    pub(super) failures: u32,
    /// With what it was refused the last time, so that it is told once.
    pub(super) refused: Option<Reason>,
    /// True if it was subscribed before, so that it goes on with its session.
    pub(super) was_up: bool,
    /// True if the scenario has it stop reading just now.
    pub(super) is_paused: bool,
    /// The timer of its connection: the next try, or the end of its handshake's time.
    pub(super) connect_timer: Option<TimerId>,
    /// The timer of its session: the next ping.
    pub(super) session_timer: Option<TimerId>,
    /// Acknowledgements behind bytes that the kernel has not taken yet, as they go over the wire.
    pub(super) waiting: Vec<u8>,
    /// The layers between its socket and its session; over while it is down.
    pub(super) pipe: Pipe<Any<TlsClient>>,
}

/// The state of a consumer's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Down,
    Opening,
    Handshaking,
    Subscribing,
    Up,
}

impl State {
    /// The packet or connection that the consumer waits for, if it does.
    pub(super) const fn still_waits_for(self) -> Option<&'static str> {
        match self {
            Self::Opening => Some("the TCP or TLS connection"),
            Self::Handshaking => Some("CONNACK"),
            Self::Subscribing => Some("SUBACK"),
            Self::Down | Self::Up => None,
        }
    }
}

impl Consumer {
    /// A consumer that receives packets of at most `limit` bytes.
    pub(super) fn new(seat: Seat, mqtt: &MqttNorthbound, run: RunId, limit: u32) -> Self {
        let limits = mqtt::ClientLimits {
            maximum_packet_size: limit,
            ..mqtt::ClientLimits::default()
        };
        Self {
            seat,
            mqtt: mqtt.clone(),
            session: mqtt::Client::new(mqtt.version, &limits),
            limit,
            key: None,
            state: State::Down,
            since: Micros::ZERO,
            heard: Micros::ZERO,
            asked: Micros::ZERO,
            hears_since: Micros::ZERO,
            client_id: client_id(run, seat.backend, seat.consumer),
            failures: 0,
            refused: None,
            was_up: false,
            is_paused: false,
            connect_timer: None,
            session_timer: None,
            waiting: Vec::new(),
            pipe: Pipe::default(),
        }
    }

    /// The packet or connection that it has waited for, and for how long, if it waits for one.
    pub(super) fn waits_in_vain(&self, now: Micros) -> Option<String> {
        let waited = (now - self.since).as_secs_f64();
        let what = self.state.still_waits_for()?;
        Some(format!("{what} did not come within {waited:.1} s"))
    }

    /// True if nothing was reported of it: it was never up and never refused.
    pub(super) const fn is_untold(&self) -> bool {
        !self.was_up && self.failures == 0
    }

    /// True if it never was up and the platform refused it for good: another try does not help.
    pub(super) fn is_refused(&self) -> bool {
        !self.was_up && self.refused.is_some_and(Reason::is_final)
    }

    /// The stretch of time in which it listened.
    pub(super) fn listening(&self, now: Micros) -> Listening {
        if self.state != State::Up || self.is_paused {
            return Listening::deaf(now);
        }
        // The silence of a broker that is frozen says nothing.
        let (since, until) = (self.hears_since, self.heard.max(self.hears_since));
        Listening { since, until }
    }

    /// True if it reads nothing because the scenario pauses it.
    pub(super) fn is_deaf(&self) -> bool {
        self.is_paused && self.state == State::Up
    }

    pub(super) fn render_connect(&mut self, plan: &BackendPlan, now: Micros, out: &mut Vec<u8>) {
        // MQTT 3.1.1 has no expiry: a session that outlives its link would stay after the run.
        let connect = Connect {
            clean_start: !self.was_up || self.mqtt.version == mqtt::Version::V311,
            session_expiry: SESSION_EXPIRY_S,
            ..hello(plan, &self.client_id, self.limit)
        };
        // The plan has checked the lengths of user name and password.
        let is_written = self.session.connect(now, &connect, out);
        debug_assert!(is_written.is_ok(), "a consumer's CONNECT can be written");
    }

    /// `beside` is what it subscribes to beside its account's filter, if it issues commands.
    pub(super) fn render_subscribe(
        &mut self,
        plan: &BackendPlan,
        beside: &[&str],
        now: Micros,
        out: &mut Vec<u8>,
    ) {
        let filter = self.mqtt.subscription(plan.shared.as_deref());
        // What is retained was sent before, and a consumer that comes back has had it: as copies of
        // this run they would be duplicates that the target never made.
        let quiet = |filter, qos| Filter {
            retain_handling: RetainHandling::Keep,
            ..Filter::new(filter, qos)
        };
        let mut filters = vec![quiet(filter.as_str(), self.mqtt.qos)];
        filters.extend(beside.iter().map(|beside| quiet(beside, Qos::AtLeastOnce)));
        let subscribe = Subscribe {
            id: 0,
            filters: &filters,
            subscription_id: None,
            user_properties: &[],
        };
        let is_written = self.session.subscribe(now, &subscribe, out);
        debug_assert!(is_written.is_ok(), "a consumer's SUBSCRIBE can be written");
    }
}

/// The client id of a consumer.
pub(crate) fn client_id(run: RunId, backend: BackendId, consumer: ConsumerId) -> String {
    format!("muster-{:08x}-b{}-{}", run.0, backend.0, consumer.0)
}

/// The CONNECT fields of a consumer of a backend that receives packets of at most `limit` bytes, for
/// a session that ends with the link.
pub(super) fn hello<'a>(plan: &'a BackendPlan, client_id: &'a str, limit: u32) -> Connect<'a> {
    Connect {
        maximum_packet_size: Some(limit),
        keep_alive: KEEP_ALIVE_S,
        user: plan.user.as_ref().map(|user| user.expose().as_str()),
        password: plan
            .password
            .as_ref()
            .map(|secret| secret.expose().as_slice()),
        ..Connect::new(client_id)
    }
}
