//! Cryptography and certificates of DTLS: aws-lc-rs, and RustCrypto for AES-CCM, which aws-lc-rs
//! has not.

mod algorithms;
mod certificates;
mod record_key;
#[cfg(test)]
mod tests;

pub use algorithms::{AwsLc, GroupSecret};
pub use certificates::DtlsCertificates;
pub use record_key::RecordKey;
