//! Surroundings of the actuators that are tested.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use muster_actuator::Site;
use muster_model::Micros;

/// A generous limit: only a hang reaches it.
pub(crate) const LONG: Micros = Micros::from_secs(60);

pub(crate) static NEVER: AtomicBool = AtomicBool::new(false);

pub(crate) fn site(folder: &Path) -> Site {
    Site {
        devices: None,
        program: "muster".into(),
        folder: folder.to_owned(),
        actuator: "one".to_owned(),
    }
}
