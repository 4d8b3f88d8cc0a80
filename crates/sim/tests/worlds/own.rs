//! Split of a time into the generator's own part and the platform's.

use muster_measure::{Latency, Leg, ScopeSummary};
use muster_model::{BackendId, Micros};
use muster_plan::Plan;
use muster_sim::{Behaviour, Run, Stall, Whose, Why, World};
use proptest::prelude::*;

use crate::laws::{checked, config, parsed, seed, uplink};

const BOUND: Micros = Micros::from_millis(100);
const LONG: Micros = Micros::from_millis(300);

/// 120 messages a second of 12 devices; all is answered and delivered within a millisecond.
fn plan(fleet: &str, stream: &str) -> Plan {
    parsed(&format!(
        "
name: own
fleet: [{{ name: meters, count: 12, {fleet} streams: [{{ name: r, rate: 120/s, qos: 1, payload: {{ size: 64 }}, {stream} }}] }}]
phases: {{ warm-up: 1s, measure: 4s, settle: {{ at-most: 30s, quiet: 500ms }} }}
slo: {{ response: {{ p99: '<= 100ms' }}, end-to-end: {{ p99: '<= 100ms' }} }}
"
    ))
}

fn run(stream: &str, behaviour: Behaviour, stalls: &[Stall]) -> Run {
    let mut world = World::new(plan("", stream), behaviour, seed()).expect("it can be placed");
    stalls.iter().for_each(|stall| world.stall(*stall));
    checked(world.run().expect("time goes on"))
}

fn stall(whose: Whose, why: Why, at_ms: u64) -> Stall {
    Stall {
        at: Micros::from_millis(at_ms),
        lasts: LONG,
        whose,
        why,
    }
}

fn above(scope: &ScopeSummary, latency: Latency) -> (u64, u64) {
    let backend = (latency == Latency::EndToEnd).then_some(BackendId(0));
    let above = scope.above(latency, BOUND, backend);
    let above = above.expect("the bound is registered");
    (above.above, above.above_lower)
}

fn largest(run: &Run) -> (u64, u64) {
    let table = &run.summary.run.latency;
    let views = [&table.response, &table.response_lower];
    let [upper, lower] = views.map(|view| view.as_ref().expect("there are answers").known.max_us);
    (upper, lower)
}

/// A shard that does not run for 300 ms, for want of a CPU or in a long turn of its own, takes what
/// is due late and reads answers late: the upper times are high, the lower ones as without it.
#[test]
fn a_stalled_shard_raises_upper_times_alone() {
    let (_, undisturbed) = largest(&run("", Behaviour::default(), &[]));
    for why in [Why::CpuWait, Why::LongTurn] {
        let stalls = [stall(Whose::Devices, why, 4_000)];
        let run = run("", Behaviour::default(), &stalls);
        let (upper, lower) = largest(&run);
        assert!(upper >= 299_000, "{why:?}: {upper}");
        assert!(lower <= undisturbed, "{why:?}: {lower} of {undisturbed}");
        let (above, above_lower) = above(&run.summary.run, Latency::Response);
        assert!(above >= 20, "{why:?}: {above}");
        assert_eq!(above_lower, 0, "{why:?}");
    }
}

/// Time that the platform takes is in both times.
#[test]
fn a_slow_platform_raises_both_times() {
    let slow = Behaviour {
        answer_after: LONG,
        ..Behaviour::default()
    };
    let run = run("", slow, &[]);
    let (upper, lower) = largest(&run);
    assert!(lower >= LONG.get() && upper >= lower, "{lower} {upper}");
    assert_eq!(above(&run.summary.run, Latency::Response), (480, 480));
}

/// A closed loop leaves messages out by the platform's answers, or by our own stall: the sums tell them apart.
#[test]
fn the_time_that_slowed_a_closed_loop_is_the_platforms_or_our_own() {
    let of = |answer_after, stalls: &[Stall]| {
        let behaviour = Behaviour {
            answer_after,
            ..Behaviour::default()
        };
        let scope = run("loop: closed", behaviour, stalls).summary.run;
        assert!(scope.measured.omitted > Some(0), "messages are left out");
        scope.times
    };
    let platform = of(LONG, &[]);
    assert!(
        platform.taken_us > 100 * LONG.get() && platform.own_us == 0,
        "{platform:?}"
    );
    let ours = of(
        Behaviour::default().answer_after,
        &[stall(Whose::Devices, Why::CpuWait, 4_000)],
    );
    assert!(
        ours.taken_us > 0 && ours.own_us * 10 > ours.taken_us * 9,
        "{ours:?}"
    );
}

