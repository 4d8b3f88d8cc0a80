//! Devices and their credentials.

use muster_model::mix;
use muster_platform::board_rest::{
    CREDENTIALS_ACCESS_TOKEN, CredentialsId, Device, DeviceCredentials, DeviceProfile, EntityId,
    EntityType, Page, PageQuery,
};
use redb::WriteTransaction;

use super::refusal::{Answer, Refusal};
use super::serial::{NOBODY, Serial};
use super::store::{Change, TOKENS, Tables};
use super::{attributes, profiles, records, series};

/// Chooses tokens that the server makes.
const TOKEN_SEED: u64 = 0x70ce_4000;
/// Characters of a token that the server makes.
const TOKEN_LENGTH: u64 = 20;

/// Conditions of a new device besides its description.
#[derive(Debug, Clone, Copy)]
pub(super) struct Admission<'a> {
    /// Its access token; none has the server make one.
    pub(super) token: Option<&'a str>,
    /// Devices of the tenant at the most.
    pub(super) limit: Option<u32>,
    pub(super) now_ms: i64,
}

/// Creates a device, or changes the one whose id it has. All checks come before the first change, so that a
/// refused line of a list leaves nothing behind.
pub(super) fn save(tables: &Change, device: Device, admission: &Admission<'_>) -> Answer<Device> {
    if device.name.trim().is_empty() {
        return Err(Refusal::bad_request("Device name should be specified!"));
    }
    let known = device.id.as_ref().map(|id| Serial::parse(&id.id));
    let known = known.transpose()?;
    let other = records::named::<Device>(tables, &device.name)?;
    if other.is_some_and(|other| Some(other) != known) {
        let what = "Device with such name already exists!";
        return Err(Refusal::bad_request(what));
    }
    match known {
        Some(id) => change(tables, id, device),
        None => create(tables, device, admission),
    }
}

fn create(tables: &Change, mut device: Device, admission: &Admission<'_>) -> Answer<Device> {
    if let Some(limit) = admission.limit
        && records::count::<Device>(tables)? >= u64::from(limit)
    {
        return Err(Refusal::device_limit(limit));
    }
    if let Some(token) = admission.token {
        check_token(tables, token, None)?;
    }
    let profile = profile_of(tables, &device)?;
    let id = records::next_serial(tables)?;
    device.id = Some(entity_id(id));
    device.created_time = Some(admission.now_ms);
    device.tenant_id = Some(super::tenant_id());
    let nobody = EntityId::new(EntityType::Customer, NOBODY);
    device.customer_id.get_or_insert(nobody);
    device.device_profile_id = profile.id;
    device.profile = Some(profile.name);
    records::put(tables, id, &device)?;
    let token = admission.token.map_or_else(|| made_up(id), str::to_owned);
    let credentials = DeviceCredentials {
        id: Some(CredentialsId {
            id: records::next_serial(tables)?.uuid(),
        }),
        device_id: entity_id(id),
        credentials_type: CREDENTIALS_ACCESS_TOKEN.to_owned(),
        credentials_id: Some(token.clone()),
        credentials_value: None,
    };
    records::put(tables, id, &credentials)?;
    tables
        .open_table(TOKENS)?
        .insert(token.as_str(), id.get())?;
    tables.note_device(id);
    Ok(device)
}

fn change(tables: &Change, id: Serial, device: Device) -> Answer<Device> {
    let before = records::get::<Device>(tables, id)?;
    let profile = profile_of(tables, &device)?;
    let changed = Device {
        id: before.id,
        created_time: before.created_time,
        tenant_id: before.tenant_id,
        customer_id: device.customer_id.or(before.customer_id),
        device_profile_id: profile.id,
        profile: Some(profile.name),
        ..device
    };
    records::put(tables, id, &changed)?;
    tables.note_device(id);
    Ok(changed)
}

fn profile_of(tables: &WriteTransaction, of: &Device) -> Answer<DeviceProfile> {
    let id = of.device_profile_id.as_ref();
    profiles::wanted(tables, id, of.profile.as_deref())
}

