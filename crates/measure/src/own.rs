//! The generator's own delay: the largest recent lateness of a shard, and how long a thread has
//! waited for a CPU since an instant. Both are bounded, and neither allocates once it is made.

use std::collections::VecDeque;

use muster_model::{Micros, Turn};

/// Instants that are kept as one.
const BUCKET: Micros = Micros::from_millis(10);
/// The time before a message's due whose lateness counts as its own: queues that a burst of ours
/// caused in the target are gone after it.
const BEFORE_DUE: Micros = Micros::from_secs(1);
/// The longest lateness that is looked back over, in addition to [`BEFORE_DUE`].
const LATENESS_MAX: Micros = Micros::from_secs(9);
/// Buckets of the whole look-back, and with it the most entries: 8 KiB a shard.
const ENTRIES_MAX: usize = 1_002;
/// Instants of a wait that are kept as one once they are no longer recent.
const LONG_BUCKET: Micros = Micros::from_secs(1);
/// Buckets of a history of waits, of each width: 41 s and 68 minutes in 32 KiB a thread.
const HISTORY: usize = 4_096;

/// The largest lateness of a shard over a sliding time: from one second before a message's due to
/// when it is taken.
///
/// Instants only grow. They are kept in buckets of 10 ms, so the time reaches back up to one bucket
/// more than it should. An entry stays until a later one is as large: the first that is recent
/// enough is the largest.
#[derive(Debug)]
pub struct RecentLateness {
    entries: VecDeque<(u32, u32)>,
}

impl Default for RecentLateness {
    fn default() -> Self {
        Self {
            entries: VecDeque::with_capacity(ENTRIES_MAX),
        }
    }
}

impl RecentLateness {
    /// Records that something due at `due` was taken at `now`, and answers with the largest lateness
    /// from one second before `due` to `now`.
    pub fn record(&mut self, due: Micros, now: Micros) -> Micros {
        let lateness = now - due;
        let bucket = bucket_of(now);
        let us = u32::try_from(lateness.get()).unwrap_or(u32::MAX);
        while self.entries.back().is_some_and(|(_, last)| *last <= us) {
            self.entries.pop_back();
        }
        // A larger one of the same bucket stands for both.
        if self.entries.back().is_none_or(|(at, _)| *at != bucket) {
            let oldest = bucket_of(now - BEFORE_DUE - LATENESS_MAX);
            while self.entries.front().is_some_and(|(at, _)| *at < oldest) {
                self.entries.pop_front();
            }
            self.entries.push_back((bucket, us));
        }
        self.largest_since(due - BEFORE_DUE)
    }

    /// The largest lateness from an instant to now.
    pub fn largest_since(&self, since: Micros) -> Micros {
        let bucket = bucket_of(since);
        let at = self.entries.partition_point(|(at, _)| *at < bucket);
        let largest = self.entries.get(at).map_or(0, |(_, us)| *us);
        Micros(u64::from(largest))
    }

    /// The largest lateness from one second before an instant to now.
    pub fn largest_before(&self, due: Micros) -> Micros {
        self.largest_since(due - BEFORE_DUE)
    }
}

/// The time that a thread has waited for a CPU, by the instant at which it was read.
///
/// Instants only grow. They are kept in buckets of 10 ms for 41 s, and before that in buckets of 1 s
/// for 68 minutes, so up to one bucket's wait before an instant counts as after it. Of an instant
/// before all buckets, what was waited since the oldest is known, and no more counts.
#[derive(Debug)]
pub struct WaitHistory {
    recent: WaitBuckets,
    past: WaitBuckets,
    waited: Micros,
}

impl Default for WaitHistory {
    fn default() -> Self {
        Self {
            recent: WaitBuckets::new(BUCKET),
            past: WaitBuckets::new(LONG_BUCKET),
            waited: Micros::ZERO,
        }
    }
}

impl WaitHistory {
    /// Notes the whole wait of the thread so far, as it was read at `now`.
    pub fn note(&mut self, now: Micros, waited: Micros) {
        self.recent.advance(now, self.waited);
        self.past.advance(now, self.waited);
        self.waited = self.waited.max(waited);
    }

    /// The whole wait so far.
    pub fn waited(&self) -> Micros {
        self.waited
    }

    /// The wait since an instant, as far back as it is known.
    pub fn since(&self, at: Micros) -> Micros {
        if self.recent.is_before(at) {
            return Micros::ZERO;
        }
        let begun = if self.recent.holds(at) {
            self.recent.begun(at)
        } else {
            self.past.begun(at)
        };
        Micros(u64::from((self.waited.get() as u32).wrapping_sub(begun)))
    }
}

