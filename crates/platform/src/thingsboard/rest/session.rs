//! Login, tokens and the user.

use serde::{Deserialize, Serialize};

use super::EntityId;

/// The header that carries the token, as `Bearer <token>`; `Authorization` works too.
pub const AUTHORIZATION: &str = "X-Authorization";

/// A user name and its password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// The user name, an address of mail.
    pub username: String,
    /// Its password.
    pub password: String,
}

/// A token for the calls, and one that renews it. Both are JWT (RFC 7519).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// The token of calls; it expires after 9,000 s by default.
    pub token: String,
    /// The token that renews it; it expires after 604,800 s by default.
    pub refresh_token: String,
}

/// The token that renews the other one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refresh {
    /// The refresh token.
    pub refresh_token: String,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// Its id.
    pub id: EntityId,
    /// Its tenant.
    pub tenant_id: EntityId,
    /// The user name.
    pub email: String,
    /// Its rights.
    pub authority: Authority,
}

/// The rights of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Authority {
    /// The administrator of all tenants, who has no devices.
    SysAdmin,
    /// The administrator of a tenant.
    TenantAdmin,
    /// A user of a customer, who may read.
    CustomerUser,
    /// Rights that no call here needs.
    #[serde(other)]
    Other,
}

impl Authority {
    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SysAdmin => "system administrator",
            Self::TenantAdmin => "tenant administrator",
            Self::CustomerUser => "user of a customer",
            Self::Other => "user of another kind",
        }
    }
}
