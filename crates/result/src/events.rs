//! Events of a run with begin and end, from its windows and its incidents.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use muster_conduct::{ConsumerName, ConsumerRefusal, Diagnostic, Incidents, PushRefusal};
use muster_judge::{Warning, WarningKind};
use muster_measure::{LinksSecond, ScopeSummary, Summary, WindowDelta};
use muster_model::{Micros, figure};
use muster_report::{Event, HookRun};

use crate::gaps;

/// Findings on topics before the load, as events and as warnings.
const TOPICS_DIFFER: &str = "topics-differ";
const NEW_TENANT: &str = "new-tenant";
/// Changes of topics by others during the run.
const TOPICS_CHANGED: &str = "topics-changed";
/// The event that says how far two clocks are apart.
pub const CLOCKS_APART: &str = "clocks-apart";
/// The event of counters of the platform whose growth is not known.
pub const COUNTERS_UNREAD: &str = "counters-unread";

/// The event of a part of the target that is gone while it is watched.
pub const MONITOR_ENDED: &str = "monitor-ended";

/// The event of a part of the target that is watched and could not be read.
pub const MONITOR_UNREAD: &str = "monitor-unread";

/// The event of a hook that failed.
const HOOK_FAILED: &str = "hook-failed";

/// The event of metrics that a server outside lacks.
pub const METRICS_LOST: &str = "metrics-lost";

/// The event of a consumer that does not come up.
pub(crate) const CONSUMER_REFUSED: &str = "consumer-refused";

/// Requests to a webhook that were refused.
pub(crate) const PUSH_REFUSED: &str = "push-refused";

/// A subscription was granted at a lower QoS than was asked for.
const LOWER_QOS: &str = "lower-qos";

/// Another client seems to use the client id of a device.
const TAKEN_OVER: &str = "taken-over";

/// The platform's own words for the code of a refusal.
const REJECTING: &str = "rejecting";

/// The platform's own words for a cause.
const REASON_STRING: &str = "reason-string";

/// Two processes work out the beginning of a run from the wall clock, each with an error below this.
const EARLY_MIN: Micros = Micros::from_millis(1);

/// The incidents of a run as events, in their order.
pub(crate) fn of_incidents(incidents: &[Incidents]) -> Vec<Event> {
    let mut events: Vec<Event> = incidents.iter().map(event_of).collect();
    for (at, incident) in incidents.iter().enumerate() {
        if let Diagnostic::ConsumerBack(name) = &incident.diagnostic {
            let before = events[..at].iter_mut().zip(incidents);
            let lasting = before.filter(|(event, cause)| {
                event.until_s.is_none() && absent(&cause.diagnostic) == Some(name)
            });
            for (event, _) in lasting {
                event.until_s = Some(incident.at.as_secs_f64().max(event.t_s));
            }
        }
    }
    events
}

/// The consumer that is absent from an incident on, until it is back.
fn absent(diagnostic: &Diagnostic) -> Option<&ConsumerName> {
    if let Diagnostic::ConsumerAway(absence) | Diagnostic::ConsumerLost { absence, .. } = diagnostic
    {
        Some(&absence.consumer)
    } else {
        None
    }
}

/// The refusals of consumers among the incidents.
pub(crate) fn refusals(incidents: &[Incidents]) -> Vec<ConsumerRefusal> {
    let refusals = incidents.iter().filter_map(|incident| {
        if let Diagnostic::ConsumerRefused(refusal) = &incident.diagnostic {
            Some(refusal.clone())
        } else {
            None
        }
    });
    refusals.collect()
}

/// The requests that webhooks refused among the incidents.
pub(crate) fn pushes_refused(incidents: &[Incidents]) -> Vec<PushRefusal> {
    let refusals = incidents.iter().filter_map(|incident| {
        if let Diagnostic::PushRefused(refusal) = &incident.diagnostic {
            Some(refusal.clone())
        } else {
            None
        }
    });
    refusals.collect()
}

