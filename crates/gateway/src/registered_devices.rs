//! The devices that the configuration of a gateway names.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::config::KnownDevice;

/// All of them, by their tenants.
#[derive(Debug)]
pub(crate) struct RegisteredDevices(FxHashMap<Box<str>, FxHashSet<Box<str>>>);

impl RegisteredDevices {
    pub(crate) fn new(devices: &[KnownDevice]) -> Self {
        let mut known = FxHashMap::<Box<str>, FxHashSet<Box<str>>>::default();
        for KnownDevice { tenant, device } in devices {
            let of_tenant = known.entry(tenant.as_str().into()).or_default();
            of_tenant.insert(device.as_str().into());
        }
        Self(known)
    }

    pub(crate) fn has(&self, tenant: &str, device: &str) -> bool {
        let of_tenant = self.0.get(tenant);
        of_tenant.is_some_and(|devices| devices.contains(device))
    }
}
