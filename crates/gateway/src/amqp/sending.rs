//! Messages that applications send over AMQP 1.0: commands, each with an outcome, and at a broker anything.

use std::sync::Arc;

use fe2o3_amqp::Receiver;
use fe2o3_amqp::link::RecvError;
use fe2o3_amqp::link::delivery::DeliveryInfo;
use fe2o3_amqp::types::definitions::{AmqpError, Error};
use fe2o3_amqp::types::messaging::{Message as AmqpMessage, TargetArchetype};
use muster_platform::Commanded;
use muster_protocol::mqtt::{Publish, Qos};
use tokio::sync::mpsc;

use super::connection::Applications;
use super::encoding::{AnyBody, Fields, bytes};
use crate::commands;
use crate::end::Work;
use crate::lock::locked;
use crate::mail::Mail;
use crate::message::Message;
use crate::shared::Shared;

/// Messages of one link without a verdict: as many as the library grants credit for.
const UNDER_WAY_MAX: usize = 200;

/// A message of an application on its way to the thread that takes it.
#[derive(Debug)]
pub(crate) struct Sending {
    message: Arc<Message>,
    delivery: DeliveryInfo,
    verdicts: mpsc::Sender<(DeliveryInfo, Verdict)>,
}

/// Outcome of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    Accepted,
    /// Nobody waits for it now.
    Released,
    /// Wrong, for this reason.
    Rejected(&'static str),
}

/// Name of the address that a link sends to; none for a link without one.
pub(super) fn address_of(target: &TargetArchetype) -> Option<String> {
    let TargetArchetype::Target(target) = target;
    target.address.clone()
}

/// Takes what comes on a link until the link ends. Each message has its verdict when it is known: none waits for the
/// one before it.
pub(super) async fn take(applications: Applications, mut link: Receiver, address: String) {
    let (verdicts, mut reported) = mpsc::channel(UNDER_WAY_MAX);
    let mut under_way = 0;
    loop {
        let (delivery, verdict) = tokio::select! {
            biased;
            Some(settled) = reported.recv() => {
                under_way -= 1;
                settled
            }
            received = link.recv::<AnyBody>(), if under_way < UNDER_WAY_MAX => match received {
                Ok(received) => {
                    let (delivery, message) = received.into_parts();
                    match applications.read(message, &address) {
                        Ok(message) => {
                            under_way += 1;
                            let verdicts = verdicts.clone();
                            applications.pass(Sending { message, delivery, verdicts });
                            continue;
                        }
                        Err(why) => (delivery, Verdict::Rejected(why)),
                    }
                }
                Err(RecvError::MessageDecode(error)) => {
                    (error.info, Verdict::Rejected("the message cannot be decoded"))
                }
                Err(_) => break,
            }
        };
        if settle(&link, delivery, verdict).await.is_none() {
            break;
        }
    }
    // The other side may be gone already.
    let _ = link.close().await;
}

/// Sends the disposition of a message; none if the link is at its end.
async fn settle(link: &Receiver, info: DeliveryInfo, verdict: Verdict) -> Option<()> {
    let settled = match verdict {
        Verdict::Accepted => link.accept(info).await,
        Verdict::Released => link.release(info).await,
        Verdict::Rejected(why) => {
            let why = Error::new(AmqpError::InvalidField, why.to_owned(), None);
            link.reject(info, why).await
        }
    };
    settled.ok()
}

impl Applications {
    /// Reads a message, and notes where its reply goes; the error says why it is rejected.
    fn read(
        &self,
        came: AmqpMessage<AnyBody>,
        address: &str,
    ) -> Result<Arc<Message>, &'static str> {
        let fields = Fields::new(came.properties);
        let payload = bytes(came.body).ok_or("the body has to be data, a binary or a text")?;
        let (sent, mut topic) = (fields.sent(), String::new());
        (self.exchange.server().write_topic)(address, &sent, &mut topic)?;
        if let Some(id) = command_of(&self.shared, &topic).and_then(|it| it.correlation_id)
            && let Some(reply_to) = sent.reply_to
        {
            self.exchange.expect_reply(reply_to, id);
        }
        let publish = Publish {
            qos: Qos::AtLeastOnce,
            content_type: fields.content_type.as_deref(),
            ..Publish::new(&topic, &payload)
        };
        Ok(Arc::new(Message::new(&publish, self.clock.now())))
    }

    /// Passes a message on to the thread that takes it. A command to a device whose uplink waits for its disposition
    /// goes once that is known: the request of the device waits from then on.
    fn pass(&self, sending: Sending) {
        let message = Arc::clone(&sending.message);
        let passed = match command_of(&self.shared, &message.topic) {
            Some(command) => self.exchange.hold(&command, sending),
            None => Err(sending),
        };
        if let Err(sending) = passed {
            sending.post(&self.shared, 0);
        }
    }
}

impl Sending {
    /// Posts it to the thread of the request that waits for it, which can be answered there alone; without one to
    /// `shard`.
    pub(super) fn post(self, shared: &Shared, shard: u16) {
        let waiter = command_of(shared, &self.message.topic)
            .and_then(|command| locked(&shared.waiting).find(command.tenant, command.device));
        let shard = waiter.map_or(shard, |waiter| waiter.shard);
        shared.post(shard).send(&mut vec![Mail::Sending(self)]);
    }

    /// Routes a command as the MQTT end does; publishes any other message.
    pub(crate) fn take(self, work: &mut Work<'_>) {
        let message = &self.message;
        let verdict = match command_of(work.ctx.shared, &message.topic) {
            None => {
                work.router
                    .broker()
                    .publish_kept(&mut work.ctx, message, None);
                Verdict::Accepted
            }
            Some(command) => match commands::unfit(&work.ctx, &command) {
                Some(why) => Verdict::Rejected(why),
                None => taken(commands::take(work, message, None, false)),
            },
        };
        // There is room for all of a link; one that is over wants none.
        let _ = self.verdicts.try_send((self.delivery, verdict));
    }
}

/// The command that a topic carries; none if it carries another message.
fn command_of<'a>(shared: &Shared, topic: &'a str) -> Option<Commanded<'a>> {
    (shared.config.dialect.spec().server.command)(topic)
}

/// The verdict on a command, by its number of copies; none if it cannot be read.
const fn taken(copies: Option<usize>) -> Verdict {
    match copies {
        None => Verdict::Rejected("the body is no command of this platform"),
        Some(0) => Verdict::Released,
        Some(_) => Verdict::Accepted,
    }
}
