//! Health figures of the generator: CPU, CPU wait and steal. They inform, and decide nothing: what they
//! did to a figure is in the figure's own part (docs/semantics.md#validity).

use std::fmt;

use muster_model::{Micros, figure};

use crate::{
    GeneratorHealth, HostHealth, Share, ThreadHealth, ThreadRole, ThreadWindow, WarningKind,
};

/// A thread on CPU for this share of a second is too busy to be punctual.
pub(crate) const CPU: f64 = 0.85;
/// A thread that waits for a CPU for this share of a second is starved.
pub(crate) const CPU_WAIT: f64 = 0.10;
/// The share of CPU time that the hypervisor may take before figures suffer.
const STEAL: f64 = 0.03;
/// A thread is warned about if it exceeds its share in more windows than the rest of these.
const WINDOWS: Share = Share::whole_percent(95);

/// One health figure over a span of the run: of the thread, or host, that it is worst for.
#[derive(Debug, Clone, PartialEq)]
pub struct Strain {
    /// The figure.
    pub kind: StrainKind,
    /// The thread or host.
    pub name: String,
    /// A thread: the least share that 95 % of its seconds do not exceed. A host: the mean.
    pub share: f64,
    /// Seconds in which it was within what does no harm, of how many.
    pub within: (usize, usize),
}

/// The health figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrainKind {
    /// On CPU.
    Cpu(ThreadRole),
    /// Ready to run, and waiting for a CPU.
    CpuWait(ThreadRole),
    /// Taken by the hypervisor.
    Steal,
}

impl StrainKind {
    const ALL: [Self; 5] = [
        Self::CpuWait(ThreadRole::Shard),
        Self::CpuWait(ThreadRole::Consumer),
        Self::Cpu(ThreadRole::Shard),
        Self::Cpu(ThreadRole::Consumer),
        Self::Steal,
    ];

    /// The share from which on it is worth a warning.
    pub const fn harmful(self) -> f64 {
        match self {
            Self::Cpu(_) => CPU,
            Self::CpuWait(_) => CPU_WAIT,
            Self::Steal => STEAL,
        }
    }

    /// The kind of the warning.
    pub const fn warning(self) -> WarningKind {
        match self {
            Self::Cpu(_) => WarningKind::Cpu,
            Self::CpuWait(_) => WarningKind::CpuWait,
            Self::Steal => WarningKind::Steal,
        }
    }

    /// The name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu(ThreadRole::Shard) => "cpu",
            Self::Cpu(ThreadRole::Consumer) => "cpu of consumers",
            Self::CpuWait(ThreadRole::Shard) => "cpu-wait",
            Self::CpuWait(ThreadRole::Consumer) => "cpu-wait of consumers",
            Self::Steal => "steal",
        }
    }

    fn of(self, health: &GeneratorHealth, (from, until): (Micros, Micros)) -> Option<Strain> {
        let during = |at: Micros| at > from && at <= until;
        let harmful = self.harmful();
        let threads = |role: ThreadRole, share: fn(&ThreadWindow) -> Option<f64>| {
            let of_role = health.threads.iter().filter(move |t| t.role == role);
            let typical = of_role.filter_map(|thread| typical(self, thread, during, share));
            typical.max_by(|a, b| a.share.total_cmp(&b.share))
        };
        match self {
            Self::Cpu(role) => threads(role, |window| Some(window.cpu)),
            Self::CpuWait(role) => threads(role, |window| window.waiting),
            Self::Steal => {
                let hosts = health.hosts.iter();
                let means = hosts.filter_map(|host| mean(host, during, harmful));
                means.max_by(|a, b| a.share.total_cmp(&b.share))
            }
        }
    }
}

impl Strain {
    /// Returns whether the strain is worth a warning.
    pub fn is_harmful(&self) -> bool {
        self.share >= self.kind.harmful()
    }
}

impl fmt::Display for Strain {
    /// A few words for a line of the live view: `cpu-wait 28 % (ok below 10 %)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let harmful = figure::percent(self.kind.harmful());
        let share = figure::percent(self.share);
        write!(f, "{} {share} (ok below {harmful})", self.kind.name())
    }
}

/// Every health figure that the span has a sample of.
pub fn strains(health: &GeneratorHealth, measured: (Micros, Micros)) -> Vec<Strain> {
    let all = StrainKind::ALL.into_iter();
    all.filter_map(|kind| kind.of(health, measured)).collect()
}

/// A sentence for a warning.
pub(crate) fn sentence(strain: &Strain) -> String {
    let (share, name) = (figure::percent(strain.share), &strain.name);
    let (within, of) = strain.within;
    let seconds = format!("within bounds in {within} of {of} s");
    match strain.kind {
        StrainKind::Cpu(_) => {
            format!("{name} of the generator was on CPU for {share} of a second ({seconds})")
        }
        StrainKind::CpuWait(_) => {
            format!("{name} of the generator waited for a CPU for {share} of a second ({seconds})")
        }
        StrainKind::Steal => {
            format!("the hypervisor took {share} of the CPU time of {name} ({seconds})")
        }
    }
}

/// One share of one thread; none without a window that has it.
fn typical(
    kind: StrainKind,
    thread: &ThreadHealth,
    during: impl Fn(Micros) -> bool,
    share: fn(&ThreadWindow) -> Option<f64>,
) -> Option<Strain> {
    let measured = thread.windows.iter().filter(|window| during(window.until));
    // A wait that began before the window is booked when it ends.
    let shares = measured.filter_map(share).map(|share| share.min(1.0));
    let mut shares: Vec<f64> = shares.collect();
    let harmful = kind.harmful();
    let within = shares.iter().filter(|share| **share < harmful).count();
    let of = shares.len();
    let needed = (1..=of).find(|count| WINDOWS.is_reached_by(*count as u64, of as u64))?;
    let (_, typical, _) = shares.select_nth_unstable_by(needed - 1, f64::total_cmp);
    Some(Strain {
        kind,
        name: thread.name.clone(),
        share: *typical,
        within: (within, of),
    })
}

/// The steal of one host; none if it does not report any.
fn mean(host: &HostHealth, during: impl Fn(Micros) -> bool, harmful: f64) -> Option<Strain> {
    let measured = host.steal.iter().filter(|(at, _)| during(*at));
    let shares: Vec<f64> = measured.map(|(_, share)| *share).collect();
    (!shares.is_empty()).then(|| Strain {
        kind: StrainKind::Steal,
        name: host.name.clone(),
        share: shares.iter().sum::<f64>() / shares.len() as f64,
        within: (
            shares.iter().filter(|share| **share < harmful).count(),
            shares.len(),
        ),
    })
}
