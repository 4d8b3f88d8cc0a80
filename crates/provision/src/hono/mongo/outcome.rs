//! Refusals of a database, without the secrets of its connection string.

use std::time::Duration;

use mongodb::error::{Error, ErrorKind, Result};

use crate::ProvisionError;

/// The database's code for a key of a unique index that is there already.
pub(super) const DUPLICATE_KEY: i32 = 11_000;

/// The code of a call that the database itself gave up since it took too long.
const MAX_TIME_EXPIRED: i32 = 50;

/// The code of a call for which the user has no right.
const UNAUTHORIZED: i32 = 13;

/// The mark of an answer that did not come in time.
struct Late;

/// The outcome of a call, if it comes within that time.
pub(super) async fn in_time<T>(
    limit: Duration,
    call: impl Future<Output = Result<T>>,
) -> Result<T> {
    let answer = tokio::time::timeout(limit, call).await;
    answer.unwrap_or_else(|_| Err(Error::custom(Late)))
}

/// A call that failed: what was to be done, and where.
pub(super) fn failed(
    (what, place): (&str, &str),
    error: &Error,
    timeout: Duration,
) -> ProvisionError {
    let call = format!("{what} in {place}");
    if is_late(error) {
        return ProvisionError::Late { call, timeout };
    }
    if let Some(said) = without_right(error) {
        let right = right(what);
        return ProvisionError::Database {
            call,
            why: format!("the database grants no right to `{right}` there: {said}"),
            remedy: "give user and password in the connection string (`provision.mongodb`), and give that \
                     user the role `readWrite` on the registry's database",
        };
    }
    if let ErrorKind::ServerSelection { message, .. } = &*error.kind {
        return ProvisionError::Silent {
            call,
            why: message.clone(),
            look: "the database is there and is what the connection string names (`provision.mongodb`)",
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
        why: reason(error),
        remedy: "what was written until now is recorded, and the same can be tried again",
    }
}

/// Returns the refusal of a user without a right. It repeats the call with all documents, which is
/// not shown.
fn without_right(error: &Error) -> Option<&str> {
    let ErrorKind::Command(refused) = &*error.kind else {
        return None;
    };
    let said = refused.message.split(" to execute command").next();
    said.filter(|_| refused.code == UNAUTHORIZED)
}

/// The database's name for the right that a call of ours needs.
fn right(what: &str) -> &str {
    match what {
        "delete" => "remove",
        "index" => "createIndex",
        "count" => "find",
        _ => what,
    }
}

/// The database's reason; of an insert the first one, since each document has its own.
fn reason(error: &Error) -> String {
    let ErrorKind::InsertMany(failure) = &*error.kind else {
        return error.kind.to_string();
    };
    let mut errors = failure.write_errors.iter().flatten();
    match errors.next() {
        Some(first) => match errors.count() {
            0 => first.message.clone(),
            more => format!("{} (and {more} more)", first.message),
        },
        None => error.kind.to_string(),
    }
}

fn is_late(error: &Error) -> bool {
    let gave_up =
        matches!(&*error.kind, ErrorKind::Command(refused) if refused.code == MAX_TIME_EXPIRED);
    gave_up || error.get_custom::<Late>().is_some()
}

/// Returns the keys of an insert that others have taken. The rest is unknown: a database behind a
/// router may have written what it reports as failed.
pub(super) fn taken(keys: &[String], error: &Error) -> Vec<String> {
    let ErrorKind::InsertMany(failure) = &*error.kind else {
        return Vec::new();
    };
    let errors = failure.write_errors.iter().flatten();
    let taken = errors.filter(|one| one.code == DUPLICATE_KEY);
    taken
        .filter_map(|one| keys.get(one.index).cloned())
        .collect()
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
    use mongodb::bson::{deserialize_from_document, doc};
    use mongodb::error::{CommandError, InsertManyError};

    use super::*;

    /// The answer to an unordered insert of which some failed.
    fn insert_many(of: &[(i32, i32)]) -> Error {
        let errors: Vec<_> = of
            .iter()
            .map(|(index, code)| doc! { "index": index, "code": code, "errmsg": "no" })
            .collect();
        let refused = doc! { "writeErrors": errors };
        let refused: InsertManyError =
            deserialize_from_document(refused).expect("the driver reads it");
        Error::from(ErrorKind::InsertMany(refused))
    }

    #[test]
    fn what_somebody_else_was_faster_with_is_taken_and_nothing_else() {
        let keys = ["t/a", "t/b", "t/c"].map(str::to_owned);
        let error = insert_many(&[(1, 11_000), (2, 189)]);
        assert_eq!(taken(&keys, &error), ["t/b"]);
        let all = insert_many(&[(0, 11_000), (1, 11_000), (2, 11_000), (3, 11_000)]);
        assert_eq!(taken(&keys, &all), keys);
        let silent = Error::custom("the connection is gone");
        assert_eq!(taken(&keys, &silent), [""; 0]);
    }

    /// A thousand documents have a thousand errors.
    #[test]
    fn of_an_insert_the_first_error_is_told() {
        assert_eq!(reason(&insert_many(&[(1, 11_000)])), "no");
        let two = insert_many(&[(1, 11_000), (2, 189), (3, 189)]);
        assert_eq!(reason(&two), "no (and 2 more)");
    }

    #[test]
    fn an_answer_that_does_not_come_is_late_and_names_the_time_out() {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let limited = |call| runtime.block_on(in_time(Duration::ZERO, call));
        let late = runtime.block_on(in_time(
            Duration::ZERO,
            std::future::pending::<Result<()>>(),
        ));
        let late = late.expect_err("it never comes");
        let place = ("delete", "db, devices");
        let shown = failed(place, &late, Duration::from_secs(10)).to_string();
        assert!(
            shown.starts_with("delete in db, devices: no answer within 10 s"),
            "{shown}"
        );
        assert!(shown.contains("raise `provision.timeout`"), "{shown}");
        assert_eq!(limited(std::future::ready(Ok(7))).expect("it is there"), 7);
    }

    /// As MongoDB writes it, and with a user that is not named at all.
    #[test]
    fn a_right_that_is_missing_is_named_without_the_documents_of_the_call() {
        let said = "not authorized on registry to execute command { insert: \"credentials\", documents: \
                    [ { key: \"c2VjcmV0\" } ] }";
        for (what, right) in [
            ("insert", "insert"),
            ("delete", "remove"),
            ("find", "find"),
            ("count", "find"),
            ("index", "createIndex"),
        ] {
            let refused = doc! { "code": 13, "codeName": "Unauthorized", "errmsg": said };
            let refused: CommandError =
                deserialize_from_document(refused).expect("the driver reads it");
            let error = Error::from(ErrorKind::Command(refused));
            let shown = failed((what, "db, devices"), &error, Duration::ZERO).to_string();
            let begins = format!(
                "{what} in db, devices: the database grants no right to `{right}` there: not authorized on registry;"
            );
            assert!(shown.starts_with(&begins), "{shown}");
            assert!(
                shown.contains("role `readWrite`") && !shown.contains("c2VjcmV0"),
                "{shown}"
            );
            assert!(!shown.contains("tried again"), "{shown}");
        }
    }

    #[test]
    fn no_secret_is_shown() {
        let uri = "mongodb://me:s3cret@h:1/db";
        let said = unusable(uri, "bad: mongodb://me:s3cret@h:1/db has s3cret").to_string();
        assert!(!said.contains("s3cret"), "{said}");
        assert!(said.contains("`provision.mongodb`"), "{said}");
    }
}
