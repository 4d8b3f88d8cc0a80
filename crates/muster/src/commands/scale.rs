//! `muster scale`.

mod answer;
mod log;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use muster_actuator::{Actuator, Site, Wait, open};
use muster_judge::capacity::{SearchEnd, SearchSpec};
use muster_measure::TargetCounts;
use muster_model::Micros;
use muster_net::Clock;
use muster_plan::{Endpoint, ScalePlan};
use muster_report::{Dimension, Report};
use muster_result::search_length;
use muster_scale::{End, Growth, GrowthSpec, Measured, Next, Outcome, Wanted};

use self::answer::Answer;
use self::log::{Entry, Load, Log};
use crate::args::{RunArgs, ScaleArgs};
use crate::commands::run::{Done, once, stop_by_signal};
use crate::folder::{reserve, write_whole};
use crate::scenario_file::{self, Loaded};
use crate::searching::{Begun, Prepared};
use crate::{outcome, outputs};

/// Widest interval of a capacity, as a part of its lower end.
const WIDTH: f64 = 0.06;
/// First rate, and the highest one for each instance, as multiples of the scenario's.
const FROM: f64 = 0.25;
const TO: f64 = 100.0;
/// The first steps are this part of the last ones.
const SHORT: u64 = 4;
/// A search with less time than this number of the longest steps cannot confirm anything.
const LEAST_STEPS: u64 = 6;
/// An instance that accepted less than this part of its fair share is idle.
const IDLE_SHARE: f64 = 0.1;
/// The exit code if the target could not be put back as it was.
const NOT_RESTORED: u8 = 5;

/// Grows the target; the exit code says how the growth ended.
pub(crate) fn scale(args: &ScaleArgs) -> Result<u8> {
    let loaded = scenario_file::load(&args.scenario)?;
    let Some(plan) = loaded.plan.platform.scale.clone() else {
        bail!(
            "scale the target of {}: the scenario names no actuator; add `scale` with an `actuator`",
            args.scenario.scenario.display()
        );
    };
    let interrupted = stop_by_signal()?;
    let folder = folder(args, &loaded)?;
    let site = Site {
        devices: loaded.plan.platform.endpoints.first().cloned(),
        program: std::env::current_exe().context("find this program for its instances")?,
        folder: folder.clone(),
    };
    let mut actuator = open(&plan.actuator, site).context("take hold of the target")?;
    let growing = Growing {
        args,
        loaded: &loaded,
        plan: &plan,
        folder: &folder,
        interrupted: &interrupted,
        clock: Clock::start(),
    };
    let grown = growing.grow(&mut *actuator);
    // A Ctrl-C ends the growth, and never keeps the target as it is.
    let anyway = AtomicBool::new(false);
    let restored = actuator.restore(&Wait::new(plan.timeout, &anyway));
    let code = grown
        .map_err(|error| anyhow!("{error:#}; searches that ended are in {}", folder.display()));
    if let Err(error) = restored {
        if let Err(error) = &code {
            outcome::complain(error);
        }
        outcome::complain(&anyhow!(error).context("put the target back as it was"));
        return Ok(NOT_RESTORED);
    }
    code
}

/// The folder of the growth: a new one, or the one to go on in.
fn folder(args: &ScaleArgs, loaded: &Loaded) -> Result<PathBuf> {
    if let Some(folder) = &args.resume {
        if !Log::is_in(folder) {
            bail!(
                "go on in {}: it has no growth; name the folder of one, or leave out --resume",
                folder.display()
            );
        }
        return Ok(folder.clone());
    }
    let folder = match &args.out {
        Some(folder) if Log::is_in(folder) => bail!(
            "grow the target in {}: it holds a growth already; name another folder with --out, or go on with --resume",
            folder.display()
        ),
        Some(folder) => {
            fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
            folder.clone()
        }
        None => reserve(&outputs::default_folder(&loaded.plan))?,
    };
    Ok(folder)
}

/// A growth with all that does not change.
struct Growing<'a> {
    args: &'a ScaleArgs,
    loaded: &'a Loaded,
    plan: &'a ScalePlan,
    folder: &'a Path,
    interrupted: &'a AtomicBool,
    clock: Clock,
}

