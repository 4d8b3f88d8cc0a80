//! The whole way from text to plan.

use crate::build::build;
use crate::check::check;
use crate::defaults::fill;
use crate::environment::expand;
use crate::overrides::{Overrides, apply};
use crate::problem::Problems;
use crate::reader::Reader;
use crate::resolved::{resolved, spelt_out};
use crate::source::Sources;
use crate::tree;
use crate::view::{Context, View};
use muster_plan::Plan;
use muster_plan::Problem;

/// A scenario as text.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The file's name, as it is shown in problems.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// Reads a scenario and makes a plan of it.
///
/// # Errors
/// Everything that is wrong, in the order of the file: first what breaks the language, and, if
/// nothing does, what cannot be run.
pub fn parse(
    source: Source<'_>,
    overrides: &Overrides,
    reader: &dyn Reader,
) -> Result<Plan, Problems> {
    let mut sources = Sources::new(source.name, source.text).with(overrides);
    let mut root = tree::read(&sources, 0).map_err(|problem| Problems(vec![*problem]))?;
    refuse(apply(&mut root, overrides, &sources))?;
    sources.hide(spelt_out(&root));
    refuse(expand(&mut root, &sources, reader))?;
    let findings = check(&sources, &root, true);
    refuse([findings.wrong, findings.not_yet].concat())?;
    refuse(findings.strays)?;
    fill(&mut root);
    let context = Context::new(&sources, reader);
    let plan = build(&View::new(&context, &root));
    let (problems, warnings) = context.into_findings();
    refuse(problems)?;
    let resolved = resolved(&root).to_string();
    match plan {
        Some(plan) => Ok(Plan {
            resolved,
            warnings,
            ..plan
        }),
        None => Err(Problems(vec![unexplained(&sources)])),
    }
}

/// Checks a scenario against the language alone: no plan is made and no file is opened. Returns the
/// uses of keys and words that are not yet built.
///
/// # Errors
/// Everything that is not of the language.
pub fn not_yet(source: Source<'_>) -> Result<Vec<Problem>, Problems> {
    let sources = Sources::new(source.name, source.text);
    let root = tree::read(&sources, 0).map_err(|problem| Problems(vec![*problem]))?;
    let findings = check(&sources, &root, false);
    refuse(findings.wrong)?;
    Ok(findings.not_yet)
}

fn refuse(mut problems: Vec<Problem>) -> Result<(), Problems> {
    if problems.is_empty() {
        return Ok(());
    }
    problems.sort_by(|a, b| (&a.file, a.line, a.column).cmp(&(&b.file, b.line, b.column)));
    Err(Problems(problems))
}

/// A plan that cannot be built has a reason; one that is not said is a fault of this crate.
fn unexplained(sources: &Sources) -> Problem {
    let help = "please report it with this file";
    let what = "the scenario cannot be read, and the reason is not known";
    sources.problem(crate::source::Place::start(0), "", what, help)
}
