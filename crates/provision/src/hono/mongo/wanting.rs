//! Computes the missing part of a batch. A killed process may have left a part of it, by another
//! plan.

use mongodb::bson::doc;

use super::lookup::There;
use super::{Batch, CREDENTIALS, DEVICES, Mongo, documents};
use crate::hono::records::Record;
use crate::hono::registry::DEVICE;
use crate::journal::Thing;
use crate::work::Work;
use crate::{Journal, ProvisionError};

/// A batch by what is to be done about each device and its credentials.
#[derive(Default)]
pub(super) struct Wanting<'a> {
    tenant: &'a str,
    pub(super) new: Vec<&'a Record>,
    pub(super) bare: Vec<&'a Record>,
    /// Begun by a killed process, and as wanted.
    pub(super) begun: Vec<Thing>,
    /// Begun by a killed process and made by others since, as it is wanted: it serves, and is not ours.
    pub(super) others: Vec<String>,
    /// To be taken away first: ours, and not as it is wanted.
    devices: Vec<Old<'a>>,
    credentials: Vec<Old<'a>>,
}

/// The name of a device, and the version of a document of it.
type Old<'a> = (&'a str, String);

impl<'a> Wanting<'a> {
    /// # Errors
    /// A device that others have made and that differs from what is wanted, and how.
    pub(super) fn of(
        batch: &'a Batch,
        there: &There,
        journal: &Journal,
    ) -> Result<Self, (String, String)> {
        let mut wanting = Self {
            tenant: batch.first().map_or("", |first| first.tenant.as_str()),
            ..Self::default()
        };
        for record in batch {
            let key = record.key();
            let sorted = match (
                there.devices.get(&record.device),
                there.begun(record, journal),
            ) {
                (None, _) => wanting.lacking(record, there, journal),
                (Some(device), Some(version)) => {
                    let is_wanted = documents::device_difference(record, device).is_none();
                    wanting.of_ours(record, (version, is_wanted), there);
                    Ok(())
                }
                (Some(_), None) => wanting.of_others(record, there, journal),
            };
            sorted.map_err(|how| (key, how))?;
        }
        Ok(wanting)
    }

    /// A device that is not there. Its credentials may be: a call of ours was cut off between the two, or they
    /// are others'.
    fn lacking(
        &mut self,
        record: &'a Record,
        there: &There,
        journal: &Journal,
    ) -> Result<(), String> {
        self.new.push(record);
        if journal.standing(DEVICE, &record.key()).is_some() {
            self.credentials_of_ours(record, there);
            return Ok(());
        }
        match there.credentials.get(&record.device) {
            None => self.bare.push(record),
            Some(found) => {
                if let Some(how) = documents::credentials_difference(record, found) {
                    return Err(format!("credentials are there without it, and {how}"));
                }
            }
        }
        Ok(())
    }

    /// Takes over documents that a killed process had begun and nobody has changed since.
    fn of_ours(&mut self, record: &'a Record, (version, is_wanted): (String, bool), there: &There) {
        if is_wanted {
            self.begun.push((record.key(), version));
        } else {
            self.devices.push((&record.device, version));
            self.new.push(record);
        }
        self.credentials_of_ours(record, there);
    }

    fn credentials_of_ours(&mut self, record: &'a Record, there: &There) {
        if let Some(found) = there.credentials.get(&record.device) {
            if documents::are_wanted(record, found) {
                return;
            }
            let version = documents::version(found).to_owned();
            self.credentials.push((&record.device, version));
        }
        self.bare.push(record);
    }

    /// Uses documents of others if they have the wanted content.
    fn of_others(
        &mut self,
        record: &Record,
        there: &There,
        journal: &Journal,
    ) -> Result<(), String> {
        if let Some(how) = there.difference(record).flatten() {
            return Err(how);
        }
        if journal.is_begun(DEVICE, &record.key()) {
            self.others.push(record.key());
        }
        Ok(())
    }
}

