//! Recording of commands.

use muster_model::{
    Answer, Answering, Attempt, Command, Issue, Met, Presence, Query, QueryOutcome, Reason,
    Receipt, Reply,
};

use super::{
    CommandWindow, EXPIRED, Leg, UNDELIVERABLE, answering_at, delivery_at, presence_at, query_at,
};
use crate::cells::CellPool;
use crate::copies::Manner;
use crate::live::{Filling, Gauge};
use crate::{Recorder, digest};

/// A copy of a command is in no order with others.
const PLAIN: Manner = Manner {
    is_late: false,
    is_reordered: false,
};

/// The commands of one stream in the making.
#[derive(Debug, Default)]
pub(crate) struct CommandFilling {
    window: CommandWindow,
    request: Gauge,
    request_lower: Gauge,
    request_censored: Gauge,
    response: Gauge,
    response_lower: Gauge,
    response_censored: Gauge,
    round: Gauge,
    lateness: Gauge,
}

impl CommandFilling {
    pub(crate) const GAUGES: usize = 8;
}

impl Filling for CommandFilling {
    type Window = CommandWindow;

    fn take(&mut self, pool: &mut CellPool) -> CommandWindow {
        CommandWindow {
            counts: std::mem::take(&mut self.window.counts),
            legs: std::mem::take(&mut self.window.legs),
            queries: std::mem::take(&mut self.window.queries),
            request: self.request.take(pool),
            request_lower: self.request_lower.take(pool),
            request_censored: self.request_censored.take(pool),
            response: self.response.take(pool),
            response_lower: self.response_lower.take(pool),
            response_censored: self.response_censored.take(pool),
            round: self.round.take(pool),
            lateness: self.lateness.take(pool),
        }
    }
}

impl Recorder {
    /// Records what happened to a query, a command or a reply: each once.
    pub fn command(&mut self, command: &Command) {
        match command {
            Command::Query(query) => self.query(query),
            Command::Issue(issue) => self.issue(issue),
            Command::Met(met) => self.met(met),
            Command::Receipt(receipt) => self.receipt(receipt),
            Command::Answer(answer) => self.answer(answer),
            Command::Reply(reply) => self.reply(reply),
        }
    }

    fn query(&mut self, query: &Query) {
        let stream = query.id.stream;
        if !self.plan.knows(&query.id) {
            return;
        }
        self.identity
            .facts
            .command(stream)
            .count(&Command::Query(*query));
        let sets = self.identity.command_sets(&self.plan, &query.id);
        sets.queries.insert(query_at(&query.outcome), query.id.seq);
        let (ended, due) = (self.key(query.ended), self.key_due(query.due, query.id.seq));
        let took = query.ended - query.due;
        let lower = took - query.own;
        let live = &mut self.commands[stream.index()];
        live.window(ended).window.counts.count_query(&query.outcome);
        let filling = live.window(due);
        filling.window.queries.ends[query_at(&query.outcome)] += 1;
        let leg = &mut filling.window.legs[Leg::Request.index()];
        leg.begun += 1;
        let bounds = &self.plan.streams[stream.index()].bounds.legs[Leg::Request.index()];
        self.published.query(query);
        match query.outcome {
            QueryOutcome::Received | QueryOutcome::Rejected(_) => {
                leg.end(bounds, took, lower);
                filling.request.record(took, &mut self.pool);
                filling.request_lower.record(lower, &mut self.pool);
            }
            QueryOutcome::NoCommand => {
                leg.end(bounds, took, lower);
                filling.request_censored.record(took, &mut self.pool);
            }
            QueryOutcome::TimedOut | QueryOutcome::Broken(_) | QueryOutcome::InFlight => {
                filling.request_censored.record(took, &mut self.pool);
            }
        }
    }

    /// A query that was never sent is none, but it was due, and no command came.
    pub(crate) fn shed_query(&mut self, attempt: &Attempt) {
        let due = self.key_due(attempt.due, attempt.id.seq);
        let filling = self.commands[attempt.id.stream.index()].window(due);
        filling.window.queries.shed += 1;
        filling.window.legs[Leg::Request.index()].begun += 1;
        let took = attempt.ended - attempt.due;
        filling.request_censored.record(took, &mut self.pool);
    }

    fn issue(&mut self, issue: &Issue) {
        let (id, stream) = (&issue.id, issue.id.stream);
        if !self.plan.knows(id) {
            return;
        }
        let facts = self.identity.facts.command(stream);
        facts.count(&Command::Issue(*issue));
        let message = digest(id);
        if issue.issued.is_some() {
            facts.issued.add(message);
        }
        let sets = self.identity.command_sets(&self.plan, id);
        sets.issues.insert(delivery_at(&issue.delivery), id.seq);
        let has_reply = sets.replies.arrived.contains(id.seq);
        let is_excused = issue.delivery.excuses_the_reply() && !has_reply;
        if issue.delivery == muster_model::Delivery::Delivered {
            self.progress.commands.delivered.add(message);
        }
        let ended = self.key(issue.ended);
        let begun = self.key_due(issue.issued.unwrap_or(issue.due), id.seq);
        let due = self.key(issue.due);
        let live = &mut self.commands[stream.index()];
        live.window(ended)
            .window
            .counts
            .issues
            .count(&issue.delivery);
        let leg = &mut live.window(begun).window.legs[Leg::Loop.index()];
        leg.begun += 1;
        leg.excused += u64::from(is_excused);
        if let Some(issued) = issue.issued {
            let lateness = issued - issue.ready;
            live.window(due).lateness.record(lateness, &mut self.pool);
        }
    }

