//! Messages between the parts of a run: one datagram each.

use muster_conduct::{Part, Progress};
use muster_measure::Progress as Windows;
use muster_model::{Micros, RunId};
use serde::{Deserialize, Serialize};

/// Begins every word; the digit is the version of what follows.
const MAGIC: &[u8] = b"muster-line-3\0";
/// The longest word: one of a run with as many backends as there may be.
pub(crate) const WORD_MAX: usize = 16 << 10;

/// The run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subject {
    pub(crate) run: RunId,
    /// The hash of its plan, as hexadecimal digits.
    pub(crate) plan: String,
}

/// A word. It says how its speaker stands, not what changed: what is lost on the way is made up
/// for by the next one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Word {
    pub(crate) subject: Subject,
    /// The speaker's part.
    pub(crate) from: Part,
    /// Parts whose progress it reports: the sender, and those it forwards.
    pub(crate) parts: Vec<Part>,
    /// All of these together.
    pub(crate) progress: Progress,
    pub(crate) windows: Windows,
    /// True if all of them have settled, so that this is their last message.
    pub(crate) has_settled: bool,
    /// The clock that the speaker reads.
    pub(crate) clock: String,
    /// Instant of sending, on that clock.
    pub(crate) said: Micros,
    /// Instants of the addressee's last message: sent on its clock, received on this one.
    pub(crate) heard: Option<(Micros, Micros)>,
    /// True if that message was its last.
    pub(crate) has_heard_the_last: bool,
}

impl Word {
    /// As a datagram; none if it would be too long, which no plan makes it.
    pub(crate) fn encoded(&self) -> Option<Vec<u8>> {
        let bytes = postcard::to_extend(self, MAGIC.to_vec()).ok()?;
        (bytes.len() <= WORD_MAX).then_some(bytes)
    }

    /// Reads a datagram; none if it is no word.
    pub(crate) fn decoded(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > WORD_MAX {
            return None;
        }
        let (word, rest) = postcard::take_from_bytes(bytes.strip_prefix(MAGIC)?).ok()?;
        rest.is_empty().then_some(word)
    }
}
