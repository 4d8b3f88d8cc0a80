//! Messages between the library's thread and the loop, all in bounded channels.

use fe2o3_amqp::link::delivery::DeliveryInfo;
use fe2o3_amqp::types::messaging::{Body, Message};
use fe2o3_amqp::types::primitives::Value;
use muster_conduct::CommandToken;
use muster_model::{Delivery, Micros};
use muster_net::Waker;
use tokio::sync::mpsc;

use super::sending::Outgoing;
use crate::loss::Loss;

/// Pieces of news that wait for the loop: batches are bounded by their number in [`BATCHES`] a link.
pub(super) const NEWS_MAX: usize = 1_024;
/// Deliveries of one batch, as the library's tasks take before they give way to each other.
pub(super) const BATCH: usize = 128;
/// Batches of one link: while one is counted, the next fills.
pub(super) const BATCHES: usize = 4;

/// A delivery as it was decoded.
pub(super) type Content = Message<Body<Value>>;

/// State that the loop asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Running,
    /// No credit is granted.
    Paused,
    /// The run is over.
    Finishing,
}

/// A piece of news for the loop.
pub(super) enum News {
    /// Every link is attached. Commands go by these queues, one for each tenant.
    Up(Vec<mpsc::Sender<Outgoing>>),
    /// The connection is over, or was never up.
    Ended(Loss),
    /// Deliveries to count.
    Batch(Batch),
    /// The peer settled a command.
    Settled(CommandToken, Delivery),
    /// Commands are refused or wait; the cause.
    Commands(Loss),
    /// The peer has answered a question of this instant.
    Answered(Micros),
}

/// Deliveries of one link, which go back to it once they are counted.
pub(super) struct Batch {
    /// The place of their address among the sources.
    pub(super) source: usize,
    /// Instant since which the library's thread has worked: what it read may have lain there as long.
    pub(super) began: Micros,
    pub(super) deliveries: Vec<Delivered>,
    pub(super) back: mpsc::Sender<Vec<Delivered>>,
}

/// One delivery.
pub(super) struct Delivered {
    /// Instant at which the library handed it over.
    pub(super) seen: Micros,
    pub(super) info: DeliveryInfo,
    /// None if it is no valid message.
    pub(super) content: Option<Content>,
}

/// The way of news to the loop.
#[derive(Clone)]
pub(super) struct Reporter {
    pub(super) news: mpsc::Sender<News>,
    pub(super) waker: Waker,
}

impl Reporter {
    /// Reports to the loop, and waits while it has too much to read.
    pub(super) async fn report(&self, news: News) {
        // The loop may be gone.
        let _ = self.news.send(news).await;
        self.waker.wake();
    }
}
