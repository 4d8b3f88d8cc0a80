//! The published policy: load and target grow in turn, in one run for each number of instances.

mod answer;
mod journal;
mod past;

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, anyhow, bail};
use muster_actuator::Wait;
use muster_conduct::{Standing, Steer};
use muster_measure::WindowDelta;
use muster_model::{Dimension, Micros, figure};
use muster_net::Clock;
use muster_plan::{Ack, AddedLoad, FleetPlan, Plan, PublishedPolicy, UnitOfLoad};
use muster_result::PublishedGrowth;
use muster_scale::{Level, Published, PublishedSpec, Seconds, Setting};

use self::answer::{Answer, End, Terms};
pub(super) use self::journal::Entry;
use self::journal::{Journal, Ran};
use self::past::Past;
use super::addresses::loads;
use super::log::{Basis, Component, Log};
use super::target::Target;
use super::{Growing, wrong_number};
use crate::args::ScaleArgs;
use crate::commands::run::once;
use crate::folder::write_whole;
use crate::outcome;
use crate::scenario_file::Loaded;
use crate::steering::{Decider, Steered};

/// Time that a run needs besides its levels.
const SLACK: Micros = Micros::from_secs(60);
const OUT_OF_BUDGET: &str = "the budget is over; give more with --budget, and go on with --resume";

/// The published policy before a run, whose target has the instances of its level.
pub(crate) struct PreparedGrowth {
    policy: Published,
    seconds: Seconds,
    journal: Journal,
}

/// The published policy while a run goes on.
pub(crate) struct GrowthInRun {
    growth: PublishedGrowth,
    journal: Journal,
}

impl GrowthInRun {
    /// Goes on in a run.
    pub(crate) fn begin(prepared: &PreparedGrowth, plan: &Plan, clock: Clock) -> Result<Self> {
        let wall = Micros::from_millis(clock.wall_ms_at_t0());
        let (policy, seconds) = (prepared.policy.clone(), prepared.seconds.clone());
        Ok(Self {
            growth: PublishedGrowth::new(policy, seconds, plan, wall),
            journal: prepared.journal.again()?,
        })
    }

    /// Takes in what came.
    pub(crate) fn windows(&mut self, delta: &WindowDelta) {
        self.growth.windows(delta);
    }

    /// Decides on the load. Each event is kept before its order is carried out.
    pub(crate) fn steer(&mut self, standing: &Standing) -> Option<Steer> {
        let (events, steer) = self.growth.turn(standing);
        let kept = events
            .iter()
            .try_for_each(|event| self.journal.event(event));
        match kept {
            Ok(()) => steer,
            Err(error) => {
                outcome::complain(&error);
                Some(Steer::End)
            }
        }
    }

    pub(crate) fn into_growth(self) -> PublishedGrowth {
        self.growth
    }
}

/// Refuses messages whose failures nobody sees, a budget in which no level can be read, and options without effect.
pub(super) fn refuse(plan: &Plan, policy: &PublishedPolicy, args: &ScaleArgs) -> Result<()> {
    if let Some(option) = args.calibration.given() {
        bail!(
            "grow load and target with {option}: the published policy measures no ceiling of the generator; leave it out, \
             or use `policy: muster`"
        );
    }
    let needed = least_time(policy.window, policy.offset);
    if let Some(budget) = args.budget.filter(|budget| *budget < needed) {
        bail!(
            "grow load and target within --budget {}: the first level takes {}; give more, or shorten \
             `scale.published.window`",
            figure::clock(budget),
            figure::clock(needed)
        );
    }
    let is_small = |fleet: &&FleetPlan| fleet.devices < policy.units;
    let small = plan.fleets.iter().find(is_small);
    if let Some(fleet) = small.filter(|_| policy.adds == UnitOfLoad::Devices) {
        bail!(
            "grow load by devices: fleet `{}` has {} of them, fewer than `scale.published.units`, which is {}; give it the \
             devices of all units",
            fleet.name,
            fleet.devices,
            policy.units
        );
    }
    let unanswered = plan.uplinks().find(|(_, stream)| stream.ack == Ack::None);
    match unanswered {
        Some((fleet, stream)) => bail!(
            "grow load and target by failures: stream `{}/{}` awaits no answer, so that none is seen; use `qos: 1`, or \
             `policy: muster`",
            fleet.name,
            stream.name
        ),
        None => Ok(()),
    }
}

