//! Issues commands and learns what becomes of them: the business application's half of command and
//! control, without a socket and a clock.

mod courier;
mod notices;

use std::collections::VecDeque;
use std::sync::Arc;

use muster_device::Sink;
use muster_load::{Cursor, StreamSchedule};
use muster_measure::{Account, digest};
use muster_model::{
    ABSENT, Command, CommandTarget, Delivery, DeviceId, Integrity, Issue, MessageId, Micros, Reply,
    RunId, ShedCause, Stamp, StreamId,
};
use muster_plan::{FleetPlan, Plan, StreamKind, StreamPlan};
use muster_platform::{CommandCopy, Dialect, OutboundCommand, Returned, Roster};

pub use courier::{CommandToken, Courier, MqttCourier, Untaken, delivery_by_puback};

pub use notices::NOTICE_WAIT;
use notices::Notices;

use crate::roster;

/// Commands that may wait for the platform's word at once: as many as MQTT lets a peer take, and
/// far more than one session has under way on a platform that answers.
const PENDING_MAX: usize = 16_384;
/// Queries that may wait for their commands while the session cannot send. A device has one at a
/// time, and a further one once that has timed out.
const ASKED_MAX: usize = 65_536;

/// Who issues the commands of a run.
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
    asked: VecDeque<(usize, DeviceId, Micros)>,
    /// Whether the session could take nothing when it was last asked.
    is_held: bool,
    /// When it could again: what waited for it till then is not late.
    held_until: Micros,
    name: String,
}

/// One stream of kind `command`.
#[derive(Debug)]
struct Commanded {
    id: StreamId,
    roster: Roster,
    is_two_way: bool,
    to: CommandTarget,
    cursor: Cursor,
    /// By device, the number of its next command, and of its queries that have come; for commands
    /// that follow queries.
    next: Vec<u32>,
    /// The queries of its fleet, by what was seen of each device's.
    queries: Vec<(StreamId, Vec<u32>)>,
}

/// A command of which not all is known that the platform may say.
#[derive(Debug, Clone, Copy)]
struct Pending {
    id: MessageId,
    due: Micros,
    ready: Micros,
    issued: Micros,
    /// When the platform took it; none while it has not said so.
    taken: Option<Micros>,
    /// What a notice or a reply told before that.
    word: Option<Delivery>,
}

/// Where the commander tells what happened.
pub struct Desk<'a, S> {
    /// What is counted where it happens.
    pub account: &'a mut Account,
    /// Who is told.
    pub sink: &'a mut S,
}

impl<S: Sink> Desk<'_, S> {
    fn tell(&mut self, stream: StreamId, command: Command) {
        self.account.command(stream).tell(&command);
        self.sink.command(&command);
    }
}

