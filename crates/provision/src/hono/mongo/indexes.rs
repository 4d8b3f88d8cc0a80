//! The indexes that a registry makes in its database at its start.

use mongodb::IndexModel;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::{Error, ErrorKind};
use mongodb::options::IndexOptions;

use super::outcome::DUPLICATE_KEY;
use super::{CREDENTIALS, DEVICES, Mongo, TENANTS};
use crate::{ProvisionError, Watch};

/// An index by its fields, all of them rising.
struct Index {
    collection: &'static str,
    fields: &'static [&'static str],
    /// The registry's name for it, if that is not the database's own: an index of another name is another to it.
    name: Option<&'static str>,
    is_unique: bool,
    /// The fields that a document must have to be in it.
    with: &'static [&'static str],
}

const INDEXES: [Index; 9] = [
    Index::unique(TENANTS, &["tenant-id"]),
    Index::unique(TENANTS, &["tenant.alias"]).with(&["tenant.alias"]),
    Index::plain(TENANTS, &TRUST).with(&["tenant.trusted-ca"]),
    Index::unique(DEVICES, &["tenant-id", "device-id"]),
    Index::plain(DEVICES, &["tenant-id", "device.via"])
        .named("tenant_id.via_exists")
        .with(&["device.via"]),
    Index::plain(DEVICES, &["tenant-id", "device-id", "created"])
        .named("tenant_id.members_of_gateway_groups")
        .with(&["device.memberOf"]),
    Index::unique(CREDENTIALS, &["tenant-id", "device-id"]),
    Index::unique(CREDENTIALS, &["tenant-id", AUTH_ID, TYPE]).with(&[AUTH_ID, TYPE]),
    Index::plain(CREDENTIALS, &[AUTH_ID, TYPE]).named("credentials_type_and_auth_id"),
];

const AUTH_ID: &str = "credentials.auth-id";
const TYPE: &str = "credentials.type";
const TRUST: [&str; 3] = [
    "tenant-id",
    "tenant.trust-anchor-group",
    "tenant.trusted-ca.subject-dn",
];

impl Index {
    const fn plain(collection: &'static str, fields: &'static [&'static str]) -> Self {
        Self {
            collection,
            fields,
            name: None,
            is_unique: false,
            with: &[],
        }
    }

    const fn unique(collection: &'static str, fields: &'static [&'static str]) -> Self {
        Self {
            is_unique: true,
            ..Self::plain(collection, fields)
        }
    }

    const fn named(self, name: &'static str) -> Self {
        Self {
            name: Some(name),
            ..self
        }
    }

    const fn with(self, with: &'static [&'static str]) -> Self {
        Self { with, ..self }
    }

    /// Returns true if writing relies on it: with it the database reports that another process was
    /// faster.
    const fn is_needed(&self) -> bool {
        self.is_unique && self.with.is_empty()
    }

    /// Returns true if nothing is written when its creation failed by that error: duplicate names
    /// already exist.
    fn is_decisive(&self, error: &Error) -> bool {
        let refused =
            matches!(&*error.kind, ErrorKind::Command(refused) if refused.code != DUPLICATE_KEY);
        self.is_needed() || !refused
    }

    fn filter(&self) -> Option<Document> {
        let is_there = |field: &&str| ((*field).to_owned(), Bson::from(doc! { "$exists": true }));
        (!self.with.is_empty()).then(|| self.with.iter().map(is_there).collect())
    }

    fn model(&self) -> IndexModel {
        let rising = |field: &&str| ((*field).to_owned(), Bson::Int32(1));
        let options = IndexOptions::builder()
            .name(self.name.map(str::to_owned))
            .unique(self.is_unique.then_some(true))
            .partial_filter_expression(self.filter())
            .build();
        IndexModel::builder()
            .keys(self.fields.iter().map(rising).collect::<Document>())
            .options(options)
            .build()
    }
}

impl Mongo {
    /// Makes the indexes that are not there. A server may refuse those that no write relies on, such as one
    /// that has no filters, or where another release of the registry made them otherwise: the run reports it.
    pub(super) fn index(&self, watch: &dyn Watch) -> Result<(), ProvisionError> {
        for index in &INDEXES {
            self.pacer.wait(watch)?;
            let indexed = self.collection(index.collection);
            let Err(error) = self.run(indexed.create_index(index.model()).into_future()) else {
                continue;
            };
            let failed = self.failed("index", index.collection, &error);
            if index.is_decisive(&error) {
                return Err(failed);
            }
            watch.remark(&format!(
                "written without the registry's index of {}: {}",
                index.fields.join(", "),
                error.kind
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::deserialize_from_document;
    use mongodb::error::CommandError;

    use super::*;

    /// An index as it goes to the database, in words.
    fn described(index: &Index) -> String {
        let model = index.model();
        let options = model.options.unwrap_or_default();
        let fields = model.keys.iter().map(|(field, order)| {
            assert_eq!(*order, Bson::Int32(1), "{field} rises");
            field.as_str()
        });
        let mut described = format!(
            "{}: {}",
            index.collection,
            fields.collect::<Vec<_>>().join(", ")
        );
        described.extend(options.unique.filter(|unique| *unique).map(|_| "; unique"));
        described.extend(options.name.map(|name| format!("; named {name}")));
        for (field, condition) in &options.partial_filter_expression.unwrap_or_default() {
            assert_eq!(*condition, Bson::from(doc! { "$exists": true }), "{field}");
            described.extend(["; with ", field.as_str()]);
        }
        described
    }

    #[test]
    fn the_indexes_are_those_of_the_registry() {
        let made: Vec<String> = INDEXES.iter().map(described).collect();
        let expected = [
            "tenants: tenant-id; unique",
            "tenants: tenant.alias; unique; with tenant.alias",
            "tenants: tenant-id, tenant.trust-anchor-group, tenant.trusted-ca.subject-dn; with tenant.trusted-ca",
            "devices: tenant-id, device-id; unique",
            "devices: tenant-id, device.via; named tenant_id.via_exists; with device.via",
            "devices: tenant-id, device-id, created; named tenant_id.members_of_gateway_groups; with device.memberOf",
            "credentials: tenant-id, device-id; unique",
            "credentials: tenant-id, credentials.auth-id, credentials.type; unique; with credentials.auth-id; with credentials.type",
            "credentials: credentials.auth-id, credentials.type; named credentials_type_and_auth_id",
        ];
        assert_eq!(made, expected);
    }

    fn refusal(code: i32) -> Error {
        let refused = doc! { "code": code, "codeName": "Told", "errmsg": "no" };
        let refused: CommandError =
            deserialize_from_document(refused).expect("the driver reads it");
        Error::from(ErrorKind::Command(refused))
    }

    #[test]
    fn only_what_no_write_relies_on_may_be_refused() {
        let needed = INDEXES
            .iter()
            .filter(|index| index.is_decisive(&refusal(85)));
        let needed: Vec<_> = needed.map(|index| index.fields).collect();
        let of_device: &[&str] = &["tenant-id", "device-id"];
        assert_eq!(needed, [&["tenant-id"][..], of_device, of_device]);
        let doubled = refusal(DUPLICATE_KEY);
        let gone = Error::custom("the connection is gone");
        for index in &INDEXES {
            assert!(
                index.is_decisive(&doubled),
                "{:?} is there twice",
                index.fields
            );
            assert!(index.is_decisive(&gone), "{:?}", index.fields);
        }
    }
}
