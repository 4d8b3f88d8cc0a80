//! The published policy: load and target grow in turn, in one run for each number of instances.

mod answer;
mod journal;

use anyhow::{Result, anyhow, bail};
use muster_actuator::{Actuator, Wait};
use muster_conduct::{Standing, Steer};
use muster_measure::WindowDelta;
use muster_model::{Dimension, Micros};
use muster_net::Clock;
use muster_plan::{Ack, AddedLoad, Plan, PublishedPolicy, ScalePlan};
use muster_result::PublishedGrowth;
use muster_scale::{Level, Published, PublishedSpec, Seconds};

use self::answer::{Answer, End};
pub(super) use self::journal::Entry;
use self::journal::{Journal, Ran};
use super::log::Log;
use super::{Growing, loads};
use crate::commands::run::once;
use crate::folder::write_whole;
use crate::outcome;
use crate::scenario_file::Loaded;
use crate::steering::{Decider, Steered};

/// Time that a run needs besides its levels.
const SLACK: Micros = Micros::from_secs(60);

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

/// Refuses messages whose failures nobody sees.
pub(super) fn refuse_unanswered(plan: &Plan) -> Result<()> {
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
    actuator: &mut dyn Actuator,
    (log, entries): (Log, Vec<Entry>),
) -> Result<u8> {
    if entries.iter().any(Entry::is_end) {
        bail!(
            "go on in {}: the growth is over; its answer is in scale.json",
            growing.folder.display()
        );
    }
    let spec = spec(parameters, growing.plan);
    let policy = match entries.iter().filter_map(Entry::level).next_back() {
        Some(level) => Published::resumed(
            spec,
            level,
            entries.iter().filter_map(Entry::line).next_back(),
        ),
        None => Published::new(spec),
    };
    let ran = entries.iter().filter_map(Entry::run);
    let mut runs = Runs {
        number: ran.count() + 1,
        journal: Journal::open(log, growing.folder, &entries)?,
        growing,
        spec,
    };
    let seconds = Seconds::new(spec.window, spec.offset);
    let end = runs.all(actuator, policy, seconds)?;
    let entries = runs.journal.entries()?;
    let answer = Answer::new(
        &growing.loaded.plan,
        growing.plan,
        *parameters,
        end,
        &entries,
    );
    let text = serde_json::to_string_pretty(&answer)? + "\n";
    write_whole(&growing.folder.join("scale.json"), &text)?;
    outcome::say(&answer.words());
    outcome::say(&format!(
        "answer: {}",
        growing.folder.join("scale.json").display()
    ));
    Ok(answer.exit_code())
}

/// The parameters of the policy; it begins with one unit of load.
fn spec(parameters: &PublishedPolicy, plan: &ScalePlan) -> PublishedSpec {
    PublishedSpec {
        failure_ratio: parameters.failure_ratio,
        window: parameters.window,
        offset: parameters.offset,
        stable_within: parameters.stable_within,
        improve: parameters.improve,
        least: Level {
            units: 1,
            instances: plan.least,
        },
        most: Level {
            units: parameters.units,
            instances: plan.most,
        },
    }
}

/// The policy in one run after the other.
struct Runs<'a> {
    growing: &'a Growing<'a>,
    spec: PublishedSpec,
    journal: Journal,
    /// Number of the next run.
    number: usize,
}

impl Runs<'_> {
    /// Runs the policy from where it stands; none if the user ended it.
    fn all(
        &mut self,
        actuator: &mut dyn Actuator,
        mut policy: Published,
        mut seconds: Seconds,
    ) -> Result<Option<End>> {
        let growing = self.growing;
        loop {
            let instances = policy.level().instances;
            let wait = Wait::new(growing.plan.timeout, growing.interrupted);
            match actuator.set(instances, &wait) {
                Ok(()) => {}
                Err(_) if growing.is_interrupted() => return Ok(None),
                Err(error) => {
                    let why = error.to_string();
                    return Ok(Some(End::NotSet { instances, why }));
                }
            }
            outcome::say(&format!("{instances} instances are ready"));
            let lasts = self.longest(&policy);
            let loaded = self.loaded(actuator, policy, seconds, lasts)?;
            let folder = format!("{:02}-instances-{instances}", self.number);
            growing.clear(&folder)?;
            let done = once(&growing.run_args(&folder), &loaded, growing.interrupted)?;
            if growing.is_interrupted() {
                return Ok(None);
            }
            let (Some(Steered::Published(growth)), Some(report)) = (done.steered, &done.report)
            else {
                let last = done.summary.lines().last();
                let why = last.unwrap_or("the run ended early").trim().to_owned();
                return Ok(Some(End::Unclear { instances, why }));
            };
            self.number += 1;
            self.journal.keep(&Entry::Run(Ran {
                instances,
                folder,
                result: report.verdict.result,
                load: loads(report, &loaded),
            }))?;
            let is_over = growth.is_over();
            (policy, seconds) = growth.into_parts();
            if let Some(limit) = policy.end() {
                return Ok(Some(End::Limit { limit }));
            }
            if !is_over {
                let why = match growing.args.budget {
                    Some(_) => {
                        "the budget is over; give more with --budget, and go on with --resume"
                    }
                    None => "its run ended before the policy; see its result",
                };
                let why = why.to_owned();
                return Ok(Some(End::Unclear { instances, why }));
            }
        }
    }

    /// The longest rest of the test, by the budget if there is one.
    fn longest(&self, policy: &Published) -> Micros {
        let longest = self.spec.longest(policy.level()) + SLACK;
        let budget = self.growing.args.budget;
        budget.map_or(longest, |budget| {
            longest.min(budget - self.growing.clock.now())
        })
    }

    /// The scenario with the addresses of the instances, whose load the policy decides on.
    fn loaded(
        &self,
        actuator: &dyn Actuator,
        policy: Published,
        seconds: Seconds,
        lasts: Micros,
    ) -> Result<Loaded> {
        let of = &self.growing.loaded;
        let mut plan = of.plan.clone();
        if let Some(addresses) = actuator.addresses(policy.level().instances) {
            plan.platform.endpoints = addresses;
        }
        let load = AddedLoad {
            dimension: Dimension::Rate,
            first: f64::from(policy.level().units),
            most: f64::from(self.spec.most.units),
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
