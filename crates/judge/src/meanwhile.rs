//! Losses of the time in which a consumer of ours did not listen: split off, and named next to the loss.

use muster_measure::{ScopeSummary, SecondRow};
use muster_model::figure;

use crate::{Evidence, IncidentKind, Warning, WarningKind};

/// Messages of a scope that are lost at a backend and were due while a consumer was away for a cause
/// of this kind.
pub(crate) fn lost(
    evidence: &Evidence<'_>,
    scope: &ScopeSummary,
    backend: usize,
    kind: IncidentKind,
) -> u64 {
    let incidents = evidence.health.incidents.iter();
    let away: Vec<(u32, u32)> = incidents
        .filter(|incident| incident.kind == kind)
        .map(|incident| (incident.from.second(), incident.until.second()))
        .collect();
    let is_then = |row: &&SecondRow| {
        away.iter()
            .any(|(from, until)| (*from..=*until).contains(&row.second))
    };
    let rows = scope.series.iter().filter(is_then);
    rows.filter_map(|row| row.arrivals.get(backend))
        .map(|at| at.lost_due)
        .sum()
}

/// Changes of topics by others meanwhile, and the part of a loss that was due while the platform
/// had ended a consumer's session, as the end of a sentence; empty where there is none.
pub(crate) fn beside_a_loss(
    evidence: &Evidence<'_>,
    scope: &ScopeSummary,
    backend: usize,
) -> String {
    let meanwhile = lost(evidence, scope, backend, IncidentKind::ConsumerLost);
    let mut words = topics_changed(evidence);
    if meanwhile > 0 {
        let count = figure::count(meanwhile);
        words += &format!(
            "; {count} of them due while the platform had ended the session of our consumer"
        );
    }
    words
}

/// Changes of consumed topics by others while the run went on.
fn topics_changed(evidence: &Evidence<'_>) -> String {
    let found = evidence.found.iter();
    let changes = found.filter(|it| it.kind == WarningKind::TopicsChanged);
    changes.map(|it| format!("; {}", it.detail)).collect()
}

/// One warning for each backend that lost messages while a consumer of ours was away.
pub(crate) fn warnings(evidence: &Evidence<'_>) -> Vec<Warning> {
    let causes = [
        (
            IncidentKind::ConsumerLost,
            "the platform had ended the session of our consumer, which counts",
        ),
        (
            IncidentKind::ConsumerAway,
            "our consumer was away by a fault of ours, which proves nothing",
        ),
    ];
    let mut found = Vec::new();
    let backends = evidence.summary.backends.iter().enumerate();
    for (at, backend) in backends.filter(|(_, backend)| !backend.is_store) {
        for (kind, why) in causes {
            let meanwhile = lost(evidence, &evidence.summary.run, at, kind);
            if meanwhile == 0 {
                continue;
            }
            found.push(Warning {
                kind: WarningKind::LostMeanwhile,
                scope: "run".to_owned(),
                detail: format!(
                    "{} of the {} lost at {} were due while {why}",
                    figure::count(meanwhile),
                    figure::count(backend.uplink.all_lost()),
                    evidence.backend(at)
                ),
            });
        }
    }
    found
}
