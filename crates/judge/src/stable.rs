//! Rule `stable`, of every stream, from the series of its seconds.

use muster_measure::{Distribution, Phase, ScopeSummary, SecondRow, State};
use muster_model::{Micros, StreamId, figure};

use crate::stability::{Creep, Growth, HoldSeries, Point, Stability};
use crate::starved::StarvedSeconds;
use crate::{
    Evidence, Figure, Hold, OwnDelay, RuleKind, RuleResult, Rules, SetNames, Slo, SloBound,
    StreamEvidence, Unevaluated, delivery,
};

/// One result a stream: always evaluated, and named where a named SLO `stable` covers the stream.
pub(crate) fn evaluate(rules: &Rules, evidence: &Evidence<'_>) -> Vec<RuleResult> {
    let streams = evidence
        .streams
        .iter()
        .zip(&evidence.summary.streams)
        .enumerate()
        .filter(|(_, (stream, _))| stream.role.is_uplink());
    streams
        .map(|(id, (stream, scope))| {
            let slo = naming(rules, stream, StreamId(id as u8));
            let sets = slo.map_or_else(SetNames::default, |slo| slo.sets.clone());
            let rule = RuleResult::new(RuleKind::Stability, "stable", &stream.name);
            let rule = rule.named(slo.is_some()).of_sets(&sets);
            of_stream(rule, rules.stability.min_windows, (stream, scope), evidence)
        })
        .collect()
}

/// The named SLO `stable` that covers a stream, first one of all sets.
fn naming<'a>(rules: &'a Rules, stream: &StreamEvidence, id: StreamId) -> Option<&'a Slo> {
    let named = rules.slos.iter();
    let named = named.filter(|slo| slo.named && slo.bound == SloBound::Stable);
    let covering = named.filter(|slo| slo.covers(stream.fleet, id));
    covering.min_by_key(|slo| !slo.sets.is_all())
}

/// The worst of a stream's holds that are long enough.
fn of_stream(
    rule: RuleResult,
    min_windows: u32,
    (stream, scope): (&StreamEvidence, &ScopeSummary),
    evidence: &Evidence<'_>,
) -> RuleResult {
    if scope.uplink.scheduled.is_none() {
        return rule.not_evaluated(Unevaluated::Unknown);
    }
    if stream.holds.is_empty() {
        return rule.not_evaluated(Unevaluated::NotConstant);
    }
    let windows = |hold: &Hold| rows_of(hold, scope).count() as u32;
    let have = stream.holds.iter().map(windows).max().unwrap_or(0);
    if have < min_windows {
        return rule.not_evaluated(Unevaluated::TooFewWindows {
            have,
            needed: min_windows,
        });
    }
    let long = stream
        .holds
        .iter()
        .filter(|hold| windows(hold) >= min_windows);
    let assessed = long.filter_map(|hold| {
        let series = series(hold, stream, scope, evidence);
        let stability = series.assess()?;
        let own = match &stability {
            Stability::Unstable { growth, .. } => {
                // What a closed loop leaves out is no time that a message waits.
                let waits_s = (!stream.is_closed).then_some(growth.growth_s);
                match lateness_grew(&series.latencies, waits_s, &lateness(hold, scope)) {
                    true => Some(OwnDelay::Lateness),
                    false => starved_part(&series, min_windows, evidence),
                }
            }
            Stability::Stable { .. } | Stability::Unclear { .. } => None,
        };
        Some((stability, own))
    });
    // A hold that is unstable without our own part weighs more than one that may be so by it.
    match assessed.max_by_key(|(stability, own)| (severity(stability), own.is_none())) {
        None => rule.not_evaluated(Unevaluated::NothingDue),
        Some((Stability::Stable { .. }, _)) if delivery::is_unknown(stream) => {
            rule.not_evaluated(Unevaluated::DeliveryUnknown)
        }
        Some((Stability::Stable { .. }, _)) if delivery::is_without_times(stream, evidence) => {
            rule.not_evaluated(Unevaluated::NoTimes)
        }
        Some((stability, own)) => {
            let rule = words(rule, &stability);
            let since_s = rule.since_s;
            match own {
                None => rule,
                Some(own) => rule.undecided(own, since_s),
            }
        }
    }
}

