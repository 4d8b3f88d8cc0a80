//! Files of one process: `stat`, `status` and `limits`.

/// Position of `utime` after the closing parenthesis of the command's name (field 14 of `stat`).
const UTIME: usize = 11;

/// Parses `/proc/<pid>/stat`: the CPU time of all threads, ended ones included, in user mode and in
/// the kernel, in ticks (usually 10 ms). A command's name may itself hold blanks and parentheses.
pub fn cpu_ticks(text: &str) -> Option<u64> {
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(UTIME);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Parses `/proc/<pid>/stat`: the id of the process that started it, or took it over (field 4).
pub fn parent(text: &str) -> Option<u32> {
    let (_, after_name) = text.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Parses `/proc/<pid>/stat`: the name of the command, of at most 15 bytes.
pub fn command_name(text: &str) -> Option<&str> {
    let (before, _) = text.rsplit_once(')')?;
    Some(before.split_once('(')?.1)
}

/// Parses `/proc/<pid>/status`: the number of threads.
pub fn threads(text: &str) -> Option<u64> {
    field(text, "Threads:")?.trim().parse().ok()
}

/// Parses `/proc/<pid>/status`: the number of CPUs that the process may run on, such as 5 of `0-3,8`.
pub fn cpus_allowed(text: &str) -> Option<u32> {
    let ranges = field(text, "Cpus_allowed_list:")?.trim().split(',');
    let count = |range: &str| -> Option<u32> {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        (last - first.min(last)).checked_add(1)
    };
    ranges.map(count).sum()
}

/// Bytes read from disks and written to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskBytes {
    /// Read.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// Parses `/proc/<pid>/io`, which only the process's own user may read.
pub fn disk_bytes(text: &str) -> Option<DiskBytes> {
    let bytes = |name| field(text, name)?.trim().parse().ok();
    Some(DiskBytes {
        read: bytes("read_bytes:")?,
        written: bytes("write_bytes:")?,
    })
}

/// Memory of one process, from `/proc/<pid>/status`, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// Resident now.
    pub rss_bytes: u64,
    /// Resident at most so far (`VmHWM`).
    pub peak_rss_bytes: u64,
    /// Resident and backed by no file: the heap and the stacks, what "user memory" means.
    pub anon_bytes: u64,
}

/// Parses `/proc/<pid>/status`; none for a kernel thread or a process that is gone.
pub fn memory(text: &str) -> Option<Memory> {
    Some(Memory {
        rss_bytes: kibibytes(text, "VmRSS:")?,
        peak_rss_bytes: kibibytes(text, "VmHWM:")?,
        anon_bytes: kibibytes(text, "RssAnon:")?,
    })
}

/// The bound on open files of one process; none means unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenFiles {
    /// The bound in force, which the process may raise up to the hard one.
    pub soft: Option<u64>,
    /// The bound that it may not exceed.
    pub hard: Option<u64>,
}

/// Parses the line `Max open files` of `/proc/<pid>/limits`.
pub fn open_files_limit(text: &str) -> Option<OpenFiles> {
    let mut fields = field(text, "Max open files")?.split_ascii_whitespace();
    let (soft, hard) = (fields.next()?, fields.next()?);
    Some(OpenFiles {
        soft: soft.parse().ok(),
        hard: hard.parse().ok(),
    })
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let kib: u64 = field(text, name)?
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse()
        .ok()?;
    Some(kib * 1024)
}

/// The rest of the line that begins with `name`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(name)?;
    rest.lines().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = include_str!("../../captured/status.txt");
    const LIMITS: &str = include_str!("../../captured/limits.txt");

    #[test]
    fn cpu_ticks_survive_a_name_with_blanks_and_parentheses() {
        let text = "9090 (a (b) c) R 9077 9077 5347 0 -1 4194304 103 0 0 0 57 21 0 0 20 0 1 0";
        assert_eq!(cpu_ticks(text), Some(78));
    }

    #[test]
    fn cpu_ticks_of_a_torn_line_are_none() {
        assert_eq!(cpu_ticks("9090 (cat) R 9077"), None);
        assert_eq!(cpu_ticks(""), None);
    }

    #[test]
    fn parent_and_name_survive_a_name_with_blanks_and_parentheses() {
        let text = "9090 (a (b) c) R 9077 9077 5347 0 -1 4194304 103 0 0 0 57 21 0 0 20 0 1 0";
        assert_eq!(parent(text), Some(9_077));
        assert_eq!(command_name(text), Some("a (b) c"));
        assert_eq!((parent("9090 (cat"), command_name("9090")), (None, None));
    }

    #[test]
    fn cpus_that_are_allowed_are_counted() {
        for (list, count) in [
            ("0", Some(1)),
            ("0-3,8", Some(5)),
            ("x", None),
            ("3-1", Some(1)),
        ] {
            let text = format!("Cpus_allowed:\tff\nCpus_allowed_list:\t{list}\nMems_allowed:\t1\n");
            assert_eq!(cpus_allowed(&text), count, "{list}");
        }
        assert_eq!(threads("Name:\tx\nThreads:\t17\nSigQ:\t1\n"), Some(17));
    }

    #[test]
    fn bytes_of_disks_are_those_of_the_disk_alone() {
        let text = "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 7\n";
        let bytes = DiskBytes {
            read: 4_096,
            written: 8_192,
        };
        assert_eq!(disk_bytes(text), Some(bytes));
        assert_eq!(disk_bytes("rchar: 1\n"), None);
    }

    #[test]
    fn memory_is_in_bytes() {
        let expected = Memory {
            rss_bytes: 1_768 * 1024,
            peak_rss_bytes: 1_768 * 1024,
            anon_bytes: 112 * 1024,
        };
        assert_eq!(memory(STATUS), Some(expected));
    }

    #[test]
    fn a_kernel_thread_has_no_memory() {
        assert_eq!(memory("Name:\tkthreadd\nThreads:\t1\n"), None);
    }

    #[test]
    fn the_open_file_limit_has_a_soft_and_a_hard_bound() {
        let expected = OpenFiles {
            soft: Some(20_000),
            hard: Some(20_000),
        };
        assert_eq!(open_files_limit(LIMITS), Some(expected));
        let unlimited = "Max open files            1024                 unlimited            files";
        let expected = OpenFiles {
            soft: Some(1_024),
            hard: None,
        };
        assert_eq!(open_files_limit(unlimited), Some(expected));
    }
}
