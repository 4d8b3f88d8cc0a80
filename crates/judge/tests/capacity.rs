//! The search for a capacity, against simulated targets whose capacity is known.

use muster_judge::capacity::{Next, Outcome, Search, SearchEnd, SearchSpec, Step};
use muster_model::Micros;

/// Searches a test repeats for each target; the law itself is about thousands, which `--ignored` runs.
const FEW: u64 = 60;
const MANY: u64 = 2_000;

/// Numbers without order (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.next()).ln()
    }
}

/// A target with one server, first come, first served.
#[derive(Clone, Copy)]
struct Target {
    name: &'static str,
    /// Mean service time in seconds.
    service: f64,
    /// True if the service time is always the same.
    is_fixed: bool,
    /// Messages that may wait; further ones are lost.
    queue: f64,
    /// Every so many seconds the server rests.
    pause_every: f64,
    pause: f64,
    /// The response time that 99 % have to keep, in seconds.
    p99: f64,
    /// The share that may be lost.
    loss: f64,
}

const PLAIN: Target = Target {
    name: "exponential service",
    service: 0.001,
    is_fixed: false,
    queue: f64::INFINITY,
    pause_every: f64::INFINITY,
    pause: 0.0,
    p99: 0.05,
    loss: 0.0,
};

const TARGETS: [Target; 4] = [
    PLAIN,
    Target {
        name: "fixed service",
        is_fixed: true,
        p99: 0.02,
        ..PLAIN
    },
    Target {
        name: "a bounded queue that drops",
        queue: 40.0,
        p99: 1.0,
        loss: 0.001,
        ..PLAIN
    },
    Target {
        name: "collection pauses",
        is_fixed: true,
        pause_every: 2.0,
        pause: 0.03,
        p99: 0.025,
        ..PLAIN
    },
];

impl Target {
    /// Offers messages at a rate for so many seconds, the first tenth of which is not judged: the share that was
    /// slow or lost over what is allowed, below 1 for a pass.
    fn excess(&self, rate: f64, seconds: f64, random: &mut Random) -> f64 {
        let (mut now, mut free_at, mut next_pause) = (0.0, 0.0_f64, self.pause_every);
        let (mut count, mut slow, mut lost) = (0_u64, 0_u64, 0_u64);
        while now < seconds {
            now += random.exponential(1.0 / rate);
            while now > next_pause {
                free_at = free_at.max(next_pause) + self.pause;
                next_pause += self.pause_every;
            }
            let is_judged = now > seconds / 10.0;
            count += u64::from(is_judged);
            let waits = (free_at - now).max(0.0);
            if waits > self.queue * self.service {
                lost += u64::from(is_judged);
                continue;
            }
            let service = match self.is_fixed {
                true => self.service,
                false => random.exponential(self.service),
            };
            free_at = free_at.max(now) + service;
            slow += u64::from(is_judged && free_at - now > self.p99);
        }
        let (count, slow, lost) = (count as f64, slow as f64, lost as f64);
        let lost = match self.loss > 0.0 {
            true => lost / count / self.loss,
            false => 0.0,
        };
        (slow / count / 0.01).max(lost)
    }

    /// The highest rate at which the levels hold in the long run, by bisection.
    fn capacity(&self) -> f64 {
        let (mut low, mut high) = (0.3 / self.service, 1.2 / self.service);
        for step in 0..12 {
            let middle = f64::midpoint(low, high);
            let mut random = Random(step);
            match self.excess(middle, 3_000.0, &mut random) <= 1.0 {
                true => low = middle,
                false => high = middle,
            }
        }
        f64::midpoint(low, high)
    }
}

fn spec() -> SearchSpec {
    SearchSpec {
        first: 50.0,
        most: 100_000.0,
        width: 0.1,
        short: Micros::from_secs(5),
        long: Micros::from_secs(20),
        budget: Micros::from_secs(1200),
    }
}

/// Runs a search to its end; the number of its steps too.
fn search(spec: SearchSpec, mut hold: impl FnMut(&Step) -> Outcome) -> (SearchEnd, usize) {
    let mut search = Search::new(spec).expect("a valid specification");
    for steps in 0..1_000 {
        match search.next() {
            Next::End(end) => return (end, steps),
            Next::Hold(step) => {
                let outcome = hold(&step);
                search.record(outcome, step.hold + Micros::from_secs(2), true);
            }
        }
    }
    panic!("the search does not end");
}

/// Searches of a target: how many found a capacity, whose middle is within 3 %, whose lower end is not above the
/// truth, whose interval covers it, and the mean time they took, in seconds.
fn many(target: Target, count: u64) -> [f64; 5] {
    let truth = target.capacity();
    let mut sums = [0.0; 5];
    for seed in 0..count {
        let mut random = Random(seed << 20);
        let mut spent = 0.0;
        let (end, _) = search(spec(), |step| {
            let seconds = step.hold.as_secs_f64();
            spent += seconds + 2.0;
            match target.excess(step.rate, seconds, &mut random) <= 1.0 {
                true => Outcome::Pass,
                false => Outcome::Fail,
            }
        });
        sums[4] += spent;
        if let SearchEnd::Found(capacity) = end {
            let interval = capacity.interval;
            let is_close = (interval.middle / truth - 1.0).abs() <= 0.03;
            let is_below = interval.lower <= truth;
            let covers = is_below && interval.upper >= truth;
            for (sum, holds) in sums.iter_mut().zip([true, is_close, is_below, covers]) {
                *sum += f64::from(u8::from(holds));
            }
        }
    }
    sums.map(|sum| sum / count as f64)
}

