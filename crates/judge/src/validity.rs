//! Is the generator to blame? (SEMANTICS section 5)

use std::collections::BTreeMap;

use muster_measure::{CommandLedger, Distribution, Phase, SecondRow};
use muster_model::{Micros, ShedCause, figure};

use crate::latency::all_due;
use crate::rules::LATENESS_FLOOR;
use crate::{
    Ending, Evidence, Figure, GeneratorHealth, HostHealth, IncidentKind, Percentile, RuleKind,
    RuleOutcome, RuleResult, Rules, Share, ThreadHealth, ThreadRole, ThreadWindow, Unevaluated,
    ValidityBounds,
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
    results.extend(command_lateness(rules, evidence));
    let timeline = &evidence.summary.timeline;
    let measured = (timeline.measure, timeline.settle);
    results.extend(generator(&rules.validity, evidence.health, measured));
    results
}

/// The validity rules on what the generator itself is seen to do: its threads, its hosts, its
/// incidents. `measured` is the measured phase, or as much of it as has passed: the live view asks
/// for the same rules on the samples so far.
#[must_use]
pub fn generator(
    bounds: &ValidityBounds,
    health: &GeneratorHealth,
    measured: (Micros, Micros),
) -> Vec<RuleResult> {
    let mut results = threads(bounds, health, measured);
    results.push(steal(bounds.steal, health, measured));
    let kinds: [&[IncidentKind]; 5] = [
        &[IncidentKind::ReceiveDrop],
        &[IncidentKind::ConsumerAway],
        &[IncidentKind::LimitReached],
        &[IncidentKind::ClockStepped, IncidentKind::Suspended],
        &[IncidentKind::ProcessLost],
    ];
    results.extend(kinds.into_iter().map(|kinds| incidents(kinds, health)));
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
        Ending::NoLinkUp => rule.evidence("no link was up when connecting ended"),
        Ending::NotBegun(reason) => rule.evidence(reason.clone()).decided(false, None),
    }
}

/// Something was due while measuring, if a stream with a rate was declared: a closed loop that waited
/// for an answer all the while has nothing to be judged by. A run that a rule of its own ended early
/// needs no more than to have begun.
fn something_due(evidence: &Evidence<'_>) -> RuleResult {
    let rule = new("something-due");
    let run = &evidence.summary.run;
    let commands = run.command.as_ref().and_then(|of| of.ledger.scheduled);
    if commands.is_none() && !evidence.streams.iter().any(|stream| stream.is_uplink) {
        return rule.not_evaluated(Unevaluated::NothingDue);
    }
    let (cohort, when) = match evidence.ending {
        Ending::Stopped(_) => (&run.uplink, "due"),
        Ending::NoLinkUp => return rule.not_evaluated(Unevaluated::NothingDue),
        Ending::Planned | Ending::Interrupted | Ending::NotBegun(_) => {
            (&run.measured, "due while measuring")
        }
    };
    let Some(messages) = cohort.scheduled else {
        return rule.not_evaluated(Unevaluated::Unknown);
    };
    let due = messages + commands.unwrap_or(0);
    rule.observed(Some(Figure::Count(due)))
        .evidence(format!("{} messages were {when}", figure::count(due)))
        .decided(due > 0, None)
}

