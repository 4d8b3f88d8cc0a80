//! Is the generator to blame? (SEMANTICS section 5)

use muster_measure::{LatencyView, Phase};
use muster_model::{Micros, ShedCause};

use crate::latency::all_due;
use crate::rules::LATENESS_FLOOR;
use crate::slo::own_shed;
use crate::{
    Ending, Evidence, Figure, HostHealth, IncidentKind, Percentile, RuleKind, RuleResult, Rules,
    Share, ThreadHealth, ThreadRole, ThreadWindow, Unevaluated,
};

/// Every rule on the generator, in the order of the report.
pub(crate) fn evaluate(rules: &Rules, evidence: &Evidence<'_>) -> Vec<RuleResult> {
    let mut results = vec![
        interrupted(evidence),
        something_due(evidence),
        residue(evidence),
        shed_own(evidence),
        lateness(rules, evidence),
    ];
    results.extend(threads(rules, evidence));
    results.push(steal(rules.validity.steal, evidence));
    let kinds: [&[IncidentKind]; 5] = [
        &[IncidentKind::ReceiveDrop],
        &[IncidentKind::ConsumerAway],
        &[IncidentKind::LimitReached],
        &[IncidentKind::ClockStepped, IncidentKind::Suspended],
        &[IncidentKind::ProcessLost],
    ];
    results.extend(kinds.into_iter().map(|kinds| incidents(kinds, evidence)));
    results
}

fn new(rule: &str) -> RuleResult {
    RuleResult::new(RuleKind::Validity, rule, "run")
}

/// The run went on to its planned end, or to one that its rules set.
fn interrupted(evidence: &Evidence<'_>) -> RuleResult {
    let rule = new("uninterrupted");
    match evidence.ending {
        Ending::Planned => rule.evidence("the run went on to its end"),
        Ending::Stopped(_) => rule.evidence("the run ended by a rule of its own"),
        Ending::Interrupted => rule
            .evidence("the run was interrupted")
            .decided(false, None),
        Ending::NotBegun(reason) => rule.evidence(reason.clone()).decided(false, None),
    }
}

/// Something was due if a stream with a rate was declared.
fn something_due(evidence: &Evidence<'_>) -> RuleResult {
    let rule = new("something-due");
    let due = evidence.summary.run.uplink.scheduled;
    if evidence.streams.is_empty() {
        return rule.not_evaluated(Unevaluated::NothingDue);
    }
    let Some(due) = due else {
        return rule.not_evaluated(Unevaluated::Unknown);
    };
    rule.observed(Some(Figure::Count(due)))
        .evidence(format!("{due} messages were due"))
        .decided(due > 0, None)
}

/// Every ledger closes.
fn residue(evidence: &Evidence<'_>) -> RuleResult {
    let rule = new("residue").bound(Figure::Count(0));
    let Some(residue) = evidence.summary.residue else {
        let why =
            "the ledger was not closed: the run did not come to its end, or this is one part of it";
        return rule.evidence(why).decided(false, None);
    };
    let broken = evidence.summary.run.uplink.equations.iter();
    let broken: Vec<String> = broken
        .map(|e| format!("{} ({} against {})", e.name, e.left, e.right))
        .collect();
    let told = match (residue, broken.is_empty()) {
        (0, _) => "every ledger closes".to_owned(),
        (_, true) => "a ledger does not close".to_owned(),
        (_, false) => broken.join("; "),
    };
    rule.observed(Some(Figure::Count(residue)))
        .evidence(told)
        .decided(residue == 0, None)
}

/// Nothing was shed by a cause of our own.
fn shed_own(evidence: &Evidence<'_>) -> RuleResult {
    let ledger = &evidence.summary.run.uplink;
    let own = own_shed(&ledger.shed_by_cause);
    let named = ledger.shed_by_cause.iter().filter(|(name, count)| {
        **count > 0
            && ShedCause::ALL
                .iter()
                .any(|c| c.is_own() && c.name() == *name)
    });
    let named: Vec<String> = named
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let told = if own == 0 {
        "nothing was shed by us".to_owned()
    } else {
        named.join(", ")
    };
    let since = evidence
        .summary
        .run
        .series
        .iter()
        .find(|row| row.due.shed_own() > 0);
    new("own-shed")
        .bound(Figure::Count(0))
        .observed(Some(Figure::Count(own)))
        .evidence(told)
        .decided(own == 0, since.map(|row| row.second))
}

