//! The answer of a growth: `scale.json`, and the words on the terminal.

use anyhow::Result;
use muster_model::figure;
use muster_report::scale_html;
use muster_scale::{End, Growth, Law, Measured, Outcome, Scalability};
use serde::Serialize;

use super::log::{Basis, Entry};
use crate::outcome;
use crate::scenario_file::Loaded;

/// The name and version of the form of `scale.json`.
const SCHEMA: &str = "muster-scale/1";
const SECONDS_PER_HOUR: f64 = 3_600.0;

/// The answer of a growth, as `scale.json` holds it.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a> {
    #[serde(flatten)]
    head: AnswerHead<'a>,
    /// The end in words.
    said: String,
    /// The end of the growth; null if it was interrupted.
    end: Option<End>,
    /// The last number of instances that helped; null if each did.
    helped_until: Option<u32>,
    /// The capacity of each number of instances.
    capacities: Vec<Capacity>,
    /// The gain of an instance, and the fit of the scalability law.
    law: Law,
    /// Every search, in order.
    searches: &'a [Entry],
}

/// The begin of each answer: its form, its origin, and its result.
#[derive(Debug, Serialize)]
pub(super) struct AnswerHead<'a> {
    schema: &'static str,
    /// The version of the program.
    muster: &'static str,
    name: &'a str,
    /// The scenario's checksum.
    scenario_sha256: &'a str,
    /// `SCALE` if the growth came to its end, `FAIL` if the target fails at each rate, otherwise `INVALID`.
    result: &'static str,
}

impl<'a> AnswerHead<'a> {
    pub(super) fn new(schema: &'static str, loaded: &'a Loaded, result: &'static str) -> Self {
        Self {
            schema,
            muster: env!("CARGO_PKG_VERSION"),
            name: &loaded.plan.name,
            scenario_sha256: &loaded.sha256,
            result,
        }
    }

    /// The result and the name.
    pub(super) fn title(&self) -> String {
        format!("{}  {}", self.result, self.name)
    }
}

/// The capacity of a number of instances.
#[derive(Debug, Serialize)]
struct Capacity {
    instances: u32,
    /// The rate that passed three times, per second.
    certified_per_s: f64,
    /// The interval with 95 % probability.
    interval: Measured,
    /// The middle of the interval for each instance.
    per_instance: f64,
    /// Price of a million messages at the certified rate; null without a price of an instance.
    price_per_million: Option<f64>,
}

impl<'a> Answer<'a> {
    pub(super) fn new(
        loaded: &'a Loaded,
        basis: &Basis,
        growth: &Growth,
        end: Option<End>,
        searches: &'a [Entry],
    ) -> Self {
        let capacity = |(instances, interval): &(u32, Measured)| {
            let count = f64::from(*instances);
            Capacity {
                instances: *instances,
                certified_per_s: interval.lower,
                interval: *interval,
                per_instance: interval.middle / count,
                price_per_million: basis
                    .price
                    .map(|price| price_per_million(price * count, interval.lower)),
            }
        };
        let most = growth.found().last().map_or(0, |(instances, _)| *instances);
        let (result, said) = end_words(end.as_ref(), most);
        Self {
            head: AnswerHead::new(SCHEMA, loaded, result),
            said,
            end,
            helped_until: growth.helped_until(),
            capacities: growth.found().iter().map(capacity).collect(),
            law: Law::of(growth.found()),
            searches,
        }
    }

