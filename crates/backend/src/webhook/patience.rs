//! Times after which a connection of the platform is ended, so that none holds its place for ever.

use muster_model::Micros;

/// Bounds on the silence of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Longest time for the handshake of TLS, and from the first byte of a request to its last.
    pub request: Micros,
    /// Longest time in which the platform reads nothing of its answers.
    pub answer: Micros,
    /// Longest time between two requests.
    pub idle: Micros,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            // A batch of a megabyte arrives within it at 300 kbit/s.
            request: Micros::from_secs(30),
            // As long: a platform that pushes reads its answers at once.
            answer: Micros::from_secs(30),
            // Longer than pools keep a connection, which is a minute or two: the platform closes first, and no push
            // meets our end.
            idle: Micros::from_secs(300),
        }
    }
}

/// Cause for which a connection is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overdue {
    /// The rest of a request, or of the handshake, does not come.
    Request,
    /// The platform does not read its answers.
    Answer,
    /// No request comes.
    Idle,
}

/// The instants since which a connection is silent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// The end of the last request; before the first, the begin of the connection.
    rests: Micros,
    /// The first byte of a request that is not complete; the begin of the handshake.
    begun: Option<Micros>,
    /// The first byte of an answer that the platform has not read.
    unread: Option<Micros>,
}

impl Patience {
    /// Begins with a connection that was accepted just now; `is_open` unless a handshake is to come.
    pub(super) fn new(now: Micros, is_open: bool) -> Self {
        Self {
            rests: now,
            begun: (!is_open).then_some(now),
            unread: None,
        }
    }

    /// Notes that bytes came. `is_partial` if a request or the handshake is incomplete behind them, `has_completed`
    /// if one came to its end among them.
    pub(super) fn received(&mut self, now: Micros, is_partial: bool, has_completed: bool) {
        if has_completed {
            self.rests = now;
        }
        let before = self.begun.filter(|_| !has_completed);
        self.begun = is_partial.then(|| before.unwrap_or(now));
    }

    /// Notes that an answer waits for the platform to read those before it.
    pub(super) fn held(&mut self, now: Micros) {
        self.unread.get_or_insert(now);
    }

    /// Notes that the platform has read all answers. It was not read itself meanwhile.
    pub(super) fn flushed(&mut self, now: Micros) {
        self.unread = None;
        self.rests = now;
        self.begun = self.begun.map(|_| now);
    }

    /// Returns why the connection has to end now, if it has to.
    pub(super) fn overdue(&self, now: Micros, bounds: &Bounds) -> Option<Overdue> {
        let (since, within, cause) = match (self.unread, self.begun) {
            (Some(unread), _) => (unread, bounds.answer, Overdue::Answer),
            (None, Some(begun)) => (begun, bounds.request, Overdue::Request),
            (None, None) => (self.rests, bounds.idle, Overdue::Idle),
        };
        (since + within <= now).then_some(cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Micros = Micros::from_secs(1_000);

    fn at(seconds: u64) -> Micros {
        T0 + Micros::from_secs(seconds)
    }

    fn overdue(patience: &Patience, seconds: u64) -> Option<Overdue> {
        patience.overdue(at(seconds), &Bounds::default())
    }

    /// Law: bytes that bring no request to its end give it no more time.
    #[test]
    fn a_request_has_its_time_from_its_first_byte_however_it_trickles_in() {
        let mut patience = Patience::new(T0, true);
        for second in 10..40 {
            assert_eq!(overdue(&patience, second), None, "{second}");
            patience.received(at(second), true, false);
        }
        assert_eq!(overdue(&patience, 40), Some(Overdue::Request));
        // Its end, and the first bytes of the next.
        patience.received(at(39), true, true);
        assert_eq!(overdue(&patience, 68), None);
        assert_eq!(overdue(&patience, 69), Some(Overdue::Request));
    }

    #[test]
    fn a_handshake_has_its_time_from_the_begin() {
        let mut patience = Patience::new(T0, false);
        patience.received(at(20), true, false);
        assert_eq!(overdue(&patience, 29), None);
        assert_eq!(overdue(&patience, 30), Some(Overdue::Request));
        patience.received(at(29), false, false);
        assert_eq!(overdue(&patience, 30), None);
    }

    #[test]
    fn between_requests_a_connection_may_rest_for_minutes() {
        let mut patience = Patience::new(T0, true);
        assert_eq!(overdue(&patience, 299), None);
        assert_eq!(overdue(&patience, 300), Some(Overdue::Idle));
        // Line breaks in front of a request are no request.
        patience.received(at(250), false, false);
        assert_eq!(overdue(&patience, 300), Some(Overdue::Idle));
        patience.received(at(200), false, true);
        assert_eq!(overdue(&patience, 499), None);
        assert_eq!(overdue(&patience, 500), Some(Overdue::Idle));
    }

    #[test]
    fn while_answers_wait_to_be_read_only_that_counts() {
        let mut patience = Patience::new(T0, true);
        patience.received(at(5), true, false);
        patience.held(at(6));
        patience.held(at(20));
        assert_eq!(overdue(&patience, 35), None);
        assert_eq!(overdue(&patience, 36), Some(Overdue::Answer));
        patience.flushed(at(35));
        // The rest of the request could not come meanwhile.
        assert_eq!(overdue(&patience, 64), None);
        assert_eq!(overdue(&patience, 65), Some(Overdue::Request));
    }
}
