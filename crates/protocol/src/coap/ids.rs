//! Message ids: each is used once within `EXCHANGE_LIFETIME` (RFC 7252 section 4.4).

use std::collections::VecDeque;

use muster_model::Micros;

use super::Refused;

/// Ids that share one instant; 256 such blocks are all ids.
const BLOCK: u16 = 256;
/// Blocks of all ids.
const BLOCKS: usize = 65_536 / BLOCK as usize;

/// Gives out the ids of one endpoint pair, in a circle from a random one.
///
/// Only the instant at which a block of 256 was used up is kept, and only while that is less than a
/// lifetime ago. So a device that sends now and then keeps next to nothing, and a socket at the
/// limit is at most a block short of it: 265 ids a second with the standard's times.
#[derive(Debug)]
pub(super) struct MessageIds {
    /// Instants at which the last blocks were used up, the oldest first; boxed, since few devices
    /// use up one.
    #[expect(
        clippy::box_collection,
        reason = "a device that has none pays a pointer and not a queue"
    )]
    used: Option<Box<VecDeque<Micros>>>,
    next: u16,
    in_block: u16,
}

impl MessageIds {
    pub(super) fn new(first: u16) -> Self {
        Self {
            used: None,
            next: first,
            in_block: 0,
        }
    }

    /// The next id, unless all were used within the last `lifetime`.
    #[inline]
    pub(super) fn take(&mut self, now: Micros, lifetime: Micros) -> Result<u16, Refused> {
        if self.in_block == 0 && !self.may_begin(now, lifetime) {
            let free_at = self.free_at(lifetime);
            return Err(Refused::NoMessageId { free_at });
        }
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        self.in_block += 1;
        if self.in_block == BLOCK {
            self.in_block = 0;
            self.used.get_or_insert_default().push_back(now);
        }
        Ok(id)
    }

    /// Returns when an id is free again, if none is.
    fn free_at(&self, lifetime: Micros) -> Micros {
        let all = self.used.as_ref().filter(|used| used.len() >= BLOCKS);
        let oldest = all.and_then(|used| used.front());
        oldest.map_or(Micros::ZERO, |oldest| *oldest + lifetime)
    }

    fn may_begin(&mut self, now: Micros, lifetime: Micros) -> bool {
        let Some(used) = &mut self.used else {
            return true;
        };
        while used.front().is_some_and(|at| *at + lifetime <= now) {
            used.pop_front();
        }
        used.len() < BLOCKS
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIFETIME: Micros = Micros::from_secs(247);

    #[test]
    fn all_ids_can_be_used_once_in_a_lifetime_and_no_more() {
        let mut ids = MessageIds::new(65_000);
        let mut seen = vec![false; 65_536];
        for _ in 0..65_536 {
            let id = ids.take(Micros(5), LIFETIME).expect("a free id");
            assert!(!std::mem::replace(&mut seen[usize::from(id)], true));
        }
        let free_at = Micros(5) + LIFETIME;
        let refused = Err(Refused::NoMessageId { free_at });
        assert_eq!(ids.take(Micros(5), LIFETIME), refused);
        assert_eq!(ids.take(LIFETIME, LIFETIME), refused);
        assert_eq!(ids.take(free_at, LIFETIME), Ok(65_000));
    }

    /// 65,536 ids in 247 s are 265 a second.
    #[test]
    fn a_socket_can_send_265_messages_a_second_for_ever() {
        let mut ids = MessageIds::new(9);
        let given = |ids: &mut MessageIds, rate: u64| {
            let due = (0..rate * 1_000).map(|n| Micros(n * 1_000_000 / rate));
            due.filter(|now| ids.take(*now, LIFETIME).is_ok()).count() as u64
        };
        assert_eq!(given(&mut ids, 264), 264_000);
        let given = given(&mut MessageIds::new(9), 300);
        assert!((260_000..330_000).contains(&given), "{given}");
    }

    proptest! {
        /// No id is given twice within a lifetime, whenever ids are asked for, and one is given
        /// unless 65,280 and more were within the last.
        #[test]
        fn no_id_comes_twice_within_a_lifetime(
            waits in proptest::collection::vec((0..400u16, 0..4_000u64), 1..600),
            first: u16,
        ) {
            let lifetime = Micros(1_000_000);
            let mut ids = MessageIds::new(first);
            let mut last = vec![None; 65_536];
            let mut given: VecDeque<Micros> = VecDeque::new();
            let mut now = Micros::ZERO;
            for (count, wait) in waits {
                now += Micros(wait);
                for _ in 0..count {
                    while given.front().is_some_and(|at| *at + lifetime <= now) {
                        given.pop_front();
                    }
                    let Ok(id) = ids.take(now, lifetime) else {
                        prop_assert!(given.len() >= 65_536 - 256);
                        break;
                    };
                    let before = last[usize::from(id)].replace(now);
                    prop_assert!(before.is_none_or(|before| before + lifetime <= now));
                    given.push_back(now);
                }
            }
        }
    }
}
