//! The steps of a run whose rate changes by stages.

use muster_load::Stretch;
use muster_model::Micros;

use crate::Plan;

/// A stretch of the measured phase: a hold, or a change of rate from one hold to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepPlan {
    /// Its begin, on the clock of the run.
    pub from: Micros,
    /// Its end.
    pub until: Micros,
    /// Rate that all stages of uplinks together state at its begin, per second.
    pub rate: f64,
    /// Rate that they state at its end, per second.
    pub rate_until: f64,
    /// True if no stage changes its rate within the step.
    pub is_hold: bool,
}

/// A stretch of constant rate, on the clock of the run.
#[derive(Debug, Clone, Copy)]
struct Constant {
    from: Micros,
    until: Micros,
}

/// The stretches of a stream with stages.
struct Stretches {
    all: Vec<Stretch>,
    /// True if its messages are the devices' own: only their rates are stated.
    is_uplink: bool,
}

impl Plan {
    /// The steps of the measured phase, which begins at `measure` on the clock of the run; none where
    /// no stage divides it. They divide it without a gap. All but the first one begin with a whole
    /// second, as windows do: a second in which a rate changes belongs to no hold.
    pub fn steps(&self, measure: Micros) -> Vec<StepPlan> {
        let lasts = self.phases.measure;
        let end = measure + lasts;
        let shapes = self.streams().map(|(_, stream)| Stretches {
            all: stream.schedule.shape.stretches(lasts),
            is_uplink: stream.is_uplink(),
        });
        let shapes: Vec<Stretches> = shapes.filter(|of| !of.all.is_empty()).collect();
        let hold = |it: &Stretch| Constant {
            from: measure + it.from,
            until: (measure + it.until).min(end),
        };
        let holds = shapes.iter().map(|stretches| {
            let holds = stretches
                .all
                .iter()
                .filter(|it| it.is_hold && it.from < lasts);
            holds.map(hold).collect()
        });
        let holds: Vec<Vec<Constant>> = holds.collect();
        let inner = holds
            .iter()
            .flatten()
            .flat_map(|hold| [ceil(hold.from), floor(hold.until)]);
        let inner = inner.filter(|border| *border > measure && *border < end);
        let mut borders: Vec<Micros> = inner.chain([measure, end]).collect();
        borders.sort_unstable();
        borders.dedup();
        if borders.len() < 3 {
            return Vec::new();
        }
        let sum = |at: Micros, side: Side| -> f64 {
            let uplinks = shapes.iter().filter(|stretches| stretches.is_uplink);
            uplinks
                .map(|stretches| rate_at(&stretches.all, at - measure, side))
                .sum()
        };
        let steps = borders.windows(2).map(|pair| {
            let (from, until) = (pair[0], pair[1]);
            let is_in = |hold: &Constant| hold.from <= from && until <= hold.until;
            StepPlan {
                from,
                until,
                rate: sum(from, Side::After),
                rate_until: sum(until, Side::Before),
                is_hold: holds.iter().all(|holds| holds.iter().any(is_in)),
            }
        });
        steps.collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// The rate just before or after an instant of a shape.
fn rate_at(stretches: &[Stretch], at: Micros, side: Side) -> f64 {
    let mut all = stretches.iter();
    let stretch = match side {
        Side::Before => all.find(|it| at <= it.until),
        Side::After => all.rfind(|it| it.from <= at),
    };
    stretch.map_or(0.0, |it| it.rate_at(at))
}

const SECOND: u64 = 1_000_000;

/// The whole second at or before an instant.
fn floor(at: Micros) -> Micros {
    Micros(at.0 / SECOND * SECOND)
}

/// The whole second at or after an instant.
fn ceil(at: Micros) -> Micros {
    Micros(at.0.div_ceil(SECOND) * SECOND)
}

#[cfg(test)]
mod tests {
    use muster_load::{Shape, Stage};
    use muster_model::Rate;

    use super::*;

    fn stage(to: f64, over_ms: u64, hold_ms: u64) -> Stage {
        Stage {
            to: Rate::per_second(to).expect("a rate"),
            over: Micros::from_millis(over_ms),
            hold: Micros::from_millis(hold_ms),
        }
    }

    #[test]
    fn the_rate_jumps_at_a_stage_without_a_line() {
        let stages = [
            stage(100.0, 0, 10_000),
            stage(200.0, 0, 5_000),
            stage(400.0, 2_000, 0),
        ];
        let stages = Shape::Stages(stages.to_vec()).stretches(Micros::from_secs(60));
        let at = |ms, side| rate_at(&stages, Micros::from_millis(ms), side);
        for (ms, before, after) in [
            (5_000, 100.0, 100.0),
            (10_000, 100.0, 200.0),
            (15_000, 200.0, 200.0),
            (16_000, 300.0, 300.0),
            (17_000, 400.0, 400.0),
            (60_000, 400.0, 400.0),
        ] {
            assert_eq!(
                (at(ms, Side::Before), at(ms, Side::After)),
                (before, after),
                "{ms}"
            );
        }
        assert_eq!(at(0, Side::After), 100.0);
    }
}
