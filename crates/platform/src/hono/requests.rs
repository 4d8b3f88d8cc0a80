//! Requests of a device.

use std::fmt::Write as _;

use crate::request::{Asking, Method, Request, Segments};

/// For how many seconds a device waits for a command.
pub(super) const TTD: &str = "hono-ttd";
/// Result of a command, as a status of HTTP.
pub(super) const COMMAND_STATUS: &str = "hono-cmd-status";
/// Says that there is no body on purpose.
pub(super) const EMPTY: &str = "empty";

/// Endpoint of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Telemetry: at least once where it is confirmable, else at most once.
    Telemetry,
    /// Events, which have to be confirmable.
    Event,
}

/// Role of a link on the platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Who {
    /// A device that is known by its credentials.
    Device,
    /// A gateway that is known by its credentials, and names its devices.
    Gateway,
    /// Somebody without credentials, who names tenant and device.
    Nobody,
}

impl Endpoint {
    /// The word that it has in a path; the short one where `is_short`.
    pub const fn word(self, is_short: bool) -> &'static str {
        match (self, is_short) {
            (Self::Telemetry, false) => "telemetry",
            (Self::Telemetry, true) => "t",
            (Self::Event, false) => "event",
            (Self::Event, true) => "e",
        }
    }

    /// The endpoint of a word, and whether that is the short one.
    pub(super) fn named(word: &str) -> Option<(Self, bool)> {
        let all = [Self::Telemetry, Self::Event].into_iter();
        let mut all = all.flat_map(|it| [(it, false), (it, true)]);
        all.find(|(endpoint, is_short)| endpoint.word(*is_short) == word)
    }
}

/// The path of an endpoint, as the template that stands where a stream names none.
pub(super) const fn resource(endpoint: Endpoint, who: Who) -> &'static str {
    match (endpoint, who) {
        (Endpoint::Telemetry, Who::Device) => "telemetry",
        (Endpoint::Telemetry, Who::Gateway) => "telemetry//${id}",
        (Endpoint::Telemetry, Who::Nobody) => "telemetry/${tenant}/${id}",
        (Endpoint::Event, Who::Device) => "event",
        (Endpoint::Event, Who::Gateway) => "event//${id}",
        (Endpoint::Event, Who::Nobody) => "event/${tenant}/${id}",
    }
}

/// Makes a request of a message. The method is POST if the path names no device, else PUT.
pub(super) fn ask<'a>(asking: &Asking<'a>, query: &'a mut String) -> Request<'a> {
    query.clear();
    let is_empty = asking.payload.is_empty();
    if is_empty {
        query.push_str(EMPTY);
    }
    if let Some(ttd_s) = asking.ttd_s {
        query.push_str(if is_empty { "&" } else { "" });
        // Writing to a string cannot fail.
        let _ = write!(query, "{TTD}={ttd_s}");
    }
    let path = Segments::of(asking.path);
    Request {
        method: method(path.count() == 1),
        path,
        query,
        content_type: asking.content_type.filter(|_| !is_empty),
        headers: &[],
        is_at_least_once: asking.is_at_least_once,
        payload: asking.payload,
    }
}

/// POST for what is the device's own, else PUT.
pub(super) const fn method(is_own: bool) -> Method {
    if is_own { Method::Post } else { Method::Put }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TELEMETRY: Asking<'static> = Asking {
        path: "t",
        payload: b"{\"a\":1}",
        content_type: Some("application/json"),
        is_at_least_once: true,
        ttd_s: Some(10),
        login: "",
    };

    /// The first step of the reference's worked example.
    #[test]
    fn a_device_that_waits_for_a_command_says_for_how_long() {
        let mut query = "left over".to_owned();
        let request = ask(&TELEMETRY, &mut query);
        assert_eq!(request.method, Method::Post);
        assert!(request.path.eq(["t"]));
        assert!(request.parameters().eq(["hono-ttd=10"]));
        assert_eq!(request.content_type, Some("application/json"));
        assert!(request.is_at_least_once);
        assert_eq!(request.payload, TELEMETRY.payload);
    }

    #[test]
    fn who_names_a_device_puts() {
        for path in ["telemetry//d-2", "e/t1/d-2"] {
            let mut query = String::new();
            let asking = Asking {
                path,
                ttd_s: None,
                ..TELEMETRY
            };
            let request = ask(&asking, &mut query);
            assert_eq!(request.method, Method::Put, "{path}");
            assert_eq!(request.path.count(), 3, "{path}");
            assert_eq!(request.parameters().count(), 0, "{path}");
        }
    }

    #[test]
    fn an_empty_message_says_that_it_is_one() {
        let mut query = String::new();
        let empty = Asking {
            payload: b"",
            ..TELEMETRY
        };
        let request = ask(&empty, &mut query);
        assert!(request.parameters().eq(["empty", "hono-ttd=10"]));
        assert_eq!(request.content_type, None);
    }

    #[test]
    fn every_endpoint_has_two_words() {
        for endpoint in [Endpoint::Telemetry, Endpoint::Event] {
            for is_short in [false, true] {
                let word = endpoint.word(is_short);
                assert_eq!(Endpoint::named(word), Some((endpoint, is_short)));
            }
            for who in [Who::Device, Who::Gateway, Who::Nobody] {
                let word = resource(endpoint, who).split('/').next();
                assert_eq!(word, Some(endpoint.word(false)));
            }
        }
        assert_eq!(Endpoint::named("command_response"), None);
    }
}
