//! Memory that the gateway holds without use: a leak, and growth that is released again and again.
//!
//! It is touched, so that it counts as resident. Nothing here knows of messages.

use std::io;
use std::time::Duration;

use muster_model::Micros;
use muster_model::behaviour::Behaviour;
use tokio::time::{Instant, interval};

use crate::side_thread::SideThread;

/// Time between two changes.
const STEP: Duration = Duration::from_millis(100);
/// An allocation of this size is mapped by itself, so that its release returns the pages to the kernel.
const BLOCK_BYTES: usize = 64 << 20;

/// Starts to hold memory as configured, until the thread is dropped; none if nothing is configured.
pub(crate) fn start(behaviour: &Behaviour) -> io::Result<Option<SideThread>> {
    let (leak, sawtooth) = (behaviour.leak, behaviour.sawtooth);
    if leak.is_none() && sawtooth.is_none() {
        return Ok(None);
    }
    let hold = async move {
        let (mut leaked, mut collected) = (Ballast::default(), Ballast::default());
        let begun = Instant::now();
        let mut steps = interval(STEP);
        loop {
            let after = Micros::from_secs_f64((steps.tick().await - begun).as_secs_f64());
            leaked.set(leak.map_or(0, |leak| leak.held(after)));
            collected.set(sawtooth.map_or(0, |sawtooth| sawtooth.held(after)));
        }
    };
    SideThread::start("gateway-memory", || Ok(hold)).map(Some)
}

/// Resident memory of a stated size.
#[derive(Debug, Default)]
struct Ballast(Vec<Vec<u8>>);

impl Ballast {
    /// Grows to a number of bytes; if that is less than it holds, it first releases everything. Without memory for
    /// more, it stays as it is.
    fn set(&mut self, bytes: u64) {
        if bytes < self.len() {
            self.0.clear();
        }
        let mut missing = bytes - self.len();
        while missing > 0 {
            let Some(block) = self.open_block() else {
                return;
            };
            let free = block.capacity() - block.len();
            let more = usize::try_from(missing).map_or(free, |missing| missing.min(free));
            // Bytes of zero may be pages that nobody has touched.
            block.resize(block.len() + more, 1);
            missing -= more as u64;
        }
    }

    fn len(&self) -> u64 {
        self.0.iter().map(|block| block.len() as u64).sum()
    }

    /// The block that has room; none if there is no memory for it.
    fn open_block(&mut self) -> Option<&mut Vec<u8>> {
        let is_full = |block: &Vec<u8>| block.len() == block.capacity();
        if self.0.last().is_none_or(is_full) {
            let mut block = Vec::new();
            block.try_reserve_exact(BLOCK_BYTES).ok()?;
            self.0.push(block);
        }
        self.0.last_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_was_asked_for_last() {
        let mut ballast = Ballast::default();
        for bytes in [100_000_000, 300_000_000, 10_000_000] {
            ballast.set(bytes);
            assert_eq!(ballast.len(), bytes);
        }
    }
}
