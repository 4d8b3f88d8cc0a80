//! The window against replayed records (RFC 6347 section 4.1.2.6).

/// Records below the newest that are remembered one by one.
const WIDTH: u64 = 64;

/// Received sequence numbers of one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Window {
    /// One more than the newest.
    next: u64,
    /// Bit n stands for the number `next - 1 - n`.
    seen: u64,
}

impl Window {
    /// Returns true if a number may still come: newer than all, or within the window and not seen.
    pub(super) const fn is_fresh(&self, sequence: u64) -> bool {
        if sequence >= self.next {
            return true;
        }
        let age = self.next - 1 - sequence;
        age < WIDTH && self.seen & (1 << age) == 0
    }

    /// Remembers a number whose record was authentic; whether it is the newest.
    pub(super) const fn mark(&mut self, sequence: u64) -> bool {
        if sequence < self.next {
            self.seen |= 1 << (self.next - 1 - sequence);
            return false;
        }
        let shift = sequence + 1 - self.next;
        self.seen = if shift < WIDTH {
            self.seen << shift | 1
        } else {
            1
        };
        self.next = sequence + 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A number is taken once; it is refused only if it was seen or is 64 or more behind the
        /// newest.
        #[test]
        fn a_number_is_taken_once(numbers in prop::collection::vec(0_u64..200, 0..300)) {
            let (mut window, mut seen) = (Window::default(), BTreeSet::new());
            for number in numbers {
                let newest = seen.last().copied();
                let is_in_reach = newest.is_none_or(|newest| number + WIDTH > newest);
                let is_fresh = window.is_fresh(number);
                prop_assert_eq!(is_fresh, !seen.contains(&number) && is_in_reach);
                if is_fresh {
                    prop_assert_eq!(window.mark(number), newest.is_none_or(|newest| number > newest));
                    seen.insert(number);
                }
            }
        }
    }

    #[test]
    fn a_leap_forgets_all_before_it() {
        let mut window = Window::default();
        assert!(window.mark(0) && window.mark(1_000_000));
        assert!(!window.is_fresh(0) && !window.is_fresh(1_000_000));
        assert!(window.is_fresh(999_999) && window.is_fresh((1 << 48) - 1));
    }
}
