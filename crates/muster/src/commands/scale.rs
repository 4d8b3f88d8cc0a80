//! `muster scale`.

mod addresses;
mod answer;
mod budget;
mod log;
mod policy;
pub(crate) mod published;
mod table;
mod target;
pub(crate) mod verifying;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use muster_actuator::Wait;
use muster_judge::capacity::{Interval, SearchEnd};
use muster_model::{Dimension, Micros};
use muster_net::Clock;
use muster_plan::{Plan, PublishedPolicy, ScalePlan, ScalePolicy};
use muster_report::{CapacityCeiling, CapacityReport};
use muster_result::{Header, SearchBegun};
use muster_scale::{End, Measured, Next, Outcome, Setting, Wanted};

use self::addresses::loads;
use self::answer::Answer;
use self::budget::{Budget, StepLengths};
use self::log::{Basis, Entry, Head, HeldStep, Log};
use self::policy::Policy;
use self::target::Target;
use crate::args::{RunArgs, ScaleArgs};
use crate::commands::capacity::{ceiling, concluded, judgeable, refuse_unjudged, searched};
use crate::commands::run::{once, stop_by_signal};
use crate::folder::{refuse_foreign, reserve, write_whole};
use crate::scenario_file::{self, Loaded};
use crate::searching::Prepared;
use crate::signing::SigningKey;
use crate::steering::{Decider, Steered};
use crate::{outcome, outputs, read_back};

/// Widest interval of a capacity, as a part of its lower end.
const WIDTH: f64 = 0.1;
/// First rate, and the highest one for each instance, as multiples of the scenario's.
const FROM: f64 = 0.25;
const TO: f64 = 100.0;
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
    read_back::refuse(&loaded.plan)?;
    match plan.policy {
        ScalePolicy::Muster => {
            refuse_unjudged(&loaded.plan)?;
            refuse_sets(&loaded.plan)?;
        }
        ScalePolicy::Published(policy) => published::refuse(&loaded.plan, &policy, args)?,
    }
    if let Some(key) = &args.sign {
        SigningKey::read(key)?;
    }
    let interrupted = stop_by_signal()?;
    let lengths = StepLengths::new(&loaded.plan, plan.hold);
    if args.resume.is_none() && plan.policy == ScalePolicy::Muster {
        // Before anything is written.
        let policy = Policy::new(&Basis::new(&plan), 0.0);
        budget(args, Micros::ZERO, &policy, lengths)?;
    }
    let folder = folder(args, &loaded)?;
    // Before the actuator: whatever another growth left is not touched.
    let history = History::open(&folder, &Head::new(&loaded.plan, &plan), plan.policy)?;
    let mut target = Target::open(&plan, &loaded, &folder)?;
    let growing = Growing {
        args,
        loaded: &loaded,
        plan: &plan,
        basis: Basis::new(&plan),
        folder: &folder,
        lengths,
        interrupted: &interrupted,
        clock: Clock::start(),
    };
    let grown = match history {
        History::Muster(log, searches) => growing.grow(&mut target, log, searches),
        History::Published(log, entries, policy) => {
            published::grow(&growing, &policy, &mut target, log, &entries)
        }
    };
    // A Ctrl-C ends the growth, and never keeps the target as it is.
    let anyway = AtomicBool::new(false);
    let restored = target.restore(&Wait::new(plan.timeout, &anyway));
    let code = grown
        .map_err(|error| anyhow!("{error:#}; searches that ended are in {}", folder.display()));
    if let Err(error) = restored {
        if let Err(error) = &code {
            outcome::complain(error);
        }
        outcome::complain(&error.context("put the target back as it was"));
        return Ok(NOT_RESTORED);
    }
    code
}

/// The steps of a growth so far, by its policy.
enum History {
    Muster(Log, Vec<Entry>),
    Published(Log, Vec<published::Entry>, PublishedPolicy),
}

