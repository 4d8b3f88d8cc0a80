//! Messages that applications send over AMQP 1.0: commands, each with an outcome, and at a broker anything.

use std::sync::Arc;

use fe2o3_amqp::Receiver;
use fe2o3_amqp::link::RecvError;
use fe2o3_amqp::link::delivery::DeliveryInfo;
use fe2o3_amqp::types::definitions::{AmqpError, Error};
use fe2o3_amqp::types::messaging::{Message as AmqpMessage, TargetArchetype};
use muster_protocol::mqtt::{Publish, Qos};
use tokio::sync::oneshot;

use super::connection::Applications;
use super::encoding::{AnyBody, Fields, bytes};
use crate::commands;
use crate::end::Work;
use crate::lock::locked;
use crate::mail::Mail;
use crate::message::Message;

/// A message of an application on its way to the thread that takes it.
#[derive(Debug)]
pub(crate) struct Sending {
    message: Arc<Message>,
    verdict: oneshot::Sender<Verdict>,
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

/// Takes what comes on a link, one message after the other, until the link ends.
pub(super) async fn take(applications: Applications, mut link: Receiver, address: String) {
    loop {
        let (info, verdict) = match link.recv::<AnyBody>().await {
            Ok(delivery) => {
                let (info, message) = delivery.into_parts();
                (info, applications.pass(message, &address).await)
            }
            Err(RecvError::MessageDecode(error)) => {
                let why = "the message cannot be decoded";
                (error.info, Verdict::Rejected(why))
            }
            Err(_) => break,
        };
        if settle(&link, info, verdict).await.is_none() {
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
    /// Passes a message on to the thread that takes it: its verdict.
    async fn pass(&self, came: AmqpMessage<AnyBody>, address: &str) -> Verdict {
        let fields = Fields::new(came.properties);
        let Some(payload) = bytes(came.body) else {
            return Verdict::Rejected("the body has to be data, a binary or a text");
        };
        let (sent, mut topic) = (fields.sent(), String::new());
        if let Err(why) = (self.exchange.server().write_topic)(address, &sent, &mut topic) {
            return Verdict::Rejected(why);
        }
        let server = &self.shared.config.dialect.spec().server;
        let command = (server.command)(&topic);
        if let Some(id) = command.and_then(|command| command.correlation_id)
            && let Some(reply_to) = sent.reply_to
        {
            self.exchange.expect_reply(reply_to, id);
        }
        let asking = command.and_then(|it| self.exchange.asking(it.tenant, it.device));
        if let Some(asking) = &asking {
            // Its request waits once its message is accepted: the command comes before that disposition.
            asking.settled.notified().await;
        }
        let waiter = command.and_then(|command| {
            let mut waiting = locked(&self.shared.waiting);
            waiting.find(command.tenant, command.device)
        });
        let publish = Publish {
            qos: Qos::AtLeastOnce,
            content_type: fields.content_type.as_deref(),
            ..Publish::new(&topic, &payload)
        };
        let message = Arc::new(Message::new(&publish, self.clock.now()));
        let (verdict, reported) = oneshot::channel();
        let sending = Sending { message, verdict };
        // A request that waits there can be answered there alone.
        let asked = asking.map_or(0, |asking| asking.shard);
        let shard = waiter.map_or(asked, |waiter| waiter.shard);
        self.shared
            .post(shard)
            .send(&mut vec![Mail::Sending(sending)]);
        // A gateway that stops answers nobody any more.
        reported.await.unwrap_or(Verdict::Released)
    }
}

impl Sending {
    /// Routes a command as the MQTT end does; publishes any other message.
    pub(crate) fn take(self, work: &mut Work<'_>) {
        let message = &self.message;
        let server = &work.ctx.shared.config.dialect.spec().server;
        let verdict = match (server.command)(&message.topic) {
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
        // An application that is gone does not want to know.
        let _ = self.verdict.send(verdict);
    }
}

/// The verdict on a command, by its number of copies; none if it cannot be read.
const fn taken(copies: Option<usize>) -> Verdict {
    match copies {
        None => Verdict::Rejected("the body is no command of this platform"),
        Some(0) => Verdict::Released,
        Some(_) => Verdict::Accepted,
    }
}
