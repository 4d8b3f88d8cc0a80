//! Removes documents of the version that we chose, and none that others have written in their place
//! since.

use std::collections::{BTreeMap, BTreeSet};

use mongodb::bson::{Document, doc};

use super::{CREDENTIALS, DEVICES, Mongo, TENANTS, documents, without_ids};
use crate::hono::records::key;
use crate::hono::registry::{DEVICE, TENANT};
use crate::journal::{Did, Standing};
use crate::work::Work;
use crate::{Journal, ProvisionError, Summary};

const OTHER: &str =
    "its version is not the one that was written, so others have made or changed it";

pub(super) type Devices = Vec<(String, Standing)>;

/// True if a document that is there is the one that the record names: it has the same version.
fn is_ours(standing: &Standing, found: &Document) -> bool {
    match standing {
        Standing::Created(id) | Standing::Creating(Some(id)) => documents::version(found) == id,
        Standing::Creating(None) => false,
    }
}

/// The version under which a thing whose creation was begun is there as ours.
pub(super) fn begun(journal: &Journal, kind: &str, key: &str, found: &Document) -> Option<String> {
    let standing = journal.standing(kind, key)?;
    let is_begun = journal.is_begun(kind, key) && is_ours(&standing, found);
    is_begun.then(|| documents::version(found).to_owned())
}

/// Things of a record by what is there of them, each by its name among all tenants.
#[derive(Default)]
struct Sorted {
    ours: Vec<String>,
    versions: Vec<String>,
    others: Vec<String>,
    /// Not there, after a call of ours to delete it whose answer was not received.
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
            (Some(found), _) if is_ours(standing, found) => {
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

    /// Returns the parts that are not there any more, or never were.
    fn absent(&self) -> Vec<&str> {
        let all = [&self.ours, &self.went, &self.gone, &self.never];
        all.into_iter().flatten().map(|key| name_of(key)).collect()
    }

    /// Notes that ours went.
    fn settle(
        &self,
        kind: &'static str,
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
        journal.note_all(Did::Refused, kind, without_ids(others))?;
        for keys in [ours, went, gone, never] {
            journal.note_all(Did::Removed, kind, without_ids(keys))?;
        }
        let removed = (ours.len() + went.len()) as u64;
        let cleared = removed + gone.len() as u64;
        let all = cleared + (others.len() + never.len()) as u64;
        work.done_all(all, |summary: &mut Summary| {
            summary.cleared(kind, cleared, removed);
            others.iter().for_each(|key| summary.left(kind, key, OTHER));
        });
        Ok(())
    }
}

/// Documents of one tenant's devices in a database.
trait Registered {
    /// The devices of these names that are there.
    fn devices(&self, names: &[&str]) -> Result<BTreeMap<String, Document>, ProvisionError>;
    /// Deletes devices of these names and versions; returns their number.
    fn delete_devices(&self, names: &[&str], versions: &[String]) -> Result<u64, ProvisionError>;
    fn delete_credentials(&self, names: &[&str]) -> Result<(), ProvisionError>;
}

struct OfTenant<'a> {
    mongo: &'a Mongo,
    tenant: &'a str,
    work: &'a Work<'a>,
}

impl Registered for OfTenant<'_> {
    fn devices(&self, names: &[&str]) -> Result<BTreeMap<String, Document>, ProvisionError> {
        let named = documents::named(self.tenant, names);
        self.mongo.found(DEVICES, &named, self.work.watch)
    }

    fn delete_devices(&self, names: &[&str], versions: &[String]) -> Result<u64, ProvisionError> {
        let mut of_version = documents::named(self.tenant, names);
        of_version.insert("version", doc! { "$in": versions });
        self.mongo.delete(DEVICES, of_version, self.work)
    }

    fn delete_credentials(&self, names: &[&str]) -> Result<(), ProvisionError> {
        let named = documents::named(self.tenant, names);
        self.mongo.delete(CREDENTIALS, named, self.work).map(|_| ())
    }
}

/// Ends a part of a removal; all that is ours is among `tried` from then on.
///
/// The credentials go last, and of all that is not there: a device that others change meanwhile keeps
/// them, and what is cut off between the two is done by the next call, since the record has its device.
fn end_part(
    registered: &impl Registered,
    (tenant, part): (&str, &[(String, Standing)]),
    tried: &mut BTreeSet<String>,
) -> Result<Sorted, ProvisionError> {
    let names: Vec<&str> = part.iter().map(|(name, _)| name.as_str()).collect();
    let found = registered.devices(&names)?;
    let mut sorted = Sorted::default();
    for (name, standing) in part {
        sorted.sort(key(tenant, name), standing, (found.get(name), tried));
    }
    if !sorted.ours.is_empty() {
        tried.extend(sorted.ours.iter().cloned());
        end_ours(registered, &mut sorted)?;
    }
    let absent = sorted.absent();
    if !absent.is_empty() {
        registered.delete_credentials(&absent)?;
    }
    Ok(sorted)
}

