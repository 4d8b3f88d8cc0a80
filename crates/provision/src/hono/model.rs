//! Tenants, devices and credentials as the registry has them, and how they are recognized.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use muster_plan::{PasswordHash, Plan};
use serde_json::{Value, json};

use super::records::{Login, LoginKind, Record};
use super::secrets::{self, Hashed};
use crate::ProvisionError;

/// Choices of a plan that the things of a registry depend on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Model {
    /// The messaging network of its tenants; none is the one that the platform prefers.
    messaging: Option<&'static str>,
    password_hash: PasswordHash,
}

impl Model {
    pub(super) fn new(plan: &Plan, password_hash: PasswordHash) -> Self {
        let mut backends = plan.backends.iter();
        Self {
            messaging: backends.find_map(|backend| backend.kind().hono_network),
            password_hash,
        }
    }

    /// A tenant whose messages go where the backend receives: releases differ in what they choose.
    pub(super) fn tenant(self) -> Value {
        match self.messaging {
            Some(network) => json!({ "enabled": true, "ext": { "messaging-type": network } }),
            None => json!({ "enabled": true }),
        }
    }

    /// The credentials of a device: all that it has, which may be none.
    ///
    /// # Errors
    /// As [`Model::credential`].
    pub(super) fn credentials(self, record: &Record) -> Result<Value, ProvisionError> {
        let all: Result<Vec<Value>, _> =
            record.login.iter().map(|it| self.credential(it)).collect();
        Ok(Value::Array(all?))
    }

    /// One credential.
    ///
    /// # Errors
    /// [`ProvisionError::Random`] if there is no salt for a password, [`ProvisionError::LongPassword`].
    pub(super) fn credential(self, login: &Login) -> Result<Value, ProvisionError> {
        let secret = match login.kind {
            LoginKind::Psk => json!({ "key": BASE64_STANDARD.encode(&login.secret) }),
            LoginKind::Password => self.password(login)?,
        };
        Ok(json!({
            "type": login.kind.word(),
            "auth-id": login.auth_id,
            "enabled": true,
            "secrets": [secret],
        }))
    }

    fn password(self, login: &Login) -> Result<Value, ProvisionError> {
        match self.password_hash {
            PasswordHash::Sha512 => {
                let Hashed { salt, hash } = Hashed::of(&login.secret)?;
                Ok(json!({ "hash-function": Hashed::FUNCTION, "salt": salt, "pwd-hash": hash }))
            }
            PasswordHash::Bcrypt { cost } => {
                let hash = secrets::bcrypt(login, cost)?;
                Ok(json!({ "hash-function": "bcrypt", "pwd-hash": hash }))
            }
        }
    }
}

pub(super) fn tenant_difference(found: &Value) -> Option<String> {
    disabled(found)
}

pub(super) fn device(record: &Record) -> Value {
    match &record.via {
        Some(gateway) => json!({ "enabled": true, "via": [gateway] }),
        None => json!({ "enabled": true }),
    }
}

/// In what a device that is there differs from what is wanted. What it has beyond that is its owner's.
pub(super) fn device_difference(record: &Record, found: &Value) -> Option<String> {
    let has = |gateway: &String| one_or_all(&found["via"]).any(|via| via == gateway);
    let lacks_gateway = record.via.as_ref().filter(|gateway| !has(gateway));
    let lacks_gateway = lacks_gateway.map(|gateway| format!("`via` does not name `{gateway}`"));
    disabled(found).or(lacks_gateway)
}

fn disabled(found: &Value) -> Option<String> {
    (found["enabled"] == false).then(|| "`enabled` is false".to_owned())
}

/// A list, or a value that stands for a list of one.
fn one_or_all(value: &Value) -> impl Iterator<Item = &Value> {
    let all = value.as_array().map_or(&[][..], Vec::as_slice);
    let one = (!value.is_array() && !value.is_null()).then_some(value);
    all.iter().chain(one)
}

/// In what the credentials that are there differ from what is wanted. A secret is compared where it can be
/// seen, which the registry itself never lets anybody.
pub(super) fn credentials_difference(record: &Record, found: &[Value]) -> Option<String> {
    let login = record.login.as_ref()?;
    let (kind, auth_id) = (login.kind.word(), &login.auth_id);
    let Some(one) = credentials_of(login, found) else {
        return Some(format!(
            "it has no credentials of type `{kind}` for `{auth_id}`"
        ));
    };
    let key = BASE64_STANDARD.encode(&login.secret);
    let mut keys = one_or_all(&one["secrets"]).filter_map(|secret| secret["key"].as_str());
    let is_other = login.kind == LoginKind::Psk && keys.next().is_some_and(|found| found != key);
    let other = is_other.then(|| format!("the key of `{auth_id}` is another"));
    disabled(one).or(other)
}