/// The part of starved consumers in a hold that is unstable, if it could have made it so.
fn starved_part(
    series: &HoldSeries,
    min_windows: u32,
    evidence: &Evidence<'_>,
) -> Option<OwnDelay> {
    let starved = StarvedSeconds::of(evidence.health);
    let is_fed = |point: &Point| !starved.contains(point.t_s as u32 - 1);
    let mut fed = series.clone();
    for (side, backlog) in &mut fed.backlogs {
        // The device side has no consumer.
        if side.starts_with(BACKEND) {
            backlog.retain(is_fed);
        }
    }
    let is_short = |backlog: &[Point]| backlog.len() < min_windows as usize;
    let dropped = fed.backlogs.iter().zip(&series.backlogs);
    let dropped = dropped.filter(|((_, fed), (_, all))| fed.len() < all.len() && is_short(fed));
    let too_short: Vec<String> = dropped.map(|((side, _), _)| side.clone()).collect();
    fed.backlogs.retain(|(side, _)| !too_short.contains(side));
    let is_unstable = matches!(fed.assess(), Some(Stability::Unstable { .. }));
    (!starved.is_empty() && !is_unstable).then_some(OwnDelay::Consumer)
}

/// 99th percentiles of lateness by second of due.
fn lateness(hold: &Hold, scope: &ScopeSummary) -> Vec<Point> {
    let rows = rows_of(hold, scope);
    rows.filter_map(|row| {
        Some(Point {
            t_s: f64::from(row.second),
            value: row.lateness_p99_us? as f64,
        })
    })
    .collect()
}

/// Returns whether lateness rises by test (b), and by at least half of what the latencies rose.
/// Messages that have not ended show in no latency but in the backlog, whose growth in seconds of
/// traffic is the time that they wait by Little's law.
fn lateness_grew(
    latencies: &[(String, Vec<Point>)],
    backlog_s: Option<f64>,
    lateness: &[Point],
) -> bool {
    let Some(own) = Creep::of(lateness).filter(Creep::is_rising) else {
        return false;
    };
    let rises = latencies.iter().filter_map(|(_, points)| Creep::of(points));
    let rises = rises.map(|creep| creep.rise_us);
    let most = rises.chain(backlog_s.map(|s| s * 1e6)).fold(0.0, f64::max);
    most > 0.0 && 2.0 * own.rise_us >= most
}

/// The first word of a backlog of the backend side.
const BACKEND: &str = "backend";

const fn severity(stability: &Stability) -> u8 {
    match stability {
        Stability::Stable { .. } => 0,
        Stability::Unclear { .. } => 1,
        Stability::Unstable { .. } => 2,
    }
}

/// The whole seconds of the measured phase that lie within a hold.
fn rows_of<'a>(hold: &Hold, scope: &'a ScopeSummary) -> impl Iterator<Item = &'a SecondRow> {
    let (from, until) = (hold.from, hold.until);
    scope.series.iter().filter(move |row| {
        let begins = Micros::from_secs(u64::from(row.second));
        let ends = begins + Micros::from_secs(1);
        row.phase == Phase::Measure && row.is_whole && begins >= from && ends <= until
    })
}

fn words(rule: RuleResult, stability: &Stability) -> RuleResult {
    match stability {
        Stability::Stable { side, growth } => {
            let mut rule = slope(rule, growth).decided(true, None);
            let level = growth.level_s.max(0.0);
            rule.evidence = format!("{side} backlog {level:.2} s of traffic, not growing");
            if growth.has_grown() {
                rule.evidence = format!("{side} backlog grew to {level:.2} s of traffic");
                rule.note = Some(NOT_STEADILY.to_owned());
            }
            rule
        }
        Stability::Unstable {
            side,
            growth,
            since_s,
        } => slope(rule, growth)
            .evidence(format!(
                "{side} backlog grows by {}/s, at 95 % by {}/s or more: by {:.2} s of traffic so far",
                figure::rate(growth.trend.slope),
                figure::rate(growth.trend.lower),
                growth.growth_s
            ))
            .decided(false, Some(*since_s as u32)),
        Stability::Unclear {
            latency,
            creep,
            needed_s,
        } => {
            let reason = Unevaluated::Unclear {
                needed_s: *needed_s,
            };
            let rose = figure::time(Micros(creep.rise_us as u64));
            let odds = creep.trend.p();
            rule.not_evaluated(reason)
                .evidence(format!("{reason} ({latency} rose by {rose}, p = {odds:.4})"))
        }
    }
}

fn slope(rule: RuleResult, growth: &Growth) -> RuleResult {
    rule.bound(Figure::PerSecond(growth.least_slope()))
        .observed(Some(Figure::PerSecond(growth.trend.slope)))
}

/// The caveat on a backlog that grew and then stood still, as of a queue that filled and now drops:
/// no growth by the rule, and nothing that its reader must miss.
const NOT_STEADILY: &str = "a backlog grew, though not steadily";

