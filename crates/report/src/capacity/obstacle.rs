//! The reason why the time of a search did not suffice, and what to do.

use muster_judge::capacity::{Interval, Outcome, SearchSpec};
use muster_model::{Dimension, Micros, figure};

use super::CapacityStep;
use super::noise::{Contradicting, minutes};

/// Part of the steps at which unclear ones are the reason.
const UNCLEAR_SHARE: f64 = 0.25;

/// The reason why the time of a search did not suffice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Obstacle<'a> {
    kind: Kind<'a>,
    /// The budget that the search had.
    budget: Micros,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind<'a> {
    /// Many steps said nothing of the target.
    Unclear { unclear: u64, steps: u64 },
    /// The load grew until the end.
    Ramp { steps: u64 },
    /// A load passed above one that failed.
    Contradiction(Contradicting<'a>),
    /// The interval is wider than a stated one may be.
    Wide { width: f64, most: f64 },
    /// The interval is narrow enough and was not confirmed.
    Unconfirmed { width: f64 },
}

impl<'a> Obstacle<'a> {
    /// The obstacle of a search that ended with this interval.
    pub(super) fn new(
        limits: &SearchSpec,
        steps: &'a [CapacityStep],
        known: Option<&Interval>,
    ) -> Self {
        Self {
            kind: Kind::new(limits, steps, known),
            budget: limits.budget,
        }
    }

    /// Returns whether unclear steps took the time.
    pub(super) const fn is_unclear(&self) -> bool {
        matches!(self.kind, Kind::Unclear { .. })
    }

    /// Returns whether the ramp alone took the time.
    pub(super) const fn is_ramp(&self) -> bool {
        matches!(self.kind, Kind::Ramp { .. })
    }

    /// The obstacle, and what to do.
    pub(super) fn in_words(self, find: Dimension) -> String {
        let longer = minutes(self.budget + self.budget);
        let resume = format!("go on with --resume and a longer --budget, such as {longer}");
        match self.kind {
            Kind::Unclear { unclear, steps } => format!(
                "{unclear} of {} were unclear and took the time; see what broke in them, and give the generator more room",
                figure::number_of(steps, "step")
            ),
            Kind::Ramp { steps } => format!(
                "the ramp alone took {}; begin nearer to the capacity with --from, or {resume}",
                figure::number_of(steps, "step")
            ),
            Kind::Contradiction(Contradicting { passed, failed }) => format!(
                "steps contradict each other: {} passed in step {}, and {} failed in step {}, so that noise moves the \
                 capacity by {}; find what disturbs the target, or {resume}",
                find.in_words(passed.load),
                passed.number,
                find.in_words(failed.load),
                failed.number,
                figure::percent(passed.load / failed.load - 1.0)
            ),
            Kind::Wide { width, most } => format!(
                "too few steps: this interval is {} wide, and at most {} is stated; {resume}",
                figure::percent(width),
                figure::percent(most)
            ),
            Kind::Unconfirmed { width } => format!(
                "this interval, {} wide, was not confirmed in time; {resume}",
                figure::percent(width)
            ),
        }
    }
}

impl<'a> Kind<'a> {
    fn new(limits: &SearchSpec, steps: &'a [CapacityStep], known: Option<&Interval>) -> Self {
        let all = steps.len() as u64;
        let unclear = steps.iter().filter(|step| step.outcome == Outcome::Unclear);
        let unclear = unclear.count() as u64;
        if unclear as f64 > all as f64 * UNCLEAR_SHARE {
            return Self::Unclear {
                unclear,
                steps: all,
            };
        }
        let Some(known) = known else {
            return Self::Ramp { steps: all };
        };
        if let Some(steps) = Contradicting::new(limits, steps) {
            return Self::Contradiction(steps);
        }
        let (width, most) = (known.width(), limits.width);
        match width > most {
            true => Self::Wide { width, most },
            false => Self::Unconfirmed { width },
        }
    }
}
