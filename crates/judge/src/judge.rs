//! From rules and evidence to the one verdict.

use muster_measure::Summary;
use muster_model::{ConnectFailure, Micros, TlsFailure, figure};

use crate::own_delay::{self, Decision};
use crate::slo::counts;
use crate::starved::StarvedSeconds;
use crate::{
    Consequence, Ending, Evidence, Figure, OwnDelay, RuleKind, RuleOutcome, RuleResult, Rules,
    RunResult, Slo, Unevaluated, Verdict, causes, completion, delivery, keep_alive, reach, slo,
    soak, stable, validity, warnings::warnings,
};

/// Judges a run: evaluates every rule, whatever the others say, and draws the one result.
///
/// The result is *none* if there was no run, else *fail* if no link was up when connecting ended and
/// the platform refused one by protocol, else *invalid* if a validity rule failed or an
/// SLO could not be evaluated (stability only if named), else *fail* if a rule that counts failed, else
/// *pass* (docs/semantics.md#verdict-and-exit-codes). One part of a run leaves the rules on the target to the whole: in
/// place of *pass* it says *part*.
pub fn judge(rules: &Rules, evidence: &Evidence<'_>) -> Verdict {
    let mut results = slos(rules.slos.iter(), evidence);
    results.extend(soak::evaluate(rules, evidence));
    results.extend(no_link_up(&results, evidence));
    results.extend(completion::evaluate(rules, evidence));
    results.extend(reach::reachable(evidence));
    results.push(drain(evidence));
    results.extend(stop_if(rules, evidence));
    results.extend(stable::evaluate(rules, evidence));
    results.extend(validity::evaluate(rules, evidence));
    results.push(keep_alive::missed_by_us(evidence));

    let open = evidence.ending.why_open();
    let is_cut = *evidence.ending == Ending::Interrupted && !evidence.has_begun();
    for rule in &mut results {
        name_exceptions(rule);
        if is_cut {
            rule.cut_short();
        }
        if let Some(reason) = open {
            rule.leave_open(reason);
        }
        if evidence.is_part {
            rule.leave_to_the_whole();
        }
        rule.conclude(evidence.ending);
    }
    let is_invalid = has(&results, Consequence::Invalidates);
    let is_refused = evidence.was_refused() && has(&results, Consequence::Fails);
    let result = if was_no_run(evidence) {
        RunResult::None
    } else if is_refused {
        RunResult::Fail
    } else if is_invalid {
        RunResult::Invalid
    } else if evidence.is_part && !has(&results, Consequence::Fails) {
        RunResult::Part
    } else {
        target_result(&results)
    };
    let would_be = (result == RunResult::Invalid)
        .then(|| would_be(&results))
        .flatten();
    let warnings = if open.is_some() {
        // What is still to come may answer for the rest.
        evidence.found.to_vec()
    } else if evidence.is_part {
        // What one part did not send or did not get may have been another's.
        Vec::new()
    } else if result == RunResult::None {
        // Its verdict says all the rest.
        evidence.found.to_vec()
    } else {
        warnings(rules, &results, evidence)
    };
    Verdict {
        result,
        would_be,
        causes: causes::of_links(evidence),
        warnings,
        delivery_unknown: delivery::unknown(evidence),
        switched_off: rules.switched_off.clone(),
        rules: results,
    }
}

/// Fleets and streams left out of a rule that its evidence names; the others are counted.
const EXCEPTIONS_NAMED: usize = 3;

/// The results of the SLOs.
pub(crate) fn slos<'a>(
    slos: impl Iterator<Item = &'a Slo>,
    evidence: &Evidence<'_>,
) -> Vec<RuleResult> {
    let mut judged: Vec<(&Slo, RuleResult)> = slos
        .filter_map(|rule| Some((rule, slo::evaluate(rule, evidence)?)))
        .collect();
    own_delay::follow_response(&mut judged, evidence);
    judged.into_iter().map(|(_, result)| result).collect()
}

/// Names in the evidence what narrower rules took out, so that its counts are not read as those of the
/// whole scope.
pub(crate) fn name_exceptions(rule: &mut RuleResult) {
    let named = rule.except.len().min(EXCEPTIONS_NAMED);
    let has_counted = match &rule.outcome {
        RuleOutcome::Pass | RuleOutcome::Fail => true,
        RuleOutcome::NotEvaluated(why) => matches!(why, Unevaluated::OwnDelay(_)),
    };
    if named == 0 || !has_counted {
        return;
    }
    let names = rule.except[..named].join(", ");
    rule.evidence += &match rule.except.len() - named {
        0 => format!("; not counted here: {names}"),
        more => format!("; not counted here: {names} and {more} more"),
    };
}

