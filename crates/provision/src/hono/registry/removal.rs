//! Removes things, except those that are not known to be ours.

use muster_plan::RegistryApi;
use serde_json::Value;

use super::{DEVICE, Held, Registry, below};
use crate::hono::made::Made;
use crate::journal::Standing;
use crate::work::Work;
use crate::{Journal, ProvisionError, Watch};

const OTHER: &str = "its creation was cut off, and what is there is not what was to be created";

impl Registry {
    /// Removes a thing that we created. One whose creation was only begun is ours if it is what was
    /// to be created.
    pub(super) fn end(
        &self,
        (kind, name): (&'static str, &str),
        standing: &Standing,
        journal: &Journal,
        work: &Work<'_>,
    ) -> Result<(), ProvisionError> {
        if let Standing::Creating(made) = standing {
            let Some(found) = self.find_named(kind, name, work.watch)? else {
                journal.removed(kind, name)?;
                work.done(|_| {});
                return Ok(());
            };
            let ours = self.of_ours((kind, name), made.as_deref(), &found.thing, work.watch)?;
            if ours.is_none() {
                journal.refused(kind, name)?;
                work.done(|summary| summary.left(kind, name, OTHER));
                return Ok(());
            }
        }
        if self.api == RegistryApi::Legacy && kind == DEVICE {
            let _ = self.rest.delete(&below("credentials", name), work.watch)?;
        }
        let is_removed = self.rest.delete(&self.named(kind, name), work.watch)?;
        journal.removed(kind, name)?;
        work.done(|summary| summary.cleared(kind, 1, u64::from(is_removed)));
        Ok(())
    }

    /// Returns the credentials of an existing thing if that is the one whose creation was begun: equal content and
    /// no credentials of others.
    pub(super) fn of_ours(
        &self,
        (kind, name): (&str, &str),
        made: Option<&str>,
        found: &Value,
        watch: &dyn Watch,
    ) -> Result<Option<Held>, ProvisionError> {
        let made = made.and_then(Made::of_id);
        let Some(made) = made.filter(|made| made.is(found)) else {
            return Ok(None);
        };
        if kind != DEVICE {
            return Ok(Some(Held::default()));
        }
        let held = self.held(&below("credentials", name), watch)?;
        Ok(Some(held).filter(|held| made.has_no_other(&held.all)))
    }
}
