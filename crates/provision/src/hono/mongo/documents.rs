//! The documents of a registry's database.

use mongodb::bson::{DateTime, Document, deserialize_from_document, doc, serialize_to_bson};
use serde_json::{Value, json};

use crate::hono::model::{self, Model};
use crate::hono::records::{LoginKind, Record};
use crate::hono::secrets::Unique;
use crate::{ProvisionError, Watch};

/// Writes documents as the registry does: with a version that nothing else has, and the instant of their
/// creation as text.
pub(super) struct Writer {
    unique: Unique,
    created: String,
    model: Model,
}

impl Writer {
    /// # Errors
    /// [`ProvisionError::Random`].
    pub(super) fn new(model: Model) -> Result<Self, ProvisionError> {
        let now_s = DateTime::now().timestamp_millis() / 1_000;
        let now = DateTime::from_millis(now_s * 1_000).try_to_rfc3339_string();
        Ok(Self {
            unique: Unique::new()?,
            // The clock of a machine stands between the years 0 and 9999.
            created: now.unwrap_or_default(),
            model,
        })
    }

    pub(super) fn tenant(&self, tenant: &str) -> Document {
        let content = document(&self.model.tenant());
        doc! {
            "tenant-id": tenant,
            "version": self.unique.next(),
            "created": &self.created,
            "tenant": content,
        }
    }

    pub(super) fn device(&self, record: &Record) -> Document {
        let mut device = self.head(record);
        device.insert("auto-provisioned", false);
        device.insert("auto-provisioning-notification-sent", false);
        device.insert("device", document(&model::device(record)));
        device
    }

    /// The credentials of devices, each a hash that may take long. Between two of them the user may end it.
    ///
    /// # Errors
    /// As [`Writer::credentials`], and [`ProvisionError::Interrupted`].
    pub(super) fn all_credentials(
        &self,
        records: &[&Record],
        watch: &dyn Watch,
    ) -> Result<Vec<Document>, ProvisionError> {
        let all = records.iter().map(|record| match watch.is_over() {
            true => Err(ProvisionError::Interrupted),
            false => self.credentials(record),
        });
        all.collect()
    }

    /// # Errors
    /// [`ProvisionError::Random`] if there is no salt for a password, [`ProvisionError::LongPassword`].
    pub(super) fn credentials(&self, record: &Record) -> Result<Document, ProvisionError> {
        let mut all = self.model.credentials(record)?;
        let each = all.as_array_mut().into_iter().flatten();
        let secrets = each.filter_map(|one| one["secrets"].as_array_mut());
        for secret in secrets.flatten() {
            secret["id"] = json!(self.unique.next());
            secret["enabled"] = json!(true);
        }
        let mut credentials = self.head(record);
        let all = serialize_to_bson(&all).unwrap_or(mongodb::bson::Bson::Array(Vec::new()));
        credentials.insert("credentials", all);
        Ok(credentials)
    }

    fn head(&self, record: &Record) -> Document {
        doc! {
            "tenant-id": &record.tenant,
            "device-id": &record.device,
            "version": self.unique.next(),
            "created": &self.created,
        }
    }
}

/// Finds devices of a tenant by their names.
///
/// A server that cannot look up a list in an index of two fields compares each document with the whole
/// list; the bounds before it spare it most of them. One name it finds by the index.
pub(super) fn named(tenant: &str, names: &[&str]) -> Document {
    if let [name] = names {
        return doc! { "tenant-id": tenant, "device-id": *name };
    }
    let (first, last) = (names.iter().min().copied(), names.iter().max().copied());
    doc! { "tenant-id": tenant, "device-id": { "$gte": first, "$lte": last, "$in": names } }
}

/// JSON of texts, truths, lists and objects is a document.
fn document(value: &Value) -> Document {
    let document = serialize_to_bson(value).ok();
    document
        .and_then(|bson| bson.as_document().cloned())
        .unwrap_or_default()
}

fn value(document: &Document, name: &str) -> Value {
    let part = document
        .get(name)
        .cloned()
        .map(|part| doc! { "part": part });
    let part: Option<Value> = part.and_then(|part| deserialize_from_document(part).ok());
    part.map_or(Value::Null, |mut part| part["part"].take())
}

/// Returns the version, which the registry replaces at each change.
pub(super) fn version(document: &Document) -> &str {
    document.get_str("version").unwrap_or_default()
}

pub(super) fn tenant_difference(found: &Document) -> Option<String> {
    model::tenant_difference(&value(found, "tenant"))
}

/// In what a device that is there, with its credentials, differs.
pub(super) fn difference(
    record: &Record,
    device: &Document,
    credentials: Option<&Document>,
) -> Option<String> {
    device_difference(record, device).or_else(|| match credentials {
        Some(credentials) => credentials_difference(record, credentials),
        None => Some("it has no document of credentials".to_owned()),
    })
}

pub(super) fn device_difference(record: &Record, device: &Document) -> Option<String> {
    model::device_difference(record, &value(device, "device"))
}

/// In what credentials that are there differ.
pub(super) fn credentials_difference(record: &Record, credentials: &Document) -> Option<String> {
    let found = value(credentials, "credentials");
    model::credentials_difference(record, found.as_array().map_or(&[][..], Vec::as_slice))
}

