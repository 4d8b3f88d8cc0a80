//! Buffers for bytes that have to wait: the rest of a write, or the start of a packet.

/// Names a buffer in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferId(u32);

impl BufferId {
    /// No buffer.
    pub(crate) const NONE: BufferId = BufferId(u32::MAX);

    pub(crate) fn is_some(self) -> bool {
        self != Self::NONE
    }
}

impl Default for BufferId {
    fn default() -> Self {
        Self::NONE
    }
}

/// A bounded pool that grows on demand and keeps what it grew.
#[derive(Debug)]
pub(crate) struct Pool {
    buffers: Vec<Vec<u8>>,
    free: Vec<u32>,
    max: u32,
}

impl Pool {
    /// A returned buffer above this is given back to the allocator, so that one huge message
    /// does not stay in memory for ever.
    const CAPACITY_KEPT: usize = 64 * 1024;
    /// Free buffers that keep their memory: enough for any burst of partial writes that a core
    /// can serve at once, 64 MiB at the very most.
    const FREE_KEPT: usize = 1_024;

    pub(crate) fn new(max: u32) -> Self {
        Self {
            buffers: Vec::new(),
            free: Vec::new(),
            max,
        }
    }

    /// A buffer, empty; none if the bound is reached.
    pub(crate) fn take(&mut self) -> Option<BufferId> {
        if let Some(index) = self.free.pop() {
            return Some(BufferId(index));
        }
        if self.buffers.len() >= self.max as usize {
            return None;
        }
        self.buffers.push(Vec::new());
        Some(BufferId(self.buffers.len() as u32 - 1))
    }

    pub(crate) fn get(&mut self, id: BufferId) -> &mut Vec<u8> {
        &mut self.buffers[id.0 as usize]
    }

    pub(crate) fn give_back(&mut self, id: BufferId) {
        let spare = self.free.len() >= Self::FREE_KEPT;
        let buffer = &mut self.buffers[id.0 as usize];
        buffer.clear();
        if spare || buffer.capacity() > Self::CAPACITY_KEPT {
            *buffer = Vec::new();
        }
        self.free.push(id.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds_and_returned_buffers_keep_their_memory() {
        let mut pool = Pool::new(1);
        let id = pool.take().expect("one is free");
        assert_eq!(pool.take(), None);
        pool.get(id).extend_from_slice(&[7; 5_000]);
        pool.give_back(id);
        let again = pool.take().expect("it came back");
        assert!(pool.get(again).is_empty() && pool.get(again).capacity() >= 5_000);
    }

    #[test]
    fn a_huge_buffer_is_given_back_to_the_allocator() {
        let mut pool = Pool::new(1);
        let id = pool.take().expect("one is free");
        pool.get(id).resize(1 << 20, 0);
        pool.give_back(id);
        assert_eq!(pool.get(id).capacity(), 0);
    }
}
