//! An HTTP endpoint of ours to which a platform pushes messages.

use serde::{Deserialize, Serialize};

/// Settings of a webhook; its address is that of the backend.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WebhookNorthbound {
    /// Proof that each request shows; none lets everybody in.
    pub proof: Option<WebhookProof>,
    /// The header that has the topic of a message; none if the path has it, behind that of the address.
    pub topic: Option<String>,
    /// True if each element of a JSON array is a message.
    pub batches: bool,
}

/// Proof that a request comes from the platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WebhookProof {
    /// The backend's password in the header of this name, in lower case; in `authorization` it is a bearer
    /// token (RFC 6750).
    Secret(String),
    /// The backend's user name and password by HTTP Basic (RFC 7617).
    Basic,
}

impl WebhookNorthbound {
    /// The header of a secret where the scenario names none.
    pub const HEADER: &'static str = "authorization";
}