/// Returns true if existing credentials are certainly the wanted ones; of a password only a hash
/// exists.
pub(super) fn are_wanted(record: &Record, credentials: &Document) -> bool {
    match record.login.as_ref().map(|login| login.kind) {
        Some(LoginKind::Psk) => credentials_difference(record, credentials).is_none(),
        Some(LoginKind::Password) => false,
        None => value(credentials, "credentials") == json!([]),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::hono::records::Login;

    fn record(login: Option<Login>) -> Record {
        Record {
            tenant: "t1".to_owned(),
            device: "ns:d-1".to_owned(),
            via: Some("gw".to_owned()),
            login,
        }
    }

    fn psk(secret: &str) -> Option<Login> {
        Some(Login {
            kind: LoginKind::Psk,
            auth_id: "a".to_owned(),
            secret: secret.as_bytes().to_vec(),
        })
    }

    fn names(document: &Document) -> Vec<&str> {
        document.keys().map(String::as_str).collect()
    }

    /// Field by field as the reference has them, and none besides.
    #[test]
    fn documents_have_the_registrys_fields() {
        let writer = Writer::new(Model::default()).expect("random bytes");
        let tenant = writer.tenant("t1");
        assert_eq!(
            names(&tenant),
            ["tenant-id", "version", "created", "tenant"]
        );
        assert_eq!(value(&tenant, "tenant")["enabled"], true);
        let created = tenant.get_str("created").expect("it is text");
        assert_eq!(
            (
                created.len(),
                created.as_bytes()[10],
                created.as_bytes()[19]
            ),
            (20, b'T', b'Z')
        );
        let record = record(psk("hono-secret"));
        let device = writer.device(&record);
        let expected = [
            "tenant-id",
            "device-id",
            "version",
            "created",
            "auto-provisioned",
            "auto-provisioning-notification-sent",
            "device",
        ];
        assert_eq!(names(&device), expected);
        assert_eq!(
            value(&device, "device"),
            json!({ "enabled": true, "via": ["gw"] })
        );
        assert_eq!(value(&device, "auto-provisioned"), json!(false));
        let credentials = writer.credentials(&record).expect("it needs no salt");
        assert_eq!(names(&credentials)[..4], expected[..4]);
        let all = value(&credentials, "credentials");
        let secret = &all[0]["secrets"][0];
        assert_eq!(
            (&all[0]["type"], &all[0]["auth-id"]),
            (&json!("psk"), &json!("a"))
        );
        assert_eq!(
            (&secret["key"], &secret["enabled"]),
            (&json!("aG9uby1zZWNyZXQ="), &json!(true))
        );
        let ids = [&tenant, &device, &credentials].map(|it| value(it, "version"));
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && secret["id"].is_string());
    }

    #[test]
    fn a_device_without_credentials_has_a_document_of_none() {
        let writer = Writer::new(Model::default()).expect("random bytes");
        let record = record(None);
        let credentials = writer.credentials(&record).expect("there are none");
        assert_eq!(value(&credentials, "credentials"), json!([]));
        assert_eq!(
            difference(&record, &writer.device(&record), Some(&credentials)),
            None
        );
        let without = difference(&record, &writer.device(&record), None);
        assert_eq!(
            without.as_deref(),
            Some("it has no document of credentials")
        );
    }

    /// The user ends it after some credentials.
    struct After(AtomicUsize);

    impl Watch for After {
        fn progress(&self, _done: u64, _of: u64) {}

        fn is_over(&self) -> bool {
            let left = self.0.load(Ordering::Relaxed);
            self.0.store(left.saturating_sub(1), Ordering::Relaxed);
            left == 0
        }
    }

    #[test]
    fn the_user_may_end_it_between_two_hashes() {
        let writer = Writer::new(Model::default()).expect("random bytes");
        let record = record(psk("hono-secret"));
        let three = [&record; 3];
        let all = |looks| writer.all_credentials(&three, &After(AtomicUsize::new(looks)));
        assert_eq!(all(3).expect("it is not ended").len(), 3);
        for looks in 0..3 {
            let ended = all(looks);
            assert!(matches!(ended, Err(ProvisionError::Interrupted)), "{looks}");
        }
    }

    #[test]
    fn many_names_are_a_list_within_bounds_and_one_is_itself() {
        let many = named("t1", &["b", "a", "c"]);
        let which = doc! { "$gte": "a", "$lte": "c", "$in": ["b", "a", "c"] };
        assert_eq!(many, doc! { "tenant-id": "t1", "device-id": which });
        let one = named("t1", &["b"]);
        assert_eq!(one, doc! { "tenant-id": "t1", "device-id": "b" });
    }

    #[test]
    fn a_key_that_is_another_is_seen() {
        let writer = Writer::new(Model::default()).expect("random bytes");
        let (wanted, other) = (record(psk("right")), record(psk("wrong")));
        let device = writer.device(&wanted);
        let credentials = writer.credentials(&other).expect("it needs no salt");
        let how = difference(&wanted, &device, Some(&credentials));
        assert_eq!(how.as_deref(), Some("the key of `a` is another"));
    }
}
