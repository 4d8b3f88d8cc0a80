//! Looks up documents of the database.

use std::collections::{BTreeMap, BTreeSet};

use mongodb::bson::{Document, doc};

use super::removal::begun;
use super::{Batch, CREDENTIALS, DEVICES, Mongo, documents};
use crate::hono::records::Record;
use crate::hono::registry::DEVICE;
use crate::{Journal, ProvisionError, Watch};

/// Documents of a batch, by device.
#[derive(Default)]
pub(super) struct There {
    pub(super) devices: BTreeMap<String, Document>,
    pub(super) credentials: BTreeMap<String, Document>,
}

impl There {
    /// The version of a device that is there since a killed process had begun to create it.
    pub(super) fn begun(&self, record: &Record, journal: &Journal) -> Option<String> {
        let device = self.devices.get(&record.device)?;
        begun(journal, DEVICE, &record.key(), device)
    }

    /// None if the device is not there; else in what it differs.
    pub(super) fn difference(&self, record: &Record) -> Option<Option<String>> {
        let device = self.devices.get(&record.device)?;
        let credentials = self.credentials.get(&record.device);
        Some(documents::difference(record, device, credentials))
    }
}

impl Mongo {
    /// The tenants without any device, whose batches need no look-up.
    pub(super) fn empty(
        &self,
        tenants: &BTreeSet<String>,
        watch: &dyn Watch,
    ) -> Result<BTreeSet<String>, ProvisionError> {
        let mut empty = tenants.clone();
        for collection in [DEVICES, CREDENTIALS] {
            for tenant in tenants {
                self.pacer.wait(watch)?;
                let found = self.find_one(collection, doc! { "tenant-id": tenant });
                let found = found.map_err(|error| self.failed("find", collection, &error))?;
                if found.is_some() {
                    empty.remove(tenant);
                }
            }
        }
        Ok(empty)
    }

    pub(super) fn find_in_parts(
        &self,
        batch: &Batch,
        watch: &dyn Watch,
    ) -> Result<There, ProvisionError> {
        let mut there = There::default();
        self.parts.each(batch, |part| {
            let found = self.find(part, watch)?;
            there.devices.extend(found.devices);
            there.credentials.extend(found.credentials);
            Ok(())
        })?;
        Ok(there)
    }

    /// Finds the documents of some devices of one tenant.
    pub(super) fn find(&self, part: &[Record], watch: &dyn Watch) -> Result<There, ProvisionError> {
        let Some(first) = part.first() else {
            return Ok(There::default());
        };
        let names: Vec<&str> = part.iter().map(|record| record.device.as_str()).collect();
        let filter = documents::named(&first.tenant, &names);
        Ok(There {
            devices: self.found(DEVICES, &filter, watch)?,
            credentials: self.found(CREDENTIALS, &filter, watch)?,
        })
    }

    pub(super) fn found(
        &self,
        collection: &str,
        filter: &Document,
        watch: &dyn Watch,
    ) -> Result<BTreeMap<String, Document>, ProvisionError> {
        self.pacer.wait(watch)?;
        let from = self.collection(collection);
        let found = self.run(async {
            let mut by_device = BTreeMap::new();
            let mut found = from.find(filter.clone()).max_time(self.timeout).await?;
            while found.advance().await? {
                let document = found.deserialize_current()?;
                if let Ok(device) = document.get_str("device-id") {
                    by_device.insert(device.to_owned(), document);
                }
            }
            Ok(by_device)
        });
        found.map_err(|error| self.failed("find", collection, &error))
    }

    pub(super) fn find_one(
        &self,
        collection: &str,
        filter: Document,
    ) -> mongodb::error::Result<Option<Document>> {
        let from = self.collection(collection);
        self.run(from.find_one(filter).into_future())
    }
}
