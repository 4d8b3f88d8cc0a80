//! The results of a folder over time.

use muster_judge::compare::{
    Course, Criteria, FALSE_ALARMS, Finding, HISTORY_MIN, Judgement, Series,
};
use muster_report::{
    HISTORY_SCHEMA, History, HistoryChange, HistoryCourse, HistoryFigure, HistoryResult,
};

use super::figures::Picked;
use super::{CompareOptions, RUN, SideRun, setup, unmatched_in};

/// A run of the past: only what a history needs of it.
#[derive(Debug)]
pub struct PastRun {
    /// Id of the run.
    pub run: String,
    /// Wall clock of its begin, if known.
    pub started: Option<String>,
    /// Its folder.
    pub folder: String,
    name: String,
    /// The reason why its figures do not count, if so.
    left_out: Option<String>,
    /// Its load as text.
    load: String,
    /// The keys of `--ignore` that its scenario has.
    ignored: Vec<String>,
    figures: Vec<Picked>,
}

/// A result of the past: a run, or the runs of one `--repeat`.
#[derive(Debug, Default)]
pub struct PastResult {
    /// Its folder.
    pub name: String,
    /// Its runs.
    pub runs: Vec<PastRun>,
    /// The folder of each run that this version cannot read, and why.
    pub unread: Vec<(String, String)>,
}

impl PastRun {
    /// The figures of a run over all streams.
    pub fn new(of: &SideRun, options: &CompareOptions) -> Self {
        let run = &of.report;
        let all = of.figures().into_iter().filter(|(scope, _)| scope == RUN);
        let figures = all.map(|(_, mut picked)| {
            picked.observed.windows = Vec::new();
            picked
        });
        Self {
            run: run.run.clone(),
            started: run.started.clone(),
            folder: of.folder.clone(),
            name: run.name.clone(),
            left_out: of.left_out(),
            load: setup::load(of, &options.ignore),
            ignored: options
                .ignore
                .iter()
                .filter(|key| setup::has(run, key))
                .cloned()
                .collect(),
            figures: figures.collect(),
        }
    }
}

/// One point of a history: the runs of one folder that count, which are no independent results.
struct Entry<'a> {
    folder: &'a str,
    started: &'a str,
    runs: Vec<&'a PastRun>,
}

impl Entry<'_> {
    /// The figure of this name of each run that knows it.
    fn figures(&self, name: &str) -> Vec<&Picked> {
        let all = self.runs.iter().flat_map(|run| &run.figures);
        all.filter(|one| one.name == name).collect()
    }
}

/// A sentence for each choice of the user that no run of the past has.
pub fn unmatched_in_history(results: &[PastResult], options: &CompareOptions) -> Vec<String> {
    let runs = || results.iter().flat_map(|result| &result.runs);
    let has_figure = |name: &str| runs().any(|run| run.figures.iter().any(|of| of.name == name));
    let has_key = |key: &str| runs().any(|run| run.ignored.iter().any(|one| one == key));
    unmatched_in(options, has_figure, has_key)
}

/// The course of each load among the results.
pub fn history(results: &[PastResult], options: &CompareOptions) -> History {
    let mut left = Vec::new();
    let mut loads: Vec<(&str, Vec<Entry<'_>>)> = Vec::new();
    for result in results {
        let unread = result.unread.iter();
        left.extend(unread.map(|(folder, why)| format!("{folder}: {why}")));
        let mut runs = Vec::new();
        for run in &result.runs {
            match &run.left_out {
                Some(why) => left.push(format!("{}: {why}", run.folder)),
                None => runs.push(run),
            }
        }
        let Some(first) = runs.first() else { continue };
        let load = first.load.as_str();
        let entry = Entry {
            folder: &result.name,
            started: first.started.as_deref().unwrap_or_default(),
            runs,
        };
        match loads.iter_mut().find(|(of, _)| *of == load) {
            Some((_, entries)) => entries.push(entry),
            None => loads.push((load, vec![entry])),
        }
    }
    let courses: Vec<HistoryCourse> = loads
        .into_iter()
        .map(|(_, mut entries)| {
            // RFC 3339 in UTC sorts by time.
            entries.sort_by_key(|entry| entry.started);
            course(&entries, options)
        })
        .collect();
    let verdicts = courses.iter().map(|course| course.verdict);
    History {
        schema: HISTORY_SCHEMA.to_owned(),
        muster: options.muster.clone(),
        verdict: verdicts
            .reduce(Judgement::or_worse)
            .unwrap_or(Judgement::NotComparable),
        tolerance: options.tolerance,
        courses,
        left_out: left,
    }
}

fn course(entries: &[Entry<'_>], options: &CompareOptions) -> HistoryCourse {
    let mut known: Vec<&Picked> = Vec::new();
    let runs = entries.iter().flat_map(|entry| &entry.runs);
    for picked in runs.flat_map(|run| &run.figures) {
        if !known.iter().any(|one| one.name == picked.name) {
            known.push(picked);
        }
    }
    let decides = |picked: &Picked| match options.decide.as_slice() {
        [] => picked.decides,
        names => names.contains(&picked.name),
    };
    let deciding = known.iter().filter(|picked| decides(picked)).count().max(1);
    let criteria = Criteria {
        tolerance: options.tolerance,
        error: FALSE_ALARMS / deciding as f64,
    };
    let mut all: Vec<HistoryFigure> = known
        .into_iter()
        .map(|like| figure(like, decides(like), entries, criteria))
        .collect();
    all.sort_by_key(|figure| !figure.decides);
    let findings = all.iter().filter(|of| of.decides).map(|of| of.finding);
    let verdict = match entries.len() < HISTORY_MIN {
        true => Judgement::NotComparable,
        false => Judgement::of(findings),
    };
    HistoryCourse {
        name: entries[0].runs[0].name.clone(),
        verdict,
        results: entries
            .iter()
            .map(|entry| HistoryResult {
                folder: entry.folder.to_owned(),
                started: entry.started.to_owned(),
                runs: entry.runs.len(),
            })
            .collect(),
        figures: all,
    }
}

fn figure(
    like: &Picked,
    decides: bool,
    entries: &[Entry<'_>],
    criteria: Criteria,
) -> HistoryFigure {
    let value = |entry: &Entry<'_>| {
        let figures = entry.figures(&like.name).into_iter();
        median(figures.map(|one| one.observed.value).collect())
    };
    let values: Vec<Option<f64>> = entries.iter().map(value).collect();
    // The true value behind a lower bound may make another course.
    let has_bound = entries.iter().any(|entry| {
        let mut figures = entry.figures(&like.name).into_iter();
        figures.any(|one| one.observed.at_least)
    });
    let course = match has_bound {
        true => Course::default(),
        false => Series {
            direction: like.direction,
            scale: like.scale,
            values: values
                .iter()
                .map(|value| value.unwrap_or(f64::NAN))
                .collect(),
        }
        .course(criteria),
    };
    let is_long = entries.len() >= HISTORY_MIN;
    HistoryFigure {
        figure: like.name.clone(),
        unit: like.unit,
        decides,
        values,
        finding: if is_long && !has_bound {
            course.finding()
        } else {
            Finding::Unclear
        },
        drift: course.drift.map(|drift| drift.by),
        drift_p: course.drift.map(|drift| drift.p),
        changes: course
            .changes
            .into_iter()
            .map(|change| HistoryChange {
                at: change.at,
                folder: entries[change.at].folder.to_owned(),
                before: change.before,
                after: change.after,
                by: change.by,
                p: change.p,
                finding: change.finding,
            })
            .collect(),
    }
}

/// The middle value; of an even number the lower of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied()
}
