//! `muster compare`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use muster_report::{CapacityReport, Compare, ReadError, Report, compare_html};
use muster_result::compare::{
    self, CompareOptions, PastResult, PastRun, SideRun, SideRuns, overlaid,
};

use muster_result::certificate::CERTIFICATE;

use crate::args::{CompareArgs, CompareFormat};
use crate::commands::report;
use crate::folder::{refuse_foreign, write_whole};
use crate::outcome;

/// Folders within a side's folder that are looked into for runs: those of several `--repeat`.
const DEPTH_MAX: u32 = 3;

/// Files of a comparison.
const WRITTEN: [&str; 3] = ["compare.json", "compare.md", "compare.html"];

/// The answer of a search in its folder.
const CAPACITY: &str = "capacity.json";

/// Runs of a side at most.
const RUNS_MAX: usize = 1_000;

/// Compares results; the exit code is the verdict.
pub(crate) fn compare(args: &CompareArgs) -> Result<u8> {
    let options = CompareOptions {
        muster: env!("CARGO_PKG_VERSION").to_owned(),
        tolerance: args.tolerance,
        ignore: args.ignore.clone(),
        decide: args.decide.clone(),
    };
    if let Some(folder) = &args.history {
        return history(folder, args.format, &options);
    }
    if let Some(out) = &args.out {
        refuse_foreign(out, |name| WRITTEN.contains(&name))?;
    }
    let sides = sides(args)?;
    let runs = sides.iter().flat_map(|side| &side.runs);
    let named = runs.map(|run| {
        let (report, folder) = (&run.report, run.folder.as_str());
        (report.run.as_str(), report.started.as_deref(), folder)
    });
    check_distinct(named)?;
    let compared = compare::compare(&sides, &options);
    if let Some(out) = &args.out {
        write(out, &compared, &sides)?;
    }
    outcome::say(&match args.format {
        CompareFormat::Text => compared.text(),
        CompareFormat::Markdown => compared.markdown(),
        CompareFormat::Html => compare_html(&compared, &overlaid(&sides)),
        CompareFormat::Json => compared.to_json(),
    });
    Ok(compared.verdict.exit_code())
}

/// Shows the results of a folder over time; the exit code is the verdict on the last ones.
fn history(folder: &Path, format: CompareFormat, options: &CompareOptions) -> Result<u8> {
    let name = folder.display().to_string();
    let mut results: Vec<PastResult> = Vec::new();
    for path in folders(&name, &[folder.to_owned()])? {
        let named = path.display().to_string();
        let result = of_result(&mut results, &path);
        match foreign_schema(&path)? {
            Some(why) => result.unread.push((named, why)),
            None => result.runs.push(PastRun::new(&side_run(&path)?, options)),
        }
    }
    let runs = results.iter().flat_map(|result| &result.runs);
    check_distinct(runs.map(|run| {
        (
            run.run.as_str(),
            run.started.as_deref(),
            run.folder.as_str(),
        )
    }))?;
    let unmatched = compare::unmatched_in_history(&results, options);
    if let Some(first) = unmatched.first() {
        bail!("compare {name}: {first}; name one that the results have");
    }
    let history = compare::history(&results, options);
    outcome::say(&match format {
        CompareFormat::Text => history.text(),
        CompareFormat::Json => history.to_json(),
        CompareFormat::Markdown | CompareFormat::Html => bail!(
            "show a history in this form: it has the forms text and json; name one of them with --format"
        ),
    });
    Ok(history.verdict.exit_code())
}

/// The result that a run belongs to: that of its `--repeat`, or its own.
fn of_result<'a>(results: &'a mut Vec<PastResult>, path: &Path) -> &'a mut PastResult {
    let parent = path
        .parent()
        .filter(|parent| parent.join("repeat.json").exists());
    let name = parent.unwrap_or(path).display().to_string();
    let at = results.iter().position(|result| result.name == name);
    let at = at.unwrap_or_else(|| {
        results.push(PastResult {
            name,
            ..PastResult::default()
        });
        results.len() - 1
    });
    &mut results[at]
}

/// Writes the comparison in each form that is read later.
fn write(out: &Path, compared: &Compare, sides: &[SideRuns]) -> Result<()> {
    fs::create_dir_all(out).with_context(|| {
        format!(
            "create {} (name a folder that you may write with --out)",
            out.display()
        )
    })?;
    let forms = [
        compared.to_json(),
        compared.markdown(),
        compare_html(compared, &overlaid(sides)),
    ];
    let mut files = WRITTEN.iter().zip(forms);
    files.try_for_each(|(name, text)| write_whole(&out.join(name), &text))
}

