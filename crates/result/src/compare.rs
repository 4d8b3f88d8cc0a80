//! Two sides of results, compared: their set-ups, then each figure, then the verdict.

use std::collections::BTreeSet;

use muster_judge::compare::{
    Compared, Criteria, Direction, FALSE_ALARMS, Finding, Judgement, Observed, REPETITIONS_MIN,
};
use muster_report::{
    COMPARE_SCHEMA, CapacityReport, Compare, ComparedFigure, ComparedRun, Comparison, Heat,
    OverlaidRun, Report, RunResult, Side, Window,
};

mod figures;
mod history;
mod setup;

pub use history::{PastResult, PastRun, history, unmatched_in_history};

use figures::{Picked, capacities_of, figures_of};

/// Runs of a side that the charts show; more lines look alike.
const OVERLAID_MAX: usize = 4;

/// Scope of the figures over all streams.
const RUN: &str = "run";

/// One side: its name, and its runs by their folders.
#[derive(Debug, Clone, Default)]
pub struct SideRuns {
    /// Name of the side, as it was given.
    pub name: String,
    /// Its runs.
    pub runs: Vec<SideRun>,
    /// The folder of each result that this version cannot read, and why.
    pub unread: Vec<(String, String)>,
}

/// One run of a side.
#[derive(Debug, Clone)]
pub struct SideRun {
    /// Its folder.
    pub folder: String,
    /// Its result.
    pub report: Report,
    /// The answer of the search that decided on its load; none where the load was planned.
    pub answer: Option<CapacityReport>,
}

impl SideRun {
    /// Its figures, each with its scope: of a search the capacity alone.
    fn figures(&self) -> Vec<(String, Picked)> {
        match &self.answer {
            Some(answer) => capacities_of(answer),
            None => figures_of(&self.report),
        }
    }

    /// Reason why its figures do not count.
    fn left_out(&self) -> Option<String> {
        match &self.answer {
            Some(answer) if answer.own.certified.is_none() => Some(format!(
                "its search certified no capacity: {}",
                answer.end_in_words()
            )),
            Some(_) => None,
            None => left_out(&self.report),
        }
    }
}

impl SideRuns {
    /// The runs whose figures count.
    fn counted(&self) -> impl Iterator<Item = &SideRun> {
        self.runs.iter().filter(|run| run.left_out().is_none())
    }

    /// Returns whether its figures are capacities.
    fn is_searched(&self) -> bool {
        self.counted().any(|run| run.answer.is_some())
    }
}

/// The user's choices.
#[derive(Debug, Clone)]
pub struct CompareOptions {
    /// Version of the program.
    pub muster: String,
    /// Relative difference that does not matter.
    pub tolerance: f64,
    /// Keys of the scenario that differ on purpose, with all keys below them.
    pub ignore: Vec<String>,
    /// The figures that decide; empty for those that do by themselves.
    pub decide: Vec<String>,
}

/// Compares each side after the first with the first.
pub fn compare(sides: &[SideRuns], options: &CompareOptions) -> Compare {
    let (base, changes) = sides.split_first().expect("a comparison has a base");
    let named = unmatched(sides, options);
    let comparisons: Vec<Comparison> = changes
        .iter()
        .map(|change| {
            Pair {
                base,
                change,
                options,
                unmatched: &named,
            }
            .comparison()
        })
        .collect();
    let verdicts = comparisons.iter().map(|one| one.verdict);
    Compare {
        schema: COMPARE_SCHEMA.to_owned(),
        muster: options.muster.clone(),
        verdict: verdicts
            .reduce(Judgement::or_worse)
            .unwrap_or(Judgement::NotComparable),
        comparisons,
    }
}

/// The choices that no run of these sides has.
fn unmatched(sides: &[SideRuns], options: &CompareOptions) -> Vec<String> {
    let counted: Vec<&SideRun> = sides.iter().flat_map(SideRuns::counted).collect();
    let figures = counted.iter().flat_map(|run| run.figures());
    let names: BTreeSet<String> = figures
        .flat_map(|(scope, of)| [of.title(&scope), of.name])
        .collect();
    let has_key = |key: &str| counted.iter().any(|run| setup::has(&run.report, key));
    unmatched_in(options, |name| names.contains(name), has_key)
}

