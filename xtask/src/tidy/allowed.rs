//! Types that may be larger than others.

/// Records with more fields than allowed.
pub(super) const TYPES: &[(&str, &str)] = &[
    ("gateway::GatewayConfig", "record of settings"),
    ("plan::FleetPlan", "record of settings"),
    ("plan::StreamPlan", "record of settings"),
    ("report::Report", "record of results"),
];
