//! The answer of a growth by the published policy: `scale.json`, and the words on the terminal.

use muster_model::figure;
use muster_plan::{Plan, PublishedPolicy, ScalePlan};
use muster_report::RunResult;
use muster_scale::{Figures, Limit, LogLine};
use serde::Serialize;

use super::journal::{Entry, Ran};
use crate::commands::scale::answer::price_per_million;
use crate::outcome;

/// The name and version of the form of `scale.json` with this policy.
const SCHEMA: &str = "muster-scale-published/1";

/// The end of the growth.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub(super) enum End {
    /// A limit of the scenario was reached.
    Limit {
        /// The limit.
        limit: Limit,
    },
    /// The target could not be set to some number of instances.
    NotSet {
        /// The number of instances.
        instances: u32,
        /// The reason.
        why: String,
    },
    /// A run ended before the policy.
    Unclear {
        /// The number of instances.
        instances: u32,
        /// The reason.
        why: String,
    },
}

/// The answer, as `scale.json` holds it.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a> {
    schema: &'static str,
    name: &'a str,
    /// Parameters of the published test.
    policy: PublishedPolicy,
    /// The end of the growth; null if it was interrupted.
    end: Option<End>,
    /// The last acceptable level of each number of instances.
    capacities: Vec<Capacity>,
    /// Every line of the log.
    lines: Vec<LogLine>,
    /// Every run, in order.
    runs: Vec<&'a Ran>,
}

/// The last acceptable level of a number of instances.
#[derive(Debug, Serialize)]
struct Capacity {
    instances: u32,
    /// Units of load.
    units: u32,
    /// The figures of its log line.
    published: Figures,
    /// The sums over the window of its best reading.
    summed: Figures,
    /// Messages received by sums, for each instance and second.
    per_instance: f64,
    /// Price of a million messages by sums; null without a price of an instance.
    price_per_million: Option<f64>,
}

impl<'a> Answer<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        scale: &ScalePlan,
        policy: PublishedPolicy,
        end: Option<End>,
        entries: &'a [Entry],
    ) -> Self {
        let lines: Vec<LogLine> = entries.iter().filter_map(Entry::line).copied().collect();
        let mut capacities: Vec<Capacity> = Vec::new();
        for line in lines.iter().filter(|line| line.is_stable) {
            let capacity = Capacity::of(line, scale);
            capacities.retain(|it| it.instances != capacity.instances);
            capacities.push(capacity);
        }
        Self {
            schema: SCHEMA,
            name: &plan.name,
            policy,
            end,
            capacities,
            lines,
            runs: entries.iter().filter_map(Entry::run).collect(),
        }
    }

    pub(super) fn exit_code(&self) -> u8 {
        match &self.end {
            Some(End::Limit { .. }) if self.has_invalid_run() => outcome::INVALID,
            Some(End::Limit { .. }) if self.capacities.is_empty() => outcome::FAIL,
            Some(End::Limit { .. }) => outcome::PASS,
            Some(End::NotSet { .. } | End::Unclear { .. }) | None => outcome::INVALID,
        }
    }

    pub(super) fn words(&self) -> String {
        let (result, why) = self.end_words();
        let mut text = format!("{result}  {}  {why}", self.name);
        for of in &self.capacities {
            text += &format!(
                "\n  {:>3} instances  {:>3} units of load, {}/s received; {}/s an instance",
                of.instances,
                of.units,
                figure::rate(of.summed.received_per_s),
                figure::rate(of.per_instance),
            );
            if let Some(price) = of.price_per_million {
                text += &format!("; {price:.4} a million messages");
            }
        }
        for run in self.runs.iter().filter(|run| is_invalid(run)) {
            text += &format!("\n  {} is invalid: see its report", run.folder);
        }
        text
    }

    fn has_invalid_run(&self) -> bool {
        self.runs.iter().any(|run| is_invalid(run))
    }

    fn end_words(&self) -> (&'static str, String) {
        match &self.end {
            Some(End::Limit { limit }) => {
                let why = match limit {
                    Limit::Units => "all units of load are there, the limit of the scenario",
                    Limit::Instances => "all instances are there, the limit of the scenario",
                };
                let result = match self.exit_code() {
                    outcome::PASS => "SCALE",
                    outcome::FAIL => "FAIL",
                    _ => "INVALID",
                };
                (result, why.to_owned())
            }
            Some(End::NotSet { instances, why }) => (
                "INVALID",
                format!("the target cannot be set to {instances} instances: {why}"),
            ),
            Some(End::Unclear { instances, why }) => {
                ("INVALID", format!("with {instances} instances {why}"))
            }
            None => ("INVALID", "interrupted; go on with --resume".to_owned()),
        }
    }
}

impl Capacity {
    fn of(line: &LogLine, scale: &ScalePlan) -> Self {
        let instances = line.level.instances;
        let received = line.summed.received_per_s;
        Self {
            instances,
            units: line.level.units,
            published: line.published,
            summed: line.summed,
            per_instance: received / f64::from(instances),
            price_per_million: scale
                .price
                .map(|price| price_per_million(price * f64::from(instances), received)),
        }
    }
}

fn is_invalid(run: &Ran) -> bool {
    run.result == RunResult::Invalid
}
