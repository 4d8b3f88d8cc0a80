//! A certificate authority for one run.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
    KeyUsagePurpose, PublicKeyData,
};

use crate::tls::{Pem, TransportError};

/// The certificate of a server, and that of the authority that issued it and is forgotten.
#[derive(Debug, Clone)]
pub struct Throwaway {
    /// The authority's certificate, for those who are to trust.
    pub ca: Pem,
    /// The server's certificate.
    pub cert: Pem,
    /// The server's key.
    pub key: Pem,
}

/// Makes a certificate for a server of these names and addresses, of an authority made for it.
///
/// # Errors
/// [`TransportError`] if a name is none.
pub fn throwaway(names: &[String]) -> Result<Throwaway, TransportError> {
    make(names).map_err(|error| TransportError::Throwaway(error.to_string()))
}

fn make(names: &[String]) -> Result<Throwaway, rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    // An authority of another run must not have this one's name, or its certificates would look
    // like forged ones.
    let own = key.der_bytes();
    let own: String = own
        .iter()
        .rev()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    params.distinguished_name = named(&format!("muster run {own}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let ca = CertifiedIssuer::self_signed(params, key)?;
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = named("muster gateway");
    let cert = params.signed_by(&key, &ca)?;
    let made = |name: &str, text: String| Pem::new(name, text.into_bytes());
    Ok(Throwaway {
        ca: made("the run's own authority", ca.pem()),
        cert: made("the run's own certificate", cert.pem()),
        key: made("the run's own key", key.serialize_pem()),
    })
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}
