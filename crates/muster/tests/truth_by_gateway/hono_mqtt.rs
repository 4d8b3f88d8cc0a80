//! Hono's devices over MQTT: the ledger of a run against the gateway's own account. They name themselves in
//! their topics, or are known by their credentials, or stand behind gateways that are.

use std::collections::BTreeSet;
use std::panic::resume_unwind;

use crate::commands::Run;
use crate::truth::{DEVICES, MESSAGES, Truth, count, refusal, sum};

const SCENARIO: &str = r#"
name: truth
seed: 7
platform:
  kind: gateway
  dialect: hono
  devices: [ "mqtt://127.0.0.1:0" ]
  behaviour: { BEHAVIOUR }
fleet:
  - name: meters
    count: 50
    tenant: t1
    LINK
    reconnect: { min: 100ms, max: 200ms }
    streams:
      - name: readings
        rate: 400/s
        count: 12
        timeout: 1s
        payload: { PAYLOAD }
phases: { warm-up: 0s, measure: MEASURE, settle: { at-most: 15s, quiet: 400ms } }
slo: { loss: 0, failure-ratio: 0, connected: 100% }
"#;

/// Most bits of it that can be flipped lie outside the id.
const PAYLOAD: &str = r#"template: '{"id":"${stamp}","rest":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}', content-type: application/json"#;
const PASSWORD: &str = "credential: { kind: password, secret: \"key-${index}\" }";
const GATEWAYS: &str = "gateway: { devices: 10, id: \"gw-${index}\" }\n    credential: { kind: password, secret: \"key\" }";
const WITH_ERRORS: &str = "credential: { kind: password, secret: \"key\" }\n    error-topic: true";
/// A device that names itself, and subscribes to the errors of its own topic.
const NAMELESS_WITH_ERRORS: &str = "error-topic: true";

const EACH: [&str; 5] = ["", PASSWORD, GATEWAYS, WITH_ERRORS, NAMELESS_WITH_ERRORS];
const TELLING: [&str; 2] = [WITH_ERRORS, NAMELESS_WITH_ERRORS];

fn scenario(link: &str, behaviour: &str, measure: &str) -> String {
    SCENARIO
        .replace("BEHAVIOUR", behaviour)
        .replace("LINK", link)
        .replace("MEASURE", measure)
        .replace("PAYLOAD", PAYLOAD)
}

