//! Violations that are still allowed: each entry only shrinks, and goes when it reaches 0.

/// Counts allowed in a crate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance {
    pub(super) name: &'static str,
    /// By rule: phrases and names.
    pub(super) counts: [usize; 2],
}

impl Allowance {
    const fn new(name: &'static str, counts: [usize; 2]) -> Self {
        Self { name, counts }
    }
}

/// Crates that may still break rules of English and names; crates without an entry may not.
pub(super) const CRATES: &[Allowance] = &[Allowance::new("device", [30, 0])];

/// Pages with longer sentences than allowed.
pub(super) const PAGES: &[&str] = &[];

/// Types with more methods or fields than allowed: records, and those that are still to be split.
pub(super) const TYPES: &[(&str, &str)] = &[
    ("fleet::Driver", "to be split"),
    ("gateway::GatewayConfig", "record of settings"),
    ("plan::FleetPlan", "record of settings"),
    ("plan::StreamPlan", "record of settings"),
    ("report::Report", "record of results"),
];
