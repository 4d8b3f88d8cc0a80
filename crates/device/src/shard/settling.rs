//! The end of a run: everything that is still open gets its final state.

use muster_model::{ConnectFailure, Micros, ShedCause};

use super::{Shard, Then};
use crate::links::State;
use crate::messages::WriteBlock;
use crate::session::Session;
use crate::sink::Sink;

impl<P: Session, S: Sink> Shard<P, S> {
    /// Reports the final state of everything that is still open; nothing is sent or connected any
    /// more. What came due and was never taken is shed as `untaken`.
    pub fn finish(&mut self, now: Micros, untaken: ShedCause) {
        self.connects.end();
        self.traffic.leave_untaken(&self.links, now, untaken);
        for link in 0..self.fleets().links() {
            self.finish_link(link, now);
            self.drop_exchanges(link, now, false);
        }
        // What sessions counted, each of which goes on over the ends of its link.
        let account = self.traffic.recording().account();
        self.session.account(self.states.iter(), &mut account.links);
    }

    fn finish_link(&mut self, link: u32, now: Micros) {
        let obstacle = self.obstacle(link, now);
        self.traffic.finish_link(link, now, obstacle);
        match self.links.get(link).state() {
            State::Up => self.recording().account().open_at_end(),
            State::Opening(_) | State::Handshaking => {
                self.connect_failed(link, now, ConnectFailure::RunEnded);
            }
            State::Down | State::Resting | State::BackOff | State::Ended => {}
        }
    }

    /// Renders the last words of a link that is up, and says how its socket is to end.
    pub fn say_goodbye(&mut self, link: u32, out: &mut Vec<u8>) -> Then {
        let was_up = self.links.end(link);
        if self.traffic.messages().outbox(link).write_block() != WriteBlock::Nothing {
            return Then::Abort;
        }
        if was_up {
            let state = &mut self.states[link as usize];
            self.session.disconnect(state, out);
        }
        Then::Close
    }
}
