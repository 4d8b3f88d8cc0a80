//! Eclipse Hono: tenants, devices and credentials, by the management API of its device registry, or
//! written into its database.

mod made;
mod model;
#[cfg(feature = "mongodb")]
mod mongo;
mod records;
mod registry;
mod secrets;

#[cfg(feature = "mongodb")]
pub(crate) use self::mongo::Mongo;
pub(crate) use self::registry::Registry;
