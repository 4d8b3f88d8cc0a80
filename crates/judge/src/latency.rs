//! The latency rules: `pX <= b`, decided by exact counters, never by a bucket.

use muster_measure::{
    Above, Bounded, Distribution, Latency as Kept, LatencyView, Leg, Phase, ScopeSummary, State,
};
use muster_model::{BackendId, Micros, figure};

use crate::capacity::Batch;
use crate::commands;
use crate::own_delay::{Decision, by_both_times, delivery};
use crate::slo::{is_consumer_disturbed, margin, new};
use crate::{Evidence, Figure, Latency, OwnDelay, Percentile, RuleResult, Slo, Unevaluated};

/// The bound of a rule on a percentile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PercentileBound {
    pub(crate) of: Latency,
    pub(crate) percentile: Percentile,
    pub(crate) at_most: Micros,
}

/// Rule `<latency> pX`: it holds iff `above + missing <= (1 - X) n` (docs/semantics.md#percentile-rules). Where it fails
/// only by a part that may be our own, it is undecided (section 5).
pub(crate) fn evaluate(
    slo: &Slo,
    bound: PercentileBound,
    scope: &ScopeSummary,
    evidence: &Evidence<'_>,
) -> RuleResult {
    let PercentileBound {
        of,
        percentile,
        at_most,
    } = bound;
    let kept = match kept(of) {
        Ok(kept) => kept,
        Err(leg) => return commands::leg(slo, leg, bound, scope, evidence),
    };
    let rule = new(slo).bound(Figure::Time(at_most));
    if let Some(reason) = why_unknown(of, scope, evidence) {
        return rule.not_evaluated(reason);
    }
    let counters = counters(scope, kept, at_most);
    let decided = counters.map(|counter| {
        let seconds = |backend| scope.delivery(at_most, backend);
        let decision = if of == Latency::EndToEnd {
            delivery(counter, percentile, counter.backend.and_then(seconds))
        } else {
            by_both_times(counter, percentile)
        };
        (decision, counter)
    });
    // Of equals the first, since its distribution is the one that is kept.
    let worse = |a: (Decision, _), b: (Decision, _)| {
        let by_share = share_above(a.1).total_cmp(&share_above(b.1));
        if a.0.cmp(&b.0).then(by_share).is_lt() {
            b
        } else {
            a
        }
    };
    let Some((decision, worst)) = decided.reduce(worse) else {
        return rule.not_evaluated(Unevaluated::NoSuchLatency);
    };
    if worst.n < percentile.needed() {
        return too_few(rule, bound, worst, scope);
    }
    let settled = worst.missing - open(slo, worst, scope, evidence).min(worst.missing);
    let holds_if_settled = percentile.allows(worst.above + settled, worst.n);
    if decision != Decision::Holds && holds_if_settled && evidence.is_settling_cut() {
        return rule.not_evaluated(Unevaluated::CutShort);
    }
    let is_end_to_end = kept == Kept::EndToEnd;
    let own = if is_end_to_end {
        OwnDelay::Delivery
    } else {
        OwnDelay::Answers
    };
    let observed = observed(scope, worst, percentile);
    let margin = observed.and_then(|at| margin(at.value(), at_most.0 as f64));
    rule.observed(observed)
        .evidence(words(worst, percentile, evidence))
        .decided_by_both(decision, own, since(scope, bound))
        .with_lower(&slo.bound.rule(), lower(scope, kept, percentile))
        .noted_if_close(margin)
}

/// The reason why a latency is not known at all.
fn why_unknown(of: Latency, scope: &ScopeSummary, evidence: &Evidence<'_>) -> Option<Unevaluated> {
    if scope.measured.scheduled.is_none() {
        return Some(Unevaluated::Unknown);
    }
    if of != Latency::EndToEnd {
        return None;
    }
    let reasons = [
        (
            is_consumer_disturbed(evidence),
            Unevaluated::ConsumerDisturbed,
        ),
        (evidence.summary.backends.is_empty(), Unevaluated::NoBackend),
        (!evidence.summary.has_one_clock, Unevaluated::ClocksApart),
        (scope.unsure_by_order > 0, Unevaluated::OrderUnsure),
    ];
    let mut reasons = reasons.into_iter();
    reasons.find_map(|(is_so, reason)| is_so.then_some(reason))
}

