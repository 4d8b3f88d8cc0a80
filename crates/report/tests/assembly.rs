//! A report is assembled from what `measure` and `judge` really hand over.

use muster_judge::{
    Consequence, Figure as Judged, GeneratorHealth, Incident, IncidentKind, RuleKind, RuleOutcome,
    RunResult, SetNames, ThreadHealth, ThreadRole, ThreadWindow, Unevaluated, Warning, WarningKind,
};
use muster_measure::{
    Account, Bounds, Calendar, Closing, Cold, FleetTrack, Identity, PublishedPlan, Recorder,
    RecorderPlan, Role, StreamTrack, Summary, WindowDelta,
};
use muster_model::{
    Arrival, Attempt, BackendId, ConsumerId, DeviceId, FleetId, Integrity, LinkEvent, LinkFact,
    LinkId, Listening, MessageId, Micros, Outcome, RunId, StreamId,
};
use muster_report::{Assembly, Figure, Names, Report, RuleResult, hdr, html, text};

const DEVICES: u32 = 2;
const PER_DEVICE: u32 = 20;
const ORIGIN: Micros = Micros::from_secs(1);
const END: Micros = Micros::from_secs(6);
/// Accepted, and never seen by the backend.
const LOST: (u32, u32) = (1, 3);

/// Each device sends every 100 ms for two seconds.
struct Schedule;

impl Calendar for Schedule {
    fn scheduled(&self, _: StreamId, _: DeviceId) -> Option<u32> {
        Some(PER_DEVICE)
    }

    fn warm_up(&self, _: StreamId, _: DeviceId) -> Option<u32> {
        Some(0)
    }

    fn due(&self, _: StreamId, _: DeviceId, seq: u32) -> Option<Micros> {
        Some(due(seq))
    }

    fn nominal(&self, _: StreamId, until: Micros) -> u64 {
        let each = (0..PER_DEVICE).filter(|seq| due(*seq) < until).count() as u64;
        each * u64::from(DEVICES)
    }
}

fn due(seq: u32) -> Micros {
    ORIGIN + Micros::from_millis(100 * u64::from(seq))
}

fn plan() -> RecorderPlan {
    with_cold(Cold::Nothing)
}

fn with_cold(cold: Cold) -> RecorderPlan {
    RecorderPlan {
        run: RunId(0xabcd),
        warm_up: Micros::ZERO,
        measure: Micros::from_secs(2),
        streams: vec![StreamTrack {
            fleet: FleetId(0),
            first_device: DeviceId(0),
            devices: DEVICES,
            most_per_device: PER_DEVICE,
            role: Role::Uplink,
            answers: true,
            closed: None,
            by_order: false,
            deadline: None,
            bounds: Bounds::default(),
        }],
        fleets: vec![FleetTrack {
            first_link: LinkId(0),
            links: DEVICES,
            devices_per_link: 1,
        }],
        backends: 1,
        store: None,
        cold,
        groups: Vec::new(),
        published: PublishedPlan::Nothing,
    }
}

struct Recorded {
    windows: WindowDelta,
    identity: Identity,
    account: Account,
}

fn record(plan: &RecorderPlan) -> Recorded {
    let (mut recorder, mut account) = (Recorder::new(plan.clone()), Account::new(plan));
    for link in (0..DEVICES).map(LinkId) {
        let took = Micros::from_millis(5);
        recorder.opened(link, Micros::ZERO);
        recorder.link(&LinkFact {
            link,
            at: took,
            event: LinkEvent::Connected { took },
            by_us: false,
        });
        account.opened();
        account.connected(link);
        account.open_at_end();
    }
    recorder.start(ORIGIN);
    for seq in 0..PER_DEVICE {
        for device in 0..DEVICES {
            message(&mut recorder, &mut account, (device, seq));
        }
    }
    let windows = recorder.flush(END);
    Recorded {
        windows,
        identity: recorder.finish(),
        account,
    }
}

