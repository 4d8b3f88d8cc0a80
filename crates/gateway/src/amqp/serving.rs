//! Service of one address: its messages go to its receivers, each to one that has credit.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use fe2o3_amqp::types::messaging::{Data, Outcome};
use fe2o3_amqp::{Sendable, Sender};
use futures_util::FutureExt;
use muster_net::Clock;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::unconstrained;

use super::address::Address;
use super::encoding::encode;
use super::exchange::{AskingGuard, Offer};
use crate::account::Counts;
use crate::backlog::Stored;
use crate::mail::Mail;
use crate::message::Message;
use crate::shared::Shared;

/// Most deliveries of an address without a disposition. Beyond it nobody has credit, whatever a receiver
/// grants: the library keeps a copy of each.
const UNSETTLED_MAX: usize = 20_000;
/// Times that a receiver may give a stored message back before it is dropped, as brokers do.
const RETURNS_MAX: u32 = 10;

/// The parts that the tasks of an address share.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) address: Arc<Address>,
    pub(super) shared: Arc<Shared>,
    pub(super) clock: Clock,
    /// Deliveries without a disposition.
    pub(super) unsettled: Arc<AtomicUsize>,
}

/// A link to a receiver.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) link: Sender,
    /// Its share of the links that its session may have.
    pub(super) permit: OwnedSemaphorePermit,
}

/// The receivers of an address.
#[derive(Debug)]
struct Receivers {
    place: Place,
    links: Vec<Attached>,
    /// The link whose turn is next.
    next: usize,
}

type Sent = Pin<Box<dyn Future<Output = Option<Outcome>> + Send>>;

/// Serves an address for as long as the gateway runs. Messages that wait come first; while one of them finds no
/// credit, what is offered finds none either.
pub(super) async fn serve(place: Place, mut attached: mpsc::Receiver<Attached>) {
    let address = Arc::clone(&place.address);
    let mut receivers = Receivers {
        place,
        links: Vec::new(),
        next: 0,
    };
    loop {
        // Nothing here waits while there is credit, and other tasks want their turn.
        tokio::task::consume_budget().await;
        while let Ok(link) = attached.try_recv() {
            receivers.links.push(link);
        }
        if let Some(stored) = receivers.place.take_stored() {
            if let Some(unsent) = receivers.deliver(stored) {
                receivers.place.refuse_offers();
                receivers.wait_for_credit(unsent, &mut attached).await;
            }
            continue;
        }
        if let Some(offer) = address.take_offer() {
            receivers.offer(offer);
            continue;
        }
        tokio::select! {
            biased;
            Some(link) = attached.recv() => receivers.links.push(link),
            () = address.backlog.changed.notified() => {}
            at = detached(&mut receivers.links) => receivers.remove(at),
        }
    }
}

impl Receivers {
    /// Offers an uplink to the receivers: one with credit takes it, else its device is refused.
    fn offer(&mut self, offer: Offer) {
        let message = Arc::clone(&offer.offered.uplink.message);
        let Some(sent) = self.send_now(&message) else {
            return self.place.answer(offer, false);
        };
        // Noted before its receiver can issue a command for the device.
        let shared = &self.place.shared;
        let exchange = shared.outlets.exchange.as_ref();
        let asking = exchange.and_then(|exchange| exchange.note_asking(shared, &offer));
        let place = self.place.clone();
        tokio::spawn(place.settle_offer(sent, offer, asking));
    }

    /// Sends a stored message to a receiver with credit; it comes back if there is none.
    fn deliver(&mut self, stored: Stored) -> Option<Stored> {
        if stored.message.is_void(self.place.clock.now()) {
            self.place.counts().expired.more();
            return None;
        }
        match self.send_now(&stored.message) {
            Some(sent) => self.track(sent, stored),
            None => return Some(stored),
        }
        None
    }

    fn track(&self, sent: Sent, stored: Stored) {
        let counts = self.place.counts();
        if stored.returned > 0 {
            counts.redelivered.more();
        } else {
            counts.delivered.more();
        }
        tokio::spawn(self.place.clone().settle_stored(sent, stored));
    }

    /// Waits until a receiver has credit for a stored message, or something else has changed.
    async fn wait_for_credit(&mut self, stored: Stored, attached: &mut mpsc::Receiver<Attached>) {
        let address = Arc::clone(&self.place.address);
        let has_room = self.place.has_room();
        let sendable = self.place.encode(&stored.message);
        let granted = tokio::select! {
            biased;
            Some(link) = attached.recv() => {
                self.links.push(link);
                None
            }
            () = address.backlog.changed.notified() => None,
            granted = first_granted(&mut self.links, &sendable), if has_room => Some(granted),
        };
        match granted {
            Some((at, Some(sent))) => {
                self.next = at + 1;
                self.place.note_sent();
                self.track(sent, stored);
            }
            Some((at, None)) => {
                self.remove(at);
                address.backlog.put_back(stored);
            }
            None => address.backlog.put_back(stored),
        }
    }

