//! Eclipse Hono: tenants, devices and credentials, by the management API of its device registry, or
//! written into its database.

mod logins;
mod made;
mod model;
#[cfg(feature = "mongodb")]
mod mongo;
mod records;
mod registry;
mod secrets;

pub(crate) use self::logins::distinct;
#[cfg(feature = "mongodb")]
pub(crate) use self::mongo::Mongo;
pub(crate) use self::registry::Registry;
