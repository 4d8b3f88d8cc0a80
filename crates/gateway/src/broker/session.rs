//! State of a client that outlives its connection (section 4.1).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use muster_net::Key;
use muster_protocol::mqtt::{SessionState, Token};
use rustc_hash::FxHashMap;

use crate::message::Message;
use crate::routes::{Claim, Gauge, Grant, QUEUE_LOW, SessionRef, Subscription};
use crate::uplink::AlarmId;

/// State of a client that outlives its connection.
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
    pub(crate) pending_will: Option<(AlarmId, Box<Message>)>,
    /// Alarm at its end, if its client is away.
    pub(crate) expiring: Option<AlarmId>,
    /// A claim that came while the session itself was being claimed.
    pub(crate) claim: Option<Claim>,
    next_token: u32,
}

/// Fields of a CONNECT.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) client_id: Box<str>,
    pub(crate) is_assigned: bool,
    pub(crate) clean_start: bool,
    pub(crate) expiry: u32,
    /// True if a session was found.
    pub(crate) is_present: bool,
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

    pub(crate) fn enqueue(&mut self, grant: Grant, message: Arc<Message>) {
        self.gauge.waiting.fetch_add(1, Ordering::SeqCst);
        self.queue.push_back((grant, message));
    }

    /// Takes the first copy out of the queue; true if publishers that wait for room may be read again.
    pub(crate) fn dequeue(&mut self) -> Option<((Grant, Arc<Message>), bool)> {
        let first = self.queue.pop_front()?;
        Some((first, self.lower()))
    }

    /// One copy waits no more; true if publishers that wait for room may be read again.
    pub(crate) fn lower(&self) -> bool {
        let left = self.gauge.waiting.fetch_sub(1, Ordering::SeqCst) - 1;
        left <= QUEUE_LOW && self.gauge.congested.swap(false, Ordering::SeqCst)
    }

    /// Keeps a copy until it is answered, if it may have to be sent again.
    pub(crate) fn keep(
        &mut self,
        token: Token,
        grant: Grant,
        message: impl FnOnce() -> Arc<Message>,
    ) {
        if self.expiry > 0 && !grant.may_be_dropped() {
            self.inflight.insert(token.0, (grant, message()));
        }
    }

    /// A copy in flight has its last answer.
    pub(crate) fn completed(&mut self, token: Token) {
        if self.expiry > 0 {
            self.inflight.remove(&token.0);
        }
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
