//! What happened in a run, and what nobody was to judge of it.

use super::Screen;
use crate::number::seconds;
use crate::{Event, Recovery, Verdict};

/// Events that the summary lists; the others are counted.
const EVENTS: usize = 6;

/// What a scenario that names SLOs of its own may have left out: the defaults of one that names none.
const DEFAULTS: [&str; 3] = ["loss", "failure-ratio", "connected"];

impl Screen {
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
        Some(Recovery { after_s: None }) => " (not recovered)".to_owned(),
        None => String::new(),
    };
    match event.until_s {
        Some(until) => format!("{} {:.0}-{until:.0} s{recovered}", event.kind, event.t_s),
        None => format!("{} {:.0} s{recovered}", event.kind, event.t_s),
    }
}

/// The defaults that no rule stands for, as the end of a line; empty if there is none.
pub(super) fn unjudged(verdict: &Verdict, has_backend: bool) -> String {
    let has = |name: &str| verdict.rules.iter().any(|rule| rule.rule == name);
    let can_be = |name: &str| has_backend || name != "loss";
    let missing = DEFAULTS.into_iter();
    let missing: Vec<&str> = missing.filter(|name| can_be(name) && !has(name)).collect();
    if missing.is_empty() {
        return String::new();
    }
    format!("; no SLO on {}", missing.join(", "))
}