/// Law: of the searches of a target with a constant capacity nearly all end with an interval of at most 10 %,
/// its middle is within 3 % of the truth in most of them, and its lower end above the truth in few. Targets
/// whose pass or fail is decided by few rare events need longer steps than these.
fn law(count: u64) {
    for target in &TARGETS[..3] {
        let [found, close, below, ..] = many(*target, count);
        assert!(found >= 0.95, "{}: found {found}", target.name);
        assert!(close >= 0.85, "{}: close {close}", target.name);
        assert!(below >= 0.95, "{}: below {below}", target.name);
    }
}

#[test]
fn a_constant_capacity_is_found() {
    law(FEW);
}

#[test]
#[ignore = "minutes"]
fn a_constant_capacity_is_found_in_thousands_of_searches() {
    law(MANY);
}

/// A target that passes up to a rate, and never above.
fn sharp(at: f64) -> impl FnMut(&Step) -> Outcome {
    move |step| match step.rate <= at {
        true => Outcome::Pass,
        false => Outcome::Fail,
    }
}

#[test]
fn a_sharp_limit_is_bracketed_and_confirmed() {
    let (end, steps) = search(spec(), sharp(7_340.0));
    let SearchEnd::Found(found) = end else {
        panic!("{end:?}");
    };
    assert!(found.interval.lower <= 7_340.0 && found.interval.upper >= 7_340.0);
    assert!(found.interval.width() <= 0.1 && found.first_failing > 7_340.0);
    assert!(steps <= 30, "{steps}");
}

#[test]
fn a_target_that_fails_at_once_or_never_is_an_answer() {
    let (end, steps) = search(spec(), sharp(1.0));
    assert_eq!((end, steps), (SearchEnd::FailsAtFirst { rate: 50.0 }, 1));
    let (end, _) = search(spec(), sharp(f64::INFINITY));
    assert_eq!(end, SearchEnd::AtLeast { rate: 100_000.0 });
}

#[test]
fn what_stays_unclear_is_held_three_times_and_not_certified() {
    let mut held = Vec::new();
    let (end, _) = search(spec(), |step| {
        held.push(step.rate);
        if step.rate < 100.0 {
            Outcome::Pass
        } else {
            Outcome::Unclear
        }
    });
    assert_eq!(held[..4], [50.0, 100.0, 100.0, 100.0]);
    assert!(
        matches!(end, SearchEnd::Found(_) | SearchEnd::OutOfBudget { .. }),
        "{end:?}"
    );
}

#[test]
fn a_target_that_does_not_come_back_ends_the_search() {
    let mut search = Search::new(spec()).expect("a valid specification");
    search.record(Outcome::Pass, Micros::from_secs(7), true);
    search.record(Outcome::Fail, Micros::from_secs(7), false);
    let Next::End(SearchEnd::NotRecovered { rate, known }) = search.next() else {
        panic!("{:?}", search.next());
    };
    assert_eq!(rate, 100.0);
    assert!(known.is_some_and(|known| known.lower < 100.0 && known.upper > 50.0));
}

#[test]
fn a_budget_that_is_too_short_keeps_what_was_learnt() {
    let budget = Micros::from_secs(60);
    let (end, _) = search(SearchSpec { budget, ..spec() }, sharp(700.0));
    let SearchEnd::OutOfBudget { passed, .. } = end else {
        panic!("{end:?}");
    };
    assert!(passed.is_some_and(|passed| (100.0..=700.0).contains(&passed)));
}

/// Law: a search that was interrupted after any step, and whose outcomes are recorded again, goes on with the same
/// step.
#[test]
fn a_search_goes_on_where_it_was_interrupted() {
    let mut outcomes = Vec::new();
    let mut hold = sharp(1_234.0);
    let mut whole = Search::new(spec()).expect("a valid specification");
    while let Next::Hold(step) = whole.next() {
        let mut again = Search::new(spec()).expect("a valid specification");
        for outcome in &outcomes {
            again.record(*outcome, Micros::from_secs(9), true);
        }
        assert_eq!(again.next(), Next::Hold(step));
        let outcome = hold(&step);
        outcomes.push(outcome);
        whole.record(outcome, Micros::from_secs(9), true);
    }
    assert!(outcomes.len() > 8);
}

#[test]
fn a_specification_that_makes_no_sense_is_refused() {
    let bad = [
        SearchSpec {
            first: 0.0,
            ..spec()
        },
        SearchSpec {
            most: 10.0,
            ..spec()
        },
        SearchSpec {
            width: 0.0,
            ..spec()
        },
        SearchSpec {
            short: Micros::from_secs(30),
            ..spec()
        },
    ];
    assert!(bad.into_iter().all(|spec| Search::new(spec).is_err()));
}