    fn met(&mut self, met: &Met) {
        if !self.plan.knows(&met.id) {
            return;
        }
        let stream = met.id.stream;
        self.identity
            .facts
            .command(stream)
            .count(&Command::Met(*met));
        let sets = self.identity.command_sets(&self.plan, &met.id);
        sets.met.insert(presence_at(met.presence), met.id.seq);
        let due = self.key(met.due);
        let filling = self.commands[stream.index()].window(due);
        filling.window.counts.met[presence_at(met.presence)] += 1;
    }

    fn receipt(&mut self, receipt: &Receipt) {
        let Some(live) = self.commands.get_mut(receipt.stream.index()) else {
            return;
        };
        let facts = self.identity.facts.command(receipt.stream);
        facts.taken += 1;
        facts.count(&Command::Receipt(*receipt));
        let at = receipt.at;
        let key = crate::WindowKey {
            second: at.second(),
            phase: self.timeline.phase(at),
            cold: false,
        };
        let counts = &mut live.window(key).window.counts;
        let Some(id) = receipt.id else {
            counts.damaged += 1;
            return;
        };
        let is_its = id.device == receipt.device && id.stream == receipt.stream;
        if !is_its || !self.plan.knows(&id) {
            self.identity.commands[receipt.stream.index()].foreign += 1;
            counts.foreign += 1;
            return;
        }
        let sets = self.identity.command_sets(&self.plan, &id);
        let last = &mut self.progress.commands.last;
        *last = (*last).max(Some(at));
        if !sets.received.arrive(id.seq, PLAIN) {
            counts.again += 1;
            return;
        }
        counts.received += 1;
        let was_offline = sets.met.has(presence_at(Presence::Offline), id.seq);
        let link = self.plan.link_of(id.stream, id.device);
        if let Some(link) = link.filter(|_| was_offline) {
            let drains = &mut self.identity.drains;
            drains.kept_came(link, (id.stream, id.device), at);
        }
        let message = digest(&id);
        self.identity.facts.command(id.stream).received.add(message);
        self.progress.commands.received.add(message);
    }

    fn answer(&mut self, answer: &Answer) {
        let (id, stream) = (&answer.id, answer.id.stream);
        if !self.plan.knows(id) {
            return;
        }
        let facts = self.identity.facts.command(stream);
        facts.count(&Command::Answer(*answer));
        let message = digest(id);
        if answer.sent.is_some() {
            facts.replied.add(message);
        }
        let sets = self.identity.command_sets(&self.plan, id);
        sets.answers.insert(answering_at(&answer.outcome), id.seq);
        self.published.answer(answer);
        let (ended, due) = (self.key(answer.ended), self.key_due(answer.due, id.seq));
        let took = answer.ended - answer.due;
        let lower = took - answer.own;
        let live = &mut self.commands[stream.index()];
        live.window(ended)
            .window
            .counts
            .count_answer(&answer.outcome);
        let filling = live.window(due);
        let leg = &mut filling.window.legs[Leg::Response.index()];
        leg.begun += u64::from(answer.outcome != Answering::OneWay);
        match answer.outcome {
            Answering::Answered | Answering::Rejected(_) => {
                let bounds = &self.plan.streams[stream.index()].bounds.legs;
                leg.end(&bounds[Leg::Response.index()], took, lower);
                filling.response.record(took, &mut self.pool);
                filling.response_lower.record(lower, &mut self.pool);
                if answer.outcome == Answering::Answered {
                    self.progress.commands.answered.add(message);
                }
            }
            Answering::OneWay => {}
            Answering::TimedOut
            | Answering::Broken(_)
            | Answering::InFlight
            | Answering::Shed(_) => filling.response_censored.record(took, &mut self.pool),
        }
    }

    fn reply(&mut self, reply: &Reply) {
        if reply.stream.index() >= self.commands.len() {
            return;
        }
        let begun = reply.id.zip(reply.issued);
        let begun = begun.map(|(id, at)| self.key_due(at, id.seq));
        let seen = self.key(reply.seen);
        let facts = self.identity.facts.command(reply.stream);
        facts.replies_taken += 1;
        facts.count(&Command::Reply(*reply));
        let live = &mut self.commands[reply.stream.index()];
        let counts = &mut live.window(seen).window.counts;
        let Some(id) = reply.id else {
            counts.replies_damaged += 1;
            return;
        };
        if id.stream != reply.stream || !self.plan.knows(&id) {
            self.identity.commands[reply.stream.index()].replies_foreign += 1;
            counts.replies_foreign += 1;
            return;
        }
        let sets = self.identity.command_sets(&self.plan, &id);
        let is_first = sets.replies.arrive(id.seq, PLAIN);
        let is_excused = [EXPIRED, UNDELIVERABLE]
            .iter()
            .any(|end| sets.issues.has(*end, id.seq));
        sets.replies.next = sets.replies.next.max(id.seq + 1);
        self.identity.last_reply = self.identity.last_reply.max(Some(reply.seen));
        let last = &mut self.progress.commands.last;
        *last = (*last).max(Some(reply.seen));
        if !is_first {
            counts.replies_again += 1;
            return;
        }
        counts.replies += 1;
        if let Some(status) = reply.status {
            let status = Reason::Application(status);
            counts.replies_by_status.add(status, 1);
        }
        self.progress.commands.replies.add(digest(&id));
        if let Some((begun, issued)) = begun.zip(reply.issued) {
            let took = reply.seen - issued;
            let filling = live.window(begun);
            if !is_excused {
                let bounds = &self.plan.streams[id.stream.index()].bounds.legs;
                let leg = &mut filling.window.legs[Leg::Loop.index()];
                leg.end(&bounds[Leg::Loop.index()], took, took);
            }
            filling.round.record(took, &mut self.pool);
        }
    }
}
