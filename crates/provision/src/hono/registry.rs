//! The management API of the device registry: version 1, and what was before release 1.0.

mod credentials;
mod removal;

use muster_model::LinkId;
use muster_plan::{Plan, ProvisionMode, ProvisionPlan, RegistryApi, WebAddress};
use serde_json::{Value, json};

use self::credentials::{Held, again_if_stale};
use super::distinct;
use super::made::Made;
use super::model::{self, Model};
use super::records::{Login, Record, count, records, records_of, tenants};
use crate::journal::Standing;
use crate::rest::{Answer, Ask, Begun, CONFLICT, NOT_FOUND, Rest, segment};
use crate::threads::each;
use crate::work::Work;
use crate::{Journal, ProvisionError, Provisioner, Summary, Watch};

pub(super) const TENANT: &str = "tenant";
pub(super) const DEVICE: &str = "device";

#[derive(Debug)]
pub(crate) struct Registry {
    rest: Rest,
    api: RegistryApi,
    pending: u16,
    model: Model,
    /// One that every plan of it has.
    tenant: String,
    creates_missing: bool,
}

enum Wanted {
    Tenant(String),
    Device(Record),
}

/// A thing of the registry, and the call that found it.
struct Found {
    call: String,
    thing: Value,
}

impl Provisioner for Registry {
    fn create(
        &self,
        plan: &Plan,
        journal: &Journal,
        watch: &dyn Watch,
    ) -> Result<Summary, ProvisionError> {
        distinct(plan)?;
        self.all(plan, watch, |wanted, work| {
            self.ensure(wanted, journal, work)
        })
    }

    fn verify(&self, plan: &Plan, watch: &dyn Watch) -> Result<Summary, ProvisionError> {
        self.all(plan, watch, |wanted, work| self.look(wanted, work))
    }

    fn greet(&self, watch: &dyn Watch) -> Result<(), ProvisionError> {
        let path = self.named(TENANT, &self.tenant);
        let answer = self.rest.call(&path, Ask::Read, watch)?;
        if answer.status != NOT_FOUND {
            return self.thing(TENANT, &answer).map(|_| ());
        }
        if !self.is_registrys(&answer) {
            return Err(answer.refused());
        }
        if self.creates_missing {
            return Ok(());
        }
        Err(ProvisionError::NoTenant {
            call: answer.call,
            tenant: self.tenant.clone(),
        })
    }

    /// Devices first: without their tenant nobody could take them away.
    fn remove(&self, journal: &Journal, watch: &dyn Watch) -> Result<Summary, ProvisionError> {
        let work = Work::new(watch, journal.len() as u64);
        for kind in [DEVICE, TENANT] {
            let things = journal.all(kind);
            each(things.into_iter(), self.pending, |(name, standing)| {
                self.end((kind, &name), &standing, journal, &work)
            })?;
        }
        Ok(work.summary())
    }

    fn register(
        &self,
        plan: &Plan,
        link: LinkId,
        journal: &Journal,
        watch: &dyn Watch,
    ) -> Result<Summary, ProvisionError> {
        let records: Vec<_> = records_of(plan, link).collect::<Result<_, _>>()?;
        let work = Work::new(watch, records.len() as u64);
        for record in records {
            self.ensure_known(&Wanted::Device(record), journal, &work)?;
        }
        Ok(work.summary())
    }

    fn target(&self) -> &str {
        self.rest.base()
    }
}

impl Registry {
    /// # Errors
    /// [`ProvisionError::Transport`] if the trusted certificates cannot be used.
    pub(crate) fn new(
        plan: &Plan,
        provision: &ProvisionPlan,
        api: &WebAddress,
    ) -> Result<Self, ProvisionError> {
        let path = match provision.registry {
            RegistryApi::V1 => "/v1",
            RegistryApi::Legacy => "",
        };
        Ok(Self {
            rest: Rest::new(provision, api, path)?,
            api: provision.registry,
            pending: provision.pending,
            model: Model::new(plan, provision.password_hash),
            tenant: tenants(plan).pop_first().unwrap_or_default(),
            creates_missing: provision.mode == ProvisionMode::Auto,
        })
    }

