//! The messages of a shard from due to final, and all reports of them.
//!
//! It knows no link beyond its number: whether one is up, and what its session forgets, is the
//! shard's affair.

mod commands;
mod connect_attempt;
mod downlinks;
mod outcomes;

use muster_load::AddedHold;
use muster_measure::digest;
use muster_model::{Attempt, Cause, Micros, Outcome, ShedCause, StreamId, Turn};
use muster_plan::Policy;

pub(crate) use self::connect_attempt::ConnectAttempt;
pub use self::downlinks::Listener;
pub(crate) use self::outcomes::in_flight_of;

use self::commands::CommandsSeen;
use self::outcomes::Completing;
use crate::agenda::{Agenda, DueMessage};
use crate::class::Qos;
use crate::fleets::Fleets;
use crate::generator_delay::GeneratorDelay;
use crate::links::Links;
use crate::messages::{Forgotten, Messages, WriteBlock};
use crate::recording::Recording;
use crate::reply_paths::ReplyPaths;
use crate::session::{Further, Rendering, Scratch, Session};
use crate::sink::Sink;
use crate::slots::{Admission, SlotId, Stage};
use crate::token::stream_of;

/// The messages of a shard from due to final.
#[derive(Debug)]
pub struct Traffic<P: Session, S> {
    fleets: Fleets<P::Settings>,
    agenda: Agenda,
    messages: Messages<P::Key>,
    completing: Completing,
    commands_seen: CommandsSeen,
    /// Paths, or topics, of the replies where commands name them.
    reply_paths: ReplyPaths,
    recording: Recording<S>,
    /// The generator's own part of the times of messages.
    own: GeneratorDelay,
    /// Reader of the messages that devices subscribe to; none if no stream subscribes.
    listener: Option<Listener>,
    scratch: Scratch,
    max_lateness: Micros,
    is_over: bool,
}

/// Settings of the traffic, apart from the fleets.
#[derive(Debug)]
pub(crate) struct TrafficPlan {
    pub(crate) max_lateness: Micros,
    pub(crate) slot_limit: u32,
    pub(crate) streams: usize,
    pub(crate) listener: Option<Listener>,
}

impl<P: Session, S: Sink> Traffic<P, S> {
    pub(crate) fn new(
        fleets: Fleets<P::Settings>,
        plan: TrafficPlan,
        recording: Recording<S>,
    ) -> Self {
        let mut messages = Messages::new(plan.slot_limit, plan.streams);
        messages.add_links(&fleets);
        let (mut agenda, mut commands_seen) = (Agenda::new(), CommandsSeen::default());
        for class in fleets.classes() {
            commands_seen.add(class);
            for stream in &class.streams {
                messages.add_stream(stream);
                let is_closed = stream.policy == Policy::Closed;
                agenda.add(
                    stream.id,
                    stream.schedule.clone(),
                    class.devices(),
                    is_closed,
                );
            }
        }
        Self {
            fleets,
            agenda,
            messages,
            completing: Completing::default(),
            commands_seen,
            reply_paths: ReplyPaths::default(),
            recording,
            own: GeneratorDelay::default(),
            listener: plan.listener,
            scratch: Scratch::default(),
            max_lateness: plan.max_lateness,
            is_over: false,
        }
    }

    /// The fleets.
    #[inline]
    pub fn fleets(&self) -> &Fleets<P::Settings> {
        &self.fleets
    }

    /// Facts, counts and refusals that the traffic records.
    #[inline]
    pub fn recording(&mut self) -> &mut Recording<S> {
        &mut self.recording
    }

    #[inline]
    pub(crate) fn messages(&self) -> &Messages<P::Key> {
        &self.messages
    }

    #[inline]
    pub(crate) fn messages_mut(&mut self) -> &mut Messages<P::Key> {
        &mut self.messages
    }