/// The lower time keeps the platform's part, even if both are slow.
#[test]
fn a_stall_beside_a_slow_platform_hides_nothing_of_it() {
    let slow = Behaviour {
        answer_after: LONG,
        ..Behaviour::default()
    };
    // All that a stall may excuse is due from one answer's time before it to a second after it.
    let run = run("", slow, &[stall(Whose::Devices, Why::CpuWait, 3_500)]);
    let (above, above_lower) = above(&run.summary.run, Latency::Response);
    assert_eq!(above, 480);
    assert!((240..480).contains(&above_lower), "{above_lower}");
}

/// Consumers that do not run see copies late; by the lower time these came in time.
#[test]
fn a_stalled_consumer_raises_upper_times_of_deliveries_alone() {
    for why in [Why::CpuWait, Why::LongTurn] {
        let stalls = [stall(Whose::Consumers, why, 4_000)];
        let run = run("", Behaviour::default(), &stalls);
        let (seen, seen_lower) = above(&run.summary.run, Latency::EndToEnd);
        assert!(seen >= 20, "{why:?}: {seen}");
        assert_eq!(seen_lower, 0, "{why:?}");
        assert_eq!(
            above(&run.summary.run, Latency::Response),
            (0, 0),
            "{why:?}"
        );
        let seconds = run.summary.run.delivery(BOUND, BackendId(0));
        let seconds = &seconds.expect("the bound is registered").seconds;
        assert_eq!(seconds.iter().map(|of| of.above).sum::<u64>(), seen);
        assert!(seconds.iter().all(|of| of.lateness_max_us == 0));
    }
}

/// A second whose messages went out late says so.
#[test]
fn the_largest_lateness_of_each_second_is_known() {
    let run = run(
        "",
        Behaviour::default(),
        &[stall(Whose::Devices, Why::CpuWait, 4_000)],
    );
    let late = run.summary.run.series.iter();
    let late: Vec<u32> = late
        .filter(|row| row.lateness_max_us.is_some_and(|us| us >= 250_000))
        .map(|row| row.second)
        .collect();
    assert_eq!(late, [4]);
    let delivery = run.summary.run.delivery(BOUND, BackendId(0));
    let seconds = &delivery.expect("the bound is registered").seconds;
    let late = seconds.iter().filter(|of| of.lateness_max_us >= 250_000);
    assert_eq!(late.map(|of| of.second).collect::<Vec<_>>(), [4]);
}

/// Answers that came while the shard did not run are read before time-outs are decided, however long
/// ago those were over.
#[test]
fn what_has_come_is_read_before_time_outs_are_decided() {
    let stalls = [Stall {
        lasts: Micros::from_secs(3),
        ..stall(Whose::Devices, Why::CpuWait, 3_000)
    }];
    let slow = Behaviour {
        answer_after: Micros::from_millis(200),
        ..Behaviour::default()
    };
    let run = run("timeout: 1s", slow, &stalls);
    assert_eq!(uplink(&run).timed_out, 0);
    assert_eq!(uplink(&run).accepted, 600);
}

/// Tries to connect that get no answer count against the platform, unless we did not look for half
/// of their time.
#[test]
fn a_connect_that_timed_out_by_us_is_counted_apart() {
    let connect = "connect: { timeout: 1s, rate: 1000/s }, reconnect: { min: 1s, max: 1s },";
    let links = |stalls: &[Stall]| {
        let deaf = Behaviour {
            deaf: 1.0,
            ..Behaviour::default()
        };
        let mut world = World::new(plan(connect, ""), deaf, seed()).expect("it can be placed");
        stalls.iter().for_each(|stall| world.stall(*stall));
        world.run().expect("time goes on").summary.run.links
    };
    assert_eq!(links(&[]).down_by_us_at_start, 0);
    let timed_out = links(&[]).connect_failures["timed-out"];
    assert!(timed_out >= 12, "{timed_out}");
    for why in [Why::CpuWait, Why::LongTurn] {
        let short = Stall {
            lasts: Micros::from_millis(400),
            ..stall(Whose::Devices, why, 100)
        };
        assert_eq!(links(&[short]).down_by_us_at_start, 0, "{why:?}");
    }
    let long = Stall {
        lasts: Micros::from_millis(700),
        ..stall(Whose::Devices, Why::CpuWait, 100)
    };
    assert_eq!(links(&[long]).down_by_us_at_start, 12);
    let late = Stall {
        lasts: Micros::from_millis(700),
        ..stall(Whose::Devices, Why::LongTurn, 900)
    };
    assert_eq!(links(&[late]).down_by_us_at_start, 12);
}

