//! Commands over CoAP and DTLS: the ledger of a run against the gateway's own account.

use std::collections::BTreeSet;
use std::panic::resume_unwind;

use muster_model::Stamp;
use muster_platform::{CommandScratch, Dialect, OutboundCommand};
use serde_json::{Value, json};

use crate::commands::Run;
use crate::truth::{count, sum};

const SCENARIO: &str = r#"
name: truth
seed: 7
platform:
  kind: gateway
  dialect: hono
  devices: [ "SCHEME://127.0.0.1:0" ]
  behaviour: { BEHAVIOUR }
  backend: { commands: { COMMANDS } }
fleet:
  - name: pumps
    count: 20
    tenant: t1
    CREDENTIAL
    obey-retry-after: false
    client: { coap: { nstart: NSTART } }
    streams:
      - { name: asks, kind: command-query, QUERY }
      - { kind: command }
phases: { warm-up: 0s, measure: 3s, settle: { at-most: 6s, quiet: 500ms } }
slo: { connected: 100% }
"#;

/// Schemes of devices: without credentials they name themselves in every path, with them in none.
const SCHEMES: [(&str, &str); 2] = [
    ("coap", ""),
    (
        "coaps",
        "credential: { kind: psk, secret: \"key-${index}\" }",
    ),
];
/// The same, with gateways that speak for four devices each.
const GATEWAYS: [(&str, &str); 2] = [
    ("coap", "gateway: { devices: 4 }"),
    (
        "coaps",
        "gateway: { devices: 4, id: \"gw-${index}\" }\n    credential: { kind: psk, secret: \"key-${index}\" }",
    ),
];
/// Queries of a run.
const QUERIES: u64 = 40;
/// A query in vain is over before the next one is due.
const NOW_AND_THEN: &str = "every: 1500ms, ttd: 1s";
const TO_QUERIES: &str = "mode: two-way, to: waiting";

/// Runs over both; what holds whatever happens is looked at here.
fn runs(behaviour: &str, commands: &str, query: &str) -> Vec<Run> {
    runs_over(&SCHEMES, "{ kind: command }", (behaviour, commands, query))
}

fn runs_over(
    schemes: &[(&str, &str); 2],
    taking: &str,
    (behaviour, commands, query): (&str, &str, &str),
) -> Vec<Run> {
    let run = |(scheme, credential): &(&str, &str)| {
        let scenario = SCENARIO
            .replace("{ kind: command }", taking)
            .replace("SCHEME", scheme)
            .replace("CREDENTIAL", credential)
            .replace(
                "NSTART",
                if credential.contains("gateway") {
                    "4"
                } else {
                    "1"
                },
            )
            .replace("BEHAVIOUR", behaviour)
            .replace("COMMANDS", commands)
            .replace("QUERY", query);
        let run = Run::scenario(&scenario);
        agrees(&run);
        run
    };
    std::thread::scope(|scope| {
        let started = schemes.each_ref().map(|over| scope.spawn(|| run(over)));
        started
            .into_iter()
            .map(|run| run.join().unwrap_or_else(|why| resume_unwind(why)))
            .collect()
    })
}

/// Both sides counted the same on each border between them.
fn agrees(run: &Run) {
    run.agrees();
    let account = |name| run.0.account(name);
    assert_eq!(
        account("replies"),
        run.get("answered") + run.get("answer_rejected")
    );
    assert_eq!(
        account("commands-handed"),
        run.get("received") + run.get("received_again")
    );
    let ends = [
        "received_by_query",
        "no_command",
        "query_rejected",
        "query_timed_out",
        "query_broken",
        "query_in_flight",
    ];
    assert_eq!(run.sum(&ends), run.get("queries"));
    // A query's uplink leg counts once, and its time is that of the query.
    assert_eq!(run.0.uplink("sent"), run.get("queries"));
    assert_eq!(account("received"), run.get("queries"));
    let asks = &run.0.result["ledger"]["by_stream"]["pumps/asks"];
    assert_eq!(asks["latency"]["response"], Value::Null);
}

