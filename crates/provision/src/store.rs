//! The seam between those who want to know what a platform has stored and the stores.

use std::ops::Range;

use muster_model::DeviceId;
use muster_plan::Plan;

use crate::{ProvisionError, Watch, thingsboard};

/// A platform's store of time series.
pub trait Store: Send + Sync {
    /// Reads a series of each device of a plan, page by page, and leaves out the points outside of `span`, in
    /// milliseconds of the wall clock. Several threads call `found` with the devices and their values, each in the order
    /// of its instants, with none at the end of each device.
    ///
    /// # Errors
    /// [`ProvisionError`]; devices whose end was not seen are not known.
    fn read(
        &self,
        plan: &Plan,
        span: &Range<i64>,
        found: &(dyn Fn(DeviceId, Option<&str>) + Sync),
        watch: &dyn Watch,
    ) -> Result<(), ProvisionError>;

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
        .filter(|_| plan.management.reads_back)
    else {
        return Ok(None);
    };
    match &provision.api {
        Some(api) => Ok(Some(Box::new(thingsboard::Series::new(provision, api)?))),
        None => Ok(None),
    }
}
