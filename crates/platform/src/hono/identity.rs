//! Identity in a credential.

/// An authentication id and its tenant, as a user name or an identity of DTLS holds them:
/// `<auth-id>@<tenant>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity<'a> {
    /// The name of the credentials, which need not be the device's.
    pub auth_id: &'a str,
    /// Its tenant.
    pub tenant: &'a str,
}

impl<'a> Identity<'a> {
    /// Parts the text at the first `@`; none if one of both is missing, which Hono leaves
    /// unanswered during the handshake of DTLS.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (auth_id, tenant) = text.split_once('@')?;
        let is_whole = !auth_id.is_empty() && !tenant.is_empty();
        is_whole.then_some(Self { auth_id, tenant })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_parted_at_the_first_at() {
        let parsed = |text| Identity::parse(text).map(|it| (it.auth_id, it.tenant));
        assert_eq!(
            parsed("sensor1@DEFAULT_TENANT"),
            Some(("sensor1", "DEFAULT_TENANT"))
        );
        assert_eq!(parsed("a@b@c"), Some(("a", "b@c")));
        for text in ["", "sensor1", "@t1", "sensor1@"] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }
}
