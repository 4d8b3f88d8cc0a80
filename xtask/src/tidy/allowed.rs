//! Types that may be larger than others.

/// Types with more methods or fields than allowed: records, and those that are still to be split.
pub(super) const TYPES: &[(&str, &str)] = &[
    ("fleet::Driver", "to be split"),
    ("gateway::GatewayConfig", "record of settings"),
    ("plan::FleetPlan", "record of settings"),
    ("plan::StreamPlan", "record of settings"),
    ("report::Report", "record of results"),
];
