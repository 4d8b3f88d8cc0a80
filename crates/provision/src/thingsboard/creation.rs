//! Creation of devices by single calls, and the check of those that are there.

use muster_platform::board_rest::{
    ASSIGN_DEVICE, AccessTokenQuery, CREATE_DEVICE, CREDENTIALS_ACCESS_TOKEN, Device, DeviceInfo,
    FIND_DEVICE, READ_CREDENTIALS,
};
use serde_json::Map;

use super::failures::is_bad_request;
use super::groups::created_id;
use super::records::Record;
use super::session::Asked;
use super::{DEVICE, ThingsBoard, id_of};
use crate::journal::Standing;
use crate::rest::{Answer, Begun};
use crate::work::Work;
use crate::{Journal, ProvisionError, Watch};

/// The profile of devices for which the scenario names none.
const DEFAULT_PROFILE: &str = "default";
/// The text that stands before the marker.
const MADE_BY: &str = "Created by Muster, ";

/// Devices that are being created.
pub(super) struct Creation<'a> {
    pub(super) board: &'a ThingsBoard,
    pub(super) journal: &'a Journal,
    pub(super) work: &'a Work<'a>,
    /// Mark of the devices of this run.
    pub(super) marker: String,
    /// Ids of the customers, among whom the devices are distributed; empty if there are none.
    pub(super) customers: Vec<String>,
}

impl Creation<'_> {
    /// Creates a device unless it is there.
    pub(super) fn ensure(&self, record: &Record) -> Result<(), ProvisionError> {
        // Most are missing: one call creates them.
        let is_created = if self.journal.standing(DEVICE, &record.name).is_none() {
            self.create(record)?
        } else {
            match self.board.find_device(&record.name, self.work.watch)? {
                Some(found) => self.take(record, &found)?,
                None => self.create(record)?,
            }
        };
        self.done(is_created);
        Ok(())
    }

    /// Notes that a device is there now; whether this run has created it.
    pub(super) fn done(&self, is_created: bool) {
        let created = u64::from(is_created);
        self.work
            .done(|summary| summary.ensured(DEVICE, 1, created));
    }

    /// Checks a device that is there; true if it is one whose creation a killed process of ours had begun.
    pub(super) fn take(&self, record: &Record, found: &Device) -> Result<bool, ProvisionError> {
        let name = record.name.as_str();
        let id = id_of(found.id.as_ref(), FIND_DEVICE.route())?;
        let is_ours = match self.journal.standing(DEVICE, name) {
            Some(Standing::Creating(Some(marker))) if is_marked(found, &marker) => {
                self.own(record, &id)?;
                true
            }
            Some(Standing::Creating(_)) => {
                self.journal.refused(DEVICE, name)?;
                false
            }
            Some(Standing::Created(ours)) if ours != id => {
                self.journal.removed(DEVICE, name)?;
                false
            }
            Some(Standing::Created(_)) | None => false,
        };
        match self.board.difference(record, found, self.work.watch)? {
            Some(how) => Err(ProvisionError::Differs {
                call: format!("GET {}{}", self.board.session.base(), FIND_DEVICE.route()),
                kind: DEVICE,
                key: name.to_owned(),
                how,
            }),
            None => Ok(is_ours),
        }
    }

    /// Takes over a device that this run has created, and gives it to its customer.
    pub(super) fn own(&self, record: &Record, id: &str) -> Result<(), ProvisionError> {
        self.journal.created(DEVICE, &record.name, id)?;
        let Some(count) = (self.customers.len() as u64).checked_sub(1) else {
            return Ok(());
        };
        let customer = &self.customers[(record.place % (count + 1)) as usize];
        let asked = Asked::at([customer.as_str(), id]);
        let session = &self.board.session;
        session
            .call(&ASSIGN_DEVICE, &asked, self.work.watch)
            .map(|_| ())
    }

    /// Creates a device; true if this call created it.
    fn create(&self, record: &Record) -> Result<bool, ProvisionError> {
        let begun = Begun {
            journal: self.journal,
            kind: DEVICE,
            key: &record.name,
            id: Some(&self.marker),
        };
        let answer = begun.record(|| self.post(record))?;
        if is_bad_request(&answer)
            && let Some(found) = self.board.find_device(&record.name, self.work.watch)?
        {
            return self.take(record, &found);
        }
        let id = created_id(&answer)?;
        self.own(record, &id)?;
        Ok(true)
    }

    fn post(&self, record: &Record) -> Result<Answer, ProvisionError> {
        let mut others = Map::new();
        others.insert("description".to_owned(), description(&self.marker).into());
        let device = Device {
            name: record.name.clone(),
            profile: Some(self.board.profile().to_owned()),
            additional_info: Some(DeviceInfo {
                gateway: record.is_gateway,
                others,
            }),
            ..Device::default()
        };
        let token = record.token.as_ref().map(|token| token.expose().clone());
        let asked = Asked {
            path: [],
            query: AccessTokenQuery {
                access_token: token,
            },
            body: device,
        };
        self.board
            .session
            .answer(&CREATE_DEVICE, &asked, self.work.watch)
    }
}

impl ThingsBoard {
    /// Name of the profile of new devices.
    pub(super) fn profile(&self) -> &str {
        self.settings.profile.as_deref().unwrap_or(DEFAULT_PROFILE)
    }

    /// In what a device differs from the wanted one; none if it serves.
    pub(super) fn difference(
        &self,
        record: &Record,
        found: &Device,
        watch: &dyn Watch,
    ) -> Result<Option<String>, ProvisionError> {
        let info = found.additional_info.as_ref();
        if record.is_gateway && !info.is_some_and(|info| info.gateway) {
            let how = "`additionalInfo.gateway` is not true, so that it is no gateway";
            return Ok(Some(how.to_owned()));
        }
        if let (Some(wanted), Some(profile)) = (&self.settings.profile, &found.profile)
            && wanted != profile
        {
            return Ok(Some(format!(
                "its profile is `{profile}`, wanted `{wanted}`"
            )));
        }
        let Some(token) = &record.token else {
            return Ok(None);
        };
        let id = id_of(found.id.as_ref(), FIND_DEVICE.route())?;
        let credentials = self
            .session
            .call(&READ_CREDENTIALS, &Asked::at([&id]), watch)?;
        if credentials.credentials_type != CREDENTIALS_ACCESS_TOKEN {
            let kind = credentials.credentials_type;
            let how = format!("its credentials are of type {kind}, wanted an access token");
            return Ok(Some(how));
        }
        let is_same = credentials.credentials_id.as_ref() == Some(token.expose());
        Ok((!is_same).then(|| "its access token is another one".to_owned()))
    }
}

/// The description of a device of this run.
pub(super) fn description(marker: &str) -> String {
    format!("{MADE_BY}{marker}")
}

/// Returns true if a device has the description of that run.
pub(super) fn is_marked(device: &Device, marker: &str) -> bool {
    let info = device.additional_info.as_ref();
    let text = info.and_then(|info| info.others.get("description"));
    text.and_then(|text| text.as_str()) == Some(&description(marker))
}
