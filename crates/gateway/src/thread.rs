//! State that all parts of one thread use: its clock and sockets, its alarms, its counts, its mail
//! to other threads, and its sockets.

use muster_model::Micros;
use muster_net::{Io, Key, ListenError, ListenerId};
use muster_platform::Protocol;
use slotmap::{DefaultKey, Key as _, KeyData, SlotMap};

use crate::account::Counts;
use crate::listen_addresses::ListenAt;
use crate::lock::locked;
use crate::mail::Mail;
use crate::shared::Shared;
use crate::uplink::{Alarm, AlarmId, Sender};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Pause {
    /// A subscriber's queue is full.
    Room = 1,
    /// The one server's queue is full.
    Capacity = 1 << 1,
    /// Another thread is asked for the session.
    Claim = 1 << 2,
    /// The client does not read our answers.
    Output = 1 << 3,
    /// A request waits for its answer, and others behind it.
    Answer = 1 << 4,
}

#[derive(Debug, Default)]
pub(crate) struct Thread {
    index: u16,
    alarms: SlotMap<DefaultKey, Alarm>,
    outboxes: Vec<Vec<Mail>>,
    listeners: Vec<(ListenerId, Protocol)>,
    /// By the index of the socket's key.
    sockets: Vec<Option<Socket>>,
    /// Publishers that wait for room in a full queue.
    waiting: Vec<Key>,
    /// Senders that are gone, whose uplinks nothing can overtake any more.
    gone: Vec<Sender>,
    scratch: Scratch,
}

#[derive(Debug)]
struct Socket {
    key: Key,
    protocol: Protocol,
    /// Reasons for which it is not read, as bits of [`Pause`].
    pauses: u8,
}

/// Buffers to write into: whoever takes one puts it back.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(crate) topic: String,
    pub(crate) payload: Vec<u8>,
}

impl Thread {
    pub(crate) fn new(index: u16, threads: u16) -> Self {
        Self {
            index,
            outboxes: (0..threads).map(|_| Vec::new()).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn context<'a>(&'a mut self, shared: &'a Shared, io: &'a mut Io) -> Ctx<'a> {
        Ctx {
            io,
            shared,
            thread: self,
        }
    }

    pub(crate) fn protocol_of(&self, key: Key) -> Option<Protocol> {
        Some(self.socket(key)?.protocol)
    }

    pub(crate) fn accept(&mut self, key: Key, listener: ListenerId) {
        let mut listeners = self.listeners.iter();
        if let Some((_, protocol)) = listeners.find(|(known, _)| *known == listener) {
            self.add_socket(key, *protocol);
        }
    }

    fn add_socket(&mut self, key: Key, protocol: Protocol) {
        if self.sockets.len() <= key.index() {
            self.sockets.resize_with(key.index() + 1, || None);
        }
        let pauses = 0;
        self.sockets[key.index()] = Some(Socket {
            key,
            protocol,
            pauses,
        });
    }

    fn socket(&self, key: Key) -> Option<&Socket> {
        let socket = self.sockets.get(key.index())?.as_ref();
        socket.filter(|socket| socket.key == key)
    }

    fn socket_mut(&mut self, key: Key) -> Option<&mut Socket> {
        let socket = self.sockets.get_mut(key.index())?.as_mut();
        socket.filter(|socket| socket.key == key)
    }
}

/// A thread at work.
#[derive(Debug)]
pub(crate) struct Ctx<'a> {
    pub(crate) io: &'a mut Io,
    pub(crate) shared: &'a Shared,
    thread: &'a mut Thread,
}

impl<'a> Ctx<'a> {
    pub(crate) fn now(&self) -> Micros {
        self.io.now()
    }

    pub(crate) fn index(&self) -> u16 {
        self.thread.index
    }

    pub(crate) fn scratch(&mut self) -> &mut Scratch {
        &mut self.thread.scratch
    }

