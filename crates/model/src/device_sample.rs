//! Devices that stand for all of a plan.

use serde::{Deserialize, Serialize};

use crate::{DeviceId, mix};

/// A number of a plan's devices: all of them, or a sample that is spread evenly over the plan.
///
/// A sample of `n` has one device of each of `n` equal parts of the plan, chosen by a seed, so that no regular pattern of
/// devices can hide from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSample {
    devices: u32,
    of: u32,
    seed: u64,
}

impl DeviceSample {
    /// All devices of a plan.
    pub const fn all(of: u32) -> Self {
        Self {
            devices: of,
            of,
            seed: 0,
        }
    }

    /// This number of a plan's devices: at least one if the plan has any, at most all.
    pub fn new(devices: u32, of: u32, seed: u64) -> Self {
        Self {
            devices: devices.max(1).min(of),
            of,
            seed,
        }
    }

    /// Number of its devices.
    pub const fn devices(&self) -> u32 {
        self.devices
    }

    /// Number of devices of the plan.
    pub const fn of(&self) -> u32 {
        self.of
    }

    /// Returns true if these are not all devices of the plan.
    pub const fn is_part(&self) -> bool {
        self.devices < self.of
    }

    /// Returns true if a device is one of these.
    pub fn holds(&self, device: DeviceId) -> bool {
        if device.0 >= self.of {
            return false;
        }
        let (place, of) = (u64::from(device.0), u64::from(self.of));
        let devices = u64::from(self.devices);
        let part = place * devices / of;
        let first_of = |part: u64| (part * of).div_ceil(devices);
        let (first, after) = (first_of(part), first_of(part + 1));
        place == first + mix(self.seed, part) % (after - first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Law: it has exactly its number of devices, and one in each of as many equal parts.
        #[test]
        fn a_sample_is_spread_evenly(of in 1u32..2_000, wanted in 1u32..2_000, seed: u64) {
            let sample = DeviceSample::new(wanted, of, seed);
            let places: Vec<u32> = (0..of + 9).filter(|it| sample.holds(DeviceId(*it))).collect();
            prop_assert_eq!(places.len() as u32, wanted.min(of));
            prop_assert_eq!(sample.devices(), wanted.min(of));
            let part = |place: &u32| u64::from(*place) * u64::from(sample.devices()) / u64::from(of);
            let parts: Vec<u64> = places.iter().map(part).collect();
            let each: Vec<u64> = (0..u64::from(sample.devices())).collect();
            prop_assert_eq!(parts, each);
        }
    }

    #[test]
    fn all_devices_are_no_part() {
        let all = DeviceSample::all(3);
        assert!((0..3).all(|device| all.holds(DeviceId(device))));
        assert!(!all.is_part() && !DeviceSample::new(5, 3, 7).is_part());
        assert!(DeviceSample::new(2, 3, 7).is_part());
    }
}
