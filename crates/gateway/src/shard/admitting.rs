//! Who is let in, and what is said to those who are not.

use muster_protocol::mqtt::reason;

use super::Shard;
use crate::shared::locked;

impl Shard {
    /// The code for credentials that nobody has: tokens that are unknown are no wrong passwords.
    pub(super) fn login_refusal(&self) -> u8 {
        if self.shared.config.dialect.knows_links() {
            reason::NOT_AUTHORIZED
        } else {
            reason::BAD_USER_OR_PASSWORD
        }
    }

    /// Whether a device was told of, or need not be.
    pub(super) fn is_known(&self, name: &str) -> bool {
        !self.shared.config.admits_only_provisioned()
            || locked(&self.shared.registered).has_device(name)
    }
}
