//! The receiver of one address, as a task of the library's thread.

use std::sync::Arc;
use std::time::Duration;

use fe2o3_amqp::Receiver;
use fe2o3_amqp::link::RecvError;
use fe2o3_amqp::link::delivery::Delivery;
use fe2o3_amqp::types::messaging::Body;
use fe2o3_amqp::types::primitives::Value;
use futures_util::FutureExt;
use muster_model::Micros;
use tokio::select;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::news::{BATCH, BATCHES, Batch, Delivered, Mode, News, Reporter};
use super::refusal::{of_link, of_recv};
use super::target::Target;
use super::worker::LinkEnd;
use crate::loss::Loss;

/// Deliveries that share one reading of the clock.
const PER_INSTANT: usize = 16;
/// Longest wait for the peer to close its end of a link.
const CLOSE_MAX: Duration = Duration::from_millis(500);

/// One receiver with its credit.
pub(super) struct Receiving {
    pub(super) target: Arc<Target>,
    /// The place of its address among the sources.
    pub(super) source: usize,
    pub(super) receiver: Receiver,
    pub(super) mode: watch::Receiver<Mode>,
    pub(super) reporter: Reporter,
}

/// Deliveries on their way to the loop and back.
struct Batches {
    back: mpsc::Sender<Vec<Delivered>>,
    returned: mpsc::Receiver<Vec<Delivered>>,
    /// Empty ones; no others are ever made.
    free: Vec<Vec<Delivered>>,
    /// Deliveries that were received and not accepted.
    unsettled: u32,
}

type Received = Result<Delivery<Body<Value>>, RecvError>;

impl Receiving {
    /// Receives until the link is over, or has to be attached anew after a pause.
    pub(super) async fn run(mut self) -> LinkEnd {
        match self.receive().await {
            Ok(()) => {
                // A peer that does not answer is found by the next probe.
                let _ = timeout(CLOSE_MAX, self.receiver.close()).await;
                LinkEnd::Done(Some(self.source))
            }
            Err(loss) => LinkEnd::Lost(loss),
        }
    }

    async fn receive(&mut self) -> Result<(), Loss> {
        let (back, returned) = mpsc::channel(BATCHES);
        let mut batches = Batches {
            back,
            returned,
            free: (0..BATCHES).map(|_| Vec::new()).collect(),
            unsettled: 0,
        };
        let mut is_paused = self.is_mode(Mode::Paused);
        if !is_paused {
            self.grant(self.target.credit).await?;
        }
        loop {
            if is_paused && batches.unsettled == 0 && !self.is_mode(Mode::Paused) {
                return Ok(());
            }
            select! {
                biased;
                Some(batch) = batches.returned.recv() => {
                    self.settle(batch, &mut batches).await?;
                    if !is_paused {
                        self.refill(batches.unsettled).await?;
                    }
                }
                changed = self.mode.changed() => {
                    if changed.is_err() || self.is_mode(Mode::Finishing) {
                        return self.settle_rest(batches).await;
                    }
                    if self.is_mode(Mode::Paused) && !is_paused {
                        is_paused = true;
                        // The peer gives back the credit that it has left.
                        let drained = self.receiver.drain().await;
                        self.state(drained)?;
                    }
                }
                received = self.receiver.recv::<Body<Value>>(), if !batches.free.is_empty() => {
                    self.gather(received, &mut batches).await?;
                }
            }
        }
    }

    fn is_mode(&self, mode: Mode) -> bool {
        *self.mode.borrow() == mode
    }

    /// Takes a delivery and those that wait behind it, and passes them to the loop.
    async fn gather(&mut self, first: Received, batches: &mut Batches) -> Result<(), Loss> {
        let Some(mut deliveries) = batches.free.pop() else {
            return Ok(());
        };
        let (mut next, mut seen) = (Some(first), Micros::ZERO);
        let mut lost = None;
        while let Some(received) = next.take() {
            if deliveries.len() % PER_INSTANT == 0 {
                seen = self.target.clock.now();
            }
            match delivered(received, seen) {
                Ok(delivered) => deliveries.push(delivered),
                Err(error) => {
                    lost = Some(of_recv(error, &self.target.sources[self.source]));
                    break;
                }
            }
            if deliveries.len() < BATCH {
                next = self.receiver.recv().now_or_never();
            }
        }
        batches.unsettled += deliveries.len() as u32;
        let batch = Batch {
            source: self.source,
            began: self.target.awake_since(),
            deliveries,
            back: batches.back.clone(),
        };
        self.reporter.report(News::Batch(batch)).await;
        lost.map_or(Ok(()), Err)
    }

    /// Accepts what the loop has counted.
    async fn settle(&self, mut batch: Vec<Delivered>, batches: &mut Batches) -> Result<(), Loss> {
        batches.unsettled -= batch.len() as u32;
        let infos = batch.drain(..).map(|delivered| delivered.info);
        let accepted = self.receiver.accept_all(infos).await;
        batches.free.push(batch);
        self.state(accepted)
    }

    /// Grants credit again once half of it is used up. Deliveries that are not accepted yet are part of it.
    async fn refill(&mut self, unsettled: u32) -> Result<(), Loss> {
        let (credit, left) = (self.target.credit, self.receiver.credit());
        if left > credit / 2 {
            return Ok(());
        }
        match credit.saturating_sub(unsettled) {
            wanted if wanted > left => self.grant(wanted).await,
            _ => Ok(()),
        }
    }

    async fn grant(&mut self, credit: u32) -> Result<(), Loss> {
        if credit == 0 {
            return Ok(());
        }
        let granted = self.receiver.set_credit(credit).await;
        self.state(granted)
    }

    /// Accepts what has come back by the end of the run.
    async fn settle_rest(&self, mut batches: Batches) -> Result<(), Loss> {
        while let Ok(batch) = batches.returned.try_recv() {
            self.settle(batch, &mut batches).await?;
        }
        Ok(())
    }

    fn state<E>(&self, done: Result<(), E>) -> Result<(), Loss>
    where
        fe2o3_amqp::link::LinkStateError: From<E>,
    {
        let address = &self.target.sources[self.source];
        done.map_err(|error| of_link(error.into(), address))
    }
}

/// A delivery that cannot be decoded is one nonetheless.
fn delivered(received: Received, seen: Micros) -> Result<Delivered, RecvError> {
    match received {
        Ok(delivery) => {
            let (info, content) = delivery.into_parts();
            let content = Some(content);
            Ok(Delivered {
                seen,
                info,
                content,
            })
        }
        Err(RecvError::MessageDecode(error)) => Ok(Delivered {
            seen,
            info: error.info,
            content: None,
        }),
        Err(error) => Err(error),
    }
}
