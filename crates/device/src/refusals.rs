//! Refusals and their texts: of messages by the application, of links by the target.

use std::mem::{discriminant, take};

use muster_model::Reason;
use muster_protocol::mqtt::Malformed;

/// Topics of each kind that are noted: more than a platform has codes for one kind of message.
const OF_KIND_MAX: usize = 16;
/// Bytes of a text that are kept.
const TEXT_MAX: usize = 200;

/// Something that is reported once of its kind, with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// The application's first text for each code with which it rejected messages.
    Rejecting(String),
    /// The first device of each cause for which the target refused links.
    LinkRefused(String),
    /// The first subscription that was granted at a lower QoS than was asked for.
    LowerQos(String),
    /// The first device whose client id another client seems to use.
    TakenOver(String),
    /// The cause of links that ended or were refused, with the platform's reason string of MQTT 5, or with
    /// the fault in its bytes.
    ReasonString(String, String),
    /// The first limit of ours that a packet exceeded since the last call.
    Limit(String),
}

/// Subject that is noted once.
#[derive(Debug, PartialEq, Eq)]
enum Topic {
    Code(Reason),
    Link(&'static str, Reason),
    /// A reason for which a link did not come up.
    Reason(&'static str),
    LowerQos,
    TakenOver,
    Cause(String),
    /// A silence that the platform asks for.
    Silence(&'static str),
}

/// The notes of a shard.
#[derive(Debug, Default)]
pub struct Refusals {
    noted: Vec<Topic>,
    notes: Vec<Note>,
}

impl Refusals {
    /// The notes since the last call.
    pub fn take(&mut self) -> Vec<Note> {
        take(&mut self.notes)
    }

    /// Notes a topic; `note` is asked for once.
    fn once(&mut self, topic: Topic, note: impl FnOnce() -> Note) {
        let is_of_kind = |it: &&Topic| discriminant(*it) == discriminant(&topic);
        let is_full = || self.noted.iter().filter(is_of_kind).count() == OF_KIND_MAX;
        if !self.noted.contains(&topic) && !is_full() {
            self.noted.push(topic);
            self.notes.push(note());
        }
    }

    /// A message was rejected; `text` is what was said, as it stands.
    pub(crate) fn note(&mut self, code: Reason, text: &[u8]) {
        self.note_rejected(code, || {
            let text = &text[..text.len().min(TEXT_MAX)];
            String::from_utf8_lossy(text).into_owned()
        });
    }

    /// A message was rejected; `text` is asked for once a code.
    pub(crate) fn note_rejected(&mut self, code: Reason, text: impl FnOnce() -> String) {
        self.once(Topic::Code(code), || {
            let text = text();
            Note::Rejecting(match text.is_empty() {
                true => format!("code {code}, without a text"),
                false => format!("code {code}: {text}"),
            })
        });
    }

    /// A link was refused; `name` is the device's, asked for once a cause.
    pub(crate) fn note_link(
        &mut self,
        packet: &'static str,
        reason: Reason,
        name: impl FnOnce() -> String,
    ) {
        self.once(Topic::Link(packet, reason), || {
            let (name, why) = (name(), reason.in_words());
            Note::LinkRefused(format!(
                "device `{name}`: {packet} refused with {why}; others like it are not reported"
            ))
        });
    }

    /// A link did not come up for this reason; `text` is asked for once a reason.
    pub(crate) fn note_once(&mut self, reason: &'static str, text: impl FnOnce() -> String) {
        self.once(Topic::Reason(reason), || Note::LinkRefused(text()));
    }

    /// A subscription was granted at a lower QoS than was asked for; `text` is asked for once.
    pub(crate) fn note_lower_qos(&mut self, text: impl FnOnce() -> String) {
        self.once(Topic::LowerQos, || Note::LowerQos(text()));
    }

    /// Another client seems to use the client id of a device; `text` is asked for once.
    pub(crate) fn note_takeover(&mut self, text: impl FnOnce() -> String) {
        self.once(Topic::TakenOver, || Note::TakenOver(text()));
    }

    /// The platform gave a reason string for a cause, or its bytes show the reason.
    pub(crate) fn note_said(&mut self, cause: &dyn std::fmt::Display, text: &str) {
        let cause = cause.to_string();
        self.once(Topic::Cause(cause.clone()), || {
            Note::ReasonString(cause, text.chars().take(TEXT_MAX).collect())
        });
    }

    /// The platform asks for silence in a way that has to be known; `text` is asked for once a topic.
    pub(crate) fn note_silence(&mut self, topic: &'static str, text: impl FnOnce() -> String) {
        self.once(Topic::Silence(topic), || {
            Note::ReasonString(topic.to_owned(), text())
        });
    }

    /// A packet was larger than devices receive.
    pub(crate) fn note_limit(&mut self, why: &Malformed) {
        if !self.notes.iter().any(|it| matches!(it, Note::Limit(_))) {
            self.notes.push(Note::Limit(format!("a device got {why}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts since the last call.
    fn texts(refusals: &mut Refusals) -> Vec<String> {
        let notes = refusals.take().into_iter();
        let texts = notes.filter_map(|note| match note {
            Note::Rejecting(text) | Note::LinkRefused(text) => Some(text),
            Note::LowerQos(_) | Note::TakenOver(_) | Note::ReasonString(..) | Note::Limit(_) => {
                None
            }
        });
        texts.collect()
    }

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
        let noted = texts(&mut refusals);
        assert_eq!(noted.len(), 2, "{noted:?}");
        assert!(
            noted[0].starts_with("device `a`: CONNECT refused with 0x86"),
            "{noted:?}"
        );
        assert!(noted[1].starts_with("device `c`: SUBSCRIBE"), "{noted:?}");
        assert!(texts(&mut refusals).is_empty());
    }

    #[test]
    fn the_first_request_without_an_answer_is_told_once() {
        let mut refusals = Refusals::default();
        refusals.note_once("SUBSCRIBE", || "link `a`".to_owned());
        refusals.note_once("SUBSCRIBE", || panic!("the first is enough"));
        refusals.note_once("announcement", || "link `b`".to_owned());
        assert_eq!(texts(&mut refusals), ["link `a`", "link `b`"]);
        refusals.note_once("SUBSCRIBE", || panic!("it was told"));
        assert!(texts(&mut refusals).is_empty());
    }

    #[test]
    fn the_first_text_of_each_code_is_told_once() {
        let mut refusals = Refusals::default();
        refusals.note(application(404), b"[\"no such sensor\"]");
        refusals.note(application(404), b"[\"another\"]");
        refusals.note(application(500), &[0xff; 1_000]);
        let noted = texts(&mut refusals);
        assert_eq!(noted[0], "code 404: [\"no such sensor\"]");
        assert!(noted[1].starts_with("code 500: ") && noted[1].len() < 1_000);
        refusals.note(application(404), b"x");
        assert!(texts(&mut refusals).is_empty());
        refusals.note(application(503), b"");
        assert_eq!(texts(&mut refusals), ["code 503, without a text"]);
        (0..100).for_each(|code| refusals.note(application(code), b""));
        assert_eq!(texts(&mut refusals).len(), OF_KIND_MAX - 3);
    }
}
