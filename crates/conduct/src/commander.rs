//! The business application's half of command and control, without a socket or a clock.

mod command_sender;
mod commanded;
mod notices;
mod returning;

use std::collections::VecDeque;
use std::sync::Arc;

use muster_device::Sink;
use muster_load::{AddedHold, Cursor, StreamSchedule};
use muster_measure::{Account, digest};
use muster_model::{
    ABSENT, Command, CommandTarget, Delivery, Issue, MessageId, Micros, RunId, ShedCause, Stamp,
    StreamId,
};
use muster_plan::{FleetPlan, Plan, StreamKind, StreamPlan};
use muster_platform::{Dialect, OutboundCommand};

pub use command_sender::{CommandSender, CommandToken, MqttSender, Untaken, delivery_by_puback};

pub use notices::NOTICE_WAIT;

use commanded::{Commanded, NextCommand};
use notices::Notices;

use crate::directory;

/// Most commands without an answer: far more than a platform that answers leaves open.
const PENDING_MAX: usize = 16_384;
/// The wait after a command that a sender with room did not take: to ask at once again would never end.
const UNTAKEN_WAIT: Micros = Micros::from_millis(1);
/// Most queries that wait for their commands while the session cannot send.
const ASKED_MAX: usize = 65_536;

/// Issues the commands of a run.
#[derive(Debug)]
pub struct Commander {
    run: RunId,
    dialect: Dialect,
    streams: Vec<Commanded>,
    origin: Option<Micros>,
    end: Micros,
    /// By token; none where it is free.
    pending: Vec<Option<Pending>>,
    free: Vec<u32>,
    notices: Notices,
    name: String,
}

/// A command whose delivery is not final.
#[derive(Debug, Clone, Copy)]
struct Pending {
    id: MessageId,
    due: Micros,
    ready: Micros,
    issued: Micros,
    /// Instant at which the platform accepted it, if it has.
    taken: Option<Micros>,
    /// Delivery that a notice or a reply reported before that.
    word: Option<Delivery>,
}

/// Receives the events of commands.
pub struct CommandSink<'a, S> {
    /// Counts of this thread.
    pub account: &'a mut Account,
    /// Receives the facts.
    pub sink: &'a mut S,
}

impl<S: Sink> CommandSink<'_, S> {
    fn report(&mut self, stream: StreamId, command: Command) {
        self.account.command(stream).count(&command);
        self.sink.command(&command);
    }

    /// Records a command that was never issued.
    fn withhold(&mut self, id: MessageId, due: Micros, now: Micros, cause: ShedCause) {
        let issue = Issue {
            id,
            due,
            ready: due,
            issued: None,
            ended: now,
            delivery: Delivery::Withheld(cause),
        };
        self.report(id.stream, Command::Issue(issue));
    }
}

impl Commander {
    /// Returns the commander of a plan, or none if no stream takes commands.
    pub fn new(
        plan: &Plan,
        schedules: &[Arc<StreamSchedule>],
        run: RunId,
        wall_ms_at_t0: u64,
    ) -> Option<Self> {
        let commanded = |fleet: &FleetPlan, stream: &StreamPlan| {
            let StreamKind::Command { to, is_two_way, .. } = stream.kind else {
                return None;
            };
            let schedule = Arc::clone(&schedules[stream.id.index()]);
            let devices = schedule.devices();
            let follows = to == CommandTarget::Waiting;
            let per_device = || vec![0; if follows { fleet.devices as usize } else { 0 }];
            let queries = fleet
                .streams
                .iter()
                .filter(|other| follows && matches!(other.kind, StreamKind::CommandQuery { .. }));
            Some(Commanded {
                id: stream.id,
                directory: directory(plan, fleet, wall_ms_at_t0),
                is_two_way,
                to,
                cursor: Cursor::new(schedule, devices),
                next: per_device(),
                queries: queries.map(|query| (query.id, per_device())).collect(),
                asked: VecDeque::new(),
                is_held: true,
                held_until: Micros::ZERO,
                again_at: None,
            })
        };
        let streams = plan.streams();
        let streams: Vec<Commanded> = streams
            .filter_map(|(fleet, stream)| commanded(fleet, stream))
            .collect();
        if streams.is_empty() {
            return None;
        }
        Some(Self {
            run,
            dialect: plan.platform.dialect(),
            streams,
            origin: None,
            end: Micros::MAX,
            pending: Vec::new(),
            free: Vec::new(),
            notices: Notices::new(plan),
            name: String::new(),
        })
    }

    /// Begins the warm-up at `origin`.
    pub fn start(&mut self, origin: Micros) {
        self.origin = Some(origin);
    }

    /// Goes on with the commands of another hold.
    pub fn add_hold(&mut self, hold: &AddedHold) {
        for stream in &mut self.streams {
            stream.cursor.add_hold(hold);
        }
    }

