//! Errors of rustls: the causes that a run counts, and their words.

use std::io;

use muster_model::TlsFailure;
use rustls::{CertificateError, Error};

/// The cause and the words of an error of a stream, if it is one of TLS.
pub fn of_io(error: &io::Error) -> Option<(TlsFailure, String)> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    Some((of(error), in_words(error)))
}

/// An error in words. The library's own for certificates are those of its debug output.
pub(super) fn in_words(error: &Error) -> String {
    use CertificateError as E;
    let Error::InvalidCertificate(fault) = error else {
        return error.to_string();
    };
    let is_of_ca = || {
        let E::Other(other) = fault else {
            return false;
        };
        let fault = other.0.downcast_ref::<webpki::Error>();
        fault.is_some_and(|fault| matches!(fault, webpki::Error::CaUsedAsEndEntity))
    };
    let words = if matches!(fault, E::UnknownIssuer) {
        "is signed by no CA that is trusted here"
    } else if matches!(fault, E::BadEncoding) {
        "cannot be read"
    } else if matches!(fault, E::BadSignature) {
        "has a signature that is not its issuer's"
    } else if matches!(fault, E::Revoked) {
        "is revoked"
    } else if is_of_ca() {
        "is a CA's own (CA:TRUE), and none of a server: let that CA sign one, or make it anew by `openssl req -x509 \
         -addext basicConstraints=critical,CA:FALSE`"
    } else {
        return error.to_string();
    };
    format!("the peer's certificate {words}")
}

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

    #[test]
    fn words_for_a_certificate_are_no_debug_text() {
        use CertificateError as E;
        let of_ca = rustls::OtherError(std::sync::Arc::new(webpki::Error::CaUsedAsEndEntity));
        for (fault, words) in [
            (E::UnknownIssuer, "signed by no CA"),
            (E::Other(of_ca), "let that CA sign one"),
        ] {
            let said = in_words(&Error::InvalidCertificate(fault));
            assert!(said.starts_with("the peer's certificate is "), "{said}");
            assert!(said.contains(words), "{said}");
        }
        assert_eq!(
            in_words(&Error::DecryptError),
            Error::DecryptError.to_string()
        );
        let fault = Error::InvalidCertificate(E::UnknownIssuer);
        let failure = of_io(&io::Error::other(fault)).map(|(failure, _)| failure);
        assert_eq!(failure, Some(TlsFailure::UnknownIssuer));
        assert_eq!(of_io(&io::ErrorKind::UnexpectedEof.into()), None);
    }
}