/// Messages without an end in a latency that might have had one if settling had gone on: in flight, or
/// at a backend outstanding. A message in flight that arrived has its end there.
fn open(slo: &Slo, counter: &Above, scope: &ScopeSummary, evidence: &Evidence<'_>) -> u64 {
    let Some(backend) = counter.backend else {
        return scope.measured.in_flight;
    };
    let streams = &evidence.summary.backends[backend.index()].streams_measured;
    let open = evidence.covered(slo, streams).map(|figures| {
        let in_flight = figures.of(State::InFlight);
        figures.outstanding() + in_flight.absent + in_flight.outstanding
    });
    open.sum()
}

/// The percentile of all due without our own part; none for a latency without two times.
fn lower(scope: &ScopeSummary, of: Kept, percentile: Percentile) -> Option<Micros> {
    let view = scope.latency.response_lower.as_ref();
    let all = all_due(view.filter(|_| of == Kept::Response)?);
    all.quantile_us(percentile.as_fraction()).map(Micros)
}

/// Too few messages for the percentile say nothing of the target, unless it is the target that
/// made them few: an end-to-end rule leaves out what was rejected, and would be undecided by a
/// target that rejects everything.
fn too_few(
    rule: RuleResult,
    bound: PercentileBound,
    counter: &Above,
    scope: &ScopeSummary,
) -> RuleResult {
    let (have, needed) = (counter.n, bound.percentile.needed());
    let scheduled = scope.measured.scheduled.unwrap_or(0);
    if bound.of != Latency::EndToEnd || scheduled < needed {
        return rule.not_evaluated(Unevaluated::TooFewMessages { have, needed });
    }
    let rows = scope
        .series
        .iter()
        .filter(|row| row.phase == Phase::Measure);
    let since = rows
        .filter(|row| row.due.of(State::Rejected) > 0)
        .map(|row| row.second)
        .min();
    rule.evidence(format!(
        "too few were not rejected to judge: {} of {}, needs {}",
        figure::count(have),
        figure::count(scheduled),
        figure::count(needed)
    ))
    .decided(false, since)
}

/// The recorder's name for a latency, or the leg of commands that it is.
const fn kept(of: Latency) -> Result<Kept, Leg> {
    match of {
        Latency::Response => Ok(Kept::Response),
        Latency::Service => Ok(Kept::Service),
        Latency::EndToEnd => Ok(Kept::EndToEnd),
        Latency::Lateness => Ok(Kept::Lateness),
        Latency::CommandRequest => Err(Leg::Request),
        Latency::CommandResponse => Err(Leg::Response),
        Latency::CommandLoop => Err(Leg::Loop),
    }
}

/// The counters of a bound, one or one a backend.
fn counters(scope: &ScopeSummary, of: Kept, at_most: Micros) -> impl Iterator<Item = &Above> {
    let all = scope.above.iter();
    all.filter(move |counter| counter.latency == of && counter.bound == at_most)
}

/// The messages that a bound counts, and those above it or without an end; once, or once a backend.
pub(crate) fn counts_above(bound: PercentileBound, scope: &ScopeSummary) -> Vec<Batch> {
    let of = match kept(bound.of) {
        Ok(of) => of,
        Err(leg) => {
            return commands::counts_above(leg, bound, scope)
                .into_iter()
                .collect();
        }
    };
    let all = counters(scope, of, bound.at_most).map(|counter| Batch {
        messages: counter.n,
        bad: counter.above + counter.missing,
    });
    all.collect()
}

