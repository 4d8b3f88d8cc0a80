//! The keys that devices share with the gateway.

use std::fmt;

use muster_platform::Identity;
use muster_protocol::dtls::{Found, Keys};
use rustc_hash::FxHashMap;

use crate::config::User;

/// The keys that devices share with the gateway, by their identities.
#[derive(Default)]
pub(crate) struct Secrets {
    known: FxHashMap<Box<[u8]>, Box<[u8]>>,
    /// The key of whoever is not among them.
    of_others: Option<Box<[u8]>>,
}

impl Secrets {
    pub(crate) fn new(users: &[User], of_others: Option<&str>) -> Self {
        let bytes = |bytes: &[u8]| Box::from(bytes);
        let users = users.iter();
        Self {
            known: users
                .map(|user| (bytes(user.name.as_bytes()), bytes(&user.password)))
                .collect(),
            of_others: of_others.map(|text| bytes(text.as_bytes())),
        }
    }

    /// True if nobody shares a key.
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty() && self.of_others.is_none()
    }
}

impl Keys for Secrets {
    /// An unknown identity gets no answer, as at Hono, which looks keys up elsewhere.
    fn find(&self, identity: &[u8]) -> Found {
        let is_one = std::str::from_utf8(identity)
            .ok()
            .and_then(Identity::parse)
            .is_some();
        let key = self.known.get(identity).or(self.of_others.as_ref());
        match key.filter(|_| is_one) {
            Some(key) => Found::Key(key.to_vec().into()),
            None => Found::Silent,
        }
    }
}

/// Prints no key.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(secrets: &Secrets, identity: &str) -> Option<Vec<u8>> {
        match secrets.find(identity.as_bytes()) {
            Found::Key(key) => Some(key.to_vec()),
            Found::Silent => None,
            Found::Unknown => panic!("Hono says nothing"),
        }
    }

    #[test]
    fn an_identity_has_its_own_key_before_that_of_all_others() {
        let user = User {
            name: "sensor1@T1".to_owned(),
            password: b"own".to_vec(),
        };
        let some = Secrets::new(std::slice::from_ref(&user), None);
        assert_eq!(key(&some, "sensor1@T1"), Some(b"own".to_vec()));
        assert_eq!(key(&some, "sensor2@T1"), None);
        let all = Secrets::new(&[user], Some("common"));
        assert_eq!(key(&all, "sensor1@T1"), Some(b"own".to_vec()));
        assert_eq!(key(&all, "sensor2@T1"), Some(b"common".to_vec()));
        assert_eq!(key(&all, "no tenant"), None);
        assert!(!format!("{all:?}").contains("common"));
    }
}
