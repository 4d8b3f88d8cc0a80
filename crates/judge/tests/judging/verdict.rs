//! From rules to one result: none before invalid before fail before pass.

use muster_judge::{
    Allowance, Consequence, Ending, FleetHints, Incident, IncidentKind, Latency, LinkCause,
    Percentile, RequestHints, RuleKind, RuleName, RuleOutcome, Rules, RunResult, Scope, Share,
    SloBound, Stop, StopIf, StopTrigger, Unevaluated,
};
use muster_measure::{Phase, Summary, TargetCounts, WindowDelta, WindowKey};
use muster_model::{
    Cause, ConnectFailure, FleetId, Micros, Outcome, Reason, ShedCause, StreamId, TlsFailure,
};

use crate::run::{Run, failed, rule};

/// No link came up, for these causes; every message was shed since the device was offline.
fn offline(causes: &[ConnectFailure]) -> Run {
    let mut run = Run::healthy(100, 10);
    run.links.connected = 0;
    run.links.up_at_start = 0;
    for cause in causes {
        run.links.connect_failures.insert(cause.to_string(), 50);
    }
    run.messages
        .iter_mut()
        .for_each(|m| m.ends(Outcome::Shed(ShedCause::Offline)));
    run
}

#[test]
fn a_target_that_is_not_there_is_no_result() {
    let unreachable = [
        ConnectFailure::Dns,
        ConnectFailure::Refused,
        ConnectFailure::Unreachable,
        ConnectFailure::TimedOut,
        ConnectFailure::Closed,
        ConnectFailure::Tls(TlsFailure::Expired),
        ConnectFailure::Tls(TlsFailure::Alert(48)),
    ];
    for cause in unreachable {
        let verdict = offline(&[cause, ConnectFailure::RunEnded]).judged();
        assert_eq!(verdict.result, RunResult::None, "{cause}");
        assert!(
            !verdict.rules.is_empty(),
            "every rule is evaluated all the same"
        );
    }
}

#[test]
fn a_target_that_we_kept_away_from_by_ourselves_is_not_told_to_be_absent() {
    for ending in [Ending::NoLinkUp, Ending::Interrupted] {
        let mut run = offline(&[ConnectFailure::TimedOut, ConnectFailure::RunEnded]);
        run.ending = ending;
        run.links.timed_out_by_us = 49;
        assert_ne!(run.judged().result, RunResult::Invalid);
        run.links.timed_out_by_us = 50;
        run.links.down_by_us_at_start = 100;
        assert_eq!(run.judged().result, RunResult::Invalid);
    }
}

#[test]
fn a_refusal_in_the_protocols_words_is_judged() {
    let refused = ConnectFailure::UpgradeRefused(404);
    let verdict = offline(&[refused]).judged();
    assert_eq!(verdict.result, RunResult::Fail);
    let refused = ConnectFailure::Rejected(Reason::MqttConnack(5));
    let verdict = offline(&[refused, ConnectFailure::TimedOut]).judged();
    assert_eq!(verdict.result, RunResult::Fail);
    assert_eq!(failed(&verdict), ["failure-ratio", "connected"]);
    let connected = rule(&verdict, "connected");
    assert!(
        connected.evidence.contains("rejected-connack-5 50"),
        "{}",
        connected.evidence
    );
}

#[test]
fn a_run_that_never_began_is_no_result() {
    let mut run = Run::healthy(100, 10);
    run.ending = Ending::NotBegun("consumers did not come up".to_owned());
    assert_eq!(run.judged().result, RunResult::None);
}

/// No link came up for these causes, and the run ended there.
fn ended_without_a_link(causes: &[(ConnectFailure, u64)]) -> Run {
    let mut run = Run::healthy(100, 10);
    run.ending = Ending::NoLinkUp;
    // No message was due, so that no ledger was opened.
    run.residue = None;
    run.messages.clear();
    run.windows = WindowDelta::default();
    run.links.up_at_start = 0;
    run.links.connected = 0;
    let key = WindowKey {
        second: 1,
        phase: Phase::Connect,
        cold: false,
    };
    let window = run.windows.links.entry((FleetId(0), key)).or_default();
    for (cause, count) in causes {
        window.counts.failures.add(*cause, *count);
        run.links.connect_failures.insert(cause.to_string(), *count);
    }
    run
}

const NOT_AUTHORIZED: ConnectFailure = ConnectFailure::Rejected(Reason::Mqtt(0x87));

/// The connect phase ran out while we stalled: of 100 links half were tried, and timed out by us.
#[test]
fn links_that_waited_for_those_we_kept_down_are_not_held_against_the_target() {
    for (timed_out_by_us, result) in [(50, RunResult::Invalid), (49, RunResult::Fail)] {
        let mut run = ended_without_a_link(&[(ConnectFailure::TimedOut, 50)]);
        run.links.timed_out_by_us = timed_out_by_us;
        run.links.down_by_us_at_start = timed_out_by_us;
        assert_eq!(run.judged().result, result);
    }
}

#[test]
fn a_run_that_was_refused_every_link_fails_by_connected_and_begins_with_the_cause() {
    let run = ended_without_a_link(&[(NOT_AUTHORIZED, 100), (ConnectFailure::RunEnded, 3)]);
    let verdict = run.judged();
    assert_eq!(verdict.result, RunResult::Fail, "{:?}", verdict.rules);
    assert_eq!(failed(&verdict), ["connected"]);
    let [cause] = verdict.causes.as_slice() else {
        panic!("{:?}", verdict.causes);
    };
    let text = "100 of 100 links refused: not authorized (0x87); see fleet.meters.credential";
    assert_eq!(cause.text, text);
    let figures = (cause.count, cause.of, cause.cause.as_str());
    assert_eq!(figures, (100, 100, "rejected-0x87"));
}