    /// Returns true if the answer is a registry's, not one of another program without that path:
    /// Hono answers with an object of nothing but `error`, and to an unknown path with a page.
    /// Before release 1.0 its answer was empty.
    fn is_registrys(&self, answer: &Answer) -> bool {
        match serde_json::from_str(answer.text()) {
            Ok(Value::Object(said)) => said.len() == 1 && said.contains_key("error"),
            Ok(_) => false,
            Err(_) => self.api == RegistryApi::Legacy && answer.text().is_empty(),
        }
    }

    /// Does the work for all tenants, one by one, and then for all devices.
    fn all(
        &self,
        plan: &Plan,
        watch: &dyn Watch,
        work_on: impl Fn(&Wanted, &Work<'_>) -> Result<(), ProvisionError> + Sync,
    ) -> Result<Summary, ProvisionError> {
        let tenants = tenants(plan);
        let work = Work::new(watch, tenants.len() as u64 + count(plan));
        for tenant in tenants {
            work_on(&Wanted::Tenant(tenant), &work)?;
        }
        each(records(plan), self.pending, |record| {
            work_on(&Wanted::Device(record?), &work)
        })?;
        Ok(work.summary())
    }

    fn ensure(
        &self,
        wanted: &Wanted,
        journal: &Journal,
        work: &Work<'_>,
    ) -> Result<(), ProvisionError> {
        let is_created = match self.find(wanted, work.watch)? {
            Some(found) => {
                self.take(wanted, &found, journal, work.watch)?;
                false
            }
            None => self.make(wanted, journal, work.watch)?,
        };
        work.done(|summary| summary.ensured(wanted.kind(), 1, u64::from(is_created)));
        Ok(())
    }

    /// Creates a device that is missing, or the credentials that one which is there lacks; the latter are
    /// nothing of ours to remove.
    fn ensure_known(
        &self,
        wanted: &Wanted,
        journal: &Journal,
        work: &Work<'_>,
    ) -> Result<(), ProvisionError> {
        let is_created = match self.find(wanted, work.watch)? {
            None => self.make(wanted, journal, work.watch)?,
            Some(found) => {
                again_if_stale(|| self.complement(wanted, &found, work.watch))?;
                false
            }
        };
        work.done(|summary| summary.ensured(wanted.kind(), 1, u64::from(is_created)));
        Ok(())
    }

    /// A thing that is there serves if it has the wanted content. One whose creation a killed process
    /// had begun is ours if it is what was to be created, and is completed.
    fn take(
        &self,
        wanted: &Wanted,
        found: &Found,
        journal: &Journal,
        watch: &dyn Watch,
    ) -> Result<(), ProvisionError> {
        again_if_stale(|| self.take_as_read(wanted, found, journal, watch))
    }

    fn take_as_read(
        &self,
        wanted: &Wanted,
        found: &Found,
        journal: &Journal,
        watch: &dyn Watch,
    ) -> Result<(), ProvisionError> {
        let (kind, name) = (wanted.kind(), wanted.key());
        let begun = match journal.standing(kind, &name) {
            Some(Standing::Creating(made)) => Some(made),
            _ => None,
        };
        let ours = match &begun {
            Some(made) => self.of_ours((kind, &name), made.as_deref(), &found.thing, watch)?,
            None => None,
        };
        let difference = match wanted.difference(&found.thing) {
            None if ours.is_none() => self.credentials_difference(wanted, watch)?,
            difference => difference,
        };
        if let Some(how) = difference {
            return Err(differs(wanted, &found.call, how));
        }
        if let Some(held) = ours {
            self.complete(wanted, held.etag.as_deref(), watch)?;
            journal.created(kind, &name, &name)?;
        } else if begun.is_some() {
            journal.refused(kind, &name)?;
        }
        Ok(())
    }

    /// Creates a thing; true if this call created it.
    fn make(
        &self,
        wanted: &Wanted,
        journal: &Journal,
        watch: &dyn Watch,
    ) -> Result<bool, ProvisionError> {
        let (kind, name) = (wanted.kind(), wanted.key());
        let (path, body) = self.creation(wanted);
        let made = Made::new(&body, wanted.login());
        let begun = Begun {
            journal,
            kind,
            key: &name,
            id: Some(&made.to_id()),
        };
        let answer = self.rest.create(&path, &body, &begun, watch)?;
        if answer.status == CONFLICT {
            // Somebody else was faster.
            let found = self.find(wanted, watch)?.ok_or_else(|| answer.refused())?;
            self.take(wanted, &found, journal, watch)?;
            return Ok(false);
        }
        if !answer.is_yes() {
            return Err(answer.refused());
        }
        // Nobody has read the credentials of a device that was not there before.
        self.complete(wanted, None, watch)?;
        journal.created(kind, &name, &name)?;
        Ok(true)
    }

    fn look(&self, wanted: &Wanted, work: &Work<'_>) -> Result<(), ProvisionError> {
        let (kind, name) = (wanted.kind(), wanted.key());
        let Some(found) = self.find(wanted, work.watch)? else {
            work.done(|summary| summary.looked(kind, &name, None));
            return Ok(());
        };
        let difference = match wanted.difference(&found.thing) {
            None => self.credentials_difference(wanted, work.watch)?,
            difference => difference,
        };
        work.done(|summary| summary.looked(kind, &name, Some(difference)));
        Ok(())
    }

    fn find(&self, wanted: &Wanted, watch: &dyn Watch) -> Result<Option<Found>, ProvisionError> {
        self.find_named(wanted.kind(), &wanted.key(), watch)
    }

    fn find_named(
        &self,
        kind: &str,
        name: &str,
        watch: &dyn Watch,
    ) -> Result<Option<Found>, ProvisionError> {
        let answer = self.rest.call(&self.named(kind, name), Ask::Read, watch)?;
        if answer.status == NOT_FOUND {
            return Ok(None);
        }
        let thing = self.thing(kind, &answer)?;
        Ok(Some(Found {
            call: answer.call,
            thing,
        }))
    }

    fn thing(&self, kind: &str, answer: &Answer) -> Result<Value, ProvisionError> {
        let mut thing = answer.json()?;
        if self.api == RegistryApi::Legacy && kind == DEVICE {
            thing = thing["data"].take();
        }
        if thing.is_object() {
            Ok(thing)
        } else {
            Err(answer.unreadable("it is no object"))
        }
    }

    fn named(&self, kind: &str, name: &str) -> String {
        let word = match (self.api, kind) {
            (RegistryApi::V1, DEVICE) => "devices",
            (RegistryApi::V1, _) => "tenants",
            (RegistryApi::Legacy, DEVICE) => "registration",
            (RegistryApi::Legacy, _) => "tenant",
        };
        below(word, name)
    }

    fn creation(&self, wanted: &Wanted) -> (String, Value) {
        let named = || self.named(wanted.kind(), &wanted.key());
        match (self.api, wanted) {
            (RegistryApi::V1, Wanted::Tenant(_)) => (named(), self.model.tenant()),
            (RegistryApi::V1, Wanted::Device(record)) => (named(), model::device(record)),
            (RegistryApi::Legacy, Wanted::Tenant(tenant)) => {
                let body = json!({ "tenant-id": tenant, "enabled": true });
                ("tenant".to_owned(), body)
            }
            (RegistryApi::Legacy, Wanted::Device(record)) => {
                let mut body = model::device(record);
                body["device-id"] = json!(record.device);
                (format!("registration/{}", segment(&record.tenant)), body)
            }
        }
    }
}

fn below(word: &str, name: &str) -> String {
    let segments = name.split('/').map(segment);
    segments.fold(word.to_owned(), |path, next| path + "/" + &next)
}

impl Wanted {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Tenant(_) => TENANT,
            Self::Device(_) => DEVICE,
        }
    }

    fn key(&self) -> String {
        match self {
            Self::Tenant(tenant) => tenant.clone(),
            Self::Device(record) => record.key(),
        }
    }

    const fn login(&self) -> Option<&Login> {
        match self {
            Self::Tenant(_) => None,
            Self::Device(record) => record.login.as_ref(),
        }
    }

    fn difference(&self, found: &Value) -> Option<String> {
        match self {
            Self::Tenant(_) => model::tenant_difference(found),
            Self::Device(record) => model::device_difference(record, found),
        }
    }
}

/// The error that a thing which is there is not the wanted one.
fn differs(wanted: &Wanted, call: &str, how: String) -> ProvisionError {
    ProvisionError::Differs {
        call: call.to_owned(),
        kind: wanted.kind(),
        key: wanted.key(),
        how,
    }
}
