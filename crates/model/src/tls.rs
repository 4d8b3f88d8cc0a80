//! Reasons that two ends could not agree on TLS.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The alert of a server that asks for a certificate and was shown none (RFC 8446 section 6.2).
const CERTIFICATE_REQUIRED: u8 = 116;

/// Prefix of the name of every such cause.
const PREFIX: &str = "tls-";
/// The rest of the prefix of those that a peer reported; the name and the code of its alert follow.
const ALERT: &str = "alert-";

/// Reason that a TLS connection could not be opened, or could not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TlsFailure {
    /// The peer's certificate is of nobody whom we trust.
    UnknownIssuer,
    /// The peer's certificate is no longer valid.
    Expired,
    /// The peer's certificate is not valid yet.
    NotYetValid,
    /// The peer's certificate is for other names.
    WrongName,
    /// The peer's certificate is wrong in another way.
    BadCertificate,
    /// The two ends have no version, suite, group or protocol in common.
    NothingInCommon,
    /// The peer refused with an alert (RFC 8446 section 6.2).
    Alert(u8),
    /// The peer's bytes were not TLS.
    Malformed,
    /// Our own certificate or key cannot be used.
    OwnCredential,
}

impl TlsFailure {
    const WITHOUT_CODE: [Self; 8] = [
        Self::UnknownIssuer,
        Self::Expired,
        Self::NotYetValid,
        Self::WrongName,
        Self::BadCertificate,
        Self::NothingInCommon,
        Self::Malformed,
        Self::OwnCredential,
    ];

    /// The meaning of a refusal that a scenario's keys can end; none of any other failure.
    pub const fn meaning(self) -> Option<&'static str> {
        match self {
            Self::Alert(CERTIFICATE_REQUIRED) => Some("the server wants a client certificate"),
            Self::UnknownIssuer
            | Self::Expired
            | Self::NotYetValid
            | Self::WrongName
            | Self::BadCertificate
            | Self::NothingInCommon
            | Self::Alert(_)
            | Self::Malformed
            | Self::OwnCredential => None,
        }
    }

    /// Returns true if the peer's certificate is to blame.
    pub const fn is_of_certificate(self) -> bool {
        match self {
            Self::UnknownIssuer
            | Self::Expired
            | Self::NotYetValid
            | Self::WrongName
            | Self::BadCertificate => true,
            Self::NothingInCommon | Self::Alert(_) | Self::Malformed | Self::OwnCredential => false,
        }
    }

    /// The cause with its meaning, such as "in TLS: the server wants a client certificate (...)".
    pub fn in_words(self) -> String {
        match self.meaning() {
            Some(meaning) => format!("in TLS: {meaning} ({self})"),
            None => format!("in TLS ({self})"),
        }
    }

    /// The remedy as the end of a sentence, empty where none is known; `keys` is the place of the keys of
    /// TLS in a scenario, such as `platform.tls`.
    pub fn remedy(self, keys: &str) -> String {
        match self {
            Self::UnknownIssuer => format!("; name the file of its CA in `{keys}.ca`"),
            Self::WrongName => {
                format!("; name the host of its certificate in `{keys}.server-name`")
            }
            Self::Expired => "; renew the server's certificate".to_owned(),
            Self::NotYetValid => "; compare the clocks of both machines".to_owned(),
            Self::NothingInCommon => format!("; see `{keys}.version` and `{keys}.alpn`"),
            Self::Malformed => {
                "; does this port speak TLS? If not, use the scheme without TLS".to_owned()
            }
            Self::Alert(CERTIFICATE_REQUIRED) => match keys {
                "platform.tls" => {
                    "; give the fleet certificates: `credential: { kind: certificate, cert: ... }`"
                        .to_owned()
                }
                keys => format!("; name a certificate in `{keys}.cert`"),
            },
            Self::Alert(42..=46 | 48) => match keys {
                "platform.tls" => {
                    "; the server does not take the device's certificate: see `credential` of its fleet"
                        .to_owned()
                }
                keys => format!("; the peer does not take our certificate: see `{keys}.cert`"),
            },
            Self::BadCertificate | Self::Alert(_) | Self::OwnCredential => String::new(),
        }
    }

    /// The failure that results name so; none for a cause outside TLS.
    pub fn named(cause: &str) -> Option<Self> {
        let name = cause.strip_prefix(PREFIX)?;
        if let Some(alert) = name.strip_prefix(ALERT) {
            let (_, code) = alert.rsplit_once('-')?;
            return code.parse().ok().map(Self::Alert);
        }
        let mut others = Self::WITHOUT_CODE.into_iter();
        others.find(|failure| failure.to_string() == cause)
    }
}