/// Deletes the devices that are ours, as long as they are. What goes between the look and the call counts as
/// ours: a call that was late may have ended then.
fn end_ours(registered: &impl Registered, sorted: &mut Sorted) -> Result<(), ProvisionError> {
    let names: Vec<String> = sorted
        .ours
        .iter()
        .map(|key| name_of(key).to_owned())
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let removed = registered.delete_devices(&names, &sorted.versions)?;
    if removed < sorted.ours.len() as u64 {
        let still = registered.devices(&names)?;
        sorted.take_back(|key| still.contains_key(name_of(key)));
    }
    Ok(())
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
        let registered = OfTenant {
            mongo: self,
            tenant,
            work,
        };
        self.parts.each(devices, |part| {
            let sorted = end_part(&registered, (tenant, part), &mut tried)?;
            sorted.settle(DEVICE, journal, work)
        })
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
        if let Some(version) = sorted.versions.first() {
            let one = doc! { "tenant-id": &tenant, "version": version };
            if self.delete(TENANTS, one, work)? == 0 {
                // Others were faster.
                sorted.gone.append(&mut sorted.ours);
            }
        }
        sorted.settle(TENANT, journal, work)
    }

    pub(super) fn delete(
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

fn name_of(key: &str) -> &str {
    key.split_once('/').map_or(key, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    use super::*;

    fn text(id: &str) -> String {
        id.to_owned()
    }

    /// Law: only documents with our version are removed; each case has the record, the document and
    /// the result.
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

    /// A database in which something happens between the first look and the first call to delete.
    struct Shared<F> {
        devices: RefCell<BTreeMap<String, String>>,
        credentials: RefCell<BTreeSet<String>>,
        meanwhile: Cell<Option<F>>,
        /// True if the process is cut off before credentials go.
        is_cut_off: Cell<bool>,
    }

    impl<F: FnOnce(&mut BTreeMap<String, String>)> Shared<F> {
        fn of(names: [&str; 3], meanwhile: F) -> Self {
            let names = || names.into_iter().map(str::to_owned);
            Self {
                devices: RefCell::new(names().map(|name| (name, text("v1"))).collect()),
                credentials: RefCell::new(names().collect()),
                meanwhile: Cell::new(Some(meanwhile)),
                is_cut_off: Cell::new(false),
            }
        }

        fn left(&self) -> (Vec<String>, Vec<String>) {
            let devices = self.devices.borrow().keys().cloned().collect();
            (devices, self.credentials.borrow().iter().cloned().collect())
        }
    }

    impl<F: FnOnce(&mut BTreeMap<String, String>)> Registered for Shared<F> {
        fn devices(&self, names: &[&str]) -> Result<BTreeMap<String, Document>, ProvisionError> {
            let devices = self.devices.borrow();
            let there = names.iter().filter_map(|name| devices.get_key_value(*name));
            Ok(there
                .map(|(name, version)| (name.clone(), doc! { "version": version }))
                .collect())
        }

        fn delete_devices(
            &self,
            names: &[&str],
            versions: &[String],
        ) -> Result<u64, ProvisionError> {
            let mut devices = self.devices.borrow_mut();
            if let Some(meanwhile) = self.meanwhile.take() {
                meanwhile(&mut devices);
            }
            let before = devices.len();
            devices.retain(|name, version| {
                !(names.contains(&name.as_str()) && versions.contains(version))
            });
            Ok((before - devices.len()) as u64)
        }

        fn delete_credentials(&self, names: &[&str]) -> Result<(), ProvisionError> {
            if self.is_cut_off.take() {
                return Err(late());
            }
            let mut credentials = self.credentials.borrow_mut();
            credentials.retain(|name| !names.contains(&name.as_str()));
            Ok(())
        }
    }

    fn late() -> ProvisionError {
        ProvisionError::Late {
            call: text("delete"),
            timeout: Duration::from_secs(10),
        }
    }

    fn part() -> [(String, Standing); 3] {
        ["a", "b", "c"].map(|name| (text(name), Standing::Created(text("v1"))))
    }

    #[test]
    fn what_others_change_meanwhile_keeps_its_credentials() {
        let shared = Shared::of(["a", "b", "c"], |devices| {
            devices.insert(text("b"), text("v2"));
        });
        let sorted = end_part(&shared, ("t", &part()), &mut BTreeSet::new())
            .expect("the database does what it is asked to");
        assert_eq!(shared.left(), (vec![text("b")], vec![text("b")]));
        assert_eq!((sorted.others, sorted.ours.len()), (vec![text("t/b")], 2));
    }

    /// The record has what was not settled, whether it was created for certain or only begun.
    #[test]
    fn credentials_go_by_the_next_call_if_the_process_ends_before_they_do() {
        let begun = |(name, _)| (name, Standing::Creating(Some(text("v1"))));
        for part in [part(), part().map(begun)] {
            let shared = Shared::of(["a", "b", "c"], |_| {});
            shared.is_cut_off.set(true);
            let cut_off = end_part(&shared, ("t", &part), &mut BTreeSet::new());
            assert!(cut_off.is_err());
            assert_eq!(shared.left().1.len(), 3);
            let again = end_part(&shared, ("t", &part), &mut BTreeSet::new());
            assert!(again.is_ok());
            assert_eq!(shared.left(), (vec![], vec![]));
        }
    }
}
