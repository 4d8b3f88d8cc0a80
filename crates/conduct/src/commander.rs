//! Issues commands and learns what becomes of them: the business application's half of command and
//! control, without a socket and a clock.

use std::collections::VecDeque;
use std::sync::Arc;

use muster_device::Sink;
use muster_load::{Cursor, StreamSchedule};
use muster_measure::{Account, digest};
use muster_model::{
    ABSENT, Command, CommandTarget, Delivery, DeviceId, Integrity, Issue, MessageId, Micros,
    Reason, Reply, RunId, ShedCause, Stamp, StreamId,
};
use muster_platform::{CommandScratch, Dialect, Roster};
use muster_protocol::mqtt::{self, Publish, Qos, Refused, Token};
use muster_scenario::{FleetPlan, Plan, StreamKind, StreamPlan};

use crate::roster;

/// Commands that may wait for the platform's word at once: as many as MQTT lets a peer take, and
/// far more than one session has under way on a platform that answers.
const PENDING_MAX: usize = 16_384;
/// Queries that may wait for their commands while the session cannot send; a device has one at a
/// time, so that a fleet of as many devices never exceeds it.
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
    asked: VecDeque<(usize, DeviceId, Micros)>,
    name: String,
    scratch: CommandScratch,
}

/// One stream of kind `command`.
#[derive(Debug)]
struct Commanded {
    id: StreamId,
    roster: Roster,
    to: CommandTarget,
    cursor: Cursor,
    /// By device, the number of its next command, and of its queries that have come; for commands
    /// that follow queries.
    next: Vec<u32>,
    /// The queries of its fleet, by what was seen of each device's.
    queries: Vec<(StreamId, Vec<u32>)>,
}

/// A command that the platform has said nothing of.
#[derive(Debug, Clone, Copy)]
struct Pending {
    id: MessageId,
    due: Micros,
    issued: Micros,
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
    #[must_use]
    pub fn new(
        plan: &Plan,
        schedules: &[Arc<StreamSchedule>],
        run: RunId,
        wall_ms_at_t0: u64,
    ) -> Option<Self> {
        let commanded = |fleet: &FleetPlan, stream: &StreamPlan| {
            let StreamKind::Command { to, .. } = stream.kind else {
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
            asked: VecDeque::new(),
            name: String::new(),
            scratch: CommandScratch::default(),
        })
    }

    /// The warm-up begins at `origin`.
    pub fn start(&mut self, origin: Micros) {
        self.origin = Some(origin);
    }

    /// Nothing is due at or after `at`.
    pub fn end_due(&mut self, at: Micros) {
        self.end = self.end.min(at);
    }

    /// Commands of which the platform has said nothing, and queries without their command.
    #[must_use]
    pub fn open(&self) -> u64 {
        (self.pending.len() - self.free.len() + self.asked.len()) as u64
    }

    /// When the next command is due; the past where a query waits for one.
    #[must_use]
    pub fn next_due(&self) -> Option<Micros> {
        let asked = self.asked.front().map(|(_, _, at)| *at);
        let scheduled = self.next_scheduled().map(|(_, due)| due);
        asked.into_iter().chain(scheduled).min()
    }

    /// Renders every command that is due and may go; what the session cannot take waits.
    pub fn issue<S: Sink>(
        &mut self,
        now: Micros,
        session: &mut mqtt::Client,
        desk: &mut Desk<'_, S>,
        out: &mut Vec<u8>,
    ) {
        while self.can_issue(session) && self.next_due().is_some_and(|due| due <= now) {
            let Some((place, id, due)) = self.peek() else {
                return;
            };
            match self.publish((place, id, due), now, session, out) {
                Ok(()) => {
                    let account = desk.account.command(id.stream);
                    account.issued.add(digest(&id));
                }
                Err(Refused::Window | Refused::PacketIds | Refused::NotConnected) => return,
                Err(
                    Refused::TooLarge { .. }
                    | Refused::TextTooLong
                    | Refused::RetainUnavailable
                    | Refused::QosUnavailable
                    | Refused::Unknown
                    | Refused::Authentication,
                ) => {
                    let withheld = Delivery::Withheld(ShedCause::Unsendable);
                    tell_issue(desk, (id, due, None), now, withheld);
                }
            }
            self.advance();
        }
    }

    /// Whether a command could go if one were due.
    #[must_use]
    pub fn can_issue(&self, session: &mqtt::Client) -> bool {
        let has_room = !self.free.is_empty() || self.pending.len() < PENDING_MAX;
        has_room && session.is_connected() && session.window_free() > 0
    }