/// Waits of a thread at the beginnings of the last buckets of time.
#[derive(Debug)]
struct WaitBuckets {
    width: Micros,
    /// By bucket: the wait in microseconds, modulo 2^32, when the bucket began.
    begun: Box<[u32; HISTORY]>,
    /// The bucket of the last reading.
    last: u32,
}

impl WaitBuckets {
    fn new(width: Micros) -> Self {
        Self {
            width,
            begun: Box::new([0; HISTORY]),
            last: 0,
        }
    }

    /// Begins all buckets up to that of `now`, before which the thread had waited so long.
    fn advance(&mut self, now: Micros, waited: Micros) {
        let bucket = self.bucket(now);
        let passed = (bucket.saturating_sub(self.last) as usize).min(HISTORY);
        for back in 0..passed {
            self.begun[(bucket as usize - back) & (HISTORY - 1)] = waited.get() as u32;
        }
        self.last = self.last.max(bucket);
    }

    /// Returns whether all buckets lie before an instant.
    fn is_before(&self, at: Micros) -> bool {
        self.bucket(at) > self.last
    }

    fn holds(&self, at: Micros) -> bool {
        self.bucket(at) >= self.oldest()
    }

    /// The wait when the bucket of an instant began; of one before all buckets, that of the oldest.
    fn begun(&self, at: Micros) -> u32 {
        self.begun[self.bucket(at).max(self.oldest()) as usize & (HISTORY - 1)]
    }

    fn oldest(&self) -> u32 {
        self.last.saturating_sub(HISTORY as u32 - 1)
    }

    fn bucket(&self, at: Micros) -> u32 {
        u32::try_from(at.get() / self.width.get()).unwrap_or(u32::MAX)
    }
}

/// The delay between a socket and whoever reads from it.
#[derive(Debug, Default)]
pub struct ReadDelay {
    waits: WaitHistory,
    turn_began: Micros,
}

impl ReadDelay {
    /// A turn of the thread begins: called before what came is handed over.
    pub fn turn_begins(&mut self, turn: &Turn) {
        self.turn_began = turn.began;
        self.waits.note(turn.now, turn.waited);
    }

    /// The CPU wait of the thread, by the instant at which it was read.
    pub fn waits(&self) -> &WaitHistory {
        &self.waits
    }

    /// The length of the turn so far.
    pub fn turn(&self, now: Micros) -> Micros {
        now - self.turn_began
    }

    /// The part of the time from `due` to `seen` that may be the reader's own: the CPU wait between
    /// them, and the turn that reads.
    pub fn own(&self, due: Micros, seen: Micros) -> Micros {
        let own = self.waits.since(due) + self.turn(seen);
        own.min(seen - due)
    }
}

