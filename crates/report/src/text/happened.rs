//! The events of a run.

use super::{Screen, answers};
use crate::number::seconds;
use crate::{Event, Recovery, Verdict};

/// Events that the summary lists; the others are counted.
const EVENTS: usize = 6;

impl Screen {
    /// The platform's own words (reason strings of MQTT 5), each with the cause that they were given for.
    pub(super) fn said(&mut self, events: &[Event]) {
        let said = events.iter().filter(|event| event.kind == "reason-string");
        let said = said.map(|event| match event.detail.split_once(": ") {
            Some((cause, text)) => format!("{}: \"{text}\"", answers::in_words(cause)),
            None => event.detail.clone(),
        });
        let said: Vec<String> = said.collect();
        self.row_of_some("  said", &said);
    }

    /// Links that did not come up, and why: before everything else.
    pub(super) fn causes(&mut self, verdict: &Verdict) {
        let causes = verdict.causes.iter().map(|cause| cause.text.clone());
        self.first_lines(&causes.collect::<Vec<_>>(), " fleets");
    }

    /// The events by their kinds, in the order in which they began; the report and the result have their words.
    pub(super) fn happened(&mut self, events: &[Event]) {
        let mut parts: Vec<String> = events.iter().take(EVENTS).map(line).collect();
        let more = events.len().saturating_sub(EVENTS);
        parts.extend((more > 0).then(|| format!("and {more} more")));
        self.row_of_some("events", &parts);
    }
}

fn line(event: &Event) -> String {
    let recovered = match event.recovery {
        Some(Recovery { after_s: None }) => " (not recovered while measuring)".to_owned(),
        Some(Recovery { after_s }) => format!(" (recovered after {})", seconds(after_s)),
        None => String::new(),
    };
    let until = event.until_s.map(|until| format!("-{until:.0}"));
    let (kind, from, until) = (&event.kind, event.t_s, until.unwrap_or_default());
    format!("{kind} {from:.0}{until} s{recovered}")
}
