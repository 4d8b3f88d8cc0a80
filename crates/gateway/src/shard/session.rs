//! What the gateway knows of a client beyond its connection (section 4.1).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use muster_net::{Key, TimerId};
use muster_protocol::mqtt::{SessionState, Token};
use rustc_hash::FxHashMap;

use crate::message::Message;
use crate::routes::{Gauge, SessionRef, Subscription};
use crate::shared::{Claim, Grant};

/// Copies in a session's queue above which publishers at QoS 1 and 2 are not read.
pub(crate) const QUEUE_HIGH: usize = 20_000;
/// Copies at which they are read again; far enough below that they do not flutter.
pub(crate) const QUEUE_LOW: usize = QUEUE_HIGH / 2;
/// Most copies in a queue: beyond it, copies at QoS 0 are dropped, and for an absent session all.
pub(crate) const QUEUE_MAX: usize = 100_000;

/// What the gateway knows of a client beyond its connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) me: SessionRef,
    pub(crate) client_id: Box<str>,
    pub(crate) link: Option<Key>,
    /// Seconds it outlives the connection; all ones is for ever (section 3.1.2.11.2).
    pub(crate) expiry: u32,
    pub(crate) gauge: Arc<Gauge>,
    /// By the text of the filter, as asked for.
    pub(crate) subscriptions: Vec<(Box<str>, Subscription)>,
    pub(crate) queue: VecDeque<(Grant, Arc<Message>)>,
    /// Copies without their last answer, kept only where they may have to be sent again.
    pub(crate) inflight: FxHashMap<u32, (Grant, Arc<Message>)>,
    pub(crate) state: SessionState,
    /// A will that waits out its delay.
    pub(crate) pending_will: Option<(TimerId, u64, Box<Message>)>,
    /// When it ends, if its client is away.
    pub(crate) expiring: Option<(TimerId, u64)>,
    /// A claim that came while the session itself was being claimed.
    pub(crate) claim: Option<Claim>,
    next_token: u32,
}

/// A message left with the gateway (section 3.1.2.5).
#[derive(Debug, Clone)]
pub(crate) struct Will {
    pub(crate) message: Message,
    /// Seconds.
    pub(crate) delay: u32,
}

impl Session {
    pub(crate) fn new(me: SessionRef, client_id: &str, expiry: u32) -> Self {
        Self {
            me,
            client_id: client_id.into(),
            link: None,
            expiry,
            gauge: Arc::default(),
            subscriptions: Vec::new(),
            queue: VecDeque::new(),
            inflight: FxHashMap::default(),
            state: SessionState::default(),
            pending_will: None,
            expiring: None,
            claim: None,
            next_token: 0,
        }
    }

    /// A name for the next delivery.
    pub(crate) fn token(&mut self) -> Token {
        self.next_token = self.next_token.wrapping_add(1);
        Token(self.next_token)
    }

    /// Whether deliveries have to be kept until they are answered.
    pub(crate) fn is_persistent(&self) -> bool {
        self.expiry > 0
    }

    pub(crate) fn enqueue(&mut self, grant: Grant, message: Arc<Message>) {
        self.gauge.waiting.fetch_add(1, Ordering::SeqCst);
        self.queue.push_back((grant, message));
    }

    /// Takes the first copy out of the queue, and says whether publishers that wait for room are
    /// to be told.
    pub(crate) fn dequeue(&mut self) -> Option<((Grant, Arc<Message>), bool)> {
        let first = self.queue.pop_front()?;
        let left = self.gauge.waiting.fetch_sub(1, Ordering::SeqCst) - 1;
        let tell = left <= QUEUE_LOW && self.gauge.congested.swap(false, Ordering::SeqCst);
        Some((first, tell))
    }

    /// Goes on with what an earlier session of the client left, on this thread or another.
    pub(crate) fn inherit(&mut self, old: Session) {
        self.subscriptions = old.subscriptions;
        for (_, subscription) in &mut self.subscriptions {
            subscription.session = self.me;
            subscription.gauge = Arc::clone(&self.gauge);
        }
        self.gauge
            .waiting
            .fetch_add(old.queue.len(), Ordering::SeqCst);
        let newer = std::mem::replace(&mut self.queue, old.queue);
        self.queue.extend(newer);
        self.inflight = old.inflight;
        self.state = old.state;
        self.next_token = old.next_token;
    }
}
