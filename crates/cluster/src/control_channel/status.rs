//! Messages between the parts of a run: one datagram each.

use muster_conduct::{Part, Progress};
use muster_measure::Progress as Windows;
use muster_model::{Micros, RunId};
use serde::{Deserialize, Serialize};

/// Begins every status; the digit is the version of what follows.
const MAGIC: &[u8] = b"muster-line-3\0";
/// The longest status: one of a run with as many backends as there may be.
pub(crate) const STATUS_MAX: usize = 16 << 10;

/// The run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subject {
    pub(crate) run: RunId,
    /// The hash of its plan, as hexadecimal digits.
    pub(crate) plan: String,
}

/// The state of a part, not the changes in it: the next status makes up for one that is lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Status {
    pub(crate) subject: Subject,
    /// The sender's part.
    pub(crate) from: Part,
    /// Parts whose progress it reports: the sender, and those it forwards.
    pub(crate) parts: Vec<Part>,
    /// All of these together.
    pub(crate) progress: Progress,
    pub(crate) windows: Windows,
    /// True if all of them have settled, so that this is their final status.
    pub(crate) has_settled: bool,
    /// The clock that the sender reads.
    pub(crate) clock: String,
    /// Instant of sending, on that clock.
    pub(crate) sent: Micros,
    /// Instants of the receiver's last status: sent on its clock, received on this one.
    pub(crate) last_received: Option<(Micros, Micros)>,
    /// True if that was its final status.
    pub(crate) has_final: bool,
}

impl Status {
    /// As a datagram; none if it would be too long, which no plan makes it.
    pub(crate) fn encoded(&self) -> Option<Vec<u8>> {
        let bytes = postcard::to_extend(self, MAGIC.to_vec()).ok()?;
        (bytes.len() <= STATUS_MAX).then_some(bytes)
    }

    /// Reads a datagram; none if it is no status.
    pub(crate) fn decoded(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > STATUS_MAX {
            return None;
        }
        let (status, rest) = postcard::take_from_bytes(bytes.strip_prefix(MAGIC)?).ok()?;
        rest.is_empty().then_some(status)
    }
}
