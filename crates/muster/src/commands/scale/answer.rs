//! The answer of a growth: `scale.json`, and the words on the terminal.

use std::collections::BTreeMap;

use anyhow::Result;
use muster_model::figure;
use muster_report::scale_html;
use muster_scale::{ComponentGrowth, End, Law, Measured, Outcome, Scalability, Setting, Sweep};
use serde::Serialize;

use super::log::{Basis, Entry};
use super::policy::Policy;
use super::table;
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
    #[serde(skip)]
    basis: &'a Basis,
    #[serde(skip)]
    exit_code: u8,
    /// The end in words.
    said: String,
    /// The names of the components; the only one may have none.
    components: Vec<&'a str>,
    /// The environments of a sweep.
    environments: Vec<BTreeMap<&'a str, &'a str>>,
    #[serde(flatten)]
    found: Found,
    /// The capacity of each setting that has one, in order.
    capacities: Vec<Capacity>,
    /// Every search, in order.
    searches: &'a [Entry],
}

/// Findings that each policy has for itself.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Found {
    /// Growth of one component.
    One {
        /// The end of the growth; null if it was interrupted.
        end: Option<End>,
        /// The last number of instances that helped; null if each did.
        helped_until: Option<u32>,
        /// The gain of an instance, and the fit of the scalability law.
        law: Law,
    },
    /// Growth of several components.
    Several {
        /// The end of the growth; null if it was interrupted.
        end: Option<End<Vec<u32>>>,
        /// The instances that were kept last; null before the first capacity.
        kept: Option<Vec<u32>>,
    },
    /// A sweep.
    Sweep {
        /// The end of the sweep; null if it was interrupted.
        end: Option<End<Setting>>,
        /// The cells without a capacity, each with its last outcome; null for one that was not searched.
        unmeasured: Vec<Unmeasured>,
    },
}

/// A cell of a sweep without a capacity.
#[derive(Debug, Serialize)]
struct Unmeasured {
    #[serde(flatten)]
    setting: Setting,
    outcome: Option<Outcome>,
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

/// The capacity of a setting.
#[derive(Debug, Serialize)]
pub(super) struct Capacity {
    /// The number of instances, of all components.
    instances: u32,
    #[serde(flatten)]
    pub(super) setting: Setting,
    /// The rate that passed three times, per second.
    pub(super) certified_per_s: f64,
    /// The interval with 95 % probability.
    pub(super) interval: Measured,
    /// The middle of the interval for each instance; null for several components.
    pub(super) per_instance: Option<f64>,
    /// Price of a million messages at the certified rate; null without a price of an instance.
    pub(super) price_per_million: Option<f64>,
    /// Addition to the instances kept before; null for the first ones, for one component, and in a sweep.
    pub(super) addition: Option<Added>,
}

/// Instances that were added to those kept before.
#[derive(Debug, Serialize)]
pub(super) struct Added {
    /// The components that got one more.
    pub(super) components: Vec<String>,
    /// The gain in messages a second, between the middles of both intervals.
    pub(super) gain_per_s: f64,
    /// True if they were kept; false if they were put back.
    pub(super) has_helped: bool,
}

impl Capacity {
    fn new(basis: &Basis, setting: Setting, interval: Measured) -> Self {
        let instances: u32 = setting.sizes.iter().sum();
        let is_alone = setting.sizes.len() == 1;
        let price = basis.price_per_hour(&setting.sizes);
        Self {
            instances,
            certified_per_s: interval.lower,
            interval,
            per_instance: is_alone.then(|| interval.middle / f64::from(instances)),
            price_per_million: price.map(|price| price_per_million(price, interval.lower)),
            addition: None,
            setting,
        }
    }

    /// The first instances of several components, and each addition to them.
    fn of_components(basis: &Basis, growth: &ComponentGrowth) -> Vec<Self> {
        let name = |place: &usize| basis.components[*place].name.clone();
        let first = growth.kept().iter().take(1);
        let first = first.map(|(setting, measured)| Self::new(basis, setting.clone(), *measured));
        let further = growth.additions().iter().map(|of| Self {
            addition: Some(Added {
                components: of.components.iter().map(name).collect(),
                gain_per_s: of.gain,
                has_helped: of.has_helped,
            }),
            ..Self::new(basis, of.setting.clone(), of.measured)
        });
        first.chain(further).collect()
    }

    fn of_cells(basis: &Basis, sweep: &Sweep) -> Vec<Self> {
        let cells = sweep.cells().filter_map(|(setting, outcome)| {
            let Some(Outcome::Found(measured)) = outcome else {
                return None;
            };
            Some(Self::new(basis, setting.clone(), *measured))
        });
        cells.collect()
    }

