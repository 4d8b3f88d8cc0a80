//! PostgreSQL databases, by addresses as libpq writes them.

use muster_plan::{CertificateCheck, DatabasePlan, is_loopback};

use super::has_none;
use crate::build::secret::secret;
use crate::build::transport;
use crate::endpoint::{shown, split};
use crate::units::Unreadable;
use crate::view::View;

/// The port of PostgreSQL.
const PORT: u16 = 5432;
const EXAMPLE: &str = "such as postgresql://thingsboard@db.example:5432/thingsboard";

/// Reads `provision.read-back.from`. The outer option is none if the key has an error, the inner one if the key is absent.
pub(super) fn database(provision: &View<'_>) -> Option<Option<DatabasePlan>> {
    let Some(view) = provision.get("read-back") else {
        return Some(None);
    };
    match view.get("from") {
        Some(from) => database_of(&view, &from).map(Some),
        None => {
            let why = ("the REST API is read", "add `from`, or remove it");
            has_none(&view, &["password", "tls"], why)?;
            Some(None)
        }
    }
}

fn database_of(view: &View<'_>, from: &View<'_>) -> Option<DatabasePlan> {
    let address = secret(from)?;
    let database = from.accept(read(address.expose()))?;
    let password = view.optional("password", secret)?;
    if database.tls.is_none() && !is_loopback(&database.host) {
        let what = "the login and what is read cross the network for everybody to read";
        from.warn(what, "remove `sslmode=disable`");
    }
    let tls = match (view.get("tls"), database.tls) {
        (None, check) => check,
        (Some(tls), Some(_)) => Some(CertificateCheck {
            insecure: transport::insecure(&tls, "`ca` says whom to trust")?,
            ca: transport::certificates(&tls, "ca")?,
        }),
        (Some(tls), None) => {
            let what = "`tls` has no meaning here: the database is read without TLS";
            return tls.refuse(what, "add `?sslmode=verify-full` to `from`, or remove it");
        }
    };
    Some(DatabasePlan {
        password,
        tls,
        ..database
    })
}

/// Reads `postgresql://user@host:port/name`, with an `sslmode` or without. TLS is the default with every host that is not
/// of this machine for certain.
///
/// # Errors
/// Anything else, also passwords, and modes that leave TLS to the server.
fn read(url: &str) -> Result<DatabasePlan, Unreadable> {
    let bad = |what: &str, help: &str| Unreadable {
        what: format!("`{}` {what}", shown(url)),
        help: help.to_owned(),
    };
    let scheme = url.split_once("://");
    let Some(("postgresql" | "postgres", rest)) = scheme else {
        return Err(bad("is no address of a PostgreSQL", EXAMPLE));
    };
    let (login, rest) = rest.rsplit_once('@').unwrap_or(("", rest));
    if login.contains(':') {
        let help = "move it to `password`, such as \"${env:DB_PASSWORD}\"";
        return Err(bad("holds a password", help));
    }
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, name) = place.split_once('/').unwrap_or((place, ""));
    let plain = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"/%#?".contains(&byte);
        !text.is_empty() && text.bytes().all(is_plain)
    };
    if !plain(login) {
        return Err(bad("has no plain user name", EXAMPLE));
    }
    if !plain(name) {
        return Err(bad("has no plain name of a database", EXAMPLE));
    }
    let (host, port) = split(authority).ok_or_else(|| bad("is no address", EXAMPLE))?;
    if !plain(host) {
        return Err(bad("has no host", EXAMPLE));
    }
    let port = match port.map(str::parse) {
        None => PORT,
        Some(Ok(port)) if port > 0 => port,
        Some(_) => return Err(bad("has no port from 1 to 65535", EXAMPLE)),
    };
    let is_tls = match query {
        "" => !is_loopback(host),
        "sslmode=disable" => false,
        "sslmode=require" | "sslmode=verify-ca" | "sslmode=verify-full" => true,
        _ => {
            let help = "`sslmode=disable` or `sslmode=verify-full`, and nothing else";
            return Err(bad("has parameters that have no meaning here", help));
        }
    };
    Ok(DatabasePlan {
        host: host.to_owned(),
        port,
        name: name.to_owned(),
        user: login.to_owned(),
        password: None,
        tls: is_tls.then_some(CertificateCheck {
            ca: None,
            insecure: false,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed_without_their_users() {
        for (url, printed, is_tls) in [
            (
                "postgresql://tb@127.0.0.1:6543/thingsboard",
                "postgresql://127.0.0.1:6543/thingsboard",
                false,
            ),
            ("postgres://tb@db/x", "postgresql://db:5432/x", true),
            (
                "postgresql://tb@127.db.example/x",
                "postgresql://127.db.example:5432/x",
                true,
            ),
            (
                "postgresql://tb@[::1]/x",
                "postgresql://[::1]:5432/x",
                false,
            ),
            (
                "postgresql://tb@db/x?sslmode=disable",
                "postgresql://db:5432/x",
                false,
            ),
            (
                "postgresql://tb@localhost/x?sslmode=require",
                "postgresql://localhost:5432/x",
                true,
            ),
        ] {
            let database = read(url).unwrap();
            assert_eq!(
                (database.to_string().as_str(), database.tls.is_some()),
                (printed, is_tls)
            );
            assert_eq!(database.user, "tb");
        }
    }

    #[test]
    fn a_password_in_an_address_is_refused_and_not_shown() {
        for url in [
            "postgresql://tb:hun@ter2@db/x",
            "postgresql://tb:hun/ter2@db/x",
        ] {
            let refused = read(url).unwrap_err();
            assert_eq!(refused.what, "`***@db/x` holds a password");
            assert!(refused.help.contains("`password`"), "{}", refused.help);
        }
    }

    #[test]
    fn no_secret_of_an_address_is_shown() {
        for url in [
            "postgresql://tb@db/x?password=hunter2",
            "postgresql://tb@db/x?password=hunter2&sslmode=require",
            "postgresql://tb@db/x?password=me@hunter2",
            "postgresql://db/x?user=tb&password=hunter2",
            "postgresql://tb:hunter2?@db/x",
            "postgresql://tb:?hunter2@db/x",
            "tb:hunter2@db/x",
            "db/x?password=hunter2",
        ] {
            let refused = read(url).unwrap_err().what;
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in [
            "db",
            "mysql://tb@db/x",
            "postgresql://db/x",
            "postgresql://@db/x",
            "postgresql://tb@db",
            "postgresql://tb@db/",
            "postgresql://tb@db/x/y",
            "postgresql://tb@/x",
            "postgresql://tb@db:0/x",
            "postgresql://tb@db:65536/x",
            "postgresql://tb@::1/x",
            "postgresql://tb@db/x?sslmode=prefer",
            "postgresql://tb@db/x?options=-c",
        ] {
            assert!(read(url).is_err(), "{url}");
        }
    }
}
