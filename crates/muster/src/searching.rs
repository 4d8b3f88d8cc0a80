//! A search for a capacity while its run goes on, and its journal, with which it goes on after a kill.
//!
//! The journal is a file of lines: the search, then each step as soon as it was judged. What a kill cuts off is at
//! most the last line, which is left out when it is read.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use muster_conduct::{Delivery, Standing, Steer};
use muster_model::{Dimension, figure};
use muster_plan::Plan;
use muster_report::CapacityStep;
use muster_result::certificate::{CERTIFICATE, CERTIFICATE_PAGE, SIGNATURE, differences, lists};
use muster_result::{CapacitySearch, Note, Replayed, SearchBegun, replay};
use serde::Serialize;

use crate::folder::is_being_written;
use crate::outcome;

/// The journal in the folder of a result.
pub(crate) const FILE: &str = "search.jsonl";
/// Files of a run in its folder; they move aside when the search goes on in another run.
const OF_RUN: [&str; 11] = [
    "windows.bin",
    "result.json",
    "report.html",
    "steps.csv",
    "gateway.json",
    "capacity.json",
    "capacity.html",
    "capacity.csv",
    CERTIFICATE,
    CERTIFICATE_PAGE,
    SIGNATURE,
];

/// Begin of the name of a folder that holds an earlier run of the search; its number follows.
const ASIDE: &str = "run-";

/// A search before its run: where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) begun: SearchBegun,
    /// Steps of earlier runs.
    pub(crate) earlier: Vec<CapacityStep>,
}

/// A search while its run goes on.
pub(crate) struct Searching {
    search: CapacitySearch,
    find: Dimension,
    journal: File,
}

impl Searching {
    /// Begins or goes on, in the folder of the result.
    pub(crate) fn begin(prepared: &Prepared, plan: &Plan, folder: &Path) -> Result<Self> {
        let Prepared { begun, earlier } = prepared.clone();
        let path = folder.join(FILE);
        let mut whole = line(&begun)?;
        for step in &earlier {
            whole += &line(step)?;
        }
        // Written anew: without a line that was cut off, and with the budget of this run.
        crate::folder::write_whole(&path, &whole)?;
        let journal = OpenOptions::new().append(true).open(&path);
        Ok(Self {
            journal: journal.with_context(|| format!("write {}", path.display()))?,
            find: begun.find,
            search: CapacitySearch::new(&begun, plan.clone(), earlier)?,
        })
    }

    pub(crate) fn search(&mut self) -> &mut CapacitySearch {
        &mut self.search
    }

    pub(crate) fn into_search(self) -> CapacitySearch {
        self.search
    }

    /// Decides on the load. Each step is kept and shown once it was judged; `record` gets the judgement before that.
    pub(crate) fn steer(
        &mut self,
        standing: &Standing,
        delivery: &Delivery,
        record: &mut dyn FnMut(&Note),
    ) -> Option<Steer> {
        let known = self.search.held().len();
        let wanted = self.search.turn(standing, delivery);
        if let Some(judgement) = self.search.take_judgement() {
            record(&Note::Judged(judgement));
        }
        let wanted = wanted.and_then(|wanted| self.keep(known).map(|()| wanted));
        match wanted {
            Ok(steer) => steer,
            Err(error) => {
                outcome::complain(&error);
                Some(Steer::End)
            }
        }
    }

    /// Keeps the steps from this place on, so that they are there whatever happens next.
    fn keep(&mut self, from: usize) -> Result<()> {
        for step in self.search.held().iter().skip(from) {
            let line = line(step)?;
            let written = self.journal.write_all(line.as_bytes());
            let written = written.and_then(|()| self.journal.sync_data());
            written.with_context(|| format!("write {FILE}"))?;
            let known = self.search.known_after(step);
            outcome::say(&step.line(self.find, known.as_ref(), self.search.left()));
        }
        Ok(())
    }
}