fn bucket_of(at: Micros) -> u32 {
    u32::try_from(at.get() / BUCKET.get()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A burst of arrivals at a server with one queue, all due within a second.
    #[derive(Debug, Clone)]
    struct Arrivals {
        /// By message: the gap after the one before, our own delay and the time of service, in
        /// microseconds.
        messages: Vec<(u64, u64, u64)>,
    }

    fn arrivals() -> impl Strategy<Value = Arrivals> {
        let message = (0u64..20_000, 0u64..300_000, 0u64..50_000);
        prop::collection::vec(message, 1..50).prop_map(|messages| Arrivals { messages })
    }

    impl Arrivals {
        /// By message: due, and when it goes out; nothing overtakes.
        fn sent(&self) -> Vec<(Micros, Micros)> {
            let (mut due, mut last) = (Micros::from_secs(5), Micros::ZERO);
            let sent = self.messages.iter().map(|(gap, delay, _)| {
                due += Micros(*gap);
                last = last.max(due + Micros(*delay));
                (due, last)
            });
            sent.collect()
        }

        /// Instants at which the messages are answered if they come to the server then.
        fn ended(&self, come: impl Iterator<Item = Micros>) -> Vec<Micros> {
            let mut free = Micros::ZERO;
            let ended = come.zip(&self.messages).map(|(come, (.., service))| {
                free = come.max(free) + Micros(*service);
                free
            });
            ended.collect()
        }
    }

    proptest! {
        /// Arrivals delayed by at most L leave a first-in-first-out server at most L later: without
        /// the largest lateness no response is longer than it had been without any delay of ours.
        /// And the lower time lies between zero and the upper one.
        #[test]
        fn a_lower_time_never_exceeds_the_response_without_our_delay(world in arrivals()) {
            let sent = world.sent();
            let delayed = world.ended(sent.iter().map(|(_, taken)| *taken));
            let undelayed = world.ended(sent.iter().map(|(due, _)| *due));
            let mut recent = RecentLateness::default();
            for (((due, taken), delayed), undelayed) in sent.iter().zip(&delayed).zip(&undelayed) {
                let own = recent.record(*due, *taken);
                let upper = *delayed - *due;
                let lower = upper - own;
                prop_assert!(own >= *taken - *due);
                prop_assert!(lower <= upper);
                prop_assert!(lower <= *undelayed - *due, "{lower} of {upper}, own {own}");
            }
        }

        /// The largest lateness is that of a plain look at all records of the time, or of up to one
        /// bucket more.
        #[test]
        fn the_largest_is_the_largest(
            records in prop::collection::vec((0u64..30_000, 0u64..1_500_000), 1..400),
        ) {
            let mut recent = RecentLateness::default();
            let (mut now, mut all) = (Micros::from_secs(20), Vec::new());
            for (gap, lateness) in records {
                now += Micros(gap);
                let due = now - Micros(lateness);
                all.push((now, lateness));
                let found = recent.record(due, now).get();
                let since = |since: Micros| {
                    let times = all.iter().filter(|(at, _)| *at >= since);
                    times.map(|(_, lateness)| *lateness).max().unwrap_or(0)
                };
                let from = due - BEFORE_DUE;
                prop_assert!(since(from) <= found);
                prop_assert!(found <= since(from - BUCKET));
            }
            prop_assert!(recent.entries.len() <= ENTRIES_MAX);
        }

        /// The wait since an instant is that of a plain subtraction, or of up to one bucket more.
        #[test]
        fn the_wait_since_an_instant_is_what_was_read_since(
            readings in prop::collection::vec((0u64..60_000, 0u64..5_000), 1..300),
            back in 0u64..3_000_000,
        ) {
            let mut history = WaitHistory::default();
            let (mut now, mut waited) = (Micros::from_secs(10), Micros::ZERO);
            let mut all = vec![(Micros::ZERO, Micros::ZERO)];
            for (gap, wait) in readings {
                (now, waited) = (now + Micros(gap), waited + Micros(wait));
                history.note(now, waited);
                all.push((now, waited));
            }
            let before = |at: Micros| {
                let earlier = all.iter().take_while(|(read, _)| *read < at);
                earlier.last().map_or(Micros::ZERO, |(_, waited)| *waited)
            };
            let at = now - Micros(back);
            let found = history.since(at);
            prop_assert!(waited - before(at) <= found, "{found}");
            prop_assert!(found <= waited - before(at - BUCKET), "{found}");
        }
    }

    /// A soak of an hour in which the thread waits 50 ms of each second.
    #[test]
    fn of_a_long_run_no_more_counts_than_was_waited_since() {
        let mut history = WaitHistory::default();
        for second in 1..=3_600 {
            history.note(Micros::from_secs(second), Micros(second * 50_000));
        }
        let since = |second| history.since(Micros::from_secs(second));
        for back in [0, 1, 40, 41, 50, 600, 3_599] {
            let found = since(3_600 - back).get();
            let waited = back * 50_000;
            assert!(
                (waited..=waited + 50_000).contains(&found),
                "{back}: {found}"
            );
        }
        assert_eq!(since(3_601), Micros::ZERO);
    }

    #[test]
    fn before_the_history_what_was_waited_since_its_oldest_bucket_counts() {
        let mut history = WaitHistory::default();
        history.note(Micros::from_secs(1), Micros(700));
        history.note(Micros::from_secs(100), Micros(900));
        assert_eq!(history.since(Micros::from_secs(1)), Micros(900));
        assert_eq!(history.since(Micros::from_secs(2)), Micros(200));
        assert_eq!(history.since(Micros::from_secs(99)), Micros(200));
        assert_eq!(history.since(Micros::from_secs(101)), Micros::ZERO);
        history.note(Micros::from_secs(10_000), Micros(1_000));
        assert_eq!(history.since(Micros::from_secs(1)), Micros(100));
    }

    #[test]
    fn a_lateness_counts_for_what_is_due_within_a_second_of_it() {
        let ms = Micros::from_millis;
        let mut recent = RecentLateness::default();
        assert_eq!(recent.record(ms(5_000), ms(5_300)), ms(300));
        assert_eq!(recent.record(ms(6_300), ms(6_301)), ms(300));
        assert_eq!(recent.record(ms(6_320), ms(6_321)), ms(1));
        assert_eq!(recent.largest_since(ms(5_300)), ms(300));
        assert_eq!(recent.largest_since(ms(6_330)), Micros::ZERO);
    }
}
