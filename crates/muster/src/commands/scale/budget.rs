//! The time of a growth, and its part for each search.

use anyhow::{Result, bail};
use muster_judge::capacity::SearchSpec;
use muster_model::{Dimension, Micros, figure};
use muster_plan::Plan;

use super::{FROM, WIDTH};
use crate::commands::capacity::longest_limit;

/// Without a limit of latency, the first steps are this part of the last ones.
const SHORT: u64 = 3;
/// Steps of a search if none contradicts another: a ramp, then narrowing and confirmation.
const SHORT_STEPS: u64 = 4;
const LONG_STEPS: u64 = 10;
/// The time of a step besides its hold: the target comes to rest, and the last windows arrive.
const PAUSE: Micros = Micros::from_millis(2_500);
const SECOND: Micros = Micros::from_secs(1);
/// The least budget where none is given.
const USUAL: Micros = Micros::from_secs(600);

/// Lengths of the steps of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StepLengths {
    /// The first ones.
    pub(super) short: Micros,
    /// The last ones, close to the capacity.
    pub(super) long: Micros,
    /// The load of a short step times its seconds, at the least, as [`SearchSpec::load_seconds`].
    pub(super) load_seconds: f64,
    /// The rate of the scenario, which about one instance carries.
    pub(super) stated: f64,
}

impl StepLengths {
    /// The lengths for a plan, in whole seconds, as steps are held. If an SLO limits a latency, `hold` only lengthens the
    /// steps of `muster capacity`: a shorter step passes above the capacity.
    pub(super) fn new(plan: &Plan, hold: Micros) -> Self {
        let limit = longest_limit(&plan.rules);
        let (short, long) = match limit {
            Micros::ZERO => (Micros(hold.get() / SHORT), hold),
            limit => {
                let (short, long) = SearchSpec::lengths(limit);
                (short, long.max(hold))
            }
        };
        let [short, long] = [short, long].map(whole_seconds);
        Self {
            short,
            long,
            load_seconds: plan.step_needs(Dimension::Rate).load_seconds,
            stated: plan.stated_rate(),
        }
    }

    /// A search of these steps between two rates.
    pub(super) fn spec(&self, first: f64, most: f64, budget: Micros) -> SearchSpec {
        SearchSpec {
            first,
            most,
            width: WIDTH,
            short: self.short,
            long: self.long,
            load_seconds: self.load_seconds,
            budget,
        }
    }

    /// The time of a search whose steps do not contradict each other, and which finds about the scenario's rate.
    fn of_search(&self) -> Micros {
        let first = self.stated * FROM;
        let spec = self.spec(first, self.stated, Micros::ZERO);
        let ramp = std::iter::successors(Some(first), |rate| Some(rate * 2.0));
        let ramp = ramp.take(SHORT_STEPS as usize);
        let short: u64 = ramp.map(|rate| spec.short_at(rate).get()).sum();
        let long = spec.long_at(self.stated).get().saturating_mul(LONG_STEPS);
        let pauses = (SHORT_STEPS + LONG_STEPS) * PAUSE.get();
        Micros(short.saturating_add(long).saturating_add(pauses))
    }
}

fn whole_seconds(length: Micros) -> Micros {
    Micros::from_secs(length.get().div_ceil(SECOND.get()))
}

/// The time that the searches of a growth may take together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Budget {
    left: Micros,
    of_search: Micros,
}

impl Budget {
    /// The budget of `searches` further ones, after `spent` went to earlier ones. Without a given one, it is ten
    /// minutes, or half as much again as the searches need at least if that is more. `fewer` says in the error how to need
    /// fewer of them.
    ///
    /// # Errors
    /// If the given budget is too short for that number of searches.
    pub(super) fn new(
        given: Option<Micros>,
        spent: Micros,
        searches: u32,
        lengths: StepLengths,
        fewer: &str,
    ) -> Result<Self> {
        let of_search = lengths.of_search();
        let needed = Micros(of_search.get().saturating_mul(u64::from(searches)));
        let left = match given {
            None => USUAL.max(Micros(needed.get() / 2 * 3)),
            Some(whole) if whole < spent + needed => bail!(
                "make {searches} further {} within --budget {}: this takes at least {}{}; give more, or {fewer}",
                if searches == 1 { "search" } else { "searches" },
                figure::clock(whole),
                figure::clock(needed),
                match spent {
                    Micros::ZERO => String::new(),
                    spent => format!(", and earlier searches took {}", figure::clock(spent)),
                }
            ),
            Some(whole) => whole - spent,
        };
        Ok(Self { left, of_search })
    }

