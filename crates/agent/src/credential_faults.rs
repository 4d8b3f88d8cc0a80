//! Certificates and keys of devices that cannot be used, with their places in the scenario.

use std::fmt;

use muster_model::figure;
use muster_plan::{Credential, FleetPlan};
use muster_transport::TransportError;

/// Faults of a scenario that are listed; the others are counted.
const LISTED_MAX: usize = 20;

/// Certificates and keys that cannot be used: all that a scenario names, each fault once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CredentialFaults {
    listed: Vec<Fault>,
    /// Devices with further faults.
    unlisted: u64,
}

/// One fault, and the devices of a fleet that have it.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    fleet: String,
    /// The place of the fleet's paths in the scenario.
    place: String,
    /// The first of the devices.
    device: String,
    others: u64,
    error: String,
}

impl CredentialFaults {
    /// Adds the fault of a device.
    pub(crate) fn add(&mut self, fleet: &FleetPlan, device: String, error: &TransportError) {
        let error = error.to_string();
        let mut listed = self.listed.iter_mut();
        let known = listed.find(|it| it.fleet == fleet.name && it.error == error);
        if let Some(fault) = known {
            fault.others += 1;
        } else if self.listed.len() == LISTED_MAX {
            self.unlisted += 1;
        } else {
            let place = match &fleet.credential {
                Credential::Certificate { place, .. } => place.clone(),
                Credential::None
                | Credential::Password { .. }
                | Credential::Token { .. }
                | Credential::Psk { .. } => String::new(),
            };
            self.listed.push(Fault {
                fleet: fleet.name.clone(),
                place,
                device,
                others: 0,
                error,
            });
        }
    }

    /// The faults as an error, if there are any.
    pub(crate) fn into_result(self) -> Result<(), Self> {
        match self.listed.is_empty() {
            true => Ok(()),
            false => Err(self),
        }
    }
}

impl std::error::Error for CredentialFaults {}

impl fmt::Display for CredentialFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.listed.iter().enumerate() {
            let line = if at == 0 { "" } else { "\n" };
            write!(f, "{line}{fault}")?;
        }
        match self.unlisted {
            0 => Ok(()),
            1 => write!(f, "\nand 1 more device"),
            more => write!(f, "\nand {} more devices", figure::count(more)),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            fleet,
            place,
            device,
            others,
            error,
        } = self;
        write!(f, "device `{device}`")?;
        if *others > 0 {
            write!(f, " and {} more", figure::count(*others))?;
        }
        write!(
            f,
            ": {error}; see `credential` of fleet `{fleet}` ({place})"
        )
    }
}