    pub(crate) fn counts(&self) -> &'a Counts {
        self.shared.account.counts(self.thread.index)
    }

    pub(crate) fn set_alarm(&mut self, at: Micros, alarm: Alarm) -> AlarmId {
        let token = self.thread.alarms.insert(alarm).data().as_ffi();
        (self.io.set_timer(at, token), token)
    }

    pub(crate) fn cancel_alarm(&mut self, alarm: Option<AlarmId>) {
        if let Some((timer, token)) = alarm {
            self.io.cancel_timer(timer);
            self.take_alarm(token);
        }
    }

    /// The alarm that rings; none if it was cancelled.
    pub(crate) fn take_alarm(&mut self, token: u64) -> Option<Alarm> {
        self.thread.alarms.remove(KeyData::from_ffi(token).into())
    }

    /// The gateway ends: answers that were still to come do not come any more.
    pub(crate) fn give_up_answers(&mut self) {
        let alarms = self.thread.alarms.drain();
        let awaited = alarms.filter(|(_, alarm)| alarm.is_awaited()).count();
        self.counts().unanswered.add(awaited as u64);
    }

    pub(crate) fn mail(&mut self, shard: u16, mail: Mail) {
        self.thread.outboxes[usize::from(shard)].push(mail);
    }

    pub(crate) fn send_mail(&mut self) {
        for (shard, outbox) in self.thread.outboxes.iter_mut().enumerate() {
            self.shared.post(shard as u16).send(outbox);
        }
    }

    /// Listens for connections of a protocol at the address of a scheme, if there is one.
    ///
    /// # Errors
    /// [`ListenError`] if the address is not to be had.
    pub(crate) fn listen(
        &mut self,
        (scheme, protocol): (&str, Protocol),
        at: &mut ListenAt<'_>,
    ) -> Result<Option<ListenerId>, ListenError> {
        let configured = &self.shared.config.listen;
        let listener = at.listen(scheme, configured, |at, port| self.io.listen(at, port))?;
        let listener_of = listener.map(|listener| (listener, protocol));
        self.thread.listeners.extend(listener_of);
        Ok(listener)
    }

    pub(crate) fn add_socket(&mut self, key: Key, protocol: Protocol) {
        self.thread.add_socket(key, protocol);
    }

    pub(crate) fn is_paused(&self, key: Key) -> bool {
        self.thread
            .socket(key)
            .is_some_and(|socket| socket.pauses != 0)
    }

    /// Stops reading a socket. What comes waits in its receive buffer; of datagrams, what does not fit in
    /// there is lost.
    pub(crate) fn pause(&mut self, key: Key, why: Pause) {
        self.set_pause(key, why, true);
    }

    /// Reads a new connection from the instant on at which it has its turn among others.
    pub(crate) fn admit_link(&mut self, key: Key) {
        if self.shared.behaves {
            return;
        }
        let now = self.now();
        let at = locked(&self.shared.fault_plan).link(now);
        if at > now {
            self.pause(key, Pause::Capacity);
            self.set_alarm(at, Alarm::Unblock(key));
        }
    }

    pub(crate) fn resume(&mut self, key: Key, why: Pause) {
        self.set_pause(key, why, false);
    }

    /// Pauses a socket for one reason as long as that holds.
    pub(crate) fn set_pause(&mut self, key: Key, why: Pause, holds: bool) {
        let Some(socket) = self.thread.socket_mut(key) else {
            return;
        };
        let (before, why) = (socket.pauses, why as u8);
        socket.pauses = if holds { before | why } else { before & !why };
        match (before, socket.pauses) {
            (0, 1..) => self.io.pause_reading(key),
            (1.., 0) => self.io.resume_reading(key),
            (_, _) => {}
        }
    }

    /// Does not read a publisher until a subscriber's queue has room.
    pub(crate) fn hold_back(&mut self, key: Key) {
        self.counts().held_back.more();
        self.pause(key, Pause::Room);
        self.thread.waiting.push(key);
    }

    /// A full queue of some thread has room again.
    pub(crate) fn resume_waiting(&mut self) {
        for key in std::mem::take(&mut self.thread.waiting) {
            self.resume(key, Pause::Room);
        }
    }

    /// A full queue has room again: publishers of all threads may be read.
    pub(crate) fn announce_room(&mut self) {
        self.mail_others(|| Mail::Room);
        self.resume_waiting();
    }

    /// The first uplink of all came: what is timed from it begins to run.
    pub(crate) fn announce_first_uplink(&mut self) {
        let now = self.now();
        self.mail_others(|| Mail::FirstUplink(now));
        self.plan_incidents(now);
    }

    pub(crate) fn plan_incidents(&mut self, first: Micros) {
        let behaviour = self.shared.config.behaviour;
        if let Some(stall) = behaviour.stall {
            self.set_alarm(first + stall.at, Alarm::Stall(stall));
        }
        if let Some(close) = behaviour.close_links {
            self.set_alarm(first + close.at, Alarm::CloseLinks(close));
        }
    }

    fn mail_others(&mut self, mail: impl Fn() -> Mail) {
        let others = self.thread.outboxes.iter_mut().enumerate();
        let others = others.filter(|(shard, _)| *shard != usize::from(self.thread.index));
        others.for_each(|(_, outbox)| outbox.push(mail()));
    }

    /// A connection is gone, for good.
    pub(crate) fn forget_socket(&mut self, key: Key) {
        if self.thread.socket(key).is_some() {
            self.thread.sockets[key.index()] = None;
        }
    }

    /// A sender is gone, for good.
    pub(crate) fn note_gone(&mut self, sender: Sender) {
        if !self.shared.behaves {
            self.thread.gone.push(sender);
        }
    }

    pub(crate) fn take_gone(&mut self) -> Vec<Sender> {
        std::mem::take(&mut self.thread.gone)
    }
}

#[cfg(test)]
impl Thread {
    /// Number of alarms that are set.
    pub(crate) fn alarms(&self) -> usize {
        self.alarms.len()
    }
}
