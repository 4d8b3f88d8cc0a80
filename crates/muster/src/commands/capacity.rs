//! `muster capacity`.

mod ceiling;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use muster_judge::capacity::{SearchEnd, SearchSpec};
use muster_judge::{Latency, Rules, Slo, SloBound, is_judged_in_steps};
use muster_load::MAX_PAYLOAD;
use muster_model::{Dimension, Micros, figure};
use muster_plan::{AddedLoad, Plan};
use muster_report::{
    CAPACITY_SCHEMA, CapacityReport, CapacityStep, Report, RunResult, SetAnswer, capacity_html,
    lengths_in_words,
};
use muster_result::certificate::Files;
use muster_result::{Header, Replayed, SearchBegun, SetStanding, search_length, standing_after};

pub(super) use self::ceiling::{ceiling, judgeable};
use crate::args::{CapacityArgs, Load, RunArgs};
use crate::commands::run::{Done, once, stop_by_signal};
use crate::folder::{reserve, write_whole};
use crate::scenario_file::{self, Loaded};
use crate::searching::{self, Prepared};
use crate::signing::SigningKey;
use crate::steering::{Decider, Steered};
use crate::{outcome, outputs, read_back};

/// Widest interval, as a part of its lower end.
const WIDTH: f64 = 0.1;
/// First load and highest rate without `--from` and `--to`, as multiples of the scenario's.
const FROM: f64 = 0.1;
const TO: f64 = 100.0;
/// The budget without `--budget`.
const BUDGET: Micros = Micros::from_secs(600);

/// Searches the capacity; the exit code says how the search ended.
pub(crate) fn capacity(args: &CapacityArgs) -> Result<u8> {
    let loaded = scenario_file::load(&args.scenario)?;
    for warning in &loaded.plan.warnings {
        outcome::remark(&format!("warning: {warning}"));
    }
    refuse_unjudged(&loaded.plan)?;
    read_back::refuse(&loaded.plan)?;
    let find = Dimension::from(args.find);
    loaded
        .plan
        .check_load(find)
        .map_err(|why| unmultiplied(&why))?;
    refuse_unconcerned(&loaded.plan, find)?;
    if let Some(key) = &args.sign {
        SigningKey::read(key)?;
    }
    if !loaded.plan.rules.stop_if.is_empty() {
        outcome::remark(
            "warning: `stop-if` ends no search: a load that is too high is part of it; the search ends by itself",
        );
    }
    let (prepared, out) = prepare(args, &loaded)?;
    let standings = standing_after(&prepared.begun, &prepared.earlier)?;
    if standings.iter().all(|standing| standing.end.is_some()) {
        let is_short = |of: &SetStanding| matches!(of.end, Some(SearchEnd::OutOfBudget { .. }));
        bail!(
            "go on with the search in {}: it is over; its answer is in capacity.json{}",
            out.display(),
            match standings.iter().any(is_short) {
                true => ", and a longer --budget lets it go on",
                false => "",
            }
        );
    }
    let loaded = searched(loaded, prepared.clone())?;
    let interrupted = stop_by_signal()?;
    if args.resume.is_some() {
        searching::set_aside(&out)?;
    }
    let run = run_args(args, out.clone());
    let done = once(&run, &loaded, &interrupted)?;
    let Some(answer) = concluded(&done, &prepared.begun, &run)? else {
        outcome::say(&done.summary);
        if matches!(done.steered, Some(Steered::Search(_))) {
            let out = out.display();
            outcome::say(&format!(
                "this run held no step; go on with --resume {out} once the target answers"
            ));
        }
        return Ok(done.outcome().exit_code());
    };
    outcome::say(&answer.text());
    outcome::say(&format!("answer: {}", out.join("capacity.html").display()));
    Ok(answer.outcome().exit_code())
}