/// Replays the runs of the search in a folder: the search, and the steps that their windows give.
///
/// # Errors
/// If the journal of a run states a search or a step that does not follow from its windows.
pub(crate) fn replayed(folder: &Path) -> Result<Replayed> {
    let mut earlier = Vec::new();
    for run in runs_before(folder)? {
        let mut replayed = follows(&run, &earlier)?;
        // A kill may have come between the record of a judgement and its line.
        let kept = journal_in(&run)?.earlier.len();
        if !replayed.has_ended && replayed.steps.len() == kept + 1 {
            replayed.steps.truncate(kept);
        }
        check_steps(&run, &replayed)?;
        earlier = replayed.steps;
    }
    let replayed = follows(folder, &earlier)?;
    check_steps(folder, &replayed)?;
    Ok(replayed)
}

/// The folders with the runs of a search before the one in this folder, in order.
fn runs_before(folder: &Path) -> Result<Vec<PathBuf>> {
    let own = folder
        .canonicalize()
        .with_context(|| format!("read {}", folder.display()))?;
    let name = own.file_name().unwrap_or_default().to_string_lossy();
    let (search, number) = match (number_of_aside(&name), own.parent()) {
        (Some(number), Some(parent)) if parent.join(FILE).exists() => (parent, number),
        _ => (&*own, u32::MAX),
    };
    let numbers = 1..number;
    let runs = numbers.map(|number| search.join(format!("{ASIDE}{number}")));
    Ok(runs.take_while(|run| run.exists()).collect())
}

/// Returns whether the search in a folder is that of a plan with this hash.
pub(crate) fn is_of_plan(folder: &Path, plan: &str) -> bool {
    journal_in(folder).is_ok_and(|journal| journal.begun.plan == plan)
}

/// The journal of a folder.
fn journal_in(folder: &Path) -> Result<Prepared> {
    let path = folder.join(FILE);
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    parse(&text).map_err(|why| anyhow!("{}: {why}", path.display()))
}

/// The steps that the windows of a run give, whose search has to be that of the journal.
fn follows(run: &Path, earlier: &[CapacityStep]) -> Result<Replayed> {
    let path = run.join("windows.bin");
    let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    let replayed = replay(&bytes, earlier);
    let replayed = replayed.with_context(|| format!("replay {}", path.display()))?;
    let stated = journal_in(run)?.begun;
    let faults = differences("line 1", &stated, &replayed.begun);
    refuse(run, &faults)?;
    Ok(replayed)
}

/// Refuses a journal with other steps than the windows give.
fn check_steps(run: &Path, replayed: &Replayed) -> Result<()> {
    let (stated, own) = (journal_in(run)?.earlier, &replayed.steps);
    if stated.len() != own.len() {
        bail!(
            "{} has {}, and the windows of its runs give {}",
            run.join(FILE).display(),
            figure::number_of(stated.len() as u64, "step"),
            own.len()
        );
    }
    let steps = (2..).zip(stated.iter().zip(own));
    let differing = steps.flat_map(|(line, (stated, own))| {
        differences(&format!("line {line}: step {}", own.number), stated, own)
    });
    refuse(run, &differing.collect::<Vec<_>>())
}

fn refuse(run: &Path, faults: &[String]) -> Result<()> {
    match faults.first() {
        Some(first) => bail!("{}: {first}", run.join(FILE).display()),
        None => Ok(()),
    }
}

fn line(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value)? + "\n")
}

/// Reads the search of a folder.
///
/// # Errors
/// If there is none, or a run still holds its steps.
pub(crate) fn read(folder: &Path) -> Result<Prepared> {
    let path = folder.join(FILE);
    if !path.exists() {
        bail!(
            "go on with the search in {}: it holds none; name the folder that `muster capacity` wrote into, or begin \
             one with --out",
            folder.display()
        );
    }
    if is_being_written(&folder.join("windows.bin")) {
        bail!(
            "go on with the search in {}: it is under way; wait for its end, or end its process",
            folder.display()
        );
    }
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let earlier = (1..).map(|number| folder.join(format!("{ASIDE}{number}")));
    let earlier = earlier.take_while(|path| path.exists());
    let read = parse(&text).and_then(|prepared| {
        let mut runs = std::iter::once(folder.to_owned()).chain(earlier);
        runs.try_for_each(|run| check_against(&run, &prepared.earlier))?;
        Ok(prepared)
    });
    read.map_err(|why| {
        anyhow!(
            "read {}: {why}; begin another search with --out",
            path.display()
        )
    })
}

