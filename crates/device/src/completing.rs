//! QoS 2 exchanges that the platform has accepted (PUBREC) and not completed (PUBCOMP).
//!
//! The attempt is final with PUBREC. Completion is counted beside it, and a run waits for it as long as
//! it waits for an answer.

use muster_model::Micros;

use crate::session::Session;
use crate::token::{Token, stream_of};
use crate::{Qos, Shard, Sink};

/// The open completions of a shard.
#[derive(Debug, Default)]
pub(crate) struct Completing {
    open: u64,
    /// When the last of them is overdue.
    until: Micros,
}

impl<P: Session, S: Sink> Shard<P, S> {
    /// The platform accepted a message: at QoS 2 its completion is due.
    pub(crate) fn await_completion(&mut self, token: Token, now: Micros) {
        let stream = self.stream(stream_of(token));
        if stream.qos == Qos::ExactlyOnce {
            let until = now + stream.timeout;
            self.completing.open += 1;
            self.completing.until = self.completing.until.max(until);
        }
    }

    /// PUBCOMP came.
    pub(crate) fn completed(&mut self, token: Token, now: Micros) {
        self.completing.open = self.completing.open.saturating_sub(1);
        self.sink.counts(stream_of(token), now).completed += 1;
    }

    /// Exchanges whose PUBCOMP is missing and not overdue.
    pub fn completing(&self, now: Micros) -> u64 {
        if now < self.completing.until {
            self.completing.open
        } else {
            0
        }
    }

    /// Drops all that is in flight on the session of a link. What was accepted and not completed
    /// never will be; it is counted unless we ended the link `on_purpose`.
    pub(crate) fn drop_exchanges(&mut self, link: u32, now: Micros, on_purpose: bool) {
        let (completing, sink) = (&mut self.completing, &mut self.sink);
        let state = &mut self.links[link as usize].session;
        self.session.drop_exchanges(state, |token| {
            completing.open = completing.open.saturating_sub(1);
            if !on_purpose {
                sink.counts(stream_of(token), now).incomplete += 1;
            }
        });
    }
}
