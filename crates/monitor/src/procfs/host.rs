//! Files of the host: `stat`, `cpuinfo`, `meminfo` and `os-release`.

/// CPU time of the whole host since boot, from the first line of `/proc/stat`, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTimes {
    /// All ticks of all cores: user, nice, system, idle, I/O wait, interrupts and steal.
    pub total: u64,
    /// Ticks in which a core had work but the hypervisor ran something else.
    pub steal: u64,
}

/// Ticks of guests (fields 9 and 10) are already counted as user time.
const OWN_FIELDS: usize = 8;
const STEAL: usize = 7;

/// Parses the line `cpu ...` of `/proc/stat`.
pub fn cpu_times(text: &str) -> Option<CpuTimes> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let mut ticks = [0_u64; OWN_FIELDS];
    let mut fields = line.split_ascii_whitespace();
    for tick in &mut ticks {
        *tick = fields.next()?.parse().ok()?;
    }
    Some(CpuTimes {
        total: ticks.iter().sum(),
        steal: ticks[STEAL],
    })
}

/// The host's processors, from `/proc/cpuinfo`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuInfo {
    /// The name of the first one, as the kernel prints it; empty where it prints none.
    pub model: String,
    /// Number of logical CPUs.
    pub count: u32,
}

/// Parses `/proc/cpuinfo`.
pub fn cpu_info(text: &str) -> CpuInfo {
    let values = |name: &'static str| text.lines().filter_map(move |line| value(line, name));
    CpuInfo {
        model: values("model name").next().unwrap_or_default().to_owned(),
        count: u32::try_from(values("processor").count()).unwrap_or(u32::MAX),
    }
}

/// The host's memory in bytes, from `/proc/meminfo`.
pub fn memory_total_bytes(text: &str) -> Option<u64> {
    let total = text.lines().find_map(|line| value(line, "MemTotal"))?;
    let kib: u64 = total.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The distribution's name, from `/etc/os-release`.
pub fn os_name(text: &str) -> Option<String> {
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

/// The value of a line `name : value`, trimmed.
fn value<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (key, value) = line.split_once(':')?;
    (key.trim() == name).then_some(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = include_str!("../../captured/stat.txt");
    const CPUINFO: &str = include_str!("../../captured/cpuinfo.txt");
    const MEMINFO: &str = include_str!("../../captured/meminfo.txt");

    #[test]
    fn steal_is_a_part_of_the_total() {
        let expected = CpuTimes {
            total: 12_751 + 6_481 + 4_923 + 216_844 + 2_002 + 83 + 73,
            steal: 73,
        };
        assert_eq!(cpu_times(STAT), Some(expected));
    }

    #[test]
    fn guest_ticks_are_not_counted_twice() {
        let times = cpu_times("cpu  10 0 0 0 0 0 0 0 7 7\n");
        assert_eq!(times.map(|times| times.total), Some(10));
    }

    #[test]
    fn cpu_times_of_another_text_are_none() {
        assert_eq!(cpu_times("cpu0 1 2 3 4 5 6 7 8"), None);
        assert_eq!(cpu_times("cpu  1 2 3"), None);
    }

    #[test]
    fn processors_are_counted_and_named() {
        let expected = CpuInfo {
            model: "AMD EPYC".to_owned(),
            count: 2,
        };
        assert_eq!(cpu_info(CPUINFO), expected);
    }

    #[test]
    fn processors_without_a_name_are_still_counted() {
        let expected = CpuInfo {
            model: String::new(),
            count: 2,
        };
        assert_eq!(
            cpu_info("processor\t: 0\nBogoMIPS\t: 50\n\nprocessor\t: 1\n"),
            expected
        );
    }

    #[test]
    fn memory_is_in_bytes() {
        assert_eq!(memory_total_bytes(MEMINFO), Some(24_684_084 * 1024));
    }

    #[test]
    fn the_distribution_is_named_without_quotes() {
        let text = "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(
            os_name(text).as_deref(),
            Some("Debian GNU/Linux 12 (bookworm)")
        );
    }
}