#[test]
fn a_cause_names_the_first_device_and_the_likely_scheme() {
    let mut run = ended_without_a_link(&[(NOT_AUTHORIZED, 100)]);
    let of = |fleet: &str| (fleet.to_owned(), "rejected-0x87".to_owned());
    let device = "`m-343` (meters.csv:345)".to_owned();
    run.hints.first_refused = [(of("others"), "`o-1`".to_owned()), (of("meters"), device)].into();
    let hint = "; a port without TLS does that: if it is one, write `mqtt://`";
    let closed = FleetHints {
        closed_in_handshake: hint.to_owned(),
        ..FleetHints::default()
    };
    run.hints.fleets = vec![closed.clone()];
    assert!(
        !run.judged().causes[0].text.contains("m-343"),
        "all of them"
    );
    run.links.up_at_start = 99;
    let text = "1 of 100 links refused: not authorized (0x87), first device `m-343` \
                (meters.csv:345); see fleet.meters.credential";
    assert_eq!(run.judged().causes[0].text, text);
    for (failure, name) in [
        (ConnectFailure::Closed, "closed-by-peer"),
        (ConnectFailure::Malformed, "malformed"),
    ] {
        let mut run = ended_without_a_link(&[(failure, 100)]);
        let other_protocol = hint.to_owned();
        run.hints.fleets = vec![FleetHints {
            other_protocol,
            ..closed.clone()
        }];
        let text = &run.judged().causes[0].text;
        assert!(text.contains(&format!("({name}){hint}; see ")), "{text}");
        run.links.up_at_start = 99;
        let text = &run.judged().causes[0].text;
        assert!(!text.contains(hint), "others speak it: {text}");
    }
}

#[test]
fn silence_points_to_the_credential_where_a_refusal_is_silent() {
    let mut run = ended_without_a_link(&[(ConnectFailure::TimedOut, 100)]);
    let see = |run: &Run| run.judged().causes.remove(0).see;
    assert_eq!(see(&run), "platform.devices and fleet.meters.connect");
    run.hints.fleets = vec![FleetHints {
        is_refused_in_silence: true,
        ..FleetHints::default()
    }];
    let all = "platform.devices, fleet.meters.credential and fleet.meters.connect";
    assert_eq!(see(&run), all);
    let text = format!(
        "100 of 100 links without an answer in time (timed-out), \
         as if the platform did not know the identity or the key; see {all}"
    );
    assert_eq!(run.judged().causes[0].text, text);
}

#[test]
fn consumers_that_kept_a_run_from_beginning_come_before_links() {
    let mut run = ended_without_a_link(&[(NOT_AUTHORIZED, 100)]);
    let cause = LinkCause {
        fleet: String::new(),
        backend: Some("app".to_owned()),
        count: 1,
        of: 1,
        cause: "consumer-refused".to_owned(),
        see: "platform.backend.password".to_owned(),
        text: "1 of 1 consumers of backend `app`".to_owned(),
    };
    run.hints.consumers = vec![cause.clone()];
    let causes = run.judged().causes;
    assert_eq!((causes.len(), &causes[0]), (2, &cause));
}

#[test]
fn the_end_of_the_run_is_no_cause_of_rule_connected() {
    let run = ended_without_a_link(&[(NOT_AUTHORIZED, 100), (ConnectFailure::RunEnded, 3)]);
    let verdict = run.judged();
    let rule = verdict.rules.iter().find(|rule| rule.rule == "connected");
    let evidence = &rule.expect("it is judged").evidence;
    assert!(evidence.contains("rejected-0x87"), "{evidence}");
    assert!(!evidence.contains("run-ended"), "{evidence}");
}

/// Names a percentile that nothing can be said of, and wants no link.
#[test]
fn nothing_that_could_not_be_judged_hides_that_every_link_was_refused() {
    let p99 = SloBound::Latency {
        of: Latency::Response,
        percentile: Percentile::new(99.0).expect("a percentile"),
        at_most: Micros(1),
    };
    let run = ended_without_a_link(&[(NOT_AUTHORIZED, 100)]).names(&[p99]);
    let verdict = run.judged();
    assert_eq!(verdict.result, RunResult::Fail, "{:?}", verdict.rules);
    assert!(failed(&verdict).contains(&"connected"));
}

fn without_descriptors(count: u64) -> Incident {
    Incident {
        kind: IncidentKind::LimitReached,
        from: Micros::from_secs(1),
        until: Micros::from_secs(1),
        count,
        detail: "descriptors: 1,024 of 1,024 used".to_owned(),
    }
}

#[test]
fn no_fault_of_ours_hides_that_the_platform_refused_links_and_none_is_up() {
    for (refused, result) in [
        (Some(NOT_AUTHORIZED), RunResult::Fail),
        (Some(ConnectFailure::UpgradeRefused(401)), RunResult::Fail),
        (Some(ConnectFailure::TimedOut), RunResult::Invalid),
        (None, RunResult::Invalid),
    ] {
        let limit = (ConnectFailure::GeneratorLimit, 50);
        let causes: Vec<_> = refused.map(|cause| (cause, 50)).into_iter().collect();
        let mut run = ended_without_a_link(&[causes.as_slice(), &[limit]].concat());
        run.health.incidents.push(without_descriptors(50));
        let verdict = run.judged();
        assert_eq!(verdict.result, result, "{refused:?}");
        let would_be = (result == RunResult::Invalid).then_some(RunResult::Fail);
        assert_eq!(verdict.would_be, would_be);
        // Every other link may be down by our own delay.
        run.links.down_by_us_at_start = 100;
        let verdict = run.judged();
        assert_eq!(verdict.result, result, "{refused:?}");
        let is_failed = failed(&verdict).contains(&"connected");
        assert_eq!(is_failed, result == RunResult::Fail);
    }
}

