//! The body of an answer that refuses a call.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::EntityType;

/// The body of an answer that refuses a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// The status of the answer.
    pub status: u16,
    /// Text for people.
    #[serde(default)]
    pub message: String,
    /// The reason; none where a proxy or the web server itself answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// The kind of entity whose limit is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity_type: Option<EntityType>,
    /// The limit that is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The reason of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ErrorCode(pub u16);

impl Failure {
    /// Returns the body for a status and a reason.
    pub fn new(status: u16, code: ErrorCode, message: &str) -> Self {
        Self {
            status,
            message: message.to_owned(),
            error_code: Some(code),
            entity_type: None,
            limit: None,
        }
    }
}

impl ErrorCode {
    /// An error of the server itself, or a time-out.
    pub const GENERAL: Self = Self(2);
    /// Wrong user name or password.
    pub const AUTHENTICATION: Self = Self(10);
    /// The token has expired, or its session has ended.
    pub const TOKEN_EXPIRED: Self = Self(11);
    /// The password has expired.
    pub const CREDENTIALS_EXPIRED: Self = Self(15);
    /// The user has no right to this call.
    pub const PERMISSION_DENIED: Self = Self(20);
    /// An argument that cannot be meant.
    pub const INVALID_ARGUMENTS: Self = Self(30);
    /// A parameter or body that is wrong, or a name that is taken.
    pub const BAD_REQUEST: Self = Self(31);
    /// No such entity.
    pub const NOT_FOUND: Self = Self(32);
    /// Too many requests of the tenant.
    pub const TOO_MANY_REQUESTS: Self = Self(33);
    /// Too many updates of a session.
    pub const TOO_MANY_UPDATES: Self = Self(34);
    /// The entity was changed by others since it was read.
    pub const VERSION_CONFLICT: Self = Self(35);
    /// The subscription does not include this call.
    pub const SUBSCRIPTION_VIOLATION: Self = Self(40);
    /// The tenant has as many entities as it may have.
    pub const ENTITIES_LIMIT: Self = Self(41);
    /// The password violates the policy.
    pub const PASSWORD_VIOLATION: Self = Self(45);
    /// The database refuses.
    pub const DATABASE: Self = Self(46);

    /// Returns its name; none if it is not known.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::GENERAL => "general error",
            Self::AUTHENTICATION => "authentication failed",
            Self::TOKEN_EXPIRED => "token expired",
            Self::CREDENTIALS_EXPIRED => "credentials expired",
            Self::PERMISSION_DENIED => "permission denied",
            Self::INVALID_ARGUMENTS => "invalid arguments",
            Self::BAD_REQUEST => "bad request",
            Self::NOT_FOUND => "not found",
            Self::TOO_MANY_REQUESTS => "too many requests",
            Self::TOO_MANY_UPDATES => "too many updates",
            Self::VERSION_CONFLICT => "version conflict",
            Self::SUBSCRIPTION_VIOLATION => "subscription violation",
            Self::ENTITIES_LIMIT => "entities limit reached",
            Self::PASSWORD_VIOLATION => "password violation",
            Self::DATABASE => "database error",
            _ => return None,
        })
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "errorCode {}: {name}", self.0),
            None => write!(f, "errorCode {}", self.0),
        }
    }
}
