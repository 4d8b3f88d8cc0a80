//! Reports counted from simulated runs, so that every figure of them fits every other.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use muster_judge::{LinkCause, UnknownDelivery, Warning, WarningKind};
use muster_measure::{Arrivals, Ledger, LinkCounters, SessionCounts, TableRow};
use muster_model::Promise;
use muster_report::{
    BackendAccount, Event, Figure, GeneratorUse, HealthFigure, Latencies, Ledgers, LinkLedger,
    LostIds, Percentiles, Phase, Rates, Recovery, Report, Rule, RuleKind, RuleResult, RunResult,
    Step, StepCommands, StreamAccount, SwitchedOff, TargetUse, Verdict,
};
use serde_json::json;

use crate::rules;
use crate::series::{self, latency};
use crate::simulation::{Message, Setting, State, simulate};

const FAILED: Setting = Setting {
    devices: 10_000,
    rate: 2_000,
    connect_s: 20,
    warm_up_s: 10,
    measure_s: 120,
    capacity: 2_900.0,
    queue: 4_000,
    stall: Some((72, 75)),
    close_links: Some(115),
    lose_each: 6_890,
    starved_us: 0,
};

const INVALID: Setting = Setting {
    devices: 2_000,
    rate: 1_000,
    connect_s: 4,
    warm_up_s: 5,
    measure_s: 60,
    capacity: 6_000.0,
    queue: 4_000,
    stall: None,
    close_links: None,
    lose_each: 0,
    starved_us: 90_000,
};

const PASSED: Setting = Setting {
    devices: 100,
    rate: 1_000,
    connect_s: 1,
    warm_up_s: 1,
    measure_s: 5,
    starved_us: 0,
    ..INVALID
};

/// A target that stalls, loses 37 accepted messages and closes a tenth of the links.
pub(crate) fn failed() -> Report {
    static REPORT: LazyLock<Report> = LazyLock::new(make_failed);
    REPORT.clone()
}

fn make_failed() -> Report {
    let run = Run::new(FAILED);
    let mut report = run.report("meters");
    report.verdict = Verdict {
        result: RunResult::Fail,
        would_be: None,
        causes: Vec::new(),
        warnings: Vec::new(),
        switched_off: Vec::new(),
        delivery_unknown: Vec::new(),
        rules: rules::failed(&report),
    };
    report.events = vec![
        event(
            72.0,
            Some(75.0),
            "no-answer",
            "no answer for 3.0 s; the backlog grew to 3.0 s of traffic",
        ),
        event(
            74.0,
            Some(75.1),
            "rejected",
            "0x97 quota exceeded: 2,004 messages",
        ),
        event(
            115.0,
            Some(121.0),
            "links-down",
            "1,000 of 10,000 links closed by the peer; all back by 121.0 s",
        ),
    ];
    report
}

/// A generator that was starved of its CPU in the second half.
pub(crate) fn invalid() -> Report {
    static REPORT: LazyLock<Report> = LazyLock::new(make_invalid);
    REPORT.clone()
}

fn make_invalid() -> Report {
    let run = Run::new(INVALID);
    let mut report = run.report("starved");
    if let Some(response) = &mut report.latency.response {
        let own = |us: Option<u64>| us.map(|us| us / 2);
        let upper = response.percentiles;
        response.lower = Some(Percentiles {
            p50_us: own(upper.p50_us),
            p90_us: own(upper.p90_us),
            p95_us: own(upper.p95_us),
            p99_us: own(upper.p99_us),
            p99_9_us: own(upper.p99_9_us),
            ..Percentiles::default()
        });
    }
    report.generator.health = vec![HealthFigure {
        figure: "cpu-wait".to_owned(),
        name: "shard 0".to_owned(),
        share: 0.38,
        harmful: 0.1,
    }];
    report.verdict = Verdict {
        result: RunResult::Invalid,
        would_be: Some(RunResult::Fail),
        causes: Vec::new(),
        warnings: Vec::new(),
        switched_off: Vec::new(),
        delivery_unknown: Vec::new(),
        rules: rules::invalid(&report),
    };
    report.events = vec![event(
        39.0,
        Some(69.0),
        "generator-starved",
        "shard 0 waited for a CPU 38 % of the time in 13 of 30 windows",
    )];
    report
}

/// The first run of the README: short, and good.
pub(crate) fn passed() -> Report {
    static REPORT: LazyLock<Report> = LazyLock::new(make_passed);
    REPORT.clone()
}

