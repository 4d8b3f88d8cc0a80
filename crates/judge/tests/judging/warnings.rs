//! Warnings: faults that no rule looked at stand with the verdict, and move it not.

use std::collections::BTreeMap;

use muster_judge::{
    Allowance, Ending, Latency, Percentile, RuleOutcome, Rules, RunResult, Share, SloBound,
    Warning, WarningKind,
};
use muster_measure::State;
use muster_model::{Cause, Micros, Outcome, ShedCause};

use crate::run::{Run, links};

/// A run whose scenario looks neither at failures nor at loss nor at links.
fn unlooked() -> Run {
    Run::healthy(100, 40).names_only(&[SloBound::Latency {
        of: Latency::Lateness,
        percentile: Percentile::P99,
        at_most: Micros::from_millis(5),
    }])
}

fn sheds(run: &mut Run, cause: ShedCause, most: usize) {
    let shed = run.measured().take(most);
    shed.for_each(|message| message.ends(Outcome::Shed(cause)));
}

fn words(run: &Run) -> Vec<(WarningKind, String)> {
    let verdict = run.judged();
    assert_eq!(verdict.result, RunResult::Pass, "{verdict:#?}");
    let warnings = verdict.warnings.into_iter();
    warnings.map(|one| (one.kind, one.detail)).collect()
}

#[test]
fn a_healthy_run_has_no_warning() {
    assert_eq!(words(&unlooked()), []);
}

#[test]
fn a_pass_says_what_was_never_sent_and_why() {
    let mut run = unlooked();
    sheds(&mut run, ShedCause::QueueFull, 2_440);
    sheds(&mut run, ShedCause::Offline, 2_000);
    let detail = "61 % of what was due was never sent (shed: offline 2,000, queue-full 440)";
    assert_eq!(words(&run), [(WarningKind::Unsent, detail.to_owned())]);
    assert_eq!(run.judged().warnings[0].scope, "meters/readings");
}

#[test]
fn a_stray_shed_is_not_worth_a_warning_and_one_per_cent_is() {
    let mut run = unlooked();
    sheds(&mut run, ShedCause::Offline, 39);
    assert_eq!(words(&run), []);
    sheds(&mut run, ShedCause::Offline, 40);
    assert_eq!(words(&run).len(), 1);
}

#[test]
fn a_pass_says_what_was_not_accepted() {
    let mut run = unlooked();
    let broken = Outcome::Broken(Cause::PeerClosed);
    run.measured().take(400).for_each(|one| one.ends(broken));
    let detail = "10 % of what was sent was not accepted (broken 400)";
    assert_eq!(words(&run), [(WarningKind::Failed, detail.to_owned())]);
}

#[test]
fn a_pass_says_what_is_lost() {
    let mut run = unlooked();
    run.measured().take(420).for_each(|one| one.seen = None);
    let detail = "10 % of what the platform took is lost at backend app (420)";
    assert_eq!(words(&run), [(WarningKind::Lost, detail.to_owned())]);
}

#[test]
fn what_a_rule_looked_at_is_no_warning() {
    let most = Share::fraction(0.7).expect("a share");
    let mut run = Run::healthy(100, 40).names(&[
        SloBound::FailureRatio(most),
        SloBound::Loss(Allowance::Count(500)),
    ]);
    sheds(&mut run, ShedCause::Offline, 2_440);
    run.messages[0].seen = None;
    assert_eq!(words(&run), []);
}

#[test]
fn a_pass_says_since_when_no_link_was_open() {
    let mut run = unlooked();
    run.windows = links(&[(1, 100, 0), (11, 0, 100)]);
    let detail = "no link was open from 12 s on";
    assert_eq!(words(&run), [(WarningKind::NoLink, detail.to_owned())]);
    run.windows = links(&[(1, 100, 0), (11, 0, 100), (20, 60, 0), (22, 40, 0)]);
    let detail = "no link was open from 12 s to 20 s";
    assert_eq!(words(&run), [(WarningKind::NoLink, detail.to_owned())]);
}

#[test]
fn a_link_that_is_back_within_two_seconds_and_one_that_ends_with_the_load_are_no_warning() {
    let mut run = unlooked();
    run.windows = links(&[(1, 100, 0), (11, 0, 100), (13, 100, 0), (44, 0, 100)]);
    assert_eq!(words(&run), []);
}

#[test]
fn a_pass_says_how_many_links_were_missing_at_the_end() {
    let mut run = unlooked();
    run.windows = links(&[(1, 100, 0), (11, 0, 10)]);
    assert_eq!(words(&run), []);
    run.windows = links(&[(1, 100, 0), (11, 0, 11)]);
    let detail = "only 89 of 100 links were open when measuring ended";
    assert_eq!(words(&run), [(WarningKind::LinksDown, detail.to_owned())]);
}

#[test]
fn a_run_that_was_interrupted_while_connecting_says_nothing_of_the_end_of_measuring() {
    let mut run = unlooked();
    run.ending = Ending::Interrupted;
    run.windows = links(&[(1, 100, 0), (11, 0, 50)]);
    let warned = |measure| {
        let mut summary = run.summary();
        summary.timeline.measure = measure;
        let warnings = run.judged_by(&summary).warnings;
        warnings
            .iter()
            .any(|one| one.kind == WarningKind::LinksDown)
    };
    assert!(warned(run.summary().timeline.measure));
    assert!(!warned(Micros::MAX));
}