    /// The time that a search may take if `searches` are to be made, the next one included: all but what the others
    /// usually take, and a fair share at the least.
    ///
    /// # Errors
    /// The reason in words if too little is left for one.
    pub(super) fn share(&self, searches: u32) -> Result<Micros, String> {
        if self.left < self.of_search {
            return Err(format!(
                "{} of the budget is left, and a search takes at least {}; go on with --resume and a longer --budget",
                figure::clock(self.left),
                figure::clock(self.of_search)
            ));
        }
        let all = u64::from(searches.max(1));
        let others = self.usual().get().saturating_mul(all - 1);
        let fair = Micros(self.left.get() / all);
        Ok((self.left - Micros(others)).max(fair).max(self.of_search))
    }

    /// The time of a search some of whose steps contradict each other.
    fn usual(&self) -> Micros {
        Micros(self.of_search.get() / 2 * 3)
    }

    /// Takes time away.
    pub(super) fn spend(&mut self, time: Micros) {
        self.left = self.left - time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEWER: &str = "lower `scale.instances.max`";
    const LENGTHS: StepLengths = StepLengths {
        short: Micros::from_secs(2),
        long: Micros::from_secs(6),
        load_seconds: 0.0,
        stated: 100.0,
    };

    #[test]
    fn a_budget_too_short_for_all_searches_is_refused_with_what_they_take() {
        let budget = |seconds, spent| {
            let given = Some(Micros::from_secs(seconds));
            Budget::new(given, Micros::from_secs(spent), 3, LENGTHS, FEWER)
        };
        let error = budget(300, 0).expect_err("three take 309 s").to_string();
        assert!(error.contains("5:00") && error.contains("5:09"), "{error}");
        let error = budget(350, 50).expect_err("50 s are gone").to_string();
        assert!(error.contains("earlier searches took 0:50"), "{error}");
        assert!(budget(309, 0).is_ok() && budget(359, 50).is_ok());
    }

    #[test]
    fn a_search_may_take_what_the_others_do_not_need_and_a_fair_share_at_the_least() {
        let given = Some(Micros::from_secs(600));
        let mut budget = Budget::new(given, Micros::ZERO, 3, LENGTHS, FEWER).expect("it is enough");
        assert_eq!(
            budget.share(3),
            Ok(Micros::from_secs(291)),
            "others take 154.5 s"
        );
        budget.spend(Micros::from_secs(200));
        assert_eq!(budget.share(3), Ok(Micros(133_333_333)));
        assert_eq!(budget.share(4), Ok(Micros::from_secs(103)));
        budget.spend(Micros::from_secs(298));
        let why = budget.share(1).expect_err("a search takes 103 s");
        assert!(why.contains("1:42") && why.contains("1:43"), "{why}");
    }

    #[test]
    fn a_step_takes_as_long_as_it_is_held() {
        let lengths = [1_334, 5_001].map(|length| whole_seconds(Micros::from_millis(length)));
        assert_eq!(lengths, [LENGTHS.short, LENGTHS.long]);
    }

    #[test]
    fn steps_at_low_rates_count_as_long_as_percentiles_need() {
        let of_search = |stated| {
            let lengths = StepLengths {
                load_seconds: 2_000.0,
                stated,
                ..LENGTHS
            };
            lengths.of_search()
        };
        // From 1,000/s on a short step of 2 s has 2,000 messages.
        assert_eq!(of_search(4_000.0), LENGTHS.of_search());
        // Short ones of 80, 40, 20 and 10 s, ten of 60 s, and the pauses.
        let slow = Micros::from_secs(80 + 40 + 20 + 10 + 600 + 35);
        assert_eq!(of_search(100.0), slow);
    }

    #[test]
    fn a_budget_that_is_not_given_suffices() {
        let whole = |searches| {
            let budget = Budget::new(None, Micros::ZERO, searches, LENGTHS, FEWER);
            budget.expect("a budget").share(1)
        };
        assert_eq!(whole(1), Ok(USUAL));
        assert_eq!(whole(8), Ok(Micros::from_secs(1_236)));
    }
}