#[test]
fn a_run_that_ended_between_two_links_says_so() {
    let mut run = ended_without_a_link(&[(NOT_AUTHORIZED, 100)]);
    let words = |run: &Run| rule(&run.judged(), "connected").evidence.clone();
    assert!(!words(&run).contains("ended the run"));
    run.links.up_at_start = 2;
    assert!(words(&run).starts_with("2 of 100 links up"));
    assert!(
        words(&run).ends_with("; at the last look before that no link was up, so the run ended")
    );
}

#[test]
fn links_that_are_still_connecting_are_not_called_refused() {
    let verdict = ended_without_a_link(&[(NOT_AUTHORIZED, 1)]).judged();
    let text = "100 of 100 links did not come up: 1 try refused: not authorized (0x87); \
                see fleet.meters.credential; 99 still connecting";
    assert_eq!(verdict.causes[0].text, text);
    let timed_out = (ConnectFailure::TimedOut, 2);
    let verdict = ended_without_a_link(&[(NOT_AUTHORIZED, 3), timed_out]).judged();
    let text = &verdict.causes[0].text;
    assert!(text.ends_with("; 95 still connecting"), "{text}");
}

#[test]
fn links_that_the_platform_took_and_closed_again_are_a_cause() {
    for (cause, text) in [
        (
            Cause::PeerDisconnect(Reason::Mqtt(0x87)),
            "closed by the platform: not authorized (0x87), \"no such tenant\"; \
             see fleet.meters.credential",
        ),
        (
            Cause::PeerClosed,
            "closed by the platform (closed-by-peer); \
             see platform.devices, fleet.meters.credential and fleet.meters.client.id",
        ),
        (
            Cause::Tls(TlsFailure::Alert(116)),
            "ended in TLS: the server wants a client certificate \
             (tls-alert-certificate-required-116); see fleet.meters.credential",
        ),
    ] {
        let mut run = ended_without_a_link(&[]);
        run.links.connected = 100;
        let said = ("disconnect-0x87".to_owned(), "no such tenant".to_owned());
        run.reason_strings.extend([said]);
        let windows = run.windows.links.values_mut();
        windows.for_each(|window| window.counts.disconnects.add(cause, 100));
        let verdict = run.judged();
        assert_eq!(verdict.causes.len(), 1, "{cause}");
        assert_eq!(verdict.causes[0].text, format!("100 of 100 links {text}"));
        assert_eq!(verdict.causes[0].cause, cause.to_string());
        assert_eq!(verdict.result, RunResult::Fail);
    }
    // We ended them.
    let mut run = ended_without_a_link(&[]);
    run.links.connected = 100;
    let windows = run.windows.links.values_mut();
    windows.for_each(|window| window.counts.disconnects.add(Cause::Lifetime, 100));
    assert_eq!(run.judged().causes, []);
}

#[test]
fn a_share_that_was_refused_is_named_with_its_key_and_the_platforms_words() {
    for (cause, words, see) in [
        (
            NOT_AUTHORIZED,
            "refused: not authorized (0x87)",
            "fleet.meters.credential",
        ),
        (
            ConnectFailure::Rejected(Reason::MqttConnack(2)),
            "refused: client identifier not valid (connack-2)",
            "fleet.meters.id",
        ),
        (
            ConnectFailure::Rejected(Reason::Mqtt(0x9f)),
            "refused: connection rate exceeded (0x9f)",
            "fleet.meters.connect.rate",
        ),
        (
            ConnectFailure::Tls(TlsFailure::UnknownIssuer),
            "failed in TLS (tls-unknown-issuer)",
            "platform.tls.ca",
        ),
        (
            ConnectFailure::Tls(TlsFailure::Alert(115)),
            "failed in TLS (tls-alert-unknown-psk-identity-115)",
            "fleet.meters.credential",
        ),
        (
            ConnectFailure::UpgradeRefused(401),
            "refused the upgrade to WebSocket: 401",
            "fleet.meters.credential",
        ),
        (
            ConnectFailure::Refused,
            "turned away: nobody listens there (refused)",
            "platform.devices",
        ),
    ] {
        let mut run = ended_without_a_link(&[(cause, 14)]);
        run.ending = Ending::Planned;
        run.links.up_at_start = 99;
        let said = ("rejected-0x87".to_owned(), "no such tenant".to_owned());
        run.reason_strings.extend([said]);
        let quoted = if cause == NOT_AUTHORIZED {
            ", \"no such tenant\""
        } else {
            ""
        };
        let first = run.judged().causes.remove(0);
        assert_eq!(
            first.text,
            format!("1 of 100 links {words}{quoted}; see {see}")
        );
        assert_eq!(first.see, see);
    }
    let mut all_up = ended_without_a_link(&[(NOT_AUTHORIZED, 14)]);
    all_up.links.up_at_start = 100;
    assert_eq!(all_up.judged().causes, [], "they came up at last");
}

