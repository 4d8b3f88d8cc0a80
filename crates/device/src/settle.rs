//! The end of a run: what is still open is walked and told.

use muster_model::{ConnectFailure, Micros, Outcome, ShedCause};

use crate::link::{Hold, State, Writing};
use crate::session::Session;
use crate::slots::SlotId;
use crate::take::in_flight_of;
use crate::{Shard, Sink, Then};

impl<P: Session, S: Sink> Shard<P, S> {
    /// Tells the final state of everything that is still open; nothing is sent or connected any
    /// more. What came due and was never taken is shed as `untaken`.
    pub fn finish(&mut self, now: Micros, untaken: ShedCause) {
        self.is_over = true;
        while let Some(message) = self.agenda.pop(now) {
            if self.stream(message.stream).is_command() {
                let link = self.link_of(message.stream, message.device);
                self.meet(message, link, now);
                continue;
            }
            self.account_closed(&message);
            self.shed_untaken(message, None, now, untaken);
        }
        for link in 0..self.links() {
            self.finish_link(link, now);
            self.drop_exchanges(link, now, false);
        }
        self.account_sessions();
    }

    /// What sessions counted, each of which goes on over the ends of its link.
    fn account_sessions(&mut self) {
        let states = self.links.iter().map(|link| &link.session);
        self.session.account(states, &mut self.account.links);
    }

    /// Renders the last words of a link that is up, and says how its socket is to end.
    pub fn say_goodbye(&mut self, link: u32, out: &mut Vec<u8>) -> Then {
        let state = &mut self.links[link as usize];
        let was_up = std::mem::replace(&mut state.state, State::Ended) == State::Up;
        if state.hold != Hold::Nothing {
            return Then::Abort;
        }
        if was_up {
            self.session.disconnect(&mut state.session, out);
        }
        Then::Close
    }

    fn finish_link(&mut self, link: u32, now: Micros) {
        let obstacle = self.obstacle(link, now);
        if let Writing::Message(id) = self.links[link as usize].writing {
            self.finish_open(id, now, ShedCause::SocketFull);
        }
        loop {
            let state = &self.links[link as usize];
            let Some(id) = state.again.first().or_else(|| state.flight.first()) else {
                break;
            };
            self.finish_open(id, now, obstacle);
        }
        let first = self.first_lane(link);
        for lane in 0..self.class(link).streams.len() {
            let is_query = self.class(link).streams[lane].is_query();
            let is_free = obstacle == ShedCause::InFlight;
            let cause = if is_free {
                in_flight_of(is_query)
            } else {
                obstacle
            };
            while let Some(id) = self.lanes[first + lane].queue.first() {
                self.unqueue(link, id);
                self.finish_waiting(id, now, cause);
            }
        }
        match self.links[link as usize].state {
            State::Up => self.account.open_at_end(),
            State::Opening(_) | State::Handshaking => {
                self.connect_failed(link, now, ConnectFailure::RunEnded);
            }
            State::Down | State::BackOff | State::Ended => {}
        }
    }

    fn finish_open(&mut self, id: SlotId, now: Micros, obstacle: ShedCause) {
        self.land(id);
        self.finish_waiting(id, now, obstacle);
    }

    fn finish_waiting(&mut self, id: SlotId, now: Micros, obstacle: ShedCause) {
        let outcome = match self.slots.get(id).sent {
            Some(_) => Outcome::InFlight,
            None => Outcome::Shed(obstacle),
        };
        self.finalise(id, now, outcome);
    }
}