/// True if there are credentials of the wanted type and name, whatever they hold.
pub(super) fn has_credentials(record: &Record, found: &[Value]) -> bool {
    let login = record.login.as_ref();
    login.is_some_and(|login| credentials_of(login, found).is_some())
}

fn credentials_of<'a>(login: &Login, found: &'a [Value]) -> Option<&'a Value> {
    let (kind, auth_id) = (login.kind.word(), login.auth_id.as_str());
    found
        .iter()
        .find(|one| one["type"] == kind && one["auth-id"] == auth_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(via: Option<&str>, kind: Option<LoginKind>) -> Record {
        Record {
            tenant: "t1".to_owned(),
            device: "d-1".to_owned(),
            via: via.map(str::to_owned),
            login: kind.map(|kind| Login {
                kind,
                auth_id: "sensor1".to_owned(),
                secret: b"hono-secret".to_vec(),
            }),
        }
    }

    /// Field by field as the registry's management API names them.
    #[test]
    fn a_pre_shared_key_is_standard_base64() {
        let model = Model::default();
        let psk = model.credentials(&record(None, Some(LoginKind::Psk)));
        let psk = psk.expect("it needs no salt");
        let expected = json!([{
            "type": "psk", "auth-id": "sensor1", "enabled": true,
            "secrets": [{ "key": "aG9uby1zZWNyZXQ=" }],
        }]);
        assert_eq!(psk, expected);
        let none = model.credentials(&record(Some("gw"), None));
        let none = none.expect("there are none");
        assert_eq!(none, json!([]));
    }

    #[test]
    fn a_password_is_told_by_its_salted_hash() {
        let login = record(None, Some(LoginKind::Password))
            .login
            .expect("it has one");
        let told = Model::default().credential(&login);
        let told = told.expect("there is a salt");
        assert_eq!(told["type"], "hashed-password");
        let secret = told["secrets"][0].as_object().expect("an object");
        assert_eq!(secret["hash-function"], "sha-512");
        assert_eq!(secret["pwd-hash"].as_str().map(str::len), Some(88));
        assert_eq!(secret.len(), 3);
        assert!(!told.to_string().contains("hono-secret"));
    }

    #[test]
    fn a_hash_of_bcrypt_has_its_salt_and_cost_within() {
        let login = record(None, Some(LoginKind::Password))
            .login
            .expect("it has one");
        let model = Model {
            password_hash: PasswordHash::Bcrypt { cost: 4 },
            ..Model::default()
        };
        let credential = model.credential(&login).expect("there is a salt");
        let secret = credential["secrets"][0].as_object().expect("an object");
        assert_eq!(
            (secret["hash-function"].as_str(), secret.len()),
            (Some("bcrypt"), 2)
        );
        let hash = secret["pwd-hash"].as_str().expect("a text");
        assert!(hash.starts_with("$2a$04$") && hash.len() == 60, "{hash}");
        assert!(bcrypt::verify("hono-secret", hash).expect("it is a hash"));
        let long = Login {
            secret: vec![b'x'; 72],
            ..login
        };
        let error = model
            .credential(&long)
            .expect_err("it is too long")
            .to_string();
        assert!(
            error.contains("`sensor1`") && error.contains("sha-512"),
            "{error}"
        );
        assert!(!error.contains("xx"), "{error}");
    }

    #[test]
    fn what_differs_is_named_and_what_is_beyond_is_not() {
        let wanted = record(Some("gw"), Some(LoginKind::Psk));
        let differs = |found: Value| device_difference(&wanted, &found);
        assert_eq!(differs(json!({ "via": ["a", "gw"], "ext": {} })), None);
        assert_eq!(differs(json!({ "via": "gw" })), None);
        let (via, off) = (
            json!({ "via": [] }),
            json!({ "enabled": false, "via": ["gw"] }),
        );
        assert_eq!(differs(via).as_deref(), Some("`via` does not name `gw`"));
        assert_eq!(differs(off).as_deref(), Some("`enabled` is false"));
        let differs = |found: &[Value]| credentials_difference(&wanted, found);
        let psk =
            |secret: Value| json!({ "type": "psk", "auth-id": "sensor1", "secrets": [secret] });
        assert_eq!(differs(&[psk(json!({ "id": "1" }))]), None);
        assert_eq!(differs(&[psk(json!({ "key": "aG9uby1zZWNyZXQ=" }))]), None);
        let other = differs(&[psk(json!({ "key": "AAAA" }))]);
        assert_eq!(other.as_deref(), Some("the key of `sensor1` is another"));
        assert!(differs(&[]).is_some());
        assert_eq!(credentials_difference(&record(None, None), &[]), None);
    }
}