#[test]
fn messages_that_no_other_load_would_save_are_a_cause_with_address_and_key() {
    let redirect = Reason::Http(302).to_string();
    let (other, cut_off) = (
        Cause::Malformed.to_string(),
        Cause::AnswerCutOff.to_string(),
    );
    let mut run = Run::healthy(100, 10);
    run.hints.fleets.push(FleetHints {
        addresses: vec!["http://a".to_owned(), "http://b".to_owned()],
        other_protocol: "; is it TLS?".to_owned(),
        ..FleetHints::default()
    });
    let said = |cause: &str, text: &str| (cause.to_owned(), text.to_owned());
    run.reason_strings
        .extend([said(&redirect, "it leads to b"), said(&other, "no HTTP")]);
    let mut summary = run.summary();
    let uplink = &mut summary.fleets[0].uplink;
    uplink.sent = 5_000;
    uplink
        .rejected_by_code
        .extend([(redirect, 1_200), ("http-404".to_owned(), 9)]);
    uplink
        .broken_by_cause
        .extend([(other, 30), (cut_off, 4), ("reset".to_owned(), 50)]);
    let texts = |summary: &Summary| {
        let causes = run.judged_by(summary).causes.into_iter();
        causes.map(|cause| cause.text).collect::<Vec<_>>()
    };
    assert_eq!(
        texts(&summary),
        [
            "1,200 of 5,000 messages of fleet `meters` redirected: http-302 (found elsewhere), at \
             http://a, http://b, \"it leads to b\"; see platform.devices and fleet.meters.streams",
            "30 of 5,000 messages of fleet `meters` ended with an unreadable answer (malformed), at \
             http://a, http://b, \"no HTTP\"; is it TLS?; see platform.devices",
            "4 of 5,000 messages of fleet `meters` ended with an answer without its end \
             (answer-cut-off), at http://a, http://b; see platform.devices",
        ]
    );
    // Of several addresses the counts show which one it is.
    let targets = &mut summary.run.links.targets;
    let good = TargetCounts {
        accepted: 9,
        ..TargetCounts::default()
    };
    let bad = TargetCounts {
        rejected: 9,
        ..TargetCounts::default()
    };
    targets.extend([
        ("10.0.0.1:80".to_owned(), good),
        ("10.0.0.2:80".to_owned(), bad),
    ]);
    let texts = texts(&summary);
    assert!(
        texts[0].contains(", at 10.0.0.2:80 of 2 addresses, "),
        "{texts:?}"
    );
}

/// A run over requests to two addresses, at neither of which a message was accepted.
fn requests() -> (Run, Summary) {
    let mut run = Run::healthy(100, 10);
    run.hints.fleets.push(FleetHints {
        addresses: vec!["http://a".to_owned(), "http://b".to_owned()],
        other_protocol: "; is it TLS?".to_owned(),
        other_protocol_words: "no HTTP".to_owned(),
        has_requests: true,
        requests: vec![RequestHints {
            stream: StreamId(0),
            line: "POST /v1/${id}".to_owned(),
            success: "success: 202".to_owned(),
        }],
        ..FleetHints::default()
    });
    let mut summary = run.summary();
    for scope in [&mut summary.fleets[0], &mut summary.streams[0]] {
        scope.uplink.sent = 250;
        scope.uplink.accepted = 0;
    }
    (run, summary)
}

fn texts(run: &Run, summary: &Summary) -> Vec<String> {
    let causes = run.judged_by(summary).causes.into_iter();
    causes.map(|cause| cause.text).collect()
}

/// The counts of two addresses: the first takes its messages.
fn half_dead(summary: &mut Summary, second: TargetCounts) {
    for scope in [&mut summary.fleets[0], &mut summary.streams[0]] {
        scope.uplink.accepted = 125;
    }
    let first = TargetCounts {
        accepted: 125,
        rejected: 3,
        timed_out: 3,
        broken: 3,
        ..TargetCounts::default()
    };
    let targets = &mut summary.run.links.targets;
    targets.insert("10.0.0.1:80".to_owned(), first);
    targets.insert("10.0.0.2:80".to_owned(), second);
}

#[test]
fn a_code_on_all_messages_is_a_cause_with_request_address_body_and_key() {
    for (code, meaning, see) in [
        (404, "not found", "fleet.meters.streams.readings.path"),
        (
            405,
            "method not allowed",
            "fleet.meters.streams.readings.method",
        ),
        (
            426,
            "upgrade required",
            "platform.devices and fleet.meters.streams.readings",
        ),
        (
            500,
            "internal server error",
            "platform.devices and fleet.meters.streams.readings",
        ),
    ] {
        let (mut run, mut summary) = requests();
        let reason = Reason::Http(code).to_string();
        for scope in [&mut summary.fleets[0], &mut summary.streams[0]] {
            let refused = [(reason.clone(), 240), ("http-429".to_owned(), 10)];
            scope.uplink.rejected_by_code.extend(refused);
        }
        let words = format!(
            "240 of 250 messages of fleet `meters` rejected: {reason} ({meaning}) to POST \
             /v1/${{id}}, at http://a, http://b"
        );
        assert_eq!(texts(&run, &summary), [format!("{words}; see {see}")]);
        run.reason_strings.insert(reason.clone(), "boom".to_owned());
        let quoted = format!("{words}, \"boom\"; see {see}");
        assert_eq!(texts(&run, &summary), [quoted]);
        // Some are accepted: the load may be to blame.
        summary.fleets[0].uplink.accepted = 1;
        assert!(texts(&run, &summary).is_empty());
        run.hints.fleets[0].has_requests = false;
        summary.fleets[0].uplink.accepted = 0;
        assert!(texts(&run, &summary).is_empty(), "no requests");
    }
}

