//! Addresses, as URLs write them (RFC 3986 section 3.2).

use http::uri::Authority;
use muster_plan::{Endpoint, MASK, PathUse, Scheme};

use crate::units::Unreadable;

/// The path at which brokers serve MQTT over WebSocket, unless the address says another.
const DEFAULT_PATH: &str = "/mqtt";

/// Reads `mqtt://host`, `mqtts://host:port`, `ws://[address]:port/path` and the like.
///
/// # Errors
/// Anything else, also user names, and paths where nothing has a use for one.
pub(crate) fn read(url: &str) -> Result<Endpoint, Unreadable> {
    let backend = scheme(url).and_then(|scheme| scheme.spec().backend);
    let first = |servers: Vec<Endpoint>| servers.into_iter().next();
    match backend.is_some_and(|it| it.has_servers) {
        true => servers(url).map(first)?.ok_or_else(|| no_host(url)),
        false => one(url),
    }
}

/// The scheme of an address; none where it has none that is known.
pub(crate) fn scheme(url: &str) -> Option<Scheme> {
    let (name, _) = url.split_once("://")?;
    Scheme::named(name)
}

/// Reads `kafka://host:port,host:port`: several servers of one cluster.
///
/// # Errors
/// As [`read`].
pub(crate) fn servers(url: &str) -> Result<Vec<Endpoint>, Unreadable> {
    let Some((scheme, hosts)) = url.split_once("://") else {
        return Ok(vec![one(url)?]);
    };
    let server = |host: &str| one(&format!("{scheme}://{}", host.trim()));
    hosts.split(',').map(server).collect()
}

fn no_host(url: &str) -> Unreadable {
    Unreadable {
        what: format!("`{url}` has no host"),
        help: "such as kafka://broker.example:9092".to_owned(),
    }
}

/// An address as messages show it: a login before an `@` and a query may hold a password.
pub(crate) fn shown(url: &str) -> String {
    let (address, query) = match url.split_once('?') {
        // The password may hold the `?`, or the query the `@`.
        Some((_, query)) if query.contains('@') => return MASK.to_owned(),
        Some((address, _)) => (address, format!("?{MASK}")),
        None => (url, String::new()),
    };
    match address.rsplit_once('@') {
        Some((_, place)) => format!("{MASK}@{place}{query}"),
        None => format!("{address}{query}"),
    }
}

fn one(url: &str) -> Result<Endpoint, Unreadable> {
    let bad = |what: &str, help: &str| Unreadable {
        what: format!("`{}` {what}", shown(url)),
        help: help.to_owned(),
    };
    let parts = url.split_once("://");
    let parts = parts.and_then(|(name, rest)| Some((Scheme::named(name)?, rest)));
    let (scheme, rest) = parts.ok_or_else(|| bad("is no address", &example(Scheme::Mqtt)))?;
    let help = &example(scheme);
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if authority.contains('@') {
        let help = "remove it: a device logs in by `credential` of its fleet, a consumer by `user` and \
                    `password` of its backend";
        return Err(bad("holds a user name", help));
    }
    let path = path_of(scheme, path).map_err(|(what, help)| bad(what, help))?;
    let (host, port) = split(authority).ok_or_else(|| bad("is no address", help))?;
    let host = match authority.starts_with('[') {
        true => literal(host).map_err(|(what, help)| bad(what, help))?,
        false => host.to_owned(),
    };
    if host.is_empty() {
        return Err(bad("has no host", help));
    }
    let port = match port {
        None => scheme.default_port(),
        Some(port) => port
            .parse()
            .map_err(|_| bad("has no port from 0 to 65535", help))?,
    };
    Ok(Endpoint {
        scheme,
        host,
        port,
        path,
    })
}

/// An address of this scheme.
fn example(scheme: Scheme) -> String {
    let host = match scheme.spec().path {
        PathUse::Prefix => "api.example",
        PathUse::None(_) | PathUse::Resource => "broker.example",
    };
    let (name, port) = (scheme.name(), scheme.default_port());
    format!("such as {name}://{host}:{port}")
}

/// An IPv6 address as it stands between brackets, its zone behind `%25` (RFC 6874); what is wrong with
/// it, and what would be right.
fn literal(text: &str) -> Result<String, (&'static str, &'static str)> {
    let (address, zone) = match text.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (text, None),
    };
    let is_part = |c: char| c.is_ascii_hexdigit() || ":.".contains(c);
    if address.matches(':').count() < 2 || !address.chars().all(is_part) {
        return Err((
            "has no IPv6 address between its brackets",
            "such as mqtt://[::1]:1883",
        ));
    }
    let Some(zone) = zone else {
        return Ok(address.to_owned());
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    match zone.strip_prefix("25") {
        Some(zone) if !zone.is_empty() && zone.chars().all(is_plain) => {
            Ok(format!("{address}%{zone}"))
        }
        Some(_) | None => Err((
            "has no zone behind the `%` of its address",
            "write `%25` and the interface, such as mqtt://[fe80::1%25eth0]:1883 (RFC 6874)",
        )),
    }
}

