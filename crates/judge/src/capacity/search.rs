//! The search for one set of service levels.

use muster_model::Micros;

use super::answer::{Capacity, Next, Outcome, Phase, SearchEnd, Step, Tried};
use super::belief::{Belief, CONFIDENCE, Evidence, Hold, Interval, SURE};
use super::confirming::{CONFIRMATIONS, Confirming, Stage};
use super::held::{Held, decided, limiting};
use super::margin::Observed;
use super::spec::{GROWTH, SearchError, SearchSpec};

/// Steps whose median stays unclear, until the search gives up.
const UNCLEAR_STEPS: usize = 4;
/// The first rate has to fail this number of times: the first time, the target may be cold.
const FAILS_AT_FIRST: usize = 2;
/// The range of rates that a capacity is sought in: from the first that failed by this factor down, and by
/// [`GROWTH`] up.
const DOWN: f64 = 4.0;
/// Room below the first rate and above the highest.
const ROOM: f64 = 1.25;
/// The range of a belief has this much room beyond the rates that the one before it left, and grows by this factor if
/// the capacity seems to lie outside.
const BEYOND: f64 = 1.15;
const WIDER: f64 = 1.5;
/// The part of the probability at an end of the range at which the range is too narrow.
const AT_EDGE: f64 = 0.0005;
/// Times that a range is widened after a step.
const WIDENINGS: usize = 3;
/// The time in which the target may be cold: steps that begin in it direct the search, their figures prove nothing.
const COLD: Micros = Micros::from_secs(60);
/// Once the half of the probability around the middle lies within this factor, steps alternate below and above it, at
/// least as far away as their outcomes differ clearly, but not farther than [`ASIDE`].
const HALF: f64 = 1.15;
const ASIDE: f64 = 1.045;
/// An interval narrower than this is asked in steps as long as a confirmation takes, one wider than [`WIDE`] in long
/// ones.
const NARROW: f64 = 0.15;
const WIDE: f64 = 0.5;
/// Number of steps for which time has to be left, unless a confirmation is the last one.
const LAST: f64 = 5.0;
/// The outcome of a step at an end of the widest interval lies this number of standard deviations from the other one.
const DEVIATIONS: f64 = 2.0;
/// The part of the time left that a step takes at the most, unless a long one takes more.
const PART_OF_LEFT: f64 = 0.23;

/// Rates of steps that contradict each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contradiction {
    /// A rate that passed.
    pub passed: f64,
    /// A lower one that failed.
    pub failed: f64,
}

/// A search under way.
#[derive(Debug, Clone)]
pub struct Search {
    spec: SearchSpec,
    /// Every hold, in order.
    tried: Vec<Tried>,
    /// Every decided step, in order.
    held: Vec<Held>,
    /// Holds of the step that is repeated now.
    repeated: usize,
    /// Known once a step has failed above one that passed.
    belief: Option<Belief>,
    confirming: Option<Confirming>,
    spent: Micros,
    /// The time that is to be spent until the target is warm.
    cold_until: Micros,
    lost_at: Option<f64>,
    /// Number of searches that share the time that is left.
    sharing: usize,
    next: Next,
}

impl Search {
    /// Begins a search.
    ///
    /// # Errors
    /// [`SearchError`] if nothing can be searched by the specification.
    pub fn new(spec: SearchSpec) -> Result<Self, SearchError> {
        spec.check()?;
        let first = Step {
            rate: spec.first,
            hold: spec.short_at(spec.first),
            phase: Phase::Ramp,
        };
        let mut search = Self {
            spec,
            tried: Vec::new(),
            held: Vec::new(),
            repeated: 0,
            belief: None,
            confirming: None,
            spent: Micros::ZERO,
            cold_until: COLD,
            lost_at: None,
            sharing: 1,
            next: Next::Hold(first),
        };
        search.next = search.plan();
        Ok(search)
    }

    /// Names the next step, or the end. It is the same until an outcome is recorded.
    pub fn next(&self) -> Next {
        self.next.clone()
    }

    /// Takes what came of the step that [`Search::next`] named.
    pub fn record(&mut self, observed: &Observed) {
        let Next::Hold(step) = self.next else {
            return;
        };
        let outcome = observed.outcome;
        self.repeated += 1;
        let from = self.tried.len() + 1 - self.repeated;
        let outcomes = self.tried[from..].iter().map(|tried| tried.outcome);
        let decided = decided(outcomes.chain([outcome]).collect());
        self.tried.push(Tried {
            step,
            outcome,
            decided,
        });
        if let Some(outcome) = decided {
            self.repeated = 0;
            self.hold(&step, outcome, observed);
        }
        self.spent += observed.took;
        if !observed.has_recovered {
            self.lost_at = Some(step.rate);
        }
        if decided.is_some() {
            self.weigh();
        }
        self.next = self.plan();
    }