#[test]
fn a_success_that_the_scenario_does_not_name_is_a_cause_with_the_remedy() {
    let (run, mut summary) = requests();
    for scope in [&mut summary.fleets[0], &mut summary.streams[0]] {
        scope.uplink.accepted = 160;
        let refused = [("http-201".to_owned(), 90)];
        scope.uplink.rejected_by_code.extend(refused);
    }
    let text = "90 of 250 messages of fleet `meters` rejected: http-201 is not in `success: 202`; \
                add it if the API means that it took the message; see \
                fleet.meters.streams.readings.success";
    assert_eq!(texts(&run, &summary), [text]);
}

#[test]
fn an_address_at_which_no_message_is_accepted_is_named() {
    let dead = |of: &dyn Fn(&mut TargetCounts)| {
        let mut counts = TargetCounts::default();
        of(&mut counts);
        counts
    };
    let at = ", at 10.0.0.2:80 of 2 addresses";
    let (run, mut summary) = requests();
    summary.fleets[0]
        .uplink
        .rejected_by_code
        .insert("http-404".to_owned(), 128);
    half_dead(&mut summary, dead(&|it| it.rejected = 125));
    let words = "125 of 250 messages of fleet `meters` rejected: http-404 (not found)";
    let see = "; see fleet.meters.streams";
    assert_eq!(texts(&run, &summary), [format!("{words}{at}{see}")]);

    // An address does not know its messages by code.
    summary.fleets[0]
        .uplink
        .rejected_by_code
        .insert("http-500".to_owned(), 50);
    half_dead(&mut summary, dead(&|it| it.rejected = 150));
    let words = "150 of 250 messages of fleet `meters` rejected, for several reasons";
    let see = "; see platform.devices";
    assert_eq!(texts(&run, &summary), [format!("{words}{at}{see}")]);

    let (run, mut summary) = requests();
    summary.fleets[0].uplink.timed_out = 23;
    half_dead(&mut summary, dead(&|it| it.timed_out = 20));
    let words = "20 of 250 messages of fleet `meters` timed out without an answer (timed-out)";
    let see = "; see platform.devices and fleet.meters.streams";
    assert_eq!(texts(&run, &summary), [format!("{words}{at}{see}")]);

    let (run, mut summary) = requests();
    let broken = ("closed-by-peer".to_owned(), 128);
    summary.fleets[0].uplink.broken_by_cause.extend([broken]);
    half_dead(&mut summary, dead(&|it| it.broken = 125));
    let words = "125 of 250 messages of fleet `meters` ended without an answer (closed-by-peer)";
    let see = "; see platform.devices";
    assert_eq!(texts(&run, &summary), [format!("{words}{at}{see}")]);
    half_dead(
        &mut summary,
        dead(&|it| (it.broken, it.accepted) = (125, 1)),
    );
    let text = "125 of 126 messages found no success at 10.0.0.2:80 of 2 addresses (broken 125), but 9 of 134 \
                at 10.0.0.1:80; see platform.devices";
    assert_eq!(texts(&run, &summary), [text], "both take messages");

    let (mut run, mut summary) = requests();
    run.hints.fleets.push(run.hints.fleets[0].clone());
    let broken = ("closed-by-peer".to_owned(), 128);
    summary.fleets[0].uplink.broken_by_cause.extend([broken]);
    half_dead(&mut summary, dead(&|it| it.broken = 125));
    let text = "125 of 259 messages of all fleets found no success at 10.0.0.2:80 of 2 addresses \
                (broken 125); see platform.devices";
    assert_eq!(
        texts(&run, &summary),
        [text],
        "another fleet may be meant, so that none is named"
    );
}

#[test]
fn messages_that_all_time_out_are_a_cause_with_the_key_of_the_time_out() {
    let (mut run, mut summary) = requests();
    for scope in [&mut summary.fleets[0], &mut summary.streams[0]] {
        scope.uplink.timed_out = 40;
        let ended = [("request-unanswered".to_owned(), 30)];
        scope.links.disconnects.extend(ended);
    }
    let see = "; see platform.devices and fleet.meters.streams.readings.timeout";
    let words = "40 of 250 messages of fleet `meters` timed out without";
    let at = ", at http://a, http://b";
    let text = format!("{words} an answer (timed-out){at}{see}");
    assert_eq!(texts(&run, &summary), [text]);
    let begun = ("answer-unfinished".to_owned(), 31);
    summary.fleets[0].links.disconnects.extend([begun]);
    let said = ("answer-unfinished".to_owned(), "its last chunk".to_owned());
    run.reason_strings.extend([said]);
    let text =
        format!("{words} the end of an answer (answer-unfinished){at}, \"its last chunk\"{see}");
    assert_eq!(texts(&run, &summary), [text]);
}

#[test]
fn a_port_that_only_closes_may_speak_tls_and_a_fault_within_the_protocol_does_not() {
    let (run, mut summary) = requests();
    let broken = ("closed-by-peer".to_owned(), 88);
    summary.fleets[0].uplink.broken_by_cause.extend([broken]);
    let text = "88 of 250 messages of fleet `meters` ended without an answer (closed-by-peer), at \
                http://a, http://b; is it TLS?; see platform.devices";
    assert_eq!(texts(&run, &summary), [text]);
    for (said, hint) in [("no HTTP", "; is it TLS?"), ("the head is too long", "")] {
        let (mut run, mut summary) = requests();
        let malformed = Cause::Malformed.to_string();
        let broken = (malformed.clone(), 88);
        summary.fleets[0].uplink.broken_by_cause.extend([broken]);
        run.reason_strings.insert(malformed, said.to_owned());
        let text = format!(
            "88 of 250 messages of fleet `meters` ended with an unreadable answer (malformed), at \
             http://a, http://b, \"{said}\"{hint}; see platform.devices"
        );
        assert_eq!(texts(&run, &summary), [text]);
    }
}

