//! The business application: one session with the model platform that issues the commands of a run
//! and receives the replies, as a consumer of a real run does.

use std::sync::Arc;

use muster_conduct::{CommandSink, CommandToken, Commander, MqttSender, delivery_by_puback};
use muster_device::Then;
use muster_load::{AddedHold, StreamSchedule};
use muster_model::{BackendId, Delivery, Listening, MessageId, Micros, RunId};
use muster_plan::Plan;
use muster_platform::{CommandScratch, Dialect};
use muster_protocol::mqtt::{
    Client, ClientEvent, ClientLimits, Connect, Filter, Input, Qos, Subscribe,
};

use crate::witness::Witness;

/// Short, so that the application finds a link that was forgotten within the run.
const KEEP_ALIVE_S: u16 = 1;
const PING_TIMEOUT: Micros = Micros::from_secs(1);
/// Wait before it connects again.
const RETRY: Micros = Micros::from_millis(100);

#[derive(Debug)]
pub(crate) struct Commanding {
    commander: Commander,
    session: Client,
    dialect: Dialect,
    /// Buffers in which a command is rendered.
    scratch: CommandScratch,
    /// Its link, behind those of all devices.
    pub(crate) link: u32,
    /// The account whose copies of queries it answers with commands.
    pub(crate) backend: BackendId,
    replies: Option<&'static str>,
    /// Instant since which it is connected and receives replies.
    up_since: Option<Micros>,
    /// Instant at which it connects again, if it is not connected.
    again: Option<Micros>,
}

impl Commanding {
    /// The application of a plan that has commands.
    pub(crate) fn of(
        plan: &Plan,
        schedules: &[Arc<StreamSchedule>],
        run: RunId,
        link: u32,
    ) -> Option<Self> {
        let mut backends = plan.backends.iter().zip(0u8..);
        let (issuer, at) = backends.find(|(backend, _)| backend.issues_commands)?;
        let limits = ClientLimits {
            ping_timeout: PING_TIMEOUT,
            ..ClientLimits::default()
        };
        Some(Self {
            commander: Commander::new(plan, schedules, run, 0)?,
            session: Client::new(issuer.mqtt()?.version, &limits),
            dialect: plan.platform.dialect(),
            scratch: CommandScratch::default(),
            link,
            backend: BackendId(at),
            replies: plan.platform.dialect().application.replies,
            up_since: None,
            again: None,
        })
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up_since.is_some()
    }

    pub(crate) fn listening(&self, now: Micros) -> Listening {
        let listening = |since| Listening { since, until: now };
        self.up_since.map_or(Listening::deaf(now), listening)
    }

    pub(crate) fn start(&mut self, origin: Micros) {
        self.commander.start(origin);
    }

    pub(crate) fn add_hold(&mut self, hold: &AddedHold) {
        self.commander.add_hold(hold);
    }

    pub(crate) fn end_due(&mut self, at: Micros) {
        self.commander.end_due(at);
    }

    /// Commands without the platform's word, and queries without their command.
    pub(crate) fn open(&self) -> u64 {
        self.commander.open()
    }

    /// Instant at which the next command may be issued; none while the session cannot take one.
    pub(crate) fn next(&mut self) -> Option<Micros> {
        let is_up = self.is_up();
        let sender = MqttSender {
            dialect: self.dialect,
            scratch: &mut self.scratch,
            session: &mut self.session,
            out: &mut Vec::new(),
        };
        self.commander.next_issue(is_up.then_some(&sender))
    }

    /// Instant at which the session needs its next call.
    pub(crate) fn deadline(&self) -> Option<Micros> {
        self.again.or(self.session.deadline())
    }

    pub(crate) fn is_to_connect(&mut self, now: Micros) -> bool {
        self.again.take_if(|at| *at <= now).is_some()
    }

    pub(crate) fn greet(&mut self, now: Micros, out: &mut Vec<u8>) {
        let connect = Connect {
            keep_alive: KEEP_ALIVE_S,
            ..Connect::new("application")
        };
        let is_written = self.session.connect(now, &connect, out);
        debug_assert!(is_written.is_ok(), "the last connection was closed");
    }