fn make_passed() -> Report {
    let run = Run::new(PASSED);
    let mut report = run.report("first");
    report.verdict = Verdict {
        result: RunResult::Pass,
        would_be: None,
        causes: Vec::new(),
        warnings: Vec::new(),
        switched_off: Vec::new(),
        delivery_unknown: Vec::new(),
        rules: rules::passed(&report),
    };
    report
}

/// The same by rules that look at nothing that went wrong.
pub(crate) fn unlooked() -> Report {
    let mut report = passed();
    report.name = "unlooked".to_owned();
    let warning = |kind, scope: &str, detail: &str| Warning {
        kind,
        scope: scope.to_owned(),
        detail: detail.to_owned(),
    };
    let unsent = "61 % of what was due was never sent (shed: offline 2,000, queue-full 1,050)";
    report.verdict.switched_off = ["loss", "failure-ratio"]
        .map(|rule| SwitchedOff {
            rule: rule.to_owned(),
            scope: "run".to_owned(),
        })
        .to_vec();
    report.verdict.causes = vec![LinkCause {
        fleet: "meters".to_owned(),
        backend: None,
        count: 1,
        of: 2_000,
        cause: "rejected-0x87".to_owned(),
        see: "fleet.meters.credential".to_owned(),
        text: "1 of 2,000 links refused: not authorized (0x87); see fleet.meters.credential"
            .to_owned(),
    }];
    report.verdict.delivery_unknown = vec![UnknownDelivery {
        scope: "meters/readings".to_owned(),
        promise: Promise::Enqueued,
    }];
    report.verdict.warnings = vec![
        warning(WarningKind::NoLink, "run", "no link was open from 4 s on"),
        warning(WarningKind::Unsent, "meters/readings", unsent),
    ];
    report
}

/// The same with the first second of measuring kept apart as cold.
pub(crate) fn apart() -> Report {
    let run = Run::new(PASSED);
    let border = run.measure_from() + 1_000_000;
    let of_messages = |table: Latencies| Latencies {
        connect: None,
        ..table
    };
    let mut report = passed();
    "apart".clone_into(&mut report.name);
    report.scenario["cold"] = json!({ "first": "1s" });
    report.latency_cold = Some(of_messages(run.latencies(|m| m.due < border)));
    report.latency_warm = Some(of_messages(run.latencies(|m| m.due >= border)));
    report
}

/// The same with a second backend, at which some are lost, some come twice, and some are still to
/// come.
pub(crate) fn two_backends() -> Report {
    let mut report = passed();
    let mut archive = report.ledger.by_backend["northbound"].clone();
    archive.number = 1;
    archive.arrivals = Arrivals {
        arrived: Some(5_900),
        lost: Some(63),
        outstanding: Some(37),
        duplicates: Some(4),
        reordered: Some(2),
        ..archive.arrivals
    };
    let accounts = &mut report.ledger.by_backend;
    accounts.insert("archive of all readings".to_owned(), archive);
    report
}

/// The same in three steps, the last of which is too slow for a rule; the middle one is stated as a change
/// of rate.
pub(crate) fn staircase() -> Report {
    let run = Run::new(PASSED);
    let mut report = passed();
    "staircase".clone_into(&mut report.name);
    let begin = run.measure_from();
    let step = |number, (from_s, until_s): (u64, u64), rate_until| {
        let due = begin + from_s * 1_000_000..begin + until_s * 1_000_000;
        let ledger = run.ledger_of(|m| due.contains(&m.due));
        let per_second = ledger
            .scheduled
            .map(|due| due as f64 / (until_s - from_s) as f64);
        Step {
            step: number,
            from_s: due.start as f64 / 1e6,
            until_s: due.end as f64 / 1e6,
            rate: 1_000.0,
            rate_until,
            is_hold: rate_until.to_bits() == 1_000.0f64.to_bits(),
            result: Some(RunResult::Pass),
            rates: Rates {
                offered: per_second,
                issued: per_second,
                ..run.rates()
            },
            latency: Latencies {
                connect: None,
                ..run.latencies(|m| due.contains(&m.due))
            },
            ledger,
            commands: None,
            disconnects: 0,
            rules: rules::passed(&report),
        }
    };
    let line = Step {
        result: None,
        rules: Vec::new(),
        ..step(2, (2, 3), 1_200.0)
    };
    let mut last = step(3, (3, 5), 1_000.0);
    last.result = Some(RunResult::Fail);
    last.commands = Some(StepCommands {
        scheduled: 100,
        replied: 99,
    });
    last.rules.push(Rule {
        observed: Some(Figure::time(412_000)),
        bound: Some(Figure::time(250_000)),
        ..rules::rule(RuleKind::Slo, "response p99", RuleResult::Fail)
    });
    let steps = vec![step(1, (0, 2), 1_000.0), line, last];
    report.steps = steps;
    report
}

