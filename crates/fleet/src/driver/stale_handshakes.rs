//! Repeated answers of a server to handshakes that failed on a shared socket.

use std::collections::VecDeque;

use muster_protocol::dtls::server_random;

/// Failed handshakes that are remembered, the last ones: a server says its flight again for about a
/// minute, and while one handshake waits in vain for its time there is no other.
const REMEMBERED: usize = 64;

/// The ServerHellos of a socket, by their randoms.
#[derive(Debug, Default)]
pub(super) struct StaleHandshakes {
    /// ServerHello random of the handshake that is under way.
    current: Option<[u8; 32]>,
    failed: VecDeque<[u8; 32]>,
}

impl StaleHandshakes {
    /// Returns whether a datagram in the clear may be of the handshake that is under way.
    pub(super) fn may_be_ours(&mut self, datagram: &[u8]) -> bool {
        let Some(random) = server_random(datagram) else {
            return true;
        };
        let is_foreign = self.failed.contains(&random);
        if !is_foreign {
            self.current.get_or_insert(random);
        }
        !is_foreign
    }

    /// A handshake is over, and its link is up.
    pub(super) const fn succeeded(&mut self) {
        self.current = None;
    }

    /// A handshake failed: repeated answers of its server belong to no link.
    pub(super) fn failed(&mut self) {
        let Some(random) = self.current.take() else {
            return;
        };
        if self.failed.len() == REMEMBERED {
            self.failed.pop_front();
        }
        self.failed.push_back(random);
    }
}
