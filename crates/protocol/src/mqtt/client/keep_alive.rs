//! The silence of a connection, in both directions (section 3.1.2.10).

use muster_model::Micros;

/// A timer that runs later than this ran late by our own fault: the answer may lie unread.
const OWN_DELAY: Micros = Micros::from_millis(100);

/// A client's keep-alive: when a ping is due, and when its answer is overdue.
///
/// A ping is due once nothing was sent, or nothing was received, for a keep-alive, so that a peer
/// that hangs is found by a client that never stops sending, too. After a silence of one and a half
/// keep-alives one is due at once: its answer shows that the server has accepted the silence.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeepAlive {
    /// Instant of the last packet rendered.
    sent: Micros,
    /// Instant of the last bytes received; while a ping has no answer, of that ping.
    since: Micros,
    /// Time that an answer to a ping has, in microseconds; a shorter keep-alive shortens it.
    timeout_us: u32,
    /// In seconds; 0 is none.
    interval_s: u16,
    is_pinged: bool,
    silence: Silence,
}

/// State of our last silence of one and a half keep-alives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Silence {
    /// No silence, or one that the server accepted, as its answer to a later packet shows.
    Passed,
    /// The server may end the connection for it. The answer to a ping would show that it does not.
    Missed,
    /// The same, and a ping was sent since.
    Asked,
}

impl KeepAlive {
    pub(super) fn new(timeout: Micros) -> Self {
        Self {
            sent: Micros::ZERO,
            since: Micros::ZERO,
            timeout_us: u32::try_from(timeout.get()).unwrap_or(u32::MAX),
            interval_s: 0,
            is_pinged: false,
            silence: Silence::Passed,
        }
    }

    pub(super) fn begin(&mut self, now: Micros, interval_s: u16) {
        *self = Self {
            sent: now,
            since: now,
            interval_s,
            ..Self::new(Micros(u64::from(self.timeout_us)))
        };
    }

    pub(super) const fn interval_s(&self) -> u16 {
        self.interval_s
    }

    /// The server's keep-alive holds instead.
    pub(super) fn set_interval(&mut self, seconds: u16) {
        self.interval_s = seconds;
    }

    #[inline]
    pub(super) fn sent(&mut self, now: Micros) {
        if self.is_overslept(now) {
            self.silence = Silence::Missed;
        }
        self.sent = now;
    }

    /// A packet, or a part of one, came.
    #[inline]
    pub(super) fn received(&mut self, now: Micros) {
        self.since = now;
        self.is_pinged = false;
    }

    /// The server has answered a ping, or another packet that was sent after an earlier silence of
    /// ours, so that it has let that pass.
    pub(super) fn answered(&mut self) {
        self.silence = Silence::Passed;
    }

    /// Returns true if an answer would show that the server accepted an earlier silence of ours.
    #[inline]
    pub(super) fn is_in_doubt(&self) -> bool {
        self.silence != Silence::Passed
    }

    /// A ping was rendered whose answer nobody waits for.
    pub(super) fn pinged_unawaited(&mut self, now: Micros) {
        self.sent(now);
        if self.silence == Silence::Missed {
            self.silence = Silence::Asked;
        }
    }

    /// A ping was rendered whose answer is waited for.
    pub(super) fn pinged(&mut self, now: Micros) {
        self.pinged_unawaited(now);
        if !self.is_pinged {
            self.is_pinged = true;
            self.since = now;
        }
    }

    pub(super) fn last_received(&self) -> Option<Micros> {
        (!self.is_pinged).then_some(self.since)
    }

    #[inline]
    pub(super) fn deadline(&self) -> Option<Micros> {
        match (self.ping_due(), self.answer_due()) {
            (Some(ping), Some(answer)) => Some(ping.min(answer)),
            (ping, answer) => ping.or(answer),
        }
    }

    #[inline]
    fn ping_due(&self) -> Option<Micros> {
        if self.silence == Silence::Missed {
            return Some(self.sent);
        }
        let silent_since = if self.is_pinged {
            self.sent
        } else {
            self.sent.min(self.since)
        };
        (self.interval_s > 0).then(|| silent_since + self.interval())
    }

    pub(super) fn is_ping_due(&self, now: Micros) -> bool {
        self.ping_due().is_some_and(|due| now >= due)
    }

    fn answer_due(&self) -> Option<Micros> {
        self.is_pinged.then(|| self.since + self.answer_time())
    }

    /// Returns true if the answer to a ping is overdue. A late call gives the answer its time
    /// again.
    pub(super) fn is_expired(&mut self, now: Micros) -> bool {
        let Some(due) = self.answer_due().filter(|due| now >= *due) else {
            return false;
        };
        let is_on_time = now <= due + OWN_DELAY;
        if !is_on_time {
            self.since = now;
        }
        is_on_time
    }

    /// Returns true if the server may have ended the connection because we sent nothing for one and
    /// a half keep-alives.
    pub(super) fn is_missed(&self, now: Micros) -> bool {
        self.is_in_doubt() || self.is_overslept(now)
    }

    /// Returns true if we have been silent for one and a half keep-alives.
    #[inline]
    pub(super) fn is_overslept(&self, now: Micros) -> bool {
        let most = u64::from(self.interval_s) * 1_500_000;
        self.interval_s > 0 && now - self.sent >= Micros(most)
    }

    fn interval(&self) -> Micros {
        Micros::from_secs(u64::from(self.interval_s))
    }

    fn answer_time(&self) -> Micros {
        let timeout = Micros(u64::from(self.timeout_us));
        match self.interval_s {
            0 => timeout,
            _ => timeout.min(self.interval()),
        }
    }
}