/// An incident of the generator or its consumers as an event.
pub fn event_of(incident: &Incidents) -> Event {
    let since = if let Diagnostic::ConsumerLost { since, .. } = &incident.diagnostic {
        incident.at.min(*since)
    } else {
        incident.at
    };
    let (kind, detail) = match &incident.diagnostic {
        Diagnostic::Limit(what) => ("generator-limit", what.clone()),
        Diagnostic::ConsumerAway(absence) => ("consumer-away", absence.to_string()),
        Diagnostic::ConsumerLost { absence, .. } => ("consumer-lost", absence.to_string()),
        Diagnostic::ConsumerBack(name) => ("consumer-back", name.to_string()),
        Diagnostic::ConsumerRefused(refusal) => (CONSUMER_REFUSED, refusal.to_string()),
        Diagnostic::Rejecting(what) => (REJECTING, what.clone()),
        Diagnostic::Unsendable(what) => ("unsendable", what.clone()),
        Diagnostic::Failed(what) => ("process-lost", what.clone()),
        Diagnostic::NotListed(further) => (
            "not-listed",
            format!("{further} further incidents are not listed"),
        ),
        Diagnostic::Topics(what) => ("topics", what.clone()),
        Diagnostic::TopicsDiffer(what) => (TOPICS_DIFFER, what.clone()),
        Diagnostic::TopicsChanged(what) => (TOPICS_CHANGED, what.clone()),
        Diagnostic::NewTenant(what) => (NEW_TENANT, what.clone()),
        Diagnostic::ConsumerLag(what) => ("consumer-lag", what.clone()),
        Diagnostic::IdleNotices(what) => ("idle-notices", what.clone()),
        Diagnostic::PushRefused(refusal) => (PUSH_REFUSED, refusal.to_string()),
        Diagnostic::NoPushAccepted(what) => (PUSH_REFUSED, what.clone()),
        Diagnostic::PushAbsent(what) => ("push-absent", what.clone()),
        Diagnostic::PushConfirmation(what) => ("push-confirmation", what.clone()),
        Diagnostic::ReceiveBuffer(what) => ("receive-buffer", what.clone()),
        Diagnostic::ReceiveDrop(count) => (
            "receive-drop",
            format!(
                "{} datagrams came for which a receive buffer of ours had no room",
                figure::count(*count)
            ),
        ),
        Diagnostic::Unreachable(what) => ("unreachable", what.clone()),
        Diagnostic::Handshake(what) => ("handshake-failed", what.clone()),
        Diagnostic::LinkRefused(what) => ("device-refused", what.clone()),
        Diagnostic::LowerQos(what) => (LOWER_QOS, what.clone()),
        Diagnostic::TakenOver(what) => (TAKEN_OVER, what.clone()),
        Diagnostic::ReasonString { cause, text } => (REASON_STRING, format!("{cause}: {text}")),
    };
    Event::new(since.as_secs_f64(), kind, detail)
}

/// A hook that was started, as an event.
pub fn event_of_hook(hook: &HookRun) -> Option<Event> {
    let (begin, took) = (hook.t_s?, hook.took_s?);
    let kind = if hook.succeeded() {
        "hook"
    } else {
        HOOK_FAILED
    };
    Some(Event::new(begin, kind, hook.words()).until(begin + took))
}

/// The warnings on hooks that failed, or were not started.
pub(crate) fn hook_warnings(hooks: &[HookRun]) -> impl Iterator<Item = Warning> {
    let failed = hooks.iter().filter(|hook| !hook.succeeded());
    failed.map(|hook| Warning {
        kind: WarningKind::HookFailed,
        scope: "run".to_owned(),
        detail: hook.words(),
    })
}

/// The platform's own words by the cause that they were given for.
pub(crate) fn reason_strings(events: &[Event]) -> BTreeMap<String, String> {
    let said = events.iter().filter_map(|event| match event.kind.as_str() {
        REASON_STRING => Some(event.detail.as_str()),
        REJECTING => event.detail.strip_prefix("code "),
        _ => None,
    });
    let said = said.filter_map(|detail| detail.split_once(": "));
    said.map(|(cause, text)| (cause.to_owned(), text.to_owned()))
        .collect()
}