    /// Sends a message if a receiver has credit now, in turns.
    fn send_now(&mut self, message: &Message) -> Option<Sent> {
        if !self.place.has_room() {
            return None;
        }
        let sendable = self.place.encode(message);
        let mut tried = 0;
        while tried < self.links.len() {
            let at = (self.next + tried) % self.links.len();
            // Credit that a receiver granted before it detached is worth nothing.
            if unconstrained(self.links[at].link.on_detach())
                .now_or_never()
                .is_some()
            {
                self.remove(at);
                continue;
            }
            // Dropped while it would have to wait, it has sent nothing.
            match unconstrained(send(&mut self.links[at].link, &sendable)).now_or_never() {
                Some(Some(sent)) => {
                    self.next = at + 1;
                    self.place.note_sent();
                    return Some(sent);
                }
                Some(None) => self.remove(at),
                None => tried += 1,
            }
        }
        None
    }

    /// Ends a link whose receiver is gone; its detach is answered.
    fn remove(&mut self, at: usize) {
        let Attached { link, permit } = self.links.swap_remove(at);
        self.place.address.remove_receiver();
        tokio::spawn(async move {
            // The other side may be gone already.
            let _ = link.close().await;
            drop(permit);
        });
    }
}

impl Place {
    fn counts(&self) -> &Counts {
        self.shared.account.amqp()
    }

    fn encode(&self, message: &Message) -> Sendable<Data> {
        let server = &self.shared.config.dialect.spec().server.amqp;
        encode(server, self.clock, message, self.address.name())
    }

    fn has_room(&self) -> bool {
        self.unsettled.load(Ordering::Relaxed) < UNSETTLED_MAX
    }

    fn note_sent(&self) {
        self.unsettled.fetch_add(1, Ordering::Relaxed);
    }

    fn take_stored(&self) -> Option<Stored> {
        let (stored, has_room) = self.address.backlog.take()?;
        if has_room {
            self.shared.announce_room();
        }
        Some(stored)
    }

    fn refuse_offers(&self) {
        while let Some(offer) = self.address.take_offer() {
            self.answer(offer, false);
        }
    }

    /// Reports to the thread of an uplink whether a receiver took it.
    fn answer(&self, offer: Offer, is_taken: bool) {
        let Offer { shard, offered } = offer;
        let mail = Mail::Offered { offered, is_taken };
        self.shared.post(shard).send(&mut vec![mail]);
    }

    /// The disposition of a delivery; none if the link ended before.
    async fn disposition(&self, sent: Sent) -> Option<Outcome> {
        let outcome = sent.await;
        self.unsettled.fetch_sub(1, Ordering::Relaxed);
        self.address.wake();
        if matches!(outcome, Some(Outcome::Accepted(_))) {
            self.counts().delivered_acknowledged.more();
        } else {
            self.counts().returned.more();
        }
        outcome
    }

    /// Answers an uplink: at once if it travels at most once, else after its disposition.
    async fn settle_offer(self, sent: Sent, offer: Offer, asking: Option<AskingGuard>) {
        self.counts().delivered.more();
        if !offer.offered.uplink.waits() {
            self.answer(offer, true);
            drop(asking);
            self.disposition(sent).await;
            return;
        }
        let mut disposition = pin!(self.disposition(sent));
        let within = Duration::from_micros(self.shared.config.disposition_within.get());
        let outcome = tokio::time::timeout(within, &mut disposition).await;
        self.answer(offer, matches!(outcome, Ok(Some(Outcome::Accepted(_)))));
        drop(asking);
        if outcome.is_err() {
            disposition.await;
        }
    }

    /// Queues a stored message again that its receiver gave back.
    async fn settle_stored(self, sent: Sent, mut stored: Stored) {
        match self.disposition(sent).await {
            Some(Outcome::Accepted(_)) => {}
            Some(Outcome::Rejected(_)) => self.counts().discarded.more(),
            Some(Outcome::Released(_) | Outcome::Modified(_)) | None => {
                stored.returned += 1;
                if stored.returned > RETURNS_MAX {
                    return self.counts().discarded.more();
                }
                self.address.backlog.put_back(stored);
                self.address.wake();
            }
        }
    }
}

/// Hands a message to a link once that has credit; none if the link is at its end. Dropped before, it has not sent
/// anything.
async fn send(link: &mut Sender, sendable: &Sendable<Data>) -> Option<Sent> {
    let delivery = link.send_batchable_ref(sendable).await.ok()?;
    Some(Box::pin(async move { delivery.await.ok() }))
}

/// The first link that has credit, and the delivery on it; no delivery if the link is at its end.
async fn first_granted(links: &mut [Attached], sendable: &Sendable<Data>) -> (usize, Option<Sent>) {
    let sends = links
        .iter_mut()
        .map(|link| Box::pin(send(&mut link.link, sendable)));
    first(sends.collect()).await
}

/// The place of the first link whose receiver detaches.
async fn detached(links: &mut [Attached]) -> usize {
    let ends = links.iter_mut().map(|link| Box::pin(link.link.on_detach()));
    first(ends.collect()).await.0
}

/// The first of some futures that is ready, and its place. The others have not been polled since.
async fn first<F: Future + Unpin>(mut futures: Vec<F>) -> (usize, F::Output) {
    std::future::poll_fn(|context| {
        for (at, future) in futures.iter_mut().enumerate() {
            if let Poll::Ready(result) = Pin::new(future).poll(context) {
                return Poll::Ready((at, result));
            }
        }
        Poll::Pending
    })
    .await
}
