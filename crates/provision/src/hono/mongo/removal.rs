//! What goes again: documents of the version that we chose, and none that others have put in their place since.

use std::collections::BTreeSet;

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
    /// Not there, after a call of ours to delete it of which no answer was seen.
    went: Vec<String>,
    /// Not there, and known to have been.
    gone: Vec<String>,
    /// Not there, and perhaps never.
    never: Vec<String>,
}

impl Sorted {
    fn sort(
        &mut self,
        key: String,
        standing: &Standing,
        (found, tried): (Option<&Document>, &BTreeSet<String>),
    ) {
        match (found, standing) {
            (Some(found), _) if is_ours(&key, standing, found) => {
                self.ours.push(key);
                self.versions.push(documents::version(found).to_owned());
            }
            (Some(_), _) => self.others.push(key),
            (None, _) if tried.contains(&key) => self.went.push(key),
            (None, Standing::Created(_)) => self.gone.push(key),
            (None, Standing::Creating(_)) => self.never.push(key),
        }
    }

    /// Takes what is still there out of ours: others have changed it since it was looked for.
    fn take_back(&mut self, stays: impl Fn(&str) -> bool) {
        let (others, ours) = std::mem::take(&mut self.ours)
            .into_iter()
            .partition(|key| stays(key));
        self.ours = ours;
        self.others.extend::<Vec<String>>(others);
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
            went,
            others,
            gone,
            never,
            ..
        } = self;
        journal.refused_all(kind, others)?;
        for keys in [ours, went, gone, never] {
            journal.removed_all(kind, keys)?;
        }
        let cleared = (ours.len() + went.len() + gone.len()) as u64;
        let all = cleared + (others.len() + never.len()) as u64;
        work.done_all(all, |tally: &mut Tally| {
            tally.cleared(kind, cleared, removed + went.len() as u64);
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
        let mut tried = BTreeSet::new();
        self.parts.each(devices, |part| {
            let (sorted, removed) = self.end_part((tenant, part), &mut tried, work)?;
            sorted.settle((DEVICE, removed), journal, work)
        })
    }

    /// What became of a part, and how many of ours a call deleted. Those are among `tried` from then on.
    fn end_part(
        &self,
        (tenant, part): (&str, &[(String, Standing)]),
        tried: &mut BTreeSet<String>,
        work: &Work<'_>,
    ) -> Result<(Sorted, u64), ProvisionError> {
        let names: Vec<&str> = part.iter().map(|(name, _)| name.as_str()).collect();
        let found = self.found(DEVICES, &documents::named(tenant, &names), work.watch)?;
        let mut sorted = Sorted::default();
        for (name, standing) in part {
            sorted.sort(key(tenant, name), standing, (found.get(name), tried));
        }
        if sorted.ours.is_empty() {
            return Ok((sorted, 0));
        }
        let ours: Vec<&str> = sorted.ours.iter().map(|key| name_of(key)).collect();
        let named = documents::named(tenant, &ours);
        tried.extend(sorted.ours.iter().cloned());
        self.delete(CREDENTIALS, named.clone(), work)?;
        let mut of_version = named.clone();
        of_version.insert("version", doc! { "$in": sorted.versions.clone() });
        let removed = self.delete(DEVICES, of_version, work)?;
        if removed < sorted.ours.len() as u64 {
            let still = self.found(DEVICES, &named, work.watch)?;
            sorted.take_back(|key| still.contains_key(name_of(key)));
        }
        Ok((sorted, removed))
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
        sorted.sort(
            tenant.clone(),
            &standing,
            (found.as_ref(), &BTreeSet::new()),
        );
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
        let from = self.collection(collection);
        let removed = self.run(from.delete_many(filter).into_future());
        let removed = removed.map_err(|error| self.failed("delete", collection, &error))?;
        Ok(removed.deleted_count)
    }
}

/// The name of a device within its tenant.
fn name_of(key: &str) -> &str {
    key.split_once('/').map_or(key, |(_, name)| name)
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
        let (mut sorted, untried) = (Sorted::default(), BTreeSet::new());
        let (created, begun) = (
            Standing::Created(text("v1")),
            Standing::Creating(Some(text("v1"))),
        );
        sorted.sort(text("t/created"), &created, (Some(&ours), &untried));
        sorted.sort(text("t/begun"), &begun, (Some(&ours), &untried));
        sorted.sort(text("t/made again"), &created, (Some(&other), &untried));
        sorted.sort(text("t/made by others"), &begun, (Some(&other), &untried));
        sorted.sort(text("t/without"), &created, (Some(&doc! {}), &untried));
        sorted.sort(text("t/taken away"), &created, (None, &untried));
        sorted.sort(text("t/never made"), &begun, (None, &untried));
        assert_eq!(sorted.ours, ["t/created", "t/begun"]);
        assert_eq!(sorted.versions, ["v1", "v1"]);
        let others = ["t/made again", "t/made by others", "t/without"];
        assert_eq!(sorted.others, others);
        assert_eq!(sorted.gone, ["t/taken away"]);
        assert_eq!(sorted.never, ["t/never made"]);
    }

    #[test]
    fn what_goes_after_a_call_that_was_late_went_by_it_and_what_changes_meanwhile_stays() {
        let (created, ours) = (Standing::Created(text("v1")), doc! { "version": "v1" });
        let tried = BTreeSet::from([text("t/a")]);
        let mut sorted = Sorted::default();
        sorted.sort(text("t/a"), &created, (None, &tried));
        for key in ["t/b", "t/c"] {
            sorted.sort(text(key), &created, (Some(&ours), &tried));
        }
        sorted.take_back(|key| name_of(key) == "c");
        assert_eq!(
            (sorted.went, sorted.ours, sorted.others),
            (vec![text("t/a")], vec![text("t/b")], vec![text("t/c")])
        );
        assert_eq!(sorted.gone, [""; 0]);
    }

    /// They have a created thing's name where newer ones have its version.
    #[test]
    fn of_records_of_before_only_what_was_created_for_certain_goes() {
        let found = doc! { "version": "v1" };
        let (mut sorted, untried) = (Sorted::default(), BTreeSet::new());
        sorted.sort(
            text("t/a"),
            &Standing::Created(text("t/a")),
            (Some(&found), &untried),
        );
        sorted.sort(
            text("t/b"),
            &Standing::Creating(None),
            (Some(&found), &untried),
        );
        assert_eq!(
            (sorted.ours, sorted.versions),
            (vec![text("t/a")], vec![text("v1")])
        );
        assert_eq!(sorted.others, ["t/b"]);
    }
}