/// A sentence for each name of `--decide` and each key of `--ignore` that is not there.
fn unmatched_in(
    options: &CompareOptions,
    has_figure: impl Fn(&str) -> bool,
    has_key: impl Fn(&str) -> bool,
) -> Vec<String> {
    let decide = options.decide.iter().filter(|name| !has_figure(name));
    let decide = decide.map(|name| format!("no run has a figure of the name {name} (--decide)"));
    let ignore = options.ignore.iter().filter(|key| !has_key(key));
    let ignore = ignore.map(|key| format!("no scenario has the key {key} (--ignore)"));
    decide.chain(ignore).collect()
}

/// The windows of the runs whose figures count, for the charts: at most four a side.
pub fn overlaid(sides: &[SideRuns]) -> Vec<OverlaidRun> {
    let mut all = Vec::new();
    for (number, side) in sides.iter().enumerate() {
        // The windows of searches have loads of their own.
        let planned = side.counted().filter(|run| run.answer.is_none());
        for run in planned.take(OVERLAID_MAX) {
            all.push(OverlaidRun {
                side: number,
                folder: run.folder.clone(),
                windows: measured_windows(&run.report),
            });
        }
    }
    all
}

/// The windows of the measured phase, on a clock that begins with it.
fn measured_windows(run: &Report) -> Vec<Window> {
    let measured = run
        .windows
        .iter()
        .filter(|window| window.phase == "measure");
    let begin = measured.clone().next().map_or(0.0, |window| window.t_s);
    let plain = |window: &Window| Window {
        t_s: window.t_s - begin,
        response_heat: Heat::default(),
        end_to_end_heat: Heat::default(),
        ..window.clone()
    };
    measured.map(plain).collect()
}

/// Two sides and the choices of the user.
struct Pair<'a> {
    base: &'a SideRuns,
    change: &'a SideRuns,
    options: &'a CompareOptions,
    /// Choices that name nothing on any side.
    unmatched: &'a [String],
}

/// One figure of all runs of both sides, before it is compared.
struct Row {
    scope: String,
    like: Picked,
    decides: bool,
    base: Vec<Option<Observed>>,
    change: Vec<Option<Observed>>,
}