/// Commands that the gateway says it treated so, as device and number.
fn befell(run: &Run, misbehaviour: &str) -> BTreeSet<(u32, u32)> {
    run.befell_as(misbehaviour, |stamp: &Stamp| {
        let to = OutboundCommand {
            stamp,
            device: &format!("pumps-{:08}", stamp.id.device.0),
            tenant: "t1",
            is_two_way: true,
        };
        let mut command = CommandScratch::default();
        (Dialect::Hono.application.write_command)(&to, &mut command);
        [command.topic.as_bytes(), &command.payload].concat()
    })
}

#[test]
fn every_query_is_answered_with_a_command_unless_that_is_lost() {
    for run in runs("lose-commands: 4", TO_QUERIES, NOW_AND_THEN) {
        assert_eq!((run.get("queries"), run.get("issued")), (QUERIES, QUERIES));
        assert_eq!(
            run.get("delivered"),
            QUERIES,
            "the gateway takes what it loses"
        );
        assert_eq!(run.get("received_by_query"), QUERIES - 4);
        assert_eq!(run.get("no_command"), 4);
        assert_eq!(run.0.account("queries-without-command"), 4);
        assert_eq!(run.get("received"), QUERIES - 4);
        assert_eq!(run.get("replies_arrived"), QUERIES - 4);
        assert_eq!(run.not_received(), befell(&run, "lose-commands"));
        let requests = &run.0.result["latency"]["command_request"];
        assert_eq!(count(&requests["count"]), QUERIES - 4);
        // To have no command is to be accepted: the message came.
        assert_eq!(run.0.uplink("accepted"), QUERIES);
        assert_eq!(run.0.cell("accepted", "arrived"), QUERIES);
    }
}

/// A gateway has one exchange open at a time until that is acknowledged, as NSTART has it; here four.
#[test]
fn each_device_behind_a_gateway_gets_the_command_that_is_its_own() {
    let query = (
        "lose-commands: 4, reject: { code: 503, count: 3 }",
        TO_QUERIES,
        NOW_AND_THEN,
    );
    for run in runs_over(&GATEWAYS, "{ kind: command }", query) {
        assert_eq!(run.get("queries"), QUERIES);
        assert_eq!(run.get("query_rejected"), 3);
        assert_eq!((run.get("issued"), run.get("delivered")), (37, 37));
        assert_eq!(run.get("received_by_query"), QUERIES - 7);
        assert_eq!(
            (run.get("received"), run.get("received_foreign")),
            (QUERIES - 7, 0)
        );
        assert_eq!(run.get("replies_arrived"), QUERIES - 7);
        assert_eq!(run.not_received(), befell(&run, "lose-commands"));
        assert_eq!(run.0.account("commands-undelivered"), 0);
    }
    let query = ("", "rate: 60/s, mode: two-way, to: online", NOW_AND_THEN);
    for run in runs_over(&GATEWAYS, "{ kind: command }", query) {
        let (received, undeliverable) = (run.get("received"), run.get("undeliverable"));
        assert_eq!(run.get("issued"), 180);
        assert_eq!(run.get("delivered"), received);
        assert_eq!(received + undeliverable, 180);
        assert_eq!(run.get("replies_arrived"), received);
        assert!(received > 20, "{received}");
    }
}