impl Growing<'_> {
    fn grow(&self, actuator: &mut dyn Actuator) -> Result<u8> {
        let mut growth = Growth::new(GrowthSpec {
            least: self.plan.least,
            most: self.plan.most,
            first: self.loaded.plan.stated_rate() * FROM,
        });
        let (mut log, entries) = Log::open(self.folder, &self.loaded.sha256)?;
        for entry in &entries {
            growth.record(&entry.outcome);
        }
        let spent: f64 = entries.iter().map(|entry| entry.took_s).sum();
        let budget = self.args.budget - Micros((spent * 1e6) as u64);
        let mut entries = entries;
        let end = loop {
            let wanted = match growth.next() {
                Next::End(end) => break Some(end),
                Next::Measure(_) if self.is_interrupted() => break None,
                Next::Measure(wanted) => wanted,
            };
            let left = budget - self.clock.now();
            if left < Micros(self.plan.hold.get() * LEAST_STEPS) {
                let why = "the budget is over; give more with --budget".to_owned();
                break Some(End::Unclear {
                    instances: wanted.instances,
                    why,
                });
            }
            let entry = self.measure(actuator, wanted, (entries.len(), left))?;
            let Some(entry) = entry else { break None };
            outcome::say(&answer::line(&entry));
            growth.record(&entry.outcome);
            log.append(&entry)?;
            entries.push(entry);
        };
        let answer = Answer::new(&self.loaded.plan, self.plan, (&growth, end), &entries);
        let text = serde_json::to_string_pretty(&answer)? + "\n";
        write_whole(&self.folder.join("scale.json"), &text)?;
        outcome::say(&answer.words());
        outcome::say(&format!(
            "answer: {}",
            self.folder.join("scale.json").display()
        ));
        Ok(answer.exit_code())
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Sets the number of instances and searches their capacity; none if the user ended it.
    fn measure(
        &self,
        actuator: &mut dyn Actuator,
        wanted: Wanted,
        (number, left): (usize, Micros),
    ) -> Result<Option<Entry>> {
        let begun = self.clock.now();
        let wait = Wait::new(self.plan.timeout, self.interrupted);
        let set = actuator.set(wanted.instances, &wait);
        if set.is_err() && self.is_interrupted() {
            return Ok(None);
        }
        set.with_context(|| format!("set the target to {} instances", wanted.instances))?;
        outcome::say(&format!("{} instances are ready", wanted.instances));
        let loaded = self.searching(actuator, wanted, left)?;
        let name = format!("{:02}-instances-{}", number + 1, wanted.instances);
        let run = RunArgs {
            shards: None,
            slots: 4_194_304,
            buffers: 16_384,
            ..RunArgs::quiet(self.args.scenario.clone(), self.folder.join(&name))
        };
        self.clear(&name)?;
        let done = once(&run, &loaded, self.interrupted)?;
        if self.is_interrupted() {
            return Ok(None);
        }
        let load = done
            .report
            .as_ref()
            .map_or_else(Vec::new, |report| loads(report, &loaded));
        let found = found(&done);
        // An instance that counted as ready may have ended since.
        let there = actuator
            .actual(&wait)
            .with_context(|| format!("measure {} instances", wanted.instances))?;
        let outcome = match idle(&load) {
            _ if there != wanted.instances => Outcome::Unclear {
                why: format!(
                    "{there} of {} instances were ready in the end",
                    wanted.instances
                ),
            },
            Some(idle) => Outcome::Idle {
                address: idle.address.clone(),
            },
            None => found,
        };
        Ok(Some(Entry {
            instances: wanted.instances,
            outcome,
            folder: name,
            began_s: begun.as_secs_f64(),
            took_s: (self.clock.now() - begun).as_secs_f64(),
            load,
        }))
    }

    /// The scenario with the addresses of the instances and a search that decides on the load.
    fn searching(&self, actuator: &dyn Actuator, wanted: Wanted, left: Micros) -> Result<Loaded> {
        let mut plan = self.loaded.plan.clone();
        if let Some(addresses) = actuator.addresses(wanted.instances) {
            plan.platform.endpoints = addresses;
        }
        let stated = plan.stated_rate();
        let further = u64::from(self.plan.most - wanted.instances) + 1;
        let hold = self.plan.hold;
        let least = Micros(hold.get() * LEAST_STEPS);
        let budget = Micros(left.get() / further).max(least);
        let spec = SearchSpec {
            first: wanted.first,
            most: (stated * TO * f64::from(wanted.instances)).max(wanted.first),
            width: WIDTH,
            short: Micros(hold.get() / SHORT),
            long: hold,
            budget,
        };
        let factor = spec.most / stated.max(f64::MIN_POSITIVE);
        let length = search_length(&plan, budget);
        let plan = plan.adding(length, factor);
        Ok(Loaded {
            plan: plan.map_err(|why| anyhow!("multiply the load of the scenario: {why}"))?,
            sha256: self.loaded.sha256.clone(),
            search: Some(Prepared {
                begun: Begun::new(self.loaded.sha256.clone(), Dimension::Rate, spec),
                earlier: Vec::new(),
            }),
        })
    }

    /// Removes what a search that was killed left.
    fn clear(&self, name: &str) -> Result<()> {
        let folder = self.folder.join(name);
        if self.args.resume.is_some() && folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("remove the unfinished {}", folder.display()))?;
        }
        Ok(())
    }
}

