//! The time of a growth, and its part for each search.

use anyhow::{Result, bail};
use muster_judge::capacity::SearchSpec;
use muster_model::{Micros, figure};
use muster_plan::Plan;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StepLengths {
    /// The first ones.
    pub(super) short: Micros,
    /// The last ones, close to the capacity.
    pub(super) long: Micros,
}

impl StepLengths {
    /// The lengths for a plan, in whole seconds, as steps are held. If an SLO limits a latency, `hold` only lengthens the steps of `muster capacity`: a
    /// shorter step passes above the capacity.
    pub(super) fn new(plan: &Plan, hold: Micros) -> Self {
        let limit = longest_limit(&plan.rules);
        if limit == Micros::ZERO {
            return Self::whole(Micros(hold.get() / SHORT), hold);
        }
        let (short, long) = SearchSpec::lengths(limit);
        Self::whole(short, long.max(hold))
    }

    fn whole(short: Micros, long: Micros) -> Self {
        let [short, long] = [short, long].map(|length| length.get().div_ceil(SECOND.get()));
        Self {
            short: Micros::from_secs(short),
            long: Micros::from_secs(long),
        }
    }

    /// The time of a search whose steps do not contradict each other.
    fn of_search(&self) -> Micros {
        let pauses = (SHORT_STEPS + LONG_STEPS) * PAUSE.get();
        let short = self.short.get().saturating_mul(SHORT_STEPS);
        let long = self.long.get().saturating_mul(LONG_STEPS);
        Micros(short.saturating_add(long).saturating_add(pauses))
    }
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
        assert_eq!(
            StepLengths::whole(Micros::from_millis(1_334), Micros::from_millis(5_001)),
            LENGTHS
        );
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
