//! Faults that keep a session from beginning or continuing, and their alerts.

use muster_model::TlsFailure;
use thiserror::Error;

/// Alerts by their codes (RFC 5246 section 7.2, RFC 4279 section 6).
pub(super) mod alert {
    pub(in super::super) const CLOSE_NOTIFY: u8 = 0;
    pub(in super::super) const NO_RENEGOTIATION: u8 = 100;
    pub(super) const UNEXPECTED_MESSAGE: u8 = 10;
    pub(super) const HANDSHAKE_FAILURE: u8 = 40;
    pub(super) const BAD_CERTIFICATE: u8 = 42;
    pub(super) const CERTIFICATE_EXPIRED: u8 = 45;
    pub(super) const CERTIFICATE_UNKNOWN: u8 = 46;
    pub(super) const ILLEGAL_PARAMETER: u8 = 47;
    pub(super) const UNKNOWN_CA: u8 = 48;
    pub(super) const DECODE_ERROR: u8 = 50;
    pub(super) const DECRYPT_ERROR: u8 = 51;
    pub(super) const PROTOCOL_VERSION: u8 = 70;
    pub(super) const INTERNAL_ERROR: u8 = 80;
    pub(super) const UNSUPPORTED_EXTENSION: u8 = 110;
    pub(super) const UNKNOWN_PSK_IDENTITY: u8 = 115;
}

/// Reason that a session never began or cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum Fault {
    /// The handshake was not over in time. A server that looks keys up elsewhere is silent when
    /// identity or key are wrong.
    #[error(
        "the handshake was not over in time: is the address right, and identity and key known there?"
    )]
    TimedOut,
    /// The peer said that it cannot go on, by this alert.
    #[error("the peer ended the session by alert {0}")]
    Alert(u8),
    /// The peer said goodbye before the handshake was over.
    #[error("the peer closed the session during the handshake")]
    ClosedEarly,
    /// A message cannot be read.
    #[error("a message of the handshake cannot be read")]
    Malformed,
    /// A message has no place where it came.
    #[error("a message of the handshake came out of place")]
    Unexpected,
    /// The peer wants another version than DTLS 1.2.
    #[error("the peer does not speak DTLS 1.2")]
    Version,
    /// The two ends have no suite, group or signature in common.
    #[error("the two ends have no cipher suite, group or signature scheme in common")]
    NothingInCommon,
    /// The peer chose what was not offered, or sent a value that may not be.
    #[error("the peer chose what was not offered")]
    Illegal,
    /// The peer answered with an extension that was not asked for (RFC 5246 section 7.4.1.4).
    #[error("the peer answered with an extension that was not asked for")]
    Extension,
    /// The peer has no extended master secret, and it is demanded (RFC 7627 section 5).
    #[error("the peer has no extended master secret")]
    NoExtendedMasterSecret,
    /// The server takes no connection id, and it is demanded (RFC 9146 section 3).
    #[error("the server takes no connection id")]
    NoConnectionId,
    /// A client's identity is not known.
    #[error("the client's identity is not known")]
    UnknownIdentity,
    /// The peer's certificate is not to be trusted.
    #[error("the peer's certificate {0}")]
    Certificate(#[from] CertificateFault),
    /// A signature of the handshake is wrong.
    #[error("a signature of the handshake is wrong")]
    Signature,
    /// The handshake was altered on its way (RFC 5246 section 7.4.9).
    #[error("the handshake was altered on its way")]
    Finished,
    /// The peer's handshake is longer than is taken.
    #[error("the peer's handshake is longer than is taken")]
    TooLong,
    /// Our own key or certificate cannot be used.
    #[error("our own key or certificate cannot be used")]
    OwnCredential,
    /// The system gives no random bytes, without which nothing is safe.
    #[error("the system gives no random bytes")]
    NoRandomness,
    /// All sequence numbers of the keys are used up (RFC 6347 section 4.1).
    #[error("all sequence numbers of the session are used up")]
    UsedUp,
}

impl Fault {
    /// The alert to the peer; none where the peer must not learn of the fault.
    pub(super) const fn alert(self) -> Option<u8> {
        self.alert_and_cause().0
    }

    /// The cause that a run counts; none where it is no failure of the handshake's content: a
    /// time-out, a goodbye, keys that are used up, a system without randomness.
    pub const fn cause(self) -> Option<TlsFailure> {
        self.alert_and_cause().1
    }

    const fn alert_and_cause(self) -> (Option<u8>, Option<TlsFailure>) {
        use TlsFailure::{Malformed, NothingInCommon, OwnCredential};
        let (alert, cause) = match self {
            Self::TimedOut | Self::ClosedEarly | Self::UsedUp => return (None, None),
            Self::Alert(code) => return (None, Some(TlsFailure::Alert(code))),
            Self::NoRandomness => return (Some(alert::INTERNAL_ERROR), None),
            Self::Malformed => (alert::DECODE_ERROR, Malformed),
            Self::Unexpected => (alert::UNEXPECTED_MESSAGE, Malformed),
            Self::Illegal => (alert::ILLEGAL_PARAMETER, Malformed),
            Self::Extension => (alert::UNSUPPORTED_EXTENSION, Malformed),
            Self::Signature | Self::Finished => (alert::DECRYPT_ERROR, Malformed),
            Self::TooLong => (alert::HANDSHAKE_FAILURE, Malformed),
            Self::Version => (alert::PROTOCOL_VERSION, NothingInCommon),
            Self::NothingInCommon | Self::NoExtendedMasterSecret | Self::NoConnectionId => {
                (alert::HANDSHAKE_FAILURE, NothingInCommon)
            }
            Self::UnknownIdentity => {
                let code = alert::UNKNOWN_PSK_IDENTITY;
                (code, TlsFailure::Alert(code))
            }
            Self::Certificate(fault) => (fault.alert(), fault.cause()),
            Self::OwnCredential => (alert::INTERNAL_ERROR, OwnCredential),
        };
        (Some(alert), Some(cause))
    }
}

/// Reason not to trust a peer's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
pub enum CertificateFault {
    /// Its issuer is not trusted.
    #[error("is of nobody whom we trust")]
    UnknownIssuer,
    /// Its time has passed.
    #[error("has expired")]
    Expired,
    /// Its time has not come.
    #[error("is not valid yet")]
    NotYetValid,
    /// Issued for other names.
    #[error("is for other names")]
    WrongName,
    /// Absent.
    #[error("is missing")]
    Missing,
    /// Wrong in another way.
    #[error("cannot be used")]
    Bad,
}

impl CertificateFault {
    const fn alert(self) -> u8 {
        match self {
            Self::UnknownIssuer => alert::UNKNOWN_CA,
            Self::Expired => alert::CERTIFICATE_EXPIRED,
            Self::NotYetValid | Self::WrongName => alert::CERTIFICATE_UNKNOWN,
            // RFC 5246 section 7.4.6.
            Self::Missing => alert::HANDSHAKE_FAILURE,
            Self::Bad => alert::BAD_CERTIFICATE,
        }
    }

    const fn cause(self) -> TlsFailure {
        match self {
            Self::UnknownIssuer => TlsFailure::UnknownIssuer,
            Self::Expired => TlsFailure::Expired,
            Self::NotYetValid => TlsFailure::NotYetValid,
            Self::WrongName => TlsFailure::WrongName,
            Self::Missing | Self::Bad => TlsFailure::BadCertificate,
        }
    }
}
