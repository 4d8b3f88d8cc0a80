//! Lost messages, as a bounded list of ranges.

use std::ops::Range;

use muster_model::{DeviceId, StreamId};

use crate::{LostIds, LostOf};

/// The absent messages of one backend that are listed by id.
#[derive(Debug, Clone, Default)]
pub(crate) struct AbsentIds {
    pub(crate) lost: LostIds,
    pub(crate) overwritten: LostIds,
}

/// Keeps the lost ranges of one device's stream, while there is room for them.
pub(crate) fn keep_lost(
    lost: &mut LostIds,
    (stream, device): (StreamId, DeviceId),
    mut ranges: Vec<Range<u32>>,
    most: usize,
) {
    ranges.retain(|range| !range.is_empty());
    if ranges.is_empty() {
        return;
    }
    ranges.sort_unstable_by_key(|range| range.start);
    let kept: usize = lost.lost.iter().map(|lost| lost.ranges.len()).sum();
    let room = most.saturating_sub(kept);
    lost.truncated |= ranges.len() > room;
    let ranges: Vec<_> = ranges
        .iter()
        .take(room)
        .map(|range| [range.start, range.end - 1])
        .collect();
    if !ranges.is_empty() {
        lost.lost.push(LostOf {
            device,
            stream,
            ranges,
        });
    }
}
