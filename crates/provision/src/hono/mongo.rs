//! The registry's database itself: documents in batches, as the MongoDB registry of Hono 2 writes them.
//!
//! The registry does not notice: adapters keep its answers for up to three minutes. Where the
//! registry encrypts keys, it cannot read these.

mod documents;
mod indexes;
mod lookup;
mod outcome;
mod parts;
mod removal;
mod wanting;

use std::collections::BTreeMap;
use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::options::{ClientOptions, InsertManyOptions};
use mongodb::{Client, Collection, Database};
use muster_plan::{Plan, ProvisionPlan, Secret};
use tokio::runtime::Runtime;

use self::documents::Writer;
use self::lookup::There;
use self::outcome::{failed, in_time, taken, unusable};
use self::parts::{BATCH, Parts};
use self::removal::{Devices, begun};
use self::wanting::Wanting;
use super::distinct;
use super::model::Model;
use super::records::{Record, count, records, tenants};
use super::registry::{DEVICE, TENANT};
use crate::journal::{Did, Standing, Thing};
use crate::pacer::Pacer;
use crate::threads::each;
use crate::work::Work;
use crate::{Journal, ProvisionError, Provisioner, Summary, Watch};

const TENANTS: &str = "tenants";
const DEVICES: &str = "devices";
const CREDENTIALS: &str = "credentials";

/// Time beyond the time-out after which a call is given up; the driver reports earlier failures
/// itself.
const MARGIN: Duration = Duration::from_secs(1);

pub(crate) struct Mongo {
    runtime: Runtime,
    database: Database,
    target: String,
    timeout: Duration,
    parts: Parts,
    pacer: Pacer,
    pending: u16,
    writer: Writer,
}

type Batch = Vec<Record>;

impl Provisioner for Mongo {
    fn create(
        &self,
        plan: &Plan,
        journal: &Journal,
        watch: &dyn Watch,
    ) -> Result<Summary, ProvisionError> {
        distinct(plan)?;
        self.index(watch)?;
        let tenants = tenants(plan);
        let work = Work::new(watch, tenants.len() as u64 + count(plan));
        for tenant in &tenants {
            self.ensure_tenant(tenant, journal, &work)?;
        }
        let empty = self.empty(&tenants, watch)?;
        each(batches(plan), self.pending, |batch| {
            let batch = batch?;
            let is_new = batch
                .first()
                .is_some_and(|first| empty.contains(&first.tenant));
            let there = match is_new {
                true => There::default(),
                false => self.find_in_parts(&batch, watch)?,
            };
            self.ensure((&batch, &there), journal, &work)
        })?;
        Ok(work.summary())
    }

    fn verify(&self, plan: &Plan, watch: &dyn Watch) -> Result<Summary, ProvisionError> {
        let tenants = tenants(plan);
        let work = Work::new(watch, tenants.len() as u64 + count(plan));
        for tenant in &tenants {
            self.look_for_tenant(tenant, &work)?;
        }
        each(batches(plan), self.pending, |batch| {
            self.look(&batch?, &work)
        })?;
        Ok(work.summary())
    }

    fn greet(&self, watch: &dyn Watch) -> Result<(), ProvisionError> {
        self.pacer.wait(watch)?;
        let tenants = self.collection(TENANTS);
        let counted = self.run(tenants.estimated_document_count().into_future());
        counted
            .map(|_| ())
            .map_err(|error| self.failed("count", TENANTS, &error))
    }

    fn remove(&self, journal: &Journal, watch: &dyn Watch) -> Result<Summary, ProvisionError> {
        let work = Work::new(watch, journal.len() as u64);
        let devices = by_tenant(journal.all(DEVICE));
        each(devices.into_iter(), self.pending, |(tenant, devices)| {
            self.end((&tenant, &devices), journal, &work)
        })?;
        for tenant in journal.all(TENANT) {
            self.end_tenant(tenant, journal, &work)?;
        }
        Ok(work.summary())
    }

    fn target(&self) -> &str {
        &self.target
    }
}

