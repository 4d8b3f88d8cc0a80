//! Searches for sets of SLOs as they stand after some steps.

use anyhow::{Result, anyhow};
use muster_judge::capacity::{Interval, JointSearch, Next, SearchEnd};
use muster_report::CapacityStep;

use super::SearchBegun;

/// The search for a set of SLOs as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct SetStanding {
    /// Name of the set; none if the scenario names no sets.
    pub set: Option<String>,
    /// The end of the search; none while it goes on.
    pub end: Option<SearchEnd>,
    /// The interval that the steps so far leave; none in the ramp.
    pub known: Option<Interval>,
}

/// The searches as they stand after these steps.
pub(super) fn searched(begun: &SearchBegun, steps: &[CapacityStep]) -> Result<JointSearch> {
    let search = JointSearch::new(&begun.spec, begun.sets.len());
    let mut search = search.map_err(|error| anyhow!("search a capacity: {error}"))?;
    CapacityStep::replay_all(steps, &begun.sets, &mut search);
    Ok(search)
}

/// The search for each set of SLOs as it stands after these steps, in the order of the scenario.
///
/// # Errors
/// If nothing can be searched by the specification.
pub fn standing_after(begun: &SearchBegun, steps: &[CapacityStep]) -> Result<Vec<SetStanding>> {
    Ok(standings(begun, &searched(begun, steps)?))
}

/// Standings of these searches, in the order of the sets.
pub(super) fn standings(begun: &SearchBegun, search: &JointSearch) -> Vec<SetStanding> {
    let all = search.searches().iter().enumerate();
    let standings = all.map(|(at, search)| SetStanding {
        set: begun.sets.get(at).cloned(),
        end: match search.next() {
            Next::Hold(_) => None,
            Next::End(end) => Some(end),
        },
        known: search.known(),
    });
    standings.collect()
}