#[test]
fn unreadable_bytes_behind_good_answers_are_a_cause_by_their_connections() {
    let (mut run, mut summary) = requests();
    summary.fleets[0].uplink.accepted = 250;
    let ended = (Cause::Malformed.to_string(), 136);
    summary.fleets[0].links.disconnects.extend([ended.clone()]);
    summary.fleets[0].links.connected = 140;
    run.reason_strings
        .insert(ended.0, "bytes behind".to_owned());
    let text = "136 of 140 connections of fleet `meters` ended with unreadable bytes (malformed), \
                at http://a, http://b, \"bytes behind\"; see platform.devices";
    assert_eq!(texts(&run, &summary), [text]);
}

#[test]
fn connections_that_tls_ended_before_a_message_was_sent_are_a_cause() {
    let (run, mut summary) = requests();
    summary.fleets[0].uplink.sent = 0;
    let links = &mut summary.fleets[0].links;
    let ended = (TlsFailure::Alert(116).to_string(), 140);
    links.disconnects.extend([ended, ("reset".to_owned(), 200)]);
    (links.connected, links.up_at_start) = (150, links.wanted);
    let text = "140 of 150 connections of fleet `meters` ended in TLS: the server wants a client certificate \
                (tls-alert-certificate-required-116), at http://a, http://b, and nothing was sent; see \
                fleet.meters.credential and platform.tls";
    assert_eq!(texts(&run, &summary), [text]);
    summary.fleets[0].uplink.sent = 1;
    assert!(texts(&run, &summary).is_empty(), "it was");
}

#[test]
fn a_dead_address_of_several_fleets_is_a_cause_by_the_counts_of_all() {
    let (mut run, mut summary) = requests();
    summary.fleets[0].uplink.accepted = 200;
    let dead = TargetCounts {
        rejected: 3,
        broken: 1_500,
        ..TargetCounts::default()
    };
    let good = TargetCounts {
        accepted: 4_000,
        rejected: 7,
        ..TargetCounts::default()
    };
    let named = [("10.0.0.1:80", good), ("10.0.0.2:80", dead)];
    let named = named.map(|(address, of)| (address.to_owned(), of));
    summary.run.links.targets.extend(named);
    assert!(
        texts(&run, &summary).is_empty(),
        "one fleet has its own causes"
    );
    run.hints.fleets.push(FleetHints::default());
    let text = "1,503 of 5,510 messages of all fleets found no success at 10.0.0.2:80 of 2 addresses \
                (rejected 3, broken 1,500); see platform.devices";
    assert_eq!(texts(&run, &summary), [text]);
    let none = summary.run.links.targets.get_mut("10.0.0.1:80");
    none.expect("it is there").accepted = 0;
    assert!(texts(&run, &summary).is_empty(), "none takes any");
}

#[test]
fn an_address_that_fails_far_more_often_than_the_best_is_a_cause() {
    let (mut run, mut summary) = requests();
    summary.fleets[0].uplink.accepted = 200;
    let counts = |accepted, failed| TargetCounts {
        accepted,
        rejected: failed,
        ..TargetCounts::default()
    };
    let mut causes = |run: &Run, second, third| {
        let named = [
            ("10.0.0.1:80", counts(3_990, 10)),
            ("10.0.0.2:80", second),
            ("10.0.0.3:80", third),
        ];
        let named = named.map(|(address, of)| (address.to_owned(), of));
        summary.run.links.targets.extend(named);
        texts(run, &summary)
    };
    let slow = TargetCounts {
        timed_out: 100,
        ..counts(2_000, 1_900)
    };
    let text = "2,000 of 4,000 messages found no success at 10.0.0.2:80 of 3 addresses (rejected 1,900, \
                timed-out 100), but 10 of 4,000 at 10.0.0.1:80; see platform.devices";
    assert_eq!(causes(&run, slow, counts(3_960, 40)), [text]);
    let both = causes(&run, slow, counts(3_000, 1_000)).remove(0);
    assert!(
        both.starts_with(
            "3,000 of 8,000 messages found no success at 10.0.0.2:80, 10.0.0.3:80 of 3"
        )
    );
    let alike = counts(3_901, 99);
    assert!(
        causes(&run, alike, alike).is_empty(),
        "the load may be to blame"
    );
    let few = counts(1, 19);
    assert!(causes(&run, few, few).is_empty(), "too few to tell");
    run.hints.fleets.push(run.hints.fleets[0].clone());
    assert_eq!(
        causes(&run, slow, counts(4_000, 0)).len(),
        1,
        "of several fleets"
    );
    run.hints.fleets[1].addresses.clear();
    assert!(
        causes(&run, slow, counts(4_000, 0)).is_empty(),
        "other addresses"
    );
}

#[test]
fn a_silence_that_outlasts_the_run_is_a_cause_with_the_key_that_ends_it() {
    let (mut run, mut summary) = requests();
    let uplink = &mut summary.fleets[0].uplink;
    (uplink.accepted, uplink.sent, uplink.shed) = (5, 10, 240);
    let shed = (ShedCause::RetryAfter.to_string(), 240);
    uplink.shed_by_cause.extend([shed.clone()]);
    assert!(texts(&run, &summary).is_empty(), "it is over in time");
    run.reason_strings.insert(shed.0, "for a day".to_owned());
    let text = "240 of 250 messages of fleet `meters` not sent: the platform asks for silence \
                (retry-after), \"for a day\"; see fleet.meters.obey-retry-after";
    assert_eq!(texts(&run, &summary), [text]);
}

