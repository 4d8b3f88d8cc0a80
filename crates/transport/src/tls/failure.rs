//! Maps errors of rustls to the causes that a run counts.

use muster_model::TlsFailure;
use rustls::{CertificateError, Error};

/// The cause that a run counts.
pub(crate) fn of(error: &Error) -> TlsFailure {
    if let Error::AlertReceived(alert) = error {
        return TlsFailure::Alert(u8::from(*alert));
    }
    if let Error::InvalidCertificate(error) = error {
        return of_certificate(error);
    }
    if matches!(error, Error::UnsupportedNameType) {
        return TlsFailure::WrongName;
    }
    if matches!(error, Error::NoCertificatesPresented) {
        return TlsFailure::BadCertificate;
    }
    if matches!(error, Error::InconsistentKeys(_)) {
        return TlsFailure::OwnCredential;
    }
    if matches!(
        error,
        Error::PeerIncompatible(_) | Error::NoApplicationProtocol
    ) {
        return TlsFailure::NothingInCommon;
    }
    TlsFailure::Malformed
}

fn of_certificate(error: &CertificateError) -> TlsFailure {
    use CertificateError as E;
    if matches!(error, E::Expired | E::ExpiredContext { .. }) {
        return TlsFailure::Expired;
    }
    if matches!(error, E::NotValidYet | E::NotValidYetContext { .. }) {
        return TlsFailure::NotYetValid;
    }
    if matches!(error, E::NotValidForName | E::NotValidForNameContext { .. }) {
        return TlsFailure::WrongName;
    }
    if matches!(error, E::UnknownIssuer) {
        return TlsFailure::UnknownIssuer;
    }
    TlsFailure::BadCertificate
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_of_a_certificate_has_its_own_cause() {
        use CertificateError as E;
        for (fault, cause) in [
            (E::Expired, TlsFailure::Expired),
            (E::NotValidYet, TlsFailure::NotYetValid),
            (E::NotValidForName, TlsFailure::WrongName),
            (E::UnknownIssuer, TlsFailure::UnknownIssuer),
            (E::BadEncoding, TlsFailure::BadCertificate),
        ] {
            assert_eq!(of(&Error::InvalidCertificate(fault)), cause);
        }
    }
}