    /// True unless the instances were put back.
    fn is_kept(&self) -> bool {
        self.addition.as_ref().is_none_or(|added| added.has_helped)
    }

    /// The capacity in a line.
    fn line(&self, basis: &Basis) -> String {
        let Measured { lower, upper, .. } = self.interval;
        let mut text = format!(
            "{}  {:>9}/s certified, at most {}/s",
            basis.in_words(&self.setting),
            figure::rate(lower),
            figure::rate(upper),
        );
        if let Some(each) = self.per_instance {
            text += &format!("; {}/s an instance", figure::rate(each));
        }
        if let Some(price) = self.price_per_million {
            text += &format!("; {price:.4} a million messages");
        }
        if let Some(added) = &self.addition {
            text += &format!(
                "; one more {} adds {}/s: {}",
                match &added.components[..] {
                    [only] => only.clone(),
                    all => format!("of each of {}", all.join(" and ")),
                },
                signed(added.gain_per_s),
                if added.has_helped { "kept" } else { "put back" }
            );
        }
        text
    }
}

impl<'a> Answer<'a> {
    pub(super) fn new(
        loaded: &'a Loaded,
        basis: &'a Basis,
        policy: &Policy,
        end: Option<End<Setting>>,
        searches: &'a [Entry],
    ) -> Self {
        let (found, capacities) = match policy {
            Policy::One(growth) => {
                let all = growth.found().iter();
                let all =
                    all.map(|(size, of)| Capacity::new(basis, Setting::new(vec![*size]), *of));
                let found = Found::One {
                    end: end.clone().map(|end| end.map(|of| of.sizes.iter().sum())),
                    helped_until: growth.helped_until(),
                    law: Law::of(growth.found()),
                };
                (found, all.collect())
            }
            Policy::Several(growth) => {
                let kept = growth.kept().last();
                let found = Found::Several {
                    end: end.clone().map(|end| end.map(|of| of.sizes)),
                    kept: kept.map(|(setting, _)| setting.sizes.clone()),
                };
                (found, Capacity::of_components(basis, growth))
            }
            Policy::Sweep(sweep) => {
                let cells = sweep.cells();
                let cells =
                    cells.filter(|(_, outcome)| !matches!(outcome, Some(Outcome::Found(_))));
                let found = Found::Sweep {
                    end: end.clone(),
                    unmeasured: cells
                        .map(|(setting, outcome)| Unmeasured {
                            setting: setting.clone(),
                            outcome: outcome.cloned(),
                        })
                        .collect(),
                };
                (found, Capacity::of_cells(basis, sweep))
            }
        };
        let (exit_code, said) = concluded(basis, end, &capacities, &found);
        let result = match exit_code {
            outcome::PASS => "SCALE",
            outcome::FAIL => "FAIL",
            _ => "INVALID",
        };
        let environments = basis.sweep.iter().flat_map(|sweep| &sweep.environments);
        let environments = environments.map(|all| {
            let all = all.iter();
            all.map(|of| (&of.name[..], &of.value[..])).collect()
        });
        Self {
            head: AnswerHead::new(SCHEMA, loaded, result),
            basis,
            exit_code,
            said,
            components: basis.components.iter().map(|of| &of.name[..]).collect(),
            environments: environments.collect(),
            found,
            capacities,
            searches,
        }
    }