/// The search, and the folder of its result.
fn prepare(args: &CapacityArgs, loaded: &Loaded) -> Result<(Prepared, PathBuf)> {
    let plan = Header::digest(&loaded.plan);
    let find = Dimension::from(args.find);
    if let Some(folder) = &args.resume {
        let mut prepared = searching::read(folder)?;
        if prepared.begun.plan != plan || prepared.begun.find != find {
            bail!(
                "go on with the search in {}: its scenario, --set, --seed or --find were others; give the same, or \
                 begin another search with --out",
                folder.display()
            );
        }
        let spec = &mut prepared.begun.spec;
        spec.budget = args.budget.unwrap_or(spec.budget);
        return Ok((prepared, folder.clone()));
    }
    let budget = args.budget.unwrap_or(BUDGET);
    let needs = loaded.plan.step_needs(find);
    let (first, most) = range(args, find, &loaded.plan, needs.lowest_load(budget))?;
    let ceiling = ceiling(&args.calibration, &loaded.plan, find);
    let (short, long) = SearchSpec::lengths(longest_limit(&loaded.plan.rules));
    let spec = SearchSpec {
        first,
        most: judgeable(find, (first, most), ceiling.as_ref())
            .map_err(|why| anyhow!("{why}, or begin lower with --from"))?,
        width: WIDTH,
        short: short.max(needs.hold),
        long: long.max(needs.hold),
        load_seconds: needs.load_seconds,
        budget,
    };
    let least = spec.least_budget(loaded.plan.stated_load(find));
    let lengths = lengths_in_words(&spec, find);
    if spec.budget < least {
        bail!(
            "search within --budget {}: the ramp and a confirmation alone take {}{}; give more, such as {}",
            figure::time(spec.budget),
            figure::time(least),
            lengths.map_or(String::new(), |lengths| format!(" ({lengths})")),
            figure::time(BUDGET.max(least + least))
        );
    }
    if let Some(lengths) = lengths {
        outcome::remark(&lengths);
    }
    let mut begun = SearchBegun::new(plan, find, spec);
    begun.ceiling = ceiling;
    begun.sets.clone_from(&loaded.plan.rules.sets);
    let prepared = Prepared {
        begun,
        earlier: Vec::new(),
    };
    let out = match &args.out {
        Some(out) => out.clone(),
        None => reserve(&outputs::default_folder(&loaded.plan))?,
    };
    Ok((prepared, out))
}

/// The first and the highest load. Without `--from`, the first one is `lowest` at the least, or that of the scenario.
fn range(args: &CapacityArgs, find: Dimension, plan: &Plan, lowest: f64) -> Result<(f64, f64)> {
    let stated = plan.stated_load(find);
    let value = |option: &str, load: Load| {
        load.value(find)
            .map_err(|remedy| anyhow!("read {option}: it has the unit of another --find; {remedy}"))
    };
    let first = args.from.map(|load| value("--from", load)).transpose()?;
    let most = args.to.map(|load| value("--to", load)).transpose()?;
    let least = plan.least_load(find);
    let usual = (stated * FROM).max(lowest.min(stated));
    let first = first.unwrap_or(find.held(usual).max(least));
    let most = most.unwrap_or(match find {
        Dimension::Rate | Dimension::Commands | Dimension::Connects => stated * TO,
        Dimension::Devices => stated,
        Dimension::Payload => (stated * TO).min(f64::from(MAX_PAYLOAD)),
    });
    if first < least {
        bail!(
            "search from {}: a message needs {} for its id; begin higher with --from",
            find.in_words(first),
            find.in_words(least)
        );
    }
    if find == Dimension::Payload && most > f64::from(MAX_PAYLOAD) {
        bail!(
            "search up to {}: the largest payload has {MAX_PAYLOAD} bytes; give a lower --to",
            find.in_words(most)
        );
    }
    if find == Dimension::Devices && most > stated {
        bail!(
            "search up to {}: the scenario has {}; give it more, such as by --set 'fleet[0].count={most}'",
            find.in_words(most),
            find.in_words(stated)
        );
    }
    if first > most {
        bail!(
            "search from {}: the highest load is {}; begin lower with --from, or {}",
            find.in_words(first),
            find.in_words(most),
            find.beyond()
        );
    }
    Ok((first, most))
}