/// The outcome of a search, as its run ended.
fn found(done: &Done) -> Outcome {
    let Some(search) = &done.search else {
        let last = done.summary.lines().last();
        let why = last.unwrap_or("the run ended early").trim().to_owned();
        return Outcome::Unclear { why };
    };
    match search.end() {
        Some(end) => outcome_of(end),
        None => Outcome::Unclear {
            why: "the run ended before its search".to_owned(),
        },
    }
}

/// The load that each address received, also those that received none.
fn loads(report: &Report, loaded: &Loaded) -> Vec<Load> {
    let counted = &report.links.targets;
    let endpoints = loaded.plan.platform.endpoints.iter();
    let names: BTreeSet<String> = endpoints.map(Endpoint::authority).collect();
    if counted.is_empty() && names.len() == 1 {
        let all = names.into_iter().map(|address| Load {
            address,
            connected: report.links.connected,
            accepted: report.ledger.uplink.accepted,
        });
        return all.collect();
    }
    let without: BTreeSet<String> = match names.len() > counted.len() {
        true => names
            .into_iter()
            .filter(|name| !counted.contains_key(name))
            .collect(),
        false => BTreeSet::new(),
    };
    let of = |(address, counts): (&String, &TargetCounts)| Load {
        address: address.clone(),
        connected: counts.connected,
        accepted: counts.accepted,
    };
    let none = |address| Load {
        address,
        connected: 0,
        accepted: 0,
    };
    counted
        .iter()
        .map(of)
        .chain(without.into_iter().map(none))
        .collect()
}

/// The first address that received next to nothing of its fair share.
fn idle(load: &[Load]) -> Option<&Load> {
    let all: u64 = load.iter().map(|of| of.accepted).sum();
    let least = all as f64 / load.len().max(1) as f64 * IDLE_SHARE;
    load.iter()
        .find(|of| of.accepted == 0 || (of.accepted as f64) < least)
}

fn outcome_of(end: &SearchEnd) -> Outcome {
    match end {
        SearchEnd::Found(found) => Outcome::Found(Measured {
            lower: found.interval.lower,
            middle: found.interval.middle,
            upper: found.interval.upper,
        }),
        SearchEnd::FailsAtFirst { rate } => Outcome::FailsAtFirst { rate: *rate },
        SearchEnd::AtLeast { rate } => Outcome::AtLeast { rate: *rate },
        SearchEnd::NothingClear { rate, .. } => Outcome::Unclear {
            why: format!(
                "no step at {rate:.0}/s could be judged; see the steps in its result, and raise the rate or `scale.hold`"
            ),
        },
        SearchEnd::NotRecovered { rate, .. } => Outcome::Unclear {
            why: format!("the target did not come to rest after {rate:.0}/s"),
        },
        SearchEnd::OutOfBudget { .. } => Outcome::Unclear {
            why: "the budget of the search is over; give more with --budget".to_owned(),
        },
    }
}