/// Every ledger closes.
fn residue(evidence: &Evidence<'_>) -> RuleResult {
    let rule = new("residue").bound(Figure::Count(0));
    if evidence.is_part {
        return rule.not_evaluated(Unevaluated::OnePart);
    }
    if *evidence.ending == Ending::NoLinkUp && evidence.summary.residue.is_none() {
        return rule.not_evaluated(Unevaluated::NothingDue);
    }
    let Some(residue) = evidence.summary.residue else {
        let why = "the ledger was not closed: the run did not come to its end";
        return rule.evidence(why).decided(false, None);
    };
    let run = &evidence.summary.run;
    let command = run.command.iter().flat_map(|of| &of.ledger.equations);
    let reception = run.reception.iter().flat_map(|of| &of.ledger.equations);
    let broken = run.uplink.equations.iter().chain(command).chain(reception);
    let broken: Vec<String> = broken
        .map(|e| {
            let (left, right) = (figure::count(e.left), figure::count(e.right));
            format!("{} ({left} against {right})", e.name)
        })
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

/// Nothing was shed by a cause of our own: no message, no command, no reply.
fn shed_own(evidence: &Evidence<'_>) -> RuleResult {
    let run = &evidence.summary.run;
    let since = run.series.iter().find(|row| row.due.shed_own() > 0);
    let commands = run.command.as_ref().map(|command| &command.ledger);
    let by_cause = with_commands(&run.uplink.shed_by_cause, commands);
    own_shed(&by_cause, since.map(|row| row.second))
}

/// What was never sent, by cause: messages, and with them commands and replies.
fn with_commands(
    messages: &BTreeMap<String, u64>,
    commands: Option<&CommandLedger>,
) -> BTreeMap<String, u64> {
    let mut by_cause = messages.clone();
    if let Some(ledger) = commands {
        let unsent = ledger.withheld_by_cause.iter();
        for (cause, count) in unsent.chain(&ledger.answer_shed_by_cause) {
            *by_cause.entry(cause.clone()).or_default() += count;
        }
    }
    by_cause
}

/// Rule `own-shed` on what was shed so far, by cause; `since_s` is the first second of it.
#[must_use]
pub fn own_shed(by_cause: &BTreeMap<String, u64>, since_s: Option<u32>) -> RuleResult {
    let own = muster_measure::own_shed(by_cause);
    let causes = ShedCause::ALL.into_iter().filter(|cause| cause.is_own());
    let named = causes.filter_map(|cause| by_cause.get_key_value(cause.name()));
    let named: Vec<String> = named
        .filter(|(_, count)| **count > 0)
        .map(|(name, count)| format!("{name} {}", figure::count(*count)))
        .collect();
    let told = if own == 0 {
        "nothing was shed by us".to_owned()
    } else {
        named.join(", ")
    };
    new("own-shed")
        .bound(Figure::Count(0))
        .observed(Some(Figure::Count(own)))
        .evidence(told)
        .decided(own == 0, since_s)
}

/// Where nothing else bounds it, lateness may be this share of the measured p99 ...
const LATENESS_SHARE: u64 = 20;

/// ... but never more than this.
const LATENESS_CEILING: Micros = Micros::from_millis(20);

/// What rule `lateness-p99` is decided by, of the measured cohort.
#[derive(Debug, Clone, Copy)]
pub struct Delays<'a> {
    /// The lateness of every message taken.
    pub lateness: &'a Distribution,
    /// The exact counter of the bound that is known before the run: above it, of how many.
    pub above: Option<(u64, u64)>,
    /// The response of all due; none where no stream has one.
    pub response: Option<&'a Distribution>,
    /// The end-to-end time of all due; none without a backend.
    pub end_to_end: Option<&'a Distribution>,
}

fn lateness(rules: &Rules, evidence: &Evidence<'_>) -> RuleResult {
    let run = &evidence.summary.run;
    let Some(view) = &run.latency.lateness else {
        return new(LATENESS).not_evaluated(Unevaluated::NothingDue);
    };
    let counter = rules
        .lateness_bound()
        .and_then(|bound| run.above(muster_measure::Latency::Lateness, bound, None));
    let response = run.latency.response.as_ref().map(all_due);
    let end_to_end = run.latency.end_to_end.as_ref().map(all_due);
    let delays = Delays {
        lateness: &view.known,
        above: counter.map(|counter| (counter.above + counter.missing, counter.n)),
        response: response.as_ref(),
        end_to_end: end_to_end.as_ref(),
    };
    let rule = lateness_p99(rules, &delays);
    let late = |row: &&SecondRow| {
        let bound = rule.bound.map_or(f64::MAX, Figure::value);
        row.phase == Phase::Measure && row.lateness_p99_us.is_some_and(|p99| p99 as f64 > bound)
    };
    let since_s = run.series.iter().filter(late).map(|row| row.second).min();
    match rule.outcome {
        RuleOutcome::Fail => rule.decided(false, since_s),
        RuleOutcome::Pass | RuleOutcome::NotEvaluated(_) => rule,
    }
}

