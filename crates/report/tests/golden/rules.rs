//! The rules of the samples, with figures taken from the samples themselves.

use muster_judge::SetNames;
use muster_model::figure;
use muster_report::{
    Consequence, Figure, InvalidReason, LatencyFigures, Report, Rule, RuleKind, RuleResult,
};

use RuleKind::{Drain, Slo, Stability, StopIf, Validity};
use RuleResult::{Fail, NotEvaluated, Pass};

/// A rule on the run without figures; named if it is an SLO.
pub(crate) fn rule(kind: RuleKind, name: &str, result: RuleResult) -> Rule {
    Rule {
        rule: name.to_owned(),
        scope: "run".to_owned(),
        except: Vec::new(),
        sets: SetNames::default(),
        kind,
        named: kind == Slo,
        result,
        consequence: consequence(kind, result),
        observed: None,
        lower: None,
        bound: None,
        since_s: None,
        evidence: String::new(),
        note: None,
        invalid: InvalidReason::default(),
    }
}

fn consequence(kind: RuleKind, result: RuleResult) -> Consequence {
    match (kind, result) {
        (Validity, Fail) | (Slo, NotEvaluated) => Consequence::Invalidates,
        (Slo | Drain | StopIf, Fail) => Consequence::Fails,
        _ => Consequence::None,
    }
}

fn told(mut rule: Rule, observed: Figure, bound: Figure, evidence: &str) -> Rule {
    rule.observed = Some(observed);
    rule.bound = Some(bound);
    rule.evidence = evidence.to_owned();
    rule
}

fn since(since_s: f64, rule: Rule) -> Rule {
    Rule {
        since_s: Some(since_s),
        ..rule
    }
}

fn of_stream(report: &Report, rule: Rule) -> Rule {
    Rule {
        scope: format!("{}/readings", report.name),
        ..rule
    }
}

fn ratio(part: u64, whole: u64) -> Figure {
    Figure::Fraction {
        fraction: (part as f64 / whole as f64 * 1e6).round() / 1e6,
    }
}

fn p99(leg: Option<&LatencyFigures>) -> Figure {
    Figure::time(leg.and_then(|leg| leg.percentiles.p99_us).unwrap_or(0))
}

const NONE: Figure = Figure::Count(0);

/// Loss, failures, latency and disconnects of the target.
pub(crate) fn failed(report: &Report) -> Vec<Rule> {
    let lost = Figure::Count(report.ledger.uplink.arrivals.lost.unwrap_or(0));
    let mut rules = vec![since(
        31.0,
        told(
            rule(Slo, "loss", Fail),
            lost,
            NONE,
            "37 of 257,996 (0.014 %) at backend northbound",
        ),
    )];
    rules.extend(failed_measured(report));
    rules.extend(failed_links(report));
    rules.extend(validity(report));
    rules
}

/// Rules judged on the cohort due while measuring.
fn failed_measured(report: &Report) -> [Rule; 3] {
    let measured = &report.ledger.measured;
    let due = measured.scheduled.unwrap_or(0);
    let (rejected, broken) = (measured.rejected, measured.broken);
    let windows = report
        .windows
        .iter()
        .filter(|window| window.phase == "measure");
    let heat = windows.flat_map(|window| &window.response_heat.0);
    let above: u64 = heat
        .filter_map(|[edge, count]| (*edge >= 250_000).then_some(*count))
        .sum();
    let failures = format!(
        "2,010 of 240,000 (0.84 %): rejected {} (0x97), broken {broken} (reset)",
        figure::count(rejected)
    );
    let late = format!(
        "{above} above the bound and {broken} without an answer; at most {} may be",
        due / 100
    );
    let response = of_stream(report, rule(Slo, "response p99", Fail));
    let end_to_end = of_stream(report, rule(Slo, "end-to-end p99", Pass));
    let part = |fraction| Figure::Fraction { fraction };
    let time = Figure::time;
    [
        since(
            74.0,
            told(
                rule(Slo, "failure-ratio", Fail),
                ratio(rejected + broken, due),
                part(0.001),
                &failures,
            ),
        ),
        since(
            72.0,
            told(
                response,
                p99(report.latency.response.as_ref()),
                time(250_000),
                &late,
            ),
        ),
        told(
            end_to_end,
            p99(report.latency.end_to_end.as_ref()),
            time(5_000_000),
            "66 above the bound; at most 2,379 may be",
        ),
    ]
}