impl Pair<'_> {
    fn comparison(&self) -> Comparison {
        let setup = setup::differences(self.base, self.change, &self.options.ignore);
        let rows = self.rows();
        let deciding = rows.iter().filter(|row| row.decides).count().max(1);
        let criteria = Criteria {
            tolerance: self.options.tolerance,
            error: FALSE_ALARMS / deciding as f64,
        };
        let mut figures: Vec<ComparedFigure> =
            rows.into_iter().map(|row| row.compared(criteria)).collect();
        figures.sort_by_key(|figure| !figure.decides);
        let mut comparison = Comparison {
            verdict: Judgement::NotComparable,
            reasons: Vec::new(),
            base: side(self.base),
            change: side(self.change),
            tolerance: criteria.tolerance,
            confidence: 1.0 - criteria.error,
            setup,
            figures,
        };
        comparison.reasons = self.obstacles(&comparison);
        if comparison.reasons.is_empty() {
            let deciding = comparison.figures.iter().filter(|figure| figure.decides);
            // A figure that only one side knows leaves the question open.
            let findings = deciding.map(|of| of.finding.unwrap_or(Finding::Unclear));
            comparison.verdict = Judgement::of(findings);
            comparison.reasons = reasons(&comparison);
        }
        comparison
    }

    /// Reasons why nothing is compared.
    fn obstacles(&self, of: &Comparison) -> Vec<String> {
        let mut found = Vec::new();
        for (folder, why) in self.base.unread.iter().chain(&self.change.unread) {
            found.push(format!("{folder}: {why}"));
        }
        for side in [&of.base, &of.change] {
            if side.counted() == 0 {
                found.push(format!("{} has no run whose figures count", side.name));
            }
        }
        let blocking = of.setup.iter().filter(|one| one.blocks);
        let (find, blocking): (Vec<_>, Vec<_>) = blocking
            .map(|one| one.key.as_str())
            .partition(|key| *key == setup::FIND);
        if !find.is_empty() {
            found.push(
                "the capacities are not all in one dimension; search all of them with the same --find"
                    .to_owned(),
            );
        }
        if let Some(first) = blocking.first() {
            let more = match blocking.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            found.push(format!(
                "the scenarios differ in the load: {first}{more}; if that is on purpose, name the keys \
                 with --ignore"
            ));
        }
        if found.is_empty() {
            found.extend_from_slice(self.unmatched);
        }
        let is_decided = of.figures.iter().any(|figure| figure.decides);
        if found.is_empty() && !is_decided {
            found.push("no figure that decides is known on both sides".to_owned());
        }
        found
    }

    /// The figures of all runs, in the order in which the first run has them.
    fn rows(&self) -> Vec<Row> {
        let of = |side: &SideRuns| -> Vec<Vec<(String, Picked)>> {
            side.counted().map(SideRun::figures).collect()
        };
        let (base, change) = (of(self.base), of(self.change));
        let has_same_streams =
            base.first().map(|run| streams(run)) == change.first().map(|run| streams(run));
        let mut rows: Vec<Row> = Vec::new();
        for (scope, picked) in base.iter().chain(&change).flatten() {
            let is_known = |row: &Row| row.scope == *scope && row.like.name == picked.name;
            if rows.iter().any(is_known) {
                continue;
            }
            let values = |runs: &[Vec<(String, Picked)>]| -> Vec<Option<Observed>> {
                let find = |run: &Vec<(String, Picked)>| {
                    let mut all = run.iter();
                    let found = all.find(|(of, one)| of == scope && one.name == picked.name);
                    found.map(|(_, one)| one.observed.clone())
                };
                runs.iter().map(find).collect()
            };
            let row = Row {
                scope: scope.clone(),
                base: values(&base),
                change: values(&change),
                decides: self.decides(scope, picked, has_same_streams),
                like: picked.clone(),
            };
            // With other streams on one side only what both have is comparable.
            if has_same_streams || row.is_common() {
                rows.push(row);
            }
        }
        rows
    }

    /// Returns whether a figure decides: of the whole run if both sides have the same streams, else of each
    /// common stream.
    fn decides(&self, scope: &str, picked: &Picked, has_same_streams: bool) -> bool {
        let title = picked.title(scope);
        match self.options.decide.as_slice() {
            [] => picked.decides && (scope == RUN) == has_same_streams,
            names => names.iter().any(|name| {
                *name == title || (*name == picked.name && (scope == RUN) == has_same_streams)
            }),
        }
    }
}

/// The streams of a run, by its figures.
fn streams(figures: &[(String, Picked)]) -> Vec<String> {
    let mut scopes: Vec<String> = figures.iter().map(|(scope, _)| scope.clone()).collect();
    scopes.dedup();
    scopes.retain(|scope| scope != RUN);
    scopes
}

impl Row {
    /// True if both sides know the figure, of a single stream.
    fn is_common(&self) -> bool {
        let is_known = |side: &[Option<Observed>]| side.iter().any(Option::is_some);
        self.scope != RUN && is_known(&self.base) && is_known(&self.change)
    }

    fn compared(self, criteria: Criteria) -> ComparedFigure {
        let known = |side: &[Option<Observed>]| side.iter().flatten().cloned().collect::<Vec<_>>();
        let values = |side: &[Option<Observed>]| -> Vec<Option<f64>> {
            side.iter()
                .map(|run| run.as_ref().map(|of| of.value))
                .collect()
        };
        let (base, change) = (known(&self.base), known(&self.change));
        let note = missing(&base, &change);
        let distance = Compared {
            direction: self.like.direction,
            scale: self.like.scale,
            base,
            change,
        }
        .distance(criteria);
        let proposed = distance
            .and_then(|distance| distance.proposed)
            .map(|runs| format!("about {runs} runs a side would decide"));
        ComparedFigure {
            figure: self.like.name,
            scope: self.scope,
            unit: self.like.unit,
            less_is_better: self.like.direction == Direction::Lower,
            decides: self.decides,
            base_runs: values(&self.base),
            change_runs: values(&self.change),
            base: distance.map(|distance| distance.base),
            change: distance.map(|distance| distance.change),
            by: distance.map(|distance| distance.by),
            interval: distance.and_then(|distance| distance.interval),
            p: distance.and_then(|distance| distance.p),
            finding: distance.map(|distance| distance.finding),
            note: note.or(proposed),
        }
    }
}

