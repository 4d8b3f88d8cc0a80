//! One address of AMQP 1.0: the messages that wait on it, as all threads know them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use tokio::sync::mpsc;

use super::exchange::Offer;
use super::serving::Attached;
use crate::backlog::Backlog;
use crate::lock::locked;

/// Most uplinks that wait for the answer whether a receiver has credit: the side thread gives it at once, so
/// that more wait only while that thread is behind.
const OFFERS_MAX: usize = 10_000;

/// An address, its queue and the number of its receivers.
#[derive(Debug)]
pub(crate) struct Address {
    name: Box<str>,
    pub(super) backlog: Backlog,
    offers: Mutex<VecDeque<Offer>>,
    receivers: AtomicUsize,
    /// Way of new links to the task that serves the address; none before the first.
    pub(super) attached: OnceLock<mpsc::Sender<Attached>>,
}

impl Address {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            backlog: Backlog::default(),
            offers: Mutex::default(),
            receivers: AtomicUsize::new(0),
            attached: OnceLock::new(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn add_receiver(&self) {
        self.receivers.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn remove_receiver(&self) {
        self.receivers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Has the task that serves the address look at it again.
    pub(super) fn wake(&self) {
        self.backlog.changed.notify_one();
    }

    /// Offers an uplink to the receivers; it comes back if there are none, or too many wait.
    pub(super) fn offer(&self, offer: Offer) -> Result<(), Offer> {
        if self.receivers.load(Ordering::SeqCst) == 0 {
            return Err(offer);
        }
        let mut offers = locked(&self.offers);
        if offers.len() >= OFFERS_MAX {
            return Err(offer);
        }
        offers.push_back(offer);
        drop(offers);
        self.wake();
        Ok(())
    }

    pub(super) fn take_offer(&self) -> Option<Offer> {
        locked(&self.offers).pop_front()
    }
}