impl History {
    fn open(folder: &Path, head: &Head, policy: ScalePolicy) -> Result<Self> {
        Ok(match policy {
            ScalePolicy::Muster => {
                let (log, searches) = Log::open(folder, head)?;
                Self::Muster(log, searches)
            }
            ScalePolicy::Published(policy) => {
                let (log, entries) = Log::open(folder, head)?;
                Self::Published(log, entries, policy)
            }
        })
    }
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
            refuse_foreign(folder, |_| false)?;
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
    basis: Basis,
    folder: &'a Path,
    lengths: StepLengths,
    interrupted: &'a AtomicBool,
    clock: Clock,
}

impl Growing<'_> {
    fn grow(&self, target: &mut Target, log: Log, mut entries: Vec<Entry>) -> Result<u8> {
        let mut policy = begun(&self.basis, &self.loaded.plan);
        // What was not judged is searched again.
        for entry in entries.iter().filter(|entry| entry.outcome.is_judged()) {
            policy.record(&entry.setting, &entry.outcome);
        }
        let end = match policy.next() {
            Next::End(end) => Some(end),
            Next::Measure(_) => self.measure(target, &mut policy, log, &mut entries)?,
        };
        let answer = Answer::new(self.loaded, &self.basis, &policy, end, &entries);
        self.conclude(&answer)
    }

    /// Searches one setting after the other; none if the user ended it.
    fn measure(
        &self,
        target: &mut Target,
        policy: &mut Policy,
        mut log: Log,
        entries: &mut Vec<Entry>,
    ) -> Result<Option<End<Setting>>> {
        let earlier_s = entries.last().map_or(0.0, Entry::ended_s);
        let spent = entries.iter().map(|entry| entry.took_s).sum();
        let spent = Micros::from_secs_f64(spent);
        let mut budget = budget(self.args, spent, policy, self.lengths)?;
        // Before there are instances, which need the machine as well.
        let ceiling = ceiling(&self.args.calibration, &self.loaded.plan, Dimension::Rate);
        loop {
            let wanted = match policy.next() {
                Next::End(end) => return Ok(Some(end)),
                Next::Measure(_) if self.is_interrupted() => return Ok(None),
                Next::Measure(wanted) => wanted,
            };
            let share = match budget.share(policy.further()) {
                Ok(share) => share,
                Err(why) => return Ok(Some(policy.out_of_budget(why))),
            };
            let search = self.prepared(&wanted, share, ceiling.as_ref())?;
            let setting = wanted.instances;
            let wait = Wait::new(self.plan.timeout, self.interrupted);
            let begun = self.clock.now();
            if let Some(sweep) = &self.plan.sweep {
                target.set_environment(&sweep.environments[setting.environment]);
            }
            match target.set(&setting.sizes, &wait) {
                Ok(()) => {}
                Err(_) if self.is_interrupted() => return Ok(None),
                Err(error) => {
                    return Ok(Some(End::NotSet {
                        instances: setting,
                        why: error.to_string(),
                    }));
                }
            }
            outcome::say(&self.basis.ready_in_words(&setting));
            let loaded = self.loaded(target, &setting, &search)?;
            let run_s = earlier_s + self.clock.now().as_secs_f64();
            let number = entries.len() + 1;
            let entry = self.search(&search.begun, &loaded, setting, number)?;
            let Some(entry) = entry else {
                return Ok(None);
            };
            let there = target.actual(&wait);
            if self.is_interrupted() {
                return Ok(None);
            }
            let took = self.clock.now() - begun;
            budget.spend(took);
            let entry = Entry {
                outcome: as_expected(there, &entry, &self.basis),
                began_s: earlier_s + begun.as_secs_f64(),
                took_s: took.as_secs_f64(),
                ..entry.later(run_s)
            };
            outcome::say(&answer::line(&self.basis, &entry));
            policy.record(&entry.setting, &entry.outcome);
            log.append(&entry)?;
            entries.push(entry);
        }
    }

    /// Writes the answer and shows it.
    fn conclude(&self, answer: &Answer<'_>) -> Result<u8> {
        for (name, text) in answer.forms()? {
            write_whole(&self.folder.join(name), &text)?;
        }
        outcome::say(&answer.words());
        let page = self.folder.join("scale.html");
        outcome::say(&format!("answer: {}", page.display()));
        Ok(answer.exit_code())
    }

    fn run_args(&self, folder: &str) -> RunArgs {
        RunArgs {
            sign: self.args.sign.clone(),
            shards: None,
            slots: 4_194_304,
            buffers: 16_384,
            ..RunArgs::quiet(self.args.scenario.clone(), self.folder.join(folder))
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Searches the capacity of the instances that are there; none if the user ended it.
    fn search(
        &self,
        begun: &SearchBegun,
        loaded: &Loaded,
        setting: Setting,
        number: usize,
    ) -> Result<Option<Entry>> {
        let folder = format!("{number:02}-{}", self.basis.folder_name(&setting));
        self.clear(&folder)?;
        let run = self.run_args(&folder);
        let done = once(&run, loaded, self.interrupted)?;
        let answer = concluded(&done, begun, &run)?;
        if self.is_interrupted() {
            return Ok(None);
        }
        let load = done
            .report
            .as_ref()
            .map_or_else(Vec::new, |report| loads(report, &loaded.plan));
        let steps = match &done.steered {
            Some(Steered::Search(search)) => search.held(),
            _ => &[],
        };
        Ok(Some(Entry {
            instances: setting.sizes.iter().sum(),
            setting,
            outcome: match &answer {
                Some(answer) => found(answer),
                None => not_begun(&done.summary),
            },
            folder,
            began_s: 0.0,
            took_s: 0.0,
            load,
            steps: steps.iter().map(HeldStep::new).collect(),
        }))
    }

    /// A search for the capacity of these instances.
    fn prepared(
        &self,
        wanted: &Wanted<Setting>,
        budget: Micros,
        ceiling: Option<&CapacityCeiling>,
    ) -> Result<Prepared> {
        let plan = &self.loaded.plan;
        let most = plan.stated_rate() * TO * f64::from(wanted.instances.sizes.iter().sum::<u32>());
        let most = most.max(wanted.first);
        let most = judgeable(Dimension::Rate, (wanted.first, most), ceiling)
            .map_err(|why| anyhow!("{why}, or lower the rate of the scenario"))?;
        let spec = self.lengths.spec(wanted.first, most, budget);
        let mut begun = SearchBegun::new(Header::digest(plan), Dimension::Rate, spec);
        begun.ceiling = ceiling.cloned();
        begun.needs_each_address = true;
        Ok(Prepared {
            begun,
            earlier: Vec::new(),
        })
    }

    /// The scenario with the addresses of the instances, and a search that decides on the load.
    fn loaded(&self, target: &Target, setting: &Setting, search: &Prepared) -> Result<Loaded> {
        let mut plan = self.loaded.plan.clone();
        if let Some(addresses) = target.addresses(&setting.sizes) {
            plan.platform.endpoints = addresses;
        }
        let loaded = Loaded {
            plan,
            sha256: self.loaded.sha256.clone(),
            decider: Decider::Scenario,
        };
        searched(loaded, search.clone())
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

/// The budget of what is left of a policy, after `spent` went to earlier searches.
fn budget(
    args: &ScaleArgs,
    spent: Micros,
    policy: &Policy,
    lengths: StepLengths,
) -> Result<Budget> {
    Budget::new(
        args.budget,
        spent,
        policy.further(),
        lengths,
        policy.fewer(),
    )
}

/// The policy before its first search.
fn begun(basis: &Basis, plan: &Plan) -> Policy {
    Policy::new(basis, plan.stated_rate() * FROM)
}

/// The outcome of a search whose run held no step, for the reason in its last words.
fn not_begun(summary: &str) -> Outcome {
    let last = summary.lines().last();
    let why = last.unwrap_or("the run ended early").trim().to_owned();
    Outcome::Unclear { why, known: None }
}

/// Refuses several sets of SLOs: a policy grows the target by one capacity.
fn refuse_sets(plan: &Plan) -> Result<()> {
    match plan.rules.sets.is_empty() {
        true => Ok(()),
        false => bail!(
            "scale by `slo-sets`: instances are added by the capacity of one set; write its rules into `slo`, and \
             remove `slo-sets`"
        ),
    }
}

/// The outcome of a search, as it was answered.
fn found(answer: &CapacityReport) -> Outcome {
    let known = answer.own.known.map(measured);
    if let Some(why) = &answer.own.refuted {
        let why = format!("the capacity was found and is not certified: {why}");
        return Outcome::Unclear { why, known };
    }
    match (&answer.own.end, answer.idle()) {
        (Some(end), _) => outcome_of(end, answer.generator.as_ref()),
        (None, Some(address)) => Outcome::Idle {
            address: address.to_owned(),
        },
        (None, None) => Outcome::Unclear {
            why: "the run ended before its search".to_owned(),
            known,
        },
    }
}

/// The outcome of a search, unless an instance that counted as ready has ended since.
fn as_expected(there: Result<Vec<u32>>, searched: &Entry, basis: &Basis) -> Outcome {
    match wrong_number(there, &searched.setting.sizes, basis) {
        Some(why) => Outcome::Unclear { why, known: None },
        None => searched.outcome.clone(),
    }
}

/// The fault in the numbers of instances that were ready in the end; none if each was the wanted one.
fn wrong_number(there: Result<Vec<u32>>, wanted: &[u32], basis: &Basis) -> Option<String> {
    let there = match there {
        Err(error) => return Some(error.to_string()),
        Ok(there) => there,
    };
    let mut numbers = there.iter().zip(wanted).zip(&basis.components);
    let ((there, wanted), component) = numbers.find(|((there, wanted), _)| there != wanted)?;
    let of = match &component.name[..] {
        "" => String::new(),
        name => format!(" of {name}"),
    };
    Some(format!(
        "{there} of {wanted} instances{of} were ready in the end"
    ))
}

fn outcome_of(end: &SearchEnd, generator: Option<&CapacityCeiling>) -> Outcome {
    let (why, known) = match end {
        SearchEnd::Found(found) => return Outcome::Found(measured(found.interval)),
        SearchEnd::FailsAtFirst { rate } => return Outcome::FailsAtFirst { rate: *rate },
        SearchEnd::AtLeast { rate } => {
            return Outcome::AtLeast {
                rate: *rate,
                bound: generator.and_then(|generator| generator.bound(*rate)),
            };
        }
        SearchEnd::NothingClear { rate, known, .. } => (
            format!(
                "no step at {rate:.0}/s could be judged; see the steps in its result, and raise the rate or `scale.hold`"
            ),
            known,
        ),
        SearchEnd::NotRecovered { rate, known } => (
            format!("the target did not come to rest after {rate:.0}/s"),
            known,
        ),
        SearchEnd::OutOfBudget { known, .. } => (
            "its part of the budget ended before the interval was narrow enough; give more with --budget"
                .to_owned(),
            known,
        ),
    };
    Outcome::Unclear {
        why,
        known: known.map(measured),
    }
}

fn measured(interval: Interval) -> Measured {
    Measured {
        lower: interval.lower,
        middle: interval.middle,
        upper: interval.upper,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use muster_judge::capacity::{Capacity, Outcome as StepOutcome, Phase, SearchSpec};
    use muster_judge::{Ceiling, GeneratorPart, PartCeiling};
    use muster_report::{CapacityStep, SetAnswer, Step};

    use super::log::Component;
    use super::*;

    const KNOWN: Interval = Interval {
        lower: 90.0,
        middle: 95.0,
        upper: 99.0,
    };

    fn answer(end: SearchEnd) -> CapacityReport {
        CapacityReport {
            schema: String::new(),
            muster: String::new(),
            name: String::new(),
            run: String::new(),
            scenario_sha256: None,
            find: Dimension::Rate,
            limits: SearchSpec {
                first: 10.0,
                most: 1_000.0,
                width: WIDTH,
                short: Micros::from_secs(2),
                long: Micros::from_secs(6),
                load_seconds: 0.0,
                budget: Micros::from_secs(100),
            },
            sessions: 1,
            own: SetAnswer {
                end: Some(end),
                known: Some(KNOWN),
                ..SetAnswer::default()
            },
            generator: None,
            others: Vec::new(),
            steps: Vec::new(),
        }
    }

    #[test]
    fn a_capacity_that_the_closed_ledger_refutes_is_not_found() {
        let certified = answer(SearchEnd::Found(Capacity {
            interval: KNOWN,
            first_failing: 100.0,
        }));
        let known = measured(KNOWN);
        assert_eq!(found(&certified), Outcome::Found(known));
        let mut refuted = certified;
        refuted.own.refuted = Some("the ledger of the run has a residue".to_owned());
        let refuted = found(&refuted);
        let Outcome::Unclear { why, known: kept } = refuted else {
            panic!("{refuted:?}")
        };
        assert!(why.ends_with("has a residue"), "{why}");
        assert_eq!(kept, Some(known));
    }

    #[test]
    fn the_bound_is_named_of_a_rate_that_is_the_highest_judged() {
        let part = PartCeiling {
            part: GeneratorPart::Devices,
            rate: 1_000.0,
        };
        let ceiling = Ceiling::new(vec![part]).expect("a ceiling");
        let ceiling = CapacityCeiling::new(ceiling, 1.0);
        let (most, _) = ceiling.most().expect("a highest rate");
        let bound = |rate: f64, generator: Option<&CapacityCeiling>| {
            let outcome = found(&CapacityReport {
                generator: generator.cloned(),
                ..answer(SearchEnd::AtLeast { rate })
            });
            let Outcome::AtLeast { bound, .. } = outcome else {
                panic!("{outcome:?}");
            };
            bound
        };
        let named = bound(most, Some(&ceiling)).expect("it is bound");
        assert!(named.starts_with("generator-bound by"), "{named}");
        assert_eq!(bound(most / 2.0, Some(&ceiling)), None);
        assert_eq!(bound(most, None), None);
    }

    #[test]
    fn an_address_without_load_is_named_if_its_search_stopped() {
        let step = |load: f64, second| CapacityStep {
            number: 1,
            session: 1,
            load,
            hold: Micros::from_secs(2),
            phase: Phase::Ramp,
            set: None,
            outcome: StepOutcome::Unclear,
            has_recovered: true,
            took_s: 4.0,
            result_at_end: None,
            margin: None,
            others: Vec::new(),
            sent_to: BTreeMap::from([("a".to_owned(), 1_000), ("b".to_owned(), second)]),
            figures: Step::default(),
        };
        let outcome = |second| {
            found(&CapacityReport {
                own: SetAnswer::default(),
                steps: vec![step(100.0, 300), step(200.0, second)],
                ..answer(SearchEnd::FailsAtFirst { rate: 100.0 })
            })
        };
        let address = "b".to_owned();
        assert_eq!(outcome(30), Outcome::Idle { address });
        assert!(matches!(outcome(300), Outcome::Unclear { .. }));
    }

    #[test]
    fn a_target_that_changed_meanwhile_is_not_judged() {
        let searched = Entry {
            instances: 3,
            setting: Setting::new(vec![2, 1]),
            outcome: Outcome::FailsAtFirst { rate: 9.0 },
            folder: String::new(),
            began_s: 0.0,
            took_s: 0.0,
            load: Vec::new(),
            steps: Vec::new(),
        };
        let component = |name: &str| Component {
            name: name.to_owned(),
            least: 1,
            most: 2,
            price: None,
        };
        let basis = Basis {
            components: vec![component("adapter"), component("registry")],
            sweep: None,
            published: None,
        };
        for (there, expected) in [
            (
                Ok(vec![1, 2]),
                "1 of 2 instances of adapter were ready in the end",
            ),
            (
                Ok(vec![2, 0]),
                "0 of 1 instances of registry were ready in the end",
            ),
            (Err(anyhow!("interrupted")), "interrupted"),
        ] {
            let outcome = as_expected(there, &searched, &basis);
            let (why, known) = (expected.to_owned(), None);
            assert_eq!(outcome, Outcome::Unclear { why, known });
        }
        let as_wanted = as_expected(Ok(vec![2, 1]), &searched, &basis);
        assert_eq!(as_wanted, searched.outcome);
    }
}
