//! Addresses, as URLs write them (RFC 3986 section 3.2).

use crate::plan::{Endpoint, Scheme};
use crate::units::Unreadable;

/// The port that is registered for MQTT.
const DEFAULT_PORT: u16 = 1883;

/// Reads `mqtt://host`, `mqtt://host:port` or `mqtt://[address]:port`.
///
/// # Errors
/// Anything else, also user names, paths and queries, which an endpoint has no use for.
pub(crate) fn read(url: &str) -> Result<Endpoint, Unreadable> {
    let bad = |what: &str, help: &str| Unreadable {
        what: format!("`{url}` {what}"),
        help: help.to_owned(),
    };
    let help = "such as mqtt://broker.example:1883";
    let rest = url
        .strip_prefix("mqtt://")
        .ok_or_else(|| bad("is no address", help))?;
    if rest.contains('@') {
        let help = "use the keys for user name and password";
        return Err(bad("holds a user name", help));
    }
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.contains(['/', '?', '#']) {
        return Err(bad("has a path", help));
    }
    let (host, port) = split(rest).ok_or_else(|| bad("is no address", help))?;
    let is_host = !host.is_empty() && host.chars().all(|c| !c.is_whitespace() && !c.is_control());
    if !is_host {
        return Err(bad("has no host", help));
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => port
            .parse()
            .map_err(|_| bad("has no port from 0 to 65535", help))?,
    };
    Ok(Endpoint {
        scheme: Scheme::Mqtt,
        host: host.to_owned(),
        port,
    })
}

fn split(authority: &str) -> Option<(&str, Option<&str>)> {
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, port) = rest.split_once(']')?;
        return match port {
            "" => Some((host, None)),
            port => Some((host, Some(port.strip_prefix(':')?))),
        };
    }
    match authority.split_once(':') {
        None => Some((authority, None)),
        Some((_, port)) if port.contains(':') => None,
        Some((host, port)) => Some((host, Some(port))),
    }
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
        ] {
            assert_eq!(read(url).unwrap().to_string(), printed);
        }
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
            "mqtt://::1",
            "mqtt://[::1",
            "mqtt://[::1]1883",
            "mqtt://a b",
        ] {
            assert!(read(url).is_err(), "{url}");
        }
    }
}
