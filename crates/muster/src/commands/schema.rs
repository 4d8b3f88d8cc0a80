//! `muster schema`.

use anyhow::Result;

use crate::outcome;

/// Prints the JSON schema of the scenario.
pub(crate) fn schema() -> Result<u8> {
    outcome::say(&serde_json::to_string_pretty(
        &muster_scenario::json_schema(),
    )?);
    Ok(outcome::PASS)
}