fn message(recorder: &mut Recorder, account: &mut Account, (device, seq): (u32, u32)) {
    let stream = StreamId(0);
    let id = MessageId {
        run: RunId(0xabcd),
        device: DeviceId(device),
        stream,
        seq,
    };
    let due = due(seq);
    let attempt = Attempt {
        id,
        due,
        taken: Some(due + Micros(10)),
        sent: Some(due + Micros(20)),
        ended: due + Micros(1_020),
        outcome: Outcome::Accepted,
        resent: false,
        own: Micros::ZERO,
    };
    account.scheduled(&id);
    account.sent(&id);
    account.ended(&id, &attempt.outcome, false);
    recorder.attempt(&attempt);
    if (device, seq) == LOST {
        return;
    }
    let (seen, backend) = (due + Micros(2_000), BackendId(0));
    recorder.copies(backend, seen).consumed += 1;
    account.consumed(backend);
    account.read(backend, Some(&id), Integrity::Intact);
    recorder.arrival(&Arrival {
        id: Some(id),
        due: Some(due),
        seen,
        backend,
        consumer: ConsumerId(0),
        integrity: Integrity::Intact,
        own: Micros::ZERO,
    });
}

fn close(plan: &RecorderPlan, recorded: &Recorded, is_killed: bool) -> Summary {
    let whole = !is_killed;
    let closing = Closing {
        plan,
        windows: &recorded.windows,
        identity: whole.then_some(&recorded.identity),
        account: whole.then_some(&recorded.account),
        calendar: whole.then_some(&Schedule),
        timeline: muster_measure::Timeline::starting(ORIGIN, plan.warm_up, plan.measure),
        end: END,
        listening: Listening::until(END),
        devices_until: END,
        has_one_clock: true,
        quiet: Micros::from_secs(1),
        lost_ranges_most: 100,
    };
    closing.summary()
}

fn unsent() -> Warning {
    Warning {
        kind: WarningKind::Unsent,
        scope: "run".to_owned(),
        detail: "much".to_owned(),
    }
}

fn verdict() -> muster_judge::Verdict {
    let rule = |kind, rule: &str, outcome| muster_judge::RuleResult {
        kind,
        rule: rule.to_owned(),
        scope: "run".to_owned(),
        except: Vec::new(),
        sets: SetNames::default(),
        named: false,
        outcome,
        consequence: Consequence::None,
        observed: None,
        bound: None,
        since_s: None,
        evidence: "as seen".to_owned(),
        note: None,
        lower: None,
        reason: None,
    };
    let short = Unevaluated::TooFewWindows {
        have: 2,
        needed: 30,
    };
    muster_judge::Verdict {
        result: RunResult::Fail,
        would_be: None,
        switched_off: Vec::new(),
        causes: Vec::new(),
        delivery_unknown: Vec::new(),
        warnings: vec![unsent()],
        rules: vec![
            muster_judge::RuleResult {
                observed: Some(Judged::Count(1)),
                bound: Some(Judged::Count(0)),
                since_s: Some(1),
                consequence: Consequence::Fails,
                ..rule(RuleKind::Slo, "loss", RuleOutcome::Fail)
            },
            muster_judge::RuleResult {
                observed: Some(Judged::Time(Micros(1_020))),
                bound: Some(Judged::Fraction(0.5)),
                ..rule(RuleKind::Slo, "response p50", RuleOutcome::Pass)
            },
            rule(
                RuleKind::Stability,
                "stable",
                RuleOutcome::NotEvaluated(short),
            ),
        ],
    }
}

fn health() -> GeneratorHealth {
    let window = |s, cpu, waiting| ThreadWindow {
        until: Micros::from_secs(s),
        cpu,
        waiting,
    };
    let thread = |name: &str, role, windows| ThreadHealth {
        name: name.to_owned(),
        role,
        windows,
    };
    GeneratorHealth {
        threads: vec![
            thread(
                "shard 0",
                ThreadRole::Shard,
                vec![window(2, 0.5, Some(0.01))],
            ),
            thread("shard 1", ThreadRole::Shard, vec![window(2, 0.75, None)]),
            thread(
                "consumer 0",
                ThreadRole::Consumer,
                vec![window(2, 0.25, Some(0.02))],
            ),
        ],
        hosts: Vec::new(),
        incidents: vec![Incident {
            kind: IncidentKind::ReceiveDrop,
            from: Micros::from_secs(2),
            until: Micros::from_secs(3),
            count: 7,
            detail: "consumer 0".to_owned(),
        }],
    }
}