#[test]
fn links_that_come_up_at_no_more_than_some_of_several_addresses_name_the_others() {
    let mut run = ended_without_a_link(&[(ConnectFailure::Refused, 14)]);
    run.ending = Ending::Planned;
    run.links.up_at_start = 99;
    run.hints.fleets.push(FleetHints {
        addresses: vec!["http://a".to_owned()],
        ..FleetHints::default()
    });
    let text = |run: &Run| run.judged().causes.remove(0).text;
    let words = "1 of 100 links turned away: nobody listens there (refused), at";
    assert_eq!(
        text(&run),
        format!("{words} http://a; see platform.devices")
    );
    for at in 1..=5u64 {
        let counts = TargetCounts {
            failed: 7,
            connected: u64::from(at == 1),
            ..TargetCounts::default()
        };
        run.links.targets.insert(format!("10.0.0.{at}:80"), counts);
    }
    let dead = "10.0.0.2:80, 10.0.0.3:80, 10.0.0.4:80 and 1 more of 5 addresses";
    assert_eq!(text(&run), format!("{words} {dead}; see platform.devices"));
}

#[test]
fn invalid_comes_before_fail_and_keeps_what_it_would_be() {
    let mut run = Run::healthy(100, 10);
    run.ending = Ending::Interrupted;
    let verdict = run.judged();
    assert_eq!(
        (verdict.result, verdict.would_be),
        (RunResult::Invalid, Some(RunResult::Pass))
    );

    run.messages[0].seen = None;
    let verdict = run.judged();
    assert_eq!(
        (verdict.result, verdict.would_be),
        (RunResult::Invalid, Some(RunResult::Fail))
    );
    assert_eq!(
        rule(&verdict, "loss").outcome,
        RuleOutcome::Fail,
        "the evidence is kept"
    );
    let that = |consequence: Consequence| {
        let rules = verdict
            .rules
            .iter()
            .filter(move |rule| rule.consequence == consequence);
        rules.map(|rule| rule.rule.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(that(Consequence::Invalidates), ["uninterrupted"]);
    assert_eq!(that(Consequence::Fails), ["loss"]);
}

#[test]
fn a_run_whose_losses_nobody_knows_would_not_be_a_pass() {
    // As of a killed run: what was due and what is lost is not known, and no rule is named.
    let mut run = Run::healthy(100, 10);
    (run.ending, run.residue) = (Ending::Interrupted, None);
    let verdict = run.judged();
    let loss = &rule(&verdict, "loss").outcome;
    assert!(matches!(loss, RuleOutcome::NotEvaluated(_)), "{loss:?}");
    assert_eq!(
        (verdict.result, verdict.would_be),
        (RunResult::Invalid, None)
    );

    // A rule that failed all the same is known.
    run.links.up_at_start = 99;
    assert_eq!(run.judged().would_be, Some(RunResult::Fail));
}

#[test]
fn an_slo_that_cannot_be_evaluated_makes_the_run_invalid_and_a_default_without_object_does_not() {
    let percentile = Percentile::new(99.9).unwrap();
    let at_most = Micros::from_secs(1);
    let named = SloBound::Latency {
        of: Latency::Response,
        percentile,
        at_most,
    };
    assert_eq!(
        Run::healthy(100, 10).names(&[named]).judged().result,
        RunResult::Invalid
    );
    assert_eq!(
        Run::healthy(100, 10)
            .names(&[SloBound::Stable])
            .judged()
            .result,
        RunResult::Invalid
    );

    let mut silent = Run::healthy(100, 10);
    silent.messages.retain(|message| message.due < 4_000_000);
    let verdict = silent.judged();
    let ratio = rule(&verdict, "failure-ratio");
    assert!(matches!(ratio.outcome, RuleOutcome::NotEvaluated(_)) && !ratio.named);
    // That nothing was due while measuring does, and that rule alone.
    assert_eq!(failed(&verdict), ["something-due"]);
    assert_eq!(ratio.consequence, Consequence::None);

    // A default that had something to judge and could not is as bad as a named one.
    let mut away = Run::healthy(100, 10);
    away.health.incidents.push(Incident {
        kind: IncidentKind::ConsumerAway,
        from: Micros::from_secs(6),
        until: Micros::from_secs(7),
        count: 1,
        detail: "consumer 0".to_owned(),
    });
    let verdict = away.judged();
    assert_eq!(rule(&verdict, "loss").consequence, Consequence::Invalidates);
}

#[test]
fn a_run_that_stop_if_ended_is_a_fail_and_not_an_interrupted_one() {
    let condition = StopIf {
        trigger: StopTrigger::FailureRatioAbove(Share::whole_percent(20)),
        lasting: Micros::from_secs(10),
    };
    let percentile = Percentile::P99;
    let at_most = Micros::from_secs(1);
    let mut run = Run::healthy(50, 11);
    run.rules = Rules::builder(true)
        .slo(
            Scope::Run,
            SloBound::Latency {
                of: Latency::Response,
                percentile,
                at_most,
            },
        )
        .slo(Scope::Run, SloBound::Stable)
        .stop_if(condition)
        .build();
    assert_eq!(
        run.judged().result,
        RunResult::Invalid,
        "too few messages, and not stopped"
    );
    assert_eq!(rule(&run.judged(), "stop-if").outcome, RuleOutcome::Pass);

    let (since, at) = (Micros::from_secs(5), Micros::from_secs(15));
    let held = Stop {
        condition,
        since,
        at,
    };
    run.ending = Ending::Stopped(held);
    run.messages
        .iter_mut()
        .for_each(|m| m.ends(Outcome::Broken(Cause::Reset)));
    let verdict = run.judged();
    assert_eq!(verdict.result, RunResult::Fail);
    let stop = rule(&verdict, "stop-if");
    assert_eq!((stop.kind, stop.since_s), (RuleKind::StopIf, Some(5)));
    assert_eq!(
        stop.evidence,
        "failure-ratio above 20 % for 10 s; measuring ended at 15 s"
    );

    run.ending = Ending::SettlingInterrupted { stop: Some(held) };
    let verdict = run.judged();
    let found = (verdict.result, verdict.would_be);
    assert_eq!(found, (RunResult::Invalid, Some(RunResult::Fail)));
    assert_eq!(rule(&verdict, "stop-if").outcome, RuleOutcome::Fail);
}

#[test]
fn every_rule_is_always_evaluated() {
    let names = |run: &Run| -> Vec<String> {
        run.judged()
            .rules
            .iter()
            .map(|rule| rule.rule.clone())
            .collect()
    };
    let healthy = names(&Run::healthy(100, 40));
    let mut worst = offline(&[ConnectFailure::Refused]);
    worst.ending = Ending::Interrupted;
    worst.residue = None;
    assert_eq!(names(&worst), healthy);
}

/// Devices whose credentials are refused send nothing: whatever a scenario names, the run is not
/// invalid for that.
#[test]
fn a_run_whose_devices_are_all_refused_is_never_invalid() {
    let latency = |of| SloBound::Latency {
        of,
        percentile: Percentile::P99,
        at_most: Micros::from_millis(5),
    };
    let nothing = Allowance::Count(0);
    for (slo, wanted) in [
        (SloBound::Loss(nothing), RunResult::Pass),
        (SloBound::Disconnects(nothing), RunResult::Pass),
        (latency(Latency::Response), RunResult::Fail),
        (latency(Latency::EndToEnd), RunResult::Fail),
        (SloBound::Stable, RunResult::Pass),
    ] {
        let mut run = Run::healthy(100, 40).names_only(&[slo]);
        for message in &mut run.messages {
            message.ends(Outcome::Shed(ShedCause::BackOff));
        }
        run.links.connected = 0;
        run.links.up_at_start = 0;
        run.links.connect_failures = [("rejected-0x86".to_owned(), 100)].into();
        let verdict = run.judged();
        assert_eq!(verdict.result, wanted, "{slo:?}: {verdict:#?}");
        assert!(!verdict.warnings.is_empty());
    }
}

/// One part of a run: it closed no ledger, and half of its messages arrived at the other part.
fn part() -> Run {
    let mut run = Run::healthy(100, 10).names(&[SloBound::Loss(Allowance::Count(0))]);
    run.is_part = true;
    run.residue = None;
    run.messages
        .iter_mut()
        .step_by(2)
        .for_each(|m| m.seen = None);
    run
}

#[test]
fn a_part_that_did_what_it_was_to_do_leaves_the_target_to_the_whole() {
    let verdict = part().judged();
    assert_eq!(verdict.result, RunResult::Part);
    for name in ["loss", "drain", "residue"] {
        let reason = Unevaluated::OnePart;
        let rule = rule(&verdict, name);
        assert_eq!(rule.outcome, RuleOutcome::NotEvaluated(reason), "{name}");
        assert_eq!(
            (rule.consequence, rule.observed),
            (Consequence::None, None),
            "{name}"
        );
    }
    let mut whole = part();
    whole.is_part = false;
    assert_eq!(whole.judged().result, RunResult::Invalid);
}

#[test]
fn a_part_that_was_cut_short_or_is_to_blame_is_invalid_and_one_that_never_began_is_none() {
    let mut run = part();
    run.ending = Ending::Interrupted;
    assert_eq!(run.judged().result, RunResult::Invalid);
    let mut run = part();
    run.messages[0].ends(Outcome::Shed(ShedCause::GeneratorLate));
    assert_eq!(run.judged().result, RunResult::Invalid);
    let mut run = part();
    run.ending = Ending::NotBegun("no consumer".to_owned());
    assert_eq!(run.judged().result, RunResult::None);
}

#[test]
fn a_run_without_a_link_fails_by_a_rule_that_is_not_the_one_switched_off() {
    let mut run = ended_without_a_link(&[(NOT_AUTHORIZED, 100)]);
    run.rules = Rules::builder(true)
        .any(Scope::Run, RuleName::Connected)
        .build();
    let verdict = run.judged();
    assert_eq!(
        (verdict.result, failed(&verdict)),
        (RunResult::Fail, vec!["no-link-up"])
    );
    let found = rule(&verdict, "no-link-up");
    assert_eq!((found.observed, found.bound), (None, None));
    let words = "none of 100 links was up when connecting ended: rejected-0x87 100";
    assert_eq!(found.evidence, words);
}

#[test]
fn a_run_of_links_without_streams_passes() {
    let mut run = Run::healthy(100, 10);
    run.messages.clear();
    let mut summary = run.summary();
    (summary.streams, summary.run.uplink, summary.run.measured) = Default::default();
    for backend in &mut summary.backends {
        (backend.streams, backend.streams_measured) = Default::default();
    }
    let verdict = run.judged_roles(&summary, &[]);
    assert_eq!(verdict.result, RunResult::Pass, "{:?}", verdict.rules);
    for name in ["loss", "failure-ratio", "drain"] {
        let outcome = &rule(&verdict, name).outcome;
        let expected = RuleOutcome::NotEvaluated(Unevaluated::NothingDue);
        assert_eq!(*outcome, expected, "{name}");
    }
}