fn unmultiplied(why: &str) -> anyhow::Error {
    anyhow!("multiply the load of the scenario: {why}")
}

/// A scenario whose load a search decides on.
pub(super) fn searched(loaded: Loaded, prepared: Prepared) -> Result<Loaded> {
    let SearchBegun { spec, find, .. } = &prepared.begun;
    let stated = loaded.plan.stated_load(*find).max(f64::MIN_POSITIVE);
    let length = search_length(&loaded.plan, spec.budget);
    let load = AddedLoad {
        dimension: *find,
        first: spec.first / stated,
        most: spec.most / stated,
    };
    Ok(Loaded {
        plan: loaded
            .plan
            .adding(length, load)
            .map_err(|why| unmultiplied(&why))?,
        decider: Decider::Search(Box::new(prepared)),
        ..loaded
    })
}

/// Refuses a scenario without SLOs, and SLOs that no step is judged by: they would count for nothing.
pub(super) fn refuse_unjudged(plan: &Plan) -> Result<()> {
    if !plan.rules.slos.iter().any(|slo| slo.named) {
        bail!(
            "search a capacity: the scenario has no SLO, so that no load is too high; add one, such as `slo: {{ \
             response: {{ p99: \"<= 250ms\" }} }}`"
        );
    }
    let named = plan.rules.slos.iter().filter(|slo| slo.named);
    let unjudged = named.filter(|slo| !is_judged_in_steps(slo.bound.name()));
    let unjudged: Vec<String> = unjudged
        .map(|slo| format!("`{}` [{}]", slo.bound.rule(), slo.scope))
        .collect();
    if unjudged.is_empty() {
        return Ok(());
    }
    bail!(
        "search a capacity by {}: a step is judged by loss, failures, disconnects, latencies of messages and of commands, \
         and `stable`; remove the other SLOs, such as by --set 'slo.RULE=any', and judge them in a run at the capacity",
        unjudged.join(", ")
    )
}

/// Refuses a search of commands by SLOs that are all about messages: no load of commands would be too high.
fn refuse_unconcerned(plan: &Plan, find: Dimension) -> Result<()> {
    let of_commands = [Latency::CommandLoop, Latency::CommandResponse];
    let is_of_commands =
        |slo: &Slo| matches!(slo.bound, SloBound::Latency { of, .. } if of_commands.contains(&of));
    let mut named = plan.rules.slos.iter().filter(|slo| slo.named);
    if find != Dimension::Commands || named.any(is_of_commands) {
        return Ok(());
    }
    bail!(
        "search a capacity of commands: no SLO is about them; add one, such as `slo: {{ command-loop: {{ p99: \"<= \
         1s\" }} }}`"
    )
}

/// The longest time that an SLO allows.
pub(super) fn longest_limit(rules: &Rules) -> Micros {
    let limits = rules.slos.iter().filter_map(|slo| {
        if let SloBound::Latency { at_most, .. } = slo.bound {
            Some(at_most)
        } else {
            None
        }
    });
    limits.max().unwrap_or_default()
}

fn run_args(args: &CapacityArgs, out: PathBuf) -> RunArgs {
    RunArgs {
        sign: args.sign.clone(),
        shards: None,
        slots: 4_194_304,
        buffers: 16_384,
        ..RunArgs::quiet(args.scenario.clone(), out)
    }
}

/// The answer of the search of a run, written into its folder and certified with it; none if the run held no step.
pub(super) fn concluded(
    done: &Done,
    begun: &SearchBegun,
    run: &RunArgs,
) -> Result<Option<CapacityReport>> {
    let (Some(report), Some(Steered::Search(search)), Some(out)) =
        (&done.report, &done.steered, &run.out)
    else {
        return Ok(None);
    };
    if done.outcome() == RunResult::None {
        return Ok(None);
    }
    let held = Held {
        begun,
        steps: search.held(),
        sessions: search.session(),
        standings: search.standings(),
    };
    let answer = held.answer(report)?;
    write(&answer, out)?;
    outputs::certify_again(out, report, run.sign.as_deref())?;
    Ok(Some(answer))
}