/// Runs the policy to its end.
pub(super) fn grow(
    growing: &Growing<'_>,
    parameters: &PublishedPolicy,
    target: &mut Target,
    log: Log,
    entries: &[Entry],
) -> Result<u8> {
    let only = growing.basis.only()?;
    let spec = spec(parameters, only);
    let past = Past::new(entries);
    let policy = past.policy(spec);
    let mut runs = Runs {
        number: past.next_number(),
        spent: past.spent(),
        journal: Journal::open(log, growing.folder, entries)?,
        growing,
        spec,
        adds: parameters.adds,
    };
    // A kill may have come between the end and its answer.
    let end = match policy.end() {
        Some(limit) => Some(End::Limit { limit }),
        None => {
            let seconds = Seconds::new(spec.window, spec.offset);
            runs.all(target, policy, seconds)?
        }
    };
    let entries = runs.journal.entries()?;
    let past = Past::new(&entries);
    let terms = Terms {
        policy: *parameters,
        price: only.price,
    };
    let answer = Answer::new(growing.loaded, terms, end, &past);
    write_whole(&growing.folder.join("scale.json"), &answer.json()?)?;
    outcome::say(&answer.words());
    outcome::say(&format!(
        "answer: {}",
        growing.folder.join("scale.json").display()
    ));
    Ok(answer.exit_code())
}

/// The answer that a journal gives. If its policy did not come to its end, the end is the stated one.
pub(super) fn answer_again(
    loaded: &Loaded,
    basis: &Basis,
    entries: &[Entry],
    stated: Option<End>,
) -> Result<String> {
    let policy = basis.published.context("find its policy")?;
    let past = Past::new(entries);
    let end = past.policy(spec(&policy, basis.only()?)).end();
    let end = match (end, stated) {
        (Some(limit), _) => Some(End::Limit { limit }),
        (None, Some(End::Limit { .. })) => bail!("its policy did not come to an end"),
        (None, stated) => stated,
    };
    let price = basis.only()?.price;
    Answer::new(loaded, Terms { policy, price }, end, &past).json()
}

/// Runs that ended, by the journal.
pub(super) fn runs(entries: &[Entry]) -> impl Iterator<Item = &Ran> {
    entries.iter().filter_map(|entry| match entry {
        Entry::Run(ran) => Some(ran),
        Entry::Begin { .. } | Entry::Level(_) | Entry::Line(_) | Entry::End { .. } => None,
    })
}

/// The parameters of the policy; it begins with one unit of load.
fn spec(parameters: &PublishedPolicy, only: &Component) -> PublishedSpec {
    PublishedSpec {
        failure_ratio: parameters.failure_ratio,
        window: parameters.window,
        offset: parameters.offset,
        stable_within: parameters.stable_within,
        improve: parameters.improve,
        least: Level {
            units: 1,
            instances: only.least,
        },
        most: Level {
            units: parameters.units,
            instances: only.most,
        },
    }
}

/// The time until the first level was read.
fn least_time(window: Micros, offset: Micros) -> Micros {
    window + window + offset
}

/// The policy in one run after the other.
struct Runs<'a> {
    growing: &'a Growing<'a>,
    spec: PublishedSpec,
    /// The load that a unit adds.
    adds: UnitOfLoad,
    journal: Journal,
    /// Number of the next run.
    number: usize,
    /// The time of the runs that ended.
    spent: Micros,
}

