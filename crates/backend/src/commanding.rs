//! The consumer that issues commands and hears the replies.

use muster_conduct::{CommandToken, Commander, Desk, MqttCourier, Tape, Trouble};
use muster_model::{Delivery, MessageId, Micros, figure};
use muster_net::Io;
use muster_platform::{CommandScratch, Dialect};
use muster_protocol::mqtt::{Message, Token, topic};
use muster_scenario::Plan;

use crate::consumers::{ConsumersSpec, State};
use crate::driver::Driver;

/// A reply of nobody, for finding out whether a filter takes replies anyway.
const A_REPLY: &str = "x";

/// One of the consumers issues the commands of the run.
#[derive(Debug)]
pub(crate) struct Commanding {
    commander: Commander,
    /// Which consumer.
    at: usize,
    dialect: Dialect,
    /// Where a command is rendered.
    scratch: CommandScratch,
    /// What it subscribes to for replies and notices, but for what its account's filter takes.
    beside: Vec<&'static str>,
}

impl Commanding {
    /// The first consumer of the backend that issues commands, if this process carries it.
    pub(crate) fn of(spec: &ConsumersSpec, wall_ms_at_t0: u64) -> Option<Self> {
        let issues = |at: usize| spec.plan.backends[at].issues_commands;
        let at = spec
            .seats
            .iter()
            .position(|seat| issues(seat.backend.index()))?;
        let plan = &spec.plan;
        let filter = &plan.backends[spec.seats[at].backend.index()].mqtt()?.filter;
        Some(Self {
            commander: Commander::new(plan, &spec.schedules, spec.run, wall_ms_at_t0)?,
            at,
            dialect: plan.platform.dialect(),
            scratch: CommandScratch::default(),
            beside: beside(plan, filter),
        })
    }

    /// What a consumer subscribes to beside its account's filter.
    pub(crate) fn beside(&self, at: usize) -> &[&'static str] {
        if at == self.at { &self.beside } else { &[] }
    }
}

/// A broker may send two copies where two filters of a session overlap (MQTT 5 section 3.3.4), which
/// would count as duplicates that the target never made.
fn beside(plan: &Plan, filter: &str) -> Vec<&'static str> {
    let dialect = plan.platform.dialect();
    let wanted = dialect
        .application
        .replies
        .into_iter()
        .chain(dialect.application.notices);
    let is_taken = |wanted: &&str| topic::matches(filter, &wanted.replace(['+', '#'], A_REPLY));
    wanted.filter(|wanted| !is_taken(wanted)).collect()
}

/// What is told of so many notices of delivery that changed nothing, if there were any.
pub(crate) fn idle_notices(count: u64) -> Option<String> {
    let told = figure::count(count);
    let why = "came after the reply, a second time or too late";
    (count > 0).then(|| format!("{told} notices of delivery {why}"))
}

impl Driver {
    /// Issues what is due, if the session can take it.
    pub(crate) fn command(&mut self, io: &mut Io) {
        let Some(commanding) = &mut self.commanding else {
            return;
        };
        let at = commanding.at;
        let consumer = &mut self.consumers[at];
        if consumer.state != State::Up || !consumer.waiting.is_empty() {
            return;
        }
        let mut desk = self.intake.desk();
        let from = self.out.len();
        let mut courier = MqttCourier {
            dialect: commanding.dialect,
            scratch: &mut commanding.scratch,
            session: &mut consumer.session,
            out: &mut self.out,
        };
        let commander = &mut commanding.commander;
        commander.issue(io.now(), &mut courier, &mut desk);
        self.wrap(at, from);
        self.send(io, at);
    }

    /// When the next command may be issued; none while the session cannot take one.
    pub(crate) fn next_command(&mut self) -> Option<Micros> {
        let commanding = self.commanding.as_mut()?;
        let consumer = &mut self.consumers[commanding.at];
        let is_up = consumer.state == State::Up && consumer.waiting.is_empty();
        let courier = MqttCourier {
            dialect: commanding.dialect,
            scratch: &mut commanding.scratch,
            session: &mut consumer.session,
            out: &mut self.out,
        };
        commanding.commander.next_issue(is_up.then_some(&courier))
    }

    /// Commands on which no notice is to be expected any more have none.
    pub(crate) fn expire_commands(&mut self, now: Micros) {
        if let Some(commanding) = &mut self.commanding {
            let mut desk = self.intake.desk();
            commanding.commander.expire(now, &mut desk);
        }
    }

    /// Commands of which not all is known.
    pub(crate) fn open_commands(&self) -> u64 {
        let commanding = self.commanding.as_ref();
        commanding.map_or(0, |commanding| commanding.commander.open())
    }

    pub(crate) fn start_commands(&mut self, origin: Micros) {
        if let Some(commanding) = &mut self.commanding {
            commanding.commander.start(origin);
        }
    }

    /// Nothing is due at or after `at`.
    pub(crate) fn end_due(&mut self, at: Micros) {
        if let Some(commanding) = &mut self.commanding {
            commanding.commander.end_due(at);
        }
        let recorder = self.intake.tape.recorder();
        if at < recorder.timeline().settle {
            recorder.stop(at);
        }
    }

    /// The platform's word on a command.
    pub(crate) fn command_known(
        &mut self,
        at: usize,
        token: Token,
        delivery: Delivery,
        now: Micros,
    ) {
        self.with_commander(at, |commander, desk| {
            commander.learn(CommandToken(token.0), delivery, now, desk);
        });
    }

    /// A message of a device came, which may ask for a command.
    pub(crate) fn command_asked(&mut self, at: usize, id: &MessageId, now: Micros) {
        self.with_commander(at, |commander, desk| {
            commander.asked(id, now, desk);
        });
    }

    /// Whether a message is a reply to a command, which is then told.
    pub(crate) fn is_reply(&mut self, at: usize, seen: Micros, message: &Message<'_>) -> bool {
        self.with_commander(at, |commander, desk| {
            commander.replied(message.topic.as_str(), message.payload, seen, desk)
        })
        .unwrap_or(false)
    }

    /// The connection of a consumer is over.
    pub(crate) fn lose_commands(&mut self, now: Micros, at: usize) {
        if let Some(commanding) = self.commanding.as_mut().filter(|known| known.at == at) {
            let mut desk = self.intake.desk();
            self.consumers[at].session.drop_inflight(|_, _| {});
            commanding.commander.lost(now, &mut desk);
        }
    }

    pub(crate) fn finish_commands(&mut self, now: Micros) {
        if let Some(commanding) = &mut self.commanding {
            let mut desk = self.intake.desk();
            let courier = MqttCourier {
                dialect: commanding.dialect,
                scratch: &mut commanding.scratch,
                session: &mut self.consumers[commanding.at].session,
                out: &mut self.out,
            };
            commanding.commander.finish(&courier, now, &mut desk);
            let (at, idle) = (commanding.at, commanding.commander.idle_notices());
            if let Some(what) = idle_notices(idle) {
                let text = format!("{}: {what}", self.name(at));
                self.troubles.push(Trouble::IdleNotices(text));
            }
        }
    }

    fn with_commander<T>(
        &mut self,
        at: usize,
        act: impl FnOnce(&mut Commander, &mut Desk<'_, Tape>) -> T,
    ) -> Option<T> {
        let commanding = self.commanding.as_mut().filter(|known| known.at == at)?;
        let mut desk = self.intake.desk();
        Some(act(&mut commanding.commander, &mut desk))
    }
}
