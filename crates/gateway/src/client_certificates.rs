//! Devices that are known by their certificates.

use muster_platform::Identity;
use muster_transport::{DtlsCertificates, Own, TlsSpec, TransportError, common_name};

use crate::config::GatewayConfig;

/// Certificates of a gateway for DTLS; none if it knows devices by shared keys alone. The common name of a
/// client's certificate has to be written like the identity of a shared key.
///
/// # Errors
/// [`TransportError`], which names what cannot be used.
pub(crate) fn dtls_certificates(
    config: &GatewayConfig,
) -> Result<Option<DtlsCertificates>, TransportError> {
    let dtls = config.coaps.as_ref();
    let Some(tls) = dtls.and_then(|dtls| dtls.certificate.as_ref()) else {
        return Ok(None);
    };
    let tls = tls.server();
    let own = Own::new(&tls.cert, &tls.key)?.for_dtls(&tls.key.name)?;
    // It judges no server.
    let servers = TlsSpec {
        insecure: true,
        ..TlsSpec::default()
    };
    let certificates = DtlsCertificates::new(Some(own), &servers, tls.client_ca.as_ref())?;
    Ok(Some(certificates.with_known_subjects(|subject| {
        subject.and_then(device_of).is_some()
    })))
}

/// The device that the subject of a certificate names, as `<auth-id>@<tenant>`.
pub(crate) fn device_of(subject: &str) -> Option<String> {
    let name = common_name(subject)?;
    Identity::parse(&name).is_some().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_called_by_the_common_name_if_that_is_an_identity() {
        assert_eq!(
            device_of("O=x,CN=sensor1@T1"),
            Some("sensor1@T1".to_owned())
        );
        assert_eq!(device_of("CN=sensor1"), None);
        assert_eq!(device_of("O=sensor1@T1"), None);
    }
}
