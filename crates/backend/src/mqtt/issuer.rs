//! The consumer that issues commands and receives the replies.

use muster_conduct::{CommandSink, Commander, Diagnostic, MqttSender, RecordingSink};
use muster_model::Micros;
use muster_plan::Plan;
use muster_platform::{CommandScratch, Dialect};
use muster_protocol::mqtt::{Client, topic};

use super::consumer::State;
use super::driver::MqttConsumers;
use crate::consumers::ConsumersSpec;
use crate::northbound::{Context, idle_notices};

/// A reply of nobody, for finding out whether a filter takes replies anyway.
const A_REPLY: &str = "x";

/// The consumer that issues the commands of the run.
#[derive(Debug)]
pub(super) struct Issuer {
    /// The place of the consumer among those of its thread.
    at: usize,
    dialect: Dialect,
    /// Buffers in which a command is rendered.
    scratch: CommandScratch,
    /// The filters of replies and notices that its account's filter does not cover.
    beside: Vec<&'static str>,
}

impl Issuer {
    /// The first consumer of the backend that issues commands, if this thread carries it.
    pub(super) fn new(spec: &ConsumersSpec) -> Option<Self> {
        let issues = |at: usize| spec.plan.backends[at].issues_commands;
        let at = spec
            .seats
            .iter()
            .position(|seat| issues(seat.backend.index()))?;
        let plan = &spec.plan;
        let filter = &plan.backends[spec.seats[at].backend.index()].mqtt()?.filter;
        Some(Self {
            at,
            dialect: plan.platform.dialect(),
            scratch: CommandScratch::default(),
            beside: beside(plan, filter),
        })
    }

    /// The filters to which a consumer subscribes beside its account's.
    pub(super) fn beside(&self, at: usize) -> &[&'static str] {
        if at == self.at { &self.beside } else { &[] }
    }

    /// The sender that sends commands over a session.
    fn sender<'a>(&'a mut self, session: &'a mut Client, out: &'a mut Vec<u8>) -> MqttSender<'a> {
        MqttSender {
            dialect: self.dialect,
            scratch: &mut self.scratch,
            session,
            out,
        }
    }
}

/// A broker may send two copies where two filters of a session overlap (MQTT 5 section 3.3.4), which
/// would count as duplicates that the target never made.
fn beside(plan: &Plan, filter: &str) -> Vec<&'static str> {
    let dialect = plan.platform.dialect();
    let application = &dialect.application;
    let wanted = application.replies.into_iter().chain(application.notices);
    let is_taken = |wanted: &&str| topic::matches(filter, &wanted.replace(['+', '#'], A_REPLY));
    wanted.filter(|wanted| !is_taken(wanted)).collect()
}

impl MqttConsumers {
    /// Issues the commands that are due, if the session can take them.
    pub(super) fn issue_commands(&mut self, cx: &mut Context<'_>) {
        let Some(issuer) = &mut self.issuer else {
            return;
        };
        let at = issuer.at;
        let consumer = &mut self.consumers[at];
        if consumer.state != State::Up || !consumer.waiting.is_empty() {
            return;
        }
        let (from, now) = (self.out.len(), cx.io.now());
        let mut sender = issuer.sender(&mut consumer.session, &mut self.out);
        cx.core.with_commander(|commander, sink| {
            commander.issue(now, &mut sender, sink);
        });
        self.wrap(at, from);
        self.send(cx, at);
    }

    /// The instant at which the next command may be issued; none while the session cannot take one.
    pub(super) fn next_command(&mut self, commander: &mut Commander) -> Option<Micros> {
        let issuer = self.issuer.as_mut()?;
        let consumer = &mut self.consumers[issuer.at];
        let is_up = consumer.state == State::Up && consumer.waiting.is_empty();
        let sender = issuer.sender(&mut consumer.session, &mut self.out);
        commander.next_issue(is_up.then_some(&sender))
    }

    /// Acts on the commander, if this consumer is the one that issues commands.
    pub(super) fn with_commander<T>(
        &self,
        cx: &mut Context<'_>,
        at: usize,
        act: impl FnOnce(&mut Commander, &mut CommandSink<'_, RecordingSink>) -> T,
    ) -> Option<T> {
        let issuer = self.issuer.as_ref()?;
        (issuer.at == at).then(|| cx.core.with_commander(act))?
    }

    /// The connection of a consumer is over.
    pub(super) fn lose_commands(&mut self, cx: &mut Context<'_>, at: usize) {
        let now = cx.io.now();
        let lost = self.with_commander(cx, at, |commander, sink| commander.lost(now, sink));
        if lost.is_some() {
            self.consumers[at].session.drop_inflight(|_, _| {});
        }
    }

    /// Ends what is known of the commands.
    pub(super) fn finish_commands(&mut self, cx: &mut Context<'_>) {
        let Some(issuer) = &mut self.issuer else {
            return;
        };
        let (at, now) = (issuer.at, cx.io.now());
        let sender = issuer.sender(&mut self.consumers[at].session, &mut self.out);
        let idle = cx.core.with_commander(|commander, sink| {
            commander.finish(&sender, now, sink);
            commander.idle_notices()
        });
        if let Some(what) = idle.and_then(idle_notices) {
            let text = format!("{}: {what}", self.name(at));
            cx.core.diagnostics.push(Diagnostic::IdleNotices(text));
        }
    }
}
