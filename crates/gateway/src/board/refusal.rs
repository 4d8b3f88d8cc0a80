//! Refusals of REST calls, with the codes of ThingsBoard.

use std::fmt;

use muster_platform::board_rest::{EntityType, ErrorCode, Failure};

/// A call that is refused: the body of its answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) Failure);

pub(super) type Answer<T> = Result<T, Refusal>;

impl Refusal {
    pub(super) fn new(status: u16, code: ErrorCode, message: &str) -> Self {
        Self(Failure::new(status, code, message))
    }

    /// A parameter or a body that is wrong, or a name that is taken.
    pub(super) fn bad_request(message: &str) -> Self {
        Self::new(400, ErrorCode::BAD_REQUEST, message)
    }

    /// An entity that is not there.
    pub(super) fn not_found() -> Self {
        Self::new(404, ErrorCode::NOT_FOUND, "Requested item wasn't found!")
    }

    /// Credentials or a token that are wrong.
    pub(super) fn unauthorized(code: ErrorCode, message: &str) -> Self {
        Self::new(401, code, message)
    }

    /// The tenant has as many devices as it may have.
    pub(super) fn device_limit(limit: u32) -> Self {
        Self(Failure {
            entity_type: Some(EntityType::Device),
            limit: Some(u64::from(limit)),
            ..Failure::new(403, ErrorCode::ENTITIES_LIMIT, "Devices limit reached")
        })
    }

    /// A change of what others have changed since it was read.
    pub(super) fn version_conflict() -> Self {
        let message = "Rule chain was already changed by someone else!";
        Self::new(409, ErrorCode::VERSION_CONFLICT, message)
    }

    /// The store itself failed.
    fn database(error: &dyn fmt::Display) -> Self {
        Self::new(500, ErrorCode::DATABASE, &error.to_string())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

macro_rules! from_errors {
    ($($error:ty,)*) => {
        $(impl From<$error> for Refusal {
            fn from(error: $error) -> Self {
                Self::database(&error)
            }
        })*
    };
}

from_errors! {
    redb::CommitError,
    redb::StorageError,
    redb::TableError,
    redb::TransactionError,
    serde_json::Error,
}
