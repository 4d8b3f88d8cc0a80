//! Exit codes (docs/semantics.md#verdict-and-exit-codes), and the one place that prints.

use std::io::{self, Write};

/// All rules hold.
pub(crate) const PASS: u8 = 0;
/// A rule does not hold, or the platform said no.
pub(crate) const FAIL: u8 = 1;
/// Usage, or a scenario that is none.
pub(crate) const USAGE: u8 = 2;
/// The figures may not be believed, or the plan does not fit this machine.
pub(crate) const INVALID: u8 = 3;
/// The target is silent.
pub(crate) const SILENT: u8 = 4;

/// Prints to standard output; a closed pipe ends the output quietly.
pub(crate) fn say(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = out.write_all(b"\n");
    }
    let _ = out.flush();
}

/// Prints a remark to standard error.
pub(crate) fn remark(text: &str) {
    let mut out = io::stderr().lock();
    let _ = writeln!(out, "{text}");
}

/// Says what of the windows could not be read. A report that was made before it went missing is
/// shown all the same, and whoever relies on the windows has to know.
pub(crate) fn warn_unread(unread: Option<&str>) {
    if let Some(unread) = unread {
        remark(&format!("warning: failed to {unread}"));
    }
}

/// Prints an error with its causes to standard error.
pub(crate) fn complain(error: &anyhow::Error) {
    let text = format!("{error:#}");
    if text.starts_with("error:") {
        remark(&text);
    } else {
        remark(&format!("error: failed to {text}"));
    }
}
