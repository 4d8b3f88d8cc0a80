//! What was refused, and in which words: messages by the application, links by the target.

use muster_model::Reason;
use muster_protocol::mqtt::Malformed;

/// Codes of which the first text is kept: more than a platform has for one kind of message.
const CODES_MAX: usize = 16;
/// Bytes of a text that are kept.
const TEXT_MAX: usize = 200;

/// The first text of each code.
#[derive(Debug, Default)]
pub struct Refusals {
    codes: Vec<Reason>,
    untold: Vec<String>,
    links: Vec<(&'static str, Reason)>,
    untold_links: Vec<String>,
    /// Other reasons of a link that is not up that were noted.
    noted: Vec<&'static str>,
    /// Causes for which the platform has given a reason string.
    said: Vec<String>,
    untold_said: Vec<(String, String)>,
    limit: Option<String>,
    has_lower_qos: bool,
    untold_lower_qos: Option<String>,
    has_takeover: bool,
    untold_takeover: Option<String>,
}

impl Refusals {
    /// A message was rejected; `text` is what was said, as it stands.
    pub(crate) fn note(&mut self, code: Reason, text: &[u8]) {
        if self.codes.contains(&code) || self.codes.len() == CODES_MAX {
            return;
        }
        self.codes.push(code);
        let text = String::from_utf8_lossy(&text[..text.len().min(TEXT_MAX)]);
        self.untold.push(format!("code {code}: {text}"));
    }

    /// A link was refused; `name` is the device's, asked for once a cause.
    pub(crate) fn note_link(
        &mut self,
        packet: &'static str,
        reason: Reason,
        name: impl FnOnce() -> String,
    ) {
        if self.links.contains(&(packet, reason)) || self.links.len() == CODES_MAX {
            return;
        }
        self.links.push((packet, reason));
        let (name, why) = (name(), reason.in_words());
        self.untold_links.push(format!(
            "device `{name}`: {packet} refused with {why}; others like it are not told"
        ));
    }

    /// A link did not come up for this reason; `text` is asked for once a reason.
    pub(crate) fn note_once(&mut self, reason: &'static str, text: impl FnOnce() -> String) {
        if !self.noted.contains(&reason) {
            self.noted.push(reason);
            self.untold_links.push(text());
        }
    }

    /// A subscription was granted at a lower QoS than was asked for; `text` is asked for once.
    pub(crate) fn note_lower_qos(&mut self, text: impl FnOnce() -> String) {
        if !std::mem::replace(&mut self.has_lower_qos, true) {
            self.untold_lower_qos = Some(text());
        }
    }

    /// The first subscription that was granted at a lower QoS than was asked for, once.
    pub fn take_lower_qos(&mut self) -> Option<String> {
        self.untold_lower_qos.take()
    }

    /// Another client seems to use the client id of a device; `text` is asked for once.
    pub(crate) fn note_takeover(&mut self, text: impl FnOnce() -> String) {
        if !std::mem::replace(&mut self.has_takeover, true) {
            self.untold_takeover = Some(text());
        }
    }

    /// The first device whose client id another client seems to use, once.
    pub fn take_takeover(&mut self) -> Option<String> {
        self.untold_takeover.take()
    }

    /// The platform gave a reason string for a cause.
    pub(crate) fn note_said(&mut self, cause: &dyn std::fmt::Display, text: &str) {
        let cause = cause.to_string();
        if self.said.contains(&cause) || self.said.len() == CODES_MAX {
            return;
        }
        self.said.push(cause.clone());
        let text = text.chars().take(TEXT_MAX).collect();
        self.untold_said.push((cause, text));
    }

    /// The platform's own words (reason strings of MQTT 5) for causes by which links ended or were
    /// refused, the first of each cause, since the last call.
    pub fn take_said(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.untold_said)
    }

    /// A packet was larger than devices receive.
    pub(crate) fn note_limit(&mut self, why: &Malformed) {
        self.limit
            .get_or_insert_with(|| format!("a device got {why}"));
    }

    /// The first limit of ours that a packet exceeded since the last call.
    pub fn take_limit(&mut self) -> Option<String> {
        self.limit.take()
    }

    /// The first device of each cause for which the target refused links, since the last call.
    pub fn take_links(&mut self) -> Vec<String> {
        std::mem::take(&mut self.untold_links)
    }

    /// The words of the application for messages that it rejected, the first text of each code, since
    /// the last call.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.untold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn application(code: u16) -> Reason {
        Reason::Application(code)
    }

    #[test]
    fn the_first_device_of_each_cause_is_named_once() {
        let mut refusals = Refusals::default();
        let bad = Reason::Mqtt(0x86);
        for (packet, name) in [("CONNECT", "a"), ("CONNECT", "b"), ("SUBSCRIBE", "c")] {
            refusals.note_link(packet, bad, || name.to_owned());
        }
        let told = refusals.take_links();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].starts_with("device `a`: CONNECT refused with 0x86"),
            "{told:?}"
        );
        assert!(told[1].starts_with("device `c`: SUBSCRIBE"), "{told:?}");
        assert!(refusals.take_links().is_empty());
    }

    #[test]
    fn the_first_request_without_an_answer_is_told_once() {
        let mut refusals = Refusals::default();
        refusals.note_once("SUBSCRIBE", || "link `a`".to_owned());
        refusals.note_once("SUBSCRIBE", || panic!("the first is enough"));
        refusals.note_once("announcement", || "link `b`".to_owned());
        assert_eq!(refusals.take_links(), ["link `a`", "link `b`"]);
        refusals.note_once("SUBSCRIBE", || panic!("it was told"));
        assert!(refusals.take_links().is_empty());
    }

    #[test]
    fn the_first_text_of_each_code_is_told_once() {
        let mut refusals = Refusals::default();
        refusals.note(application(404), b"[\"no such sensor\"]");
        refusals.note(application(404), b"[\"another\"]");
        refusals.note(application(500), &[0xff; 1_000]);
        let told = refusals.take();
        assert_eq!(told[0], "code 404: [\"no such sensor\"]");
        assert!(told[1].starts_with("code 500: ") && told[1].len() < 1_000);
        refusals.note(application(404), b"x");
        assert!(refusals.take().is_empty());
        (0..100).for_each(|code| refusals.note(application(code), b""));
        assert_eq!(refusals.take().len(), CODES_MAX - 2);
    }
}
