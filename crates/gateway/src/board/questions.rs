//! Questions of devices to the platform, answered from the store.

use muster_platform::Question;
use muster_platform::board_rest::{Device, DeviceCredentials};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::attributes::{self, Scope};
use super::refusal::Answer;
use super::serial::Serial;
use super::store::Change;
use super::{Board, chains, devices, flow, profiles, records};

/// A device's request to be made.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProvisionRequest {
    device_name: Option<String>,
    provision_device_key: String,
    provision_device_secret: String,
    /// The access token that it chooses; none has the server make one.
    token: Option<String>,
}

impl Board {
    /// Answers a question of a device; none if nobody answers it. A device that is made is in the store then.
    pub(crate) fn answer(&self, device: &str, question: &Question<'_>) -> Option<Vec<u8>> {
        let answer = match question {
            Question::Values { client, shared } => {
                let values = self.values(device, [*client, *shared]);
                values.unwrap_or_default().into()
            }
            Question::Method(call) => {
                let chain = self.store.read().and_then(|it| chains::root_nodes(&it));
                let is_answered = chain.is_ok_and(|chain| flow::answers_calls(&chain));
                return is_answered.then(|| call.to_vec());
            }
            Question::Device(request) => self.provision(request),
        };
        Some(answer.to_string().into_bytes())
    }

    /// The attributes of a device by the keys of each scope. Without any keys it is all of both scopes.
    fn values(&self, device: &str, keys: [Option<&str>; 2]) -> Answer<Map<String, Value>> {
        let mut values = Map::new();
        let tables = self.store.read()?;
        let Some(id) = records::named::<Device>(&tables, device)? else {
            return Ok(values);
        };
        let are_all = keys == [None, None];
        let scopes = [("client", Scope::Client), ("shared", Scope::Shared)];
        for ((name, scope), keys) in scopes.into_iter().zip(keys) {
            let keys = keys.unwrap_or_default().split(',').collect::<Vec<_>>();
            let keys = (!are_all).then_some(keys.as_slice());
            let found = attributes::read(&tables, (id, scope), keys)?.into_iter();
            let found: Map<_, _> = found.map(|it| (it.key, it.value)).collect();
            if !found.is_empty() {
                values.insert(name.to_owned(), found.into());
            }
        }
        Ok(values)
    }

    /// Makes a device.
    fn provision(&self, request: &[u8]) -> Value {
        let failure = json!({ "status": "FAILURE", "errorMsg": "Failed to provision device!" });
        let Ok(request) = serde_json::from_slice::<ProvisionRequest>(request) else {
            return failure;
        };
        let made = self.store.write(|tables| self.make(tables, request));
        match made {
            Ok(Some(token)) => json!({
                "status": "SUCCESS", "credentialsType": "ACCESS_TOKEN", "credentialsValue": token,
            }),
            Ok(None) => {
                json!({ "status": "NOT_FOUND", "errorMsg": "Provision data was not found!" })
            }
            Err(_) => failure,
        }
    }

    /// Returns the token of the device that is made; none if no profile has its key and secret. If tokens need
    /// not be known, neither need keys.
    fn make(&self, tables: &Change, request: ProvisionRequest) -> Answer<Option<String>> {
        let ProvisionRequest {
            device_name,
            provision_device_key: key,
            provision_device_secret: secret,
            token,
        } = request;
        let profile = profiles::with_key(tables, &key, &secret)?;
        if profile.is_none() && self.only_provisioned {
            return Ok(None);
        }
        let name = match device_name {
            Some(name) => name,
            None => records::next_serial(tables)?.uuid(),
        };
        let device = Device {
            name,
            device_profile_id: profile.and_then(|profile| profile.id),
            ..Device::default()
        };
        let made = devices::save(tables, device, &self.admission(token.as_deref()))?;
        let Some(id) = made.id else { return Ok(None) };
        let credentials: DeviceCredentials = records::get(tables, Serial::parse(&id.id)?)?;
        Ok(credentials.credentials_id)
    }
}