    /// The platform took a command, with a code that may say that nobody was there.
    pub fn accepted<S: Sink>(
        &mut self,
        token: Token,
        code: u8,
        now: Micros,
        desk: &mut Desk<'_, S>,
    ) {
        let delivery = if code == mqtt::reason::NO_MATCHING_SUBSCRIBERS {
            Delivery::Undeliverable(Reason::Mqtt(code))
        } else {
            Delivery::Delivered
        };
        self.learn(token, delivery, now, desk);
    }

    /// The platform refused a command.
    pub fn rejected<S: Sink>(
        &mut self,
        token: Token,
        reason: Reason,
        now: Micros,
        desk: &mut Desk<'_, S>,
    ) {
        self.learn(token, Delivery::Undeliverable(reason), now, desk);
    }

    /// The session's link ended: nothing more is learnt of what it had under way, which is not sent
    /// a second time.
    pub fn lost<S: Sink>(
        &mut self,
        session: &mut mqtt::Client,
        now: Micros,
        desk: &mut Desk<'_, S>,
    ) {
        session.drop_inflight(|_, _| {});
        for token in 0..self.pending.len() as u32 {
            self.learn(Token(token), Delivery::Unknown, now, desk);
        }
    }

    /// A query came to the backend: its device is to get a command, once a query.
    pub fn asked(&mut self, query: &MessageId, now: Micros) {
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
            // A further copy, or one that was overtaken: its device asks no more.
            if query.seq >= *seen && self.asked.len() < ASKED_MAX && now < self.end {
                *seen = query.seq.saturating_add(1);
                self.asked.push_back((place, query.device, now));
            }
            return;
        }
    }

    /// A message that is a reply; false if it is none.
    pub fn replied<S: Sink>(
        &mut self,
        topic: &str,
        payload: &[u8],
        seen: Micros,
        desk: &mut Desk<'_, S>,
    ) -> bool {
        let Some(copy) = self.dialect.reply(topic, payload) else {
            return false;
        };
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
            seen,
            integrity: if copy.stamp.is_some() {
                Integrity::Intact
            } else {
                Integrity::Corrupted
            },
        };
        desk.tell(stream, Command::Reply(reply));
        true
    }

    /// The run is over: what the platform said nothing of is unknown, and what was never issued is
    /// withheld, by the cause that holds it.
    pub fn finish<S: Sink>(
        &mut self,
        session: &mut mqtt::Client,
        now: Micros,
        desk: &mut Desk<'_, S>,
    ) {
        let cause = if !session.is_connected() {
            ShedCause::Offline
        } else if self.can_issue(session) {
            ShedCause::GeneratorLate
        } else {
            ShedCause::Window
        };
        self.lost(session, now, desk);
        while let Some((_, id, due)) = self.peek().filter(|(_, _, due)| *due <= now) {
            tell_issue(desk, (id, due, None), now, Delivery::Withheld(cause));
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

    fn publish(
        &mut self,
        (place, id, due): (usize, MessageId, Micros),
        now: Micros,
        session: &mut mqtt::Client,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let stream = &self.streams[place];
        stream.roster.render_name(id.device, &mut self.name);
        if stream.to.is_absent(id.seq) {
            self.name.push_str(ABSENT);
        }
        let stamp = Stamp { id, due: Some(now) };
        self.dialect
            .write_command(&stamp, &self.name, &mut self.scratch);
        let publish = Publish {
            qos: Qos::AtLeastOnce,
            ..Publish::new(&self.scratch.topic, &self.scratch.payload)
        };
        let place = self.free.last().copied();
        let token = place.unwrap_or(self.pending.len() as u32);
        session.publish(now, Token(token), &publish, out)?;
        let pending = Some(Pending {
            id,
            due,
            issued: now,
        });
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

    fn learn<S: Sink>(
        &mut self,
        token: Token,
        delivery: Delivery,
        now: Micros,
        desk: &mut Desk<'_, S>,
    ) {
        let place = self.pending.get_mut(token.0 as usize);
        let Some(pending) = place.and_then(Option::take) else {
            return;
        };
        self.free.push(token.0);
        let of = (pending.id, pending.due, Some(pending.issued));
        tell_issue(desk, of, now, delivery);
    }
}

fn tell_issue<S: Sink>(
    desk: &mut Desk<'_, S>,
    (id, due, issued): (MessageId, Micros, Option<Micros>),
    ended: Micros,
    delivery: Delivery,
) {
    let issue = Issue {
        id,
        due,
        issued,
        ended,
        delivery,
    };
    desk.tell(id.stream, Command::Issue(issue));
}
