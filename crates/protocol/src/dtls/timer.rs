//! Times of a handshake: repetition of a flight, and the end (RFC 6347 section 4.2.4).

use muster_model::Micros;

use super::Fault;
use super::settings::Timing;

/// Times of retransmitting a flight, and of the end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timer {
    /// None before a first flight, and once nothing is waited for.
    again_at: Option<Micros>,
    interval: Micros,
    /// Before this the flight is not said again because the peer says its own again.
    quiet_until: Micros,
    /// Instant at which the handshake has failed or, once it is over, waiting ends.
    end_at: Micros,
    fault: Fault,
    is_lingering: bool,
}

impl Timer {
    pub(super) fn new(timing: &Timing, now: Micros) -> Self {
        Self {
            again_at: None,
            interval: timing.first,
            quiet_until: Micros::ZERO,
            end_at: later(now, timing.give_up),
            fault: Fault::TimedOut,
            is_lingering: false,
        }
    }

    pub(super) const fn said(&mut self, timing: &Timing, now: Micros) {
        self.interval = timing.first;
        self.again_at = Some(later(now, timing.first));
        self.be_quiet(timing, now);
    }

    const fn be_quiet(&mut self, timing: &Timing, now: Micros) {
        self.quiet_until = later(now, Micros(timing.first.0 / 2));
    }

    /// Returns true if the peer's repeated flight must be answered with ours. A flight that was
    /// just sent is still in flight: two ends that both wait would answer each other without end.
    pub(super) fn is_answer(&mut self, timing: &Timing, now: Micros) -> bool {
        let is_answer = now >= self.quiet_until;
        if is_answer {
            self.be_quiet(timing, now);
        }
        is_answer
    }

    /// The handshake is over, and its last flight was ours.
    pub(super) const fn linger(&mut self, timing: &Timing, now: Micros) {
        self.again_at = None;
        self.end_at = later(now, timing.linger);
        self.is_lingering = true;
    }

    pub(super) const fn fail(&mut self, fault: Fault, now: Micros) {
        self.end_at = now;
        self.fault = fault;
    }

    /// Returns true if the handshake is over, and the last flight is kept for a repetition.
    pub(super) const fn is_lingering(&self) -> bool {
        self.is_lingering
    }

    /// Returns the cause of the end if its time has come.
    pub(super) fn ended(&self, now: Micros) -> Option<Fault> {
        (now >= self.end_at).then_some(self.fault)
    }

    pub(super) fn deadline(&self) -> Micros {
        self.again_at
            .map_or(self.end_at, |again| again.min(self.end_at))
    }

    /// Returns true if the flight must be sent again now, and sets the next time.
    pub(super) fn is_again(&mut self, timing: &Timing, now: Micros) -> bool {
        if self.again_at.is_none_or(|again| again > now) {
            return false;
        }
        let doubled = Micros(self.interval.0.saturating_mul(2));
        self.interval = doubled.min(timing.most).max(timing.first);
        self.again_at = Some(later(now, self.interval));
        self.be_quiet(timing, now);
        true
    }
}

const fn later(now: Micros, span: Micros) -> Micros {
    Micros(now.0.saturating_add(span.0))
}
