//! Devices that are known by their certificates.

use muster_platform::Identity;
use muster_protocol::dtls::{CertificateFault, Certificates, Peer};
use muster_transport::{DtlsCertificates, Own, TlsSpec, TransportError, common_name};

use crate::config::GatewayConfig;

/// The gateway's certificate, and those of devices: who shows one is called by its common name, which
/// is written like the identity of a shared key.
#[derive(Debug)]
pub(crate) struct ClientCertificates(DtlsCertificates);

impl ClientCertificates {
    /// Certificates of a gateway for DTLS; none if it knows devices by shared keys alone.
    ///
    /// # Errors
    /// [`TransportError`], which names what cannot be used.
    pub(crate) fn of(config: &GatewayConfig) -> Result<Option<Self>, TransportError> {
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
        Ok(Some(Self(certificates)))
    }
}

impl Certificates for ClientCertificates {
    fn chain(&self) -> &[Box<[u8]>] {
        self.0.chain()
    }

    fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.0.sign(message)
    }

    /// Rejects certificates that name no known device.
    fn judge(&self, chain: &[&[u8]], peer: Peer<'_>) -> Result<(), CertificateFault> {
        self.0.judge(chain, peer)?;
        let subject = chain.first().and_then(|leaf| self.identity(leaf));
        let is_known = subject.is_some_and(|subject| device_of(&subject).is_some());
        is_known.then_some(()).ok_or(CertificateFault::WrongName)
    }

    fn identity(&self, leaf: &[u8]) -> Option<Box<[u8]>> {
        self.0.identity(leaf)
    }

    fn verify(&self, leaf: &[u8], scheme: u16, message: &[u8], signature: &[u8]) -> bool {
        self.0.verify(leaf, scheme, message, signature)
    }
}

/// The device that the subject of a certificate names, as `<auth-id>@<tenant>`.
pub(crate) fn device_of(subject: &[u8]) -> Option<String> {
    let name = common_name(std::str::from_utf8(subject).ok()?)?;
    Identity::parse(&name).is_some().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_called_by_the_common_name_if_that_is_an_identity() {
        let device = |subject: &str| device_of(subject.as_bytes());
        assert_eq!(device("O=x,CN=sensor1@T1"), Some("sensor1@T1".to_owned()));
        assert_eq!(device("CN=sensor1"), None);
        assert_eq!(device("O=sensor1@T1"), None);
    }
}
