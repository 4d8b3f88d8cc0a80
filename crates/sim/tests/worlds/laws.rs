//! Laws that hold for every run, and the building blocks of the tests of runs.

use muster_measure::Ledger;
use muster_model::Micros;
use muster_plan::Plan;
use muster_scenario::{NoFiles, Overrides, Source, parse};
use muster_sim::{Incident, Run, What};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Random worlds of one test run: some seconds of a debug build.
const CASES: u32 = 32;

/// The plan of a scenario's text.
pub(crate) fn parsed(text: &str) -> Plan {
    let source = Source {
        name: "world.yaml",
        text,
    };
    parse(source, &Overrides::default(), &NoFiles)
        .unwrap_or_else(|problems| panic!("{problems}\n{text}"))
}

/// The seed that `just sim` was given, if any.
fn asked() -> Option<u64> {
    std::env::var("MUSTER_SIM_SEED").ok()?.parse().ok()
}

/// Without a seed the single worlds are the same every time.
pub(crate) fn seed() -> u64 {
    asked().unwrap_or(1)
}

/// Without a seed the random worlds are fresh ones; `PROPTEST_CASES` says how many.
pub(crate) fn config() -> ProptestConfig {
    let is_counted = std::env::var("PROPTEST_CASES").is_ok();
    let mut config = ProptestConfig {
        failure_persistence: None,
        rng_seed: asked().map_or(RngSeed::Random, RngSeed::Fixed),
        ..ProptestConfig::default()
    };
    if !is_counted {
        config.cases = CASES;
    }
    config
}

/// The laws that hold for every run.
pub(crate) fn checked(run: Run) -> Run {
    let uplink = &run.summary.run.uplink;
    assert_eq!(run.summary.residue, Some(0), "{:#?}", uplink.equations);
    assert_eq!(
        (run.finals.repeated, run.finals.absurd),
        (0, 0),
        "one final state each: {:?}",
        run.finals
    );
    assert_eq!(
        Some(run.finals.messages),
        uplink.scheduled,
        "none without one"
    );
    run
}

pub(crate) fn uplink(run: &Run) -> &Ledger {
    &run.summary.run.uplink
}

pub(crate) fn incident(at_ms: u64, what: What) -> Vec<Incident> {
    vec![Incident {
        at: Micros::from_millis(at_ms),
        share: 1.0,
        what,
    }]
}

pub(crate) fn shares() -> impl Strategy<Value = f64> {
    prop_oneof![3 => Just(0.0), 1 => Just(0.02), 1 => Just(0.3)]
}

prop_compose! {
    pub(crate) fn incidents(below: usize)(
        all in prop::collection::vec((0u64..6_000, 0.1f64..1.0, 0u8..4), 0..below)
    ) -> Vec<Incident> {
        all.into_iter().map(|(at_ms, share, what)| Incident {
            at: Micros::from_millis(at_ms),
            share,
            what: match what {
                0 => What::Fin,
                1 => What::Reset,
                2 => What::HalfOpen,
                _ => What::Goodbye(0x8b),
            },
        }).collect()
    }
}
