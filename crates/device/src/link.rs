//! What a shard keeps of each link: at most a few hundred bytes.

use crate::slots::{Chain, SlotId};
use muster_model::Micros;

/// One session with one credential.
#[derive(Debug)]
pub(crate) struct Link<T> {
    pub(crate) session: T,
    pub(crate) state: State,
    /// Sent and unanswered, in the order sent.
    pub(crate) flight: Chain,
    /// To be sent again on a resumed session, before anything new.
    pub(crate) again: Chain,
    /// The message of which the kernel holds a part.
    pub(crate) writing: Writing,
    /// Since when the link is in its state.
    pub(crate) since: Micros,
    /// Messages without an answer by design that were sent since the peer sent its last packet.
    pub(crate) last_sent: u32,
    /// Tries to connect that failed since the last success.
    pub(crate) failures: u8,
    pub(crate) class: u8,
    /// How often it was up, as far as the number goes.
    pub(crate) ups: u8,
    /// Lives in a row that the peer ended soon after it had taken the link.
    pub(crate) brief_lives: u8,
    /// Whether a first try to connect has ended, well or not.
    pub(crate) is_tried: bool,
    /// True if the peer refused the last try for good.
    pub(crate) is_barred: bool,
    /// Whether what was written last still waits.
    pub(crate) hold: Hold,
    /// Whether something waits for the end of the silence that the platform asked for.
    pub(crate) waits_for_silence: bool,
}

/// Where a link stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Not connected, and its turn has not come.
    Down,
    /// Not connected, and waiting for its next try.
    BackOff,
    /// The socket is opening. Before it did, the link waited for as many microseconds until its turn
    /// on a shared one had come.
    Opening(u32),
    /// The carrier stands, and the session is on its way to be ready.
    Handshaking,
    /// Messages may be sent.
    Up,
    /// The run is over for it.
    Ended,
}

/// What the socket holds of a link's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writing {
    Nothing,
    Message(SlotId),
    /// A message that became final while its copy was still being written.
    Orphan,
}

/// What keeps a link from writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    Nothing,
    /// A datagram goes at the end of the turn, with those of others.
    Gathering,
    /// The kernel has no room.
    Full,
}

/// The messages of one stream that wait on one link.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lane {
    pub(crate) queue: Chain,
    pub(crate) queued: u32,
    pub(crate) flying: u32,
}