/// Strings that try to break out of their place, in every place that takes a string.
pub(crate) fn hostile() -> Report {
    let evil = "</script><script>alert(1)</script><!--\u{2028}\"'&".to_owned();
    let mut report = passed();
    report.name.clone_from(&evil);
    report.run.clone_from(&evil);
    report.labels.insert(evil.clone(), evil.clone());
    report.scenario = json!({ evil.clone(): evil.clone() });
    report.environment = json!({ "target": evil.clone(), evil.clone(): evil.clone() });
    report.links.disconnects.insert(evil.clone(), 1);
    report
        .ledger
        .uplink
        .rejected_by_code
        .insert(evil.clone(), 1);
    report.events = vec![event(2.0, Some(3.0), &evil, &evil)];
    report.verdict.rules.push(Rule {
        scope: evil.clone(),
        evidence: evil.clone(),
        note: Some(evil.clone()),
        ..rules::rule(RuleKind::Slo, &evil, RuleResult::Fail)
    });
    report
}

/// A result without anything known: what is left of a run killed at its very begin.
pub(crate) fn empty() -> Report {
    Report {
        name: "killed".to_owned(),
        muster: "0.1.0".to_owned(),
        ..Report::default()
    }
}

fn event(t_s: f64, until_s: Option<f64>, kind: &str, detail: &str) -> Event {
    Event {
        recovery: (kind == "links-down").then_some(Recovery { after_s: Some(7.0) }),
        t_s,
        until_s,
        kind: kind.to_owned(),
        detail: detail.to_owned(),
    }
}

/// A simulated run, and the reports that are counted from it.
pub(crate) struct Run {
    pub(crate) setting: Setting,
    pub(crate) messages: Vec<Message>,
}

impl Run {
    fn new(setting: Setting) -> Self {
        Self {
            setting,
            messages: simulate(&setting),
        }
    }

    fn measure_from(&self) -> u64 {
        (self.setting.connect_s + self.setting.warm_up_s) * 1_000_000
    }

    fn measured(&self) -> impl Iterator<Item = &Message> {
        let from = self.measure_from();
        self.messages
            .iter()
            .filter(move |message| message.due >= from)
    }

    fn report(&self, name: &str) -> Report {
        let end = self.measure_from() as f64 / 1e6 + self.setting.measure_s as f64;
        let uplink = self.ledger(0);
        let latency = self.latencies(|_| true);
        let stream = format!("{name}/readings");
        let account = StreamAccount {
            ledger: uplink.clone(),
            rates: self.rates(),
            latency: latency.clone(),
            latency_cold: None,
            latency_warm: None,
            command: None,
            receive: None,
            burst_us: None,
        };
        Report {
            muster: "0.1.0".to_owned(),
            name: name.to_owned(),
            run: "5c1d09aa".to_owned(),
            seed: 1,
            scenario_sha256: Some(
                "9f0c1d6f1e0f0a52c1a7d9be6a3c83f1ad4e8d5b6f7a90c2e3b4d5f60718293a".to_owned(),
            ),
            resolved_sha256: Some(
                "41d7a2c08e5b9f3617c4de90ab82f56d3c1e70f49852b6ad0e37f1c9846d2b55".to_owned(),
            ),
            labels: BTreeMap::from([("build".to_owned(), "4711".to_owned())]),
            started: Some("2026-11-21T02:10:00Z".to_owned()),
            measured_s: Some(self.setting.measure_s as f64),
            phases: self.phases(end),
            scenario: self.scenario(name),
            environment: environment(),
            co_located: Some(true),
            verdict: Verdict::default(),
            ledger: Ledgers {
                measured: self.ledger(self.measure_from()),
                by_stream: BTreeMap::from([(stream, account)]),
                by_backend: BTreeMap::from([("northbound".to_owned(), self.backend(&uplink))]),
                uplink,
                command: None,
                receive: None,
            },
            links: self.links(),
            rates: self.rates(),
            generator: self.generator(&latency),
            latency,
            target: TargetUse {
                cpu: Some(BTreeMap::from([("gateway".to_owned(), 71.4)])),
                memory: Some(BTreeMap::from([("gateway".to_owned(), 61_200_000)])),
                ..TargetUse::default()
            },
            events: Vec::new(),
            windows: series::windows(self, end as u64 + 4),
            published: BTreeMap::new(),
            ..Report::default()
        }
    }

