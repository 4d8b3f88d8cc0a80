//! The events of a run.

use super::{Screen, WHY_LINES, answers};
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
        if !said.is_empty() {
            self.row("  said", &said);
        }
    }

    /// Links that did not come up, and why: before everything else.
    pub(super) fn causes(&mut self, verdict: &Verdict) {
        for cause in verdict.causes.iter().take(WHY_LINES) {
            self.line(&format!("  {}", cause.text));
        }
        let more = verdict.causes.len().saturating_sub(WHY_LINES);
        if more > 0 {
            self.line(&format!("  and {more} more fleets"));
        }
    }

    /// The events by their kinds, in the order in which they began; the report and the result have their words.
    pub(super) fn happened(&mut self, events: &[Event]) {
        if events.is_empty() {
            return;
        }
        let mut parts: Vec<String> = events.iter().take(EVENTS).map(told).collect();
        let more = events.len().saturating_sub(EVENTS);
        parts.extend((more > 0).then(|| format!("and {more} more")));
        self.row("events", &parts);
    }
}

fn told(event: &Event) -> String {
    let recovered = match event.recovery {
        Some(Recovery {
            after_s: Some(after),
        }) => format!(" (recovered after {})", seconds(Some(after))),
        Some(Recovery { after_s: None }) => " (not recovered while measuring)".to_owned(),
        None => String::new(),
    };
    match event.until_s {
        Some(until) => format!("{} {:.0}-{until:.0} s{recovered}", event.kind, event.t_s),
        None => format!("{} {:.0} s{recovered}", event.kind, event.t_s),
    }
}