/// The events that are warnings too: each once, however many consumers noticed it, and a change during
/// the load with the time at which it was noticed first.
pub(crate) fn warnings(events: &[Event]) -> Vec<Warning> {
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    for event in events {
        let kind = match event.kind.as_str() {
            TOPICS_DIFFER => WarningKind::TopicsDiffer,
            NEW_TENANT => WarningKind::NewTenant,
            TOPICS_CHANGED => WarningKind::TopicsChanged,
            LOWER_QOS => WarningKind::LowerQos,
            TAKEN_OVER => WarningKind::TakenOver,
            COUNTERS_UNREAD => WarningKind::CountersUnread,
            METRICS_LOST => WarningKind::MetricsLost,
            _ => continue,
        };
        if !known.insert((&event.kind, &event.detail)) {
            continue;
        }
        let mut detail = event.detail.clone();
        if kind == WarningKind::TopicsChanged {
            let _ = write!(detail, " at {:.0} s", event.t_s);
        }
        found.push(Warning {
            kind,
            scope: "run".to_owned(),
            detail,
        });
    }
    found
}

/// The event for senders and consumers on several clocks; `is_measured` says that the parts noted
/// how far theirs were apart.
pub(crate) fn of_clocks(clocks: &[String], is_measured: bool) -> Option<Event> {
    let amount = if is_measured {
        "as measured over the control channel"
    } else {
        "by an amount that nobody measured"
    };
    (clocks.len() > 1).then(|| {
        let detail = format!(
            "the parts ran on {} hosts, whose clocks may differ {amount}: end-to-end times and lateness of \
             arrivals are not known ({})",
            clocks.len(),
            clocks.join(", ")
        );
        Event::new(0.0, CLOCKS_APART, detail)
    })
}

/// The event for copies that arrived before they were due: only differing clocks do that.
pub(crate) fn of_early(early: Micros) -> Option<Event> {
    (early >= EARLY_MIN).then(|| {
        let detail = format!(
            "copies were seen up to {early} before their messages were due: the clock of those who consumed \
             is behind that of the senders by that at the least; nothing was corrected by it"
        );
        Event::new(0.0, CLOCKS_APART, detail)
    })
}

/// Events that the windows show: links that were down, and silence of the target. In one part of a run
/// nobody knows what should have arrived there.
pub(crate) fn of_series(summary: &Summary, windows: &WindowDelta, is_part: bool) -> Vec<Event> {
    let mut events = links_down(&windows.links_by_second(), summary.run.links.wanted);
    events.extend(draining(summary));
    let answering = summary.streams.iter();
    let answering = answering.filter(|stream| stream.latency.response.is_some());
    let answering: Vec<&ScopeSummary> = answering.collect();
    if !answering.is_empty() {
        events.extend(gaps::without_answers(summary, windows, &answering));
    }
    if summary.run.rates.arrived.is_some() && !is_part {
        events.extend(gaps::without_arrivals(summary));
    }
    events
}

/// From when to when what was kept for devices that were offline came to them.
fn draining(summary: &Summary) -> Option<Event> {
    let reception = summary.run.reception.as_ref();
    let commands = summary.run.command.as_ref();
    let queues = [
        reception.and_then(|of| of.drain.as_ref()),
        commands.and_then(|of| of.drain.as_ref()),
    ];
    let queues = queues.into_iter().flatten().map(|drain| &drain.ledger);
    let began = queues.clone().filter_map(|queue| queue.began).min()?;
    let ended = queues.clone().filter_map(|queue| queue.ended).max()?;
    let drained: u64 = queues.filter_map(|queue| queue.drained).sum();
    let detail = format!(
        "{} messages and commands came that were kept for devices that had been offline",
        figure::count(drained)
    );
    Some(Event::new(began.as_secs_f64(), "draining", detail).until(ended.as_secs_f64()))
}

/// Stretches in which links that had been up were down, until as many are up as ever were before.
fn links_down(seconds: &[LinksSecond], wanted: u64) -> Vec<Event> {
    let mut events = Vec::new();
    let (mut lost, mut since) = (0u64, None);
    let mut full = 0u64;
    for at in seconds {
        full = full.max(at.up).max(at.connected.min(wanted));
        if at.lost > 0 {
            lost += at.lost;
            since.get_or_insert(at.second);
        }
        if at.up >= full
            && let Some(from) = since.take()
        {
            events.push(down(from, Some(at.second + 1), std::mem::take(&mut lost)));
        }
    }
    events.extend(since.map(|from| down(from, None, lost)));
    events
}

fn down(from: u32, until: Option<u32>, lost: u64) -> Event {
    let end = match until {
        Some(_) => "all were up again at the end of this",
        None => "not all came back",
    };
    let event = Event::new(
        from.into(),
        "links-down",
        format!("{lost} links ended; {end}"),
    );
    match until {
        Some(until) => event.until(until.into()),
        None => event,
    }
}

