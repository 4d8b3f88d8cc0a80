//! The library's thread: keeps a connection up, with a task for each link.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use fe2o3_amqp::Session;
use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::session::BeginError;
use muster_model::Micros;
use tokio::select;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::news::{Mode, News, Reporter};
use super::receiving::Receiving;
use super::refusal::of_close;
use super::sending::Sending;
use super::target::{Opened, Target};
use crate::loss::Loss;

/// Longest time from the first packet until every link is attached.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Longest time for an answer of a peer that is up.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Longest wait for links and connection to close at the end of the run.
const GOODBYE_MAX: Duration = Duration::from_secs(1);
/// Wait for the connection's own reason, where a link knows only that the connection ended.
const LAST_WORD: Duration = Duration::from_millis(100);
/// The first wait before another try: short, since the run misses what the consumer misses.
const RETRY: Duration = Duration::from_millis(100);
/// Doublings of that wait, up to 1.6 s.
const DOUBLINGS_MAX: u32 = 4;

/// A question whether the peer is there, asked at this instant.
pub(super) struct Probe(pub(super) Micros);

/// The work of the library's thread.
pub(super) struct Worker {
    pub(super) target: Arc<Target>,
    pub(super) probes: mpsc::Receiver<Probe>,
    pub(super) mode: watch::Receiver<Mode>,
    pub(super) reporter: Reporter,
}

/// The end of a link's task.
pub(super) enum LinkEnd {
    /// Closed from our side; a receiver names its source.
    Done(Option<usize>),
    Lost(Loss),
}

impl Worker {
    /// Works until the run is over or the loop is gone.
    pub(super) async fn run(mut self) {
        let mut failures = 0;
        while let Some(loss) = self.serve(&mut failures).await {
            self.reporter.report(News::Ended(loss)).await;
            let wait = RETRY * (1 << failures.min(DOUBLINGS_MAX));
            failures += 1;
            select! {
                () = sleep(wait) => {}
                () = finishing(&mut self.mode) => return,
            }
        }
    }

    /// Serves one connection. Returns why it ended; none if the run is over.
    async fn serve(&mut self, failures: &mut u32) -> Option<Loss> {
        let awaited = Cell::new("an answer");
        let mut links = JoinSet::new();
        let opening = timeout(HANDSHAKE_MAX, self.open(&awaited, &mut links));
        let mut mode = self.mode.clone();
        let opened = select! {
            opened = opening => opened,
            () = finishing(&mut mode) => return None,
        };
        let (mut opened, queues) = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(loss)) => return Some(loss),
            Err(_) => {
                let waited = HANDSHAKE_MAX.as_secs();
                let what = format!("{} did not come within {waited} s", awaited.get());
                return Some(Loss::silent(what));
            }
        };
        *failures = 0;
        self.reporter.report(News::Up(queues)).await;
        loop {
            select! {
                Some(ended) = links.join_next() => match ended {
                    Ok(LinkEnd::Done(_)) if self.is_over() => {}
                    Ok(LinkEnd::Done(None)) => {}
                    Ok(LinkEnd::Done(Some(source))) => {
                        if let Err(loss) = self.receive(&mut opened, source, &mut links).await {
                            return Some(loss);
                        }
                    }
                    Ok(LinkEnd::Lost(loss)) => {
                        return Some(explained(&mut opened.connection, loss).await);
                    }
                    Err(error) => {
                        return Some(Loss::silent(format!("a task of a link failed: {error}")));
                    }
                },
                closed = opened.connection.on_close() => return Some(of_close(closed)),
                Some(Probe(asked)) = self.probes.recv() => {
                    match timeout(ANSWER_MAX, answers(&mut opened.connection)).await {
                        Ok(true) => self.reporter.report(News::Answered(asked)).await,
                        Ok(false) => {}
                        Err(_) => {
                            let waited = ANSWER_MAX.as_secs();
                            let what = format!("it has not answered for {waited} s");
                            return Some(Loss::silent(what));
                        }
                    }
                }
                () = finishing(&mut mode) => {
                    finish(opened, links).await;
                    return None;
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        is_finishing(&self.mode.borrow())
    }

    /// Connects and attaches every link. Returns the queues of commands too.
    async fn open(
        &self,
        awaited: &Cell<&'static str>,
        links: &mut JoinSet<LinkEnd>,
    ) -> Result<(Opened, Vec<mpsc::Sender<super::sending::Outgoing>>), Loss> {
        let mut opened = self.target.open(awaited).await?;
        awaited.set("ATTACH");
        for source in 0..self.target.sources.len() {
            self.receive(&mut opened, source, links).await?;
        }
        let mut queues = Vec::new();
        for address in &self.target.commands {
            let link = self.target.sender(&mut opened.session, address).await?;
            let (queue, sending) = Sending::new(link, address, self);
            links.spawn(sending.run());
            queues.push(queue);
        }
        Ok((opened, queues))
    }

    /// Attaches a receiver and starts its task.
    async fn receive(
        &self,
        opened: &mut Opened,
        source: usize,
        links: &mut JoinSet<LinkEnd>,
    ) -> Result<(), Loss> {
        let receiving = Receiving {
            target: Arc::clone(&self.target),
            source,
            receiver: self.target.receiver(&mut opened.session, source).await?,
            mode: self.mode.clone(),
            reporter: self.reporter.clone(),
        };
        links.spawn(receiving.run());
        Ok(())
    }
}

/// True if the loop asks for the end.
fn is_finishing(mode: &Mode) -> bool {
    *mode == Mode::Finishing
}

/// Waits until the loop asks for the end, or is gone.
pub(super) async fn finishing(mode: &mut watch::Receiver<Mode>) {
    let _ = mode.wait_for(is_finishing).await;
}

/// Returns true if the peer has answered. A session is begun and ended, the smallest question that every peer
/// has to answer.
async fn answers(connection: &mut ConnectionHandle<()>) -> bool {
    match Session::begin(connection).await {
        Ok(mut session) => session.end().await.is_ok(),
        // A peer with one session a connection is asked nothing.
        Err(BeginError::LocalChannelMaxReached) => true,
        Err(_) => false,
    }
}

/// The loss as the connection reports it, if a link knows no more than that it ended.
async fn explained(connection: &mut ConnectionHandle<()>, loss: Loss) -> Loss {
    if !loss.is_of_connection {
        return loss;
    }
    let closed = timeout(LAST_WORD, connection.on_close()).await;
    closed.map_or(loss, of_close)
}

/// Closes links and connection.
async fn finish(mut opened: Opened, mut links: JoinSet<LinkEnd>) {
    let goodbye = async {
        while links.join_next().await.is_some() {}
        let _ = opened.connection.close().await;
    };
    let _ = timeout(GOODBYE_MAX, goodbye).await;
}