fn failed_links(report: &Report) -> [Rule; 4] {
    let stable = of_stream(report, rule(Stability, "stable", Pass));
    let slope = |per_second| Figure::PerSecond { per_second };
    [
        told(
            rule(Slo, "connected", Pass),
            ratio(1, 1),
            Figure::Fraction { fraction: 0.999 },
            "10,000 of 10,000 links up at the end of the connect phase",
        ),
        since(
            115.0,
            told(
                rule(Slo, "disconnects", Fail),
                Figure::Count(1_000),
                NONE,
                "closed-by-peer 1,000",
            ),
        ),
        told(
            rule(Drain, "drain", Pass),
            NONE,
            NONE,
            "everything due had come or was final when settling ended",
        ),
        told(
            stable,
            slope(-0.4),
            slope(10.0),
            "device backlog 0.01 s of traffic, not growing",
        ),
    ]
}

/// Every rule holds; one is close to its bound, and stability needs a longer run.
pub(crate) fn passed(report: &Report) -> Vec<Rule> {
    let due = report.ledger.measured.scheduled.unwrap_or(0);
    let all = report.ledger.uplink.scheduled.unwrap_or(0);
    let bounded = |n: u64| format!("0 of {n}: at most {:.3} % at 95 %", 100.0 * 3.0 / n as f64);
    let mut rules = vec![
        told(rule(Slo, "loss", Pass), NONE, NONE, &bounded(all)),
        told(
            rule(Slo, "failure-ratio", Pass),
            ratio(0, 1),
            ratio(0, 1),
            &bounded(due),
        ),
        told(
            of_stream(report, rule(Slo, "response p99", Pass)),
            p99(report.latency.response.as_ref()),
            Figure::time(50_000),
            "0 above the bound; at most 50 may be",
        ),
        told(
            rule(Slo, "connected", Pass),
            ratio(1, 1),
            ratio(1, 1),
            "100 of 100 links up at the end of the connect phase",
        ),
        told(
            rule(Drain, "drain", Pass),
            NONE,
            NONE,
            "everything due had come or was final when settling ended",
        ),
    ];
    rules.push(Rule {
        evidence: "needs 30 s".to_owned(),
        ..of_stream(report, rule(Stability, "stable", NotEvaluated))
    });
    rules.extend(validity(report));
    rules
}

/// The generator was starved: its own delay decides the response.
pub(crate) fn invalid(report: &Report) -> Vec<Rule> {
    let mut rules = passed(report);
    let response = report.latency.response.as_ref();
    for rule in rules.iter_mut().filter(|rule| rule.rule == "response p99") {
        rule.result = NotEvaluated;
        rule.consequence = Consequence::Invalidates;
        rule.observed = Some(p99(response));
        rule.lower = Some(Figure::time(31_000));
        rule.evidence =
            "our own delay decides: the rule holds without it; 7,702 above and 0 without an \
                         end, of 60,000 (600 allowed)"
                .to_owned();
        rule.since_s = Some(39.0);
        let reason = muster_judge::Reason::OwnDelay;
        rule.invalid.reason = Some(reason.name().to_owned());
        rule.invalid.remedy = Some(format!("{} ({})", reason.remedy(), reason.section()));
    }
    rules
}

fn validity(report: &Report) -> Vec<Rule> {
    let lateness = p99(report.latency.lateness.as_ref());
    [
        ("residue", NONE, NONE, "every ledger closes"),
        ("shed-own", NONE, NONE, "nothing was shed by us"),
        (
            "shape",
            lateness,
            Figure::time(100_000),
            "lateness p99: 0 of 60,000 above",
        ),
        ("receive-drops", NONE, NONE, "none"),
        ("own-consumer", NONE, NONE, "none"),
        ("limits", NONE, NONE, "none"),
        ("clock", NONE, NONE, "none"),
    ]
    .map(|(name, observed, bound, evidence)| {
        told(rule(Validity, name, Pass), observed, bound, evidence)
    })
    .to_vec()
}