pub(crate) fn target_result(rules: &[RuleResult]) -> RunResult {
    if has(rules, Consequence::Fails) {
        RunResult::Fail
    } else {
        RunResult::Pass
    }
}

pub(crate) fn has(rules: &[RuleResult], consequence: Consequence) -> bool {
    rules.iter().any(|rule| rule.consequence == consequence)
}

/// Result that an invalid run would have by the rules on the target: a failure stands even if other
/// rules could not be evaluated, and a rule that our own delay leaves open would be one; a pass
/// needs all of them that count, named or not.
fn would_be(rules: &[RuleResult]) -> Option<RunResult> {
    let is_open =
        |rule: &RuleResult| rule.is_own_delay() && rule.consequence == Consequence::Invalidates;
    if rules.iter().any(is_open) {
        return Some(RunResult::Fail);
    }
    match target_result(rules) {
        RunResult::Pass => (!rules.iter().any(is_undecided)).then_some(RunResult::Pass),
        decided @ (RunResult::Fail | RunResult::Invalid | RunResult::None | RunResult::Part) => {
            Some(decided)
        }
    }
}

/// Returns whether a rule on the target that counts was not evaluated, though there was something
/// to judge, or the scenario wants it judged.
fn is_undecided(rule: &RuleResult) -> bool {
    let is_open = match &rule.outcome {
        RuleOutcome::NotEvaluated(
            Unevaluated::NoBackend | Unevaluated::NoLinks | Unevaluated::NoSuchLatency,
        ) => rule.named,
        RuleOutcome::NotEvaluated(_) => true,
        RuleOutcome::Pass | RuleOutcome::Fail => false,
    };
    rule.is_on_target() && is_open
}

/// Rule `no-link-up` of a run that ended without a link, where the scenario has switched rule `connected`
/// off or its bound holds.
fn no_link_up(rules: &[RuleResult], evidence: &Evidence<'_>) -> Option<RuleResult> {
    let is_broken = |rule: &&RuleResult| rule.outcome == RuleOutcome::Fail || rule.is_own_delay();
    let mut broken = rules.iter().filter(is_broken);
    let is_reported = broken.any(|rule| rule.rule == "connected");
    let is_needed = *evidence.ending == Ending::NoLinkUp && !is_reported;
    is_needed.then(|| {
        let links = &evidence.summary.run.links;
        let words = format!(
            "none of {} links was up when connecting ended{}",
            figure::count(links.wanted),
            slo::listed(counts(&links.connect_failures))
        );
        RuleResult::new(RuleKind::Slo, "no-link-up", "run")
            .evidence(words)
            .decided(false, None)
    })
}

/// Returns whether there was no run at all: it failed before the first due, or no link ever came up
/// and no peer was there to refuse one.
fn was_no_run(evidence: &Evidence<'_>) -> bool {
    let goes_on = matches!(
        evidence.ending,
        Ending::NoLinkUp
            | Ending::Unfinished {
                is_running: true,
                ..
            }
    );
    matches!(evidence.ending, Ending::NotBegun(_)) || !goes_on && was_unreachable(evidence.summary)
}

/// Returns whether no device completed a handshake, for no other causes than DNS, TCP, TLS and
/// time-out. A refusal in the protocol's words is an outcome of the target and is judged; a limit
/// of our own is no word on the target.
fn was_unreachable(summary: &Summary) -> bool {
    let unreachable = [
        ConnectFailure::Dns,
        ConnectFailure::Refused,
        ConnectFailure::Unreachable,
        ConnectFailure::TimedOut,
        ConnectFailure::Closed,
        ConnectFailure::AnnouncementUnanswered,
        ConnectFailure::SubscribeUnanswered,
    ];
    let links = &summary.run.links;
    let ended = ConnectFailure::RunEnded.to_string();
    let happened = links
        .connect_failures
        .iter()
        .filter(|(_, count)| **count > 0);
    let causes: Vec<&String> = happened
        .map(|(cause, _)| cause)
        .filter(|c| **c != ended)
        .collect();
    let is_one = |cause: &String| {
        TlsFailure::named(cause).is_some()
            || unreachable.iter().any(|known| known.to_string() == *cause)
    };
    let is_by_target = links.connected == 0 && !links.is_down_by_us();
    is_by_target && !causes.is_empty() && causes.into_iter().all(is_one)
}

