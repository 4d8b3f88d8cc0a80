//! Content of a thing to create. The registry gives it no other mark, so that a thing whose
//! creation was cut off is recognized by its content.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::records::Login;

/// Names and times that a registry adds to what it received.
const SHOWN: [&str; 3] = ["tenant-id", "device-id", "status"];

/// The content of a thing that is about to be created, without any secret.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Made {
    thing: Value,
    /// Type and auth-id of its credentials.
    login: Option<[String; 2]>,
}

impl Made {
    pub(super) fn new(thing: &Value, login: Option<&Login>) -> Self {
        let login = login.map(|login| [login.kind.word().to_owned(), login.auth_id.clone()]);
        Self {
            thing: own(thing),
            login,
        }
    }

    pub(super) fn to_id(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn of_id(id: &str) -> Option<Self> {
        serde_json::from_str(id).ok()
    }

    /// Returns true if the thing found is this and nothing else.
    pub(super) fn is(&self, found: &Value) -> bool {
        own(found) == self.thing
    }

    /// Returns true if all existing credentials are ours; some of ours may still be missing.
    pub(super) fn has_no_other(&self, credentials: &[Value]) -> bool {
        let is_ours = |one: &Value| match &self.login {
            Some([kind, auth_id]) => one["type"] == **kind && one["auth-id"] == **auth_id,
            None => false,
        };
        credentials.iter().all(is_ours)
    }
}

fn own(thing: &Value) -> Value {
    let mut own = thing.clone();
    if let Some(fields) = own.as_object_mut() {
        fields.retain(|name, _| !SHOWN.contains(&name.as_str()));
    }
    own
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hono::records::LoginKind;

    fn made() -> Made {
        let login = Login {
            kind: LoginKind::Psk,
            auth_id: "a".to_owned(),
            secret: b"hidden".to_vec(),
        };
        Made::new(&json!({ "device-id": "d", "enabled": true }), Some(&login))
    }

    #[test]
    fn it_is_the_same_once_it_was_recorded_and_holds_no_secret() {
        let id = made().to_id();
        assert_eq!(id, r#"{"thing":{"enabled":true},"login":["psk","a"]}"#);
        let read = Made::of_id(&id).expect("it is that");
        assert_eq!(read.to_id(), id);
        assert!(Made::of_id("t1/d").is_none());
    }

    #[test]
    fn what_has_more_or_less_or_another_login_is_anothers() {
        let made = made();
        let status = json!({ "enabled": true, "status": { "created": "2026-01-01T00:00:00Z" } });
        assert!(made.is(&status));
        for other in [
            json!({}),
            json!({ "enabled": true, "via": ["gw"] }),
            json!({ "enabled": true, "ext": {} }),
        ] {
            assert!(!made.is(&other), "{other}");
        }
        let login = |auth_id| json!({ "type": "psk", "auth-id": auth_id });
        assert!(made.has_no_other(&[]) && made.has_no_other(&[login("a")]));
        assert!(!made.has_no_other(&[login("a"), login("b")]));
        let none = Made::new(&json!({}), None);
        assert!(none.has_no_other(&[]) && !none.has_no_other(&[login("a")]));
    }
}
