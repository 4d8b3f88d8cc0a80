//! The consumer that issues commands and receives the replies.

use muster_conduct::{Commander, MqttSender};
use muster_model::Micros;
use muster_plan::Plan;
use muster_platform::{CommandScratch, Dialect};
use muster_protocol::mqtt::{Client, topic};

use super::driver::MqttConsumers;
use crate::consumers::ConsumersSpec;
use crate::northbound::Context;

/// Stands for a device in the topic of a reply, to find out whether a filter covers replies.
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
    further_filters: Vec<&'static str>,
}

impl Issuer {
    /// The first consumer of the backend that issues commands, if this thread carries it.
    pub(super) fn new(spec: &ConsumersSpec) -> Option<Self> {
        let issues = |at: usize| spec.plan.backends[at].issues_commands;
        let at = spec
            .consumers
            .iter()
            .position(|consumer| issues(consumer.backend.index()))?;
        let plan = &spec.plan;
        let filter = &plan.backends[spec.consumers[at].backend.index()]
            .mqtt()?
            .filter;
        Some(Self {
            at,
            dialect: plan.platform.dialect(),
            scratch: CommandScratch::default(),
            further_filters: further_filters(plan, filter),
        })
    }

    /// Returns the place of the consumer among those of its thread.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Returns the filters to which a consumer subscribes besides that of its account.
    pub(super) fn further_filters(&self, at: usize) -> &[&'static str] {
        if at == self.at {
            &self.further_filters
        } else {
            &[]
        }
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
fn further_filters(plan: &Plan, filter: &str) -> Vec<&'static str> {
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
        let link = &mut self.links[at];
        if !link.connection.is_clear() {
            return;
        }
        let (from, now) = (self.out.len(), cx.io.now());
        let mut sender = issuer.sender(link.session.client(), &mut self.out);
        cx.core.with_commander(at, |commander, sink| {
            commander.issue(now, &mut sender, sink);
        });
        self.wrap(at, from);
        self.send(cx, at);
    }

    /// The instant at which the next command may be issued; none while the session cannot take one.
    pub(super) fn next_command(&mut self, commander: &mut Commander) -> Option<Micros> {
        let issuer = self.issuer.as_mut()?;
        let link = &mut self.links[issuer.at];
        let is_clear = link.connection.is_clear();
        let sender = issuer.sender(link.session.client(), &mut self.out);
        commander.next_issue(is_clear.then_some(&sender))
    }

    /// The connection of a consumer is over.
    pub(super) fn lose_commands(&mut self, cx: &mut Context<'_>, at: usize) {
        let now = cx.io.now();
        let lost = cx
            .core
            .with_commander(at, |commander, sink| commander.lost(now, sink));
        if lost.is_some() {
            self.links[at].session.client().drop_inflight(|_, _| {});
        }
    }

    /// Ends what is known of the commands.
    pub(super) fn finish_commands(&mut self, cx: &mut Context<'_>) {
        let Some(issuer) = &mut self.issuer else {
            return;
        };
        let (at, now) = (issuer.at, cx.io.now());
        let sender = issuer.sender(self.links[at].session.client(), &mut self.out);
        cx.core.finish_commands(at, &sender, now);
    }
}
