//! Credentials of devices. What was read is written back only if nobody has changed it since: the registry compares
//! ETags.

use muster_plan::RegistryApi;
use serde_json::{Value, json};

use super::{Found, Registry, Wanted, below, differs};
use crate::hono::model;
use crate::hono::records::Record;
use crate::rest::{Answer, Ask, NOT_FOUND, segment};
use crate::{ProvisionError, Watch};

/// Credentials of a device, as they were read.
#[derive(Default)]
pub(super) struct Held {
    pub(super) all: Vec<Value>,
    pub(super) etag: Option<String>,
}

impl Registry {
    /// Gives a device that is there the credentials that it lacks.
    pub(super) fn complement(
        &self,
        wanted: &Wanted,
        found: &Found,
        watch: &dyn Watch,
    ) -> Result<(), ProvisionError> {
        if let Some(how) = wanted.difference(&found.thing) {
            return Err(differs(wanted, &found.call, how));
        }
        let Some((record, held)) = self.credentials(wanted, watch)? else {
            return Ok(());
        };
        match model::credentials_difference(record, &held.all) {
            None => Ok(()),
            Some(how) if model::has_credentials(record, &held.all) => {
                Err(differs(wanted, &found.call, how))
            }
            Some(_) if self.api == RegistryApi::Legacy => self.complete(wanted, None, watch),
            Some(_) => self.add_credentials(record, held, watch),
        }
    }

    /// Adds credentials to those that a device has.
    fn add_credentials(
        &self,
        record: &Record,
        held: Held,
        watch: &dyn Watch,
    ) -> Result<(), ProvisionError> {
        let mut all = held.all;
        if let Value::Array(ours) = self.model.credentials(record)? {
            all.extend(ours);
        }
        self.replace_credentials(record, &Value::Array(all), held.etag.as_deref(), watch)
    }

    fn replace_credentials(
        &self,
        record: &Record,
        body: &Value,
        etag: Option<&str>,
        watch: &dyn Watch,
    ) -> Result<(), ProvisionError> {
        let path = below("credentials", &record.key());
        let answer = self.rest.call(&path, Ask::Replace { body, etag }, watch)?;
        accepted(&answer)
    }

    /// Gives a device that we created its credentials, in place of those that an ETag stands for.
    pub(super) fn complete(
        &self,
        wanted: &Wanted,
        etag: Option<&str>,
        watch: &dyn Watch,
    ) -> Result<(), ProvisionError> {
        let Wanted::Device(record) = wanted else {
            return Ok(());
        };
        let Some(login) = &record.login else {
            return Ok(());
        };
        match self.api {
            RegistryApi::V1 => {
                let all = self.model.credentials(record)?;
                self.replace_credentials(record, &all, etag, watch)
            }
            RegistryApi::Legacy if self.credentials_difference(wanted, watch)?.is_none() => Ok(()),
            RegistryApi::Legacy => {
                let mut one = self.model.credential(login)?;
                one["device-id"] = json!(record.device);
                let path = format!("credentials/{}", segment(&record.tenant));
                accepted(&self.rest.call(&path, Ask::Create(&one), watch)?)
            }
        }
    }

    /// In what the credentials of a device differ; a tenant has none.
    pub(super) fn credentials_difference(
        &self,
        wanted: &Wanted,
        watch: &dyn Watch,
    ) -> Result<Option<String>, ProvisionError> {
        let there = self.credentials(wanted, watch)?;
        Ok(there.and_then(|(record, held)| model::credentials_difference(record, &held.all)))
    }

    /// A device that logs in, and the credentials that the registry has of it; none of a tenant.
    fn credentials<'a>(
        &self,
        wanted: &'a Wanted,
        watch: &dyn Watch,
    ) -> Result<Option<(&'a Record, Held)>, ProvisionError> {
        let Wanted::Device(record) = wanted else {
            return Ok(None);
        };
        let Some(login) = &record.login else {
            return Ok(None);
        };
        let path = match self.api {
            RegistryApi::V1 => below("credentials", &record.key()),
            RegistryApi::Legacy => {
                let (tenant, auth_id) = (segment(&record.tenant), segment(&login.auth_id));
                format!("credentials/{tenant}/{auth_id}/{}", login.kind.word())
            }
        };
        Ok(Some((record, self.held(&path, watch)?)))
    }

    pub(super) fn held(&self, path: &str, watch: &dyn Watch) -> Result<Held, ProvisionError> {
        let answer = self.rest.call(path, Ask::Read, watch)?;
        if answer.status == NOT_FOUND {
            return Ok(Held::default());
        }
        let all = list(answer.json()?);
        let etag = answer.etag;
        Ok(Held { all, etag })
    }
}

/// Makes the attempt once more if others have changed what it had read before it wrote: what is there now decides.
pub(super) fn again_if_stale(
    attempt: impl Fn() -> Result<(), ProvisionError>,
) -> Result<(), ProvisionError> {
    match attempt() {
        Err(error) if error.is_stale() => attempt(),
        ended => ended,
    }
}

fn accepted(answer: &Answer) -> Result<(), ProvisionError> {
    if answer.is_yes() {
        Ok(())
    } else {
        Err(answer.refused())
    }
}

/// Credentials: a list, one that has a name before version 1, or the one thing that stands for a list.
fn list(mut value: Value) -> Vec<Value> {
    if value["credentials"].is_array() {
        value = value["credentials"].take();
    }
    if let Value::Array(all) = value {
        return all;
    }
    vec![value]
}
