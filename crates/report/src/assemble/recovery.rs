//! Recovery of rate and latency after an outage.

use crate::{Event, Recovery, Window};

/// Events in which what was wanted did not happen for a while.
const OUTAGES: [&str; 6] = [
    "no-answer",
    "no-arrival",
    "links-down",
    "consumer-lost",
    "consumer-away",
    "gateway-lost",
];

/// Outages that are read from the windows, so that one that goes on ends with the last measured
/// window.
const GAPS: [&str; 2] = ["no-answer", "no-arrival"];

/// Links that did not all come back: the run is not as before, whatever its rate.
const LINKS_DOWN: &str = "links-down";

/// A rate is back at this part of its usual share of what was due.
const RATE_BACK: f64 = 0.9;
/// A median is back below this multiple of its usual value.
const MEDIAN_BACK: f64 = 2.0;
/// Below this a median is back, whatever its usual value: what differs by less is no outage.
const MEDIAN_FLOOR_US: f64 = 1_000.0;

/// Adds to each outage that began while measuring when it was over. That is not known of one that ended when
/// nothing was measured any more, nor where the run was never outside its outages.
pub(super) fn add(events: &mut [Event], windows: &[Window]) {
    let measured: Vec<&Window> = windows.iter().filter(|w| w.phase == "measure").collect();
    let (Some(first), Some(last)) = (measured.first(), measured.last()) else {
        return;
    };
    let end_s = last.t_s + last.for_s;
    let is_outage = |event: &Event| {
        let began_in_time = (first.t_s..end_s).contains(&event.t_s);
        OUTAGES.contains(&event.kind.as_str()) && began_in_time
    };
    let is_followed = |event: &Event| {
        let is_gap = GAPS.contains(&event.kind.as_str());
        is_gap || event.until_s.is_none_or(|until| until < end_s)
    };
    let spans: Vec<(f64, f64)> = events
        .iter()
        .filter(|event| is_outage(event))
        .map(|event| (event.t_s, event.until_s.unwrap_or(end_s)))
        .collect();
    let usual = Usual::outside(&measured, &spans);
    let outages = events.iter_mut().filter(|event| is_outage(event));
    for event in outages.filter(|event| is_followed(event)) {
        if event.until_s.is_none() && event.kind == LINKS_DOWN {
            event.recovery = Some(Recovery { after_s: None });
            continue;
        }
        if usual.is_unknown() {
            continue;
        }
        // What had not yet ended is over once everything is as before.
        let earliest = event.until_s.unwrap_or(event.t_s + f64::EPSILON);
        let mut later = measured.iter().filter(|w| w.t_s + w.for_s > earliest);
        let back = later.find(|w| w.t_s + w.for_s > event.t_s && usual.is_back(w));
        // A window that holds the end of the outage says nothing of the time before that end.
        let after_s = back.map(|w| w.t_s.max(earliest) - event.t_s);
        event.recovery = Some(Recovery { after_s });
    }
}

/// Figures of the run outside its outages; none where it was never outside one.
struct Usual {
    answered: Option<f64>,
    arrived: Option<f64>,
    response_us: Option<f64>,
    end_to_end_us: Option<f64>,
}

impl Usual {
    fn outside(measured: &[&Window], outages: &[(f64, f64)]) -> Self {
        let is_outside = |w: &&&Window| {
            let touches = |(from, until): &(f64, f64)| w.t_s < *until && w.t_s + w.for_s > *from;
            !outages.iter().any(touches)
        };
        let calm = || measured.iter().filter(is_outside);
        Self {
            answered: median(calm().filter_map(|w| share(w, answered(w)))),
            arrived: median(calm().filter_map(|w| share(w, w.arrived?))),
            response_us: median(calm().filter_map(|w| Some(w.response.p50_us? as f64))),
            end_to_end_us: median(calm().filter_map(|w| Some(w.end_to_end.p50_us? as f64))),
        }
    }

    /// True if the run was never outside its outages.
    fn is_unknown(&self) -> bool {
        let figures = [
            self.answered,
            self.arrived,
            self.response_us,
            self.end_to_end_us,
        ];
        figures.iter().all(Option::is_none)
    }

    /// Returns whether rates and latencies of a window are as usual. A median that was taken over
    /// more than the window says nothing of it.
    fn is_back(&self, window: &Window) -> bool {
        let is_own = |over: Option<f64>| over.is_none_or(|over| over <= window.for_s);
        let (response, end_to_end) = (window.response_over.p50_s, window.end_to_end_over.p50_s);
        let response = window.response.p50_us.filter(|_| is_own(response));
        let end_to_end = window.end_to_end.p50_us.filter(|_| is_own(end_to_end));
        reaches(share(window, answered(window)), self.answered)
            && reaches(
                window.arrived.and_then(|arrived| share(window, arrived)),
                self.arrived,
            )
            && is_quick(response, self.response_us)
            && is_quick(end_to_end, self.end_to_end_us)
    }
}