/// Where nothing else bounds it, lateness may be this share of the measured p99 ...
const LATENESS_SHARE: u64 = 20;

/// ... but never more than this.
const LATENESS_CEILING: Micros = Micros::from_millis(20);

/// The p99 of lateness in the measured cohort. A bound known before the run is decided by an exact
/// counter; one derived from the measured p99 by the upper edge of the bucket.
fn lateness(rules: &Rules, evidence: &Evidence<'_>) -> RuleResult {
    let rule = new("lateness-p99");
    let run = &evidence.summary.run;
    let Some(view) = &run.latency.lateness else {
        return rule.not_evaluated(Unevaluated::NothingDue);
    };
    let needed = Percentile::P99.needed();
    let have = view.known.count;
    if have < needed {
        return rule.not_evaluated(Unevaluated::TooFewMessages { have, needed });
    }
    let edge = view
        .known
        .quantile_us(Percentile::P99.as_fraction())
        .map_or(Micros::ZERO, Micros);
    let known = rules.lateness_bound();
    let bound = known.unwrap_or_else(|| lateness_by_measurement(evidence));
    let counter = known.and_then(|b| run.above(muster_measure::Latency::Lateness, b, None));
    let (holds, how) = match counter {
        Some(c) => (
            Percentile::P99.allows(c.above + c.missing, c.n),
            format!("{} of {} above", c.above + c.missing, c.n),
        ),
        None => (
            edge <= bound,
            "by the upper edge of the p99's bucket".to_owned(),
        ),
    };
    let rows = run.series.iter().filter(|row| row.phase == Phase::Measure);
    let late = rows.filter(|row| row.lateness_p99_us.is_some_and(|p99| p99 > bound.0));
    rule.bound(Figure::Time(bound))
        .observed(Some(Figure::Time(edge)))
        .evidence(how)
        .decided(holds, late.map(|row| row.second).min())
}

/// `max(1 ms, 5 % of the measured p99)`, at most 20 ms: of the response of all due, or where no
/// stream has one of end-to-end. Where neither could be measured nothing says that 20 ms matter.
fn lateness_by_measurement(evidence: &Evidence<'_>) -> Micros {
    let latency = &evidence.summary.run.latency;
    let p99 = |view: &LatencyView| {
        let all = all_due(view);
        let is_enough = all.count >= Percentile::P99.needed();
        is_enough
            .then(|| all.quantile_us(Percentile::P99.as_fraction()))
            .flatten()
    };
    let views = [latency.response.as_ref(), latency.end_to_end.as_ref()];
    let measured = views.into_iter().flatten().find_map(p99);
    let derived = measured.map(|p99| Micros(p99 / LATENESS_SHARE));
    derived.map_or(LATENESS_CEILING, |bound| {
        bound.clamp(LATENESS_FLOOR, LATENESS_CEILING)
    })
}

/// In this share of windows a thread must keep within its bounds.
const WINDOWS: Share = Share::whole_percent(95);

/// Rules `cpu` and `cpu-wait` of device shards and of consumer threads: the worst thread decides.
fn threads(rules: &Rules, evidence: &Evidence<'_>) -> Vec<RuleResult> {
    let bounds = &rules.validity;
    let cpu = |window: &ThreadWindow| Some(window.cpu);
    let waiting = |window: &ThreadWindow| window.waiting;
    let of = |role: ThreadRole| {
        evidence
            .health
            .threads
            .iter()
            .filter(move |t| t.role == role)
    };
    let mut results = Vec::with_capacity(4);
    for (role, suffix) in [
        (ThreadRole::Shard, ""),
        (ThreadRole::Consumer, " of consumers"),
    ] {
        let measured = evidence.summary.timeline;
        let during = |w: &ThreadWindow| w.until > measured.measure && w.until <= measured.settle;
        let busy: Vec<Use<'_>> = of(role).filter_map(|t| Use::of(t, during, cpu)).collect();
        let starved: Vec<Use<'_>> = of(role)
            .filter_map(|t| Use::of(t, during, waiting))
            .collect();
        results.push(worst_thread(&format!("cpu{suffix}"), bounds.cpu, &busy));
        results.push(worst_thread(
            &format!("cpu-wait{suffix}"),
            bounds.cpu_wait,
            &starved,
        ));
    }
    results
}

