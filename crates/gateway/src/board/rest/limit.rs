//! The limit on the calls of a tenant.

use std::sync::Mutex;

use muster_model::{Micros, Rate};

use crate::lock::locked;

const WINDOW: Micros = Micros::from_secs(1);

/// Calls in each second at the most.
#[derive(Debug)]
pub(crate) struct RestLimit {
    most: u64,
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    number: u64,
    calls: u64,
}

impl RestLimit {
    pub(crate) fn new(rate: Rate) -> Self {
        Self {
            most: rate.get().ceil() as u64,
            window: Mutex::default(),
        }
    }

    /// True if another call may be made.
    pub(super) fn admits(&self, now: Micros) -> bool {
        let mut window = locked(&self.window);
        let number = now.get() / WINDOW.get();
        if window.number != number {
            *window = Window { number, calls: 0 };
        }
        window.calls += 1;
        window.calls <= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_second_has_its_own_calls() {
        let limit = RestLimit::new(Rate::per_second(2.0).expect("a rate"));
        let admitted = |at: u64| limit.admits(Micros::from_millis(at));
        assert_eq!(
            [0, 500, 999, 1_000, 1_001, 1_002].map(admitted),
            [true, true, false, true, true, false]
        );
    }
}
