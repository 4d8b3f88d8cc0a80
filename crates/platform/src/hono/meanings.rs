//! Meaning of the codes of Hono's CoAP adapter.

use crate::request::Status;

/// Each refusal, and what to look at. Hono maps the statuses of HTTP digit by digit.
const HINTS: [(Status, &str); 9] = [
    (
        Status(400),
        "Hono cannot take such a request: an event that is not confirmable, a body that is not of its \
         content type, an empty body without `empty`, or a reply whose request id or status is not right",
    ),
    (
        Status(401),
        "no credentials, where the tenant's CoAP adapter wants them: use coaps, or give the adapter \
         authenticationRequired=false",
    ),
    (
        Status(403),
        "the tenant or its CoAP adapter is disabled, the tenant of the path is not that of the \
         credentials, or the gateway may not act for the device (`via`)",
    ),
    (
        Status(404),
        "the tenant or the device is not registered, or is disabled; or there is no such resource: see \
         `muster provision` and `topic`",
    ),
    (Status(405), "the resource takes POST and PUT alone"),
    (
        Status(413),
        "the payload is above the adapter's maxPayloadSize (2048 bytes unless it was set)",
    ),
    (
        Status(429),
        "the tenant's limit of data volume or connection time is reached",
    ),
    (Status(500), "an error within Hono: see its log"),
    (
        Status(503),
        "a service of Hono's or the messaging network did not answer in time; the message may arrive \
         nevertheless",
    ),
];

/// Hint for a handshake without an answer: Hono is silent to unknown clients.
pub(super) const HANDSHAKE_HINT: &str = " Is the tenant? Hono is silent towards each that it does not know: \
     `muster provision` looks whether they are there, and creates them";

/// Returns the meaning of a refusal on this platform, and the setting to check.
pub(super) fn hint(status: Status) -> Option<&'static str> {
    let known = HINTS.iter().find(|(known, _)| *known == status);
    known.map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes that the reference names, and 4.05 for other methods.
    #[test]
    fn each_code_of_the_adapter_has_a_meaning() {
        for code in [400, 401, 403, 404, 405, 413, 429, 500, 503] {
            assert!(hint(Status(code)).is_some(), "{code}");
        }
        assert_eq!(hint(Status(204)), None);
    }
}
