//! Devices by their access tokens, in memory: a link or a request finds its device without reading the store.

use std::sync::{Mutex, PoisonError, RwLock};

use muster_platform::board_rest::{Device, DeviceCredentials};
use rustc_hash::FxHashMap;

use super::records;
use super::refusal::Answer;
use super::serial::Serial;
use super::store::Tables;
use crate::lock::locked;

/// The device that a token belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenOwner {
    /// Its name.
    pub(crate) name: String,
    /// True if it may speak for other devices.
    pub(crate) is_gateway: bool,
}

/// The owners of all tokens in a store.
#[derive(Default)]
pub(super) struct Owners {
    by_token: RwLock<FxHashMap<Box<str>, Owner>>,
    /// Tokens by their devices. Devices are read while this is locked, so that the newest reading stays.
    tokens: Mutex<FxHashMap<Serial, Box<str>>>,
}

struct Owner {
    id: Serial,
    device: TokenOwner,
}

impl Owners {
    /// Returns the device of a token; none if no device has it.
    pub(super) fn find(&self, token: &str) -> Option<TokenOwner> {
        let by_token = self.by_token.read().unwrap_or_else(PoisonError::into_inner);
        Some(by_token.get(token)?.device.clone())
    }

    /// Reads devices again; those that are not there any more are forgotten.
    pub(super) fn refresh<T: Tables>(
        &self,
        devices: &[Serial],
        read: impl FnOnce() -> Answer<T>,
    ) -> Answer<()> {
        let mut tokens = locked(&self.tokens);
        let tables = read()?;
        for id in devices {
            let found = owner(&tables, *id)?;
            // Locked for one device at a time: links that look for theirs wait no longer.
            let mut by_token = self
                .by_token
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(old) = tokens.remove(id)
                && by_token.get(&old).is_some_and(|owner| owner.id == *id)
            {
                by_token.remove(&old);
            }
            if let Some((token, device)) = found {
                let token = token.into_boxed_str();
                tokens.insert(*id, token.clone());
                by_token.insert(token, Owner { id: *id, device });
            }
        }
        Ok(())
    }
}

/// Reads a device and its token.
fn owner(tables: &impl Tables, id: Serial) -> Answer<Option<(String, TokenOwner)>> {
    let Some(device) = records::find::<Device>(tables, id)? else {
        return Ok(None);
    };
    let credentials = records::find::<DeviceCredentials>(tables, id)?;
    let token = credentials.and_then(|credentials| credentials.credentials_id);
    let owner = TokenOwner {
        is_gateway: device.additional_info.is_some_and(|info| info.gateway),
        name: device.name,
    };
    Ok(token.map(|token| (token, owner)))
}

#[cfg(test)]
mod tests {
    use super::super::devices::{self, Admission};
    use super::super::profiles;
    use super::super::store::Store;
    use super::*;

    #[test]
    fn a_token_that_changed_hands_has_its_new_owner_whichever_device_is_read_first() {
        for is_old_first in [true, false] {
            let store = Store::open(None).expect("a store");
            let create = |name: &str, token: &str| {
                let device = Device {
                    name: name.to_owned(),
                    ..Device::default()
                };
                let admission = Admission {
                    token: Some(token),
                    limit: None,
                    now_ms: 0,
                };
                let made = store.write(|change| devices::save(change, device, &admission));
                let id = made.expect("it is new").id.expect("an id").id;
                Serial::parse(&id).expect("it is ours")
            };
            let filled = store.write(|change| {
                records::found_tenant(change)?;
                profiles::create_default(change)
            });
            filled.expect("a tenant");
            let owners = Owners::default();
            let old = create("old", "shared");
            owners.refresh(&[old], || store.read()).expect("it is read");
            let credentials = DeviceCredentials {
                credentials_id: Some("other".to_owned()),
                ..records::get(&store.read().expect("tables"), old).expect("credentials")
            };
            let changed = store.write(|change| devices::set_credentials(change, credentials));
            changed.expect("it is free");
            let new = create("new", "shared");
            let order = if is_old_first { [old, new] } else { [new, old] };
            for id in order {
                owners.refresh(&[id], || store.read()).expect("it is read");
            }
            let name = |token: &str| owners.find(token).map(|owner| owner.name);
            assert_eq!(name("shared").as_deref(), Some("new"));
            assert_eq!(name("other").as_deref(), Some("old"));
        }
    }
}
