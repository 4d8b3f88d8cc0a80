//! The proof that a request comes from the platform, compared in constant time.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use muster_plan::{BackendPlan, WebhookNorthbound, WebhookProof};
use muster_protocol::http::Head;

/// The value that a header must have.
pub(super) struct Proof {
    header: String,
    /// The scheme of an `authorization` (RFC 9110 section 11.4); none in another header.
    scheme: Option<&'static str>,
    /// The value, behind the scheme if there is one.
    value: Vec<u8>,
}

impl Proof {
    /// The proof of a backend's requests; none if everybody may push.
    pub(super) fn new(backend: &BackendPlan, webhook: &WebhookNorthbound) -> Option<Self> {
        let password = backend.password.as_ref().map_or(&[][..], |it| it.expose());
        match webhook.proof.as_ref()? {
            WebhookProof::Secret(header) => Some(Self {
                header: header.clone(),
                scheme: (header == WebhookNorthbound::HEADER).then_some("Bearer"),
                value: password.to_vec(),
            }),
            WebhookProof::Basic => {
                let user = backend.user.as_ref().map_or("", |user| user.expose());
                let login = [user.as_bytes(), b":", password].concat();
                Some(Self {
                    header: WebhookNorthbound::HEADER.to_owned(),
                    scheme: Some("Basic"),
                    value: STANDARD.encode(login).into_bytes(),
                })
            }
        }
    }

    /// Returns true if a request shows it.
    pub(super) fn is_shown(&self, head: &Head<'_>) -> bool {
        let Some(shown) = head.field(&self.header) else {
            return false;
        };
        let value = match self.scheme {
            None => shown,
            Some(scheme) => {
                let (named, value) = shown.split_at(scheme.len().min(shown.len()));
                if !named.eq_ignore_ascii_case(scheme.as_bytes()) {
                    return false;
                }
                value.trim_ascii()
            }
        };
        verify_slices_are_equal(value, &self.value).is_ok()
    }

    /// The challenge of a refusal (RFC 9110 section 11.6.1).
    pub(super) fn challenge(&self) -> &'static str {
        match self.scheme {
            Some("Basic") => "Basic realm=\"muster\"",
            _ => "Bearer realm=\"muster\"",
        }
    }
}
