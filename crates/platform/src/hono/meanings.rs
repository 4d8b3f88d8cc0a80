//! Meaning of the codes of Hono's CoAP adapter.

use crate::request::Status;

/// Each refusal, and what to look at. Hono maps the statuses of HTTP digit by digit.
const HINTS: [(Status, &str); 9] = [
    (
        Status::new(4, 0),
        "Hono cannot take such a request: an event that is not confirmable, a body that is not of its \
         content type, an empty body without `empty`, or a reply whose request id or status is not right",
    ),
    (
        Status::new(4, 1),
        "no credentials, where the tenant's CoAP adapter wants them: use coaps, or give the adapter \
         authenticationRequired=false",
    ),
    (
        Status::new(4, 3),
        "the tenant or its CoAP adapter is disabled, the tenant of the path is not that of the \
         credentials, or the gateway may not act for the device (`via`)",
    ),
    (
        Status::new(4, 4),
        "the tenant or the device is not registered, or is disabled; or there is no such resource: see \
         `muster provision` and `topic`",
    ),
    (Status::new(4, 5), "the resource takes POST and PUT alone"),
    (
        Status::new(4, 13),
        "the payload is above the adapter's maxPayloadSize (2048 bytes unless it was set)",
    ),
    (
        Status::new(4, 29),
        "the tenant's limit of data volume or connection time is reached",
    ),
    (Status::new(5, 0), "an error within Hono: see its log"),
    (
        Status::new(5, 3),
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
            let status = Status::new((code / 100) as u8, (code % 100) as u8);
            assert!(hint(status).is_some(), "{status}");
        }
        assert_eq!(hint(Status::new(2, 4)), None);
    }
}
