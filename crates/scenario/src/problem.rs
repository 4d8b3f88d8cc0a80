//! Everything that is wrong with a scenario.

use std::fmt;

use muster_plan::Problem;

/// Everything that is wrong with a scenario; never empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.0 {
            writeln!(f, "error: {problem}\n")?;
        }
        let count = self.0.len();
        write!(
            f,
            "{count} problem{} in the scenario",
            if count == 1 { "" } else { "s" }
        )
    }
}
