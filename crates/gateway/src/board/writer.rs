//! The thread that stores messages, behind their acknowledgement, and what count nodes have counted.

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use muster_model::Micros;
use muster_model::behaviour::Stall;
use muster_platform::board_rest::Device;
use redb::WriteTransaction;

use super::devices::{self, Admission};
use super::flow::{CountNode, Flow};
use super::points::{self, Data};
use super::queue::{Batch, Content, Queued, Subject};
use super::refusal::Answer;
use super::serial::Serial;
use super::store::{Change, SERIES};
use super::{Board, attributes, chains, records, series};
use crate::lock::locked;
use crate::shared::Shared;

/// Longest wait of a message for a store that stands still; one that waits longer is lost, as the rule engine
/// gives it up.
const TIMED_OUT_AFTER: Micros = Micros::from_secs(10);
/// Longest sleep of the thread where nothing is to be counted.
const IDLE: Micros = Micros::from_secs(1);

/// The running thread; dropping it stores what waits and ends it.
#[derive(Debug)]
pub(crate) struct Writer {
    board: Arc<Board>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread, if there is a store.
    pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Option<Self>> {
        let Some(board) = shared.managed.board.clone() else {
            return Ok(None);
        };
        let work = Work {
            shared: Arc::clone(shared),
            board: Arc::clone(&board),
            flow: Flow::default(),
            counters: Vec::new(),
            seen: None,
        };
        let thread = Builder::new().name("gateway-store".to_owned());
        let thread = Some(thread.spawn(move || work.run())?);
        Ok(Some(Self { board, thread }))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.board.queue.close();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on stderr.
            let _ = thread.join();
        }
    }
}

#[derive(Debug)]
struct Work {
    shared: Arc<Shared>,
    board: Arc<Board>,
    flow: Flow,
    /// One for each count node of the flow.
    counters: Vec<Counter>,
    /// Changes of rule chains that the flow knows; none before the first look.
    seen: Option<u64>,
}

/// Count of a count node since it was last stored.
#[derive(Debug)]
struct Counter {
    node: CountNode,
    next: Micros,
    count: u64,
}

/// Result of storing a batch.
#[derive(Debug, Default)]
struct Stored {
    /// Messages that are in the store.
    stored: u64,
    /// Messages that are not: of unknown devices, unreadable, without room, or in a chain that stores none.
    discarded: u64,
    /// Discarded messages that a node failed to store.
    failed: u64,
    /// Stored values of time series, counts of nodes among them.
    values: u64,
    /// Messages by the count nodes that they reached.
    counted: Vec<u64>,
}

impl Work {
    fn run(mut self) {
        loop {
            let batch = self.board.queue.take(self.until_next_count());
            if batch.has_room {
                self.shared.announce_room();
            }
            let is_last = batch.is_last;
            let messages = self.survivors(batch);
            self.look_at_chains();
            self.store(&messages);
            if is_last {
                return;
            }
        }
    }

    fn until_next_count(&self) -> Micros {
        let next = self.counters.iter().map(|counter| counter.next).min();
        next.map_or(IDLE, |next| (next - self.board.clock.now()).min(IDLE))
    }

    /// Stands still while the store does; what waited too long for it is lost.
    fn survivors(&self, batch: Batch) -> Vec<Queued> {
        let Some((from, until)) = self.stall() else {
            return batch.messages;
        };
        let now = self.board.clock.now();
        if (from..until).contains(&now) {
            self.board.queue.stand_still(until - now);
        }
        if self.board.clock.now() < until {
            return batch.messages;
        }
        let is_lost = |queued: &Queued| queued.at < until && until - queued.at > TIMED_OUT_AFTER;
        let (lost, left): (Vec<_>, Vec<_>) = batch.messages.into_iter().partition(is_lost);
        self.board.statistics.note_timed_out(lost.len() as u64);
        let mut plan = locked(&self.shared.fault_plan);
        lost.iter()
            .for_each(|queued| plan.book_stalled(queued.message.hash()));
        left
    }

    /// The time in which the store stands still.
    fn stall(&self) -> Option<(Micros, Micros)> {
        let Stall { at, lasts } = self.shared.config.behaviour.stall_store?;
        let from = locked(&self.shared.fault_plan).begun()? + at;
        Some((from, from + lasts))
    }

    /// Follows a change of the root chain. A node that stays goes on counting.
    fn look_at_chains(&mut self) {
        let changes = self.board.chain_changes();
        if self.seen == Some(changes) {
            return;
        }
        let nodes = self
            .board
            .store
            .read()
            .and_then(|tables| chains::root_nodes(&tables));
        let Ok(nodes) = nodes else { return };
        self.seen = Some(changes);
        self.flow = Flow::new(&nodes);
        let now = self.board.clock.now();
        let mut before = std::mem::take(&mut self.counters);
        let counter = |node: &CountNode| {
            let known = before.iter().position(|counter| counter.node == *node);
            known
                .map(|at| before.swap_remove(at))
                .unwrap_or_else(|| Counter {
                    node: node.clone(),
                    next: now + every(node),
                    count: 0,
                })
        };
        self.counters = self.flow.count_nodes.iter().map(counter).collect();
    }