impl Runs<'_> {
    /// Runs the policy from where it stands; none if the user ended it.
    fn all(
        &mut self,
        target: &mut Target,
        mut policy: Published,
        mut seconds: Seconds,
    ) -> Result<Option<End>> {
        let growing = self.growing;
        loop {
            let instances = policy.level().instances;
            let unclear = |why: &str| {
                let why = why.to_owned();
                Ok(Some(End::Unclear { instances, why }))
            };
            let begun = growing.clock.now();
            let wait = Wait::new(growing.plan.timeout, growing.interrupted);
            match target.set(&[instances], &wait) {
                Ok(()) => {}
                Err(_) if growing.is_interrupted() => return Ok(None),
                Err(error) => {
                    let why = error.to_string();
                    return Ok(Some(End::NotSet { instances, why }));
                }
            }
            let setting = Setting::new(vec![instances]);
            outcome::say(&growing.basis.ready_in_words(&setting));
            let Some(lasts) = self.lasts(&policy, begun) else {
                return unclear(OUT_OF_BUDGET);
            };
            let loaded = self.loaded(target, policy, seconds, lasts)?;
            let folder = self.begin(instances)?;
            let done = once(&growing.run_args(&folder), &loaded, growing.interrupted)?;
            let (Some(Steered::Published(growth)), Some(report)) = (done.steered, &done.report)
            else {
                if growing.is_interrupted() {
                    return Ok(None);
                }
                let last = done.summary.lines().last();
                return unclear(last.unwrap_or("the run ended early").trim());
            };
            let is_over = growth.is_over();
            // What ended before a Ctrl-C counts.
            if !is_over && growing.is_interrupted() {
                return Ok(None);
            }
            let fault = self.fault(target, instances);
            let took = growing.clock.now() - begun;
            self.spent += took;
            self.journal.keep(&Entry::Run(Ran {
                instances,
                folder,
                result: report.verdict.result,
                took_s: took.as_secs_f64(),
                fault: fault.clone(),
                load: loads(report, &loaded.plan),
            }))?;
            if let Some(why) = fault {
                return unclear(&why);
            }
            (policy, seconds) = growth.into_parts();
            if let Some(limit) = policy.end() {
                return Ok(Some(End::Limit { limit }));
            }
            if growing.is_interrupted() {
                return Ok(None);
            }
            if !is_over {
                return unclear(self.why_short());
            }
        }
    }

    /// Begins a run in a folder that no other has.
    fn begin(&mut self, instances: u32) -> Result<String> {
        let folder = format!("{:02}-instances-{instances}", self.number);
        self.number += 1;
        self.journal.keep(&Entry::Begin {
            folder: folder.clone(),
        })?;
        Ok(folder)
    }

    /// The fault of the target after a run, also after a Ctrl-C.
    fn fault(&self, target: &mut Target, instances: u32) -> Option<String> {
        let anyway = AtomicBool::new(false);
        let there = target.actual(&Wait::new(self.growing.plan.timeout, &anyway));
        wrong_number(there, &[instances], &self.growing.basis)
    }

    /// The reason of a run that ended before the policy.
    fn why_short(&self) -> &'static str {
        match self.growing.args.budget {
            Some(_) => OUT_OF_BUDGET,
            None => "its run ended before the policy; see its result",
        }
    }

    /// The longest rest of the test, by the budget if there is one; none if that is over. The time since `begun`
    /// is not in that of the runs yet.
    fn lasts(&self, policy: &Published, begun: Micros) -> Option<Micros> {
        let longest = self.spec.longest(policy.level()) + SLACK;
        let Some(budget) = self.growing.args.budget else {
            return Some(longest);
        };
        let left = budget - self.spent - (self.growing.clock.now() - begun);
        let needed = least_time(self.spec.window, self.spec.offset);
        (left >= needed).then(|| longest.min(left))
    }

    /// The scenario with the addresses of the instances, whose load the policy decides on.
    fn loaded(
        &self,
        target: &Target,
        policy: Published,
        seconds: Seconds,
        lasts: Micros,
    ) -> Result<Loaded> {
        let of = &self.growing.loaded;
        let mut plan = of.plan.clone();
        if let Some(addresses) = target.addresses(&[policy.level().instances]) {
            plan.platform.endpoints = addresses;
        }
        let (dimension, unit) = match self.adds {
            UnitOfLoad::Rate => (Dimension::Rate, 1.0),
            UnitOfLoad::Devices => {
                let all = f64::from(self.spec.most.units);
                (Dimension::Devices, 1.0 / all)
            }
        };
        let load = AddedLoad {
            dimension,
            first: f64::from(policy.level().units) * unit,
            most: f64::from(self.spec.most.units) * unit,
        };
        let plan = plan.adding(lasts, load);
        let plan = plan.map_err(|why| anyhow!("multiply the load of the scenario: {why}"))?;
        let journal = self.journal.again()?;
        let prepared = PreparedGrowth {
            policy,
            seconds,
            journal,
        };
        Ok(Loaded {
            plan,
            sha256: of.sha256.clone(),
            decider: Decider::Published(Box::new(prepared)),
        })
    }
}
