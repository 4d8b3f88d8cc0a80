//! The push of messages to an HTTP endpoint of the application, as rule engines of platforms do.
//!
//! A message goes out as one POST, with its topic behind the path of the endpoint or in a header. A few workers
//! push at the same time; messages of one topic keep their order, since one worker has them all.

mod config;
mod pushing;

use std::io;
use std::sync::Arc;

use muster_protocol::mqtt::Publish;

pub use self::config::{WebhookConfig, WebhookError};
use self::pushing::{Bounds, push};
use crate::account::hash;
use crate::backlog::{Backlog, Room};
use crate::broker::Routed;
use crate::message::Parcel;
use crate::shared::Shared;
use crate::side_thread::SideThread;
use crate::thread::Ctx;

/// Requests under way at the same time, each on a connection of its worker.
const WORKERS: usize = 4;

/// Messages on their way to the endpoint, one queue a worker.
#[derive(Debug, Default)]
pub(crate) struct Webhook([Backlog; WORKERS]);

impl Webhook {
    /// Queues a message.
    pub(crate) fn store(&self, ctx: &Ctx<'_>, parcel: &mut Parcel<'_>) -> Routed {
        let mut routed = Routed {
            copies: 1,
            is_congested: false,
        };
        match self.worker(parcel.publish).store(parcel.keep(ctx.now())) {
            Room::Enough => {}
            Room::Little => routed.is_congested = true,
            Room::None => ctx.counts().overflowed.more(),
        }
        routed
    }

    fn worker(&self, publish: &Publish<'_>) -> &Backlog {
        let number = hash(publish.topic.as_bytes()) % WORKERS as u64;
        &self.0[number as usize]
    }
}

/// Starts the workers; they end when the thread is dropped.
pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Option<SideThread>> {
    let (Some(config), Some(webhook)) = (&shared.config.webhook, &shared.outlets.webhook) else {
        return Ok(None);
    };
    let (config, webhook) = (Arc::new(config.clone()), Arc::clone(webhook));
    let shared = Arc::clone(shared);
    let prepare = move || {
        Ok(async move {
            for worker in 0..WORKERS {
                let (config, webhook) = (Arc::clone(&config), Arc::clone(&webhook));
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    push(&shared, &config, &webhook.0[worker], Bounds::default()).await;
                });
            }
        })
    };
    SideThread::start("gateway-webhook", prepare).map(Some)
}
