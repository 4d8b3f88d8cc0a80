//! Messages on their way from the event loops to the thread that stores them.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use muster_model::Micros;

use crate::backlog::Room;
use crate::lock::locked;
use crate::message::Message;
use crate::routes::{QUEUE_HIGH, QUEUE_LOW, QUEUE_MAX};

/// Messages that are written in one transaction at the most: some milliseconds of work.
const BATCH_MAX: usize = 1_000;

/// Content of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Telemetry,
    Attributes,
}

/// Subject of the messages on a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Subject<'a> {
    pub(super) device: &'a str,
    pub(super) content: Content,
}

/// A message that waits for the store.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) message: Arc<Message>,
    /// Instant at which it came.
    pub(super) at: Micros,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Queued>,
    /// True if publishers wait for room.
    is_congested: bool,
    is_closed: bool,
}

/// Messages that are written next.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) messages: Vec<Queued>,
    /// True if publishers that wait for room may be read again.
    pub(super) has_room: bool,
    /// True if nothing comes any more after these.
    pub(super) is_last: bool,
}

impl Content {
    /// The connection that a type switch has for it.
    pub(super) const fn message_type(self) -> &'static str {
        match self {
            Self::Telemetry => "Post telemetry",
            Self::Attributes => "Post attributes",
        }
    }
}

impl<'a> Subject<'a> {
    /// Reads a topic on which data of devices surface.
    pub(super) fn of(topic: &'a str) -> Option<Self> {
        let (device, content) = topic.strip_prefix("thingsboard/")?.rsplit_once('/')?;
        let content = match content {
            "telemetry" => Content::Telemetry,
            "attributes" => Content::Attributes,
            _ => return None,
        };
        Some(Self { device, content })
    }
}

impl Queue {
    pub(super) fn push(&self, queued: Queued) -> Room {
        let mut state = locked(&self.state);
        let length = state.waiting.len();
        if length >= QUEUE_MAX {
            return Room::None;
        }
        state.waiting.push_back(queued);
        let is_much = length + 1 >= QUEUE_HIGH;
        state.is_congested |= is_much;
        drop(state);
        self.changed.notify_one();
        if is_much { Room::Little } else { Room::Enough }
    }

    /// Takes the messages that wait longest. If there are none, it waits for some, at most so long.
    pub(super) fn take(&self, at_most: Micros) -> Batch {
        let mut state = locked(&self.state);
        if state.waiting.is_empty() && !state.is_closed {
            state = self.wait(state, at_most);
        }
        let count = state.waiting.len().min(BATCH_MAX);
        let messages: Vec<Queued> = state.waiting.drain(..count).collect();
        let left = state.waiting.len();
        let has_room = state.is_congested && left <= QUEUE_LOW;
        state.is_congested &= !has_room;
        Batch {
            messages,
            has_room,
            is_last: state.is_closed && left == 0,
        }
    }

    /// Waits for that time; returns earlier if the queue is closed.
    pub(super) fn stand_still(&self, time: Micros) {
        let state = locked(&self.state);
        let still = Duration::from_micros(time.get());
        let waited = self
            .changed
            .wait_timeout_while(state, still, |state| !state.is_closed);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Nothing comes any more.
    pub(super) fn close(&self) {
        locked(&self.state).is_closed = true;
        self.changed.notify_all();
    }

    fn wait<'a>(
        &self,
        state: std::sync::MutexGuard<'a, State>,
        at_most: Micros,
    ) -> std::sync::MutexGuard<'a, State> {
        let at_most = Duration::from_micros(at_most.get());
        let waited = self.changed.wait_timeout(state, at_most);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_names_the_device_and_the_content() {
        let subject = |device, content| Some(Subject { device, content });
        let telemetry = subject("a/b", Content::Telemetry);
        assert_eq!(Subject::of("thingsboard/a/b/telemetry"), telemetry);
        let attributes = subject("d", Content::Attributes);
        assert_eq!(Subject::of("thingsboard/d/attributes"), attributes);
        for other in [
            "thingsboard/d",
            "thingsboard-rpc/d/request",
            "x/d/telemetry",
        ] {
            assert_eq!(Subject::of(other), None, "{other}");
        }
    }
}