/// Messages that ended as the platform wanted: with an answer, or without one by design.
const fn answered(window: &Window) -> u64 {
    window.completed + window.unacknowledged
}

/// Share of the messages that were due; none where none was due.
fn share(window: &Window, count: u64) -> Option<f64> {
    let due = window.offered.unwrap_or(window.issued);
    (due > 0).then(|| count as f64 / due as f64)
}

/// Returns whether a share reaches the usual one. A share unknown on either side passes.
fn reaches(share: Option<f64>, usual: Option<f64>) -> bool {
    let both = share.zip(usual);
    both.is_none_or(|(share, usual)| share >= usual * RATE_BACK)
}

fn is_quick(p50_us: Option<u64>, usual: Option<f64>) -> bool {
    let both = p50_us.zip(usual);
    both.is_none_or(|(p50, usual)| p50 as f64 <= (usual * MEDIAN_BACK).max(MEDIAN_FLOOR_US))
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Percentiles;

    /// A second of a run at 100/s.
    fn second(at: u32, completed: u64, p50_us: u64) -> Window {
        let percentiles = Percentiles {
            p50_us: Some(p50_us),
            ..Percentiles::default()
        };
        Window {
            t_s: f64::from(at),
            for_s: 1.0,
            phase: "measure".to_owned(),
            offered: Some(100),
            issued: 100,
            completed,
            response: percentiles,
            ..Window::default()
        }
    }

    fn outage(kind: &str, t_s: f64, until_s: Option<f64>) -> Event {
        Event {
            t_s,
            until_s,
            kind: kind.to_owned(),
            detail: String::new(),
            recovery: None,
        }
    }

    fn recovery(event: Event, windows: &[Window]) -> Option<Recovery> {
        let mut events = [event];
        add(&mut events, windows);
        events[0].recovery
    }

    /// A stall: it stands still from 3 to 5, and answers what waited until 7.
    fn stall() -> Vec<Window> {
        let rates = [100, 100, 100, 0, 0, 250, 150, 100, 100];
        let medians = [
            900, 900, 900, 2_500_000, 1_500_000, 600_000, 100_000, 950, 900,
        ];
        let seconds = (0..).zip(rates).zip(medians);
        seconds
            .map(|((at, rate), p50)| second(at, rate, p50))
            .collect()
    }

    #[test]
    fn an_outage_is_over_when_rate_and_latency_are_back() {
        let back = |after_s| Some(Recovery { after_s });
        let event = outage("no-answer", 3.0, Some(5.0));
        assert_eq!(recovery(event, &stall()), back(Some(4.0)));
        let event = outage("consumer-lost", 3.5, None);
        assert_eq!(recovery(event, &stall()), back(Some(3.5)));
    }

    #[test]
    fn of_an_outage_up_to_the_last_measured_second_nobody_knows_the_recovery() {
        let calm: Vec<Window> = (0..9).map(|at| second(at, 100, 900)).collect();
        for until in [9.0, 10.5] {
            let event = outage("links-down", 8.0, Some(until));
            assert_eq!(recovery(event, &calm), None, "until {until} s");
        }
        let lasting = recovery(outage("links-down", 8.0, None), &calm);
        assert!(
            lasting.is_some(),
            "what never ended is judged by what it did"
        );
    }

    #[test]
    fn an_outage_to_the_end_has_no_recovery_in_time() {
        let event = outage("no-answer", 3.0, Some(7.0));
        let recovered = recovery(event, &stall()[..7]);
        assert_eq!(recovered, Some(Recovery { after_s: None }));
    }

    #[test]
    fn what_is_no_outage_or_began_before_measuring_has_none() {
        assert_eq!(recovery(outage("rejecting", 3.0, None), &stall()), None);
        assert_eq!(
            recovery(outage("links-down", -1.0, Some(5.0)), &stall()),
            None
        );
    }

    #[test]
    fn an_outage_without_an_effect_is_over_when_it_ends() {
        let calm: Vec<Window> = (0..9).map(|at| second(at, 100, 900)).collect();
        let event = outage("links-down", 3.25, Some(4.5));
        let recovered = recovery(event, &calm);
        assert_eq!(
            recovered,
            Some(Recovery {
                after_s: Some(1.25)
            })
        );
    }
}
