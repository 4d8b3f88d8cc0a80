//! Receiver of a shard's facts.

use muster_measure::Counts;
use muster_model::{Attempt, Command, LinkFact, LinkId, Micros, Reception, StreamId};

/// Receives every final message and every change of a link, once.
pub trait Sink {
    /// A message reached its final state.
    fn attempt(&mut self, attempt: &Attempt);
    /// Something happened to a query, a command or a reply.
    fn command(&mut self, command: &Command);
    /// A copy reached a device that subscribes to it.
    fn reception(&mut self, reception: &Reception);
    /// A link changed.
    fn link(&mut self, fact: &LinkFact);
    /// A try to connect began at the socket.
    fn opened(&mut self, link: LinkId, at: Micros);
    /// The counters of a stream, of the second of `at`, for what is no fact of one message.
    fn counts(&mut self, stream: StreamId, at: Micros) -> &mut Counts;
}