const LATENESS: &str = "lateness-p99";

/// The same for commands; none if none was issued.
fn command_lateness(rules: &Rules, evidence: &Evidence<'_>) -> Option<RuleResult> {
    let run = &evidence.summary.run;
    let lateness = &run.command.as_ref()?.lateness.known;
    let response = run.latency.response.as_ref().map(all_due);
    let end_to_end = run.latency.end_to_end.as_ref().map(all_due);
    let delays = Delays {
        lateness,
        above: None,
        response: response.as_ref(),
        end_to_end: end_to_end.as_ref(),
    };
    (lateness.count > 0).then(|| command_lateness_p99(rules, &delays))
}

/// Rule `lateness-p99 of commands`: commands are few beside messages, so that late ones would not
/// show among all.
#[must_use]
pub fn command_lateness_p99(rules: &Rules, delays: &Delays<'_>) -> RuleResult {
    let delays = Delays {
        above: None,
        ..*delays
    };
    RuleResult {
        rule: format!("{LATENESS} of commands"),
        ..lateness_p99(rules, &delays)
    }
}

/// Rule `lateness-p99` on the delays so far. A bound known before the run is decided by an exact
/// counter; one derived from the measured p99 by the upper edge of the bucket.
#[must_use]
pub fn lateness_p99(rules: &Rules, delays: &Delays<'_>) -> RuleResult {
    let rule = new(LATENESS);
    let needed = Percentile::P99.needed();
    let have = delays.lateness.count;
    if have < needed {
        return rule.not_evaluated(Unevaluated::TooFewMessages { have, needed });
    }
    let edge = p99(delays.lateness).unwrap_or(Micros::ZERO);
    let known = rules.lateness_bound();
    let bound = known.unwrap_or_else(|| lateness_by_measurement(delays));
    let (holds, how) = match delays.above.filter(|_| known.is_some()) {
        Some((above, n)) => (
            Percentile::P99.allows(above, n),
            format!("{} of {} above", figure::count(above), figure::count(n)),
        ),
        None => (
            edge <= bound,
            "by the upper edge of the p99's bucket".to_owned(),
        ),
    };
    rule.bound(Figure::Time(bound))
        .observed(Some(Figure::Time(edge)))
        .evidence(how)
        .decided(holds, None)
}

/// `max(1 ms, 5 % of the measured p99)`, at most 20 ms: of the response of all due, or where no
/// stream has one of end-to-end. Where neither could be measured nothing says that 20 ms matter.
fn lateness_by_measurement(delays: &Delays<'_>) -> Micros {
    let is_enough = |all: &&Distribution| all.count >= Percentile::P99.needed();
    let legs = [delays.response, delays.end_to_end];
    let measured = legs.into_iter().flatten().filter(is_enough).find_map(p99);
    let derived = measured.map(|p99| Micros(p99.get() / LATENESS_SHARE));
    derived.map_or(LATENESS_CEILING, |bound| {
        bound.clamp(LATENESS_FLOOR, LATENESS_CEILING)
    })
}

fn p99(of: &Distribution) -> Option<Micros> {
    of.quantile_us(Percentile::P99.as_fraction()).map(Micros)
}

/// In this share of windows a thread must keep within its bounds.
const WINDOWS: Share = Share::whole_percent(95);