    /// Notes that the target was idle: it may be cold again, as in the first minute.
    pub fn cool(&mut self) {
        self.cold_until = self.spent + COLD;
    }

    /// Takes what came of a step that an earlier run held, as [`Search::record`] does. Steps depend on the budget: with
    /// another one, [`Search::next`] need not name the step that was held.
    pub fn replay(&mut self, step: &Step, observed: &Observed) {
        self.next = Next::Hold(*step);
        self.record(observed);
    }

    /// Counts time that went to a step which is not recorded here.
    pub(super) fn pass(&mut self, took: Micros) {
        self.spent += took;
    }

    /// Shares the time that is left among this number of searches: this one plans with its part of it.
    pub(super) fn share_time(&mut self, sharing: usize) {
        let is_new = std::mem::replace(&mut self.sharing, sharing) != sharing;
        if is_new && matches!(self.next, Next::Hold(_)) {
            self.next = self.plan();
        }
    }

    /// Returns whether the next step is the last one again, whose outcome was unclear.
    pub(super) fn is_repeating(&self) -> bool {
        self.repeated > 0
    }

    /// The length of the parts of a step whose figures are counted apart.
    pub fn batch(&self, step: &Step) -> Micros {
        self.spec.batch(step.rate, step.hold)
    }

    /// Every hold so far, in order, also those whose outcome a repetition replaced.
    pub fn tried(&self) -> &[Tried] {
        &self.tried
    }

    /// The lowest rate with a decided failure, at or above the lower end of the interval that is confirmed, or known so
    /// far.
    pub fn first_failing(&self) -> Option<f64> {
        let confirming = self.confirming.map(|confirming| confirming.interval());
        let lower = confirming.or_else(|| self.known());
        let lower = lower.map_or(0.0, |interval| interval.lower);
        let failed = self.of_outcome(Outcome::Fail).map(|held| held.rate);
        failed.filter(|rate| *rate >= lower).reduce(f64::min)
    }

    /// The time of the budget that is left.
    pub fn left(&self) -> Micros {
        self.spec.budget - self.spent
    }

    /// The part of it that this search plans with.
    fn own_left(&self) -> f64 {
        as_float(self.left()) / self.sharing as f64
    }

    fn plan(&self) -> Next {
        let (known, passed) = (self.known(), self.passed());
        if let Some(rate) = self.lost_at {
            return Next::End(SearchEnd::NotRecovered { rate, known });
        }
        if let Next::Hold(step) = self.next
            && self.repeated > 0
        {
            return self.within_budget(step);
        }
        let unclear = self.of_outcome(Outcome::Unclear);
        if let (UNCLEAR_STEPS.., Some(last)) = (unclear.clone().count(), unclear.last()) {
            return Next::End(SearchEnd::NothingClear {
                rate: last.rate,
                known,
                passed,
            });
        }
        let step = match (&self.belief, &self.confirming) {
            (None, _) => self.ramp(),
            (Some(belief), Some(confirming)) => self.confirm(confirming, belief),
            (Some(belief), None) => self.narrow(belief),
        };
        match step {
            Ok(step) => self.within_budget(step),
            Err(end) => Next::End(end),
        }
    }

    fn within_budget(&self, step: Step) -> Next {
        if self.spent + step.hold <= self.spec.budget {
            return Next::Hold(step);
        }
        Next::End(SearchEnd::OutOfBudget {
            known: self.known(),
            passed: self.passed(),
        })
    }

    fn ramp(&self) -> Result<Step, SearchEnd> {
        let SearchSpec { first, most, .. } = self.spec;
        let passed = self.passed();
        let fails = self.of_outcome(Outcome::Fail).count();
        if passed.is_none() && fails >= FAILS_AT_FIRST {
            return Err(SearchEnd::FailsAtFirst { rate: first });
        }
        let at_most = self.of_outcome(Outcome::Pass);
        if at_most.filter(|held| held.rate >= most).count() >= CONFIRMATIONS {
            return Err(SearchEnd::AtLeast { rate: most });
        }
        let next = passed.map_or(first, |passed| passed * GROWTH).min(most);
        let rate = self.clear_of(next)?;
        // A rate that was unclear, or failed as the first, is held again for longer. The highest rate is held for as
        // long as an answer takes.
        let is_known = self.held.iter().any(|held| held.rate == rate);
        let hold = match is_known || rate >= most {
            true => self.spec.long_at(rate),
            false => self.spec.short_at(rate),
        };
        Ok(Step {
            rate,
            hold,
            phase: Phase::Ramp,
        })
    }

