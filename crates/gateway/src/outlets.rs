//! Ways on which messages leave the gateway besides MQTT.

use std::sync::Arc;

use crate::amqp::Exchange;
use crate::board::Take;
use crate::broker::Routed;
use crate::config::GatewayConfig;
use crate::message::Parcel;
use crate::thread::Ctx;
use crate::webhook::Webhook;

/// Queues of messages for threads that speak other protocols.
#[derive(Debug)]
pub(crate) struct Outlets {
    /// The addresses of AMQP; none if it is not served.
    pub(crate) exchange: Option<Arc<Exchange>>,
    pub(crate) webhook: Option<Arc<Webhook>>,
}

impl Outlets {
    pub(crate) fn new(config: &GatewayConfig) -> Self {
        let amqp = crate::amqp::SCHEMES
            .iter()
            .find_map(|scheme| config.listen.get(scheme));
        let webhook = config.webhook.as_ref();
        Self {
            exchange: amqp.map(|_| Arc::new(Exchange::new(config.dialect))),
            webhook: webhook.map(|_| Arc::default()),
        }
    }

    /// Queues a message on each way that is open to it.
    pub(crate) fn store(&self, ctx: &Ctx<'_>, parcel: &mut Parcel<'_>) -> Routed {
        let mut routed = Routed::default();
        if let Some(board) = &ctx.shared.managed.board {
            match board.take(ctx.now(), parcel) {
                Take::Other | Take::Queued => {}
                Take::Congested => routed.is_congested = true,
                Take::NoRoom => ctx.counts().store_discarded.more(),
            }
        }
        if let Some(exchange) = self.exchange.as_ref().filter(|_| !parcel.is_taken) {
            let stored = exchange.store(ctx, parcel);
            routed.copies += stored.copies;
            routed.is_congested |= stored.is_congested;
        }
        if let Some(webhook) = &self.webhook {
            let pushed = webhook.store(ctx, parcel);
            routed.copies += pushed.copies;
            routed.is_congested |= pushed.is_congested;
        }
        routed
    }
}
