//! Names of a fleet's links and devices, as a platform knows them.

use muster_conduct::directory;
use muster_model::{DeviceId, LinkId};
use muster_plan::{FleetPlan, Plan};
use muster_platform::Directory;

/// Renders the names of a fleet.
pub(crate) struct FleetNames<'a> {
    fleet: &'a FleetPlan,
    directory: Directory,
}

/// A link: its name, and its first device.
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) first: DeviceId,
}

/// A device and the link that carries it.
pub(crate) struct Device {
    pub(crate) name: String,
    pub(crate) link: Link,
}

impl Device {
    /// Returns true if it is alone on its link, or the one after which the link is called.
    pub(crate) fn is_link(&self) -> bool {
        self.name == self.link.name
    }
}

/// Returns the number of a fleet's links with names: these are gateways.
pub(crate) fn gateways(fleet: &FleetPlan) -> u32 {
    fleet.link_names.as_ref().map_or(0, |_| fleet.links)
}

impl<'a> FleetNames<'a> {
    pub(crate) fn new(plan: &Plan, fleet: &'a FleetPlan) -> Self {
        Self {
            fleet,
            directory: directory(plan, fleet, 0),
        }
    }

    pub(crate) const fn fleet(&self) -> &'a FleetPlan {
        self.fleet
    }

    pub(crate) const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The link at a place of the fleet.
    pub(crate) fn link(&self, place: u32) -> Link {
        let link = LinkId(self.fleet.first_link.0 + place);
        let mut name = String::new();
        self.fleet
            .render_link_name(link, &self.directory, &mut name);
        Link {
            name,
            first: self.fleet.first_device_of(link),
        }
    }

    /// The device at a place of the fleet.
    pub(crate) fn device(&self, place: u32) -> Device {
        let device = DeviceId(self.fleet.first_device.0 + place);
        let link = self.fleet.link_of(device).0 - self.fleet.first_link.0;
        let mut name = String::new();
        self.directory.render_name(device, &mut name);
        Device {
            name,
            link: self.link(link),
        }
    }
}
