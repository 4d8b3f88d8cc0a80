//! Customers of a tenant.

use serde::{Deserialize, Serialize};

use super::EntityId;

/// A customer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Customer {
    /// Its id; none before it is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<EntityId>,
    /// Its name, unique in the tenant.
    pub title: String,
}

/// Query for the customer of a title.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TitleQuery {
    /// The title.
    pub customer_title: String,
}
