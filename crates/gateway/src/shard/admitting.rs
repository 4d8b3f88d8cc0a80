//! Who is let in, and what is said to those who are not.

use muster_protocol::mqtt::packet::Connect;
use muster_protocol::mqtt::{Version, reason};

use super::Shard;
use crate::shared::locked;

impl Shard {
    /// The code for credentials that nobody has. Where a token is all that a device gives, MQTT 3.1.1 has
    /// another code for one that is unknown, and a link without any is taken for its client id.
    pub(super) fn login_refusal(&self, connect: &Connect<'_>) -> u8 {
        let knows_links = self.shared.config.dialect.knows_links;
        match (knows_links, connect.user, connect.version) {
            (true, None, _) => reason::CLIENT_ID_NOT_VALID,
            (true, Some(_), Version::V311) => reason::NOT_AUTHORIZED,
            (true, Some(_), Version::V5) | (false, _, _) => reason::BAD_USER_OR_PASSWORD,
        }
    }

    /// Whether a device was told of, or need not be.
    pub(super) fn is_known(&self, name: &str) -> bool {
        !self.shared.config.admits_only_provisioned()
            || locked(&self.shared.registered).has_device(name)
    }
}