/// Checks steps against the journal that a run of the search left in its folder, and that against its certificate.
fn check_against(run: &Path, steps: &[CapacityStep]) -> Result<(), String> {
    let read = |name: &str| fs::read(run.join(name)).ok();
    let Some(journal) = read(FILE) else {
        return Ok(());
    };
    if read(CERTIFICATE).is_some_and(|certificate| !lists(&certificate, FILE, &journal)) {
        return Err(format!(
            "{} is not the file that {CERTIFICATE} lists",
            run.join(FILE).display()
        ));
    }
    let left = parse(&String::from_utf8_lossy(&journal))?.earlier;
    let differing = (0..left.len()).find(|at| steps.get(*at) != left.get(*at));
    differing.map_or(Ok(()), |at| {
        Err(format!(
            "line {}: the step is another one in {}",
            at + 2,
            run.join(FILE).display()
        ))
    })
}

/// The search that a journal holds; a last line without an end is left out.
pub(crate) fn parse(text: &str) -> Result<Prepared, String> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = (1..).zip(whole.lines());
    let (_, first) = lines.next().ok_or("it has no whole line")?;
    let begun = serde_json::from_str::<SearchBegun>(first);
    let begun = begun.map_err(|error| format!("line 1: {error}"))?;
    begun.check()?;
    let steps = lines.map(|(number, line)| {
        let step = serde_json::from_str(line).map_err(|error| error.to_string());
        let step = step.and_then(|step: CapacityStep| match step.contradiction() {
            Some(why) => Err(why),
            None => Ok(step),
        });
        step.map_err(|why| format!("line {number}: {why}"))
    });
    Ok(Prepared {
        begun,
        earlier: steps.collect::<Result<_, String>>()?,
    })
}

/// Returns whether a folder of this name holds an earlier run of a search.
pub(crate) fn is_aside(name: &str) -> bool {
    number_of_aside(name).is_some()
}

/// The number of an earlier run by the name of its folder.
fn number_of_aside(name: &str) -> Option<u32> {
    name.strip_prefix(ASIDE)?.parse().ok()
}

