//! The sender of one tenant's commands, as a task of the library's thread.

use std::pin::pin;
use std::time::Duration;

use fe2o3_amqp::Sender;
use fe2o3_amqp::link::SendError;
use fe2o3_amqp::types::messaging::{Data, Message, Outcome, Properties};
use muster_conduct::{CommandToken, Remedy};
use muster_model::{Delivery, Reason};
use tokio::select;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::news::{Mode, News, Reporter};
use super::refusal::{of_detach, of_send};
use super::worker::{LinkEnd, Worker, finishing};
use crate::loss::Loss;

/// Commands that may wait for the library: without credit no more are issued.
const QUEUE_MAX: usize = 16;
/// Commands of one tenant that the peer has not settled, at the most; then no more are sent.
const UNDER_WAY_MAX: usize = 1_000;
/// Wait for credit after which its absence is reported.
const CREDIT_WAIT: Duration = Duration::from_secs(5);

/// A command on its way to the library.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    pub(super) token: CommandToken,
    pub(super) to: String,
    pub(super) subject: &'static str,
    pub(super) content_type: &'static str,
    /// The correlation id and the address of the reply.
    pub(super) reply: Option<(String, String)>,
    pub(super) payload: Vec<u8>,
}

/// One sender with its queue.
pub(super) struct Sending {
    link: Sender,
    queue: mpsc::Receiver<Outgoing>,
    mode: watch::Receiver<Mode>,
    outcomes: Outcomes,
    /// True if the absence of credit was reported.
    has_starved: bool,
}

/// Outcomes of a sender's commands, which are read while the link waits for credit too.
struct Outcomes {
    address: String,
    reporter: Reporter,
    /// Commands whose outcome is awaited, at most [`UNDER_WAY_MAX`].
    awaited: JoinSet<Settled>,
    /// True if a rejection was reported.
    has_rejected: bool,
    /// True if a command without an outcome was reported.
    has_failed: bool,
}

/// A command, and its outcome.
type Settled = (CommandToken, Result<Outcome, SendError>);

impl Outgoing {
    fn message(self) -> (CommandToken, Message<Data>) {
        let mut properties = Properties::builder()
            .to(self.to)
            .subject(self.subject)
            .content_type(self.content_type)
            .build();
        if let Some((id, reply_to)) = self.reply {
            properties.correlation_id = Some(id.into());
            properties.reply_to = Some(reply_to);
        }
        let message = Message::builder()
            .properties(properties)
            .data(self.payload)
            .build();
        (self.token, message)
    }
}

impl Sending {
    /// The sender of a link, and the queue that it sends from.
    pub(super) fn new(
        link: Sender,
        address: &str,
        worker: &Worker,
    ) -> (mpsc::Sender<Outgoing>, Self) {
        let (queue, taken) = mpsc::channel(QUEUE_MAX);
        let sending = Self {
            link,
            queue: taken,
            mode: worker.mode.clone(),
            outcomes: Outcomes {
                address: address.to_owned(),
                reporter: worker.reporter.clone(),
                awaited: JoinSet::new(),
                has_rejected: false,
                has_failed: false,
            },
            has_starved: false,
        };
        (queue, sending)
    }

    /// Sends until the link or the run is over.
    pub(super) async fn run(mut self) -> LinkEnd {
        loop {
            select! {
                biased;
                Some(Ok(settled)) = self.outcomes.awaited.join_next() => {
                    self.outcomes.report(settled).await;
                }
                () = finishing(&mut self.mode) => return LinkEnd::Done(None),
                Some(command) = self.queue.recv(), if self.outcomes.has_room() => {
                    if self.queue.len() + 1 >= QUEUE_MAX {
                        // The loop may wait for this place.
                        self.outcomes.reporter.waker.wake();
                    }
                    if let Err(loss) = self.send(command).await {
                        return LinkEnd::Lost(loss);
                    }
                }
                error = self.link.on_detach() => {
                    return LinkEnd::Lost(of_detach(error, &self.outcomes.address));
                }
            }
        }
    }

    /// Sends one command; waits for credit, and reports outcomes meanwhile.
    async fn send(&mut self, command: Outgoing) -> Result<(), Loss> {
        let (token, message) = command.message();
        let mut sending = pin!(self.link.send_batchable(message));
        let mut starved = pin!(sleep(CREDIT_WAIT));
        let sent = loop {
            select! {
                sent = &mut sending => break sent,
                Some(Ok(settled)) = self.outcomes.awaited.join_next() => {
                    self.outcomes.report(settled).await;
                }
                () = &mut starved, if !self.has_starved => {
                    self.has_starved = true;
                    let loss = starvation(&self.outcomes.address);
                    self.outcomes.reporter.report(News::Commands(loss)).await;
                }
                () = finishing(&mut self.mode) => return Ok(()),
            }
        };
        match sent {
            Ok(outcome) => {
                let outcome = async move { (token, outcome.await) };
                self.outcomes.awaited.spawn(outcome);
            }
            Err(error) if is_end(&error) => return Err(of_send(error, &self.outcomes.address)),
            Err(error) => self.outcomes.report((token, Err(error))).await,
        }
        Ok(())
    }
}

impl Outcomes {
    fn has_room(&self) -> bool {
        self.awaited.len() < UNDER_WAY_MAX
    }

    /// Reports a settled command. If the link ended first, the loop ends its commands.
    async fn report(&mut self, (token, outcome): Settled) {
        let undeliverable = |code| Delivery::Undeliverable(Reason::Amqp(code));
        let delivery = match outcome {
            Ok(Outcome::Accepted(_)) => Delivery::Delivered,
            Ok(Outcome::Released(_)) => undeliverable(Reason::AMQP_RELEASED),
            Ok(Outcome::Modified(_)) => undeliverable(Reason::AMQP_MODIFIED),
            Ok(Outcome::Rejected(rejected)) => {
                if !std::mem::replace(&mut self.has_rejected, true) {
                    let why = rejected.error.map_or(String::new(), |error| {
                        let said = error.description.unwrap_or_default();
                        format!(": {:?} {said}", error.condition)
                    });
                    let what = format!("commands to `{}` are rejected{why}", self.address);
                    self.report_cause(what).await;
                }
                undeliverable(Reason::AMQP_REJECTED)
            }
            Err(error) if is_end(&error) => return,
            Err(error) => {
                if !std::mem::replace(&mut self.has_failed, true) {
                    let what = format!("a command to `{}` has no outcome: {error}", self.address);
                    self.report_cause(what).await;
                }
                Delivery::Unknown
            }
        };
        self.reporter.report(News::Settled(token, delivery)).await;
    }

    async fn report_cause(&self, what: String) {
        let loss = Loss::of_commands(what, Remedy::act("look into the log of the platform"));
        self.reporter.report(News::Commands(loss)).await;
    }
}

/// True if the link is over, and with it every command under way.
const fn is_end(error: &SendError) -> bool {
    matches!(error, SendError::LinkStateError(_) | SendError::Detached(_))
}

/// A peer that grants no credit to the sender of commands.
fn starvation(address: &str) -> Loss {
    let waited = CREDIT_WAIT.as_secs();
    let what =
        format!("the peer has granted no credit on `{address}` for {waited} s, and commands wait");
    Loss::of_commands(
        what,
        Remedy::act("does an adapter or a consumer of that address take commands?"),
    )
}
