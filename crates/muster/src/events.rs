//! What happened in a run, from when to when, read from its windows and its incidents.

use std::collections::BTreeMap;

use muster_cluster::Incidents;
use muster_conduct::Trouble;
use muster_measure::{Flow, Phase, SecondRow, State, Summary, WindowDelta};
use serde::{Deserialize, Serialize};

/// Seconds without one of the things that happen all the time, before it is called an event.
const GAP_MIN: u32 = 2;

/// An event in seconds since T0.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct NotedEvent {
    pub(crate) t_s: f64,
    pub(crate) until_s: Option<f64>,
    pub(crate) kind: String,
    pub(crate) detail: String,
}

/// An incident of the generator or its consumers as an event.
pub(crate) fn of_incident(incident: &Incidents) -> NotedEvent {
    let (kind, detail) = match &incident.trouble {
        Trouble::Limit(what) => ("generator-limit", what),
        Trouble::ConsumerAway(what) => ("consumer-away", what),
        Trouble::ConsumerLost(what) => ("consumer-lost", what),
        Trouble::ConsumerBack(what) => ("consumer-back", what),
        Trouble::ConsumerRefused(what) => ("consumer-refused", what),
        Trouble::Failed(what) => ("process-lost", what),
    };
    NotedEvent {
        t_s: incident.at.as_secs_f64(),
        until_s: None,
        kind: kind.to_owned(),
        detail: detail.clone(),
    }
}

/// What the windows tell: when links were down, and when the target was silent.
pub(crate) fn of_series(summary: &Summary, windows: &WindowDelta) -> Vec<NotedEvent> {
    let mut events = links_down(summary, windows);
    events.extend(gaps(
        summary,
        "no-answer",
        "no message was answered",
        |row| {
            (
                row.flow.sent > 0 || row.offered.unwrap_or(0) > 0,
                answered(&row.flow) > 0,
            )
        },
    ));
    if summary.run.rates.arrived.is_some() {
        events.extend(gaps(
            summary,
            "no-arrival",
            "nothing arrived at the backend",
            |row| {
                let arrived = row.arrivals.first().map_or(0, |arrival| arrival.arrived);
                (answered(&row.flow) > 0, arrived > 0)
            },
        ));
    }
    events
}

/// Messages that ended with an answer.
pub(crate) fn answered(flow: &Flow) -> u64 {
    flow.of(State::Accepted) + flow.of(State::Rejected)
}

/// Stretches of the measured phase in which something was wanted and did not happen.
fn gaps(
    summary: &Summary,
    kind: &str,
    detail: &str,
    wanted_and_happened: impl Fn(&SecondRow) -> (bool, bool),
) -> Vec<NotedEvent> {
    let has_answers = summary.run.latency.response.is_some() || kind == "no-arrival";
    let mut events = Vec::new();
    let mut since = None;
    let rows = summary
        .run
        .series
        .iter()
        .filter(|row| row.phase == Phase::Measure && has_answers);
    for row in rows.filter(|row| row.is_whole) {
        let (is_wanted, happened) = wanted_and_happened(row);
        if is_wanted && !happened {
            since.get_or_insert(row.second);
        } else if let Some(from) = since.take() {
            push(&mut events, (from, row.second), kind, detail);
        }
    }
    if let Some(from) = since {
        let until = summary.timeline.settle.second().max(from);
        push(&mut events, (from, until), kind, detail);
    }
    events
}

fn push(events: &mut Vec<NotedEvent>, (from, until): (u32, u32), kind: &str, detail: &str) {
    if until >= from + GAP_MIN {
        events.push(NotedEvent {
            t_s: f64::from(from),
            until_s: Some(f64::from(until)),
            kind: kind.to_owned(),
            detail: detail.to_owned(),
        });
    }
}

/// Stretches in which links that had been up were down.
fn links_down(summary: &Summary, windows: &WindowDelta) -> Vec<NotedEvent> {
    let mut changes: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for ((_, key), window) in &windows.links {
        let change = changes.entry(key.second).or_default();
        change.0 += window.counts.connected;
        change.1 += window.counts.disconnects.total();
    }
    let mut events = Vec::new();
    let (mut up, mut lost, mut since) = (0u64, 0u64, None);
    let full = summary.run.links.up_at_start;
    for (second, (connected, disconnected)) in changes {
        up = (up + connected).saturating_sub(disconnected);
        if disconnected > 0 {
            lost += disconnected;
            since.get_or_insert(second);
        }
        if up >= full
            && let Some(from) = since.take()
        {
            events.push(down(from, Some(second + 1), std::mem::take(&mut lost)));
        }
    }
    events.extend(since.map(|from| down(from, None, lost)));
    events
}

fn down(from: u32, until: Option<u32>, lost: u64) -> NotedEvent {
    let detail = match until {
        Some(_) => format!("{lost} links ended; all were up again at the end of this"),
        None => format!("{lost} links ended; not all came back"),
    };
    NotedEvent {
        t_s: f64::from(from),
        until_s: until.map(f64::from),
        kind: "links-down".to_owned(),
        detail,
    }
}