impl Commander {
    /// The commander of a plan; none if no stream takes commands.
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
                roster: roster(plan, fleet, wall_ms_at_t0),
                is_two_way,
                to,
                cursor: Cursor::new(schedule, devices),
                next: per_device(),
                queries: queries.map(|query| (query.id, per_device())).collect(),
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
            notices: Notices::of(plan.platform.dialect()),
            asked: VecDeque::new(),
            is_held: true,
            held_until: Micros::ZERO,
            name: String::new(),
        })
    }

    /// The warm-up begins at `origin`.
    pub fn start(&mut self, origin: Micros) {
        self.origin = Some(origin);
    }

    /// Nothing of the schedule is due at or after `at`. Queries that come later are answered still: they were
    /// due before.
    pub fn end_due(&mut self, at: Micros) {
        self.end = self.end.min(at);
    }

    /// Commands of which the platform has said nothing, and queries without their command.
    pub fn open(&self) -> u64 {
        (self.pending.len() - self.free.len() + self.asked.len()) as u64
    }

    /// When the next command may be issued; none while the courier cannot take one, or there is none.
    pub fn next_issue(&mut self, courier: Option<&impl Courier>) -> Option<Micros> {
        let is_ready = courier.is_some_and(|courier| self.can_issue(courier));
        self.is_held |= !is_ready;
        self.next_due().filter(|_| is_ready)
    }

    /// When the next command is due; the past where a query waits for one.
    fn next_due(&self) -> Option<Micros> {
        let asked = self.asked.front().map(|(_, _, at)| *at);
        let scheduled = self.next_scheduled().map(|(_, due)| due);
        asked.into_iter().chain(scheduled).min()
    }

    /// Hands over every command that is due and may go; what the courier cannot take waits.
    pub fn issue<S: Sink>(
        &mut self,
        now: Micros,
        courier: &mut impl Courier,
        desk: &mut Desk<'_, S>,
    ) {
        if self.can_issue(courier) && std::mem::take(&mut self.is_held) {
            self.held_until = now;
        }
        while self.can_issue(courier) && self.next_due().is_some_and(|due| due <= now) {
            let Some((place, id, due)) = self.peek() else {
                return;
            };
            match self.hand_over((place, id, due), now, courier) {
                Ok(()) => {
                    let account = desk.account.command(id.stream);
                    account.issued.add(digest(&id));
                }
                Err(Untaken::Yet) => return,
                Err(Untaken::Ever) => withhold(desk, (id, due), now, ShedCause::Unsendable),
            }
            self.advance();
        }
    }

    /// Whether a command could go if one were due.
    fn can_issue(&self, courier: &impl Courier) -> bool {
        let has_place = !self.free.is_empty() || self.pending.len() < PENDING_MAX;
        has_place && courier.has_room()
    }

    /// The connection ended: nothing more is learnt of what the platform had not taken, which the courier
    /// has to forget, so that it is not sent a second time. A notice may still come of what it had.
    pub fn lost<S: Sink>(&mut self, now: Micros, desk: &mut Desk<'_, S>) {
        for token in 0..self.pending.len() as u32 {
            let known = self.pending_at(token).filter(|it| it.taken.is_none());
            if let Some(word) = known.map(|pending| pending.word) {
                self.end(token, word.unwrap_or(Delivery::Unknown), now, desk);
            }
        }
    }

    /// A query came to the backend: its device is to get a command, once a query. Where too many
    /// wait, its command is withheld.
    pub fn asked<S: Sink>(&mut self, query: &MessageId, now: Micros, desk: &mut Desk<'_, S>) {
        if query.run != self.run {
            return;
        }
        for (place, stream) in self.streams.iter_mut().enumerate() {
            let slot = query.device.0.wrapping_sub(stream.roster.first_device().0);
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
            if self.asked.len() < ASKED_MAX {
                self.asked.push_back((place, query.device, now));
                return;
            }
            let next = &mut stream.next[slot as usize];
            let id = MessageId {
                stream: stream.id,
                seq: *next,
                ..*query
            };
            *next += 1;
            withhold(desk, (id, now), now, ShedCause::GeneratorLimit);
            return;
        }
    }

    /// A message that is a reply, or a notice of delivery; false if it is neither.
    pub fn replied<S: Sink>(
        &mut self,
        topic: &str,
        payload: &[u8],
        seen: Micros,
        desk: &mut Desk<'_, S>,
    ) -> bool {
        let returned = (self.dialect.application.returned)(topic, payload);
        self.came_back(returned, seen, desk)
    }

    /// A record of Kafka's topic of replies; false if the dialect has none, or it is another application's.
    pub fn returned<'a, S: Sink>(
        &mut self,
        mut headers: impl Iterator<Item = (&'a str, &'a [u8])>,
        payload: &[u8],
        seen: Micros,
        desk: &mut Desk<'_, S>,
    ) -> bool {
        let kafka = self.dialect.application.kafka.as_ref();
        let returned = kafka.and_then(|kafka| (kafka.returned)(&mut headers, payload));
        self.came_back(returned, seen, desk)
    }

    /// Takes a reply or a notice; false if there is none.
    fn came_back<S: Sink>(
        &mut self,
        returned: Option<Returned>,
        seen: Micros,
        desk: &mut Desk<'_, S>,
    ) -> bool {
        match returned {
            Some(Returned::Reply(copy)) => self.reply(&copy, seen, desk),
            Some(Returned::Notice(notice)) => {
                self.hear_word(&notice.stamp.id, notice.delivery(), seen, desk);
            }
            None => return false,
        }
        true
    }

    fn reply<S: Sink>(&mut self, copy: &CommandCopy<'_>, seen: Micros, desk: &mut Desk<'_, S>) {
        let is_known = |stamp: &Stamp| {
            let mut streams = self.streams.iter();
            streams.any(|stream| stream.id == stamp.id.stream)
        };
        let known = copy.stamp.filter(is_known);
        let stream = known.map_or(self.streams[0].id, |stamp| stamp.id.stream);
        desk.account.command(stream).replies_taken += 1;
        let reply = Reply {
            stream,
            id: copy.stamp.map(|stamp| stamp.id),
            issued: copy.stamp.and_then(|stamp| stamp.due),
            status: copy.status,
            seen,
            integrity: if copy.stamp.is_some() {
                Integrity::Intact
            } else {
                Integrity::Corrupted
            },
        };
        desk.tell(stream, Command::Reply(reply));
        if let Some(token) = reply.id.and_then(|id| self.notices.token(&id)) {
            self.settle(token, Delivery::Delivered, seen, desk);
        }
    }

    /// The run is over: what the platform said nothing of is unknown, and what was never issued is
    /// withheld, by the cause that holds it.
    pub fn finish<S: Sink>(&mut self, courier: &impl Courier, now: Micros, desk: &mut Desk<'_, S>) {
        let cause = if !courier.is_connected() {
            ShedCause::Offline
        } else if self.can_issue(courier) {
            ShedCause::GeneratorLate
        } else {
            ShedCause::Window
        };
        self.close(now, desk);
        while let Some((_, id, due)) = self.peek().filter(|(_, _, due)| *due <= now) {
            withhold(desk, (id, due), now, cause);
            self.advance();
        }
    }

    fn next_scheduled(&self) -> Option<(usize, Micros)> {
        let origin = self.origin?;
        let due = |stream: &Commanded| stream.cursor.peek().map(|next| origin + next.due);
        let streams = self.streams.iter().enumerate();
        let next = streams.filter_map(|(place, stream)| Some((place, due(stream)?)));
        next.filter(|(_, due)| *due < self.end)
            .min_by_key(|(_, due)| *due)
    }

    /// The command that goes next: its stream, its id, and when it was due.
    fn peek(&self) -> Option<(usize, MessageId, Micros)> {
        let id = |place: usize, device, seq| MessageId {
            run: self.run,
            device,
            stream: self.streams[place].id,
            seq,
        };
        if let Some((place, device, at)) = self.asked.front() {
            let stream = &self.streams[*place];
            let slot = device.0 - stream.roster.first_device().0;
            let seq = stream.next[slot as usize];
            return Some((*place, id(*place, *device, seq), *at));
        }
        let (place, due) = self.next_scheduled()?;
        let next = self.streams[place].cursor.peek()?;
        Some((place, id(place, next.device, next.seq), due))
    }

    fn advance(&mut self) {
        if let Some((place, device, _)) = self.asked.pop_front() {
            let stream = &mut self.streams[place];
            let slot = device.0 - stream.roster.first_device().0;
            stream.next[slot as usize] += 1;
        } else if let Some((place, _)) = self.next_scheduled() {
            self.streams[place].cursor.advance();
        }
    }

    fn hand_over(
        &mut self,
        (place, id, due): (usize, MessageId, Micros),
        now: Micros,
        courier: &mut impl Courier,
    ) -> Result<(), Untaken> {
        let stream = &self.streams[place];
        stream.roster.render_name(id.device, &mut self.name);
        if stream.to.is_absent(id.device, id.seq) {
            self.name.push_str(ABSENT);
        }
        let to = OutboundCommand {
            stamp: &Stamp { id, due: Some(now) },
            device: &self.name,
            tenant: stream.roster.tenant(),
            is_two_way: stream.is_two_way,
        };
        let is_two_way = stream.is_two_way;
        let token = self.free.last().copied();
        let token = token.unwrap_or(self.pending.len() as u32);
        courier.take(now, CommandToken(token), &to)?;
        let pending = Some(Pending {
            id,
            due,
            ready: due.max(self.held_until),
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

    /// The word on a command of whoever took it. Where the platform may still say that its device did not get
    /// it, a yes is not the last word.
    pub fn learn<S: Sink>(
        &mut self,
        CommandToken(token): CommandToken,
        delivery: Delivery,
        now: Micros,
        desk: &mut Desk<'_, S>,
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
        self.end(token, last, now, desk);
    }

    fn pending_at(&self, token: u32) -> Option<&Pending> {
        self.pending.get(token as usize)?.as_ref()
    }

    /// All is known of a command.
    fn end<S: Sink>(
        &mut self,
        token: u32,
        delivery: Delivery,
        now: Micros,
        desk: &mut Desk<'_, S>,
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
        desk.tell(issue.id.stream, Command::Issue(issue));
    }
}

/// Tells of a command that was never issued.
fn withhold<S: Sink>(
    desk: &mut Desk<'_, S>,
    (id, due): (MessageId, Micros),
    now: Micros,
    cause: ShedCause,
) {
    let issue = Issue {
        id,
        due,
        ready: due,
        issued: None,
        ended: now,
        delivery: Delivery::Withheld(cause),
    };
    desk.tell(id.stream, Command::Issue(issue));
}

#[cfg(test)]
mod tests {
    use muster_measure::Counts;
    use muster_model::{Attempt, LinkFact, LinkId, Reception};
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
        commander.asked(&query, Micros(2), &mut Desk { account, sink });
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
            commander.asked(&query, Micros(1), &mut Desk { account, sink });
        }
        assert_eq!(commander.open(), ASKED_MAX as u64);
        assert_eq!(sink.0, [Delivery::Withheld(ShedCause::GeneratorLimit)]);
    }
}