    /// Ends the schedule at `at`; later queries are still answered, since they were due before.
    pub fn end_due(&mut self, at: Micros) {
        self.end = self.end.min(at);
    }

    /// Number of commands without an answer from the platform and of queries without a command.
    pub fn open(&self) -> u64 {
        (self.pending.len() - self.free.len() + self.asked_count()) as u64
    }

    fn asked_count(&self) -> usize {
        self.streams.iter().map(|stream| stream.asked.len()).sum()
    }

    /// Returns when the next command may be issued; none without a command or without room.
    pub fn next_issue(&mut self, sender: Option<&impl CommandSender>) -> Option<Micros> {
        let sender = sender.filter(|sender| self.can_issue(*sender));
        let has_room = |stream: &Commanded| {
            sender.is_some_and(|sender| sender.has_room_for(stream.directory.tenant()))
        };
        for stream in &mut self.streams {
            stream.is_held |= !has_room(stream);
        }
        let due = self.peek(|stream| stream.again_at.is_none() && has_room(stream));
        let again = self.peek(|stream| stream.again_at.is_some() && has_room(stream));
        let again = again.and_then(|next| self.streams[next.place].again_at);
        let due = due.map(|next| next.due);
        [due, again].into_iter().flatten().min()
    }

    /// Issues every due command for which the sender has room. A command that has to wait holds back the later ones
    /// of its stream alone, until the next turn.
    pub fn issue(
        &mut self,
        now: Micros,
        sender: &mut impl CommandSender,
        sink: &mut CommandSink<'_, impl Sink>,
    ) {
        if !self.can_issue(sender) {
            return;
        }
        for stream in &mut self.streams {
            stream.again_at = None;
            let is_ready = sender.has_room_for(stream.directory.tenant());
            if is_ready && std::mem::take(&mut stream.is_held) {
                stream.held_until = now;
            }
        }
        while self.can_issue(sender) {
            let next = self
                .peek(|stream| !stream.is_held && sender.has_room_for(stream.directory.tenant()));
            let Some(next) = next.filter(|next| next.due <= now) else {
                return;
            };
            match self.hand_over(&next, now, sender) {
                Ok(()) => {
                    let account = sink.account.command(next.id.stream);
                    account.issued.add(digest(&next.id));
                }
                Err(Untaken::Yet) => {
                    let stream = &mut self.streams[next.place];
                    stream.is_held = true;
                    stream.again_at = Some(now + UNTAKEN_WAIT);
                    continue;
                }
                Err(Untaken::Ever) => {
                    sink.withhold(next.id, next.due, now, ShedCause::Unsendable);
                }
            }
            self.streams[next.place].advance();
        }
    }

    /// Returns true if there is room for a command of some stream.
    fn can_issue(&self, sender: &impl CommandSender) -> bool {
        let has_place = !self.free.is_empty() || self.pending.len() < PENDING_MAX;
        has_place && sender.has_room()
    }

    /// Ends the commands that the platform had not accepted when the connection ended. The sender must
    /// forget them, so that none is sent twice. Notices of accepted commands may still come.
    pub fn lost(&mut self, now: Micros, sink: &mut CommandSink<'_, impl Sink>) {
        for token in 0..self.pending.len() as u32 {
            let known = self.pending_at(token).filter(|it| it.taken.is_none());
            if let Some(word) = known.map(|pending| pending.word) {
                self.end(token, word.unwrap_or(Delivery::Unknown), now, sink);
            }
        }
    }

    /// Queues one command for a received query, or withholds it if too many queries wait.
    pub fn asked(&mut self, query: &MessageId, now: Micros, sink: &mut CommandSink<'_, impl Sink>) {
        if query.run != self.run {
            return;
        }
        let has_place = self.asked_count() < ASKED_MAX;
        for stream in &mut self.streams {
            let slot = query
                .device
                .0
                .wrapping_sub(stream.directory.first_device().0);
            let seen = stream
                .queries
                .iter_mut()
                .find(|(id, _)| *id == query.stream);
            let Some(seen) = seen.and_then(|(_, seen)| seen.get_mut(slot as usize)) else {
                continue;
            };
            // A further copy, or one that was overtaken: its device asks no more. One that comes after the
            // last message was due asks still.
            if query.seq < *seen {
                return;
            }
            *seen = query.seq.saturating_add(1);
            if has_place {
                stream.asked.push_back((query.device, now));
                return;
            }
            let next = &mut stream.next[slot as usize];
            let id = MessageId {
                stream: stream.id,
                seq: *next,
                ..*query
            };
            *next += 1;
            sink.withhold(id, now, now, ShedCause::GeneratorLimit);
            return;
        }
    }