    /// The next rate of the ramp, or one on the clear side of a rate that stayed unclear in a long step: halfway to
    /// what passed, or above if nothing did, since more messages say more.
    fn clear_of(&self, next: f64) -> Result<f64, SearchEnd> {
        let passed = self.passed();
        let unclear = self.of_outcome(Outcome::Unclear);
        let unclear = unclear
            .filter(|held| self.is_long(held))
            .map(|held| held.rate);
        let Some(passed) = passed else {
            let above = unclear.map(|rate| rate * GROWTH).fold(next, f64::max);
            return Ok(above.min(self.spec.most));
        };
        let unclear = unclear
            .filter(|rate| *rate > passed)
            .fold(f64::INFINITY, f64::min);
        if next < unclear {
            return Ok(next);
        }
        if unclear / passed <= 1.0 + self.spec.width {
            return Err(SearchEnd::NothingClear {
                rate: unclear,
                known: None,
                passed: Some(passed),
            });
        }
        Ok((unclear * passed).sqrt())
    }

    /// The middle while little is known, then below and above it in turn: that shows how steep the share of bad
    /// messages grows.
    fn narrow(&self, belief: &Belief) -> Result<Step, SearchEnd> {
        let SearchSpec { first, most, .. } = self.spec;
        let interval = belief.interval(CONFIDENCE);
        if interval.upper < first {
            return Err(SearchEnd::FailsAtFirst { rate: first });
        }
        if interval.lower >= most {
            return Err(SearchEnd::AtLeast { rate: most });
        }
        let aside = belief.distance_needed(1.0, SURE).exp().min(ASIDE);
        let [lower, upper] = [0.25, 0.75].map(|part| belief.quantile(part));
        let rate = match upper / lower > HALF {
            true => interval.middle,
            false if self.held.len().is_multiple_of(2) => lower.min(interval.middle / aside),
            false => upper.max(interval.middle * aside),
        };
        // After an unclear step a longer one below it: a lower rate is easier on the generator.
        let more = 1 << self.unclear_in_a_row();
        let rate = match more {
            1 => rate,
            _ => rate.min(belief.quantile(0.25 / f64::from(more))),
        };
        let highest = self.passed().map_or(first, |passed| passed * GROWTH);
        // Longer the narrower, by the logarithm of the width.
        let near = ((WIDE / interval.width()).ln() / (WIDE / NARROW).ln()).clamp(0.0, 1.0);
        let rate = rate.min(highest).min(most);
        let least = self.spec.long_at(rate);
        let (long, longest) = (as_float(least), as_float(self.long(belief).max(least)));
        let hold = whole(Micros((long + (longest - long) * near) as u64)).max(least);
        Ok(Step {
            rate,
            hold: Micros(hold.get() * more as u64),
            phase: Phase::Narrow,
        })
    }

    fn confirm(&self, confirming: &Confirming, belief: &Belief) -> Result<Step, SearchEnd> {
        let more = 1 << self.unclear_in_a_row();
        match confirming.stage(&self.held, belief, &self.spec) {
            Stage::Hold { rate, phase } => Ok(Step {
                rate,
                hold: Micros(confirming.hold().max(self.spec.long_at(rate)).get() * more),
                phase,
            }),
            Stage::Confirmed(interval) => Err(SearchEnd::Found(Capacity {
                interval,
                first_failing: self.first_failing().unwrap_or(interval.upper),
            })),
        }
    }

    /// The length of steps close to the capacity: such that few contradict each other.
    fn long(&self, belief: &Belief) -> Micros {
        let long = as_float(self.spec.long_at(belief.quantile(0.5)));
        let distance = (1.0 + self.spec.width).ln() / 2.0;
        let wanted = long * belief.steps_needed(distance, DEVIATIONS);
        let affordable = self.own_left() * PART_OF_LEFT;
        whole(Micros(wanted.min(affordable).max(long) as u64))
    }

    fn hold(&mut self, step: &Step, outcome: Outcome, observed: &Observed) {
        let hold = Hold {
            rate: step.rate,
            hold: step.hold,
            long: self.spec.long_at(step.rate),
            is_cold: self.spent < self.cold_until,
        };
        self.held.push(Held {
            rate: step.rate,
            hold: step.hold,
            outcome,
            is_cold: hold.is_cold,
            evidence: Evidence::new(&hold, outcome, observed.margin.as_ref()),
        });
    }