/// The sides, the base first.
fn sides(args: &CompareArgs) -> Result<Vec<SideRuns>> {
    if !args.a.is_empty() {
        return [("a", &args.a), ("b", &args.b)]
            .into_iter()
            .map(|(name, paths)| side(name.to_owned(), paths))
            .collect();
    }
    if args.sides.len() < 2 {
        bail!(
            "compare {}: name the side that is compared with it as well, as in `muster compare base change`",
            args.sides[0].display()
        );
    }
    let named = args.sides.iter();
    named
        .map(|path| side(path.display().to_string(), std::slice::from_ref(path)))
        .collect()
}

/// The folders of all runs at these paths.
fn folders(name: &str, paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for path in paths {
        let before = folders.len();
        find(path, DEPTH_MAX, &mut folders)?;
        if folders.len() == before {
            bail!(
                "compare {}: it holds no result; name the folder of a run, of a `--repeat`, or one that \
                 holds such folders",
                path.display()
            );
        }
    }
    if folders.len() > RUNS_MAX {
        bail!(
            "compare {name}: it has {} runs, at most {RUNS_MAX} are compared; name fewer",
            folders.len()
        );
    }
    Ok(folders)
}

fn side(name: String, paths: &[PathBuf]) -> Result<SideRuns> {
    let folders = folders(&name, paths)?;
    let mut side = SideRuns {
        name,
        ..SideRuns::default()
    };
    for folder in folders {
        let named = folder.display().to_string();
        match foreign_schema(&folder)? {
            Some(why) => side.unread.push((named, why)),
            None => side.runs.push(side_run(&folder)?),
        }
    }
    Ok(side)
}

/// Adds the results at a path: itself, or those in its folders.
fn find(path: &Path, depth: u32, into: &mut Vec<PathBuf>) -> Result<()> {
    let is_of_folder = [CERTIFICATE, CAPACITY]
        .iter()
        .any(|name| path.ends_with(name));
    if is_of_folder && path.is_file() {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        return find(folder.unwrap_or(Path::new(".")), depth, into);
    }
    if path.is_file()
        || ["result.json", "windows.bin"]
            .iter()
            .any(|name| path.join(name).exists())
    {
        into.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path)
        .with_context(|| format!("read {} (name the folder of a result)", path.display()))?;
    if depth == 0 {
        return Ok(());
    }
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.is_dir())
        .collect();
    // The runs of a `--repeat` are numbered.
    folders.sort_by_key(|folder| {
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        (name.parse::<u32>().unwrap_or(u32::MAX), name)
    });
    folders
        .iter()
        .try_for_each(|folder| find(folder, depth - 1, into))
}

/// The reason why a result is of a schema that this version does not read.
fn foreign_schema(path: &Path) -> Result<Option<String>> {
    let file = result_file(path);
    if !file.exists() {
        return Ok(None);
    }
    let json = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let value: Option<serde_json::Value> = serde_json::from_str(&json).ok();
    let schema = value
        .as_ref()
        .and_then(|value| value.get("schema")?.as_str());
    let foreign = schema.filter(|schema| *schema != muster_report::SCHEMA);
    Ok(foreign.map(|schema| ReadError::Schema(schema.to_owned()).to_string()))
}

fn result_file(path: &Path) -> PathBuf {
    match path.is_file() {
        true => path.to_owned(),
        false => path.join("result.json"),
    }
}

/// A result. Its windows are needed only if it has no `result.json`.
fn read(path: &Path) -> Result<Report> {
    let file = result_file(path);
    if !file.exists() {
        return report::read(path);
    }
    let json = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    Report::from_json(&json).with_context(|| format!("read {}", file.display()))
}

/// A run with all that is compared.
fn side_run(folder: &Path) -> Result<SideRun> {
    Ok(SideRun {
        folder: folder.display().to_string(),
        report: read(folder)?,
        answer: answer(folder)?,
    })
}

/// The answer of a search in its folder; none where the load was planned.
fn answer(folder: &Path) -> Result<Option<CapacityReport>> {
    let file = folder.join(CAPACITY);
    if !file.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let answer = CapacityReport::from_json(&text);
    answer
        .map(Some)
        .map_err(|why| anyhow!("read {}: {why}", file.display()))
}

/// One run counts once: a copy of it is no repetition. Each run is its id, its begin and its folder.
fn check_distinct<'a>(
    runs: impl Iterator<Item = (&'a str, Option<&'a str>, &'a str)>,
) -> Result<()> {
    let mut seen: Vec<(&str, Option<&str>, &str)> = Vec::new();
    for (id, started, folder) in runs {
        let before = seen.iter().find(|(of, at, _)| (*of, *at) == (id, started));
        if let Some((.., other)) = before {
            bail!("compare {other} with {folder}: both are run {id}; name different runs");
        }
        seen.push((id, started, folder));
    }
    Ok(())
}
