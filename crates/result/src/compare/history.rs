//! The results of a folder over time.

use muster_judge::compare::{Criteria, FALSE_ALARMS, Finding, HISTORY_MIN, Judgement, Series};
use muster_report::{
    HISTORY_SCHEMA, History, HistoryChange, HistoryCourse, HistoryFigure, HistoryResult, Report,
};

use super::figures::{Picked, ofs};
use super::{CompareOptions, RUN, SideRuns, left_out, setup};

/// One point of a history: the runs of one folder that count, which are no independent results.
struct Entry<'a> {
    folder: &'a str,
    started: &'a str,
    runs: Vec<&'a Report>,
}

/// The course of each load among the results; each of `results` is a run, or the runs of one `--repeat`.
pub fn history(results: &[SideRuns], options: &CompareOptions) -> History {
    let mut left = Vec::new();
    let mut loads: Vec<(String, Vec<Entry<'_>>)> = Vec::new();
    for result in results {
        left.extend(
            result
                .unread
                .iter()
                .map(|(folder, why)| format!("{folder}: {why}")),
        );
        let mut runs = Vec::new();
        for (folder, run) in &result.runs {
            match left_out(run) {
                Some(why) => left.push(format!("{folder}: {why}")),
                None => runs.push(run),
            }
        }
        let Some(first) = runs.first() else { continue };
        let load = setup::load(first, &options.ignore);
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
    let figures: Vec<Vec<Vec<Picked>>> = entries
        .iter()
        .map(|entry| entry.runs.iter().map(|run| of_run(run)).collect())
        .collect();
    let mut known: Vec<&Picked> = Vec::new();
    for picked in figures.iter().flatten().flatten() {
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
        .map(|like| figure(like, decides(like), &figures, entries, criteria))
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

/// The figures of a run over all streams.
fn of_run(run: &Report) -> Vec<Picked> {
    let all = ofs(run).into_iter().filter(|(scope, _)| scope == RUN);
    all.map(|(_, picked)| picked).collect()
}

fn figure(
    like: &Picked,
    decides: bool,
    figures: &[Vec<Vec<Picked>>],
    entries: &[Entry<'_>],
    criteria: Criteria,
) -> HistoryFigure {
    let value = |runs: &Vec<Vec<Picked>>| {
        let found = runs.iter().flatten().filter(|one| one.name == like.name);
        median(found.map(|one| one.observed.value).collect())
    };
    let values: Vec<Option<f64>> = figures.iter().map(value).collect();
    let course = Series {
        direction: like.direction,
        scale: like.scale,
        values: values
            .iter()
            .map(|value| value.unwrap_or(f64::NAN))
            .collect(),
    }
    .course(criteria);
    let is_long = entries.len() >= HISTORY_MIN;
    HistoryFigure {
        figure: like.name.clone(),
        unit: like.unit,
        decides,
        values,
        finding: if is_long {
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