impl fmt::Display for TlsFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        match self {
            Self::UnknownIssuer => f.write_str("unknown-issuer"),
            Self::Expired => f.write_str("expired"),
            Self::NotYetValid => f.write_str("not-yet-valid"),
            Self::WrongName => f.write_str("wrong-name"),
            Self::BadCertificate => f.write_str("bad-certificate"),
            Self::NothingInCommon => f.write_str("nothing-in-common"),
            Self::Alert(code) => {
                let name = alert(*code).unwrap_or("unknown");
                write!(f, "{ALERT}{name}-{code}")
            }
            Self::Malformed => f.write_str("malformed"),
            Self::OwnCredential => f.write_str("own-credential"),
        }
    }
}

/// The name of an alert (RFC 8446 section 6; RFC 5246 section 7.2 for those of TLS 1.2 alone).
const fn alert(code: u8) -> Option<&'static str> {
    Some(match code {
        10 => "unexpected-message",
        20 => "bad-record-mac",
        22 => "record-overflow",
        40 => "handshake-failure",
        42 => "bad-certificate",
        43 => "unsupported-certificate",
        44 => "certificate-revoked",
        45 => "certificate-expired",
        46 => "certificate-unknown",
        47 => "illegal-parameter",
        48 => "unknown-ca",
        49 => "access-denied",
        50 => "decode-error",
        51 => "decrypt-error",
        70 => "protocol-version",
        71 => "insufficient-security",
        80 => "internal-error",
        86 => "inappropriate-fallback",
        90 => "user-canceled",
        109 => "missing-extension",
        110 => "unsupported-extension",
        112 => "unrecognized-name",
        113 => "bad-certificate-status-response",
        115 => "unknown-psk-identity",
        116 => "certificate-required",
        120 => "no-application-protocol",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_that_a_key_can_end_names_that_key() {
        let remedy = |failure: TlsFailure| failure.remedy("platform.backend.tls");
        assert!(remedy(TlsFailure::UnknownIssuer).contains("`platform.backend.tls.ca`"));
        assert!(remedy(TlsFailure::WrongName).contains("`platform.backend.tls.server-name`"));
        let required = TlsFailure::Alert(116);
        assert!(remedy(required).contains("`platform.backend.tls.cert`"));
        assert!(
            required
                .remedy("platform.tls")
                .contains("kind: certificate")
        );
        let refused = TlsFailure::Alert(48);
        assert!(remedy(refused).contains("`platform.backend.tls.cert`"));
        assert!(refused.remedy("platform.tls").contains("`credential`"));
        assert_eq!(remedy(TlsFailure::Alert(40)), "");
        assert_eq!(
            required.in_words(),
            "in TLS: the server wants a client certificate (tls-alert-certificate-required-116)"
        );
        assert_eq!(refused.in_words(), "in TLS (tls-alert-unknown-ca-48)");
    }

    #[test]
    fn a_failure_prints_its_cause_and_the_code_on_the_wire() {
        for (failure, name) in [
            (TlsFailure::Expired, "tls-expired"),
            (TlsFailure::Alert(116), "tls-alert-certificate-required-116"),
            (TlsFailure::Alert(200), "tls-alert-unknown-200"),
        ] {
            assert_eq!(failure.to_string(), name);
            assert_eq!(TlsFailure::named(name), Some(failure));
        }
        for failure in TlsFailure::WITHOUT_CODE {
            assert_eq!(TlsFailure::named(&failure.to_string()), Some(failure));
        }
        for other in ["timed-out", "tls-", "tls-alert-", "tls-alert-unknown-900"] {
            assert_eq!(TlsFailure::named(other), None, "{other}");
        }
    }
}
