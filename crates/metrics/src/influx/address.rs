//! Address and credentials of an InfluxDB.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use muster_model::percent::Part;

use crate::push::{Credential, Receiver};
use crate::url::{AddressError, Url};

const EXAMPLE: &str = "http://127.0.0.1:8086?db=muster (version 1) or http://127.0.0.1:8086?org=mine&bucket=muster (version 2)";

/// Reads the address of `--influx`; `env` looks up a variable of the environment.
///
/// A database makes it version 1 of the API; version 2 needs organisation, bucket and token.
pub(crate) fn receiver(
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Receiver, AddressError> {
    let url = Url::read("--influx", text, EXAMPLE)?;
    let given = |name: &str| env(name).filter(|value| !value.is_empty());
    for (name, _) in &url.query {
        match name.as_str() {
            "db" | "rp" | "org" | "bucket" => {}
            "u" | "p" | "token" => {
                let help =
                    "set INFLUX_USERNAME and INFLUX_PASSWORD, or INFLUX_TOKEN, in the environment";
                let what = format!(
                    "--influx {url} has `{name}`, which other users of this machine would see"
                );
                return Err(AddressError::new(what, help));
            }
            _ => {
                let help = format!("write it like {EXAMPLE}");
                return Err(AddressError::new(
                    format!("--influx {url} has the unknown key `{name}`"),
                    help,
                ));
            }
        }
    }
    let (path, credential, remedies) = match url.value("db") {
        Some(db) => {
            let policy = url.value("rp").map(|rp| format!("&rp={rp}"));
            let path = format!("/write?db={db}{}", policy.unwrap_or_default());
            (
                path,
                basic(given("INFLUX_USERNAME"), given("INFLUX_PASSWORD")),
                REMEDIES_1,
            )
        }
        None => {
            let of = |key: &str, name: &str| {
                let from_env = || given(name).map(|value| encoded(&value));
                url.value(key)
                    .map(str::to_owned)
                    .or_else(from_env)
                    .ok_or_else(|| {
                        let what = format!("--influx {url} has neither `db` nor `{key}`");
                        AddressError::new(what, format!("write it like {EXAMPLE}, or set {name}"))
                    })
            };
            let (org, bucket) = (of("org", "INFLUX_ORG")?, of("bucket", "INFLUX_BUCKET")?);
            let token = given("INFLUX_TOKEN").ok_or_else(|| {
                let what = format!("--influx {url} is version 2, which needs a token");
                AddressError::new(what, "set INFLUX_TOKEN in the environment")
            })?;
            let credential = Credential::new(format!("Token {token}"), vec![token]);
            (
                format!("/api/v2/write?org={org}&bucket={bucket}"),
                Some(credential),
                REMEDIES_2,
            )
        }
    };
    Ok(Receiver {
        name: "InfluxDB",
        shown: url.to_string(),
        url: format!("{url}{path}&precision=ms"),
        media_type: "text/plain; charset=utf-8",
        credential,
        headers: Vec::new(),
        remedies,
    })
}

/// Remedies with version 1.
const REMEDIES_1: &[(u16, &str)] = &[
    (
        401,
        "set INFLUX_USERNAME and INFLUX_PASSWORD in the environment",
    ),
    (403, "use a user that may write to the database"),
    (
        404,
        "create the database, such as by `influx -execute 'CREATE DATABASE muster'`",
    ),
];
/// Remedies with version 2.
const REMEDIES_2: &[(u16, &str)] = &[
    (401, "set a token that is valid in INFLUX_TOKEN"),
    (403, "use a token that may write to the bucket"),
    (
        404,
        "create the bucket, or name another by `org` and `bucket`",
    ),
];

/// A value of a query.
fn encoded(value: &str) -> String {
    let mut encoded = String::new();
    Part::Value.encode(value, &mut encoded);
    encoded
}

/// HTTP Basic (RFC 7617).
fn basic(user: Option<String>, password: Option<String>) -> Option<Credential> {
    let (user, password) = (user?, password.unwrap_or_default());
    let encoded = STANDARD.encode(format!("{user}:{password}"));
    Some(Credential::new(
        format!("Basic {encoded}"),
        vec![encoded, password],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver_of(text: &str, variables: &[(&str, &str)]) -> Result<Receiver, AddressError> {
        receiver(text, &|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_database_makes_it_version_1() {
        let plain = receiver_of("http://h:8086/?db=m", &[]).expect("an address");
        assert_eq!(plain.url, "http://h:8086/write?db=m&precision=ms");
        assert!(plain.credential.is_none());
        let login = [("INFLUX_USERNAME", "me"), ("INFLUX_PASSWORD", "hunter2")];
        let login = receiver_of("http://h:8086?db=m&rp=week", &login).expect("an address");
        assert_eq!(login.url, "http://h:8086/write?db=m&rp=week&precision=ms");
        let credential = login.credential.expect("a login");
        assert_eq!(credential.header(), "Basic bWU6aHVudGVyMg==");
        assert!(!format!("{credential:?}").contains("hunter2"));
    }

    #[test]
    fn version_2_needs_organisation_bucket_and_token() {
        let token = ("INFLUX_TOKEN", "t0p");
        let given = receiver_of("http://h?org=o&bucket=b", &[token]).expect("an address");
        assert_eq!(
            given.url,
            "http://h/api/v2/write?org=o&bucket=b&precision=ms"
        );
        assert_eq!(given.credential.expect("a token").header(), "Token t0p");
        let named = [token, ("INFLUX_ORG", "my org"), ("INFLUX_BUCKET", "b")];
        let named = receiver_of("http://h", &named).expect("an address");
        assert_eq!(
            named.url,
            "http://h/api/v2/write?org=my%20org&bucket=b&precision=ms"
        );
        let lacks = |text: &str, variables: &[(&str, &str)]| {
            receiver_of(text, variables).expect_err(text).to_string()
        };
        assert!(
            lacks("http://h?org=o&bucket=b", &[]).ends_with("set INFLUX_TOKEN in the environment")
        );
        assert!(lacks("http://h?org=o", &[token]).contains("has neither `db` nor `bucket`"));
    }

    #[test]
    fn secrets_in_the_address_are_refused() {
        for text in [
            "http://h?db=m&u=me&p=hunter2",
            "http://h?org=o&bucket=b&token=hunter2",
            "http://h?database=m",
        ] {
            let refused = receiver_of(text, &[]).expect_err(text).to_string();
            assert!(!refused.contains("hunter2"), "{refused}");
        }
    }
}
