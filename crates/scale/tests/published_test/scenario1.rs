//! The parameters of a published run.

use muster_model::Micros;
use muster_scale::{Level, PublishedSpec};

/// The parameters of `Scenario1`, up to the units and instances of `most`.
pub(crate) const fn scenario1(most: Level) -> PublishedSpec {
    PublishedSpec {
        failure_ratio: 0.02,
        window: Micros::from_secs(180),
        offset: Micros::from_secs(60),
        stable_within: Micros::from_secs(900),
        improve: Micros::from_secs(300),
        least: Level {
            units: 1,
            instances: 1,
        },
        most,
    }
}