/// Moves the files of an earlier run into a folder `run-N`. The journal goes on, and stays there as that run left
/// it, so that its certificate still holds.
pub(crate) fn set_aside(folder: &Path) -> Result<()> {
    let free = (1_u32..).map(|number| folder.join(format!("{ASIDE}{number}")));
    let aside: PathBuf = free
        .into_iter()
        .find(|path| !path.exists())
        .context("find a free name")?;
    let there: Vec<_> = OF_RUN
        .iter()
        .filter(|name| folder.join(name).exists())
        .collect();
    if there.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(&aside).with_context(|| format!("create {}", aside.display()))?;
    fs::copy(folder.join(FILE), aside.join(FILE))
        .with_context(|| format!("copy {FILE} into {}", aside.display()))?;
    for name in there {
        fs::rename(folder.join(name), aside.join(name))
            .with_context(|| format!("move {name} into {}", aside.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use muster_judge::capacity::{Interval, JointSearch, SearchEnd, SearchSpec, Turn};
    use muster_model::Micros;
    use muster_report::{OutcomeOfSet, Step, outcome_of};
    use muster_result::{sha256, standing_after};
    use serde_json::{Value, json};

    use super::*;

    /// Sets of SLOs, and the rates up to which a target meets them; one set has no name.
    const ONE: [(&str, f64); 1] = [("", 2_000.0)];
    const TWO: [(&str, f64); 2] = [("gold", 1_000.0), ("silver", 2_000.0)];

    fn spec() -> SearchSpec {
        let (short, long) = SearchSpec::lengths(Micros::from_millis(250));
        SearchSpec {
            first: 200.0,
            most: 200_000.0,
            width: 0.1,
            short,
            long,
            load_seconds: 0.0,
            budget: Micros::from_secs(1_200),
        }
    }

    fn begun(limits: &[(&str, f64)]) -> SearchBegun {
        let named = limits.iter().filter(|(set, _)| !set.is_empty());
        let mut begun = SearchBegun::new("plan".to_owned(), Dimension::Rate, spec());
        begun.sets = named.map(|(set, _)| (*set).to_owned()).collect();
        begun
    }

    /// A rule of a set that is met, or broken.
    fn rule(set: &str, is_met: bool) -> Value {
        let time = |us| json!({ "us": us });
        let (result, consequence) = match is_met {
            true => ("pass", "none"),
            false => ("fail", "fails"),
        };
        let sets: Vec<&str> = Some(set)
            .filter(|set| !set.is_empty())
            .into_iter()
            .collect();
        json!({
            "rule": "response p99", "scope": "run", "except": [], "kind": "slo", "named": true, "result": result,
            "consequence": consequence, "observed": time(if is_met { 10 } else { 90 }), "lower": null, "sets": sets,
            "bound": time(50), "since_s": null, "evidence": "", "note": null, "reason": null, "remedy": null,
        })
    }

    /// A step at a rate, judged by the one SLO of each set.
    fn figures(rate: f64, limits: &[(&str, f64)]) -> Step {
        let rules = limits.iter().map(|(set, limit)| rule(set, rate < *limit));
        let rules = rules.map(|rule| serde_json::from_value(rule).expect("a rule"));
        let result = match limits.iter().all(|(_, limit)| rate < *limit) {
            true => "pass",
            false => "fail",
        };
        Step {
            result: serde_json::from_value(json!(result)).expect("a result"),
            rules: rules.collect(),
            ..Step::default()
        }
    }

    /// A search of a target with a sharp limit for each set, and its journal.
    fn whole_search(limits: &[(&str, f64)]) -> (Vec<CapacityStep>, String) {
        let begun = begun(limits);
        let mut search = JointSearch::new(&spec(), limits.len()).expect("a search");
        let (mut steps, mut journal) = (Vec::new(), line(&begun).expect("JSON"));
        while let Some(Turn { step, set }) = search.next() {
            let figures = figures(step.rate, limits);
            let name = |set: usize| begun.sets.get(set).cloned();
            let outcome = |set| outcome_of(figures.result_by(name(set).as_deref()));
            let others = search.open().filter(|other| *other != set);
            let others = others.map(|other| OutcomeOfSet {
                set: name(other).unwrap_or_default(),
                outcome: outcome(other),
                result_at_end: None,
                margin: None,
            });
            let held = CapacityStep {
                number: steps.len() as u64 + 1,
                session: 1,
                load: step.rate,
                hold: step.hold,
                phase: step.phase,
                set: name(set),
                outcome: outcome(set),
                has_recovered: true,
                took_s: step.hold.as_secs_f64() + 2.5,
                result_at_end: None,
                others: others.collect(),
                sent_to: std::collections::BTreeMap::new(),
                margin: None,
                figures,
            };
            held.record_in(&begun.sets, &mut search);
            journal += &line(&held).expect("JSON");
            steps.push(held);
        }
        (steps, journal)
    }

    #[test]
    fn a_kill_after_or_amid_the_line_of_any_step_loses_no_whole_step() {
        let (steps, journal) = whole_search(&TWO);
        let ends: Vec<usize> = journal.match_indices('\n').map(|(at, _)| at + 1).collect();
        for (whole, end) in ends.iter().enumerate() {
            let next = ends.get(whole + 1).copied().unwrap_or(*end + 1);
            for cut in [*end, end + 1, usize::midpoint(*end, next), next - 1] {
                let read = parse(&journal[..cut.min(journal.len())]).expect("a search");
                assert_eq!(read.earlier, steps[..whole], "cut at {cut}");
            }
        }
        assert!(parse(&journal[..ends[0] - 1]).is_err(), "no whole line");
    }

    #[test]
    fn a_search_that_goes_on_ends_with_the_answer_of_the_whole() {
        for limits in [&ONE[..], &TWO[..]] {
            let (steps, _) = whole_search(limits);
            let standings =
                |held| standing_after(&begun(limits), &steps[..held]).expect("searches");
            for held in 0..steps.len() {
                assert!(standings(held).iter().any(|of| of.end.is_none()));
            }
            for (of, (_, limit)) in standings(steps.len()).iter().zip(limits) {
                let Some(SearchEnd::Found(found)) = &of.end else {
                    panic!("{of:?}");
                };
                let Interval { lower, upper, .. } = found.interval;
                assert!(lower <= *limit && *limit <= upper, "{of:?}");
            }
        }
    }

    #[test]
    fn an_earlier_run_moves_aside_with_its_answer_and_its_certificate() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        set_aside(path).expect("nothing moves");
        assert!(!path.join("run-1").exists());
        for name in OF_RUN.iter().chain([&FILE]) {
            fs::write(path.join(name), name).expect("it is written");
        }
        set_aside(path).expect("it moves");
        let names = |path: &Path| {
            let entries = fs::read_dir(path).expect("a folder");
            let names = entries.map(|entry| entry.expect("an entry").file_name());
            let mut names: Vec<_> = names
                .map(|name| name.to_string_lossy().into_owned())
                .collect();
            names.sort_unstable();
            names
        };
        assert_eq!(names(path), ["run-1", FILE]);
        assert_eq!(names(&path.join("run-1")).len(), OF_RUN.len() + 1);
        assert!(is_aside("run-1") && !is_aside("run-x") && !is_aside("other"));
    }

    /// A forger who turns a failure into a pass has to change all that it follows from.
    #[test]
    fn a_step_that_does_not_follow_from_its_figures_is_refused_with_its_line() {
        let (_, journal) = whole_search(&ONE);
        let at = journal.lines().position(|line| line.contains("\"fails\""));
        let number = at.expect("a step that failed") + 1;
        let mut forged: Vec<String> = journal.lines().map(str::to_owned).collect();
        for (from, to, why) in [
            (
                "\"outcome\":\"fail\"",
                "\"outcome\":\"pass\"",
                "its rules give `fail`",
            ),
            (
                "\"result\":\"fail\"",
                "\"result\":\"pass\"",
                "its rules give `fail`",
            ),
            ("\"fails\"", "\"none\"", "`pass` at 90 us, at most 50 us"),
        ] {
            let line = &mut forged[number - 1];
            assert!(line.contains(from), "{line}");
            *line = line.replace(from, to);
            let refused = parse(&(forged.join("\n") + "\n")).unwrap_err();
            assert!(
                refused.contains(&format!("line {number}: step ")),
                "{refused}"
            );
            assert!(refused.contains(why), "{refused}");
        }
    }

    #[test]
    fn an_outcome_by_a_set_that_the_step_was_not_held_for_follows_from_the_rules_of_that_set() {
        let (steps, journal) = whole_search(&TWO);
        let differs =
            |step: &&CapacityStep| step.others.iter().any(|by| by.outcome != step.outcome);
        let step = steps.iter().find(differs).expect("the limits differ");
        let forged = CapacityStep {
            others: vec![OutcomeOfSet {
                outcome: step.outcome,
                ..step.others[0].clone()
            }],
            ..step.clone()
        };
        let [whole, forged] = [step, &forged].map(|step| line(step).expect("JSON"));
        let refused = parse(&journal.replace(&whole, &forged)).unwrap_err();
        assert!(refused.contains("its rules give"), "{refused}");
    }

    #[test]
    fn a_journal_that_an_earlier_run_left_otherwise_is_refused() {
        let (_, journal) = whole_search(&ONE);
        let folder = tempfile::tempdir().expect("a folder");
        let (own, aside) = (folder.path().join(FILE), folder.path().join("run-1"));
        fs::create_dir(&aside).expect("a folder");
        let write = |text: &str| fs::write(&own, text).expect("it is written");
        write(&journal);
        fs::write(aside.join(FILE), &journal).expect("it is written");
        assert!(read(folder.path()).is_ok());
        let refused = |why: &str| {
            let said = read(folder.path()).expect_err("it was forged").to_string();
            assert!(said.contains(why), "{said}");
        };
        write(&journal.replacen("\"took_s\":", "\"took_s\":1", 1));
        refused("line 2: the step is another one in");
        let digest = sha256(b"another journal");
        let listed = json!({ "files": { FILE: { "sha256": digest, "bytes": 15 } } });
        write(&journal);
        fs::write(folder.path().join(CERTIFICATE), listed.to_string()).expect("it is written");
        refused("is not the file that certificate.json lists");
    }

    #[test]
    fn a_journal_of_another_form_is_refused_by_name() {
        let (_, journal) = whole_search(&ONE);
        let why = parse(&journal.replace("muster-search/1", "muster-search/9")).unwrap_err();
        assert!(why.contains("muster-search/9") && why.contains("muster-search/1"));
    }
}