/// The backlogs and latencies of one hold.
fn series(
    hold: &Hold,
    stream: &StreamEvidence,
    scope: &ScopeSummary,
    evidence: &Evidence<'_>,
) -> HoldSeries {
    let side =
        |name: &str, change: fn(&SecondRow) -> i64| (name.to_owned(), backlog(hold, scope, change));
    // A closed loop cannot have more in flight than it has devices; what it leaves out and what it
    // holds back grows in the place of a backlog.
    let backlogs = if stream.is_closed {
        vec![side("omitted", omitted), side("held", held)]
    } else {
        // A store keeps no instant at which it took a message.
        let is_timed = |at: &usize| {
            evidence
                .summary
                .backends
                .get(*at)
                .is_none_or(|it| !it.is_store)
        };
        let backends = (0..evidence.backends.len()).filter(is_timed).map(|at| {
            let points = backlog(hold, scope, |row| undelivered(row, at));
            let name = evidence.backend(at);
            let name = name.trim_start_matches("the ");
            debug_assert!(
                name.starts_with(BACKEND),
                "a backend's side begins with that word"
            );
            (name.to_owned(), points)
        });
        std::iter::once(side("device", unanswered))
            .chain(backends)
            .collect()
    };
    HoldSeries {
        offered: hold.offered.get(),
        backlogs,
        latencies: latencies(hold, scope),
    }
}

/// A backlog at the end of each window of the hold: the running sum, from the first message of
/// the run, of what joins it in a second less what leaves it.
fn backlog(hold: &Hold, scope: &ScopeSummary, change: impl Fn(&SecondRow) -> i64) -> Vec<Point> {
    let mut windows = rows_of(hold, scope).map(|row| row.second).peekable();
    let mut points = Vec::new();
    let mut waiting = 0;
    let mut rows = scope.series.iter().peekable();
    while let Some(row) = rows.next() {
        waiting += change(row);
        let is_last_of_second = rows.peek().is_none_or(|next| next.second != row.second);
        if is_last_of_second && windows.next_if_eq(&row.second).is_some() {
            points.push(Point {
                t_s: f64::from(row.second) + 1.0,
                value: waiting as f64,
            });
        }
    }
    points
}

fn difference(joins: u64, leaves: u64) -> i64 {
    // Counts of one second are far below 2^63.
    joins as i64 - leaves as i64
}

/// Device side: due, and not final.
fn unanswered(row: &SecondRow) -> i64 {
    difference(row.due.finals(), row.flow.finals())
}

/// Backend side: due, and neither arrived nor known never to arrive. What was shed leaves when it
/// was shed; what was rejected, failed or lost without ever arriving never waited for the backend,
/// so it leaves when it joins, and waits on the device side until its own end. What failed and may
/// still arrive, since the target still delivers, does wait.
fn undelivered(row: &SecondRow, backend: usize) -> i64 {
    let at = row.arrivals.get(backend).copied().unwrap_or_default();
    let absent = at.lost_due + at.rejected_absent_due + at.failed_absent_due;
    difference(
        row.due.finals(),
        row.flow.of(State::Shed) + at.arrived + absent,
    )
}

/// Closed loops: wanted by the nominal schedule, and not due since the answer before was missing.
fn omitted(row: &SecondRow) -> i64 {
    difference(row.offered.unwrap_or(0), row.due.finals())
}

/// Closed loops: due, and neither sent nor shed.
fn held(row: &SecondRow) -> i64 {
    difference(row.due.finals(), row.flow.sent + row.flow.of(State::Shed))
}

/// Median and p90 by due second: of the response where the stream has one, the unanswered at their
/// lower bound, else of end-to-end.
fn latencies(hold: &Hold, scope: &ScopeSummary) -> Vec<(String, Vec<Point>)> {
    let has_response = scope.latency.response.is_some();
    let name = if has_response {
        "response"
    } else {
        "end-to-end"
    };
    let distribution = |row: &SecondRow| -> Distribution {
        if !has_response {
            return row.end_to_end.clone();
        }
        let mut all = row.response.clone();
        all.merge(&row.censored);
        all
    };
    let percentile = |share: f64| -> Vec<Point> {
        rows_of(hold, scope)
            .filter_map(|row| {
                let value = distribution(row).quantile_us(share)? as f64;
                Some(Point {
                    t_s: f64::from(row.second),
                    value,
                })
            })
            .collect()
    };
    vec![
        (format!("{name} p50"), percentile(0.5)),
        (format!("{name} p90"), percentile(0.9)),
    ]
}