/// Rule `drain`: when settling ended, nothing was still on its way.
fn drain(evidence: &Evidence<'_>) -> RuleResult {
    let rule = RuleResult::new(RuleKind::Drain, "drain", "run").bound(Figure::Count(0));
    let backends = &evidence.summary.backends;
    if backends.is_empty() {
        return rule.not_evaluated(Unevaluated::NoBackend);
    }
    if !evidence.streams.iter().any(|of| of.role.is_uplink()) {
        return rule.not_evaluated(Unevaluated::NothingDue);
    }
    if evidence.summary.run.uplink.arrivals.outstanding.is_none() {
        return rule.not_evaluated(Unevaluated::Unknown);
    }
    let series = &evidence.summary.run.series;
    let starved = StarvedSeconds::with_sessions(evidence.health);
    let of_backend = |at: usize| {
        let left = backends[at].uplink.outstanding();
        let apart = starved.apart(series, evidence.summary, at).outstanding;
        (Decision::of(left == 0, || left == apart), left, apart)
    };
    let worst = (0..backends.len())
        .rev()
        .max_by_key(|at| of_backend(*at))
        .unwrap_or(0);
    let (decision, left, apart) = of_backend(worst);
    if left > 0 && evidence.is_settling_cut() {
        return rule.not_evaluated(Unevaluated::CutShort);
    }
    if left > 0 && backends[worst].is_store {
        return not_read(rule, left);
    }
    let rate = backends[worst].still_delivering_per_s;
    let name = evidence.backend(worst);
    let mut behind = match (left, rate) {
        (0, _) => "everything due had come or was final when settling ended".to_owned(),
        (left, 0) => format!("{} outstanding at {name}", figure::count(left)),
        (left, rate) => {
            let behind_s = left as f64 / rate as f64;
            format!(
                "{name} still delivering {}/s, {behind_s:.1} s behind",
                figure::count(rate)
            )
        }
    };
    match away(evidence.summary) {
        Some(away) if left > 0 => behind = format!("{behind}; {away}"),
        None if left > 0 && rate == 0 => behind += ", which was not quiet for long",
        Some(_) | None => {}
    }
    let since = series
        .iter()
        .filter(|row| {
            row.arrivals
                .get(worst)
                .is_some_and(|at| at.outstanding_due > 0)
        })
        .map(|row| row.second)
        .min();
    if left > 0 && apart > 0 {
        let apart = figure::count(apart);
        behind =
            format!("{behind}; {apart} of them were due while our consumer had too little CPU");
    }
    rule.observed(Some(Figure::Count(left)))
        .evidence(behind)
        .decided_by_both(decision, OwnDelay::Consumer, since)
}

/// The rule `drain` where a store was not read to its end.
fn not_read(rule: RuleResult, left: u64) -> RuleResult {
    let left_in_words = figure::count(left);
    rule.observed(Some(Figure::Count(left)))
        .evidence(format!(
            "{left_in_words} were accepted, and the store was not read to its end"
        ))
        .decided(false, None)
}

/// Describes consumers that did not listen while the run settled, as a cause of what is
/// outstanding.
fn away(summary: &Summary) -> Option<String> {
    let since = summary.listening.since;
    if since == Micros::MAX {
        return Some("a consumer was away when settling ended".to_owned());
    }
    if since > summary.timeline.settle {
        let until = since.as_secs_f64();
        return Some(format!("a consumer was away until {until:.0} s"));
    }
    // Its link is up, and its broker says nothing any more.
    let last = summary.listening.until;
    (last < summary.timeline.settle).then(|| {
        let last = last.as_secs_f64();
        format!("nothing came from the broker of a consumer after {last:.0} s")
    })
}

/// Rule `stop-if`, if there is one: no condition ended the run.
fn stop_if(rules: &Rules, evidence: &Evidence<'_>) -> Option<RuleResult> {
    if rules.stop_if.is_empty() {
        return None;
    }
    let rule = RuleResult::new(RuleKind::StopIf, "stop-if", "run").named(true);
    let (Ending::Stopped(stop) | Ending::SettlingInterrupted { stop: Some(stop) }) =
        evidence.ending
    else {
        let rule = rule.evidence("no condition held for long enough");
        return Some(rule.decided(true, None));
    };
    let ended = stop.at.as_secs_f64();
    let rule = rule.evidence(format!("{stop}; measuring ended at {ended:.0} s"));
    Some(rule.decided(false, Some(stop.since.second())))
}