    /// Ends every command: unknown if issued, else withheld with its cause.
    pub fn finish(
        &mut self,
        sender: &impl CommandSender,
        now: Micros,
        sink: &mut CommandSink<'_, impl Sink>,
    ) {
        let had_place = self.can_issue(sender);
        self.close(now, sink);
        while let Some(next) = self.peek(|_| true).filter(|next| next.due <= now) {
            let stream = &mut self.streams[next.place];
            let cause = if !sender.is_connected() {
                ShedCause::Offline
            } else if had_place && sender.has_room_for(stream.directory.tenant()) {
                ShedCause::GeneratorLate
            } else {
                ShedCause::Window
            };
            sink.withhold(next.id, next.due, now, cause);
            stream.advance();
        }
    }

    /// Returns the next command of these streams.
    fn peek(&self, of: impl Fn(&Commanded) -> bool) -> Option<NextCommand> {
        let streams = self.streams.iter().enumerate();
        let next = streams.filter_map(|(place, stream)| {
            let (device, seq, due) = stream.next(self.origin, self.end)?;
            let id = MessageId {
                run: self.run,
                device,
                stream: stream.id,
                seq,
            };
            of(stream).then_some(NextCommand { place, id, due })
        });
        next.min_by_key(|next| next.due)
    }

    fn hand_over(
        &mut self,
        next: &NextCommand,
        now: Micros,
        sender: &mut impl CommandSender,
    ) -> Result<(), Untaken> {
        let NextCommand { place, id, due } = *next;
        let stream = &self.streams[place];
        stream.directory.render_name(id.device, &mut self.name);
        if stream.to.is_absent(id.device, id.seq) {
            self.name.push_str(ABSENT);
        }
        let to = OutboundCommand {
            stamp: &Stamp { id, due: Some(now) },
            device: &self.name,
            tenant: stream.directory.tenant(),
            is_two_way: stream.is_two_way,
        };
        let is_two_way = stream.is_two_way;
        let token = self.free.last().copied();
        let token = token.unwrap_or(self.pending.len() as u32);
        sender.take(now, CommandToken(token), &to)?;
        let pending = Some(Pending {
            id,
            due,
            ready: due.max(self.streams[place].held_until),
            issued: now,
            taken: None,
            word: None,
        });
        if is_two_way {
            self.notices.await_word(id, token);
        }
        match self.free.pop() {
            Some(place) => self.pending[place as usize] = pending,
            None => {
                self.pending.push(pending);
                // Every place may be free one day, and then nothing shall be allocated.
                self.free.reserve(self.pending.capacity());
            }
        }
        Ok(())
    }

    /// Takes the sender's result. Success is not final while the platform may still report a failure.
    pub fn learn(
        &mut self,
        CommandToken(token): CommandToken,
        delivery: Delivery,
        now: Micros,
        sink: &mut CommandSink<'_, impl Sink>,
    ) {
        let place = self.pending.get_mut(token as usize);
        let Some(pending) = place.and_then(Option::as_mut) else {
            return;
        };
        let is_awaited = self.notices.token(&pending.id).is_some();
        if delivery == Delivery::Delivered && pending.word.is_none() && is_awaited {
            pending.taken = Some(now);
            return;
        }
        let last = pending.word.unwrap_or(delivery);
        self.end(token, last, now, sink);
    }

    fn pending_at(&self, token: u32) -> Option<&Pending> {
        self.pending.get(token as usize)?.as_ref()
    }

    /// Ends a command whose delivery is final.
    fn end(
        &mut self,
        token: u32,
        delivery: Delivery,
        now: Micros,
        sink: &mut CommandSink<'_, impl Sink>,
    ) {
        let place = self.pending.get_mut(token as usize);
        let Some(pending) = place.and_then(Option::take) else {
            return;
        };
        self.free.push(token);
        self.notices.forget(&pending.id);
        let issue = Issue {
            id: pending.id,
            due: pending.due,
            ready: pending.ready,
            issued: Some(pending.issued),
            ended: now,
            delivery,
        };
        sink.report(issue.id.stream, Command::Issue(issue));
    }
}

