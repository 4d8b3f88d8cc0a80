//! What a database says no to, without the secrets of its connection string.

use mongodb::error::{Error, ErrorKind};

use crate::ProvisionError;

/// A call that failed.
pub(super) fn failed(call: String, error: &Error) -> ProvisionError {
    if let ErrorKind::ServerSelection { message, .. } = &*error.kind {
        return ProvisionError::Silent {
            call,
            why: message.clone(),
            hint: ", and the connection string (`provision.mongodb`)",
        };
    }
    if let ErrorKind::Authentication { message, .. } = &*error.kind {
        return ProvisionError::Database {
            call,
            why: message.clone(),
            remedy: "give user and password in the connection string, and `authSource` where they are \
                     not of this database",
        };
    }
    ProvisionError::Database {
        call,
        why: error.kind.to_string(),
        remedy: "what was written until now is recorded, and the same can be tried again",
    }
}

/// A connection string that says nothing, whose secrets are not shown.
pub(super) fn unusable(uri: &str, why: &str) -> ProvisionError {
    let mut why = why.replace(uri, "***");
    let authority = uri.split_once("://").map_or("", |(_, rest)| rest);
    if let Some((login, _)) = authority.rsplit_once('@') {
        let parts = login.split(':').chain([login]);
        for secret in parts.filter(|part| !part.is_empty()) {
            why = why.replace(secret, "***");
        }
    }
    ProvisionError::Database {
        call: "read the connection string of `provision.mongodb`".to_owned(),
        why,
        remedy: "write mongodb://user:password@host:27017/database, from the environment or a file",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_shown() {
        let uri = "mongodb://me:s3cret@h:1/db";
        let said = unusable(uri, "bad: mongodb://me:s3cret@h:1/db has s3cret").to_string();
        assert!(!said.contains("s3cret"), "{said}");
        assert!(said.contains("`provision.mongodb`"), "{said}");
    }
}
