//! The mail between the gateway's threads.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};

use muster_model::Micros;
use muster_net::Waker;
use tokio::sync::oneshot;

use crate::amqp::{Offered, Sending};
use crate::broker::session::Session;
use crate::lock::locked;
use crate::message::Message;
use crate::routes::{Claim, Grant, SessionRef};
use crate::waiter::Waiter;

#[derive(Debug)]
pub(crate) enum Mail {
    /// A copy for a session that lives there; the sender has counted it in the session's gauge,
    /// which bounds how much mail there can be.
    Deliver {
        to: SessionRef,
        grant: Grant,
        message: Arc<Message>,
    },
    /// A client came back on another thread.
    Claim(Claim),
    /// The answer: what the session was, if it was to be kept.
    Granted {
        to: SessionRef,
        session: Option<Box<Session>>,
    },
    /// The first uplink of all came at this instant.
    FirstUplink(Micros),
    /// A full queue has room again.
    Room,
    /// An uplink comes back from the receivers over AMQP.
    Offered { offered: Offered, is_taken: bool },
    /// An application sent a message over AMQP.
    Sending(Sending),
    /// A command for a request that waits there.
    Command { to: Waiter, message: Arc<Message> },
    /// A command of the REST API; `routed` gets the number of its copies.
    Call {
        message: Arc<Message>,
        is_again: bool,
        /// True if it is not tried again.
        is_last: bool,
        routed: oneshot::Sender<usize>,
    },
}

#[derive(Debug, Default)]
pub(crate) struct Post {
    inbox: Mutex<VecDeque<Mail>>,
    waker: OnceLock<Waker>,
}

impl Post {
    pub(crate) fn set_waker(&self, waker: Waker) {
        // Each thread sets its own, once.
        let _ = self.waker.set(waker);
    }

    /// Sends mail in order and wakes its reader.
    pub(crate) fn send(&self, mail: &mut Vec<Mail>) {
        if mail.is_empty() {
            return;
        }
        locked(&self.inbox).extend(mail.drain(..));
        self.wake();
    }

    pub(crate) fn collect(&self, into: &mut VecDeque<Mail>) {
        std::mem::swap(&mut *locked(&self.inbox), into);
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }
}