/// The gateway asks for itself; whom the command is for stands in the answer. Once it has spoken for its devices the platform
/// knows that their commands go to it.
#[test]
fn a_gateway_that_waits_gets_the_commands_of_its_devices() {
    let scenario = SCENARIO
        .replace("SCHEME", "coaps")
        .replace("CREDENTIAL", GATEWAYS[1].1)
        .replace("devices: 4", "devices: 2")
        .replace("NSTART", "1")
        .replace("BEHAVIOUR", "")
        .replace("COMMANDS", TO_QUERIES)
        .replace(
            "{ name: asks, kind: command-query, QUERY }",
            "{ name: speaks, every: 3s }\n      - { name: asks, kind: command-query, every: 3s, ttd: 1s, topic: telemetry }",
        )
        .replace("measure: 3s", "measure: 6s");
    let run = Run::scenario(&scenario);
    run.agrees();
    // Of the first queries some come before their device was spoken for.
    let (received, in_vain) = (run.get("received_by_query"), run.get("no_command"));
    assert_eq!(run.get("queries"), 40);
    assert_eq!(received + in_vain, 40);
    assert!(received >= 20, "{received}");
    assert_eq!((run.get("issued"), run.get("delivered")), (40, received));
    assert_eq!(run.get("undeliverable"), in_vain);
    assert_eq!(
        (run.get("received"), run.get("received_foreign")),
        (received, 0)
    );
    assert_eq!(run.get("replies_arrived"), received);
    assert_eq!(run.0.account("commands-handed"), received);
}

#[test]
fn a_reply_says_what_became_of_its_command_as_the_scenario_has_it() {
    for (taking, status) in [
        ("{ kind: command, status: 503 }", "503"),
        ("{ kind: command }", "200"),
    ] {
        for run in runs_over(&SCHEMES, taking, ("", TO_QUERIES, NOW_AND_THEN)) {
            assert_eq!(run.get("replies_arrived"), QUERIES);
            let by_status = &run.ledger()["replies_by_status"];
            assert_eq!(by_status, &json!({ status: QUERIES }));
            assert_eq!(
                run.get("answered"),
                QUERIES,
                "the platform takes any status"
            );
        }
    }
}

/// Nothing but the path and the order of arrival tells whose it is.
#[test]
fn an_empty_notification_asks_for_a_command_as_well() {
    let query = "every: 1500ms, ttd: 1s, payload: empty";
    for run in runs("lose-commands: 4", TO_QUERIES, query) {
        assert_eq!((run.get("queries"), run.get("issued")), (QUERIES, QUERIES));
        assert_eq!(run.get("received_by_query"), QUERIES - 4);
        assert_eq!(run.get("replies_arrived"), QUERIES - 4);
        assert_eq!(run.0.cell("accepted", "arrived"), QUERIES);
        for none in ["unstamped", "foreign", "corrupted"] {
            assert_eq!(run.0.uplink(none), 0, "{none}");
        }
    }
}

/// Messages that were shed or refused are no arrivals, though only order tells messages apart.
#[test]
fn of_empty_notifications_none_is_lost_where_others_are_shed_or_refused() {
    let behaviour = "lose-commands: 6, reject: { code: 503, count: 5 }";
    let query = "every: 500ms, ttd: 1s, payload: empty";
    for run in runs(behaviour, TO_QUERIES, query) {
        let sent = run.get("queries");
        assert!(
            run.0.uplink("shed") > 0,
            "a query waits, and others are due"
        );
        assert_eq!(run.0.uplink("rejected"), 5);
        assert_eq!(run.0.cell("accepted", "arrived"), sent - 5);
        for none in ["lost", "outstanding", "rejected_but_arrived", "residue"] {
            assert_eq!(run.0.uplink(none), 0, "{none}");
        }
        let warnings = run.0.result["verdict"]["warnings"].as_array();
        let unsure = |warning: &Value| warning["kind"] == "order-unsure";
        assert!(warnings.is_some_and(|all| all.iter().any(unsure)));
        assert_eq!(run.0.result["latency"]["end_to_end"], Value::Null);
    }
}

