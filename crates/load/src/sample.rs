//! Specs of every kind for the laws of schedules and cursors: small ones that can be enumerated,
//! and large ones up to the bounds.

use muster_model::{DeviceId, Micros, Rate};
use proptest::prelude::*;

use crate::shape::{Active, HoldRate, Phase, ScheduleSpec, Shape, Stage};

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![
        Just(0.0),
        (0u32..400).prop_map(f64::from),
        (0.0..400.0f64),
        Just(1.0 / 3.0),
    ]
    .prop_map(|rate| Rate::per_second(rate).unwrap())
}

fn length() -> impl Strategy<Value = Micros> {
    prop_oneof![
        Just(0),
        (0u64..8).prop_map(|s| s * 250_000),
        0u64..2_000_000,
        Just(1u64),
    ]
    .prop_map(Micros)
}

fn stage() -> impl Strategy<Value = Stage> {
    (rate(), length(), length()).prop_map(|(to, over, hold)| Stage { to, over, hold })
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Constant),
        (rate(), length()).prop_map(|(from, over)| Shape::Ramp { from, over }),
        prop::collection::vec(stage(), 1..5).prop_map(Shape::Stages),
        (rate(), length(), length()).prop_map(|(to, at, lasts)| Shape::Spike { to, at, lasts }),
        (rate(), rate(), 1_000u64..3_000_000).prop_map(|(from, to, us)| Shape::Sine {
            from,
            to,
            period: Micros(us)
        }),
        (1u32..5, 50_000u64..2_000_000).prop_map(|(n, us)| Shape::Burst {
            n,
            every: Micros(us)
        }),
        prop::collection::vec(0u64..4_000_000, 0..60).prop_map(|mut instants| {
            instants.sort_unstable();
            Shape::Replay(instants.into_iter().map(Micros).collect())
        }),
    ]
}

fn phase() -> impl Strategy<Value = Phase> {
    prop_oneof![Just(Phase::Even), Just(Phase::Hash), Just(Phase::Together)]
}

/// Changes of the number of active devices, as offsets and as seeds of numbers.
fn changes() -> impl Strategy<Value = Vec<(u64, u32)>> {
    prop::collection::vec((0u64..2_000_000, any::<u32>()), 1..5)
}

/// The phase of a class of this size with these changes, the first of which is at the begin.
fn active(changes: &[(u64, u32)], devices: u32) -> Phase {
    let mut from = Micros::ZERO;
    let changes = changes.iter().map(|(after, number)| {
        let of = Active {
            from,
            devices: 1 + number % devices,
        };
        from += Micros(*after);
        of
    });
    Phase::Active(changes.collect())
}

/// A spec of any shape, phase and kind of arrivals that has a schedule of at most a few thousand
/// messages.
pub(crate) fn any_spec() -> impl Strategy<Value = ScheduleSpec> {
    let class = (
        0u32..1_000,
        1u32..40,
        prop::option::of(0u32..30),
        prop::option::of(changes()),
    );
    let times = (length(), 1u64..4_000_000);
    (
        shape(),
        rate(),
        phase(),
        any::<bool>(),
        class,
        times,
        any::<u64>(),
    )
        .prop_map(|(shape, rate, phase, poisson, class, times, seed)| {
            let fixed = matches!(shape, Shape::Burst { .. } | Shape::Replay(_));
            let changes = class.3.filter(|_| !fixed);
            let phase = changes.map_or(phase, |changes| active(&changes, class.1));
            let is_active = matches!(phase, Phase::Active(_));
            ScheduleSpec {
                shape,
                rate,
                poisson: poisson && !fixed && phase != Phase::Together,
                phase,
                hold_rate: HoldRate::default(),
                first_device: DeviceId(class.0),
                devices: class.1,
                limit_per_device: class.2.filter(|_| !is_active),
                warm_up: times.0,
                measure: Micros(times.1),
                seed,
            }
        })
}

/// A spec with up to 10^12 messages of millions of devices over up to weeks, on awkward lengths and
/// rates.
pub(crate) fn large_spec() -> impl Strategy<Value = ScheduleSpec> {
    let rate = || {
        prop_oneof![
            Just(0.0),
            1e-6..1e-2f64,
            0.0..1e6f64,
            (1u32..1_000_000).prop_map(f64::from)
        ]
        .prop_map(|rate| Rate::per_second(rate).unwrap())
    };
    let length = || prop_oneof![Just(0), 1u64..5_000_000, 1u64..600_000_000_000].prop_map(Micros);
    let stage = (rate(), length(), length()).prop_map(|(to, over, hold)| Stage { to, over, hold });
    let shape = prop_oneof![
        Just(Shape::Constant),
        (rate(), length()).prop_map(|(from, over)| Shape::Ramp { from, over }),
        prop::collection::vec(stage, 1..5).prop_map(Shape::Stages),
        (rate(), length(), length()).prop_map(|(to, at, lasts)| Shape::Spike { to, at, lasts }),
        (rate(), rate(), 1_000u64..90_000_000_000).prop_map(|(from, to, us)| Shape::Sine {
            from,
            to,
            period: Micros(us)
        }),
    ];
    let times = (length(), 1u64..600_000_000_000);
    (
        shape,
        rate(),
        phase(),
        any::<bool>(),
        1u32..5_000_000,
        times,
        any::<u64>(),
    )
        .prop_map(
            |(shape, rate, phase, poisson, devices, times, seed)| ScheduleSpec {
                shape,
                rate,
                poisson: poisson && phase != Phase::Together,
                phase,
                hold_rate: HoldRate::default(),
                first_device: DeviceId(1_000),
                devices,
                limit_per_device: None,
                warm_up: times.0,
                measure: Micros(times.1),
                seed,
            },
        )
}