    /// `scale.json` and `scale.html`.
    pub(super) fn forms(&self) -> Result<[(&'static str, String); 2]> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        let page = scale_html(self.title(), self.words(), text.clone());
        Ok([("scale.json", text), ("scale.html", page)])
    }

    pub(super) fn exit_code(&self) -> u8 {
        match &self.end {
            Some(End::AtMost | End::NoGain { .. }) => outcome::PASS,
            Some(End::FailsAtFirst { .. }) => outcome::FAIL,
            Some(End::AtLeast { .. } | End::NotSet { .. } | End::Unclear { .. }) | None => {
                outcome::INVALID
            }
        }
    }

    /// The result and the name.
    pub(super) fn title(&self) -> String {
        self.head.title()
    }

    pub(super) fn words(&self) -> String {
        let mut text = format!("{}  {}", self.title(), self.said);
        for of in &self.capacities {
            let Measured { lower, upper, .. } = of.interval;
            text += &format!(
                "\n  {:>3} instances  {:>9}/s certified, at most {}/s; {}/s an instance",
                of.instances,
                figure::rate(lower),
                figure::rate(upper),
                figure::rate(of.per_instance),
            );
            if let Some(price) = of.price_per_million {
                text += &format!("; {price:.4} a million messages");
            }
        }
        if let Some(since) = self.helped_until {
            text += &format!(
                "\n  instances beyond {since} each add less than a fifth of what the first ones carry"
            );
        }
        if let Some(gain) = self.law.gain {
            let [each, lower, upper] = [gain.per_instance, gain.lower, gain.upper].map(signed);
            text += &format!("\n  one instance more adds {each}/s, between {lower} and {upper}/s");
        }
        text + "\n  " + &scalability(&self.law.scalability)
    }
}

/// The result of a growth that measured up to `most` instances, and its end in words.
fn end_words(end: Option<&End>, most: u32) -> (&'static str, String) {
    match end {
        Some(End::AtMost) => (
            "SCALE",
            format!("measured up to {most} instances, the limit of the scenario"),
        ),
        Some(End::NoGain { .. }) => (
            "SCALE",
            format!("measured up to {most} instances; the last ones did not help"),
        ),
        Some(End::FailsAtFirst { rate }) => (
            "FAIL",
            format!(
                "the SLOs fail at {}/s, the lowest rate",
                figure::rate(*rate)
            ),
        ),
        Some(End::AtLeast {
            instances,
            rate,
            bound,
        }) => (
            "INVALID",
            format!(
                "{instances} instances carry at least {}/s, {}",
                figure::rate(*rate),
                bound.as_deref().unwrap_or("the highest rate tried")
            ),
        ),
        Some(End::NotSet { instances, why }) => (
            "INVALID",
            format!("the target cannot be set to {instances} instances: {why}"),
        ),
        Some(End::Unclear {
            instances,
            why,
            known,
        }) => (
            "INVALID",
            format!(
                "{instances} instances could not be judged: {why}{}",
                so_far(known.as_ref())
            ),
        ),
        None => ("INVALID", "interrupted; go on with --resume".to_owned()),
    }
}

/// Price of a million messages at a rate per second, by the price of an hour.
pub(super) fn price_per_million(price: f64, rate: f64) -> f64 {
    price / (rate * SECONDS_PER_HOUR) * 1e6
}

fn signed(rate: f64) -> String {
    let size = figure::rate(rate.abs());
    if rate < 0.0 { format!("-{size}") } else { size }
}

/// The interval that is known of a capacity, behind a semicolon.
fn so_far(known: Option<&Measured>) -> String {
    known.map_or_else(String::new, |known| {
        let [lower, upper] = [known.lower, known.upper].map(figure::rate);
        format!("; the capacity is between {lower} and {upper}/s so far")
    })
}

fn scalability(law: &Scalability) -> String {
    match law {
        Scalability::Fitted {
            rate,
            contention,
            coherence,
            peak,
            ..
        } => {
            let peak = peak.map_or(String::new(), |peak| {
                format!(", highest at {peak:.0} instances")
            });
            format!(
                "scalability law: {}/s for one instance, contention {:.2} %, coherence {:.3} %{peak}",
                figure::rate(*rate),
                contention * 100.0,
                coherence * 100.0
            )
        }
        Scalability::NotIdentifiable { why } => format!("scalability law: not identifiable: {why}"),
    }
}

/// A line on a search that ended just now.
pub(super) fn line(entry: &Entry) -> String {
    let rate = |rate: f64| format!("{}/s", figure::rate(rate));
    let what = match &entry.outcome {
        Outcome::Found(found) => format!("{} to {}", rate(found.lower), rate(found.upper)),
        Outcome::FailsAtFirst { rate: at } => format!("fails at {}", rate(*at)),
        Outcome::AtLeast { rate: at, .. } => format!("at least {}", rate(*at)),
        Outcome::Idle { address } => format!("not judged: {address} received no load"),
        Outcome::Unclear { why, known } => {
            format!("not judged: {why}{}", so_far(known.as_ref()))
        }
    };
    let loads: Vec<String> = entry
        .load
        .iter()
        .map(|of| format!("{} {}", of.address, figure::count(of.sent)))
        .collect();
    format!(
        "instances {:>3}  {what}  in {:.0} s  sent: {}",
        entry.instances,
        entry.took_s,
        loads.join(", ")
    )
}
