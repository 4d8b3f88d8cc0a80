//! Which worlds the tests look at.

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

/// Random worlds of one test run: some seconds of a debug build.
const CASES: u32 = 32;

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