impl Mongo {
    /// # Errors
    /// [`ProvisionError::Database`] if the connection string names no database or cannot be read,
    /// [`ProvisionError::Random`], [`ProvisionError::Thread`].
    pub(crate) fn new(
        plan: &Plan,
        provision: &ProvisionPlan,
        uri: &Secret,
    ) -> Result<Self, ProvisionError> {
        let uri = uri.expose();
        let runtime = Runtime::new().map_err(ProvisionError::Thread)?;
        let read = runtime.block_on(ClientOptions::parse(uri.as_str()).into_future());
        let mut options = read.map_err(|error| unusable(uri, &error.to_string()))?;
        let Some(name) = options.default_database.clone() else {
            let what = "it names no database: add its name, such as mongodb://host:27017/device-registry-mongodb";
            return Err(unusable(uri, what));
        };
        let hosts: Vec<String> = options.hosts.iter().map(ToString::to_string).collect();
        let timeout = Duration::from_micros(provision.timeout.get());
        options.server_selection_timeout = Some(timeout);
        options.connect_timeout = Some(timeout);
        options.app_name.get_or_insert_with(|| "muster".to_owned());
        let client = runtime.block_on(async { Client::with_options(options) });
        let client = client.map_err(|error| unusable(uri, &error.to_string()))?;
        Ok(Self {
            target: format!("mongodb://{}/{name}", hosts.join(",")),
            database: client.database(&name),
            runtime,
            timeout,
            parts: Parts::new(),
            pacer: Pacer::new(provision.rate),
            pending: provision.pending,
            writer: Writer::new(Model::new(plan, provision.password_hash))?,
        })
    }

    fn collection(&self, name: &str) -> Collection<Document> {
        self.database.collection(name)
    }

    /// Waits for an answer, no longer than the time-out.
    fn run<T>(
        &self,
        call: impl Future<Output = mongodb::error::Result<T>>,
    ) -> mongodb::error::Result<T> {
        self.runtime.block_on(in_time(self.timeout + MARGIN, call))
    }

    fn ensure_tenant(
        &self,
        tenant: &str,
        journal: &Journal,
        work: &Work<'_>,
    ) -> Result<(), ProvisionError> {
        let found = self.tenant(tenant, work.watch)?;
        let is_there = found.is_some();
        match found {
            Some(found) => {
                let how = documents::tenant_difference(&found);
                self.differs(how, TENANT, tenant)?;
                self.settle_tenant(tenant, &found, journal)?;
            }
            None => {
                let one = vec![self.writer.tenant(tenant)];
                let made = things([tenant.to_owned()].into_iter(), &one);
                self.make((TENANT, &made), (TENANTS, one), journal, work.watch)?;
                journal.note_all(Did::Created, TENANT, with_ids(&made))?;
            }
        }
        work.done(|summary| summary.ensured(TENANT, 1, u64::from(!is_there)));
        Ok(())
    }

    /// Adopts a tenant that a killed process had begun, unless others have created it since.
    fn settle_tenant(
        &self,
        tenant: &str,
        found: &Document,
        journal: &Journal,
    ) -> Result<(), ProvisionError> {
        match begun(journal, TENANT, tenant, found) {
            Some(version) => journal.created(TENANT, tenant, &version),
            None if journal.is_begun(TENANT, tenant) => journal.refused(TENANT, tenant),
            None => Ok(()),
        }
    }

    fn look_for_tenant(&self, tenant: &str, work: &Work<'_>) -> Result<(), ProvisionError> {
        let found = self.tenant(tenant, work.watch)?;
        work.done(|summary| {
            let how = found.as_ref().map(documents::tenant_difference);
            summary.looked(TENANT, tenant, how);
        });
        Ok(())
    }

    fn tenant(&self, tenant: &str, watch: &dyn Watch) -> Result<Option<Document>, ProvisionError> {
        self.pacer.wait(watch)?;
        let found = self.find_one(TENANTS, doc! { "tenant-id": tenant });
        found.map_err(|error| self.failed("find", TENANTS, &error))
    }

    /// Creates what is not there of a batch. What a killed process had begun is completed, and made again
    /// where it is not what is wanted now.
    fn ensure(
        &self,
        (batch, there): (&Batch, &There),
        journal: &Journal,
        work: &Work<'_>,
    ) -> Result<(), ProvisionError> {
        let wanting = match Wanting::of(batch, there, journal) {
            Ok(wanting) => wanting,
            Err((key, how)) => return self.differs(Some(how), DEVICE, &key),
        };
        let credentials = self.writer.all_credentials(&wanting.bare, work.watch)?;
        journal.note_all(Did::Refused, DEVICE, without_ids(&wanting.others))?;
        self.clear(&wanting, work)?;
        let devices = wanting.new.iter().map(|it| self.writer.device(it));
        let devices: Vec<Document> = devices.collect();
        let made = things(wanting.new.iter().map(|record| record.key()), &devices);
        self.make((DEVICE, &made), (DEVICES, devices), journal, work.watch)?;
        if !credentials.is_empty() {
            self.pacer.wait(work.watch)?;
            let inserted = self.insert(CREDENTIALS, &credentials);
            inserted.map_err(|error| self.failed("insert", CREDENTIALS, &error))?;
        }
        journal.note_all(Did::Created, DEVICE, with_ids(&wanting.begun))?;
        journal.note_all(Did::Created, DEVICE, with_ids(&made))?;
        work.done_all(batch.len() as u64, |summary| {
            summary.ensured(DEVICE, batch.len() as u64, made.len() as u64);
        });
        Ok(())
    }