    /// `scale.json`.
    pub(super) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// `scale.json`, `scale.html` and `scale.csv`.
    pub(super) fn forms(&self) -> Result<[(&'static str, String); 3]> {
        let text = self.json()?;
        let page = scale_html(self.title(), self.words(), text.clone());
        Ok([
            ("scale.json", text),
            ("scale.html", page),
            ("scale.csv", table::csv(self.basis, &self.capacities)),
        ])
    }

    pub(super) const fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// The result and the name.
    pub(super) fn title(&self) -> String {
        self.head.title()
    }

    pub(super) fn words(&self) -> String {
        let mut lines = vec![format!("{}  {}", self.title(), self.said)];
        lines.extend(self.capacities.iter().map(|of| of.line(self.basis)));
        match &self.found {
            Found::One {
                helped_until, law, ..
            } => lines.extend(of_law(*helped_until, law)),
            Found::Several { .. } => {}
            Found::Sweep { unmeasured, .. } => lines.extend(unmeasured.iter().map(|cell| {
                let what = cell.outcome.as_ref();
                let what = what.map_or("not searched".to_owned(), outcome_in_words);
                format!("{}  {what}", self.basis.in_words(&cell.setting))
            })),
        }
        lines.join("\n  ")
    }
}

/// The finding on instances that did not help, the gain of one, and the fit of the law.
fn of_law(helped_until: Option<u32>, law: &Law) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(since) = helped_until {
        lines.push(format!(
            "instances beyond {since} each add less than a fifth of what the first ones carry"
        ));
    }
    if let Some(gain) = law.gain {
        let [each, lower, upper] = [gain.per_instance, gain.lower, gain.upper].map(signed);
        lines.push(format!(
            "one instance more adds {each}/s, between {lower} and {upper}/s"
        ));
    }
    lines.push(scalability(&law.scalability));
    lines
}

/// The exit code of a growth, and its end in words.
fn concluded(
    basis: &Basis,
    end: Option<End<Setting>>,
    capacities: &[Capacity],
    found: &Found,
) -> (u8, String) {
    let end = end.map(|end| end.map(|of| basis.in_words(&of)));
    match (end, found) {
        (Some(End::AtMost), Found::Sweep { unmeasured, .. }) => of_sweep(capacities, unmeasured),
        (end, _) => {
            let last = capacities.iter().rev().find(|of| of.is_kept());
            let most = last.map_or("no instance".to_owned(), |of| basis.in_words(&of.setting));
            let code = match &end {
                Some(End::AtMost | End::NoGain { .. }) => outcome::PASS,
                Some(End::FailsAtFirst { .. }) => outcome::FAIL,
                Some(End::AtLeast { .. } | End::NotSet { .. } | End::Unclear { .. }) | None => {
                    outcome::INVALID
                }
            };
            let without_help = match found {
                Found::One { .. } => "the last ones",
                Found::Several { .. } | Found::Sweep { .. } => "further ones",
            };
            (code, end_words(end.as_ref(), &most, without_help))
        }
    }
}

/// The exit code of a sweep of all its cells, and its end in words.
fn of_sweep(capacities: &[Capacity], unmeasured: &[Unmeasured]) -> (u8, String) {
    let fails = |cell: &&Unmeasured| matches!(cell.outcome, Some(Outcome::FailsAtFirst { .. }));
    let failing = unmeasured.iter().filter(fails).count();
    let code = match (capacities.len(), unmeasured.len()) {
        (1.., 0) => outcome::PASS,
        (0, all) if all == failing => outcome::FAIL,
        (1.., all) if all == failing => outcome::PASS,
        _ => outcome::INVALID,
    };
    let all = (capacities.len() + unmeasured.len()) as u64;
    let words = format!(
        "{} of {} have a capacity",
        capacities.len(),
        figure::number_of(all, "cell")
    );
    (code, words)
}

/// The end of a growth whose last instances were `most`, in words. `without_help` are those that did not help.
fn end_words(end: Option<&End<String>>, most: &str, without_help: &str) -> String {
    match end {
        Some(End::AtMost) => format!("measured up to {most}, the limit of the scenario"),
        Some(End::NoGain { .. }) => format!("measured up to {most}; {without_help} did not help"),
        Some(End::FailsAtFirst { rate }) => format!(
            "the SLOs fail at {}/s, the lowest rate",
            figure::rate(*rate)
        ),
        Some(End::AtLeast {
            instances,
            rate,
            bound,
        }) => format!(
            "at least {}/s with {instances}, {}",
            figure::rate(*rate),
            bound.as_deref().unwrap_or("the highest rate tried")
        ),
        Some(End::NotSet { instances, why }) => {
            format!("the target cannot be set to {instances}: {why}")
        }
        Some(End::Unclear {
            instances,
            why,
            known,
        }) => format!(
            "{instances} could not be judged: {why}{}",
            so_far(known.as_ref())
        ),
        None => "interrupted; go on with --resume".to_owned(),
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

/// An outcome in words.
fn outcome_in_words(outcome: &Outcome) -> String {
    let rate = |rate: f64| format!("{}/s", figure::rate(rate));
    match outcome {
        Outcome::Found(found) => format!("{} to {}", rate(found.lower), rate(found.upper)),
        Outcome::FailsAtFirst { rate: at } => format!("fails at {}", rate(*at)),
        Outcome::AtLeast { rate: at, .. } => format!("at least {}", rate(*at)),
        Outcome::Idle { address } => format!("not judged: {address} received no load"),
        Outcome::Unclear { why, known } => {
            format!("not judged: {why}{}", so_far(known.as_ref()))
        }
    }
}

/// A line on a search that ended just now.
pub(super) fn line(basis: &Basis, entry: &Entry) -> String {
    let loads: Vec<String> = entry
        .load
        .iter()
        .map(|of| format!("{} {}", of.address, figure::count(of.sent)))
        .collect();
    format!(
        "{}  {}  in {:.0} s  sent: {}",
        basis.in_words(&entry.setting),
        outcome_in_words(&entry.outcome),
        entry.took_s,
        loads.join(", ")
    )
}