/// Refuses a token that a device other than `owner` has.
fn check_token(tables: &impl Tables, token: &str, owner: Option<Serial>) -> Answer<()> {
    let other = records::owner_of_token(tables, token)?;
    if token.is_empty() || other.is_some_and(|other| Some(other) != owner) {
        let what = "Device credentials are already assigned to another device!";
        return Err(Refusal::bad_request(what));
    }
    Ok(())
}

/// A token that no other device gets.
fn made_up(of: Serial) -> String {
    const CHARACTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let character = |place: u64| {
        let drawn = mix(TOKEN_SEED ^ place, of.get()) % CHARACTERS.len() as u64;
        char::from(CHARACTERS[drawn as usize])
    };
    (0..TOKEN_LENGTH).map(character).collect()
}

/// Reads a device.
pub(super) fn read(tables: &impl Tables, id: &str) -> Answer<Device> {
    records::get(tables, Serial::parse(id)?)
}

/// Returns the device of a name.
pub(super) fn named(tables: &impl Tables, name: &str) -> Answer<Device> {
    let id = records::named::<Device>(tables, name)?;
    records::get(tables, id.ok_or_else(Refusal::not_found)?)
}

pub(super) fn page(tables: &impl Tables, query: &PageQuery) -> Answer<Page<Device>> {
    records::page(tables, query)
}

/// Forgets a device and all that it has stored.
pub(super) fn delete(tables: &Change, id: &str) -> Answer<()> {
    let id = Serial::parse(id)?;
    records::remove::<Device>(tables, id)?;
    let credentials = records::remove::<DeviceCredentials>(tables, id)?;
    if let Some(token) = credentials.credentials_id {
        tables.open_table(TOKENS)?.remove(token.as_str())?;
    }
    tables.note_device(id);
    attributes::delete_all(tables, id)?;
    series::delete_all(tables, id)
}

/// Reads the credentials of a device.
pub(super) fn credentials(tables: &impl Tables, id: &str) -> Answer<DeviceCredentials> {
    records::get(tables, Serial::parse(id)?)
}

/// Replaces the credentials of a device.
pub(super) fn set_credentials(
    tables: &Change,
    credentials: DeviceCredentials,
) -> Answer<DeviceCredentials> {
    let id = Serial::parse(&credentials.device_id.id)?;
    let before = records::get::<DeviceCredentials>(tables, id)?;
    let Some(token) = credentials.credentials_id.as_deref() else {
        let what = "Device credentials id should be specified!";
        return Err(Refusal::bad_request(what));
    };
    check_token(tables, token, Some(id))?;
    let mut tokens = tables.open_table(TOKENS)?;
    if let Some(old) = &before.credentials_id {
        tokens.remove(old.as_str())?;
    }
    tokens.insert(token, id.get())?;
    drop(tokens);
    let changed = DeviceCredentials {
        id: before.id,
        device_id: before.device_id,
        ..credentials
    };
    records::put(tables, id, &changed)?;
    tables.note_device(id);
    Ok(changed)
}

/// Gives a device to a customer that is there.
pub(super) fn assign(tables: &WriteTransaction, id: &str, customer: EntityId) -> Answer<Device> {
    let id = Serial::parse(id)?;
    let device = Device {
        customer_id: Some(customer),
        ..records::get(tables, id)?
    };
    records::put(tables, id, &device)?;
    Ok(device)
}

/// Takes all its devices from a customer.
pub(super) fn take_from(tables: &WriteTransaction, customer: &EntityId) -> Answer<()> {
    for (id, device) in records::all::<Device>(tables)? {
        if device.customer_id.as_ref() == Some(customer) {
            let nobody = EntityId::new(EntityType::Customer, NOBODY);
            let device = Device {
                customer_id: Some(nobody),
                ..device
            };
            records::put(tables, id, &device)?;
        }
    }
    Ok(())
}

/// True if a device has the profile of this name.
pub(super) fn any_with_profile(tables: &impl Tables, name: &str) -> Answer<bool> {
    let devices = records::all::<Device>(tables)?;
    Ok(devices
        .iter()
        .any(|(_, device)| device.profile.as_deref() == Some(name)))
}

fn entity_id(id: Serial) -> EntityId {
    EntityId::new(EntityType::Device, &id.uuid())
}