#[test]
fn a_doubled_command_finds_nobody_waiting_and_a_late_one_the_query_that_waits() {
    let behaviour = "duplicate-commands: 7, delay-commands: { count: 5, by: 300ms }";
    for run in runs(behaviour, TO_QUERIES, "every: 1500ms, ttd: 3s") {
        assert_eq!(run.get("delivered"), QUERIES);
        assert_eq!(run.get("received"), QUERIES);
        assert_eq!(
            run.get("received_again"),
            0,
            "a device had one query to answer"
        );
        assert_eq!(run.get("replies_arrived"), QUERIES);
        assert_eq!(befell(&run, "duplicate-commands").len(), 7);
        assert_eq!(run.0.account("commands-undelivered"), 0);
        assert_eq!(befell(&run, "delay-commands").len(), 5);
        for leg in ["command_loop", "command_request"] {
            let longest = run.0.latency(leg, "max_us");
            assert!(longest >= 300_000, "{leg}: {longest}");
        }
    }
}

#[test]
fn commands_that_want_no_reply_get_none() {
    for run in runs("", "mode: one-way, to: waiting", NOW_AND_THEN) {
        assert_eq!(run.get("one_way"), QUERIES);
        assert_eq!(run.0.account("replies"), 0);
    }
}

/// Of the backend's own schedule a device hears what comes while it asks: one command for each query.
#[test]
fn a_second_command_in_the_time_of_a_query_is_undeliverable() {
    for run in runs("", "rate: 60/s, mode: two-way, to: online", NOW_AND_THEN) {
        assert_eq!(run.get("issued"), 180);
        let received = run.get("received");
        assert_eq!(run.get("delivered"), received);
        assert_eq!(run.get("received_by_query"), received);
        assert_eq!(
            run.get("received_by_query") + run.get("no_command"),
            run.get("queries")
        );
        let undeliverable = run.get("undeliverable");
        assert!(
            received > 20 && undeliverable > 20,
            "{received}, {undeliverable}"
        );
        assert_eq!(run.0.account("commands-undelivered"), undeliverable);
        let by_status = &run.ledger()["undeliverable_by_status"];
        assert_eq!(sum(by_status), undeliverable);
        assert_eq!(count(&by_status["503"]), undeliverable, "{by_status}");
        assert_eq!(run.get("replies_arrived"), received);
        // Where a device stood is told by its own clock, a moment from when the gateway looks.
        let [waiting, online] = ["waiting", "online"].map(|at| run.presence(at, "scheduled"));
        assert_eq!(waiting + online, 180);
        assert!(waiting > 20 && online > 20, "{waiting}, {online}");
    }
}

/// Waiting, online without a query, and absent: each command has one end by where its device stood.
#[test]
fn of_commands_to_all_those_who_wait_get_one_each_and_nobody_else_any() {
    for run in runs("", "rate: 60/s, mode: two-way, to: all", NOW_AND_THEN) {
        let stood = ["waiting", "online", "offline"].map(|at| run.presence(at, "scheduled"));
        assert_eq!((run.get("issued"), stood.iter().sum::<u64>()), (180, 180));
        assert_eq!(stood[2], 90, "every second");
        assert!(stood[0] > 10 && stood[1] > 10, "{stood:?}");
        for came in ["received", "delivered", "replies_arrived"] {
            assert_eq!(run.presence("offline", came), 0, "{came}");
            let both = run.presence("waiting", came) + run.presence("online", came);
            assert_eq!(both, run.get("received"), "{came}");
        }
        let (received, undeliverable) = (run.get("received"), run.get("undeliverable"));
        assert_eq!(received + undeliverable, 180);
        assert_eq!(run.get("received_by_query"), received);
        assert_eq!(run.get("no_command") + received, run.get("queries"));
        assert_eq!(run.0.account("commands-undelivered"), undeliverable);
        assert_eq!(run.0.account("commands-handed"), received);
    }
}

#[test]
fn absent_devices_get_nothing() {
    for run in runs("", "rate: 60/s, mode: two-way, to: absent", NOW_AND_THEN) {
        assert_eq!((run.get("issued"), run.get("undeliverable")), (180, 180));
        assert_eq!(run.get("no_command"), run.get("queries"));
        assert_eq!(run.get("received"), 0);
    }
}