fn report(is_killed: bool) -> Report {
    report_of(&plan(), is_killed)
}

fn report_of(plan: &RecorderPlan, is_killed: bool) -> Report {
    let recorded = record(plan);
    assembled(&close(plan, &recorded, is_killed), &recorded.windows)
}

fn assembled(summary: &Summary, windows: &WindowDelta) -> Report {
    let names = Names {
        streams: vec!["meters/readings".to_owned()],
        backends: vec!["northbound".to_owned()],
        device: &|device| format!("meter-{}", device.0),
    };
    let assembly = Assembly {
        facts: Report {
            name: "made".to_owned(),
            run: "0000abcd".to_owned(),
            ..Report::default()
        },
        names: &names,
        summary,
        windows,
        verdict: &verdict(),
        health: &health(),
    };
    assembly.report()
}

#[test]
fn a_run_that_never_measured_has_no_measured_length() {
    let recorded = record(&plan());
    let mut summary = close(&plan(), &recorded, false);
    let measured_s = |summary: &Summary| assembled(summary, &recorded.windows).measured_s;
    assert_eq!(measured_s(&summary), Some(2.0));
    summary.measured_s = 0.0;
    assert_eq!(measured_s(&summary), None);
}

#[test]
fn the_ledger_is_that_of_the_summary() {
    let report = report(false);
    let uplink = &report.ledger.uplink;
    assert_eq!(uplink.equations, []);
    assert_eq!(
        (uplink.scheduled, uplink.sent, uplink.accepted),
        (Some(40), 40, 40)
    );
    assert_eq!(
        (uplink.arrivals.arrived, uplink.arrivals.lost),
        (Some(39), Some(1))
    );
    assert_eq!(uplink.residue, Some(0));
    assert_eq!(report.ledger.by_stream["meters/readings"].ledger.sent, 40);
}

#[test]
fn a_backend_tells_its_table_and_who_is_lost() {
    let report = report(false);
    let backend = &report.ledger.by_backend["northbound"];
    assert_eq!(backend.arrivals, report.ledger.uplink.arrivals);
    let accepted = backend.table["accepted"];
    assert_eq!(
        (accepted.arrived, accepted.absent, accepted.outstanding),
        (39, 1, 0)
    );
    assert_eq!(backend.lost_ids.ranges["meter-1/readings"], [[3, 3]]);
}

#[test]
fn the_lower_times_stand_beside_the_upper_ones() {
    let report = report(false);
    let response = report.latency.response.expect("messages have answers");
    // The generator had no delay of its own.
    assert!(response.percentiles.p50_us.is_some());
    assert_eq!(response.lower, Some(response.percentiles));
    let service = report.latency.service.expect("messages have answers");
    assert_eq!(service.lower, None);
}

#[test]
fn a_reason_for_an_invalid_run_comes_with_its_remedy_and_section() {
    let mut verdict = verdict();
    let rule = &mut verdict.rules[0];
    rule.reason = Some(muster_judge::Reason::Shape);
    let rule = muster_report::Rule::from(&*rule);
    assert_eq!(rule.invalid.reason.as_deref(), Some("shape"));
    let remedy = rule.invalid.remedy.expect("each reason has one");
    assert!(remedy.ends_with("(docs/invalid.md#shape)"), "{remedy}");
}

#[test]
fn the_windows_sum_to_the_ledger() {
    let report = report(false);
    let sum = |of: fn(&muster_report::Window) -> u64| report.windows.iter().map(of).sum::<u64>();
    assert_eq!(sum(|window| window.offered.unwrap_or(0)), 40);
    assert_eq!(sum(|window| window.issued), 40);
    assert_eq!(sum(|window| window.accepted), 40);
    assert_eq!(sum(|window| window.arrived.unwrap_or(0)), 39);
    let heat: u64 = report
        .windows
        .iter()
        .flat_map(|w| &w.response_heat.0)
        .map(|b| b[1])
        .sum();
    assert_eq!(heat, 40);
    assert!(
        report
            .windows
            .iter()
            .any(|window| window.response.p50_us == Some(1_020))
    );
    assert_eq!(
        report.windows.last().and_then(|window| window.links_up),
        Some(2)
    );
}

