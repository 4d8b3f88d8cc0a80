//! Device profiles.

use muster_platform::board_rest::{DeviceProfile, EntityId, EntityType};
use redb::WriteTransaction;

use super::records;
use super::refusal::{Answer, Refusal};
use super::serial::Serial;
use super::store::Tables;

/// The profile of devices that name none.
const DEFAULT: &str = "default";
/// The provision type of a profile whose devices provision themselves.
const CREATES_DEVICES: &str = "ALLOW_CREATE_NEW_DEVICES";

/// Makes the profile of devices that name none.
pub(super) fn create_default(tables: &WriteTransaction) -> Answer<()> {
    let profile = DeviceProfile {
        default: true,
        ..DeviceProfile::plain(DEFAULT.to_owned())
    };
    save(tables, profile).map(drop)
}

/// Creates a profile, or changes the one whose id it has.
pub(super) fn save(tables: &WriteTransaction, mut profile: DeviceProfile) -> Answer<DeviceProfile> {
    if profile.name.trim().is_empty() {
        return Err(Refusal::bad_request(
            "Device profile name should be specified!",
        ));
    }
    let id = match &profile.id {
        Some(id) => {
            let id = Serial::parse(&id.id)?;
            profile.default = records::get::<DeviceProfile>(tables, id)?.default;
            id
        }
        None => records::next_serial(tables)?,
    };
    let other = records::named::<DeviceProfile>(tables, &profile.name)?;
    if other.is_some_and(|other| other != id) {
        let what = "Device profile with such name already exists!";
        return Err(Refusal::bad_request(what));
    }
    profile.id = Some(entity_id(id));
    records::put(tables, id, &profile)?;
    Ok(profile)
}

/// Forgets a profile that no device has.
pub(super) fn delete(tables: &WriteTransaction, id: &str) -> Answer<()> {
    let id = Serial::parse(id)?;
    let profile = records::get::<DeviceProfile>(tables, id)?;
    if profile.default {
        let what = "Deletion of Default Device Profile is prohibited!";
        return Err(Refusal::bad_request(what));
    }
    if super::devices::any_with_profile(tables, &profile.name)? {
        let what = "The device profile referenced by the devices cannot be deleted!";
        return Err(Refusal::bad_request(what));
    }
    records::remove::<DeviceProfile>(tables, id).map(drop)
}

/// The profile that a device asks for, by its id or its name; a name that nobody has makes one.
pub(super) fn wanted(
    tables: &WriteTransaction,
    id: Option<&EntityId>,
    name: Option<&str>,
) -> Answer<DeviceProfile> {
    if let Some(id) = id {
        let found = Serial::parse(&id.id).and_then(|id| records::get(tables, id));
        return found.map_err(|_| {
            Refusal::bad_request("Device is referencing to non-existent device profile!")
        });
    }
    let name = name.filter(|name| !name.is_empty()).unwrap_or(DEFAULT);
    match records::named::<DeviceProfile>(tables, name)? {
        Some(id) => records::get(tables, id),
        None => save(tables, DeviceProfile::plain(name.to_owned())),
    }
}

/// Returns the profile whose devices provision themselves with that key and secret.
pub(super) fn with_key(
    tables: &impl Tables,
    key: &str,
    secret: &str,
) -> Answer<Option<DeviceProfile>> {
    let mut profiles = records::all::<DeviceProfile>(tables)?.into_iter();
    let found = profiles.find(|(_, profile)| {
        let known = &profile.profile_data["provisionConfiguration"]["provisionDeviceSecret"];
        profile.provision_type.as_deref() == Some(CREATES_DEVICES)
            && profile.provision_device_key.as_deref() == Some(key)
            && known == secret
    });
    Ok(found.map(|(_, profile)| profile))
}

/// Reads a profile.
pub(super) fn read(tables: &impl Tables, id: &str) -> Answer<DeviceProfile> {
    records::get(tables, Serial::parse(id)?)
}

fn entity_id(id: Serial) -> EntityId {
    EntityId::new(EntityType::DeviceProfile, &id.uuid())
}