impl Mongo {
    /// Takes away what is ours and not as it is wanted. Credentials go first: without their device
    /// their owner is not known.
    pub(super) fn clear(
        &self,
        wanting: &Wanting<'_>,
        work: &Work<'_>,
    ) -> Result<(), ProvisionError> {
        for (collection, old) in [
            (CREDENTIALS, &wanting.credentials),
            (DEVICES, &wanting.devices),
        ] {
            self.parts.each(old, |part| {
                let names: Vec<&str> = part.iter().map(|(name, _)| *name).collect();
                let versions: Vec<&str> = part.iter().map(|(_, version)| &**version).collect();
                let mut those = documents::named(wanting.tenant, &names);
                those.insert("version", doc! { "$in": versions });
                self.delete(collection, those, work).map(|_| ())
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::documents::Writer;
    use super::*;
    use crate::hono::model::Model;
    use crate::hono::records::{Login, LoginKind};

    const OLD: &str = "old";
    const NEW: &str = "new";

    fn record(device: &str, kind: LoginKind, secret: &str) -> Record {
        Record {
            tenant: "t".to_owned(),
            device: device.to_owned(),
            via: None,
            login: Some(Login {
                kind,
                auth_id: device.to_owned(),
                secret: secret.as_bytes().to_vec(),
            }),
        }
    }

    fn psk(device: &str, secret: &str) -> Record {
        record(device, LoginKind::Psk, secret)
    }

    /// A record of what was begun, and what is in the database of it.
    struct World {
        writer: Writer,
        there: There,
        journal: Journal,
        _folder: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            Self {
                writer: Writer::new(Model::default()).expect("random bytes"),
                there: There::default(),
                journal: Journal::open(folder.path(), "mongodb://h/db").expect("a record"),
                _folder: folder,
            }
        }

        /// A process was killed once it had written both documents, or the device's alone.
        fn killed(&mut self, record: &Record, has_credentials: bool) {
            let device = self.writer.device(record);
            let version = documents::version(&device);
            let begun = self.journal.creating(DEVICE, &record.key(), Some(version));
            begun.expect("written");
            self.there.devices.insert(record.device.clone(), device);
            if has_credentials {
                self.credentials(record);
            }
        }

        fn credentials(&mut self, record: &Record) {
            let credentials = self.writer.credentials(record).expect("there is a salt");
            let place = record.device.clone();
            self.there.credentials.insert(place, credentials);
        }

        fn wanting<'a>(&self, batch: &'a Batch) -> Wanting<'a> {
            let wanting = Wanting::of(batch, &self.there, &self.journal);
            wanting.unwrap_or_else(|wrong| panic!("{wrong:?}"))
        }
    }

    fn names<'a>(records: &[&'a Record]) -> Vec<&'a str> {
        records.iter().map(|record| &*record.device).collect()
    }

    fn old<'a>(of: &[Old<'a>]) -> Vec<&'a str> {
        of.iter().map(|(name, _)| *name).collect()
    }

    #[test]
    fn what_was_begun_with_another_secret_is_given_the_one_that_is_wanted() {
        let mut world = World::new();
        let same = psk("same", NEW);
        let (key, password) = (
            psk("key", OLD),
            record("password", LoginKind::Password, OLD),
        );
        for record in [&same, &key, &password] {
            world.killed(record, true);
        }
        world.killed(&psk("cut off", NEW), false);
        let batch = vec![
            same,
            psk("key", NEW),
            record("password", LoginKind::Password, NEW),
            psk("cut off", NEW),
        ];
        let wanting = world.wanting(&batch);
        assert_eq!(names(&wanting.bare), ["key", "password", "cut off"]);
        assert_eq!(old(&wanting.credentials), ["key", "password"]);
        let version = documents::version(&world.there.credentials["key"]);
        assert_eq!(wanting.credentials[0].1, version);
        assert_eq!((wanting.new.len(), wanting.devices.len()), (0, 0));
        assert_eq!(wanting.begun.len(), 4);
    }

    #[test]
    fn what_was_begun_as_another_device_is_made_again() {
        let mut world = World::new();
        world.killed(&psk("d", NEW), true);
        let of_gateway = Record {
            via: Some("gw".to_owned()),
            login: None,
            ..psk("d", NEW)
        };
        let batch = vec![of_gateway];
        let wanting = world.wanting(&batch);
        assert_eq!(
            (names(&wanting.new), names(&wanting.bare)),
            (vec!["d"], vec!["d"])
        );
        assert_eq!(
            (old(&wanting.devices), old(&wanting.credentials)),
            (vec!["d"], vec!["d"])
        );
        let version = documents::version(&world.there.devices["d"]);
        assert_eq!(wanting.devices[0].1, version);
        assert!(wanting.begun.is_empty());
    }

    /// A removal that was cut off leaves credentials without a device.
    #[test]
    fn credentials_without_their_device_are_written_anew_if_the_device_was_ours() {
        let mut world = World::new();
        world.credentials(&psk("d", OLD));
        let batch = vec![psk("d", NEW)];
        let refused = Wanting::of(&batch, &world.there, &world.journal);
        let (key, how) = refused.err().expect("they are others'");
        assert_eq!(key, "t/d");
        assert!(
            how.contains("without it, and the key of `d` is another"),
            "{how}"
        );
        world.journal.created(DEVICE, "t/d", "v1").expect("written");
        let wanting = world.wanting(&batch);
        assert_eq!(
            (names(&wanting.new), names(&wanting.bare)),
            (vec!["d"], vec!["d"])
        );
        assert_eq!(old(&wanting.credentials), ["d"]);
    }

    #[test]
    fn what_others_have_made_since_serves_or_differs_and_is_not_touched() {
        let mut world = World::new();
        world.killed(&psk("d", OLD), true);
        world
            .there
            .devices
            .insert("d".to_owned(), world.writer.device(&psk("d", OLD)));
        let (same, other) = (vec![psk("d", OLD)], vec![psk("d", NEW)]);
        let wanting = world.wanting(&same);
        assert_eq!(wanting.others, ["t/d"]);
        assert!(wanting.bare.is_empty() && wanting.credentials.is_empty());
        let refused = Wanting::of(&other, &world.there, &world.journal).err();
        let wanted = ("t/d".to_owned(), "the key of `d` is another".to_owned());
        assert_eq!(refused, Some(wanted));
    }
}