#[test]
fn a_window_has_the_worst_health_of_its_threads() {
    let report = report(false);
    let window = report
        .windows
        .iter()
        .find(|window| window.t_s == 1.0)
        .unwrap();
    let health = window.generator.unwrap();
    assert_eq!(
        (health.shard_cpu, health.consumer_cpu),
        (Some(0.75), Some(0.25))
    );
    assert_eq!((health.cpu_wait, health.steal), (Some(0.02), None));
}

#[test]
fn the_verdict_keeps_its_figures_and_their_units() {
    let rules = report(false).verdict.rules;
    assert_eq!(rules[0].observed, Some(Figure::Count(1)));
    assert_eq!(rules[0].since_s, Some(1.0));
    assert_eq!(rules[1].observed, Some(Figure::time(1_020)));
    assert_eq!(rules[1].bound, Some(Figure::Fraction { fraction: 0.5 }));
    assert_eq!(rules[2].result, RuleResult::NotEvaluated);
    let summary = text(&report(false), 80);
    assert!(
        summary.contains("stability: not evaluated (needs 30 s)\n"),
        "{summary}"
    );
    assert!(
        summary.contains("loss [run] 1 (at most 0), since 1 s"),
        "{summary}"
    );
}

#[test]
fn an_incident_of_the_generator_is_an_event() {
    let events = report(false).events;
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].t_s, events[0].until_s), (2.0, Some(3.0)));
    assert_eq!(events[0].kind, "receive-drops");
}

#[test]
fn phases_follow_the_timeline() {
    let phases = report(false).phases;
    let told: Vec<(&str, f64, f64)> = phases
        .iter()
        .map(|phase| (phase.phase.as_str(), phase.from_s, phase.until_s))
        .collect();
    assert_eq!(
        told,
        [
            ("connect", 0.0, 1.0),
            ("measure", 1.0, 3.0),
            ("settle", 3.0, 6.0)
        ]
    );
}

#[test]
fn what_a_killed_run_does_not_know_is_null() {
    let report = report(true);
    let uplink = &report.ledger.uplink;
    assert_eq!(
        (uplink.residue, uplink.arrivals.lost, uplink.scheduled),
        (None, None, None)
    );
    assert_eq!(uplink.sent, 40);
    let backend = &report.ledger.by_backend["northbound"];
    assert_eq!(
        (backend.arrivals.consumed, backend.arrivals.lost),
        (Some(39), None)
    );
    assert!(backend.table.is_empty());
    let again = Report::from_json(&report.to_json()).unwrap();
    assert_eq!(again, report);
    assert!(html(&report).contains("</html>"));
}

#[test]
fn cold_messages_stand_beside_the_warm_ones_where_the_scenario_keeps_them_apart() {
    let none = report(false);
    assert_eq!((none.latency_cold, none.latency_warm), (None, None));
    // Ten a device in the first second, ten in the other; the one that is lost is a cold one.
    let apart = report_of(&with_cold(Cold::First(Micros::from_secs(1))), false);
    let of = |table: &Option<muster_report::Latencies>| {
        let table = table.clone().unwrap();
        assert_eq!(table.connect, None, "links are neither cold nor warm");
        let seen = table.end_to_end.unwrap();
        (table.response.unwrap().count, seen.count, seen.censored)
    };
    assert_eq!(of(&apart.latency_cold), (20, 19, 1));
    assert_eq!(of(&apart.latency_warm), (20, 20, 0));
    let stream = &apart.ledger.by_stream["meters/readings"];
    assert_eq!(stream.latency_cold, apart.latency_cold);
    let summary = text(&apart, 80);
    assert!(summary.contains("\n    cold "), "{summary}");
}

#[test]
fn every_latency_of_the_windows_is_in_the_histogram_log() {
    let log = String::from_utf8(hdr(
        &record(&plan()).windows,
        &["meters/readings".to_owned()],
    ))
    .unwrap();
    for leg in ["response", "service", "lateness", "held", "end_to_end"] {
        let tag = format!("Tag=meters/readings:{leg},1.000,1.000,");
        assert!(log.contains(&tag), "{tag}\n{log}");
    }
    insta::assert_snapshot!(log);
}