    fn look(&self, batch: &Batch, work: &Work<'_>) -> Result<(), ProvisionError> {
        self.parts.each(batch, |part| {
            let there = self.find(part, work.watch)?;
            work.done_all(part.len() as u64, |summary| {
                for record in part {
                    summary.looked(DEVICE, &record.key(), there.difference(record));
                }
            });
            Ok(())
        })
    }

    /// Inserts things that were not there; what somebody else was faster with is not ours.
    fn make(
        &self,
        (kind, made): (&str, &[Thing]),
        (collection, documents): (&str, Vec<Document>),
        journal: &Journal,
        watch: &dyn Watch,
    ) -> Result<(), ProvisionError> {
        if documents.is_empty() {
            return Ok(());
        }
        self.pacer.wait(watch)?;
        journal.note_all(Did::Creating, kind, with_ids(made))?;
        let inserted = self.insert(collection, &documents);
        if let Err(error) = &inserted {
            let keys: Vec<String> = made.iter().map(|(key, _)| key.clone()).collect();
            journal.note_all(Did::Refused, kind, without_ids(&taken(&keys, error)))?;
        }
        inserted.map_err(|error| self.failed("insert", collection, &error))
    }

    /// Inserts in one unordered batch, so that one that fails keeps no other back.
    fn insert(&self, collection: &str, documents: &[Document]) -> mongodb::error::Result<()> {
        let unordered = InsertManyOptions::builder().ordered(false).build();
        let into = self.collection(collection);
        let insert = into.insert_many(documents).with_options(unordered);
        self.run(insert.into_future()).map(|_| ())
    }

    fn differs(
        &self,
        how: Option<String>,
        kind: &'static str,
        key: &str,
    ) -> Result<(), ProvisionError> {
        how.map_or(Ok(()), |how| {
            Err(ProvisionError::Differs {
                call: format!("find in {}", self.target),
                kind,
                key: key.to_owned(),
                how,
            })
        })
    }

    fn failed(
        &self,
        what: &str,
        collection: &str,
        error: &mongodb::error::Error,
    ) -> ProvisionError {
        let place = format!("{}, {collection}", self.target);
        failed((what, &place), error, self.timeout)
    }
}

/// The records of a plan in batches, each of one tenant.
fn batches(plan: &Plan) -> impl Iterator<Item = Result<Batch, ProvisionError>> + Send + '_ {
    let mut records = records(plan).peekable();
    std::iter::from_fn(move || {
        let mut batch = Batch::new();
        loop {
            let fits = |next: &Result<Record, ProvisionError>| match (next, batch.first()) {
                (Ok(next), Some(first)) => batch.len() < BATCH && next.tenant == first.tenant,
                (Err(_), Some(_)) => false,
                (_, None) => true,
            };
            match records.next_if(fits) {
                Some(Ok(record)) => batch.push(record),
                Some(Err(error)) => return Some(Err(error)),
                None => return (!batch.is_empty()).then_some(Ok(batch)),
            }
        }
    })
}

fn with_ids(things: &[Thing]) -> impl Iterator<Item = (&str, Option<&str>)> + Clone {
    things.iter().map(|(key, id)| (&**key, Some(&**id)))
}

fn without_ids(keys: &[String]) -> impl Iterator<Item = (&str, Option<&str>)> + Clone {
    keys.iter().map(|key| (&**key, None))
}

/// Things by their names, each known by the version of its document.
fn things(keys: impl Iterator<Item = String>, documents: &[Document]) -> Vec<Thing> {
    let versions = documents.iter().map(documents::version);
    keys.zip(versions.map(str::to_owned)).collect()
}

/// The devices of a record, by tenant and in batches.
fn by_tenant(things: Vec<(String, Standing)>) -> Vec<(String, Devices)> {
    let mut by_tenant: BTreeMap<String, Devices> = BTreeMap::new();
    for (key, standing) in things {
        if let Some((tenant, device)) = key.split_once('/') {
            let devices = by_tenant.entry(tenant.to_owned()).or_default();
            devices.push((device.to_owned(), standing));
        }
    }
    let all = by_tenant.into_iter().flat_map(|(tenant, devices)| {
        let batches = devices.chunks(BATCH).map(<[_]>::to_vec);
        batches
            .map(|batch| (tenant.clone(), batch))
            .collect::<Vec<_>>()
    });
    all.collect()
}