/// A remark on a figure that a side does not know, or knows as a lower bound.
fn missing(base: &[Observed], change: &[Observed]) -> Option<String> {
    let is_bound = |side: &[Observed]| side.iter().any(|run| run.at_least);
    let note = match (base, change) {
        ([], _) => "not known in the base",
        (_, []) => "not known in the change",
        _ if is_bound(base) || is_bound(change) => "a lower bound: messages had no answer",
        _ => return None,
    };
    Some(note.to_owned())
}

/// Reasons why the figures of a run do not count.
fn left_out(run: &Report) -> Option<String> {
    let result = run.verdict.result;
    if let Some(unfinished) = &run.unfinished {
        return Some(unfinished.to_string());
    }
    if let Some(part) = run.part() {
        return Some(format!(
            "part {part} of a run; `muster merge` makes one result of them"
        ));
    }
    if run.is_searched() {
        return Some("a search decided on its load, so that it repeats no other run".to_owned());
    }
    match result {
        RunResult::Pass | RunResult::Fail => None,
        RunResult::Invalid | RunResult::None | RunResult::Part => {
            let rules: Vec<&str> = run
                .verdict
                .reasons()
                .map(|rule| rule.rule.as_str())
                .collect();
            Some(match rules.as_slice() {
                [] => format!("its result is {result}"),
                rules => format!("its result is {result}: {}", rules.join(", ")),
            })
        }
    }
}

fn side(of: &SideRuns) -> Side {
    let runs = of.runs.iter().map(|run| ComparedRun {
        folder: run.folder.clone(),
        run: run.report.run.clone(),
        started: run.report.started.clone(),
        result: run.report.verdict.result.name().to_owned(),
        left_out: run.left_out(),
    });
    Side {
        name: of.name.clone(),
        runs: runs.collect(),
    }
}

/// The grounds of a verdict on the figures.
fn reasons(of: &Comparison) -> Vec<String> {
    let with = |finding: Finding| {
        let all = of.figures.iter().filter(move |figure| {
            figure.decides && figure.finding.unwrap_or(Finding::Unclear) == finding
        });
        all.collect::<Vec<_>>()
    };
    let mut reasons = Vec::new();
    for finding in [Finding::Worse, Finding::Better, Finding::DiffersHere] {
        for figure in with(finding) {
            reasons.push(moved(figure));
        }
    }
    let is_of_these_runs = |finding| !with(finding).is_empty();
    if is_of_these_runs(Finding::DiffersHere) || is_of_these_runs(Finding::AlikeHere) {
        let words = match reasons.is_empty() {
            true => "no difference shows within these runs",
            false => "the sides differ within these runs",
        };
        reasons.insert(0, format!(
            "{words}; a verdict on the sides needs {REPETITIONS_MIN} runs a side: muster run --repeat {REPETITIONS_MIN}"
        ));
        return reasons;
    }
    let unclear = with(Finding::Unclear);
    if !unclear.is_empty() {
        let names: Vec<String> = unclear.iter().map(|figure| figure.title()).collect();
        reasons.push(format!(
            "unclear: {}; run more often, allow a larger --tolerance, or name what decides by --decide",
            names.join(", ")
        ));
    }
    if reasons.is_empty() {
        reasons.push(format!(
            "each figure that decides lies within {} % of the base",
            of.tolerance * 100.0
        ));
    }
    reasons
}

/// A figure that moved, in a sentence.
fn moved(figure: &ComparedFigure) -> String {
    let by = figure
        .by
        .map_or(String::new(), |by| figure.distance_in_words(by));
    let interval = match figure.interval {
        Some(_) => format!(", interval {}", figure.interval_in_words()),
        None => String::new(),
    };
    format!(
        "{} {}: {} to {} ({by}{interval})",
        figure.title(),
        figure.finding_in_words(),
        figure.in_words(figure.base),
        figure.in_words(figure.change),
    )
}