    pub(crate) fn issue(
        &mut self,
        now: Micros,
        sink: &mut CommandSink<'_, Witness>,
        out: &mut Vec<u8>,
    ) {
        if self.is_up() {
            let mut sender = MqttSender {
                dialect: self.dialect,
                scratch: &mut self.scratch,
                session: &mut self.session,
                out,
            };
            self.commander.issue(now, &mut sender, sink);
        }
    }

    pub(crate) fn asked(
        &mut self,
        query: &MessageId,
        now: Micros,
        sink: &mut CommandSink<'_, Witness>,
    ) {
        self.commander.asked(query, now, sink);
    }

    /// Bytes came: how many of them are used up, and whether the connection goes on.
    pub(crate) fn received(
        &mut self,
        now: Micros,
        bytes: &[u8],
        sink: &mut CommandSink<'_, Witness>,
        out: &mut Vec<u8>,
    ) -> (usize, Then) {
        let mut input = Input::new(bytes);
        let mut then = Then::Stay;
        while let Some(event) = self.session.poll(now, &mut input, out) {
            then = self.happened(now, &event, sink, out);
            if then != Then::Stay {
                break;
            }
        }
        (input.consumed(), then)
    }

    fn happened(
        &mut self,
        now: Micros,
        event: &ClientEvent<'_>,
        sink: &mut CommandSink<'_, Witness>,
        out: &mut Vec<u8>,
    ) -> Then {
        match event {
            ClientEvent::Connected(_) => self.subscribe(now, out),
            ClientEvent::Subscribed { .. } => self.up_since = Some(now),
            ClientEvent::Message(message) => {
                let topic = message.topic.as_str();
                let is_reply = self.commander.replied(topic, message.payload, now, sink);
                debug_assert!(is_reply, "it subscribed to nothing else");
            }
            ClientEvent::Accepted { token, reason } => {
                let delivery = delivery_by_puback(*reason);
                let token = CommandToken(token.0);
                self.commander.learn(token, delivery, now, sink);
            }
            ClientEvent::Rejected { token, reason } => {
                let delivery = Delivery::Undeliverable(*reason);
                let token = CommandToken(token.0);
                self.commander.learn(token, delivery, now, sink);
            }
            ClientEvent::Refused { .. }
            | ClientEvent::Disconnected { .. }
            | ClientEvent::KeepAliveExpired
            | ClientEvent::Malformed(_) => return Then::Close,
            ClientEvent::Completed { .. }
            | ClientEvent::AnsweredLate { .. }
            | ClientEvent::Resend { .. }
            | ClientEvent::Unsubscribed { .. }
            | ClientEvent::Pong
            | ClientEvent::Auth(_) => {}
        }
        Then::Stay
    }

    fn subscribe(&mut self, now: Micros, out: &mut Vec<u8>) {
        let Some(replies) = self.replies else {
            self.up_since = Some(now);
            return;
        };
        let filters = [Filter::new(replies, Qos::AtLeastOnce)];
        let request = Subscribe {
            id: 0,
            filters: &filters,
            subscription_id: None,
            user_properties: &[],
        };
        let is_written = self.session.subscribe(now, &request, out);
        debug_assert!(is_written.is_ok(), "the session is open");
    }

    /// A timer ran out: whether the connection goes on.
    pub(crate) fn timer(&mut self, now: Micros, out: &mut Vec<u8>) -> Then {
        match self.session.timer(now, out) {
            Some(_) => Then::Close,
            None => Then::Stay,
        }
    }

    /// The connection is over; it connects again.
    pub(crate) fn lost(&mut self, now: Micros, sink: &mut CommandSink<'_, Witness>) {
        self.session.drop_inflight(|_, _| {});
        self.commander.lost(now, sink);
        self.session.closed();
        self.up_since = None;
        self.again = Some(now + RETRY);
    }

    pub(crate) fn finish(&mut self, now: Micros, sink: &mut CommandSink<'_, Witness>) {
        let sender = MqttSender {
            dialect: self.dialect,
            scratch: &mut self.scratch,
            session: &mut self.session,
            out: &mut Vec::new(),
        };
        self.commander.finish(&sender, now, sink);
    }
}