/// Rules `cpu` and `cpu-wait` of device shards and of consumer threads: the worst thread decides.
fn threads(
    bounds: &ValidityBounds,
    health: &GeneratorHealth,
    (from, until): (Micros, Micros),
) -> Vec<RuleResult> {
    let cpu = |window: &ThreadWindow| Some(window.cpu);
    let waiting = |window: &ThreadWindow| window.waiting;
    let of = |role: ThreadRole| health.threads.iter().filter(move |t| t.role == role);
    let during = |w: &ThreadWindow| w.until > from && w.until <= until;
    let mut results = Vec::with_capacity(4);
    for (role, suffix) in [
        (ThreadRole::Shard, ""),
        (ThreadRole::Consumer, " of consumers"),
    ] {
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
                // What was waited before the window is booked when the wait ends.
                share(window).map(|share| (began.second(), share.min(1.0)))
            })
            .collect();
        let mut shares: Vec<f64> = windows.iter().map(|(_, share)| *share).collect();
        let within = (1..=shares.len())
            .find(|count| WINDOWS.is_reached_by(*count as u64, shares.len() as u64))?;
        let (_, typical, _) = shares.select_nth_unstable_by(within - 1, f64::total_cmp);
        Some(Self {
            name: &thread.name,
            typical: *typical,
            windows,
        })
    }
}

/// No share is above the whole: a bound of 100 % holds always.
fn is_below(share: f64, bound: f64) -> bool {
    share < bound || bound >= 1.0
}

fn worst_thread(rule: &str, bound: Share, threads: &[Use<'_>]) -> RuleResult {
    let bound = bound.as_fraction();
    let holds = |share: f64| is_below(share, bound);
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
        .filter(|(_, share)| holds(*share))
        .count();
    let told = format!(
        "{}: below in {within} of {} s",
        worst.name,
        worst.windows.len()
    );
    let since = worst.windows.iter().find(|(_, share)| !holds(*share));
    rule.observed(Some(Figure::Fraction(worst.typical)))
        .evidence(told)
        .decided(holds(worst.typical), since.map(|(second, _)| *second))
}

/// What the hypervisor took over the measured phase, of the worst host.
fn steal(bound: Share, health: &GeneratorHealth, (from, until): (Micros, Micros)) -> RuleResult {
    let bound = bound.as_fraction();
    let rule = new("steal").bound(Figure::Fraction(bound));
    let mean = |host: &HostHealth| {
        let measured = |at: &Micros| *at > from && *at <= until;
        let shares = host
            .steal
            .iter()
            .filter(|(at, _)| measured(at))
            .map(|(_, share)| *share);
        let (count, sum) = shares.fold((0.0, 0.0), |(count, sum), s| (count + 1.0, sum + s));
        (count > 0.0).then(|| sum / count)
    };
    let hosts = health.hosts.iter();
    let known = hosts.filter_map(|host| mean(host).map(|mean| (host, mean)));
    let Some((host, worst)) = known.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return rule.not_evaluated(Unevaluated::NotMeasured);
    };
    rule.observed(Some(Figure::Fraction(worst)))
        .evidence(format!("mean over the measured phase on {}", host.name))
        .decided(is_below(worst, bound), None)
}

/// No incident of these kinds.
fn incidents(kinds: &[IncidentKind], health: &GeneratorHealth) -> RuleResult {
    let of_kind = || health.incidents.iter().filter(|i| kinds.contains(&i.kind));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_or_reply_that_we_did_not_send_is_our_own_doing() {
        let of = |cause: ShedCause, count| BTreeMap::from([(cause.name().to_owned(), count)]);
        let messages = of(ShedCause::Offline, 9);
        let mut ledger = CommandLedger {
            withheld_by_cause: of(ShedCause::Offline, 4),
            ..CommandLedger::default()
        };
        let judged =
            |ledger: &CommandLedger| own_shed(&with_commands(&messages, Some(ledger)), None);
        assert_eq!(judged(&ledger).outcome, RuleOutcome::Pass);
        ledger.withheld_by_cause = of(ShedCause::GeneratorLate, 2);
        ledger.answer_shed_by_cause = of(ShedCause::GeneratorLimit, 1);
        let told = judged(&ledger);
        assert_eq!(told.outcome, RuleOutcome::Fail);
        assert_eq!(told.observed, Some(Figure::Count(3)));
        let alone = own_shed(&with_commands(&messages, None), None);
        assert_eq!(alone.outcome, RuleOutcome::Pass);
    }
}
