//! The reasons for an invalid run, each with its remedy: one table for reports and for
//! `docs/invalid.md`.

use serde::{Deserialize, Serialize};

use crate::{OwnDelay, Unevaluated};

/// A reason why a rule makes a run invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A percentile is decided by our own delay.
    OwnDelay,
    /// An end-to-end percentile is decided by our own delay.
    OwnDelayEndToEnd,
    /// Connects ran out of time by our own delay.
    OwnDelayConnect,
    /// A consumer of ours had too little CPU.
    ConsumerStarved,
    /// Our own lateness grew with the latency.
    LatenessGrew,
    /// Messages went out too late.
    Shape,
    /// A closed loop left messages out, by our own delay.
    ClosedLoop,
    /// Messages were shed because they were far too late.
    GeneratorLate,
    /// A limit of ours was reached.
    GeneratorLimit,
    /// Datagrams were dropped at our sockets.
    ReceiveDrops,
    /// Our consumer was away.
    OwnConsumer,
    /// A link missed its keep-alive by our fault.
    KeepAlive,
    /// A clock was stepped, or the host suspended.
    Clock,
    /// A process of the generator died.
    ProcessLost,
    /// A ledger does not close.
    Residue,
    /// The run was stopped by its user.
    Interrupted,
    /// The run was killed, so that its end is not known.
    Killed,
    /// Nothing was due.
    NothingDue,
    /// Too few messages for a percentile.
    TooFewMessages,
    /// Too short for a trend.
    TooShort,
    /// No constant rate.
    NotConstant,
    /// Stability is unclear.
    Unclear,
    /// Nothing reports what the rule needs.
    NotMeasurable,
    /// Clocks of several hosts differ.
    ClocksApart,
    /// Messages differ by their order alone.
    OrderUnsure,
}

/// One reason in words.
struct Row {
    reason: Reason,
    name: &'static str,
    remedy: &'static str,
}

/// Every reason, in the order of the enum and of `docs/invalid.md`.
const ROWS: [Row; 25] = [
    Row {
        reason: Reason::OwnDelay,
        name: "own-delay",
        remedy: "pin the generator to dedicated cores (taskset -c), stop its neighbours, or use another host",
    },
    Row {
        reason: Reason::OwnDelayEndToEnd,
        name: "own-delay-end-to-end",
        remedy: "give devices and consumers dedicated cores (taskset -c), or run longer so that punctual seconds remain",
    },
    Row {
        reason: Reason::OwnDelayConnect,
        name: "own-delay-connect",
        remedy: "connect more slowly (fleet connect.rate), or give the generator more cores",
    },
    Row {
        reason: Reason::ConsumerStarved,
        name: "consumer-starved",
        remedy: "give the consumer a dedicated core, add consumers, or run the backend part on another host",
    },
    Row {
        reason: Reason::LatenessGrew,
        name: "lateness-grew",
        remedy: "offer less a core: fewer devices, more processes (--workers), or another host",
    },
    Row {
        reason: Reason::Shape,
        name: "shape",
        remedy: "offer less a core, pin the generator to idle cores, or raise validity.lateness-p99 if the shape may blur",
    },
    Row {
        reason: Reason::ClosedLoop,
        name: "closed-loop",
        remedy: "pin the generator to idle cores or use fewer devices a core: its own delay slows the loop",
    },
    Row {
        reason: Reason::GeneratorLate,
        name: "generator-late",
        remedy: "lower the rate, add processes (--workers), or use another host: this one cannot send so much",
    },
    Row {
        reason: Reason::GeneratorLimit,
        name: "generator-limit",
        remedy: "raise the limit that the evidence names (ulimit -n, --slots, --buffers, source addresses), or narrow the filter",
    },
    Row {
        reason: Reason::ReceiveDrops,
        name: "receive-drops",
        remedy: "raise net.core.rmem_max, or use more processes (--workers) so that sockets are read sooner",
    },
    Row {
        reason: Reason::OwnConsumer,
        name: "own-consumer",
        remedy: "look at the events for why our consumer left, remove that cause and run again",
    },
    Row {
        reason: Reason::KeepAlive,
        name: "keep-alive",
        remedy: "pin the generator to idle cores, or use a longer keep-alive: pings went out too late",
    },
    Row {
        reason: Reason::Clock,
        name: "clock",
        remedy: "let the clock slew and not step (chrony, NTP), forbid suspend, and run again",
    },
    Row {
        reason: Reason::ProcessLost,
        name: "process-lost",
        remedy: "look at the events for why a process ended (often memory: use fewer devices a host) and run again",
    },
    Row {
        reason: Reason::Residue,
        name: "residue",
        remedy: "report this as a bug of Muster with the result folder: its own counts contradict each other",
    },
    Row {
        reason: Reason::Interrupted,
        name: "interrupted",
        remedy: "let the run end by itself, or shorten phases.measure",
    },
    Row {
        reason: Reason::Killed,
        name: "killed",
        remedy: "run again: what was still open when the process was killed is not known",
    },
    Row {
        reason: Reason::NothingDue,
        name: "nothing-due",
        remedy: "measure longer, or raise the rate: nothing was due in the scope of the rule",
    },
    Row {
        reason: Reason::TooFewMessages,
        name: "too-few-messages",
        remedy: "measure longer or raise the rate until the number needed is due, or name a lower percentile",
    },
    Row {
        reason: Reason::TooShort,
        name: "too-short",
        remedy: "measure at constant rate for as long as the rule needs (phases.measure)",
    },
    Row {
        reason: Reason::NotConstant,
        name: "not-constant",
        remedy: "use a shape with a stretch of constant rate, or remove `stable`",
    },
    Row {
        reason: Reason::Unclear,
        name: "unclear",
        remedy: "hold the rate for as long as the evidence says: latency rises and the backlog does not yet",
    },
    Row {
        reason: Reason::NotMeasurable,
        name: "not-measurable",
        remedy: "remove the rule, or add what it needs (a backend, links, answers, a larger sample)",
    },
    Row {
        reason: Reason::ClocksApart,
        name: "clocks-apart",
        remedy: "run devices and backend on one host, or remove the end-to-end rule",
    },
    Row {
        reason: Reason::OrderUnsure,
        name: "order-unsure",
        remedy: "take another carrier, or a payload with room for an id",
    },
];