#[cfg(test)]
mod tests {
    use muster_measure::Counts;
    use muster_model::{Attempt, DeviceId, LinkFact, LinkId, Reception};
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    const QUERIES: &str = "
name: asks
platform: { backend: { filter: \"muster/#\", commands: { to: waiting } } }
fleet: [{ name: pumps, count: 1, streams: [
  { name: asks, kind: command-query, every: 1s, ttd: 400ms }, { kind: command } ] }]
phases: { measure: 1s }
";

    /// Keeps what became of commands.
    #[derive(Default)]
    struct Ends(Vec<Delivery>, Counts);

    impl Sink for Ends {
        fn attempt(&mut self, _: &Attempt) {}
        fn command(&mut self, command: &Command) {
            if let Command::Issue(issue) = command {
                self.0.push(issue.delivery);
            }
        }
        fn reception(&mut self, _: &Reception) {}
        fn link(&mut self, _: &LinkFact) {}
        fn opened(&mut self, _: LinkId, _: Micros) {}
        fn counts(&mut self, _: StreamId, _: Micros) -> &mut Counts {
            &mut self.1
        }
    }

    #[test]
    fn a_query_that_comes_after_the_last_message_was_due_is_answered() {
        let (name, text) = ("asks.yaml", QUERIES);
        let plan = parse(Source { name, text }, &Overrides::default(), &NoFiles).unwrap();
        let (run, schedules) = (RunId(1), crate::schedules(&plan).unwrap());
        let mut commander = Commander::new(&plan, &schedules, run, 0).unwrap();
        let mut account = Account::new(&crate::recorder_plan(&plan, run, &schedules));
        let query = MessageId {
            run,
            device: DeviceId(0),
            stream: StreamId(0),
            seq: 0,
        };
        commander.end_due(Micros(1));
        let (account, sink) = (&mut account, &mut Ends::default());
        commander.asked(&query, Micros(2), &mut CommandSink { account, sink });
        assert_eq!(commander.open(), 1);
    }

    #[test]
    fn the_command_of_a_query_for_which_there_is_no_room_is_withheld_and_told() {
        let (name, text) = ("asks.yaml", QUERIES);
        let plan = parse(Source { name, text }, &Overrides::default(), &NoFiles).unwrap();
        let (run, schedules) = (RunId(1), crate::schedules(&plan).unwrap());
        let mut commander = Commander::new(&plan, &schedules, run, 0).unwrap();
        let mut account = Account::new(&crate::recorder_plan(&plan, run, &schedules));
        let mut sink = Ends::default();
        for seq in 0..=ASKED_MAX as u32 {
            let (account, sink) = (&mut account, &mut sink);
            let (device, stream) = (DeviceId(0), StreamId(0));
            let query = MessageId {
                run,
                device,
                stream,
                seq,
            };
            commander.asked(&query, Micros(1), &mut CommandSink { account, sink });
        }
        assert_eq!(commander.open(), ASKED_MAX as u64);
        assert_eq!(sink.0, [Delivery::Withheld(ShedCause::GeneratorLimit)]);
    }

    /// Has room for every tenant, and takes no command of `held`.
    struct Holding {
        held: &'static str,
        taken: Vec<String>,
    }

    impl CommandSender for Holding {
        fn is_connected(&self) -> bool {
            true
        }
        fn has_room(&self) -> bool {
            true
        }
        fn take(
            &mut self,
            _: Micros,
            _: CommandToken,
            command: &OutboundCommand<'_>,
        ) -> Result<(), Untaken> {
            if command.tenant == self.held {
                return Err(Untaken::Yet);
            }
            self.taken.push(command.tenant.to_owned());
            Ok(())
        }
    }

    #[test]
    fn a_command_that_is_not_taken_holds_back_its_stream_alone() {
        let fleet = |tenant| {
            let streams = "[ { name: r, rate: 1/s }, { kind: command } ]";
            format!("{{ name: {tenant}, count: 1, tenant: {tenant}, streams: {streams} }}")
        };
        let text = format!(
            "
name: tenants
platform: {{ kind: gateway, dialect: hono, devices: [ 'coap://127.0.0.1:0' ], backend: {{ url: 'amqp://127.0.0.1:0', commands: {{ rate: 1/s }} }} }}
fleet: [ {}, {} ]
phases: {{ measure: 10s }}
",
            fleet("t1"),
            fleet("t2")
        );
        let (name, text) = ("tenants.yaml", text.as_str());
        let plan = parse(Source { name, text }, &Overrides::default(), &NoFiles).unwrap();
        let (run, schedules) = (RunId(1), crate::schedules(&plan).unwrap());
        let mut commander = Commander::new(&plan, &schedules, run, 0).unwrap();
        let mut account = Account::new(&crate::recorder_plan(&plan, run, &schedules));
        commander.start(Micros::ZERO);
        let (held, taken) = ("t1", Vec::new());
        let mut sender = Holding { held, taken };
        let mut turn = |second, sender: &mut Holding| {
            let (account, sink) = (&mut account, &mut Ends::default());
            let mut sink = CommandSink { account, sink };
            commander.issue(Micros::from_secs(second), sender, &mut sink);
            commander.next_issue(Some(sender)).expect("more are due")
        };
        let next = turn(3, &mut sender);
        assert_eq!(sender.taken, ["t2"; 2]);
        let soon = Micros::from_secs(3) + UNTAKEN_WAIT;
        assert_eq!(next, soon, "not at once, which would not end");
        sender.held = "none";
        let next = turn(3, &mut sender);
        assert_eq!(sender.taken[2..], ["t1"; 2]);
        assert!(next > soon, "by its schedule");
    }
}
