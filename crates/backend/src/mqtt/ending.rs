//! Ends of a consumer's connection, and their diagnostics.

use muster_conduct::Diagnostic;
use muster_model::Micros;
use muster_net::Closed;
use muster_plan::Security;
use muster_protocol::layer::{Ended, Layer, Pipe};

use super::consumer::State;
use super::driver::MqttConsumers;
use crate::northbound::Context;

/// Cause of giving up a consumer with a refusal that was reported with its code.
pub(super) const REFUSED: &str = "refused";
/// Keys of a scenario by which consumers check certificates.
pub(super) const TLS_KEYS: &str = "platform.backend.tls";
/// The wait before a consumer connects again: short, for what it misses is missed by the run.
const RETRY: Micros = Micros::from_millis(100);
/// The longest such wait.
const RETRY_MAX: Micros = Micros::from_secs(2);

/// Describes the end of a connection; `waited` is the missing answer, if one was still to come.
pub(super) fn words(why: Closed, waited: Option<&str>) -> String {
    let ended = |how: &str| match waited {
        Some(what) => format!("the connection was {how} before {what} came"),
        None => format!("the connection was {how}"),
    };
    match why {
        Closed::Peer => ended("closed"),
        Closed::Reset => ended("reset"),
        Closed::Refused => "the connection was refused; does anybody listen there?".to_owned(),
        Closed::Unreachable => "it cannot be reached from here; check the route".to_owned(),
        Closed::TimedOut => "no answer".to_owned(),
        Closed::Network(errno) => format!("a network error (errno {errno})"),
        Closed::PoolExhausted => "no buffer was left on this side".to_owned(),
        Closed::Overrun => "an answer without an end".to_owned(),
    }
}

impl MqttConsumers {
    /// The layer of a consumer is at its end, which ends the connection.
    pub(super) fn ended(&mut self, cx: &mut Context<'_>, at: usize, end: Ended) {
        let why = match end {
            Ended::Closed(_) => "the broker closed the connection".to_owned(),
            Ended::Failed(error) => {
                let detail = self.consumers[at].pipe.layer.detail();
                detail.map_or_else(|| error.to_string(), str::to_owned)
                    + &self.security(at).remedy(error)
            }
        };
        self.give_up(cx, at, &why);
    }

    /// The scheme of a consumer's broker, and the keys for TLS there.
    pub(super) fn security(&self, at: usize) -> Security {
        let backend = self.consumers[at].seat.backend.index();
        Security::new(self.plan.backends[backend].endpoint.scheme, TLS_KEYS)
    }

    /// A consumer is away by a limit of ours.
    pub(super) fn away(&self, cx: &mut Context<'_>, at: usize, why: &str) {
        let text = format!("{}: {why}", self.name(at));
        cx.core.diagnostics.push(Diagnostic::ConsumerAway(text));
    }

    /// Ends a consumer's connection from our side.
    pub(super) fn give_up(&mut self, cx: &mut Context<'_>, at: usize, why: &str) {
        if let Some(key) = self.consumers[at].key.take() {
            cx.io.reset(key);
        }
        self.out.clear();
        self.lost(cx, at, why);
    }

    /// A consumer's connection is over; it tries again.
    pub(super) fn lost(&mut self, cx: &mut Context<'_>, at: usize, why: &str) {
        let was_up = self.consumers[at].state == State::Up;
        if was_up {
            let text = format!("{}: {why}", self.name(at));
            let since = cx.io.now();
            cx.core
                .diagnostics
                .push(Diagnostic::ConsumerLost { what: text, since });
        }
        if self.consumers[at].is_untold() && why != REFUSED {
            let text = format!("{}: {why}", self.name(at));
            cx.core.diagnostics.push(Diagnostic::ConsumerRefused(text));
        }
        self.lose_commands(cx, at);
        let consumer = &mut self.consumers[at];
        consumer.state = State::Down;
        consumer.pipe = Pipe::default();
        consumer.waiting.clear();
        consumer.session.closed();
        consumer.failures = consumer.failures.saturating_add(1);
        let wait = Micros(RETRY.get() << consumer.failures.min(5)).min(RETRY_MAX);
        if !cx.core.is_over {
            self.arm_connect(cx, at, wait);
        }
    }

    pub(super) fn name(&self, at: usize) -> String {
        let seat = self.consumers[at].seat;
        let backend = &self.plan.backends[seat.backend.index()].name;
        format!(
            "consumer {} of backend `{backend}` at {}",
            seat.consumer.0, seat.target
        )
    }

    /// The run may end before the time of a consumer's first handshake is over.
    pub(super) fn tell_of_silence(&self, cx: &mut Context<'_>) {
        let now = cx.io.now();
        for (at, consumer) in self.consumers.iter().enumerate() {
            let why = consumer.waits_in_vain(now);
            if let Some(why) = why.filter(|_| consumer.is_untold()) {
                let text = format!("{}: {why}", self.name(at));
                cx.core.diagnostics.push(Diagnostic::ConsumerRefused(text));
            }
        }
    }
}
