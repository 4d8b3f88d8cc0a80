//! The question of AWS IoT whether an address wants its messages.
//!
//! Before a rule may push to a URL, AWS IoT posts a confirmation there, whose `enableUrl` somebody must open. Muster
//! opens no address that it is sent; it answers, and names the address in an event.

use muster_protocol::http::Head;

/// The header that marks the messages of AWS IoT that are none of a device.
const TYPE: &str = "x-amz-rules-engine-message-type";
/// Its value in a confirmation.
const CONFIRMATION: &[u8] = b"DestinationConfirmation";
/// Longest address that is named.
const URL_MAX: usize = 2_048;

/// Returns true if a request asks for a confirmation.
pub(super) fn is_asked(head: &Head<'_>) -> bool {
    let value = head.field(TYPE);
    value.is_some_and(|value| value.eq_ignore_ascii_case(CONFIRMATION))
}

/// A question as it is reported.
pub(super) fn in_words(body: &[u8]) -> String {
    match enable_url(body) {
        Some(url) => format!("AWS IoT asks whether it wants messages: open {url} to confirm it"),
        None => {
            "AWS IoT asks whether it wants messages, without an address that confirms it".to_owned()
        }
    }
}

/// The address that confirms, from the body of the question; none if the body has none that can be named.
fn enable_url(body: &[u8]) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let url = body.get("enableUrl")?.as_str()?;
    let is_plain = url.len() <= URL_MAX && url.bytes().all(|byte| byte.is_ascii_graphic());
    (is_plain && url.starts_with("https://")).then(|| url.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_address_over_https_without_blanks_is_named() {
        let url = "https://iot.eu-central-1.amazonaws.com/confirmdestination/Abc";
        let body =
            format!("{{\"arn\":\"a\",\"confirmationToken\":\"Abc\",\"enableUrl\":\"{url}\"}}");
        assert_eq!(enable_url(body.as_bytes()).as_deref(), Some(url));
        for url in ["http://h/x", "https://h/ x", "https://h/\\u001b[31m", ""] {
            let body = format!("{{\"enableUrl\":\"{url}\"}}");
            assert_eq!(enable_url(body.as_bytes()), None, "{url}");
        }
        assert_eq!(enable_url(b"no JSON"), None);
    }
}
