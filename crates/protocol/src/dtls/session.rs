//! State of a session for its resumption (RFC 5246 section 7.3, RFC 5077).

use std::fmt;

use zeroize::Zeroizing;

use super::suite::Suite;

/// One end's state of a session. A client's is private: its holder resumes with the client's
/// identity.
#[derive(Clone, PartialEq, Eq)]
pub struct Session {
    pub(super) id: Box<[u8]>,
    pub(super) ticket: Box<[u8]>,
    pub(super) master: Zeroizing<[u8; 48]>,
    pub(super) suite: Suite,
    pub(super) is_extended: bool,
    pub(super) identity: Box<[u8]>,
}

impl Session {
    /// By what a server finds it again; with a ticket, a client's name for it.
    pub const fn id(&self) -> &[u8] {
        &self.id
    }

    /// The suite that it was negotiated with.
    pub const fn suite(&self) -> Suite {
        self.suite
    }

    /// Returns the client's identity, from its key or certificate; empty if nothing was proved.
    pub const fn identity(&self) -> &[u8] {
        &self.identity
    }

    pub(super) const fn is_resumable(&self) -> bool {
        !self.id.is_empty() || !self.ticket.is_empty()
    }
}

/// Hides the secret.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id)
            .field("suite", &self.suite)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_secret_is_not_printed() {
        let session = Session {
            id: [1, 2].into(),
            ticket: Box::default(),
            master: Zeroizing::new([0xab; 48]),
            suite: Suite::PskCcm8,
            is_extended: true,
            identity: Box::default(),
        };
        let text = format!("{session:?}");
        assert!(!text.contains("171") && !text.contains("ab, ab"), "{text}");
        assert!(session.is_resumable());
    }
}
