//! One step of a run, judged as a run is: by the same rules, on what was due in the step.

use muster_measure::Summary;
use muster_model::Micros;

use crate::judge::{has, name_exceptions, slos, target_result};
use crate::{
    Consequence, Ending, Evidence, GeneratorHealth, Hold, RuleName, RuleOutcome, RuleResult, Rules,
    RunResult, StreamEvidence, Unevaluated, keep_alive, stable, validity,
};

/// Time after a step in which an incident may still have changed what was due in it.
const AFTER: Micros = Micros::from_secs(10);

/// The result of a step, and the rules behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct StepVerdict {
    /// The result.
    pub result: RunResult,
    /// Every rule that a step has, in the order of the report.
    pub rules: Vec<RuleResult>,
}

/// Judges one step of a run, whose measured phase is the step. Rules that only a whole run has are
/// left out (docs/semantics.md#steps). None if nothing was due in it: a pause says nothing of the platform.
pub fn judge_step(rules: &Rules, run: &Evidence<'_>, step: &Summary) -> Option<StepVerdict> {
    let command = step.run.command.as_ref();
    let commands = command.and_then(|command| command.ledger.scheduled);
    if step.run.measured.scheduled == Some(0) && commands.unwrap_or(0) == 0 {
        return None;
    }
    let (from, until) = (step.timeline.measure, step.timeline.settle);
    let health = health_of(run.health, (from, until));
    let streams = run.streams.iter();
    let streams: Vec<StreamEvidence> = streams.map(|of| stream_of(of, (from, until))).collect();
    let is_last = until == run.summary.timeline.settle;
    let ends_early = matches!(run.ending, Ending::Interrupted | Ending::Stopped(_));
    let ending = match ends_early && !is_last {
        true => &Ending::Planned,
        false => run.ending,
    };
    let evidence = Evidence {
        summary: step,
        health: &health,
        streams: &streams,
        ending,
        ..*run
    };
    let of_step = rules.slos.iter().filter(|slo| is_of_step(slo.bound.name()));
    let mut results = slos(of_step, &evidence);
    let whole = Evidence {
        summary: run.summary,
        ..evidence
    };
    results.extend(stable::evaluate(rules, &whole).into_iter().filter(is_long));
    results.extend(validity::of_step(rules, &evidence));
    results.push(keep_alive::missed_by_us(&evidence));
    for rule in &mut results {
        name_exceptions(rule);
        rule.conclude(ending);
    }
    let result = match has(&results, Consequence::Invalidates) {
        true => RunResult::Invalid,
        false => target_result(&results),
    };
    Some(StepVerdict {
        result,
        rules: results,
    })
}

/// Returns whether a step that is held for long enough is judged by a rule of this name.
pub const fn is_judged_in_steps(rule: RuleName) -> bool {
    is_of_step(rule) || matches!(rule, RuleName::Stable)
}

/// Returns whether messages and links of one step can break a rule.
const fn is_of_step(rule: RuleName) -> bool {
    match rule {
        RuleName::Loss
        | RuleName::FailureRatio
        | RuleName::Disconnects
        | RuleName::Latency { .. } => true,
        RuleName::Connected
        | RuleName::Duplicates
        | RuleName::NotReceived
        | RuleName::RepliesLost
        | RuleName::ReceiveLoss
        | RuleName::QueriesWithCommand
        | RuleName::Stable => false,
    }
}

/// Returns whether the step held its rate for long enough to judge its stability.
fn is_long(rule: &RuleResult) -> bool {
    !matches!(
        rule.outcome,
        RuleOutcome::NotEvaluated(Unevaluated::TooFewWindows { .. } | Unevaluated::NotConstant)
    )
}

/// The stream with the part of its holds that lies in the step.
fn stream_of(stream: &StreamEvidence, (from, until): (Micros, Micros)) -> StreamEvidence {
    let holds = stream.holds.iter().map(|hold| Hold {
        from: hold.from.max(from),
        until: hold.until.min(until),
        ..*hold
    });
    StreamEvidence {
        holds: holds.filter(|hold| hold.from < hold.until).collect(),
        ..stream.clone()
    }
}

/// The health with the incidents that may have changed what was due in the step.
fn health_of(health: &GeneratorHealth, (from, until): (Micros, Micros)) -> GeneratorHealth {
    let incidents = health.incidents.iter();
    let near = incidents.filter(|it| it.from < until + AFTER && it.until >= from);
    GeneratorHealth {
        incidents: near.cloned().collect(),
        ..health.clone()
    }
}
