//! Addresses of servers that receive metrics.

use std::fmt;

use ureq::http::Uri;

/// A part of an address or of the environment that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {help}")]
pub struct AddressError {
    what: String,
    help: String,
}

/// An `http` or `https` address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url {
    /// Scheme, host and port.
    pub(crate) base: String,
    /// The path without a slash at its end; may be empty.
    pub(crate) path: String,
    /// Names and values of the query, as they stand there.
    pub(crate) query: Vec<(String, String)>,
}

impl AddressError {
    pub(crate) fn new(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            help: help.into(),
        }
    }
}

impl Url {
    /// Reads the address that an option names; `example` is one that could be used.
    pub(crate) fn read(option: &str, text: &str, example: &str) -> Result<Self, AddressError> {
        let bad = |what: &str| {
            let shown = shown(text);
            AddressError::new(
                format!("{option} `{shown}` {what}"),
                format!("write it like {example}"),
            )
        };
        let (start, query) = text.split_once('?').unwrap_or((text, ""));
        let authority = start.split_once("://").map_or(start, |(_, rest)| rest);
        let authority = authority.split('/').next().unwrap_or_default();
        if authority.contains('@') {
            return Err(bad(
                "has a user or a token, which other users of this machine would see",
            ));
        }
        let uri: Uri = start.parse().map_err(|_| bad("is no address"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(bad("is no address of an HTTP server"));
        }
        let is_port = |(_, port): (&str, &str)| !port.ends_with(']');
        let has_port = authority.rsplit_once(':').is_some_and(is_port);
        let host = uri.host().filter(|host| !host.is_empty());
        if host.is_none() || has_port && uri.port().is_none() || uri.port_u16() == Some(0) {
            return Err(bad("has no host, or no port from 1 to 65535"));
        }
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let query = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_owned(), value.to_owned())
        });
        Ok(Self {
            base: format!("{}://{authority}", uri.scheme_str().unwrap_or("http")),
            path: uri.path().trim_end_matches('/').to_owned(),
            query: query.collect(),
        })
    }

    /// A value of the query.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.base, self.path)
    }
}

/// An address without what stands before `@` or behind `?`: both may be secret.
fn shown(text: &str) -> String {
    let start = text.split('?').next().unwrap_or_default();
    match start.rsplit_once('@') {
        Some((_, rest)) => format!("***@{rest}"),
        None => start.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Url, AddressError> {
        Url::read("--influx", text, "http://host:8086?db=metrics")
    }

    #[test]
    fn an_address_has_base_path_and_query() {
        let url = read("https://h.example:8086/influx/?db=a%20b&rp=").expect("an address");
        assert_eq!(url.to_string(), "https://h.example:8086/influx");
        assert_eq!(
            (url.value("db"), url.value("rp"), url.value("org")),
            (Some("a%20b"), None, None)
        );
        assert_eq!(
            read("http://[::1]:80").expect("an address").to_string(),
            "http://[::1]:80"
        );
    }

    #[test]
    fn what_is_no_address_is_refused_and_a_secret_is_not_shown() {
        for text in [
            "",
            "host:8086",
            "ftp://h",
            "http://",
            "http://h:0",
            "http://h:x",
            "http://h h",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        let refused = read("http://me:hunter2@h:8086?db=m")
            .expect_err("a password")
            .to_string();
        assert!(!refused.contains("hunter2"), "{refused}");
        assert!(
            refused.starts_with("--influx `***@h:8086` has a user or a token"),
            "{refused}"
        );
        assert!(
            refused.ends_with("write it like http://host:8086?db=metrics"),
            "{refused}"
        );
    }
}
