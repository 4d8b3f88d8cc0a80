//! Failures of a database by their reasons, each with its remedy.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use muster_transport::tls_failure_of;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

use crate::ProvisionError;

const TLS: &str = "the certificate of the server has the name of `read-back.from`, and whom `read-back.tls.ca` trusts";
const LOGIN: &str = "give the user in `read-back.from` and its password by `read-back.password`, such as \
                     \"${env:DB_PASSWORD}\", and let it in by the server's `pg_hba.conf`";
const NO_TABLES: &str = "name the database of the ThingsBoard under test in `read-back.from`; if it keeps its time \
                         series elsewhere, use `read-back` without `from`";
const RIGHTS: &str =
    "grant it: GRANT SELECT ON device, key_dictionary, ts_kv TO the user of `read-back.from`";

/// Failure of a call.
#[derive(Debug)]
pub(super) enum Failure {
    /// The connection cannot be made, or is lost.
    Io(io::Error),
    /// The TLS handshake fails.
    Tls(io::Error),
    /// The server speaks no TLS.
    NoTls,
    /// The server refuses, or its answer cannot be read.
    Database(Error),
    /// No answer comes in time.
    Late,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl Failure {
    /// The error of a call that waits no longer than `timeout`.
    pub(super) fn of(self, call: String, timeout: Duration) -> ProvisionError {
        let silent = |call, why, look| ProvisionError::Silent { call, why, look };
        match self {
            Self::Io(error) => {
                let look = "the database is there and is what `read-back.from` names";
                silent(call, error.to_string(), look)
            }
            Self::Tls(error) => {
                let words = tls_failure_of(&error).map(|(_, words)| words);
                silent(call, words.unwrap_or_else(|| error.to_string()), TLS)
            }
            Self::NoTls => ProvisionError::Database {
                call,
                why: "the server speaks no TLS".to_owned(),
                remedy: "turn TLS on there, or add `?sslmode=disable` to `read-back.from`",
            },
            Self::Late => late(call, timeout),
            Self::Database(error) => match error.as_db_error() {
                Some(refusal) => refused(call, refusal, timeout),
                None => ProvisionError::Database {
                    call,
                    why: words(&error),
                    remedy: if error.is_closed() {
                        "look into the server's log"
                    } else {
                        LOGIN
                    },
                },
            },
        }
    }
}

fn late(call: String, timeout: Duration) -> ProvisionError {
    ProvisionError::Silent {
        call,
        why: format!("no answer within {} s", timeout.as_secs_f64()),
        look: "the database is busy or a table is locked, or raise `provision.timeout`",
    }
}

/// A call that the server answers with an error.
fn refused(call: String, refusal: &DbError, timeout: Duration) -> ProvisionError {
    let code = refusal.code();
    if *code == SqlState::QUERY_CANCELED {
        return late(call, timeout);
    }
    let remedy = if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        RIGHTS
    } else if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_COLUMN {
        NO_TABLES
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        "name a database that is there in `read-back.from`"
    } else if *code == SqlState::TOO_MANY_CONNECTIONS {
        "lower `provision.pending`, or raise `max_connections` of the server"
    } else if code.code().starts_with("28") {
        LOGIN
    } else {
        "look into the server's log"
    };
    ProvisionError::Database {
        call,
        why: refusal.message().to_owned(),
        remedy,
    }
}

/// An error of the client, with its reason.
fn words(error: &Error) -> String {
    match error.source() {
        Some(reason) => format!("{error}: {reason}"),
        None => error.to_string(),
    }
}

/// A database without a table of ThingsBoard.
pub(super) fn no_table(database: &str, table: &str) -> ProvisionError {
    ProvisionError::Database {
        call: format!("read {database}"),
        why: format!("this is not a ThingsBoard database: it has no table `{table}`"),
        remedy: NO_TABLES,
    }
}

/// A database that has none of the devices.
pub(super) fn no_devices(database: &str) -> ProvisionError {
    ProvisionError::Database {
        call: format!("read {database}"),
        why: "it has none of the run's devices".to_owned(),
        remedy: "name the database of the ThingsBoard under test in `read-back.from`",
    }
}

/// Devices of two tenants that have the names of the run's.
pub(super) fn two_tenants(database: &str, tenants: [&str; 2]) -> ProvisionError {
    let [one, other] = tenants;
    ProvisionError::Database {
        call: format!("read {database}"),
        why: format!(
            "several tenants have devices with the names of the run's, such as {one} and {other}"
        ),
        remedy: "give the run's devices other names by `id`, or use `read-back` without `from`, whose login names \
                 the tenant",
    }
}