    /// Stores messages, and the counts that are due, in one transaction.
    fn store(&mut self, messages: &[Queued]) {
        let now = self.board.clock.now();
        let is_due = self.counters.iter().any(|counter| counter.next <= now);
        if messages.is_empty() && !is_due {
            return;
        }
        let stored = self.board.store.write(|tables| {
            let mut stored = self.store_messages(tables, messages)?;
            stored.values += self.store_counts(tables, &stored, now)?;
            Ok(stored)
        });
        let (counts, statistics) = (self.shared.account.store(), &self.board.statistics);
        let Ok(stored) = stored else {
            // A count that cannot be stored waits for its next turn.
            self.counters
                .iter_mut()
                .filter(|counter| counter.next <= now)
                .for_each(|counter| counter.next = now + every(&counter.node));
            statistics.note_failed(messages.len() as u64);
            return counts.store_discarded.add(messages.len() as u64);
        };
        statistics.note_processed(stored.stored + stored.discarded - stored.failed);
        statistics.note_failed(stored.failed);
        statistics.note_values(stored.values);
        counts.stored.add(stored.stored);
        counts.store_discarded.add(stored.discarded);
        for (counter, counted) in self.counters.iter_mut().zip(stored.counted) {
            counter.count += counted;
            if counter.next <= now {
                counter.count = 0;
                let late = now - counter.next;
                let missed = late.get() / every(&counter.node).get();
                counter.next += Micros(every(&counter.node).get() * (missed + 1));
            }
        }
    }

    fn store_messages(&self, tables: &Change, messages: &[Queued]) -> Answer<Stored> {
        let mut result = Stored {
            counted: vec![0; self.counters.len()],
            ..Stored::default()
        };
        let is_full = series::is_full(tables)?;
        for queued in messages {
            let Some(subject) = Subject::of(&queued.message.topic) else {
                continue;
            };
            let Some(data) = points::read(subject, &queued.message.payload) else {
                result.discarded += 1;
                result.failed += 1;
                continue;
            };
            let way = self.flow.way_of(subject.content);
            let device = self.device(tables, subject, &data)?;
            let device = device.filter(|_| way.is_stored && !is_full);
            match device {
                Some(device) => {
                    let came_ms = self.board.wall_ms(queued.at);
                    keep(tables, (device, subject.content), &data, came_ms)?;
                    result.stored += 1;
                    result.values += data.values_of_series(subject.content);
                }
                None => {
                    result.discarded += 1;
                    result.failed += u64::from(way.is_stored);
                }
            }
            // Behind a node that stores, a message counts once it is stored.
            if device.is_some() || !way.is_stored {
                let entries = data.entries.len() as u64;
                way.counted_by
                    .iter()
                    .for_each(|at| result.counted[*at] += entries);
            }
        }
        Ok(result)
    }

    /// The device of a message. A gateway's word makes one that is not there, if the tenant may have another.
    fn device(&self, tables: &Change, subject: Subject<'_>, data: &Data) -> Answer<Option<Serial>> {
        let known = records::named::<Device>(tables, subject.device)?;
        if known.is_some() || !data.is_by_gateway {
            return Ok(known);
        }
        let device = Device {
            name: subject.device.to_owned(),
            ..Device::default()
        };
        let admission = Admission {
            token: None,
            limit: self.board.device_limit,
            now_ms: self.board.now_ms(),
        };
        match devices::save(tables, device, &admission) {
            Ok(_) => records::named::<Device>(tables, subject.device),
            Err(_) => Ok(None),
        }
    }

    /// Stores the counts that are due; how many these are.
    fn store_counts(&self, tables: &WriteTransaction, stored: &Stored, now: Micros) -> Answer<u64> {
        let mut values = 0;
        let mut table = tables.open_table(SERIES)?;
        let ts = self.board.wall_ms(now);
        let due = self.counters.iter().zip(&stored.counted);
        for (counter, counted) in due.filter(|(counter, _)| counter.next <= now) {
            let prefix = &counter.node.configuration.telemetry_prefix;
            let key = format!("{prefix}_{}", self.board.service);
            let count = (counter.count + counted).to_string();
            if counter.node.is_stored {
                let place = (Serial::TENANT, key.as_str(), ts);
                series::insert(&mut table, place, count.as_bytes())?;
                values += 1;
            }
        }
        Ok(values)
    }
}

fn every(node: &CountNode) -> Micros {
    Micros::from_secs(u64::from(node.configuration.interval))
}

/// Keeps the data of a device.
pub(super) fn keep(
    tables: &WriteTransaction,
    (device, content): (Serial, Content),
    data: &Data,
    came_ms: i64,
) -> Answer<()> {
    match content {
        Content::Telemetry => {
            let mut table = tables.open_table(SERIES)?;
            for entry in &data.entries {
                let ts = entry.ts.unwrap_or(came_ms);
                for (key, value) in &entry.values {
                    let value = serde_json::to_vec(value)?;
                    series::insert(&mut table, (device, key, ts), &value)?;
                }
            }
        }
        Content::Attributes => {
            let scope = (device, attributes::Scope::Client);
            for entry in &data.entries {
                attributes::set(tables, scope, &entry.values, came_ms)?;
            }
        }
    }
    Ok(())
}
