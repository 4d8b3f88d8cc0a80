//! One stream of commands: the next one, by its schedule or by queries.

use std::collections::VecDeque;

use muster_load::Cursor;
use muster_model::{CommandTarget, DeviceId, MessageId, Micros, StreamId};
use muster_platform::Directory;

/// One stream of kind `command`.
#[derive(Debug)]
pub(super) struct Commanded {
    pub(super) id: StreamId,
    pub(super) directory: Directory,
    pub(super) is_two_way: bool,
    pub(super) to: CommandTarget,
    pub(super) cursor: Cursor,
    /// Number of the next command by device, for commands that follow queries.
    pub(super) next: Vec<u32>,
    /// Queries of the fleet: by device, how many were received.
    pub(super) queries: Vec<(StreamId, Vec<u32>)>,
    /// Queries that were received and have no command yet, with the instants at which they were.
    pub(super) asked: VecDeque<(DeviceId, Micros)>,
    /// True if the sender had no room when it was last asked, or did not take the last command.
    pub(super) is_held: bool,
    /// Instant of the next try, if the sender had room and took no command at the last one.
    pub(super) again_at: Option<Micros>,
    /// Instant at which it had room again: commands that waited for it are not late.
    pub(super) held_until: Micros,
}

/// The next command of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct NextCommand {
    /// Place of its stream.
    pub(super) place: usize,
    pub(super) id: MessageId,
    pub(super) due: Micros,
}

impl Commanded {
    /// Returns the next command: its device, its number there, and the instant at which it is due.
    pub(super) fn next(
        &self,
        origin: Option<Micros>,
        end: Micros,
    ) -> Option<(DeviceId, u32, Micros)> {
        if let Some((device, at)) = self.asked.front() {
            return Some((*device, self.next[self.slot(*device)], *at));
        }
        let next = self.cursor.peek()?;
        let due = origin? + next.due;
        (due < end).then_some((next.device, next.seq, due))
    }

    pub(super) fn advance(&mut self) {
        if let Some((device, _)) = self.asked.pop_front() {
            let slot = self.slot(device);
            self.next[slot] += 1;
        } else {
            self.cursor.advance();
        }
    }

    /// Place of a device of the fleet.
    fn slot(&self, device: DeviceId) -> usize {
        (device.0 - self.directory.first_device().0) as usize
    }
}
