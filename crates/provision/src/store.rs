//! The seam between those who want to know what a platform has stored and the stores.

use std::ops::Range;

use muster_model::{DeviceId, Micros};
use muster_plan::{DatabasePlan, Plan, ProvisionPlan};

use crate::{ProvisionError, Watch, thingsboard};

/// A finding about a device in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored<'a> {
    /// A point of its series, in the order of instants.
    Point(StoredPoint<'a>),
    /// The end of its series.
    End,
}

/// A point of a device's series of message ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredPoint<'a> {
    /// Its instant in milliseconds of the wall clock: the message's own, or else the platform's.
    pub at: i64,
    /// The text of the id of its message.
    pub id: &'a str,
}

/// A platform's store of time series.
pub trait Store: Send + Sync {
    /// Reads the series of message ids of each device that a plan reads back (`plan.management.reads_back`), page by page,
    /// without the points outside of `span`, in milliseconds of the wall clock. Several threads call `found`.
    ///
    /// # Errors
    /// [`ProvisionError`]; devices whose end was not seen are not known.
    fn read(
        &self,
        plan: &Plan,
        span: &Range<i64>,
        found: &(dyn Fn(DeviceId, Stored<'_>) + Sync),
        watch: &dyn Watch,
    ) -> Result<(), ProvisionError>;

    /// Makes calls that change nothing, to find out before the load whether the store can be read. By default it makes none.
    ///
    /// # Errors
    /// [`ProvisionError`] if it cannot.
    fn greet(&self, _watch: &dyn Watch) -> Result<(), ProvisionError> {
        Ok(())
    }

    /// Lets no call come before that time has passed.
    fn rest(&self, time: Micros);

    /// The store in messages.
    fn name(&self) -> &str;
}

/// Returns the store of a plan; none if nothing is to be read back.
///
/// # Errors
/// [`ProvisionError`] if its certificates cannot be used.
pub fn store(plan: &Plan) -> Result<Option<Box<dyn Store>>, ProvisionError> {
    let Some(provision) = plan
        .provision
        .as_ref()
        .filter(|_| plan.management.reads_back.is_some())
    else {
        return Ok(None);
    };
    match (&provision.board.database, &provision.api) {
        (Some(database), _) => database_store(provision, database).map(Some),
        (None, Some(api)) => Ok(Some(Box::new(thingsboard::Series::new(provision, api)?))),
        (None, None) => Ok(None),
    }
}

#[cfg(feature = "postgresql")]
fn database_store(
    provision: &ProvisionPlan,
    database: &DatabasePlan,
) -> Result<Box<dyn Store>, ProvisionError> {
    Ok(Box::new(thingsboard::Database::new(provision, database)?))
}

#[cfg(not(feature = "postgresql"))]
fn database_store(_: &ProvisionPlan, _: &DatabasePlan) -> Result<Box<dyn Store>, ProvisionError> {
    Err(ProvisionError::NoPostgres)
}
