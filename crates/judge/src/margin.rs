//! Margins of a step: the bad messages of each service level that allows a share of them.

use muster_measure::{ScopeSummary, Summary};

use crate::capacity::{Batch, Margin, Outcome};
use crate::latency::PercentileBound;
use crate::{Allowance, Evidence, Slo, SloBound, is_judged_in_steps, latency, loss, slo};

/// The margin of the level that came nearest to its limit in a step, or exceeded it most; `parts` are its parts in order.
/// None if no level allows a share of messages, or none of these decided the outcome of the step.
pub fn step_margin<'a>(
    slos: impl Iterator<Item = &'a Slo>,
    run: &Evidence<'_>,
    parts: &[&Summary],
    outcome: Outcome,
) -> Option<Margin> {
    let of_step = slos.filter(|slo| is_judged_in_steps(slo.bound.name()));
    let all = of_step.flat_map(|slo| margins(slo, run, parts));
    // Of equals the first.
    let worse = |a: Margin, b: Margin| if b.ratio() > a.ratio() { b } else { a };
    let worst = all.reduce(worse)?;
    worst.decides(outcome).then_some(worst)
}

/// The margins of a level: one, or one a backend.
fn margins(slo: &Slo, run: &Evidence<'_>, parts: &[&Summary]) -> Vec<Margin> {
    let mut margins: Vec<Margin> = Vec::new();
    for part in parts {
        let evidence = Evidence {
            summary: part,
            ..*run
        };
        let scope = slo::summary(slo, &evidence);
        let counted = scope.and_then(|scope| Counted::new(slo, scope, &evidence));
        let Some(Counted { allowed, batches }) = counted else {
            return Vec::new();
        };
        for at in margins.len()..batches.len() {
            margins.push(Margin {
                slo: name(slo, at),
                allowed,
                batches: Vec::new(),
            });
        }
        for (margin, batch) in margins.iter_mut().zip(batches) {
            margin.batches.push(batch);
        }
    }
    margins.retain(|margin| margin.batches.iter().any(|batch| batch.messages > 0));
    margins
}

/// A level at a backend, in words that no other one has.
fn name(slo: &Slo, backend: usize) -> String {
    let of_backend = match backend {
        0 => String::new(),
        further => format!(", backend {further}"),
    };
    format!("{} [{}]{of_backend}", slo.bound.rule(), slo.scope)
}

/// The messages of a part of a step by a level.
struct Counted {
    /// The share of bad messages that it allows, above 0.
    allowed: f64,
    /// One, or one a backend, in the same order for each part.
    batches: Vec<Batch>,
}

impl Counted {
    /// None for a level that allows no share of messages.
    fn new(slo: &Slo, scope: &ScopeSummary, evidence: &Evidence<'_>) -> Option<Self> {
        let counted = if let SloBound::Latency {
            of,
            percentile,
            at_most,
        } = slo.bound
        {
            let bound = PercentileBound {
                of,
                percentile,
                at_most,
            };
            Self {
                allowed: 1.0 - percentile.as_fraction(),
                batches: latency::counts_above(bound, scope),
            }
        } else if let SloBound::FailureRatio(share) = slo.bound {
            let batch = Batch {
                messages: scope.measured.scheduled.unwrap_or(0),
                bad: scope.measured.failed,
            };
            Self {
                allowed: share.as_fraction(),
                batches: vec![batch],
            }
        } else if let SloBound::Loss(Allowance::Ratio(share)) = slo.bound {
            Self {
                allowed: share.as_fraction(),
                batches: loss::losses(slo, evidence).collect(),
            }
        } else {
            return None;
        };
        Some(counted).filter(|counted| counted.allowed > 0.0)
    }
}
