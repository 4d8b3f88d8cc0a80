//! The first line of the summary.

use std::fmt::Write as _;

use crate::{Report, RunResult};

/// The result and the name of the run; of one that goes on, which has no result, how far it has come.
pub(super) fn first_line(report: &Report) -> String {
    let (verdict, name) = (&report.verdict, &report.name);
    let result = verdict.result.name().to_uppercase();
    let mut line = match &report.unfinished {
        Some(running) if running.is_running() => return format!("{}  {name}", running.heading()),
        Some(cut) => {
            let (cut, code) = (cut.heading(), verdict.exit_code());
            format!("{cut}, {result} (exit code {code})  {name}")
        }
        None => format!("{result}  {name}"),
    };
    if let Some(would_be) = verdict.would_be {
        let _ = write!(line, "  (would be {})", would_be.name());
    }
    if !matches!(verdict.result, RunResult::Pass | RunResult::Part) && !verdict.rules.is_empty() {
        let _ = write!(line, "  {}", verdict.counts());
    }
    line
}
