//! The search for one set of service levels.

use muster_model::Micros;

use super::answer::{Capacity, Next, Outcome, Phase, SearchEnd, Step, Tried};
use super::belief::{Belief, Interval};
use super::held::{Held, decided};
use super::spec::{SearchError, SearchSpec};

/// Probability with which the capacity lies in the stated interval.
const CONFIDENCE: f64 = 0.95;
/// Each step of the ramp is this many times the one before.
const GROWTH: f64 = 2.0;
/// Steps whose median stays unclear, until the search gives up.
const UNCLEAR_STEPS: usize = 4;
/// The lower end of the interval has to pass this number of times, on fresh figures. So has the highest rate.
const CONFIRMATIONS: usize = 3;
/// The first rate has to fail this number of times: the first time, the target may be cold.
const FAILS_AT_FIRST: usize = 2;
/// The range of rates that a capacity is sought in: from the first that failed by this factor down, and by
/// [`GROWTH`] up. It is widened by the same factors if the capacity seems to lie outside.
const DOWN: f64 = 4.0;
/// Room below the first rate and above the highest.
const ROOM: f64 = 1.25;
/// An interval wider than this is asked in short steps, one narrower than [`NARROW`] in long ones.
const WIDE: f64 = 0.5;
const NARROW: f64 = 0.15;
/// An interval narrower than this is asked near its ends in turn.
const ENDS: f64 = 0.3;
/// Parts of the probability that lie below the rates that are asked in turn.
const PARTS: [f64; 2] = [0.25, 0.75];
/// Narrowing goes on until the interval has this part of the stated width, as long as time is left: so the middle is
/// nearer to the capacity.
const AIM: f64 = 0.7;
/// Narrow steps are held until this is their spread, as a part of the stated width.
const SPREAD: f64 = 0.2;
/// A step is held this many times a long one at the most, and for this part of the time left, if that is more
/// than a long one.
const LONGEST: f64 = 8.0;
const PART_OF_LEFT: f64 = 0.125;
/// Distance of a stated end from the middle, in spreads: so far away nearly every step has the expected outcome.
const MARGIN: f64 = 2.0;

/// The spread of a long step, as a part of the stated width, at which short steps that passed prove nothing.
const NOISY: f64 = 0.5;
/// The part of all steps that may contradict an answer.
const CONTRADICTING: f64 = 0.1;

/// An interval whose ends are being held.
#[derive(Debug, Clone, Copy)]
struct Confirming {
    interval: Interval,
    /// The length of its steps.
    hold: Micros,
    /// Number of steps that were held before.
    since: usize,
}