    pub(crate) fn phase(&self, t: u64) -> &'static str {
        let Setting {
            connect_s,
            warm_up_s,
            measure_s,
            ..
        } = self.setting;
        match t {
            t if t < connect_s => "connect",
            t if t < connect_s + warm_up_s => "warm-up",
            t if t < connect_s + warm_up_s + measure_s => "measure",
            _ => "settle",
        }
    }

    fn phases(&self, end: f64) -> Vec<Phase> {
        let (connect, warm_up) = (self.setting.connect_s as f64, self.setting.warm_up_s as f64);
        let phase = |phase: &str, from_s, until_s| Phase {
            phase: phase.to_owned(),
            from_s,
            until_s,
        };
        vec![
            phase("connect", 0.0, connect),
            phase("warm-up", connect, connect + warm_up),
            phase("measure", connect + warm_up, end),
            phase("settle", end, end + 3.2),
        ]
    }

    fn ledger(&self, from: u64) -> Ledger {
        self.ledger_of(|message| message.due >= from)
    }

    fn ledger_of(&self, is_its: impl Fn(&Message) -> bool) -> Ledger {
        let cohort = || self.messages.iter().filter(|message| is_its(message));
        let in_state = |state| cohort().filter(|message| message.state == state).count() as u64;
        let absent = |state| {
            cohort()
                .filter(|m| m.state == state && m.seen.is_none())
                .count() as u64
        };
        let due = cohort().count() as u64;
        let arrived = cohort().filter(|message| message.seen.is_some()).count() as u64;
        let rejected = in_state(State::Rejected);
        Ledger {
            nominal: Some(due),
            scheduled: Some(due),
            omitted: Some(0),
            failed: rejected + in_state(State::Broken),
            sent: due,
            accepted: in_state(State::Accepted),
            rejected,
            rejected_by_code: (rejected > 0)
                .then(|| ("0x97".to_owned(), rejected))
                .into_iter()
                .collect(),
            broken: in_state(State::Broken),
            arrivals: Arrivals {
                consumed: Some(arrived),
                arrived: Some(arrived),
                lost: Some(absent(State::Accepted)),
                lost_unacknowledged: Some(0),
                outstanding: Some(0),
                late: None,
                duplicates: Some(0),
                duplicate_own: Some(0),
                reordered: Some(0),
                corrupted: Some(0),
                foreign: Some(0),
                unstamped: Some(0),
                rejected_but_arrived: Some(0),
                timed_out_but_arrived: Some(0),
                broken_but_arrived: Some(in_state(State::Broken) - absent(State::Broken)),
            },
            residue: Some(0),
            session: SessionCounts {
                bytes_payload: due * 120,
                bytes_wire: due * 156,
                ..SessionCounts::default()
            },
            ..Ledger::default()
        }
    }

    fn backend(&self, uplink: &Ledger) -> BackendAccount {
        let row = |state: State| TableRow {
            arrived: self.count(|m| m.state == state && m.seen.is_some()),
            absent: self.count(|m| m.state == state && m.seen.is_none()),
            outstanding: 0,
            overwritten: 0,
            outside_sample: 0,
        };
        let table = [
            ("accepted", row(State::Accepted)),
            ("rejected", row(State::Rejected)),
            ("timed_out", TableRow::default()),
            ("broken", row(State::Broken)),
            ("unacknowledged", TableRow::default()),
            ("in_flight", TableRow::default()),
        ];
        let mut ranges = BTreeMap::<String, Vec<[u32; 2]>>::new();
        let numbered = self.messages.iter().enumerate();
        for (n, _) in numbered.filter(|(_, m)| m.state == State::Accepted && m.seen.is_none()) {
            let (device, seq) = (
                n as u64 % self.setting.devices,
                n as u64 / self.setting.devices,
            );
            let name = format!("meter-{device:08}/readings");
            ranges
                .entry(name)
                .or_default()
                .push([seq as u32, seq as u32]);
        }
        BackendAccount {
            number: 0,
            is_store: false,
            arrivals: uplink.arrivals,
            table: table
                .into_iter()
                .map(|(state, row)| (state.to_owned(), row))
                .collect(),
            split: Some(0),
            lost_ids: LostIds {
                ranges,
                truncated: false,
            },
            overwritten: None,
            overwritten_ids: LostIds::default(),
            sample: None,
        }
    }

    fn count(&self, is_counted: impl Fn(&Message) -> bool) -> u64 {
        self.messages
            .iter()
            .filter(|message| is_counted(message))
            .count() as u64
    }

    fn rates(&self) -> Rates {
        let from = self.measure_from();
        let until = from + self.setting.measure_s * 1_000_000;
        let rate = |count: u64| Some(count as f64 / self.setting.measure_s as f64);
        let within = |at: u64| (from..until).contains(&at);
        Rates {
            offered: rate(self.count(|m| within(m.due))),
            issued: rate(self.count(|m| within(m.sent))),
            completed: rate(self.count(|m| within(m.ended) && m.state != State::Broken)),
            accepted: rate(self.count(|m| within(m.ended) && m.state == State::Accepted)),
            arrived: rate(self.count(|m| m.seen.is_some_and(within))),
        }
    }

    /// The latencies of the measured messages that are wanted.
    fn latencies(&self, is_wanted: impl Fn(&Message) -> bool) -> Latencies {
        let cohort = || self.measured().filter(|message| is_wanted(message));
        let broken = cohort().filter(|m| m.state == State::Broken).count() as u64;
        let of = |censored, value: fn(&Message) -> Option<u64>| {
            Some(latency(cohort().filter_map(value).collect(), censored))
        };
        Latencies {
            response: of(broken, |m| {
                (m.state != State::Broken).then(|| m.ended - m.due)
            }),
            service: of(broken, |m| {
                (m.state != State::Broken).then(|| m.ended - m.sent)
            }),
            lateness: of(0, |m| Some(m.taken - m.due)),
            held: of(0, |m| Some(m.sent - m.taken)),
            end_to_end: of(0, |m| m.seen.map(|seen| seen - m.due)),
            connect: Some(latency(
                (1..=self.setting.devices)
                    .map(|n| 900 + n * 37 % 4_100)
                    .collect(),
                0,
            )),
            command_request: None,
            command_response: None,
            command_loop: None,
        }
    }

    fn links(&self) -> LinkLedger {
        let lost = self
            .setting
            .close_links
            .map_or(0, |_| self.setting.devices / 10);
        LinkLedger {
            opened: self.setting.devices + lost,
            connected: self.setting.devices + lost,
            connect_failures: BTreeMap::new(),
            disconnects: (lost > 0)
                .then(|| ("closed-by-peer".to_owned(), lost))
                .into_iter()
                .collect(),
            last_sent: BTreeMap::new(),
            open_at_end: Some(self.setting.devices),
            counters: LinkCounters::default().known(),
            wanted: self.setting.devices,
            up_at_start: self.setting.devices,
            ..LinkLedger::default()
        }
    }

    fn generator(&self, latency: &Latencies) -> GeneratorUse {
        let sent = self.messages.len() as f64;
        GeneratorUse {
            cpu_s: Some(sent / 31_000.0),
            shards_cpu_s: Some(sent / 52_000.0),
            consumers_cpu_s: Some(sent / 95_000.0),
            peak_rss_bytes: Some(19_400_000),
            user_bytes_per_device: Some(402),
            lateness_p99_us: latency
                .lateness
                .as_ref()
                .and_then(|leg| leg.percentiles.p99_us),
            messages_per_cpu_s: Some(52_000.0),
            health: Vec::new(),
        }
    }

    fn scenario(&self, name: &str) -> serde_json::Value {
        json!({
            "name": name,
            "seed": 1,
            "platform": { "kind": "gateway", "behaviour": { "capacity": "2900/s", "queue": 4000, "full": "reject", "lose-after-accept": 37, "stall": { "at": "52s", "for": "3s" }, "close-links": { "at": "95s", "share": "10%" } } },
            "fleet": [ {
                "name": name,
                "count": self.setting.devices,
                "id": "meter-${index:08}",
                "connect": { "rate": "500/s", "pending": 128, "timeout": "10s" },
                "streams": [ { "name": "readings", "kind": "telemetry", "rate": format!("{}/s", self.setting.rate), "qos": 1, "topic": "muster/${id}/t", "payload": { "size": 120 } } ]
            } ],
            "phases": { "warm-up": format!("{}s", self.setting.warm_up_s), "measure": format!("{}s", self.setting.measure_s) },
            "slo": { "loss": 0, "failure-ratio": "<= 0.1%", "connected": ">= 99.9%", "disconnects": 0, "response": { "p99": "<= 250ms" }, "end-to-end": { "p99": "<= 5s" } }
        })
    }
}

fn environment() -> serde_json::Value {
    json!({
        "target": "mqtt://127.0.0.1:40817",
        "host": { "kernel": "6.18.2", "cpu": "2 x EPYC guest", "memory_bytes": 25_276_502_016u64 },
        "limits": { "descriptors": 20_000, "ephemeral_ports": 28_232 },
        "muster": { "shards": 1, "consumers": 1, "workers": 1 }
    })
}
