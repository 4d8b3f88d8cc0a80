//! Planted faults: small patches, each with the test that must fail while it is applied.
//!
//! A run checks out the last commit below the target folder, plants one fault after the other there
//! and runs its test. It never touches the working tree.

mod fault;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Args;

pub use fault::{FOLDER, Fault};
use tree::{End, Tree};

/// Selection of faults.
#[derive(Debug, Args)]
pub struct Options {
    /// Names of faults, or beginnings of names; without one all faults.
    pub names: Vec<String>,
}

/// Verdict on one fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Killed,
    Survived,
    DoesNotApply,
    DoesNotCompile,
    NeverEnds,
    FailsWithoutIt,
}

impl Verdict {
    const fn words(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Survived => "SURVIVED",
            Self::DoesNotApply => "does not apply",
            Self::DoesNotCompile => "does not compile",
            Self::NeverEnds => "never ends",
            Self::FailsWithoutIt => "fails without it",
        }
    }

    /// Remedy of a fault that was not killed.
    const fn remedy(self) -> &'static str {
        match self {
            Self::Killed => "",
            Self::Survived => {
                "no test of this command noticed it: write one, or name the one that does"
            }
            Self::DoesNotApply | Self::DoesNotCompile => {
                "the code has changed: port the patch (CONTRIBUTING.md, \"Planted faults\")"
            }
            Self::NeverEnds => "choose a fault that fails a test in time",
            Self::FailsWithoutIt => {
                "the command fails on the last commit as it is: repair that first"
            }
        }
    }
}

/// Plants the faults that are asked for, one after the other. Whether all were killed.
///
/// # Errors
/// If a patch cannot be read, no fault has a name that was asked for, or git or cargo cannot run.
pub fn run(root: &Path, options: &Options, out: &mut dyn Write) -> Result<bool> {
    let faults = chosen(Fault::all(root)?, &options.names)?;
    let tree = Tree::of_last_commit(root)?;
    let unsound = unsound_commands(&tree, &faults, out)?;
    let mut killed = 0;
    for fault in &faults {
        let began = now();
        let (verdict, said) = plant(&tree, fault, &unsound)?;
        let (words, seconds) = (verdict.words(), began.elapsed().as_secs());
        writeln!(out, "{words:<16} {seconds:>4} s  {}", fault.name)?;
        if verdict == Verdict::Killed {
            killed += 1;
        } else {
            writeln!(out, "  {}\n  {}", fault.sentence, fault.command())?;
            writeln!(out, "  {}", verdict.remedy())?;
            said.lines()
                .try_for_each(|line| writeln!(out, "  | {line}"))?;
        }
        out.flush()?;
    }
    writeln!(out, "{killed} of {} faults killed", faults.len())?;
    Ok(killed == faults.len())
}

/// The faults whose names begin with one of `names`; all where there is none.
fn chosen(faults: Vec<Fault>, names: &[String]) -> Result<Vec<Fault>> {
    for name in names {
        if !faults.iter().any(|fault| fault.name.starts_with(name)) {
            bail!("no fault in {FOLDER}/ has a name that begins with `{name}`");
        }
    }
    let is_chosen = |fault: &Fault| names.iter().any(|name| fault.name.starts_with(name));
    let all = faults.into_iter();
    Ok(all
        .filter(|fault| names.is_empty() || is_chosen(fault))
        .collect())
}

/// Commands of the faults that fail while no fault is planted, with the end of what they printed.
fn unsound_commands(
    tree: &Tree,
    faults: &[Fault],
    out: &mut dyn Write,
) -> Result<BTreeMap<String, String>> {
    let began = now();
    let (mut run, mut unsound) = (BTreeSet::new(), BTreeMap::new());
    for fault in faults {
        if run.insert(fault.command()) {
            let (end, said) = tree.test(fault)?;
            if end != End::Succeeded {
                unsound.insert(fault.command(), said);
            }
        }
    }
    let seconds = began.elapsed().as_secs();
    writeln!(
        out,
        "{:<16} {seconds:>4} s  without a fault",
        "compiled and run"
    )?;
    Ok(unsound)
}

/// Plants one fault, and removes it again. The verdict, and the end of what the failed step printed.
fn plant(
    tree: &Tree,
    fault: &Fault,
    unsound: &BTreeMap<String, String>,
) -> Result<(Verdict, String)> {
    if let Some(said) = unsound.get(&fault.command()) {
        return Ok((Verdict::FailsWithoutIt, said.clone()));
    }
    let (applied, said) = tree.apply(fault)?;
    if applied != End::Succeeded {
        return Ok((Verdict::DoesNotApply, said));
    }
    let tried = try_planted(tree, fault);
    tree.clean()?;
    tried
}

fn try_planted(tree: &Tree, fault: &Fault) -> Result<(Verdict, String)> {
    let (compiled, said) = tree.compile(fault)?;
    match compiled {
        End::Succeeded => {}
        End::Failed => return Ok((Verdict::DoesNotCompile, said)),
        End::OutOfTime => return Ok((Verdict::NeverEnds, said)),
    }
    let (tested, said) = tree.test(fault)?;
    let verdict = match tested {
        End::Succeeded => Verdict::Survived,
        End::Failed => Verdict::Killed,
        End::OutOfTime => Verdict::NeverEnds,
    };
    Ok((verdict, said))
}

#[expect(
    clippy::disallowed_methods,
    reason = "a tool of the developer shares no clock with a run"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Fault {
        let text = "Nothing.\nkilled by: cargo test -p x --lib\n";
        Fault::parse(name, text).expect("it has both lines")
    }

    #[test]
    fn names_choose_the_faults_that_begin_with_them() -> Result<()> {
        let all = || vec![named("judge-a"), named("judge-b"), named("net-a")];
        let names = |chosen: Vec<Fault>| -> Vec<String> {
            chosen.into_iter().map(|fault| fault.name).collect()
        };
        assert_eq!(chosen(all(), &[])?.len(), 3);
        let judge = chosen(all(), &["judge".to_owned()])?;
        assert_eq!(names(judge), ["judge-a", "judge-b"]);
        assert!(chosen(all(), &["load".to_owned()]).is_err());
        Ok(())
    }
}