    pub(crate) fn own(&self) -> &GeneratorDelay {
        &self.own
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Messages taken and not yet final.
    pub fn open(&self) -> usize {
        self.messages.slots().len()
    }

    /// Exchanges whose PUBCOMP is missing and not overdue.
    pub fn completing(&self, now: Micros) -> u64 {
        self.completing.open(now)
    }

    /// The thread woke up: called before what came is handed over.
    pub fn turn_begins(&mut self, turn: &Turn) {
        self.own.turn_begins(turn);
    }

    /// The first message is due at `origin`, the start of the warm-up. Links of a fleet that goes
    /// offline have a deadline from then on.
    pub fn start(&mut self, origin: Micros) {
        self.fleets.start(origin);
        self.agenda.start(origin);
        if let Some(listener) = &mut self.listener {
            listener.due_times.start(origin);
        }
    }

    /// Messages of another hold are due.
    pub fn add_hold(&mut self, hold: &AddedHold) {
        self.agenda.add_hold(hold);
        self.fleets.add_hold(hold);
        if let Some(listener) = &mut self.listener
            && let Some(from) = listener.due_times.add_hold(hold)
        {
            listener.reader.add_hold(from, hold.factor);
        }
    }

    /// Nothing is due at or after `at`.
    pub fn end_due(&mut self, at: Micros) {
        self.agenda.end(at);
    }

    /// Instant at which the next message is due.
    pub fn next_due(&self) -> Option<Micros> {
        self.agenda.next()
    }

    /// Instant at which the next answer is overdue.
    pub fn next_expiry(&self) -> Option<Micros> {
        self.messages.next_expiry()
    }

    /// Sources that messages are rendered from, and the recording.
    #[inline]
    pub(crate) fn rendering(&mut self) -> (Rendering<'_, P>, &mut Recording<S>) {
        let rendering = Rendering {
            fleets: &self.fleets,
            slots: self.messages.slots_mut(),
            scratch: &mut self.scratch,
            paths: &self.reply_paths,
        };
        (rendering, &mut self.recording)
    }

    /// Takes the next message that is due by `now`; answers with the link it waits on.
    #[inline]
    pub(crate) fn take_due(&mut self, links: &Links, now: Micros) -> Option<u32> {
        let message = self.agenda.pop(now)?;
        let link = self.fleets.link_of(&message);
        let own = self.own.taken(message.due, now);
        if self.fleets.stream(message.stream).is_command() {
            self.meet(&message, links.get(link), now);
            return Some(link);
        }
        self.account_closed(&message);
        let queue = self.fleets.queue_of(link, message.stream);
        let shed = if now - message.due > self.max_lateness {
            Some(ShedCause::GeneratorLate)
        } else if self.is_busy(link, &message) {
            Some(ShedCause::Busy)
        } else if self.is_full(link, message.stream) {
            Some(ShedCause::QueueFull)
        } else {
            let taken = Admission {
                due: message.due,
                taken: now,
                own,
                device: message.device,
                seq: message.seq,
                link,
                stream: message.stream,
            };
            let id = self.messages.enqueue(queue, taken);
            id.is_none().then_some(ShedCause::GeneratorLimit)
        };
        if let Some(cause) = shed {
            self.shed_untaken(&message, Some(now), now, cause);
        }
        Some(link)
    }

    /// Returns whether the device of a query on a link of many devices has another one open. The
    /// link's sum of bounds does not show that: room that is left may be other devices'.
    fn is_busy(&self, link: u32, message: &DueMessage) -> bool {
        let stream = self.fleets.stream(message.stream);
        let is_bounded = matches!(stream.policy, Policy::Shed { .. }) && stream.is_query();
        let queue = self.fleets.queue_of(link, message.stream);
        is_bounded
            && self.fleets.class(link).devices_per_link > 1
            && self
                .messages
                .has(link, queue, (message.device, message.stream))
    }

    /// Returns whether the queue of a stream on a link has as many messages as it may.
    fn is_full(&self, link: u32, stream: StreamId) -> bool {
        let bound = match self.fleets.stream(stream).policy {
            Policy::Queue { bound, .. } => self.fleets.per_link(link, bound),
            Policy::Shed { .. } | Policy::Closed => u32::MAX,
        };
        self.messages.queued(self.fleets.queue_of(link, stream)) >= bound
    }

    /// A closed loop counts what it makes due; an open stream's schedule is counted by itself.
    fn account_closed(&mut self, message: &DueMessage) {
        if self.fleets.stream(message.stream).policy == Policy::Closed {
            let id = self.fleets.id_of(message);
            self.recording.account().scheduled(&id);
        }
    }

    /// A message that is shed before it has a slot.
    fn shed_untaken(
        &mut self,
        message: &DueMessage,
        taken: Option<Micros>,
        now: Micros,
        cause: ShedCause,
    ) {
        self.recording.attempt(&Attempt {
            id: self.fleets.id_of(message),
            due: message.due,
            taken,
            sent: None,
            ended: now,
            outcome: Outcome::Shed(cause),
            resent: false,
            own: taken.map_or(Micros::ZERO, |taken| taken - message.due),
        });
        self.agenda.ended(message.stream, message.device, now);
    }

    /// The waiting message of a link that was due first, of the streams that may send.
    #[inline]
    pub(crate) fn next_waiting(&self, link: u32, has_window: bool) -> Option<SlotId> {
        let streams = &self.fleets.class(link).streams;
        let queues = self.fleets.first_queue(link)..;
        let ready = streams.iter().zip(queues).filter_map(|(stream, queue)| {
            if stream.is_connect() {
                return None;
            }
            if stream.qos != Qos::AtMostOnce && !has_window {
                return None;
            }
            let limit = match stream.policy {
                Policy::Queue {
                    in_flight: Some(limit),
                    ..
                }
                | Policy::Shed { in_flight: limit } => self.fleets.per_link(link, limit),
                Policy::Queue {
                    in_flight: None, ..
                }
                | Policy::Closed => u32::MAX,
            };
            if self.messages.flying(queue) < limit {
                self.messages.first_queued(queue)
            } else {
                None
            }
        });
        ready.min_by_key(|id| self.messages.get(*id).due)
    }

    /// The socket has a message, in a packet of `bytes` bytes.
    #[inline]
    pub(crate) fn hand_out(&mut self, id: SlotId, now: Micros, bytes: usize) {
        let slot = self.messages.get(id);
        let (stream, was_again) = (slot.stream, slot.stage == Stage::Again);
        let is_again = self.messages.hand_out(&self.fleets, id);
        let counts = self.recording.stream_counts(stream, now);
        let session = &mut counts.session;
        if was_again {
            session.retransmitted += u64::from(is_again);
        } else {
            counts.handed += u64::from(!is_again);
            session.retried += u64::from(is_again);
        }
        session.bytes_wire += bytes as u64;
        session.bytes_payload += self.scratch.uplink.payload.len() as u64;
    }

    /// The kernel took the whole message that was rendered last, at `at`.
    #[inline]
    pub fn written(&mut self, link: u32, at: Micros) {
        let Some(id) = self.messages.outbox_mut(link).take_written() else {
            return;
        };
        self.mark_sent(id, at);
        let stream = self.fleets.stream(self.messages.get(id).stream);
        if stream.is_answered() {
            self.messages.track(&self.fleets, id, at);
        } else {
            let is_uplink = !stream.is_command();
            self.messages.outbox_mut(link).count_last_sent(is_uplink);
            self.finalise(id, at, Outcome::Unacknowledged);
        }
    }

    /// The kernel holds a part of what was written on a link; nothing goes until
    /// [`Traffic::flushed`].
    pub fn held(&mut self, link: u32) {
        self.messages
            .outbox_mut(link)
            .set_write_block(WriteBlock::Full);
    }

    /// The message that was rendered last goes at the end of the turn, with those of other links;
    /// nothing goes until [`Traffic::flushed`].
    pub fn gathered(&mut self, link: u32) {
        self.messages
            .outbox_mut(link)
            .set_write_block(WriteBlock::Gathering);
    }

    /// The kernel has taken all that was kept back of a link, at `at`.
    pub fn flushed(&mut self, link: u32, at: Micros) {
        self.messages
            .outbox_mut(link)
            .set_write_block(WriteBlock::Nothing);
        self.written(link, at);
    }

    /// The first transmission of a message is over.
    #[inline]
    pub(super) fn mark_sent(&mut self, id: SlotId, at: Micros) {
        let slot = self.messages.get_mut(id);
        if slot.sent.is_none() {
            slot.sent = Some(at);
            let slot = self.messages.get(id);
            let (device, stream, seq) = (slot.device, slot.stream, slot.seq);
            let message = self.fleets.message_id(device, stream, seq);
            if self.fleets.stream(stream).is_command() {
                let account = self.recording.account().command(stream);
                account.replied.add(digest(&message));
            } else {
                self.recording.account().sent(&message);
            }
        }
    }

    /// A datagram that is not the first of its message is on its way to the kernel: from now on the
    /// message may be there twice.
    pub fn leaves_again(&mut self, further: &Further<P::Key>) {
        if let Some(id) = self.request_of(further) {
            self.messages.get_mut(id).resent |= further.is_copy;
        }
    }

    /// The kernel took it, at `at`.
    pub fn written_again(&mut self, further: &Further<P::Key>, at: Micros) {
        self.leaves_again(further);
        let of_block = || self.request_of(further);
        if let Some(id) = further.is_block.then(of_block).flatten() {
            // A message is sent with its last block, which this may have been.
            let slot = self.messages.get_mut(id);
            slot.own = self.own.read_part(slot.own, at);
            if slot.tries == 0 {
                slot.sent = Some(at);
            }
            self.messages.wait_anew(&self.fleets, id, at);
        }
        let counts = self.recording.counts(stream_of(further.token), at);
        counts.bytes_wire += u64::from(further.wire);
        counts.bytes_payload += u64::from(further.payload);
        counts.retransmitted += u64::from(further.is_copy);
    }

    fn request_of(&self, further: &Further<P::Key>) -> Option<SlotId> {
        let slots = self.messages.slots();
        slots.open_request(further.link, further.token, further.key)
    }

    /// The link ended while the kernel held a part of a message: the peer never had the whole.
    pub(crate) fn unwrite(&mut self, link: u32) {
        self.messages.unwrite(&self.fleets, link);
    }

    /// Nothing went out of the message that was rendered last, and nothing will.
    pub(crate) fn unsent(
        &mut self,
        link: u32,
        at: Micros,
        cause: ShedCause,
    ) -> Option<Forgotten<P::Key>> {
        let outbox = self.messages.outbox_mut(link);
        outbox.set_write_block(WriteBlock::Nothing);
        let id = outbox.take_written()?;
        let forgotten = Forgotten {
            is_unseen: self.messages.get(id).sent.is_none(),
            ..self.messages.forget(id)
        };
        self.messages.get_mut(id).stage = Stage::Waiting;
        self.messages.untrack(&self.fleets, id);
        let outcome = match self.messages.get(id).sent {
            Some(_) => Outcome::Broken(Cause::Network),
            None => Outcome::Shed(cause),
        };
        self.finalise(id, at, outcome);
        Some(forgotten)
    }
}