    /// Weighs all evidence again, with the last step.
    fn weigh(&mut self) {
        let range = match &self.belief {
            Some(belief) => Some((
                belief.quantile(AT_EDGE) / BEYOND,
                belief.quantile(1.0 - AT_EDGE) * BEYOND,
            )),
            None => self.first_range(),
        };
        let Some(mut range) = range else {
            return;
        };
        let known = self.belief.as_ref();
        let mut near = known.map(|belief| belief.interval(CONFIDENCE));
        for _ in 0..=WIDENINGS {
            let (least, most) = (self.spec.first / ROOM, self.spec.most * ROOM);
            range = (range.0.max(least), range.1.min(most));
            let evidence: Vec<&Evidence> = self
                .held
                .iter()
                .filter_map(|held| held.evidence.as_ref())
                .collect();
            let belief = Belief::new(&evidence, range, near.as_ref(), limiting(&self.held));
            let [below, above] = belief.at_edges().map(|mass| mass > AT_EDGE);
            let (below, above) = (below && range.0 > least, above && range.1 < most);
            near = Some(belief.interval(CONFIDENCE));
            self.belief = Some(belief);
            if !below && !above {
                break;
            }
            range.0 /= if below { WIDER } else { 1.0 };
            range.1 *= if above { WIDER } else { 1.0 };
        }
        self.look_at_confirmation();
    }

    /// The range that a capacity is sought in, once a step has failed above one that passed.
    fn first_range(&self) -> Option<(f64, f64)> {
        let passed = self.passed()?;
        let failed = self.of_outcome(Outcome::Fail).map(|held| held.rate);
        // What passes above the first rate that failed decides otherwise; nothing is above the highest.
        let is_above = |rate: &f64| *rate > passed || *rate >= self.spec.most;
        let failed = failed.filter(is_above).reduce(f64::min)?;
        Some((failed / DOWN, failed * GROWTH))
    }

    /// Ends a confirmation that the last step contradicts, and begins one once the interval is narrow enough.
    fn look_at_confirmation(&mut self) {
        let (Some(belief), Some(last)) = (&self.belief, self.held.last()) else {
            return;
        };
        let spec = &self.spec;
        self.confirming = self
            .confirming
            .filter(|confirming| !confirming.is_contradicted(last, belief, spec));
        if self.confirming.is_none() {
            let hold = self.long(belief);
            // What narrowing further would cost is more than is left.
            let is_last = self.own_left() < LAST * as_float(hold);
            self.confirming = Confirming::begin(belief, spec, &self.held, hold, is_last);
        }
    }

    /// The interval that the steps so far leave, with all rates about which they contradict each other; none in the
    /// ramp.
    pub fn known(&self) -> Option<Interval> {
        let mut known = self.belief.as_ref()?.interval(CONFIDENCE);
        if let Some(Contradiction { passed, failed }) = self.contradiction() {
            known.lower = known.lower.min(failed);
            known.upper = known.upper.max(passed);
        }
        Some(known)
    }

    /// The highest rate that passed and the lowest that failed, if the first is the higher one.
    pub fn contradiction(&self) -> Option<Contradiction> {
        let rates = |outcome| {
            let held = self.of_outcome(outcome);
            let held = held.filter(|held| self.is_conclusive(held));
            held.map(|held| held.rate)
        };
        let passed = rates(Outcome::Pass).reduce(f64::max)?;
        let failed = rates(Outcome::Fail).reduce(f64::min)?;
        (failed < passed).then_some(Contradiction { passed, failed })
    }

    /// Returns whether the outcome of this step says anything against that of another one: a short step may pass before
    /// the queue has grown, and a cold target may fail.
    fn is_conclusive(&self, held: &Held) -> bool {
        self.is_long(held) && !held.is_cold
    }

    fn is_long(&self, held: &Held) -> bool {
        held.hold >= self.spec.long_at(held.rate)
    }

    fn of_outcome(&self, outcome: Outcome) -> impl Iterator<Item = &Held> + Clone {
        self.held.iter().filter(move |held| held.outcome == outcome)
    }

    /// The highest rate that passed.
    fn passed(&self) -> Option<f64> {
        let passed = self.of_outcome(Outcome::Pass).map(|held| held.rate);
        passed.reduce(f64::max)
    }

    fn unclear_in_a_row(&self) -> usize {
        let held = self.held.iter().rev();
        held.take_while(|held| held.outcome == Outcome::Unclear)
            .count()
    }
}

fn as_float(time: Micros) -> f64 {
    time.get() as f64
}

/// The time in whole seconds, if it is at least one.
fn whole(time: Micros) -> Micros {
    match time.get() / 1_000_000 {
        0 => time,
        seconds => Micros::from_secs(seconds),
    }
}
