//! From the figures of a step and its verdict to a step of the report.

use muster_judge::StepVerdict;
use muster_measure::{CommandSummary, Leg, Summary};

use super::with_commands;
use crate::{Latencies, Rule, Step, StepCommands};

/// The stated rates of a step, its figures and its verdict.
#[derive(Debug, Clone)]
pub struct JudgedStep<'a> {
    /// Rate that the stages state at its begin, per second.
    pub rate: f64,
    /// Rate that they state at its end, per second.
    pub rate_until: f64,
    /// True if no stage changes its rate within the step.
    pub is_hold: bool,
    /// Its figures: those of a run whose measured phase is the step.
    pub summary: &'a Summary,
    /// Its verdict; none if it is not judged.
    pub verdict: Option<StepVerdict>,
}

impl Step {
    /// The steps of a report, in order.
    pub fn all(steps: &[JudgedStep<'_>]) -> Vec<Self> {
        let numbered = (1..).zip(steps);
        numbered.map(|(number, step)| of(number, step)).collect()
    }
}

impl StepCommands {
    /// The commands of a step; none where none has a schedule.
    fn of(command: &CommandSummary) -> Option<Self> {
        Some(Self {
            scheduled: command.ledger.scheduled?,
            replied: command.legs[Leg::Loop.index()].ended,
        })
    }
}

fn of(number: u64, step: &JudgedStep<'_>) -> Step {
    let (timeline, run) = (&step.summary.timeline, &step.summary.run);
    let verdict = step.verdict.as_ref();
    let rules = verdict.iter().flat_map(|verdict| &verdict.rules);
    Step {
        step: number,
        from_s: timeline.measure.as_secs_f64(),
        until_s: timeline.settle.as_secs_f64(),
        rate: step.rate,
        rate_until: step.rate_until,
        is_hold: step.is_hold,
        result: verdict.map(|verdict| verdict.result),
        rates: run.rates,
        ledger: run.measured.clone(),
        latency: Latencies {
            connect: None,
            ..with_commands(Latencies::from(&run.latency), run)
        },
        commands: run.command.as_ref().and_then(StepCommands::of),
        disconnects: run.links.ended_by_platform.values().sum(),
        rules: rules.map(Rule::from).collect(),
    }
}
