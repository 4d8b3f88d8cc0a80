//! The devices of a fleet by formula: names, tenants, rows of data; no table of devices.

use std::sync::Arc;

use muster_load::{Names, Octets, Scope, Table, Template};
use muster_model::{DeviceId, MessageId, Micros, RunId, StreamId};

/// Inputs of a directory.
#[derive(Debug, Clone)]
pub struct DirectorySpec {
    /// Reproduces random values.
    pub seed: u64,
    /// Wall-clock milliseconds since the Unix epoch at T0.
    pub wall_ms_at_t0: u64,
    /// The fleet's first device.
    pub first_device: DeviceId,
    /// Number of devices.
    pub devices: u32,
    /// `${index}` of its first device.
    pub first_index: u32,
    /// Their names.
    pub names: Names,
    /// `${tenant}`.
    pub tenant: String,
    /// One row of variables a device.
    pub table: Option<Arc<Table>>,
}

/// The devices of a fleet.
#[derive(Debug, Clone)]
pub struct Directory {
    spec: DirectorySpec,
}

impl Directory {
    /// The directory of a fleet.
    pub fn new(spec: DirectorySpec) -> Self {
        Self { spec }
    }

    /// The fleet's first device.
    pub fn first_device(&self) -> DeviceId {
        self.spec.first_device
    }

    /// Returns the number of devices in the fleet.
    pub fn devices(&self) -> u32 {
        self.spec.devices
    }

    /// Wall-clock milliseconds since the Unix epoch at an instant of the run.
    pub fn wall_ms(&self, at: Micros) -> u64 {
        self.spec.wall_ms_at_t0 + at.get() / 1_000
    }

    /// `${tenant}`.
    pub fn tenant(&self) -> &str {
        &self.spec.tenant
    }

    /// Puts a device's name into `out`, which is emptied first.
    pub fn render_name(&self, device: DeviceId, out: &mut String) {
        out.clear();
        self.spec.names.render(self.index(device), out);
    }

    /// The device of that name.
    pub fn device_named(&self, name: &str) -> Option<DeviceId> {
        let place = self
            .spec
            .names
            .index_of(name)?
            .checked_sub(self.spec.first_index)?;
        (place < self.spec.devices).then(|| DeviceId(self.spec.first_device.0 + place))
    }

    /// Puts a text of a device that belongs to no message (user name, will) into `out`, which is
    /// emptied first; `name` is the device's.
    pub fn render_text(&self, template: &Template, device: DeviceId, name: &str, out: &mut String) {
        let mut bytes = std::mem::take(out).into_bytes();
        bytes.clear();
        template.render(
            &self.scope(&no_message(device), Micros::ZERO, name),
            &mut bytes,
        );
        *out = String::from_utf8(bytes).unwrap_or_default();
    }

    /// The same with a text of a message that is due at an instant.
    pub fn render_message_text(
        &self,
        template: &Template,
        (id, due): (&MessageId, Micros),
        name: &str,
        out: &mut String,
    ) {
        let mut bytes = std::mem::take(out).into_bytes();
        bytes.clear();
        template.render(&self.scope(id, due, name), &mut bytes);
        *out = String::from_utf8(bytes).unwrap_or_default();
    }

    /// The same with bytes of a device that need not be text (a key, a password). The plan has checked that each
    /// device's can be decoded.
    pub fn render_octets(&self, octets: &Octets, device: DeviceId, name: &str, out: &mut Vec<u8>) {
        let place = device.0 - self.spec.first_device.0;
        let id = no_message(device);
        let decoded = octets.render(&self.scope(&id, Micros::ZERO, name), place, out);
        debug_assert!(decoded.is_ok(), "a plan's bytes can be decoded");
    }

    /// Returns the inputs of a message's text.
    pub(crate) fn scope<'a>(&'a self, id: &MessageId, due: Micros, name: &'a str) -> Scope<'a> {
        let place = id.device.0 - self.spec.first_device.0;
        Scope {
            seed: self.spec.seed,
            id: *id,
            due,
            wall_ms_at_t0: self.spec.wall_ms_at_t0,
            name,
            index: self.index(id.device),
            tenant: &self.spec.tenant,
            columns: self
                .spec
                .table
                .as_ref()
                .and_then(|table| table.row(place as usize)),
            unique: None,
        }
    }

    fn index(&self, device: DeviceId) -> u32 {
        self.spec.first_index + (device.0 - self.spec.first_device.0)
    }
}

/// Stands for a message where a text belongs to none.
const fn no_message(device: DeviceId) -> MessageId {
    MessageId {
        run: RunId(0),
        device,
        stream: StreamId(0),
        seq: 0,
    }
}

#[cfg(test)]
mod tests {
    use muster_load::NameTable;
    use proptest::prelude::*;

    use super::*;

    fn directory(names: Names, devices: u32) -> Directory {
        Directory::new(DirectorySpec {
            seed: 1,
            wall_ms_at_t0: 0,
            first_device: DeviceId(1_000),
            devices,
            first_index: 7,
            names,
            tenant: String::new(),
            table: None,
        })
    }

    proptest! {
        /// A device's name leads back to it, by a formula or by a table, and a name beyond the fleet to
        /// nobody.
        #[test]
        fn names_lead_back_to_their_devices(
            list in prop::collection::btree_set("[a-zA-Z0-9/\"\u{e4} ]{1,9}", 2..40),
            more in 0u32..3,
        ) {
            let list: Vec<String> = list.into_iter().collect();
            let table = NameTable::build(7, list.len() as u32, |place, out| {
                out.push_str(&list[place as usize]);
            });
            let devices = list.len() as u32 - more.min(1);
            for names in [Names::Listed(Arc::new(table.unwrap())), Names::formula("m-${index:03}").unwrap()] {
                let directory = directory(names.clone(), devices);
                let mut name = String::new();
                for device in (1_000..1_000 + devices).map(DeviceId) {
                    directory.render_name(device, &mut name);
                    prop_assert_eq!(directory.device_named(&name), Some(device));
                }
                name.clear();
                names.render(7 + devices, &mut name);
                prop_assert_eq!(directory.device_named(&name), None);
            }
        }
    }
}
