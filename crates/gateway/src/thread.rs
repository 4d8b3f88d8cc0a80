//! State that all parts of one thread use: its clock and sockets, its alarms, its counts, its mail
//! to other threads, and the sockets that are not read.

use std::collections::VecDeque;

use muster_model::Micros;
use muster_net::{Io, Key};
use rustc_hash::FxHashMap;
use slotmap::{DefaultKey, Key as _, KeyData, SlotMap};

use crate::account::Counts;
use crate::mail::Mail;
use crate::shared::Shared;
use crate::uplink::{Alarm, AlarmId, Sender};

/// Reasons for which a socket is not read.
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
}

/// State that all parts of one thread use.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    index: u16,
    alarms: SlotMap<DefaultKey, Alarm>,
    outboxes: Vec<Vec<Mail>>,
    /// Reasons for which sockets are not read, as bits of [`Pause`]; sockets that are read have no
    /// entry.
    paused: FxHashMap<Key, u8>,
    /// Publishers that wait for room in a full queue.
    waiting: Vec<Key>,
    /// Senders that are gone, whose uplinks nothing can overtake any more.
    gone: Vec<Sender>,
    scratch: Scratch,
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

    /// Puts mail to another thread into its outbox.
    pub(crate) fn mail(&mut self, shard: u16, mail: Mail) {
        self.thread.outboxes[usize::from(shard)].push(mail);
    }

    pub(crate) fn send_mail(&mut self) {
        for (shard, outbox) in self.thread.outboxes.iter_mut().enumerate() {
            self.shared.post(shard as u16).send(outbox);
        }
    }

    /// The next mail for this thread.
    pub(crate) fn collect_mail(&self, into: &mut VecDeque<Mail>) {
        self.shared.post(self.index()).collect(into);
    }

    pub(crate) fn is_paused(&self, key: Key) -> bool {
        !self.thread.paused.is_empty() && self.thread.paused.contains_key(&key)
    }

    /// Stops reading a socket. What comes waits in its receive buffer; of datagrams, what does not fit in
    /// there is lost.
    pub(crate) fn pause(&mut self, key: Key, why: Pause) {
        *self.thread.paused.entry(key).or_default() |= why as u8;
        self.io.pause_reading(key);
    }

    pub(crate) fn resume(&mut self, key: Key, why: Pause) {
        if let Some(pauses) = self.thread.paused.get_mut(&key) {
            *pauses &= !(why as u8);
            if *pauses == 0 {
                self.thread.paused.remove(&key);
                self.io.resume_reading(key);
            }
        }
    }

    /// Pauses a socket for one reason as long as that holds.
    pub(crate) fn set_pause(&mut self, key: Key, why: Pause, holds: bool) {
        match holds {
            true => self.pause(key, why),
            false if self.thread.paused.is_empty() => {}
            false => self.resume(key, why),
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

    /// A sender is gone, for good.
    pub(crate) fn note_gone(&mut self, sender: Sender) {
        if let Sender::Link(key) = sender {
            self.thread.paused.remove(&key);
        }
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