impl Reason {
    /// Every reason, in the order of `docs/invalid.md`.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.reason)
    }

    /// The name used in results, and the heading in `docs/invalid.md`.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// One line that says what to do.
    pub const fn remedy(self) -> &'static str {
        self.row().remedy
    }

    /// The section that explains it.
    pub fn section(self) -> String {
        format!("docs/invalid.md#{}", self.name())
    }

    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }
}

impl From<OwnDelay> for Reason {
    fn from(own: OwnDelay) -> Self {
        match own {
            OwnDelay::Answers | OwnDelay::Response => Self::OwnDelay,
            OwnDelay::Delivery => Self::OwnDelayEndToEnd,
            OwnDelay::Connects => Self::OwnDelayConnect,
            OwnDelay::Consumer => Self::ConsumerStarved,
            OwnDelay::Lateness => Self::LatenessGrew,
        }
    }
}

impl Reason {
    /// The reason that a rule without an outcome is for an invalid run; none while the run goes on.
    pub(crate) fn of(why: Unevaluated) -> Option<Self> {
        Some(match why {
            Unevaluated::Running => return None,
            Unevaluated::OwnDelay(own) => own.into(),
            Unevaluated::TooFewMessages { .. } => Self::TooFewMessages,
            Unevaluated::TooFewWindows { .. } | Unevaluated::Trend { .. } => Self::TooShort,
            Unevaluated::NotConstant => Self::NotConstant,
            Unevaluated::Unclear { .. } => Self::Unclear,
            Unevaluated::NothingDue => Self::NothingDue,
            Unevaluated::CutShort => Self::Interrupted,
            Unevaluated::NoLinks
            | Unevaluated::NoBackend
            | Unevaluated::OutsideSample
            | Unevaluated::NoSuchLatency
            | Unevaluated::NoLimit
            | Unevaluated::DeliveryUnknown
            | Unevaluated::NoTimes
            | Unevaluated::OnePart => Self::NotMeasurable,
            Unevaluated::ConsumerDisturbed => Self::OwnConsumer,
            Unevaluated::ClocksApart => Self::ClocksApart,
            Unevaluated::OrderUnsure => Self::OrderUnsure,
            Unevaluated::Unknown => Self::Killed,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The sections of the page, by heading.
    fn sections() -> Vec<(&'static str, &'static str)> {
        let page = include_str!("../../../docs/invalid.md");
        let sections = page.split("\n## ").skip(1);
        sections
            .map(|section| section.split_once('\n').expect("a section has a body"))
            .collect()
    }

    #[test]
    fn every_reason_has_a_remedy_of_one_line_and_a_section() {
        let sections = sections();
        let mut names = BTreeSet::new();
        for (place, reason) in Reason::all().enumerate() {
            assert_eq!(
                place, reason as usize,
                "the table is in the order of the enum"
            );
            assert!(
                names.insert(reason.name()),
                "{reason:?} has a name of its own"
            );
            let remedy = reason.remedy();
            assert!(
                !remedy.is_empty() && remedy.len() <= 120,
                "{reason:?}: {remedy}"
            );
            assert!(!remedy.contains('\n') && !remedy.ends_with('.'), "{remedy}");
            let section = sections.iter().find(|(name, _)| *name == reason.name());
            let (_, body) = section.unwrap_or_else(|| panic!("no section {}", reason.name()));
            assert!(body.len() > 100, "{} says too little", reason.name());
        }
    }

    #[test]
    fn every_section_is_of_a_reason() {
        let names: Vec<&str> = Reason::all().map(Reason::name).collect();
        let known: Vec<&str> = sections().into_iter().map(|(name, _)| name).collect();
        assert_eq!(known, names, "in the order of the table");
    }
}