#[cfg(test)]
mod tests {
    use muster_conduct::ConsumerAbsence;
    use muster_model::{ConsumerId, Micros};

    use super::*;

    #[test]
    fn a_list_that_was_cut_is_no_limit_of_the_generator() {
        let event = event_of(&Incidents {
            at: Micros::from_secs(9),
            diagnostic: Diagnostic::NotListed(7),
        });
        assert_eq!(event.kind, "not-listed");
        assert_eq!(event.detail, "7 further incidents are not listed");
    }

    #[test]
    fn a_consumer_was_lost_from_the_last_answer_until_it_was_back() {
        let secs = Micros::from_secs;
        let name = |number| ConsumerName {
            number: ConsumerId(number),
            backend: "b".to_owned(),
            address: "h".to_owned(),
        };
        let absence = |number| ConsumerAbsence {
            consumer: name(number),
            why: "silent".to_owned(),
        };
        let lost = |number, since| Diagnostic::ConsumerLost {
            absence: absence(number),
            since: secs(since),
        };
        let noted = [
            (13, lost(1, 10)),
            (13, lost(10, 11)),
            (20, Diagnostic::ConsumerBack(name(1))),
            (30, Diagnostic::ConsumerAway(absence(1))),
            (31, Diagnostic::ConsumerBack(name(1))),
        ];
        let noted = noted.map(|(at, diagnostic)| Incidents {
            at: secs(at),
            diagnostic,
        });
        let events = of_incidents(&noted);
        let events = events
            .iter()
            .map(|event| (event.kind.as_str(), event.t_s, event.until_s));
        let expected = [
            ("consumer-lost", 10.0, Some(20.0)),
            ("consumer-lost", 11.0, None),
            ("consumer-back", 20.0, None),
            ("consumer-away", 30.0, Some(31.0)),
            ("consumer-back", 31.0, None),
        ];
        assert!(events.eq(expected), "{noted:?}");
    }

    /// Links that came up and ended in each second from 0 on, of 10 that are wanted.
    fn downs(rows: &[(u64, u64)]) -> Vec<(f64, Option<f64>)> {
        let mut up = 0;
        let seconds = (0..).zip(rows).map(|(second, (connected, ended))| {
            up = up + connected - ended;
            LinksSecond {
                second,
                connected: *connected,
                lost: *ended,
                up,
            }
        });
        let seconds: Vec<LinksSecond> = seconds.collect();
        let events = links_down(&seconds, 10);
        events.iter().map(|it| (it.t_s, it.until_s)).collect()
    }

    #[test]
    fn links_are_down_until_as_many_are_up_as_ever_were() {
        assert_eq!(
            downs(&[(10, 0), (0, 4), (3, 0), (1, 0)]),
            [(1.0, Some(4.0))]
        );
        assert_eq!(downs(&[(10, 0), (4, 4)]), [(1.0, Some(2.0))]);
        assert_eq!(downs(&[(8, 0), (0, 1), (1, 0)]), [(1.0, Some(3.0))]);
        assert_eq!(downs(&[(8, 0), (1, 1)]), [(1.0, Some(2.0))]);
        assert_eq!(downs(&[(8, 0), (0, 1), (0, 0)]), [(1.0, None)]);
        let taken_over = [(10, 10), (10, 10), (10, 5), (10, 5)];
        assert_eq!(
            downs(&taken_over),
            [(0.0, Some(4.0))],
            "down at the start, too"
        );
    }

    #[test]
    fn a_change_of_topics_is_one_warning_with_the_time_at_which_it_was_noticed_first() {
        let change = |s, diagnostic| {
            event_of(&Incidents {
                at: Micros::from_secs(s),
                diagnostic,
            })
        };
        let what = |text: &str| Diagnostic::TopicsChanged(text.to_owned());
        let noted = [
            change(31, what("topic `t` was deleted")),
            change(32, what("topic `t` was deleted")),
            change(40, what("topic `t` was created anew with 4 partitions")),
        ];
        let details: Vec<String> = warnings(&noted).into_iter().map(|it| it.detail).collect();
        assert_eq!(
            details,
            [
                "topic `t` was deleted at 31 s",
                "topic `t` was created anew with 4 partitions at 40 s"
            ]
        );
    }
}
