//! What goes again: documents of the version that we chose, and none that others have put in their place since.

use mongodb::bson::{Document, doc};

use super::{CREDENTIALS, DEVICES, Mongo, TENANTS, documents};
use crate::hono::records::key;
use crate::hono::registry::{DEVICE, TENANT};
use crate::journal::Standing;
use crate::work::Work;
use crate::{Journal, ProvisionError, Tally};

/// Why a thing stays.
const OTHER: &str =
    "its version is not the one that was written, so others have made or changed it";

/// Devices of one tenant.
pub(super) type Devices = Vec<(String, Standing)>;

/// Whether a document that is there is the one that the record tells of. Records of before do not have
/// its version: there what is known to have been created is ours by its name, and nothing else is.
fn is_ours(key: &str, standing: &Standing, found: &Document) -> bool {
    match standing {
        Standing::Created(id) if id == key => true,
        Standing::Created(id) | Standing::Creating(Some(id)) => documents::version(found) == id,
        Standing::Creating(None) => false,
    }
}

/// The version under which a thing whose creation was begun is there as ours.
pub(super) fn begun(journal: &Journal, kind: &str, key: &str, found: &Document) -> Option<String> {
    let standing = journal.standing(kind, key)?;
    let is_begun = journal.is_begun(kind, key) && is_ours(key, &standing, found);
    is_begun.then(|| documents::version(found).to_owned())
}

/// Things of a record by what is there of them, each by its name among all tenants.
#[derive(Default)]
struct Sorted {
    ours: Vec<String>,
    /// Of ours.
    versions: Vec<String>,
    others: Vec<String>,
    /// Not there, and known to have been.
    gone: Vec<String>,
    /// Not there, and perhaps never.
    never: Vec<String>,
}

impl Sorted {
    fn sort(&mut self, key: String, standing: &Standing, found: Option<&Document>) {
        match (found, standing) {
            (Some(found), _) if is_ours(&key, standing, found) => {
                self.ours.push(key);
                self.versions.push(documents::version(found).to_owned());
            }
            (Some(_), _) => self.others.push(key),
            (None, Standing::Created(_)) => self.gone.push(key),
            (None, Standing::Creating(_)) => self.never.push(key),
        }
    }

    /// Notes that of ours so many went.
    fn settle(
        &self,
        (kind, removed): (&'static str, u64),
        journal: &Journal,
        work: &Work<'_>,
    ) -> Result<(), ProvisionError> {
        let Self {
            ours,
            others,
            gone,
            never,
            ..
        } = self;
        journal.refused_all(kind, others)?;
        for keys in [ours, gone, never] {
            journal.removed_all(kind, keys)?;
        }
        let all = ours.len() + others.len() + gone.len() + never.len();
        work.done_all(all as u64, |tally: &mut Tally| {
            tally.cleared(kind, (ours.len() + gone.len()) as u64, removed);
            others.iter().for_each(|key| tally.left(kind, key, OTHER));
        });
        Ok(())
    }
}

impl Mongo {
    /// Removes devices of one tenant that we created, or had begun to, and whatever credentials they
    /// have.
    pub(super) fn end(
        &self,
        (tenant, devices): (&str, &Devices),
        journal: &Journal,
        work: &Work<'_>,
    ) -> Result<(), ProvisionError> {
        let names: Vec<&str> = devices.iter().map(|(name, _)| name.as_str()).collect();
        let all = doc! { "tenant-id": tenant, "device-id": { "$in": names } };
        let found = self.found(DEVICES, &all, work.watch)?;
        let mut sorted = Sorted::default();
        for (name, standing) in devices {
            sorted.sort(key(tenant, name), standing, found.get(name));
        }
        let mut removed = 0;
        if !sorted.ours.is_empty() {
            let ours = sorted.ours.iter().filter_map(|key| key.split_once('/'));
            let ours: Vec<&str> = ours.map(|(_, name)| name).collect();
            let mut filter = doc! { "tenant-id": tenant, "device-id": { "$in": ours } };
            self.delete(CREDENTIALS, filter.clone(), work)?;
            filter.insert("version", doc! { "$in": sorted.versions.clone() });
            removed = self.delete(DEVICES, filter, work)?;
        }
        sorted.settle((DEVICE, removed), journal, work)
    }

    /// Removes a tenant that we created, or had begun to.
    pub(super) fn end_tenant(
        &self,
        (tenant, standing): (String, Standing),
        journal: &Journal,
        work: &Work<'_>,
    ) -> Result<(), ProvisionError> {
        let found = self.tenant(&tenant, work.watch)?;
        let mut sorted = Sorted::default();
        sorted.sort(tenant.clone(), &standing, found.as_ref());
        let mut removed = 0;
        if let Some(version) = sorted.versions.first() {
            let one = doc! { "tenant-id": &tenant, "version": version };
            removed = self.delete(TENANTS, one, work)?;
        }
        sorted.settle((TENANT, removed), journal, work)
    }

    fn delete(
        &self,
        collection: &str,
        filter: Document,
        work: &Work<'_>,
    ) -> Result<u64, ProvisionError> {
        self.pacer.wait(work.watch)?;
        let removed = self.collection(collection).delete_many(filter).run();
        let removed = removed.map_err(|error| self.failed("delete", collection, &error))?;
        Ok(removed.deleted_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(id: &str) -> String {
        id.to_owned()
    }

    /// What the record has, what is there, and what comes of it.
    #[test]
    fn only_what_has_our_version_goes() {
        let (ours, other) = (doc! { "version": "v1" }, doc! { "version": "v2" });
        let mut sorted = Sorted::default();
        let (created, begun) = (
            Standing::Created(text("v1")),
            Standing::Creating(Some(text("v1"))),
        );
        sorted.sort(text("t/created"), &created, Some(&ours));
        sorted.sort(text("t/begun"), &begun, Some(&ours));
        sorted.sort(text("t/made again"), &created, Some(&other));
        sorted.sort(text("t/made by others"), &begun, Some(&other));
        sorted.sort(text("t/without"), &created, Some(&doc! {}));
        sorted.sort(text("t/taken away"), &created, None);
        sorted.sort(text("t/never made"), &begun, None);
        assert_eq!(sorted.ours, ["t/created", "t/begun"]);
        assert_eq!(sorted.versions, ["v1", "v1"]);
        let others = ["t/made again", "t/made by others", "t/without"];
        assert_eq!(sorted.others, others);
        assert_eq!(sorted.gone, ["t/taken away"]);
        assert_eq!(sorted.never, ["t/never made"]);
    }

    /// They have a created thing's name where newer ones have its version.
    #[test]
    fn of_records_of_before_only_what_was_created_for_certain_goes() {
        let found = doc! { "version": "v1" };
        let mut sorted = Sorted::default();
        sorted.sort(text("t/a"), &Standing::Created(text("t/a")), Some(&found));
        sorted.sort(text("t/b"), &Standing::Creating(None), Some(&found));
        assert_eq!(
            (sorted.ours, sorted.versions),
            (vec![text("t/a")], vec![text("v1")])
        );
        assert_eq!(sorted.others, ["t/b"]);
    }
}