#[test]
fn a_run_in_which_nobody_got_in_says_so() {
    let mut run = unlooked();
    run.links.connected = 0;
    run.windows = links(&[]);
    run.links.connect_failures = [("rejected-0x05".to_owned(), 100)].into();
    let detail = "no link was ever open";
    assert_eq!(words(&run), [(WarningKind::NoLink, detail.to_owned())]);
}

#[test]
fn a_pass_says_that_the_offered_rate_was_not_reached() {
    let mut run = unlooked();
    let last = run.measured().skip(3_600);
    last.for_each(|message| message.held = 15_000_000);
    let detail = "400 messages (10 %) were sent after the measured phase had ended";
    assert_eq!(words(&run), [(WarningKind::Behind, detail.to_owned())]);
}

#[test]
fn a_run_that_never_began_has_a_verdict_and_what_was_found_before_it() {
    let mut run = unlooked();
    sheds(&mut run, ShedCause::Offline, 4_000);
    run.ending = Ending::NotBegun("nobody was there".to_owned());
    assert_eq!(run.judged().warnings, []);
    run.found.push(Warning {
        kind: WarningKind::NewTenant,
        scope: "run".to_owned(),
        detail: "there was no topic of tenant `t1`".to_owned(),
    });
    assert_eq!(run.judged().warnings, run.found);
}

/// Datagrams that nobody acknowledges by design, at an address that ICMP says nobody listens at.
#[test]
fn a_run_that_heard_nothing_but_icmp_errors_fails() {
    let mut run = Run::healthy(100, 40);
    run.rules = Rules::builder(false).build();
    (
        run.links.counters.icmp_errors,
        run.links.counters.datagrams_refused,
    ) = (7.into(), 0.into());
    for message in &mut run.messages {
        message.seen = None;
        message.ends(Outcome::Unacknowledged);
    }
    let verdict = run.judged();
    let reachable = verdict.rules.iter().find(|it| it.rule == "reachable");
    let reachable = reachable.expect("the rule is there");
    assert_eq!(reachable.outcome, RuleOutcome::Fail);
    assert!(
        reachable.evidence.contains("7 ICMP errors"),
        "{reachable:?}"
    );
    run.links.counters.icmp_errors = 0.into();
    let mut rules = run.judged().rules.into_iter();
    assert!(rules.all(|it| it.rule != "reachable"));
}

#[test]
fn what_was_found_before_the_load_is_told_and_moves_nothing() {
    let mut run = unlooked();
    let detail = "topic `readings` has 1 partition".to_owned();
    run.found.push(Warning {
        kind: WarningKind::TopicsDiffer,
        scope: "run".to_owned(),
        detail: detail.clone(),
    });
    assert_eq!(words(&run), [(WarningKind::TopicsDiffer, detail)]);
}

#[test]
fn icmp_errors_beside_answers_are_a_warning() {
    let mut run = unlooked();
    (
        run.links.counters.icmp_errors,
        run.links.counters.datagrams_refused,
    ) = (7.into(), 2.into());
    let detail = "some datagrams reached nobody: 7 ICMP errors and 2 datagrams that \
                  the kernel refused";
    assert_eq!(words(&run), [(WarningKind::Unreachable, detail.to_owned())]);
}

#[test]
fn messages_last_sent_on_links_that_the_platform_closed_are_named_by_count_and_code() {
    let mut run = unlooked();
    run.links.last_sent = [("disconnect-0x99".to_owned(), 12), ("reset".to_owned(), 1)].into();
    let detail = "13 messages were last sent on links that then ended: disconnect-0x99 12, \
                  reset 1";
    assert_eq!(words(&run), [(WarningKind::LastSent, detail.to_owned())]);
}

#[test]
fn links_that_the_platform_ended_are_warned_of_where_no_rule_looked() {
    let mut run = unlooked();
    run.links.ended_by_platform = BTreeMap::from([("closed-by-peer".to_owned(), 50)]);
    let warning = |run: &Run| {
        let mut all = run.judged().warnings.into_iter();
        let of_links = all.find(|one| one.kind == WarningKind::LinksEnded);
        of_links.map(|one| (one.kind, one.detail))
    };
    let detail = "50 links were ended by the platform (closed-by-peer 50)".to_owned();
    assert_eq!(warning(&run), Some((WarningKind::LinksEnded, detail)));
    let ended = run.links.ended_by_platform.clone();
    run = Run::healthy(100, 10);
    run.links.ended_by_platform = ended;
    assert_eq!(warning(&run), None, "rule `disconnects` words of them");
}

#[test]
fn a_pass_says_of_how_many_messages_a_loss_cannot_be_seen() {
    let run = unlooked();
    let mut summary = run.summary();
    let accepted = &mut summary.backends[0].uplink.table.rows[State::Accepted.index()];
    accepted.overwritten = 900;
    accepted.arrived -= 900;
    let warnings = run.judged_by(&summary).warnings;
    let [warning] = &warnings[..] else {
        panic!("{warnings:?}");
    };
    assert_eq!(warning.kind, WarningKind::Overwritten);
    let words = "a loss of 900 accepted messages cannot be seen: ";
    assert!(warning.detail.starts_with(words), "{}", warning.detail);
}
