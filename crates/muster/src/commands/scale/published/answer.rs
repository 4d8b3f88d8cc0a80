//! The answer of a growth by the published policy: `scale.json`, and the words on the terminal.

use anyhow::Result;
use muster_model::figure;
use muster_plan::PublishedPolicy;
use muster_report::RunResult;
use muster_scale::{Figures, Limit};
use serde::{Deserialize, Serialize};

use super::journal::Ran;
use super::past::{Line, Past};
use crate::commands::scale::addresses::idle;
use crate::commands::scale::answer::{AnswerHead, price_per_million};
use crate::commands::scale::log::instances_in_words;
use crate::outcome;
use crate::scenario_file::Loaded;

/// The name and version of the form of `scale.json` with this policy.
const SCHEMA: &str = "muster-scale-published/1";

/// The end of the growth.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub(in crate::commands::scale) enum End {
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

/// Terms of a growth.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// Parameters of the published test.
    pub(super) policy: PublishedPolicy,
    /// Price of an instance for an hour.
    pub(super) price: Option<f64>,
}

/// The answer, as `scale.json` holds it.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a> {
    #[serde(flatten)]
    head: AnswerHead<'a>,
    #[serde(skip)]
    exit_code: u8,
    /// Parameters of the published test.
    policy: PublishedPolicy,
    /// The end of the growth; null if it was interrupted.
    end: Option<End>,
    /// The last acceptable level of each number of instances.
    capacities: Vec<Capacity<'a>>,
    /// Every line of the log that counts.
    lines: &'a [Line<'a>],
    /// Every run, in order.
    runs: &'a [&'a Ran],
}

/// The last acceptable level of a number of instances.
#[derive(Debug, Serialize)]
struct Capacity<'a> {
    instances: u32,
    /// Units of load.
    units: u32,
    /// The folder of the run behind it; null if that run has no result.
    folder: Option<&'a str>,
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
        loaded: &'a Loaded,
        terms: Terms,
        end: Option<End>,
        past: &'a Past<'a>,
    ) -> Self {
        let mut capacities: Vec<Capacity<'_>> = Vec::new();
        for of in past.lines().iter().filter(|of| of.line.is_stable) {
            let capacity = Capacity::of(of, terms.price);
            capacities.retain(|it| it.instances != capacity.instances);
            capacities.push(capacity);
        }
        let exit_code = match &end {
            Some(End::Limit { .. }) if past.runs().iter().any(|run| is_invalid(run)) => {
                outcome::INVALID
            }
            Some(End::Limit { .. }) if capacities.iter().any(|of| of.folder.is_none()) => {
                outcome::INVALID
            }
            Some(End::Limit { .. }) if capacities.is_empty() => outcome::FAIL,
            Some(End::Limit { .. }) => outcome::PASS,
            Some(End::NotSet { .. } | End::Unclear { .. }) | None => outcome::INVALID,
        };
        let result = match exit_code {
            outcome::PASS => "SCALE",
            outcome::FAIL => "FAIL",
            _ => "INVALID",
        };
        Self {
            head: AnswerHead::new(SCHEMA, loaded, result),
            exit_code,
            policy: terms.policy,
            end,
            capacities,
            lines: past.lines(),
            runs: past.runs(),
        }
    }

    /// `scale.json`.
    pub(super) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub(super) fn exit_code(&self) -> u8 {
        self.exit_code
    }

    pub(super) fn words(&self) -> String {
        let mut text = format!("{}  {}", self.head.title(), self.end_words());
        for of in &self.capacities {
            text += &format!(
                "\n  {:>13}  {:>3} units of load, {}/s received; {}/s an instance",
                instances_in_words(of.instances),
                of.units,
                figure::rate(of.summed.received_per_s),
                figure::rate(of.per_instance),
            );
            if let Some(price) = of.price_per_million {
                text += &format!("; {price:.4} a million messages");
            }
            if of.folder.is_none() {
                text += "; invalid: its run has no result";
            }
        }
        for run in self.runs {
            if let Some(fault) = &run.fault {
                text += &format!("\n  {} does not count: {fault}", run.folder);
            } else if is_invalid(run) {
                text += &format!("\n  {} is invalid: see its report", run.folder);
            }
            if let Some(idle) = idle(&run.load) {
                text += &format!("\n  {}: {idle} received no load", run.folder);
            }
        }
        text
    }

    fn end_words(&self) -> String {
        match &self.end {
            Some(End::Limit {
                limit: Limit::Units,
            }) => "all units of load are there, the limit of the scenario".to_owned(),
            Some(End::Limit {
                limit: Limit::Instances,
            }) => "all instances are there, the limit of the scenario".to_owned(),
            Some(End::NotSet { instances, why }) => {
                format!(
                    "the target cannot be set to {}: {why}",
                    instances_in_words(*instances)
                )
            }
            Some(End::Unclear { instances, why }) => {
                format!(
                    "{} could not be judged: {why}",
                    instances_in_words(*instances)
                )
            }
            None => "interrupted; go on with --resume".to_owned(),
        }
    }
}

impl<'a> Capacity<'a> {
    fn of(of: &Line<'a>, price: Option<f64>) -> Self {
        let line = &of.line;
        let instances = line.level.instances;
        let received = line.summed.received_per_s;
        Self {
            instances,
            units: line.level.units,
            folder: of.folder,
            published: line.published,
            summed: line.summed,
            per_instance: received / f64::from(instances),
            price_per_million: price
                .map(|price| price_per_million(price * f64::from(instances), received)),
        }
    }
}

/// True for a run that counts and is invalid.
fn is_invalid(run: &Ran) -> bool {
    run.fault.is_none() && run.result == RunResult::Invalid
}
