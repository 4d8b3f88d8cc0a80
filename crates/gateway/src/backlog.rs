//! Messages that wait for a thread outside of the event loops.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::lock::locked;
use crate::message::Message;
use crate::routes::{QUEUE_HIGH, QUEUE_LOW, QUEUE_MAX};

/// A queue between the event loops and one task.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    queue: Mutex<Queue>,
    /// Called when there is more to do for the task.
    pub(crate) changed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    /// By their numbers.
    waiting: VecDeque<Stored>,
    stored: u64,
    /// True if publishers wait for room.
    is_congested: bool,
}

/// A message that waits.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) message: Arc<Message>,
    /// Its place among all of the queue, in the order in which they came.
    number: u64,
    /// Times that it came back.
    pub(crate) returned: u32,
}

/// Room in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Enough,
    /// Publishers are to wait.
    Little,
    /// The message is not queued.
    None,
}

impl Backlog {
    pub(crate) fn is_full(&self) -> bool {
        locked(&self.queue).waiting.len() >= QUEUE_MAX
    }

    /// Queues a message.
    pub(crate) fn store(&self, message: Arc<Message>) -> Room {
        let mut queue = locked(&self.queue);
        if queue.waiting.len() >= QUEUE_MAX {
            return Room::None;
        }
        let number = queue.stored;
        queue.stored += 1;
        queue.waiting.push_back(Stored {
            message,
            number,
            returned: 0,
        });
        let is_much = queue.waiting.len() >= QUEUE_HIGH;
        queue.is_congested |= is_much;
        drop(queue);
        self.changed.notify_one();
        if is_much { Room::Little } else { Room::Enough }
    }

    /// Puts a message back in front of all that came after it.
    pub(crate) fn put_back(&self, stored: Stored) {
        let waiting = &mut locked(&self.queue).waiting;
        let place = waiting.partition_point(|other| other.number < stored.number);
        waiting.insert(place, stored);
    }

    /// The message that waits longest, and whether publishers that wait for room may be read again.
    pub(crate) fn take(&self) -> Option<(Stored, bool)> {
        let mut queue = locked(&self.queue);
        let stored = queue.waiting.pop_front()?;
        let has_room = queue.is_congested && queue.waiting.len() <= QUEUE_LOW;
        queue.is_congested &= !has_room;
        Some((stored, has_room))
    }
}

#[cfg(test)]
mod tests {
    use muster_model::Micros;
    use muster_protocol::mqtt::Publish;

    use super::*;

    fn message() -> Arc<Message> {
        Arc::new(Message::new(&Publish::new("event/t/d", b"1"), Micros::ZERO))
    }

    #[test]
    fn a_queue_takes_no_more_than_its_bound_and_reports_room_once() {
        let backlog = Backlog::default();
        let rooms: Vec<Room> = (0..=QUEUE_MAX).map(|_| backlog.store(message())).collect();
        let (enough, rest) = rooms.split_at(QUEUE_HIGH - 1);
        assert!(enough.iter().all(|room| *room == Room::Enough));
        assert!(
            rest[..rest.len() - 1]
                .iter()
                .all(|room| *room == Room::Little)
        );
        assert_eq!(rooms[QUEUE_MAX], Room::None);
        assert!(backlog.is_full());
        let taken = std::iter::from_fn(|| backlog.take());
        let announced: Vec<bool> = taken.map(|(_, has_room)| has_room).collect();
        assert_eq!(announced.len(), QUEUE_MAX);
        let at: Vec<usize> = (0..QUEUE_MAX).filter(|at| announced[*at]).collect();
        assert_eq!(at, [QUEUE_MAX - QUEUE_LOW - 1]);
    }

    #[test]
    fn messages_that_come_back_keep_their_order() {
        let backlog = Backlog::default();
        (0..4).for_each(|_| _ = backlog.store(message()));
        let mut taken = Vec::from_iter(std::iter::from_fn(|| backlog.take()));
        for at in [2, 0, 1, 0] {
            backlog.put_back(taken.remove(at).0);
        }
        let numbers = std::iter::from_fn(|| Some(backlog.take()?.0.number));
        assert!(numbers.eq(0..4));
    }
}
