//! Ends of a consumer's connection, and their diagnostics.

use std::fmt::Display;

use muster_conduct::{RefusalCause, RefusalKind};
use muster_net::Closed;
use muster_plan::Security;
use muster_protocol::layer::{Ended, Layer};

use super::connection::Alarm;
use super::driver::MqttConsumers;
use crate::northbound::Context;

/// Keys of a scenario that say how consumers check certificates.
pub(super) const TLS_KEYS: &str = "platform.backend.tls";

/// The cause for which a connection ended.
#[derive(Debug)]
pub(super) struct Loss {
    pub(super) cause: RefusalCause,
    /// True if the platform will refuse the next try alike.
    pub(super) is_final: bool,
}

impl Loss {
    /// A connection that failed without a code.
    pub(super) fn silent(why: impl Display) -> Self {
        Self {
            cause: RefusalCause::new(RefusalKind::Unreachable, why.to_string()),
            is_final: false,
        }
    }

    /// The end of a socket; `awaited` is the missing answer, if one was still to come.
    pub(super) fn closed(why: Closed, awaited: Option<&str>) -> Self {
        let ended = |how: &str| match awaited {
            Some(what) => format!("the connection was {how} before {what} came"),
            None => format!("the connection was {how}"),
        };
        Self::silent(match why {
            Closed::Peer => ended("closed"),
            Closed::Reset => ended("reset"),
            Closed::Refused => "the connection was refused; does anybody listen there?".to_owned(),
            Closed::Unreachable => "it cannot be reached from here; check the route".to_owned(),
            Closed::TimedOut => "no answer".to_owned(),
            Closed::Network(errno) => format!("a network error (errno {errno})"),
            Closed::PoolExhausted => "no buffer was left on this side".to_owned(),
            Closed::Overrun => "an answer without an end".to_owned(),
        })
    }

    /// The same loss with a hint at the end of its sentence.
    pub(super) fn with(mut self, hint: &str) -> Self {
        self.cause.what.push_str(hint);
        self
    }
}

impl MqttConsumers {
    /// The layer of a consumer is at its end, which ends the connection.
    pub(super) fn ended(&mut self, cx: &mut Context<'_>, at: usize, end: Ended) {
        let loss = match end {
            Ended::Closed(_) => Loss::silent("the broker closed the connection"),
            Ended::Failed(error) => {
                let detail = self.links[at].connection.pipe().layer.detail();
                let what = detail.map_or_else(|| error.to_string(), str::to_owned);
                Loss::silent(what).with(&self.security(at).remedy(error))
            }
        };
        self.give_up(cx, at, &loss);
    }

    /// The scheme of a consumer's broker, and the keys for TLS there.
    pub(super) fn security(&self, at: usize) -> Security {
        let backend = self.links[at].consumer.backend.index();
        Security::new(self.plan.backends[backend].endpoint.scheme, TLS_KEYS)
    }

    /// Ends a consumer's connection from our side.
    pub(super) fn give_up(&mut self, cx: &mut Context<'_>, at: usize, loss: &Loss) {
        if let Some(key) = self.links[at].connection.take_key() {
            cx.io.reset(key);
        }
        self.out.clear();
        self.lost(cx, at, loss);
    }

    /// A consumer's connection is over; it tries again.
    pub(super) fn lost(&mut self, cx: &mut Context<'_>, at: usize, loss: &Loss) {
        let (now, consumer) = (cx.io.now(), cx.core.consumer(at));
        if consumer.is_up() {
            consumer.lost(now, &loss.cause.what);
        } else if loss.cause.kind == RefusalKind::Refused || !consumer.was_up() {
            consumer.refused(&loss.cause, loss.is_final);
        }
        self.lose_commands(cx, at);
        let link = &mut self.links[at];
        link.session.client().closed();
        let wait = link.connection.lost();
        if !cx.core.is_over() {
            self.arm(cx, Alarm::Connect, at, cx.io.now() + wait);
        }
    }

    /// Reports what consumers still wait for: the run may end before the time of a handshake is over.
    pub(super) fn report_silence(&self, cx: &mut Context<'_>) {
        let now = cx.io.now();
        for (at, link) in self.links.iter().enumerate() {
            let consumer = cx.core.consumer(at);
            if let Some(why) = link.connection.overdue(now).filter(|_| !consumer.was_up()) {
                let loss = Loss::silent(why);
                consumer.refused(&loss.cause, loss.is_final);
            }
        }
    }
}