#[test]
fn a_refused_query_has_no_command_whether_or_not_it_surfaced() {
    for run in runs("reject: { code: 429, count: 6 }", TO_QUERIES, NOW_AND_THEN) {
        assert_eq!(run.get("query_rejected"), 6);
        assert_eq!(count(&run.ledger()["query_rejected_by_code"]["4.29"]), 6);
        assert_eq!(run.get("issued"), QUERIES - 6, "the others did not surface");
        assert_eq!(run.get("received_by_query"), QUERIES - 6);
    }
    for run in runs("reject-but-deliver: 5", TO_QUERIES, NOW_AND_THEN) {
        assert_eq!(run.get("query_rejected"), 5);
        assert_eq!(run.0.cell("rejected", "arrived"), 5);
        // The application answers it, and nobody waits any more.
        assert_eq!(run.get("undeliverable"), 5);
        assert_eq!(run.get("received_by_query"), QUERIES - 5);
    }
}

#[test]
fn each_devices_first_query_and_command_stand_apart_where_the_scenario_wants_it() {
    // What follows the streams stands at the top of the scenario.
    let taking = "{ kind: command }\ncold: { first-message: true }";
    let told = ("reject: { code: 503, count: 6 }", TO_QUERIES, NOW_AND_THEN);
    for run in runs_over(&SCHEMES, taking, told) {
        let apart = ["queries_cold", "queries_warm"].map(|part| &run.ledger()[part]);
        for queries in apart {
            assert_eq!(sum(queries), QUERIES / 2, "{queries}");
            assert_eq!(queries["no_command"], json!(0));
        }
        let rejected = apart.map(|queries| count(&queries["rejected"]));
        assert_eq!(rejected.iter().sum::<u64>(), 6);
        let result = &run.0.result;
        let of = |table: &str, leg: &str, key: &str| count(&result[table][leg][key]);
        for leg in ["command_request", "command_response", "command_loop"] {
            let [all, cold, warm] = ["latency", "latency_cold", "latency_warm"]
                .map(|table| of(table, leg, "count") + of(table, leg, "censored"));
            assert_eq!(cold + warm, all, "{leg}");
            assert!((14..=20).contains(&cold), "{leg}: {cold}");
        }
        let asked = of("latency_cold", "command_request", "count");
        assert_eq!(asked, QUERIES / 2, "also those that were refused");
        let own = &result["ledger"]["by_stream"]["pumps/asks"]["latency_cold"];
        assert_eq!(
            own["command_request"],
            result["latency_cold"]["command_request"]
        );
        assert_eq!(own["command_loop"], Value::Null);
    }
}

#[test]
fn a_query_that_nobody_answers_times_out_and_its_device_asks_nothing_else_meanwhile() {
    let query = "every: 3s, ttd: 1s, timeout: 2s";
    for run in runs("drop: 3, ignore: 2", TO_QUERIES, query) {
        assert_eq!(run.get("queries"), 20);
        assert_eq!(run.get("query_timed_out"), 5);
        assert_eq!(run.get("received_by_query"), 15);
        assert_eq!(
            run.0.cell("timed_out", "absent") + run.0.cell("timed_out", "outstanding"),
            3
        );
        // A query that is ignored surfaces, and its command finds nobody waiting.
        assert_eq!(run.0.cell("timed_out", "arrived"), 2);
        assert_eq!((run.get("issued"), run.get("undeliverable")), (17, 2));
    }
    for run in runs(
        "ignore: 4",
        TO_QUERIES,
        "every: 500ms, ttd: 1s, timeout: 2s",
    ) {
        let shed = &run.0.result["ledger"]["uplink"]["shed_by_cause"];
        assert!(count(&shed["busy"]) >= 4, "{shed}");
        assert_eq!(run.get("query_timed_out"), 4);
    }
}