fn share_above(counter: &Above) -> f64 {
    (counter.above + counter.missing) as f64 / (counter.n as f64).max(1.0)
}

fn words(counter: &Above, percentile: Percentile, evidence: &Evidence<'_>) -> String {
    let place = counter.backend.map_or(String::new(), |id| {
        format!(" at {}", evidence.backend(id.index()))
    });
    let counts = (counter.above, counter.missing, counter.n);
    let is_end_to_end = counter.latency == Kept::EndToEnd;
    let never = if is_end_to_end {
        "never arrived"
    } else {
        "never answered"
    };
    counted(counts, percentile, never) + &place
}

/// The counts above the bound, without an end, and of all; `never` is what did not happen.
pub(crate) fn counted(
    (above, missing, n): (u64, u64, u64),
    percentile: Percentile,
    never: &str,
) -> String {
    format!(
        "{} above and {} {never}, of {} ({} allowed)",
        figure::count(above),
        figure::count(missing),
        figure::count(n),
        figure::count(percentile.allowed_above(n))
    )
}

/// The percentile to print: of all due, the unanswered at their lower bound. It illustrates the
/// rule and never decides it. The distribution of end-to-end is the first backend's.
fn observed(scope: &ScopeSummary, counter: &Above, percentile: Percentile) -> Option<Figure> {
    if counter
        .backend
        .is_some_and(|backend| backend != BackendId(0))
    {
        return None;
    }
    let view = scope.latency.of(counter.latency)?;
    of_all_due(view, percentile, counter.missing)
}

/// A percentile of all due: a lower bound where it is among those without an end. Of `missing`, those
/// without a lower bound count with a bound of zero.
pub(crate) fn of_all_due(
    view: &LatencyView,
    percentile: Percentile,
    missing: u64,
) -> Option<Figure> {
    let mut censored = view.censored.clone();
    let unbounded = missing.saturating_sub(censored.count);
    if view.known.count > 0 && unbounded > 0 {
        censored.record_n(Micros::ZERO, unbounded);
    }
    let found = Bounded::of(&view.known, &censored, percentile.as_fraction())?;
    Some(match found.is_at_least {
        true => Figure::AtLeast(Micros(found.us)),
        false => Figure::Time(Micros(found.us)),
    })
}

/// The known times and the lower bounds of the others, together.
pub(crate) fn all_due(view: &LatencyView) -> Distribution {
    let mut all = view.known.clone();
    all.merge(&view.censored);
    all
}

/// The first second of the measured phase whose own percentile lay above the bound. Service has no
/// series.
fn since(scope: &ScopeSummary, bound: PercentileBound) -> Option<u32> {
    let PercentileBound {
        of,
        percentile,
        at_most,
    } = bound;
    let rows = scope
        .series
        .iter()
        .filter(|row| row.phase == Phase::Measure);
    let mut rows = rows.map(|row| {
        let at = match of {
            Latency::Response => {
                let mut all = row.response.clone();
                all.merge(&row.censored);
                all.quantile_us(percentile.as_fraction())
            }
            Latency::EndToEnd => row.end_to_end.quantile_us(percentile.as_fraction()),
            Latency::Lateness => row.lateness_p99_us,
            Latency::Service
            | Latency::CommandRequest
            | Latency::CommandResponse
            | Latency::CommandLoop => None,
        };
        (row.second, at)
    });
    rows.find(|(_, at)| at.is_some_and(|at| at > at_most.0))
        .map(|(second, _)| second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_among_those_that_never_ended_is_a_lower_bound() {
        let mut view = LatencyView::default();
        view.known.record_n(Micros(200), 100);
        let observed = |missing| of_all_due(&view, Percentile::P99, missing);
        assert!(matches!(observed(0), Some(Figure::Time(_))));
        assert!(matches!(observed(50), Some(Figure::AtLeast(_))));
        let of_none = of_all_due(&LatencyView::default(), Percentile::P99, 50);
        assert_eq!(of_none, None, "nothing is known");
    }
}