/// A search as it ended.
struct Held<'a> {
    begun: &'a SearchBegun,
    steps: &'a [CapacityStep],
    sessions: u64,
    standings: Vec<SetStanding>,
}

impl Held<'_> {
    /// The answer, with the results that the closed ledger gave to the steps of the last run.
    fn answer(self, report: &Report) -> Result<CapacityReport> {
        let at_end = |step: &CapacityStep| {
            let mut all = report.steps.iter();
            let same = all.find(|of| of.from_s.to_bits() == step.figures.from_s.to_bits());
            same.filter(|_| step.session == self.sessions)
        };
        let steps = self.steps.iter().map(|step| step.closed(at_end(step)));
        let steps: Vec<CapacityStep> = steps.collect();
        let answers = self.standings.iter().map(|standing| {
            let of_set = |step: &CapacityStep| match &standing.set {
                Some(set) => step.of_set(set),
                None => Some(step.clone()),
            };
            let answer = CapacityReport {
                schema: CAPACITY_SCHEMA.to_owned(),
                muster: report.muster.clone(),
                name: report.name.clone(),
                run: report.run.clone(),
                scenario_sha256: report.scenario_sha256.clone(),
                find: self.begun.find,
                limits: self.begun.spec.clone(),
                sessions: self.sessions,
                own: SetAnswer {
                    set: standing.set.clone(),
                    end: standing.end.clone(),
                    known: standing.known,
                    ..SetAnswer::default()
                },
                generator: self.begun.ceiling.clone(),
                others: Vec::new(),
                steps: steps.iter().filter_map(of_set).collect(),
            };
            answer.concluded(report)
        });
        let answers = answers.collect();
        CapacityReport::joined(answers, steps).context("find an answer: the search has no SLOs")
    }
}

/// The answer in all its forms, by their files.
fn forms(answer: &CapacityReport) -> [(&'static str, Option<String>); 3] {
    [
        ("capacity.json", Some(answer.to_json())),
        ("capacity.html", Some(capacity_html(answer))),
        ("capacity.csv", answer.csv()),
    ]
}

fn write(answer: &CapacityReport, out: &Path) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("create {}", out.display()))?;
    for (name, text) in forms(answer) {
        if let Some(text) = text {
            write_whole(&out.join(name), &text)?;
        }
    }
    Ok(())
}

/// Steps of a search that do not follow from the windows of its runs, and files of its answer that do not follow from its
/// steps and the result of the last run.
pub(crate) fn faults(folder: &Path, files: &Files) -> Vec<String> {
    if !["capacity.json", searching::FILE]
        .iter()
        .any(|name| files.contains_key(*name))
    {
        return Vec::new();
    }
    let replayed = match searching::replayed(folder) {
        Ok(replayed) => replayed,
        Err(error) => return vec![format!("{error:#}")],
    };
    if !files.contains_key("capacity.json") {
        return Vec::new();
    }
    let own = match recomputed(&replayed, files) {
        Ok(own) => own,
        Err(error) => return vec![format!("capacity.json cannot be recomputed: {error:#}")],
    };
    let differing = forms(&own).into_iter().filter(|(name, text)| {
        files.get(*name).map(Vec::as_slice) != text.as_deref().map(str::as_bytes)
    });
    differing
        .map(|(name, _)| format!("{name} does not follow from {}", searching::FILE))
        .collect()
}

/// The answer that the steps give.
fn recomputed(replayed: &Replayed, files: &Files) -> Result<CapacityReport> {
    let report = files.get("result.json").context("find result.json")?;
    let report = Report::from_json(str::from_utf8(report).context("read it")?)?;
    let held = Held {
        begun: &replayed.begun,
        steps: &replayed.steps,
        sessions: replayed.session,
        standings: standing_after(&replayed.begun, &replayed.steps)?,
    };
    held.answer(&report)
}
