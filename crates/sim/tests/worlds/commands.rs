//! Commands, and what devices subscribe to, against model platforms: the same commander and the same
//! ledgers as in a real run, and a platform that keeps an account of its own.

use muster_measure::{CommandLedger, ReceptionLedger};
use muster_model::{Micros, Presence};
use muster_plan::Plan;
use muster_sim::{Behaviour, CommandWays, Incident, Run, What, World};
use proptest::prelude::*;

use crate::laws::{config, incidents, parsed, seed};

/// Devices, and how many commands fall due in 4 s at 60/s.
const DEVICES: u64 = 12;
const COMMANDS: u64 = 240;

const RESUMED: &str = "client: { clean-start: false, session-expiry: 60s }";
const CLEAN: &str = "client: { clean-start: true, session-expiry: 0s }";
const QUERIES: &str = ", { name: asks, kind: command-query, every: 1s, ttd: 400ms }";

fn plan(commands: &str, fleet: &str, streams: &str) -> Plan {
    parsed(&format!(
        "
name: commands
platform: {{ backend: {{ filter: \"muster/#\", commands: {{ {commands} }} }} }}
fleet: [{{ name: pumps, count: {DEVICES}, {fleet}, streams: [
  {{ name: readings, rate: 24/s }}, {{ kind: command, timeout: 2s }} {streams} ] }}]
phases: {{ warm-up: 1s, measure: 3s, settle: {{ at-most: 30s, quiet: 1s }} }}
"
    ))
}

fn run(plan: Plan, commands: CommandWays) -> Run {
    let behaviour = Behaviour {
        commands,
        late_by: Micros::from_millis(800),
        ..Behaviour::default()
    };
    checked(play(plan, behaviour, seed()))
}

fn play(plan: Plan, behaviour: Behaviour, seed: u64) -> Run {
    let world = World::new(plan, behaviour, seed).expect("the plan can be placed");
    world.run().expect("time goes on")
}

fn two_way(fleet: &str, commands: CommandWays) -> Run {
    run(plan("rate: 60/s, mode: two-way", fleet, ""), commands)
}

fn ledger(run: &Run) -> &CommandLedger {
    let command = run.summary.run.command.as_ref();
    &command.expect("the plan has commands").ledger
}

fn received(run: &Run) -> &ReceptionLedger {
    let reception = run.summary.run.reception.as_ref();
    &reception.expect("the plan has subscribers").ledger
}

fn presence(ledger: &CommandLedger) -> [u64; 4] {
    let of = |place: Presence| ledger.by_presence.get(place.name());
    Presence::ALL.map(|place| of(place).map_or(0, |row| row.scheduled))
}

/// The laws that hold for every run with commands.
fn checked(run: Run) -> Run {
    let (ledger, seen) = (ledger(&run), run.finals.commands);
    assert_eq!(run.summary.residue, Some(0), "{:#?}", ledger.equations);
    assert_eq!(
        (seen.repeated, seen.absurd),
        (0, 0),
        "one end each: {seen:?}"
    );
    assert_eq!(seen.issues, ledger.issued + ledger.withheld);
    assert_eq!(seen.answers, ledger.received);
    assert_eq!(seen.queries, ledger.queries);
    if let Some(scheduled) = ledger.scheduled {
        assert_eq!(seen.issues, scheduled, "none without an end");
        assert_eq!(presence(ledger), seen.met, "where devices stood");
        assert_eq!(seen.met.iter().sum::<u64>(), scheduled);
    }
    run
}

/// Checks the law of runs without an ended link: the platform's counts are the ledger's, to the
/// unit.
fn agrees(run: &Run) {
    let (ledger, platform) = (ledger(run), run.platform.commands);
    assert_eq!(ledger.issued, platform.taken);
    assert_eq!(ledger.undeliverable, platform.refused + platform.unheard);
    let status = |code: &str| ledger.undeliverable_by_status.get(code).copied();
    assert_eq!(status("0x10").unwrap_or(0), platform.unheard);
    assert_eq!(status("0x97").unwrap_or(0), platform.refused);
    assert_eq!(ledger.unknown, platform.ignored);
    let is_said = platform.refused + platform.unheard + platform.ignored;
    assert_eq!(ledger.delivered, platform.taken - is_said);
    assert_eq!(ledger.delivered_not_received, Some(platform.lost));
    assert_eq!(ledger.received_not_delivered, Some(platform.ignored));
    assert_eq!(ledger.received_again, platform.doubled);
    let delivered: u64 = run
        .delivered
        .iter()
        .map(|delivered| delivered.commands)
        .sum();
    assert_eq!(ledger.received + ledger.received_again, delivered);
    replies_agree(run);
}

fn replies_agree(run: &Run) {
    let (ledger, platform) = (ledger(run), run.platform.commands);
    assert_eq!(ledger.received - ledger.one_way, platform.replies);
    assert_eq!(ledger.answer_rejected, platform.replies_refused);
    assert_eq!(ledger.answer_timed_out, platform.replies_ignored);
    assert_eq!(ledger.replies_lost, Some(platform.replies_lost));
    assert_eq!(ledger.replies_unanswered, Some(platform.replies_ignored));
    assert_eq!(ledger.replies_again, platform.replies_doubled);
    let delivered = run.delivered.last().map(|application| application.messages);
    let arrived = ledger.replies_arrived.zip(ledger.replies_unanswered);
    let copies = arrived.map(|(answered, others)| answered + others + ledger.replies_again);
    assert_eq!(copies, delivered);
}

#[test]
fn a_faultless_platform_delivers_every_command_and_every_reply() {
    let run = two_way(RESUMED, CommandWays::default());
    agrees(&run);
    let ledger = ledger(&run);
    assert_eq!(ledger.scheduled, Some(COMMANDS));
    assert_eq!((ledger.delivered, ledger.received), (COMMANDS, COMMANDS));
    assert_eq!(ledger.replies_arrived, Some(COMMANDS));
    assert_eq!(presence(ledger), [COMMANDS, 0, 0, 0]);
    assert_eq!(run.summary.run.uplink.accepted, 96);
}

/// Makes a platform treat commands in one way, and what the ledger must then count for it.
type Case = (
    &'static str,
    fn(&mut CommandWays),
    fn(&CommandLedger) -> u64,
);

const CASES: [Case; 9] = [
    (
        "refused",
        |ways| ways.refuse = 0.2,
        |ledger| ledger.undeliverable,
    ),
    (
        "never delivered",
        |ways| ways.lose = 0.2,
        |ledger| ledger.delivered_not_received.unwrap_or(0),
    ),
    (
        "twice",
        |ways| ways.duplicate = 0.2,
        |ledger| ledger.received_again,
    ),
    ("late", |ways| ways.late = 0.2, |ledger| ledger.received),
    (
        "without an answer",
        |ways| ways.ignore = 0.2,
        |ledger| ledger.unknown,
    ),
    (
        "reply refused",
        |ways| ways.refuse_reply = 0.2,
        |ledger| ledger.answer_rejected,
    ),
    (
        "reply without an answer",
        |ways| ways.ignore_reply = 0.2,
        |ledger| ledger.answer_timed_out,
    ),
    (
        "reply lost",
        |ways| ways.lose_reply = 0.2,
        |ledger| ledger.replies_lost.unwrap_or(0),
    ),
    (
        "reply twice",
        |ways| ways.duplicate_reply = 0.2,
        |ledger| ledger.replies_again,
    ),
];

#[test]
fn what_the_platform_did_to_commands_is_what_the_ledger_says() {
    for (name, misbehave, counted) in CASES {
        let mut ways = CommandWays::default();
        misbehave(&mut ways);
        let run = two_way(RESUMED, ways);
        agrees(&run);
        let count = counted(ledger(&run));
        assert!(count > 20, "{name}: {count}");
    }
}

#[test]
fn late_commands_take_as_long_as_they_were_late() {
    let ways = CommandWays {
        late: 0.2,
        ..CommandWays::default()
    };
    let run = two_way(RESUMED, ways);
    let command = run.summary.run.command.as_ref();
    let round = &command.expect("there are commands").measured.round;
    assert!(run.platform.commands.delayed > 20);
    let longest = round.figures.max_us.expect("there were replies");
    assert!(longest >= 800_000, "{longest}");
}

#[test]
fn commands_to_names_that_nobody_plays_are_undeliverable() {
    for (to, unheard) in [("absent", COMMANDS), ("all", COMMANDS / 2)] {
        let run = run(
            plan(&format!("rate: 60/s, to: {to}"), RESUMED, ""),
            CommandWays::default(),
        );
        agrees(&run);
        assert_eq!(ledger(&run).undeliverable, unheard, "{to}");
        assert_eq!(ledger(&run).received, COMMANDS - unheard, "{to}");
        assert_eq!(presence(ledger(&run))[1], unheard, "{to}");
    }
}

#[test]
fn every_query_that_comes_is_answered_with_a_command() {
    let ways = CommandWays {
        lose: 0.2,
        ..CommandWays::default()
    };
    let run = run(plan("mode: two-way, to: waiting", RESUMED, QUERIES), ways);
    agrees(&run);
    let (ledger, lost) = (ledger(&run), run.platform.commands.lost);
    assert!(lost > 2);
    assert_eq!((ledger.queries, ledger.issued), (4 * DEVICES, 4 * DEVICES));
    assert_eq!((ledger.no_command, ledger.scheduled), (lost, None));
    assert_eq!(ledger.received_by_query, 4 * DEVICES - lost);
}

fn at_2s(what: What, share: f64) -> Vec<Incident> {
    vec![Incident {
        at: Micros::from_millis(2_550),
        share,
        what,
    }]
}

/// The seconds in which devices were away, and had just come back, cut out of one run.
fn interrupted(fleet: &str) -> Run {
    let behaviour = Behaviour {
        incidents: at_2s(What::Fin, 0.5),
        ..Behaviour::default()
    };
    let fleet = format!("reconnect: {{ min: 700ms, max: 700ms, jitter: 0 }}, {fleet}");
    checked(play(
        plan("rate: 60/s, mode: one-way", &fleet, ""),
        behaviour,
        3,
    ))
}

#[test]
fn commands_to_devices_that_are_away_wait_in_their_sessions() {
    let run = interrupted(RESUMED);
    let ledger = ledger(&run);
    let [online, offline, reconnected, _] = presence(ledger);
    assert!(
        offline > 10 && reconnected > 10,
        "{online} {offline} {reconnected}"
    );
    assert_eq!(ledger.received, run.platform.commands.taken);
    assert_eq!(ledger.undeliverable, 0);
    for (name, row) in &ledger.by_presence {
        assert_eq!(row.received, row.delivered, "{name}");
    }
    let waited = &ledger.by_presence["offline"];
    assert_eq!((waited.received, waited.scheduled), (offline, offline));
}

#[test]
fn commands_to_devices_without_a_session_are_undeliverable() {
    let run = interrupted(CLEAN);
    let ledger = ledger(&run);
    let [_, offline, reconnected, _] = presence(ledger);
    assert!(offline > 10 && reconnected > 10);
    assert_eq!(ledger.undeliverable, run.platform.commands.unheard);
    let away = &ledger.by_presence["offline"];
    assert_eq!((away.received, away.scheduled), (0, offline));
    let taken = run.platform.commands.taken;
    assert_eq!(ledger.received, taken - ledger.undeliverable);
}

/// Every fourth second of every device is without a link, whose end also meets the application.
#[test]
fn an_application_that_loses_its_link_knows_nothing_of_what_was_under_way() {
    let behaviour = Behaviour {
        answer_after: Micros::from_millis(120),
        incidents: at_2s(What::Reset, 1.0),
        ..Behaviour::default()
    };
    let fleet = format!("reconnect: {{ min: 50ms, max: 50ms, jitter: 0 }}, {RESUMED}");
    let plan = plan("rate: 60/s, mode: two-way", &fleet, "");
    let run = checked(play(plan, behaviour, 1));
    let ledger = ledger(&run);
    assert!(ledger.unknown > 3, "{ledger:#?}");
    assert_eq!(ledger.issued, COMMANDS);
    // What had not reached the platform when the link ended is unknown too.
    let on_its_way = ledger.issued - run.platform.commands.taken;
    let came = ledger.received_not_delivered;
    assert_eq!(came, Some(ledger.unknown - on_its_way));
}

const FANNED: &str = "
name: fanned
fleet:
  - name: pub
    count: 3
    id: \"pub-${index}\"
    streams:
      - { name: news, rate: 30/s, topic: \"muster/news/${id}\", qos: QOS }
      - { name: pairs, rate: 30/s, topic: \"muster/pairs/${id}\", qos: QOS }
  - name: sub
    count: 12
    id: \"sub-${index}\"
    streams:
      - { name: all, kind: receive, filter: \"muster/news/#\", qos: QOS }
      - { name: one, kind: receive, filter: \"muster/pairs/pub-${index}\", qos: QOS }
phases: { warm-up: 1s, measure: 3s, settle: { at-most: 30s, quiet: 500ms } }
";

fn fanned(qos: u8, behaviour: Behaviour) -> Run {
    let plan = parsed(&FANNED.replace("QOS", &qos.to_string()));
    let run = play(plan, behaviour, seed());
    let ledger = received(&run);
    assert_eq!(run.summary.residue, Some(0), "{:#?}", ledger.equations);
    let delivered: Vec<u64> = run
        .delivered
        .iter()
        .map(|delivered| delivered.messages)
        .collect();
    assert_eq!(ledger.consumed, delivered.iter().sum::<u64>());
    run
}

#[test]
fn each_subscriber_gets_what_it_asked_for_and_is_an_account_of_its_own() {
    for qos in 0..3 {
        let run = fanned(qos, Behaviour::default());
        let ledger = received(&run);
        assert_eq!((ledger.subscribers, ledger.expected), (24, Some(1_560)));
        assert_eq!((ledger.arrived, ledger.lost), (1_560, Some(0)));
        for row in &ledger.by_subscriber {
            let place = row.device.0 - 3;
            let wanted = match (row.stream.0, place) {
                (2, _) => 120,
                (_, 0..3) => 40,
                (_, _) => 0,
            };
            assert_eq!((row.arrived, row.again), (wanted, 0), "{row:?}");
        }
    }
}

#[test]
fn what_the_platform_loses_or_doubles_each_subscriber_misses_or_gets_twice() {
    let run = fanned(
        1,
        Behaviour {
            lose: 0.05,
            duplicate: 0.05,
            ..Behaviour::default()
        },
    );
    let ledger = received(&run);
    let of = |stream: usize| &run.summary.streams[stream].uplink;
    let (news, pairs) = (of(0), of(1));
    assert_eq!(
        (news.arrivals.lost, pairs.arrivals.lost)
            .0
            .zip(pairs.arrivals.lost)
            .map(|(a, b)| a + b),
        Some(run.platform.lost)
    );
    let each = |news: Option<u64>, pairs: Option<u64>| Some(DEVICES * news? + pairs?);
    assert_eq!(ledger.lost, each(news.arrivals.lost, pairs.arrivals.lost));
    assert_eq!(
        ledger.duplicates,
        each(news.arrivals.duplicates, pairs.arrivals.duplicates)
    );
    assert!(ledger.lost > Some(30) && ledger.duplicates > Some(30));
}

#[test]
fn a_subscriber_that_was_away_gets_what_waited_in_its_session_and_nothing_without_one() {
    let away = |client: &str| {
        // All lose their links; who publishes is back long before who reads.
        let keys = |count: u32, wait: &str| {
            format!("count: {count}\n    reconnect: {{ min: {wait}, max: {wait} }}\n    {client}")
        };
        let text = FANNED.replace("QOS", "1");
        let text = text.replace("count: 3", &keys(3, "10ms"));
        let text = text.replace("count: 12", &keys(12, "2s"));
        let incidents = at_2s(What::Fin, 1.0);
        let behaviour = Behaviour {
            incidents,
            ..Behaviour::default()
        };
        let run = play(parsed(&text), behaviour, 1);
        assert_eq!(run.summary.residue, Some(0));
        println!("{:#?}", received(&run));
        received(&run).lost
    };
    assert_eq!(away(RESUMED), Some(0));
    assert!(away(CLEAN) > Some(100));
}

fn shares() -> impl Strategy<Value = f64> {
    prop_oneof![3 => Just(0.0), 1 => Just(0.05), 1 => Just(0.3)]
}

prop_compose! {
    fn ways()(
        commands in (shares(), shares(), shares(), shares(), shares()),
        replies in (shares(), shares(), shares(), shares()),
    ) -> CommandWays {
        CommandWays {
            refuse: commands.0,
            lose: commands.1,
            duplicate: commands.2,
            late: commands.3,
            ignore: commands.4,
            refuse_reply: replies.0,
            ignore_reply: replies.1,
            lose_reply: replies.2,
            duplicate_reply: replies.3,
        }
    }
}

prop_compose! {
    fn plans()(
        version in prop_oneof![Just("3.1.1"), Just("5")],
        of_backend in prop_oneof![Just("3.1.1"), Just("5")],
        is_resumed: bool,
        mode in prop_oneof![Just("one-way"), Just("two-way")],
        to in prop_oneof![Just("online"), Just("absent"), Just("all"), Just("waiting")],
        reads: bool,
        qos in 1u8..3,
    ) -> Plan {
        let expiry = match (version, is_resumed) {
            ("5", true) => ", session-expiry: 60s",
            _ => "",
        };
        let rate = if to == "waiting" { "" } else { "rate: 60/s, " };
        let others = if reads { ", { name: ears, kind: receive, filter: \"muster/#\", qos: 1 }" } else { "" };
        let queries = if to == "waiting" { QUERIES } else { "" };
        parsed(&format!("
name: world
platform: {{ backend: {{ filter: \"muster/#\", version: {of_backend}, commands: {{ {rate}mode: {mode}, to: {to} }} }} }}
fleet: [{{ name: pumps, count: {DEVICES}, connect: {{ timeout: 300ms }}, reconnect: {{ min: 20ms, max: 900ms }},
  client: {{ version: {version}, clean-start: {}, keep-alive: 1s{expiry} }}, streams: [
  {{ name: readings, rate: 24/s, qos: {qos} }}, {{ kind: command, timeout: 1s }} {queries}{others} ] }}]
phases: {{ warm-up: 1s, measure: 3s, settle: {{ at-most: 20s, quiet: 500ms }} }}
", !is_resumed))
    }
}

prop_compose! {
    fn behaviours()(
        commands in ways(),
        links in (shares(), shares(), shares(), shares()),
        messages in (shares(), shares(), shares()),
        receive_maximum in prop_oneof![Just(1u16), Just(3), Just(u16::MAX)],
        keeps_sessions: bool,
        answer_ms in prop_oneof![Just(0u64), Just(1), Just(80), Just(400)],
        incidents in incidents(4),
    ) -> Behaviour {
        Behaviour {
            commands,
            late_by: Micros::from_millis(1_700),
            refuse_connect: links.0,
            refuse_session: links.1,
            refuse_subscribe: links.2,
            hold: links.3,
            lose: messages.0,
            duplicate: messages.1,
            reorder: messages.2,
            receive_maximum,
            keeps_sessions,
            answer_after: Micros::from_millis(answer_ms),
            incidents,
            ..Behaviour::default()
        }
    }
}

proptest! {
    #![proptest_config(config())]

    /// Every issued command has exactly one final state on either side, every presence is the one
    /// that the facts of the links give, and every equation of both ledgers holds, whatever a
    /// platform and its network do.
    #[test]
    fn the_ledgers_of_commands_and_subscribers_always_close(
        plan in plans(), behaviour in behaviours(), seed: u64,
    ) {
        let run = checked(play(plan, behaviour, seed));
        let (ledger, platform) = (ledger(&run), run.platform.commands);
        prop_assert!(platform.taken <= ledger.issued);
        let distinct = platform.taken - platform.refused - platform.unheard - platform.lost;
        prop_assert!(ledger.received <= distinct, "{} of {distinct}", ledger.received);
        prop_assert_eq!((ledger.received_foreign, ledger.received_damaged), (0, 0));
    }

    /// While no link ends, what was found is what the model did, to the unit.
    #[test]
    fn what_is_found_is_what_was_done(commands in ways(), is_resumed: bool, seed: u64) {
        let client = if is_resumed { RESUMED } else { CLEAN };
        let behaviour = Behaviour {
            commands,
            late_by: Micros::from_millis(800),
            ..Behaviour::default()
        };
        let run = checked(play(plan("rate: 60/s, mode: two-way, to: all", client, ""), behaviour, seed));
        agrees(&run);
    }
}
