//! The signals that end a run in order.

use std::fs;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The signals that ask for the end: Ctrl-C, SIGTERM, and the end of the terminal, unless whoever started
/// the program has it ignored (`nohup`).
pub(crate) fn ending() -> Vec<i32> {
    let is_ignored =
        fs::read_to_string("/proc/self/status").is_ok_and(|status| is_ignored(&status, SIGHUP));
    let all = [SIGINT, SIGTERM, SIGHUP].into_iter();
    all.filter(|signal| *signal != SIGHUP || !is_ignored)
        .collect()
}

/// True if a process ignores a signal, by the mask in its `/proc/PID/status` (proc(5)).
fn is_ignored(status: &str, signal: i32) -> bool {
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_ignored_by_its_bit_in_the_mask() {
        let status =
            "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000001\nSigCgt:\t0000000000000002\n";
        assert!(is_ignored(status, SIGHUP));
        assert!(!is_ignored(status, SIGINT));
        assert!(!is_ignored("", SIGHUP));
    }
}
