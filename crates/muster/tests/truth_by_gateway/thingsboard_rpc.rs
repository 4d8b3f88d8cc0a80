//! Commands by ThingsBoard's REST API: what became of each call, against the gateway's own account.

use crate::commands::Run;
use crate::truth::count;

const SCENARIO: &str = r#"
name: truth
seed: 7
platform:
  kind: gateway
  dialect: thingsboard
  devices: [ ADDRESSES ]
  behaviour: { BEHAVIOUR }
  backend: { rpc: { timeout: 5s, KEYS }, commands: { rate: 40/s, COMMANDS } }
provision: {}
fleet:
  - name: meters
    protocol: mqtt
    count: 20
    reconnect: { min: 800ms, max: 1s }
    streams: [ { name: readings, rate: 40/s }, { kind: command } ]
FLEETS
phases: { warm-up: 0s, measure: 3s, settle: { at-most: 15s, quiet: 500ms } }
slo: { connected: 100% }
"#;

/// Devices over HTTP that wait for commands, and ones that never do; half of all commands are theirs.
const WAITING: &str = r"  - name: waiters
    protocol: http
    count: 20
    streams: [ { name: waits, kind: command-query, every: 2s, ttd: 1s }, { kind: command } ]";
const DEAF: &str = r"  - name: deaf
    protocol: http
    count: 20
    streams: [ { name: posts, rate: 20/s }, { kind: command } ]";

/// Devices over CoAP that observe; half of all commands are theirs.
const OBSERVING: &str = r"  - name: observers
    protocol: coap
    count: 20
    streams: [ { name: posts, rate: 20/s }, { kind: command } ]";

fn run(behaviour: &str, keys: &str, commands: &str, fleets: &str) -> Run {
    let addresses = match fleets {
        "" => r#""mqtt://127.0.0.1:0""#,
        OBSERVING => r#""mqtt://127.0.0.1:0", "coap://127.0.0.1:0""#,
        _ => r#""mqtt://127.0.0.1:0", "http://127.0.0.1:0""#,
    };
    let scenario = SCENARIO
        .replace("ADDRESSES", addresses)
        .replace("BEHAVIOUR", behaviour)
        .replace("KEYS", keys)
        .replace("COMMANDS", commands)
        .replace("FLEETS\n", &format!("{fleets}\n"));
    let run = Run::scenario(&scenario);
    assert!(
        run.0.result["ledger"]["uplink"]["lost"].is_null(),
        "nothing is consumed, so nothing is lost"
    );
    assert_eq!(run.get("issued"), 120);
    run
}

fn refused(run: &Run, code: &str) -> u64 {
    count(&run.ledger()["undeliverable_by_status"][code])
}

#[test]
fn one_way_calls_are_delivered_and_what_is_lost_behind_them_is_known() {
    let run = run(
        "lose-commands: 4, duplicate-commands: 3",
        "",
        "mode: one-way",
        "",
    );
    run.agrees();
    assert_eq!((run.get("delivered"), run.get("received")), (120, 116));
    assert_eq!(run.get("one_way"), 116);
    assert_eq!(run.get("received_again"), 3);
}

#[test]
fn a_two_way_call_brings_the_reply_and_a_silent_device_is_504() {
    let run = run("lose-commands: 4", "", "mode: two-way", "");
    run.agrees();
    assert_eq!(
        (refused(&run, "http-504"), run.get("undeliverable")),
        (4, 4)
    );
    assert_eq!(
        (run.get("delivered"), run.get("replies_arrived")),
        (116, 116)
    );
    assert_eq!(run.get("replies_lost"), 0);
    assert_eq!(
        count(&run.0.result["latency"]["command_loop"]["count"]),
        116
    );
}

/// Devices over HTTP that ask no more, once no query is due, are away.
#[test]
fn a_call_to_a_device_over_http_is_replied_to_or_ends_with_504() {
    let run = run("", "", "mode: two-way", WAITING);
    run.agrees();
    let delivered = run.get("delivered");
    assert!((61..120).contains(&delivered), "{delivered}");
    assert_eq!(refused(&run, "http-504"), 120 - delivered);
    for figure in ["received", "answered", "replies_arrived"] {
        assert_eq!(run.get(figure), delivered, "{figure}");
    }
}

#[test]
fn devices_over_coap_are_notified_of_calls_and_reply() {
    let run = run("lose-commands: 4", "", "mode: two-way", OBSERVING);
    run.agrees();
    assert_eq!((refused(&run, "http-504"), run.get("delivered")), (4, 116));
    for figure in ["received", "answered", "replies_arrived"] {
        assert_eq!(run.get(figure), 116, "{figure}");
    }
}

#[test]
fn a_one_way_call_over_coap_is_received_and_a_copy_of_it_is_known_for_one() {
    let run = run("duplicate-commands: 3", "", "mode: one-way", OBSERVING);
    run.agrees();
    assert_eq!((run.get("delivered"), run.get("received")), (120, 120));
    assert_eq!((run.get("one_way"), run.get("received_again")), (120, 3));
}

#[test]
fn a_silent_device_is_408_under_the_old_path() {
    let run = run("lose-commands: 1", "api: plugins", "mode: two-way", "");
    run.agrees();
    assert_eq!((refused(&run, "http-408"), run.get("delivered")), (1, 119));
}

#[test]
fn a_device_that_is_away_is_504_and_409_under_the_old_path() {
    for (keys, code) in [("api: rpc", "http-504"), ("api: plugins", "http-409")] {
        let run = run("", keys, "mode: one-way", DEAF);
        assert_eq!(
            (refused(&run, code), run.get("undeliverable")),
            (60, 60),
            "{code}"
        );
        assert_eq!(
            (run.get("delivered"), run.get("received")),
            (60, 60),
            "{code}"
        );
    }
}

#[test]
fn names_that_no_device_has_are_404() {
    let run = run("", "", "mode: two-way, to: all", "");
    assert_eq!(
        (refused(&run, "http-404"), run.get("undeliverable")),
        (60, 60)
    );
    assert_eq!((run.get("delivered"), run.get("replies_arrived")), (60, 60));
}
