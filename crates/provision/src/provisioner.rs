//! The seam between those who want devices to be known and the platforms that have to know them.

use muster_model::LinkId;
use muster_plan::{Plan, ProvisionPlan, Secret};
use muster_platform::ManagementApi;

use crate::hono::{self, Registry};
use crate::sap_edge::SapEdge;
use crate::thingsboard::ThingsBoard;
use crate::{Journal, ProvisionError, Summary};

/// Registers the devices of a plan with a platform.
///
/// Each call may be made again after it failed or was killed, and does what is left to do.
pub trait Provisioner: Send + Sync {
    /// Creates what the plan wants and the platform has not.
    ///
    /// # Errors
    /// [`ProvisionError`]; what was created until then is in the journal.
    fn create(
        &self,
        plan: &Plan,
        journal: &Journal,
        watch: &dyn Watch,
    ) -> Result<Summary, ProvisionError>;

    /// Looks whether the platform has what the plan wants; what it has not is in the summary.
    ///
    /// # Errors
    /// [`ProvisionError`] if it cannot be found out.
    fn verify(&self, plan: &Plan, watch: &dyn Watch) -> Result<Summary, ProvisionError>;

    /// Makes one call that changes nothing, to find out whether the management API is there, takes us,
    /// and knows what all devices of the plan belong to.
    ///
    /// # Errors
    /// [`ProvisionError`] if it does not.
    fn greet(&self, watch: &dyn Watch) -> Result<(), ProvisionError>;

    /// Removes what the journal says was created, and nothing else.
    ///
    /// # Errors
    /// [`ProvisionError`]; what is left stays in the journal.
    fn remove(&self, journal: &Journal, watch: &dyn Watch) -> Result<Summary, ProvisionError>;

    /// Creates the devices of one link, and their credentials, where the platform has not both: called while
    /// a run goes on, for a link that was refused. It creates no tenant.
    ///
    /// # Errors
    /// [`ProvisionError`]; [`ProvisionError::NoRegistration`] if the platform has no such calls.
    fn register(
        &self,
        _plan: &Plan,
        _link: LinkId,
        _journal: &Journal,
        _watch: &dyn Watch,
    ) -> Result<Summary, ProvisionError> {
        Err(ProvisionError::NoRegistration)
    }

    /// The management API, as a journal names it.
    fn target(&self) -> &str;
}

/// Observes provisioning and may end it. Called by several threads.
pub trait Watch: Sync {
    /// Reports that `done` of `of` things are done.
    fn progress(&self, done: u64, of: u64);

    /// Returns true to stop.
    fn is_over(&self) -> bool;

    /// Something went otherwise than it should, and what was wanted is done all the same.
    fn remark(&self, _what: &str) {}
}

/// Returns the provisioner of a plan; none if the platform has none, or no address.
///
/// # Errors
/// [`ProvisionError`] if its certificates cannot be used.
pub fn provisioner(plan: &Plan) -> Result<Option<Box<dyn Provisioner>>, ProvisionError> {
    let Some(provision) = plan.provision.as_ref() else {
        return Ok(None);
    };
    if let Some(uri) = &provision.mongodb {
        return database(plan, provision, uri).map(Some);
    }
    let Some(api) = provision.api.as_ref() else {
        return Ok(None);
    };
    Ok(match plan.platform.dialect().management {
        Some(ManagementApi::HonoRegistry) => Some(Box::new(Registry::new(plan, provision, api)?)),
        Some(ManagementApi::SapEdge) => Some(Box::new(SapEdge::new(provision, api)?)),
        Some(ManagementApi::ThingsBoard) => Some(Box::new(ThingsBoard::new(provision, api)?)),
        None => None,
    })
}

/// Checks that the platform can distinguish the devices of a plan by their logins.
///
/// # Errors
/// [`ProvisionError::SameLogin`] and [`ProvisionError::Identity`], naming devices.
pub fn distinct(plan: &Plan) -> Result<(), ProvisionError> {
    match plan.platform.dialect().management {
        Some(ManagementApi::HonoRegistry) => hono::distinct(plan),
        Some(ManagementApi::SapEdge | ManagementApi::ThingsBoard) | None => Ok(()),
    }
}

#[cfg(feature = "mongodb")]
fn database(
    plan: &Plan,
    provision: &ProvisionPlan,
    uri: &Secret,
) -> Result<Box<dyn Provisioner>, ProvisionError> {
    Ok(Box::new(hono::Mongo::new(plan, provision, uri)?))
}

#[cfg(not(feature = "mongodb"))]
fn database(
    _: &Plan,
    _: &ProvisionPlan,
    _: &Secret,
) -> Result<Box<dyn Provisioner>, ProvisionError> {
    Err(ProvisionError::NoMongo)
}