fn named(scenario: &str) -> Truth {
    let rest = "x".repeat(40);
    Truth::run(scenario).named_by_stamps(r#"{"id":""#, &format!(r#"","rest":"{rest}"}}"#))
}

/// Looks at one run for each kind of link, all at once.
fn each(links: &[&str], behaviour: &str, measure: &str, look: impl Fn(&str, &Truth) + Sync) {
    each_of(links, |link| scenario(link, behaviour, measure), look);
}

fn each_of(
    links: &[&str],
    scenario: impl Fn(&str) -> String + Sync,
    look: impl Fn(&str, &Truth) + Sync,
) {
    let (scenario, look) = (&scenario, &look);
    std::thread::scope(|scope| {
        let runs = links
            .iter()
            .map(|link| scope.spawn(move || look(link, &named(&scenario(link)))));
        for run in runs.collect::<Vec<_>>() {
            run.join().unwrap_or_else(|why| resume_unwind(why));
        }
    });
}

#[test]
fn a_gateway_that_behaves_and_the_ledger_agree() {
    each(&EACH, "", "1500ms", |link, truth| {
        truth.agrees();
        assert_eq!(truth.uplink("accepted"), MESSAGES, "{link}");
        assert_eq!(truth.uplink("arrived"), MESSAGES, "{link}");
        assert_eq!(truth.exit_code, 0, "{link}");
        let links = if link == GATEWAYS {
            DEVICES / 10
        } else {
            DEVICES
        };
        assert_eq!(truth.account("connected"), u64::from(links) + 1, "{link}");
    });
}

#[test]
fn what_becomes_of_each_message_is_what_the_gateway_did_to_it() {
    let behaviour = "lose-after-accept: 17, duplicate: 12, drop: 13, ignore: 11, \
                     answer-late: { count: 9, by: 1500ms }";
    each(&EACH, behaviour, "4s", |link, truth| {
        truth.agrees();
        let [lost, dropped, ignored, late] = [
            ("lose-after-accept", 17),
            ("drop", 13),
            ("ignore", 11),
            ("answer-late", 9),
        ]
        .map(|(name, wanted)| truth.befell(name, wanted));
        assert_eq!(truth.lost_ids(), lost, "{link}");
        let absent: BTreeSet<_> = lost.union(&dropped).copied().collect();
        assert_eq!(truth.absent(), absent, "{link}");
        let mut timed_out = dropped;
        timed_out.extend(ignored.into_iter().chain(late));
        assert_eq!(truth.in_state("timed_out"), timed_out, "{link}");
        assert_eq!(truth.uplink("duplicates"), 12, "{link}");
    });
}

/// The error comes first and names the message; the acknowledgement behind it changes nothing.
#[test]
fn a_link_that_subscribes_to_errors_stays_and_each_refusal_has_its_status() {
    let behaviour = "reject: { code: 429, count: 31 }, reject-but-deliver: 9";
    each(&TELLING, behaviour, "1500ms", |link, truth| {
        truth.closes();
        assert_eq!(truth.account("received"), truth.uplink("sent"), "{link}");
        assert_eq!(
            truth.account("accepted"),
            truth.uplink("accepted"),
            "{link}"
        );
        // Each refusal is a message to its link.
        let delivered = truth.uplink("consumed") + truth.account("rejected");
        assert_eq!(truth.account("delivered"), delivered, "{link}");
        let rejected = truth.befell("reject", 31);
        let delivered = truth.befell("reject-but-deliver", 9);
        let both: BTreeSet<_> = rejected.union(&delivered).copied().collect();
        assert_eq!(truth.in_state("rejected"), both, "{link}");
        assert_eq!(truth.by_code("429"), 40, "{link}");
        assert_eq!(truth.account("rejected"), 40, "{link}");
        assert_eq!(truth.absent(), rejected, "{link}");
        assert_eq!(truth.uplink("rejected_but_arrived"), 9, "{link}");
        assert_eq!(truth.account("closed-links"), 0, "{link}");
        assert_eq!(truth.exit_code, 1, "{link}");
    });
}

/// At QoS 0 a message was final once it was sent: its refusal is counted apart.
#[test]
fn a_refusal_of_what_nobody_awaits_is_counted_by_its_status() {
    let at_most_once = |link: &str| {
        scenario(link, "reject: { code: 503, count: 20 }", "1500ms")
            .replace("timeout: 1s", "qos: 0")
    };
    each_of(&TELLING, at_most_once, |link, truth| {
        truth.closes();
        assert_eq!(truth.uplink("unacknowledged"), MESSAGES, "{link}");
        let refused = &truth.result["ledger"]["uplink"]["refused_unawaited_by_code"];
        assert_eq!(count(&refused["503"]), 20, "{link}");
        assert_eq!(truth.account("rejected"), 20, "{link}");
    });
}

/// Hono ends the link of a device whose message it refuses, and which does not subscribe to errors.
#[test]
fn a_refusal_ends_the_link_where_nobody_subscribes_to_errors() {
    for link in ["", PASSWORD] {
        for on_error in ["", ", on-error: disconnect"] {
            let text = scenario(link, "reject: { count: 5 }", "1500ms")
                .replace("timeout: 1s", &format!("timeout: 1s{on_error}"))
                .replace("timeout: 1s, on", "timeout: 1s\n        on");
            let truth = Truth::run(&text);
            truth.closes();
            assert_eq!(truth.account("closed-links"), 5, "{link}");
            let links = &truth.result["links"];
            assert_eq!(sum(&links["disconnects"]), 5, "{link}: {links}");
            assert!(truth.uplink("broken") >= 5, "{link}");
            assert_eq!(truth.uplink("rejected"), 0, "{link}");
        }
    }
}

#[test]
fn a_message_may_say_that_its_refusal_is_ignored() {
    let text = scenario(PASSWORD, "reject: { count: 5 }", "1500ms");
    let ignoring = text.replace("timeout: 1s", "timeout: 1s\n        on-error: ignore");
    let truth = Truth::run(&ignoring);
    truth.closes();
    assert_eq!(truth.uplink("accepted"), MESSAGES);
    assert_eq!(truth.uplink("lost"), 5, "acknowledged, and not delivered");
    let skipping = text.replace("timeout: 1s", "timeout: 1s\n        on-error: skip-ack");
    let truth = Truth::run(&skipping);
    truth.closes();
    assert_eq!(truth.uplink("timed_out"), 5);
    assert_eq!(truth.account("closed-links"), 0);
}

const COMMANDS: &str = r#"
name: truth
seed: 7
platform:
  kind: gateway
  dialect: hono
  devices: [ "mqtt://127.0.0.1:0" ]
  behaviour: { BEHAVIOUR }
  backend: { commands: { rate: 60/s, mode: MODE } }
fleet:
  - name: pumps
    count: 20
    tenant: t1
    LINK
    streams: [ { name: readings, rate: 40/s }, { kind: command, status: 202 } ]
phases: { warm-up: 2s, measure: 3s, settle: { at-most: 6s, quiet: 500ms } }
slo: { connected: 100% }
"#;

fn commanded(link: &str, behaviour: &str, mode: &str) -> Run {
    let status = if mode == "two-way" {
        ", status: 202"
    } else {
        ""
    };
    let scenario = COMMANDS
        .replace(", status: 202", status)
        .replace("LINK", link)
        .replace("BEHAVIOUR", behaviour)
        .replace("MODE", mode);
    let run = Run::scenario(&scenario);
    run.agrees();
    run
}

#[test]
fn each_command_reaches_its_device_once_and_its_reply_comes_back_with_its_status() {
    for link in ["", PASSWORD] {
        let run = commanded(link, "lose-commands: 7, duplicate-commands: 5", "two-way");
        let issued = run.get("issued");
        assert_eq!(run.get("received"), issued - 7, "{link}");
        assert_eq!(run.get("received_again"), 5, "{link}");
        assert_eq!(run.get("delivered_not_received"), 7, "{link}");
        assert_eq!(run.get("replies_arrived"), issued - 7, "{link}");
        let by_status = &run.ledger()["replies_by_status"];
        assert_eq!(count(&by_status["202"]), issued - 7, "{link}");
        assert_eq!(run.0.account("commands-undelivered"), 0, "{link}");
    }
    let run = commanded(PASSWORD, "", "one-way");
    assert_eq!(
        (run.get("one_way"), run.0.account("replies")),
        (run.get("issued"), 0)
    );
}

/// The gateway has no registry: it knows whose gateway a link is by the devices that it spoke for.
#[test]
fn commands_to_devices_behind_a_gateway_name_them_once_it_spoke_for_them() {
    let gateways = "gateway: { devices: 5, id: \"gw-${index}\" }\n    credential: { kind: password, secret: \"key\" }";
    let run = commanded(gateways, "", "two-way");
    let (received, undeliverable) = (run.get("received"), run.get("undeliverable"));
    assert_eq!(received + undeliverable, run.get("issued"));
    assert!(received >= 180, "all of the measured phase: {received}");
    assert_eq!(run.get("replies_arrived"), received);
    assert_eq!(run.0.account("commands-undelivered"), undeliverable);
}

#[test]
fn what_hono_would_refuse_is_refused_before_a_run() {
    let base = scenario("", "", "1500ms");
    for (before, after, what) in [
        (
            "rate: 400/s",
            "topic: telemetry\n        rate: 400/s",
            "does not name its device",
        ),
        (
            "rate: 400/s",
            "topic: telementry\n        rate: 400/s",
            "is no topic of Hono",
        ),
        (
            "timeout: 1s",
            "kind: event\n        qos: 0",
            "no event at QoS 0",
        ),
        (
            "timeout: 1s",
            "kind: event\n        ttl: 1500ms",
            "whole seconds",
        ),
        ("timeout: 1s", "ttl: 1s", "`ttl`"),
        (
            "reconnect:",
            "error-topic: true\n    gateway: { devices: 5 }\n    reconnect:",
            "refusals",
        ),
    ] {
        let why = refusal(&base.replace(before, after)).unwrap_or_default();
        assert!(why.contains(what), "{after}: {why}");
    }
}