/// The range of a belief.
#[derive(Debug, Clone, Copy)]
struct Range {
    lowest: f64,
    highest: f64,
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
    belief: Option<(Belief, Range)>,
    confirming: Option<Confirming>,
    spent: Micros,
    lost_at: Option<f64>,
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
            hold: spec.short,
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
            lost_at: None,
            next: Next::Hold(first),
        };
        search.next = search.plan();
        Ok(search)
    }

    /// Names the next step, or the end. It is the same until an outcome is recorded.
    pub fn next(&self) -> Next {
        self.next.clone()
    }

    /// Takes the outcome of the step that [`Search::next`] named. `took` is its whole time, with the pause that
    /// followed it; `has_recovered` is false if the target did not come back to rest in that pause.
    pub fn record(&mut self, outcome: Outcome, took: Micros, has_recovered: bool) {
        let Next::Hold(step) = self.next else {
            return;
        };
        self.pass_time(&step, took, has_recovered);
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
            self.decide(&step, outcome);
        }
        self.next = self.plan();
    }

    /// Takes the outcome of a step that an earlier run held, as [`Search::record`] does. Steps depend on the budget: with
    /// another one, [`Search::next`] need not name the step that was held.
    pub fn replay(&mut self, step: &Step, outcome: Outcome, took: Micros, has_recovered: bool) {
        self.next = Next::Hold(*step);
        self.record(outcome, took, has_recovered);
    }

    /// Every hold so far, in order, also those whose outcome a repetition replaced.
    pub fn tried(&self) -> &[Tried] {
        &self.tried
    }

    /// The lowest rate with a decided failure, at or above the lower end of the interval that is confirmed, or known so
    /// far.
    pub fn first_failing(&self) -> Option<f64> {
        let confirming = self.confirming.map(|confirming| confirming.interval);
        let lower = confirming.or_else(|| self.known());
        let lower = lower.map_or(0.0, |interval| interval.lower);
        let failed = self.of_outcome(Outcome::Fail).map(|held| held.rate);
        failed.filter(|rate| *rate >= lower).reduce(f64::min)
    }

    /// The time of the budget that is left.
    pub fn left(&self) -> Micros {
        self.spec.budget - self.spent
    }

    fn pass_time(&mut self, step: &Step, took: Micros, has_recovered: bool) {
        self.spent += took;
        if !has_recovered {
            self.lost_at = Some(step.rate);
        }
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
            (Some(_), Some(confirming)) => self.confirm(confirming),
            (Some((belief, _)), None) => self.narrow(belief),
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
            true => self.spec.long,
            false => self.spec.short,
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
            .filter(|held| held.hold >= self.spec.long)
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

    /// The middle while little is known, then below and above it in turn: what is asked at the middle says
    /// little of the ends.
    fn narrow(&self, belief: &Belief) -> Result<Step, SearchEnd> {
        let SearchSpec { first, most, .. } = self.spec;
        let interval = belief.interval(CONFIDENCE);
        if interval.upper < first {
            return Err(SearchEnd::FailsAtFirst { rate: first });
        }
        if interval.lower >= most {
            return Err(SearchEnd::AtLeast { rate: most });
        }
        let part = match interval.width() > ENDS {
            true => 0.5,
            false => PARTS[self.held.len() % PARTS.len()],
        };
        // After an unclear step a longer one below it: a lower rate is easier on the generator.
        let more = f64::from(1 << self.unclear_in_a_row());
        let [rate] = belief.quantiles([part / more]);
        let highest = self.passed().map_or(first, |passed| passed * GROWTH);
        // From short to long by the logarithm of the width.
        let near = ((WIDE / interval.width()).ln() / (WIDE / NARROW).ln()).clamp(0.0, 1.0);
        let (short, long) = (as_float(self.spec.short), as_float(self.long(belief)));
        // What contradicted shorter steps is not settled by another of these.
        let longest = self.held.iter().map(|held| held.hold).max();
        let hold = (short + (long - short) * near).max(longest.map_or(0.0, as_float).min(long));
        Ok(Step {
            rate: rate.min(highest).min(most),
            hold: Micros((hold * more) as u64),
            phase: Phase::Narrow,
        })
    }

    fn confirm(&self, confirming: &Confirming) -> Result<Step, SearchEnd> {
        let interval = confirming.interval;
        let fresh = &self.held[confirming.since..];
        let is_lower = |held: &&Held| {
            held.outcome == Outcome::Pass
                && held.rate >= interval.lower
                && held.hold >= confirming.hold
        };
        let is_upper = |held: &Held| held.outcome == Outcome::Fail && held.rate == interval.upper;
        let (rate, phase) = if fresh.iter().filter(is_lower).count() < CONFIRMATIONS {
            (interval.lower, Phase::ConfirmLower)
        } else if fresh.iter().any(is_upper) {
            return Err(SearchEnd::Found(Capacity {
                interval,
                first_failing: self.first_failing().unwrap_or(interval.upper),
            }));
        } else {
            (interval.upper, Phase::ConfirmUpper)
        };
        let more = 1 << self.unclear_in_a_row();
        Ok(Step {
            rate,
            hold: Micros(confirming.hold.get() * more),
            phase,
        })
    }

    /// The length of steps close to the capacity: such that few contradict each other.
    fn long(&self, belief: &Belief) -> Micros {
        let long = self.spec.long.get() as f64;
        let excess = belief.spread(self.spec.long) / (SPREAD * self.spec.width);
        let wanted = long * (excess * excess).min(LONGEST);
        let affordable = self.left().get() as f64 * PART_OF_LEFT;
        Micros(wanted.min(affordable).max(long) as u64)
    }

    fn decide(&mut self, step: &Step, outcome: Outcome) {
        let held = Held {
            rate: step.rate,
            hold: step.hold,
            outcome,
        };
        self.held.push(held);
        match (&mut self.belief, held.evidence()) {
            (Some((belief, _)), Some(evidence)) => belief.learn(&evidence),
            (None, Some(_)) => self.end_ramp(),
            (_, None) => {}
        }
        self.widen();
        self.look_at_confirmation(&held);
    }

    /// Once a step has failed above one that passed, the ramp is over.
    fn end_ramp(&mut self) {
        let Some(passed) = self.passed() else {
            return;
        };
        let failed = self.of_outcome(Outcome::Fail).map(|held| held.rate);
        // What passes above the first rate that failed decides otherwise; nothing is above the highest.
        let is_above = |rate: &f64| *rate > passed || *rate >= self.spec.most;
        if let Some(failed) = failed.filter(is_above).reduce(f64::min) {
            self.believe(Range {
                lowest: failed / DOWN,
                highest: failed * GROWTH,
            });
        }
    }

    /// Widens the range if the capacity seems to lie outside.
    fn widen(&mut self) {
        let (least, most) = (self.spec.first / ROOM, self.spec.most * ROOM);
        while let Some((belief, range)) = &self.belief {
            let range = *range;
            let [below, above] = belief.is_at_edge();
            let (below, above) = (below && range.lowest > least, above && range.highest < most);
            if !below && !above {
                return;
            }
            self.believe(Range {
                lowest: range.lowest / if below { DOWN } else { 1.0 },
                highest: range.highest * if above { GROWTH } else { 1.0 },
            });
        }
    }

    fn believe(&mut self, range: Range) {
        let range = Range {
            lowest: range.lowest.max(self.spec.first / ROOM),
            highest: range.highest.min(self.spec.most * ROOM),
        };
        let mut belief = Belief::between(range.lowest, range.highest, self.spec.long);
        for evidence in self.held.iter().filter_map(Held::evidence) {
            belief.learn(&evidence);
        }
        self.belief = Some((belief, range));
    }

    /// Ends a confirmation that a step contradicts, and begins one once the interval is narrow enough.
    fn look_at_confirmation(&mut self, held: &Held) {
        let is_contradicted = |confirming: &Confirming| match held.outcome {
            Outcome::Fail => held.rate <= confirming.interval.lower,
            Outcome::Pass => held.rate >= confirming.interval.upper,
            Outcome::Unclear => false,
        };
        if self.confirming.as_ref().is_some_and(is_contradicted) {
            self.confirming = None;
        }
        let (None, Some((belief, _))) = (self.confirming, &self.belief) else {
            return;
        };
        let known = belief.interval(CONFIDENCE);
        let hold = self.long(belief);
        let margin = (MARGIN * belief.spread(hold)).exp();
        let stated = Interval {
            lower: known.lower.min(known.middle / margin),
            middle: known.middle,
            upper: known.upper.max(known.middle * margin).min(self.spec.most),
        };
        // What narrowing further would cost is more than is left.
        let is_last = self.left().get() < (CONFIRMATIONS as u64 + 3) * hold.get();
        let is_near = known.width() <= AIM * self.spec.width || is_last;
        let is_near = is_near && !self.is_contradicted(&stated);
        if is_near && stated.width() <= self.spec.width && stated.lower < stated.upper {
            self.confirming = Some(Confirming {
                interval: stated,
                hold,
                since: self.held.len(),
            });
        }
    }

    /// The interval that the steps so far leave, with all rates about which they contradict each other; none in the
    /// ramp.
    pub fn known(&self) -> Option<Interval> {
        let (belief, _) = self.belief.as_ref()?;
        let mut known = belief.interval(CONFIDENCE);
        if belief.spread(self.spec.long) > NOISY * self.spec.width {
            // Too few rare events fell into short steps for their passes to say much.
            known.lower = self.spec.first;
        }
        let failed = self.of_outcome(Outcome::Fail).map(|held| held.rate);
        let lowest = failed.fold(f64::INFINITY, f64::min);
        let passed = self.of_outcome(Outcome::Pass);
        let passed = passed.filter(|held| self.is_long(held));
        let passed = passed.map(|held| held.rate).fold(known.upper, f64::max);
        Some(match lowest < passed {
            true => Interval {
                lower: known.lower.min(lowest),
                upper: known.upper.max(passed),
                ..known
            },
            false => known,
        })
    }

    /// Returns whether too many steps contradict an interval for it to be an answer.
    fn is_contradicted(&self, interval: &Interval) -> bool {
        let contradicts = |held: &&Held| match held.outcome {
            Outcome::Fail => held.rate <= interval.lower,
            Outcome::Pass => held.rate >= interval.upper && self.is_long(held),
            Outcome::Unclear => false,
        };
        let contradicting = self.held.iter().filter(contradicts).count();
        contradicting as f64 > CONTRADICTING * self.held.len() as f64
    }

    /// Returns whether a pass of this step says anything against a fail: a shorter one may end before the queue has
    /// grown.
    fn is_long(&self, held: &Held) -> bool {
        held.hold >= self.spec.long
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
