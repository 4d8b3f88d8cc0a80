//! `/proc/<pid>/task/<tid>/schedstat`: time on a CPU and time waiting for one.

/// What the scheduler knows of one thread since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SchedStat {
    /// Nanoseconds spent on a CPU.
    pub run_ns: u64,
    /// Nanoseconds spent ready to run, waiting for a CPU.
    pub wait_ns: u64,
}

/// Parses `run_ns wait_ns timeslices`; none if the text has another form.
#[must_use]
pub fn sched_stat(text: &str) -> Option<SchedStat> {
    let mut fields = text.split_ascii_whitespace();
    let run_ns = fields.next()?.parse().ok()?;
    let wait_ns = fields.next()?.parse().ok()?;
    Some(SchedStat { run_ns, wait_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_fields_are_run_and_wait() {
        let read = sched_stat("12345678901 2345 42\n");
        assert_eq!(
            read,
            Some(SchedStat {
                run_ns: 12_345_678_901,
                wait_ns: 2_345
            })
        );
    }

    #[test]
    fn a_torn_text_is_not_a_reading() {
        assert_eq!(sched_stat("12345"), None);
        assert_eq!(sched_stat(""), None);
        assert_eq!(sched_stat("a b c"), None);
    }
}
