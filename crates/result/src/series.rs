//! Several runs as one: the worst verdict, and how far the figures lie apart.

use std::collections::BTreeMap;

use muster_report::{Figure, LatencyFigures, Percentiles, RepeatedRun, Report, RunResult, Spread};

/// A headline figure of a run; none where it is not known.
type Pick = fn(&Report) -> Option<Figure>;

/// The headline figures, in the order of the summary.
const FIGURES: [(&str, Pick); 13] = [
    ("offered", |of| rate(of.rates.offered)),
    ("issued", |of| rate(of.rates.issued)),
    ("completed", |of| rate(of.rates.completed)),
    ("accepted", |of| rate(of.rates.accepted)),
    ("arrived", |of| rate(of.rates.arrived)),
    ("response p50", |of| time(of.latency.response.as_ref(), p50)),
    ("response p99", |of| time(of.latency.response.as_ref(), p99)),
    ("service p50", |of| time(of.latency.service.as_ref(), p50)),
    ("service p99", |of| time(of.latency.service.as_ref(), p99)),
    ("end-to-end p50", |of| {
        time(of.latency.end_to_end.as_ref(), p50)
    }),
    ("end-to-end p99", |of| {
        time(of.latency.end_to_end.as_ref(), p99)
    }),
    ("lost", |of| {
        of.ledger.uplink.arrivals.lost.map(Figure::Count)
    }),
    ("failure-ratio", failure_ratio),
];

fn rate(per_second: Option<f64>) -> Option<Figure> {
    per_second.map(|per_second| Figure::PerSecond { per_second })
}

fn time(leg: Option<&LatencyFigures>, pick: fn(&Percentiles) -> Option<u64>) -> Option<Figure> {
    let us = pick(&leg?.percentiles)?;
    Some(Figure::time(us))
}

fn p50(of: &Percentiles) -> Option<u64> {
    of.p50_us
}

fn p99(of: &Percentiles) -> Option<u64> {
    of.p99_us
}

/// docs/semantics.md#the-other-slos: of the measured cohort.
fn failure_ratio(report: &Report) -> Option<Figure> {
    let ledger = &report.ledger.measured;
    let scheduled = ledger.scheduled.filter(|scheduled| *scheduled > 0)?;
    Some(Figure::Fraction {
        fraction: ledger.failed as f64 / scheduled as f64,
    })
}

/// The headline figures of a run by name.
pub fn figures(report: &Report) -> BTreeMap<String, Option<Figure>> {
    let named = FIGURES.iter();
    named
        .map(|(name, pick)| ((*name).to_owned(), pick(report)))
        .collect()
}

/// The spread of each headline figure over the runs that passed or failed; what none of them
/// knows is left out.
pub fn spread(runs: &[RepeatedRun]) -> Vec<Spread> {
    spread_over(runs, |result| {
        matches!(result, RunResult::Pass | RunResult::Fail)
    })
}

/// The same over the invalid runs.
pub fn spread_of_invalid(runs: &[RepeatedRun]) -> Vec<Spread> {
    spread_over(runs, |result| result == RunResult::Invalid)
}

fn spread_over(runs: &[RepeatedRun], is_wanted: impl Fn(RunResult) -> bool) -> Vec<Spread> {
    let of = |(name, _): &(&str, Pick)| {
        let wanted = runs.iter().filter(|run| is_wanted(run.result));
        let figures = wanted.filter_map(|run| run.figures.get(*name).copied().flatten());
        spread_of(name, figures.collect())
    };
    FIGURES.iter().filter_map(of).collect()
}

fn spread_of(name: &str, mut figures: Vec<Figure>) -> Option<Spread> {
    figures.sort_by(|a, b| number(*a).total_cmp(&number(*b)));
    let (min, max) = (*figures.first()?, *figures.last()?);
    let (below, above) = (figures[(figures.len() - 1) / 2], figures[figures.len() / 2]);
    Some(Spread {
        figure: name.to_owned(),
        median: middle(below, above),
        min,
        max,
        runs: figures.len() as u32,
    })
}

fn number(figure: Figure) -> f64 {
    match figure {
        Figure::Count(count) => count as f64,
        Figure::Time { us, at_least: _ } => us as f64,
        Figure::Fraction { fraction } => fraction,
        Figure::PerSecond { per_second } => per_second,
    }
}

/// The mean of two figures of one kind.
fn middle(a: Figure, b: Figure) -> Figure {
    let mean = f64::midpoint(number(a), number(b));
    match a {
        Figure::Count(_) => Figure::Count(mean.ceil() as u64),
        Figure::Time { us: _, at_least: _ } => Figure::time(mean.ceil() as u64),
        Figure::Fraction { fraction: _ } => Figure::Fraction { fraction: mean },
        Figure::PerSecond { per_second: _ } => Figure::PerSecond { per_second: mean },
    }
}

/// The verdict on the runs; `wanted` is the number asked for.
pub fn worst(runs: &[RepeatedRun], wanted: u32) -> RunResult {
    let stopped = if runs.len() < wanted as usize {
        RunResult::Invalid
    } else {
        RunResult::Pass
    };
    let results = runs.iter().map(|run| run.result);
    results.fold(stopped, RunResult::or_worse)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(result: RunResult, lost: Option<u64>) -> RepeatedRun {
        let figures = BTreeMap::from([("lost".to_owned(), lost.map(Figure::Count))]);
        RepeatedRun {
            result,
            figures,
            ..RepeatedRun::silent(String::new())
        }
    }

    #[test]
    fn the_worst_run_is_the_verdict() {
        use RunResult::{Fail, Invalid, Pass};
        for (results, wanted, verdict) in [
            (&[Pass, Pass][..], 2, Pass),
            (&[Pass, Fail, Pass], 3, Fail),
            (&[Fail, Invalid, Pass], 3, Invalid),
            (&[Invalid, RunResult::None, Fail], 3, RunResult::None),
            (&[Pass, Fail], 3, Invalid),
        ] {
            let runs: Vec<RepeatedRun> = results.iter().map(|result| run(*result, None)).collect();
            assert_eq!(worst(&runs, wanted), verdict, "{results:?} of {wanted}");
        }
    }

    #[test]
    fn the_spread_is_of_the_runs_that_may_be_believed_and_know_the_figure() {
        let runs = [
            run(RunResult::Pass, Some(5)),
            run(RunResult::Invalid, Some(900)),
            run(RunResult::Fail, Some(2)),
            run(RunResult::Pass, None),
            run(RunResult::None, None),
        ];
        let spread = spread(&runs);
        assert_eq!(spread.len(), 1);
        assert_eq!(
            spread[0],
            Spread {
                figure: "lost".to_owned(),
                median: Figure::Count(4),
                min: Figure::Count(2),
                max: Figure::Count(5),
                runs: 2,
            }
        );
    }

    #[test]
    fn figures_of_invalid_runs_have_a_spread_of_their_own() {
        let runs = [
            run(RunResult::Pass, Some(5)),
            run(RunResult::Invalid, Some(900)),
            run(RunResult::Invalid, Some(1)),
            run(RunResult::None, None),
        ];
        let [lost] = &spread_of_invalid(&runs)[..] else {
            panic!("one figure is known")
        };
        assert_eq!((lost.min, lost.max), (Figure::Count(1), Figure::Count(900)));
        assert_eq!(lost.runs, 2);
    }

    #[test]
    fn the_median_of_an_odd_number_is_a_figure_that_was_seen() {
        let times = [30, 10, 21].map(Figure::time);
        let spread = spread_of("response p99", times.to_vec()).expect("there are figures");
        assert_eq!(spread.median, Figure::time(21));
    }
}