/// The path of an address; what is wrong with it, and what would be right.
fn path_of(scheme: Scheme, path: &str) -> Result<String, (&'static str, &'static str)> {
    match (scheme.spec().path, path) {
        (PathUse::None(_), "" | "/") => Ok(String::new()),
        (PathUse::None(help), _) => Err(("has a path", help)),
        (PathUse::Resource, "") => Ok(DEFAULT_PATH.to_owned()),
        (PathUse::Resource, path) if is_path(path) => Ok(path.to_owned()),
        (PathUse::Resource, _) => Err((
            "has no path of a request",
            "such as ws://broker.example/mqtt",
        )),
        (PathUse::Prefix, path) => match path.strip_suffix('/').unwrap_or(path) {
            "" => Ok(String::new()),
            path if is_path(path) && !path.contains('?') => Ok(path.to_owned()),
            _ => Err((
                "has more than a path behind its host",
                "such as https://api.example/v1",
            )),
        },
    }
}

/// Returns true for a path of a request, which may have a query.
fn is_path(path: &str) -> bool {
    let is_graphic = path.bytes().all(|byte| byte.is_ascii_graphic());
    path.starts_with('/') && is_graphic && !path.contains('#')
}

/// Host and port of an authority (RFC 3986 section 3.2), the host without brackets; none if it is no such
/// thing.
pub(crate) fn split(authority: &str) -> Option<(&str, Option<&str>)> {
    let checked: Authority = authority.parse().ok()?;
    let (host, port) = authority.split_at(checked.host().len());
    let port = match port {
        "" => None,
        port => Some(port.strip_prefix(':')?),
    };
    Some((host.trim_matches(['[', ']']), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        for (url, printed) in [
            ("mqtt://127.0.0.1:0", "mqtt://127.0.0.1:0"),
            ("mqtt://broker.example", "mqtt://broker.example:1883"),
            ("mqtt://[::1]:1884/", "mqtt://[::1]:1884"),
            ("mqtt://[::1]", "mqtt://[::1]:1883"),
            ("mqtts://broker.example", "mqtts://broker.example:8883"),
            ("ws://broker.example", "ws://broker.example:80/mqtt"),
            ("ws://[::1]:8080/", "ws://[::1]:8080/"),
            ("wss://h/a/b?c=1", "wss://h:443/a/b?c=1"),
            ("http://api.example", "http://api.example:80"),
            ("https://api.example/v1/", "https://api.example:443/v1"),
            ("http://[::1]:8080/a/b", "http://[::1]:8080/a/b"),
            (
                "mqtt://[fe80::1%25eth0]:1884",
                "mqtt://[fe80::1%25eth0]:1884",
            ),
        ] {
            assert_eq!(read(url).unwrap().to_string(), printed);
        }
    }

    #[test]
    fn a_zone_is_the_systems_alone() {
        let endpoint = read("ws://[fe80::1%25eth0]").unwrap();
        assert_eq!(endpoint.host, "fe80::1%eth0");
        assert_eq!(endpoint.authority_without_zone(), "[fe80::1]:80");
        assert_eq!(endpoint.socket_authority(), "[fe80::1%eth0]:80");
    }

    #[test]
    fn a_wrong_address_is_answered_with_one_of_its_scheme() {
        for (url, help) in [
            ("http://127.0.0.1:99999", "such as http://api.example:80"),
            ("mqtts://h:x", "such as mqtts://broker.example:8883"),
        ] {
            assert_eq!(read(url).unwrap_err().help, help);
        }
        let help = read("http://me:hunter2@h").unwrap_err().help;
        assert!(help.contains("`credential` of its fleet"), "{help}");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in [
            "mqtt://",
            "mqtt://:1883",
            "mqtt://h:70000",
            "mqtt://h:x",
            "mqtt://a:b@h",
            "mqtt://h/topic",
            "mqtts://h/topic",
            "mqtt://::1",
            "mqtt://[::1",
            "mqtt://[::1]1883",
            "mqtt://a b",
            "ws://h/a b",
            "ws://h#x",
            "ws://h?x",
            "ws://a@h/mqtt",
            "http://h/a?b=c",
            "http://h?b",
            "https://h/a#b",
            "http://h/a b",
            "http://me:hunter2@h/a",
            "gopher://h",
            "mqtt://[h]",
            "mqtt://[fe80::1%eth0]",
            "mqtt://[fe80::1%25]",
            "mqtt://[fe80::1%25e/0]",
        ] {
            assert!(read(url).is_err(), "{url}");
        }
    }
}