/// RFC 7252 section 9.1.1: message ids are those of a session. With each that comes from the same port the
/// gateway begins at the same one.
#[test]
fn of_answers_in_later_sessions_of_a_shared_socket_none_is_taken_for_one_that_came() {
    let shared = format!(
        "{}\n    sockets: shared\n    connect: {{ lifetime: 1s }}",
        SCHEMES[1].1
    );
    let nothing = ("", "rate: 1/s, mode: two-way, to: absent");
    let late = (
        "delay-commands: { count: 1000, by: 1200ms }",
        "mode: two-way, to: waiting",
    );
    for ((behaviour, commands), answer) in [(nothing, "no_command"), (late, "received_by_query")] {
        let scenario = SCENARIO
            .replace("SCHEME", "coaps")
            .replace("CREDENTIAL", &shared)
            .replace("NSTART", "1")
            .replace("BEHAVIOUR", behaviour)
            .replace("COMMANDS", commands)
            .replace("QUERY", "every: 2500ms, ttd: 2s")
            .replace("measure: 3s", "measure: 10s");
        let run = Run::scenario(&scenario);
        agrees(&run);
        let sessions = run.0.account("dtls-handshakes");
        assert!(sessions >= 40, "two of each device: {sessions}");
        assert!(run.get("queries") >= 40, "{}", run.ledger());
        assert_eq!(run.get(answer), run.get("queries"), "{}", run.ledger());
        assert_eq!(run.0.uplink("duplicate_responses"), 0);
    }
}

/// A query ends with its link, so that no command goes where nobody is any more. What is over before and
/// after stands apart by the instants: all ask at the beginning, and commands come between.
#[test]
fn commands_to_devices_whose_links_were_closed_are_undeliverable() {
    let scenario = SCENARIO
        .replace("SCHEME", "coaps")
        .replace("CREDENTIAL", SCHEMES[1].1)
        .replace("NSTART", "1")
        .replace("BEHAVIOUR", "close-links: { at: 950ms, share: 50% }")
        .replace("COMMANDS", "rate: 10/s, mode: two-way, to: online")
        .replace("QUERY", "every: 3s, phase: together, ttd: 4s");
    let run = Run::scenario(&scenario);
    agrees(&run);
    assert_eq!(run.0.account("closed-links"), 10);
    let abandoned = run.0.account("queries-abandoned");
    assert!(abandoned > 0, "half of those that waited, about");
    assert_eq!(run.get("query_broken"), abandoned);
    assert_eq!(run.get("issued"), 30);
    let (received, undeliverable) = (run.get("received"), run.get("undeliverable"));
    assert_eq!(run.get("delivered_not_received"), 0);
    assert_eq!(run.get("delivered"), received);
    assert_eq!(received + undeliverable, 30);
    assert_eq!(run.0.account("commands-undelivered"), undeliverable);
}

/// The gateway stands still while they wait, and then answers all of them before it hears an acknowledgement.
#[test]
fn all_devices_of_a_shared_socket_can_be_answered_at_once() {
    let scenario = SCENARIO
        .replace("SCHEME", "coap")
        .replace("CREDENTIAL", "sockets: shared")
        .replace("count: 20", "count: 150")
        .replace("NSTART", "1")
        .replace(
            "BEHAVIOUR",
            "lose-commands: 150, stall: { at: 900ms, for: 500ms }",
        )
        .replace("COMMANDS", TO_QUERIES)
        .replace("QUERY", "every: 3s, phase: together, ttd: 1s");
    let run = Run::scenario(&scenario);
    agrees(&run);
    assert_eq!(run.0.account("peers"), 1);
    assert_eq!((run.get("queries"), run.get("no_command")), (150, 150));
    assert_eq!(run.0.account("separate"), 150);
    assert_eq!(run.0.account("unanswerable"), 0);
}
