//! Finds the process that a name or id stands for.

use std::fs;

use crate::UsageError;
use crate::environment::text;
use crate::procfs::{command_name, parent};

/// Processes or names that an error lists; further ones are counted.
const LISTED_MAX: usize = 10;
/// Bytes of a command's name that the kernel keeps.
const NAME_MAX: usize = 15;

/// A process that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Running {
    pid: u32,
    parent: u32,
    name: String,
    /// The program, as it was called; empty for a thread of the kernel.
    program: String,
}

/// The ids of all processes.
pub(super) fn process_ids() -> impl Iterator<Item = u32> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The id of the process that a name or id stands for. Of a process and its children of the same name, it is the
/// process. This program is never meant.
pub(super) fn find(wanted: &str) -> Result<u32, UsageError> {
    let own = std::process::id();
    let all = process_ids().filter(|pid| *pid != own);
    let all: Vec<Running> = all.filter_map(Running::read).collect();
    chosen(wanted, &all)
}

impl Running {
    fn read(pid: u32) -> Option<Self> {
        let stat = text(format!("/proc/{pid}/stat"))?;
        let called = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let program = called.split(|byte| *byte == 0).next().unwrap_or_default();
        Some(Self {
            pid,
            parent: parent(&stat)?,
            name: command_name(&stat)?.to_owned(),
            program: String::from_utf8_lossy(program).into_owned(),
        })
    }

    fn is_named(&self, wanted: &str) -> bool {
        let base = self.program.rsplit('/').next().unwrap_or_default();
        base == wanted || (wanted.len() <= NAME_MAX && self.name == wanted)
    }
}

fn chosen(wanted: &str, all: &[Running]) -> Result<u32, UsageError> {
    let none = || UsageError::NoProcess {
        wanted: wanted.to_owned(),
        running: names(all),
    };
    if let Ok(pid) = wanted.parse() {
        let known = all.iter().find(|running| running.pid == pid);
        return known.map(|_| pid).ok_or_else(none);
    }
    let named: Vec<&Running> = all.iter().filter(|it| it.is_named(wanted)).collect();
    let is_child = |of: &Running| named.iter().any(|other| has_ancestor(of, other.pid, all));
    let roots: Vec<&Running> = named.iter().copied().filter(|of| !is_child(of)).collect();
    match roots[..] {
        [] => Err(none()),
        [only] => Ok(only.pid),
        _ => Err(UsageError::SeveralProcesses {
            wanted: wanted.to_owned(),
            count: roots.len(),
            found: listed(
                roots
                    .iter()
                    .map(|of| format!("{} ({})", of.pid, of.program)),
            ),
        }),
    }
}

/// True if a process descends from another one.
fn has_ancestor(of: &Running, ancestor: u32, all: &[Running]) -> bool {
    let mut at = of.parent;
    // A chain cannot be longer than there are processes.
    for _ in 0..all.len() {
        if at == ancestor {
            return true;
        }
        let Some(parent) = all.iter().find(|running| running.pid == at) else {
            return false;
        };
        at = parent.parent;
    }
    false
}

/// Names of the processes that are no threads of the kernel, each once.
fn names(all: &[Running]) -> String {
    let programs = all.iter().filter(|running| !running.program.is_empty());
    let mut names: Vec<&str> = programs.map(|running| running.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    listed(names.iter().map(|name| format!("`{name}`")))
}

fn listed(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(LISTED_MAX);
    let shown: Vec<String> = all.take(LISTED_MAX).collect();
    match more {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Running> {
        let running = |pid, parent, name: &str, program: &str| Running {
            pid,
            parent,
            name: name.to_owned(),
            program: program.to_owned(),
        };
        vec![
            running(1, 0, "init", "/sbin/init"),
            running(2, 0, "kthreadd", ""),
            running(50, 1, "postgres", "/usr/lib/postgresql/17/bin/postgres"),
            running(51, 50, "postgres", "postgres: checkpointer "),
            running(52, 51, "sh", "sh"),
            running(53, 52, "postgres", "postgres: a b"),
            running(60, 1, "java", "/opt/jdk/bin/java"),
            running(61, 1, "java", "java"),
            running(70, 1, "a-rather-long-n", "/bin/a-rather-long-name"),
        ]
    }

    #[test]
    fn a_process_is_found_by_its_name_or_id() {
        let found = |wanted: &str| chosen(wanted, &all()).ok();
        assert_eq!(found("postgres"), Some(50), "its children are its own");
        assert_eq!(found("a-rather-long-name"), Some(70));
        assert_eq!(found("a-rather-long-n"), Some(70));
        assert_eq!(found("61"), Some(61));
        assert_eq!(found("sh"), Some(52));
    }

    #[test]
    fn none_and_several_are_errors_that_list_what_there_is() {
        let refused = |wanted: &str| chosen(wanted, &all()).expect_err("not one").to_string();
        let none = refused("mosquitto");
        assert!(
            none.contains("no process is named `mosquitto`")
                && none.contains("`init`, `java`, `postgres`"),
            "{none}"
        );
        assert!(!none.contains("kthreadd"), "{none}");
        assert!(refused("99").contains("`99`"));
        let several = refused("java");
        let words = "2 processes are named `java`: 60 (/opt/jdk/bin/java), 61 (java); ";
        assert!(several.contains(words), "{several}");
    }

    #[test]
    fn a_long_list_is_cut() {
        let names = (0..12).map(|n| n.to_string()).collect::<Vec<_>>();
        let list = listed(names.into_iter());
        assert!(list.ends_with("9 and 2 more"), "{list}");
    }
}