/// Queries and replies to commands have two times as messages have.
#[test]
fn a_stalled_shard_raises_upper_times_of_queries_and_replies_alone() {
    let commands = || {
        parsed(
            "
name: own
platform: { backend: { filter: 'muster/#', commands: { rate: 60/s, mode: two-way } } }
fleet: [{ name: pumps, count: 12, streams: [
  { name: readings, rate: 24/s }, { kind: command, timeout: 2s },
  { name: asks, kind: command-query, every: 100ms, ttd: 50ms } ] }]
phases: { warm-up: 1s, measure: 3s, settle: { at-most: 30s, quiet: 1s } }
slo: { command-request: { p99: '<= 100ms' }, command-response: { p99: '<= 100ms' } }
",
        )
    };
    let run = |stalls: &[Stall]| {
        let slow = Behaviour {
            answer_after: Micros::from_millis(30),
            ..Behaviour::default()
        };
        let world = World::new(commands(), slow, seed());
        let mut world = world.expect("it can be placed");
        stalls.iter().for_each(|stall| world.stall(*stall));
        let run = world.run().expect("time goes on");
        assert_eq!(run.summary.residue, Some(0));
        run.summary.run.command.expect("the plan has commands")
    };
    for why in [Why::CpuWait, Why::LongTurn] {
        let (alone, stalled) = (run(&[]), run(&[stall(Whose::Devices, why, 3_000)]));
        for leg in [Leg::Request, Leg::Response] {
            let bounds = &stalled.legs[leg.index()];
            let (above, above_lower) = (&bounds.above[&BOUND], &bounds.above_lower[&BOUND]);
            assert!(*above > 0, "{why:?} {leg:?}");
            assert_eq!(*above_lower, 0, "{why:?} {leg:?}");
            assert_eq!(alone.legs[leg.index()].above[&BOUND], 0);
        }
        assert!(stalled.measured.request.known.max_us >= 200_000, "{why:?}");
        assert!(stalled.measured.request_lower.known.max_us <= alone.measured.request.known.max_us);
        assert!(
            stalled.measured.response_lower.known.max_us <= alone.measured.response.known.max_us
        );
    }
}

proptest! {
    #![proptest_config(config())]

    /// No lower time exceeds the upper one, and the ledger closes, whatever stalls. If a platform
    /// answers each message by itself, no lower time exceeds the platform's own.
    #[test]
    fn lower_times_are_never_the_generators(
        stalls in prop::collection::vec((1_000u64..5_000, 1u64..600, any::<bool>(), any::<bool>()), 0..6),
        answer_ms in 0u64..200,
    ) {
        let stalls: Vec<Stall> = stalls.into_iter().map(|(at, lasts, is_wait, is_shard)| Stall {
            at: Micros::from_millis(at),
            lasts: Micros::from_millis(lasts),
            whose: if is_shard { Whose::Devices } else { Whose::Consumers },
            why: if is_wait { Why::CpuWait } else { Why::LongTurn },
        }).collect();
        let behaviour = || Behaviour {
            answer_after: Micros::from_millis(answer_ms),
            ..Behaviour::default()
        };
        let (_, alone) = largest(&run("", behaviour(), &[]));
        let run = run("", behaviour(), &stalls);
        let (upper, lower) = largest(&run);
        prop_assert!(lower <= upper);
        prop_assert!(lower <= alone, "{lower} of {alone}");
        for latency in [Latency::Response, Latency::EndToEnd] {
            let (above, above_lower) = above(&run.summary.run, latency);
            prop_assert!(above_lower <= above);
        }
    }
}