/// One share of one thread over the measured phase, as (second, share).
struct Use<'a> {
    name: &'a str,
    windows: Vec<(u32, f64)>,
    /// The least share that 95 % of the windows do not exceed.
    typical: f64,
}

impl<'a> Use<'a> {
    /// None if the thread has no window with that share.
    fn of(
        thread: &'a ThreadHealth,
        during: impl Fn(&ThreadWindow) -> bool,
        share: impl Fn(&ThreadWindow) -> Option<f64>,
    ) -> Option<Self> {
        let measured = thread.windows.iter().filter(|window| during(window));
        let windows: Vec<(u32, f64)> = measured
            .filter_map(|window| {
                let began = Micros(window.until.0.saturating_sub(1));
                share(window).map(|share| (began.second(), share))
            })
            .collect();
        let mut sorted: Vec<f64> = windows.iter().map(|(_, share)| *share).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let within = (1..=sorted.len())
            .find(|count| WINDOWS.is_reached_by(*count as u64, sorted.len() as u64))?;
        Some(Self {
            name: &thread.name,
            typical: sorted[within - 1],
            windows,
        })
    }
}

fn worst_thread(rule: &str, bound: Share, threads: &[Use<'_>]) -> RuleResult {
    let bound = bound.as_fraction();
    let rule = new(rule).bound(Figure::Fraction(bound));
    let worst = threads
        .iter()
        .max_by(|a, b| a.typical.total_cmp(&b.typical));
    let Some(worst) = worst else {
        return rule.not_evaluated(Unevaluated::NotMeasured);
    };
    let within = worst
        .windows
        .iter()
        .filter(|(_, share)| *share < bound)
        .count();
    let told = format!(
        "{}: below in {within} of {} s",
        worst.name,
        worst.windows.len()
    );
    let since = worst.windows.iter().find(|(_, share)| *share >= bound);
    rule.observed(Some(Figure::Fraction(worst.typical)))
        .evidence(told)
        .decided(worst.typical < bound, since.map(|(second, _)| *second))
}

/// What the hypervisor took over the measured phase, of the worst host.
fn steal(bound: Share, evidence: &Evidence<'_>) -> RuleResult {
    let bound = bound.as_fraction();
    let rule = new("steal").bound(Figure::Fraction(bound));
    let timeline = evidence.summary.timeline;
    let mean = |host: &HostHealth| {
        let measured = |at: &Micros| *at > timeline.measure && *at <= timeline.settle;
        let shares = host
            .steal
            .iter()
            .filter(|(at, _)| measured(at))
            .map(|(_, share)| *share);
        let (count, sum) = shares.fold((0.0, 0.0), |(count, sum), s| (count + 1.0, sum + s));
        (count > 0.0).then(|| sum / count)
    };
    let hosts = evidence.health.hosts.iter();
    let known = hosts.filter_map(|host| mean(host).map(|mean| (host, mean)));
    let Some((host, worst)) = known.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return rule.not_evaluated(Unevaluated::NotMeasured);
    };
    rule.observed(Some(Figure::Fraction(worst)))
        .evidence(format!("mean over the measured phase on {}", host.name))
        .decided(worst < bound, None)
}

/// No incident of these kinds.
fn incidents(kinds: &[IncidentKind], evidence: &Evidence<'_>) -> RuleResult {
    let of_kind = || {
        evidence
            .health
            .incidents
            .iter()
            .filter(|i| kinds.contains(&i.kind))
    };
    let name = kinds.first().map_or("", |kind| kind.rule());
    let happened: u64 = of_kind().map(|incident| incident.count.max(1)).sum();
    let told = of_kind()
        .take(MOST_TOLD)
        .map(|i| format!("{}: {}", i.kind, i.detail));
    let told: Vec<String> = told.collect();
    new(name)
        .bound(Figure::Count(0))
        .observed(Some(Figure::Count(happened)))
        .evidence(if told.is_empty() {
            "none".to_owned()
        } else {
            told.join("; ")
        })
        .decided(
            happened == 0,
            of_kind().map(|incident| incident.from.second()).min(),
        )
}

/// So many incidents are told in words; the count has them all.
const MOST_TOLD: usize = 3;
