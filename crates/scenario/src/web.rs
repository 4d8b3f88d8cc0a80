//! Addresses of HTTP services, as URLs write them (RFC 9110 section 4.2).

use muster_plan::WebAddress;

use crate::endpoint::{shown, split};
use crate::units::Unreadable;

/// Reads `https://host`, `http://[address]:port/path` and the like.
///
/// # Errors
/// Anything else, also user names, queries and port 0.
pub(crate) fn read(url: &str) -> Result<WebAddress, Unreadable> {
    let bad = |what: &str| Unreadable {
        what: format!("`{}` {what}", shown(url)),
        help: "such as https://gateway.example:8080/api/v1".to_owned(),
    };
    let (is_tls, rest) = match url.split_once("://") {
        Some(("https", rest)) => (true, rest),
        Some(("http", rest)) => (false, rest),
        Some(_) | None => return Err(bad("is no address of an HTTP service")),
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err(Unreadable {
            help: "remove it; `provision` has the keys `user` and `password`".to_owned(),
            ..bad("holds a user name, which goes into no URL")
        });
    }
    if path.contains(['?', '#']) || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(bad("has more than a path behind its host"));
    }
    let (host, port) = split(authority).ok_or_else(|| bad("is no address"))?;
    if host.is_empty() {
        return Err(bad("has no host"));
    }
    let port = match port.map(str::parse) {
        None => None,
        Some(Ok(port)) if port > 0 => Some(port),
        Some(Ok(_) | Err(_)) => return Err(bad("has no port from 1 to 65535")),
    };
    Ok(WebAddress {
        is_tls,
        host: host.to_owned(),
        port,
        path: path.trim_end_matches('/').to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        for (url, printed) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("https://gateway.example/", "https://gateway.example"),
            ("http://[::1]:80/a/b/", "http://[::1]:80/a/b"),
            (
                "https://h/iot/core/api/v1/tenant/7",
                "https://h/iot/core/api/v1/tenant/7",
            ),
        ] {
            assert_eq!(read(url).unwrap().to_string(), printed);
        }
    }

    #[test]
    fn a_password_in_an_address_is_not_shown() {
        let refused = read("https://me:hun@ter2@h:1/v1").unwrap_err();
        let what = "`***@h:1/v1` holds a user name, which goes into no URL";
        assert_eq!(refused.what, what);
        assert!(refused.help.contains("`password`"), "{}", refused.help);
        let slash = read("https://me:hun/ter2@h").unwrap_err();
        assert_eq!(slash.what, "`***@h` has no port from 1 to 65535");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in [
            "gateway.example",
            "mqtt://h",
            "http://",
            "http://:80",
            "http://h:0",
            "http://h:x",
            "http://h:70000",
            "http://a:b@h",
            "http://h?x=1",
            "http://h/a#b",
            "http://h/a b",
            "http://a b",
            "http://::1",
        ] {
            assert!(read(url).is_err(), "{url}");
        }
    }
}
