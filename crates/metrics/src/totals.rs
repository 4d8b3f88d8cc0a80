//! Sums over the whole run, from the windows that came in so far.

use std::collections::BTreeMap;

use muster_measure::{
    CopyCounts, Distribution, Flow, LinkCounts, Outcomes, Percentiles, Phase, SessionCounts, State,
    WindowDelta,
};
use muster_model::StreamId;
use muster_plan::{Ack, Plan, StreamKind, StreamPlan};

use crate::snapshot::{ClassCounts, Point, QUANTILES, Value};
use crate::table::{self, Metric};

mod downlink;

use downlink::Downlink;

/// Sums over the whole run. Their size depends on the plan and on the codes that were met, and not on the
/// length of the run.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    streams: Vec<StreamTotals>,
    backends: Vec<BackendTotals>,
    links: LinkCounts,
    connect: Distribution,
}

/// Sums of one stream.
#[derive(Debug, Default)]
struct StreamTotals {
    name: StreamName,
    flow: Flow,
    outcomes: Outcomes,
    session: SessionCounts,
    refused_unawaited: u64,
    measured: Times,
    downlink: Option<Downlink>,
    /// Times from sent to answered of the whole run, in microseconds.
    took_us: u64,
    arrived: u64,
}

/// Names of a stream, and what a published test calls it.
#[derive(Debug, Default)]
struct StreamName {
    fleet: String,
    stream: String,
    protocol: String,
    class: &'static str,
    is_uplink: bool,
    answers: bool,
}

/// Times of the messages that were due in the measured phase.
#[derive(Debug, Default)]
struct Times {
    response: Distribution,
    lateness: Distribution,
    end_to_end: Distribution,
}

/// Sums of one backend.
#[derive(Debug, Default)]
struct BackendTotals {
    name: String,
    copies: CopyCounts,
    arrived: u64,
}

impl Totals {
    /// Sums of a run in which nothing has happened.
    pub(crate) fn new(plan: &Plan) -> Self {
        let streams = plan.streams().map(|(fleet, stream)| StreamTotals {
            name: StreamName {
                fleet: fleet.name.clone(),
                stream: stream.name.clone(),
                protocol: fleet.client.protocol().spec().name.to_ascii_lowercase(),
                class: class(stream),
                is_uplink: stream.is_uplink(),
                answers: answers(stream),
            },
            downlink: Downlink::of(stream),
            ..StreamTotals::default()
        });
        let backends = plan.account_names().into_iter().take(plan.accounts());
        let backends = backends.map(|name| BackendTotals {
            name,
            ..BackendTotals::default()
        });
        Self {
            streams: streams.collect(),
            backends: backends.collect(),
            ..Self::default()
        }
    }

    /// Adds windows that came in.
    pub(crate) fn add(&mut self, delta: &WindowDelta) {
        for ((stream, key), window) in &delta.uplinks {
            let Some(total) = self.streams.get_mut(stream.index()) else {
                continue;
            };
            total.flow.merge(&window.flow);
            total.outcomes.merge(&window.outcomes);
            total.session.merge(&window.counts.session);
            total.refused_unawaited += window.counts.refused_unawaited.total();
            total.took_us += window.service.sum_us;
            if key.phase == Phase::Measure {
                total.measured.response.merge(&window.response);
                total.measured.lateness.merge(&window.lateness);
            }
        }
        for ((backend, stream, key), window) in &delta.arrivals {
            if let Some(total) = self.backends.get_mut(backend.index()) {
                total.arrived += window.arrived;
            }
            if let Some(total) = self
                .streams
                .get_mut(stream.index())
                .filter(|_| backend.0 == 0)
            {
                total.arrived += window.arrived;
                if key.phase == Phase::Measure {
                    total.measured.end_to_end.merge(&window.end_to_end);
                }
            }
        }
        for ((backend, _), copies) in &delta.copies {
            if let Some(total) = self.backends.get_mut(backend.index()) {
                total.copies.merge(copies);
            }
        }
        for ((stream, key), window) in &delta.commands {
            if let Some(total) = self.downlink(*stream) {
                total.commands(key, window);
            }
        }
        for ((stream, key), window) in &delta.receptions {
            if let Some(total) = self.downlink(*stream) {
                total.receptions(key, window);
            }
        }
        for window in delta.links.values() {
            self.links.merge(&window.counts);
            self.connect.merge(&window.connect);
        }
    }

    fn downlink(&mut self, stream: StreamId) -> Option<&mut Downlink> {
        self.streams.get_mut(stream.index())?.downlink.as_mut()
    }

    /// The values of all metrics that are sums.
    pub(crate) fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for stream in &self.streams {
            stream.add_to(&mut points);
        }
        for backend in &self.backends {
            let (of, copies) = ([backend.name.as_str()], &backend.copies);
            points.extend([
                Point::count(&table::CONSUMED, &of, copies.consumed),
                Point::count(&table::ARRIVED, &of, backend.arrived),
                Point::count(&table::FOREIGN, &of, copies.foreign),
                Point::count(&table::UNSTAMPED, &of, copies.unstamped),
                Point::count(&table::CORRUPTED, &of, copies.corrupted),
            ]);
        }
        if !self.backends.is_empty() {
            let streams = self.streams.iter().filter(|stream| stream.name.is_uplink);
            points.extend(streams.map(|stream| {
                summary(
                    &table::END_TO_END,
                    &stream.name.labels(),
                    &stream.measured.end_to_end,
                )
            }));
        }
        points.extend([
            Point::count(&table::LINKS_OPENED, &[], self.links.opened),
            Point::count(&table::LINKS_CONNECTED, &[], self.links.connected),
        ]);
        let causes = self.links.failures.iter();
        points.extend(causes.map(|(cause, count)| {
            Point::count(&table::LINKS_FAILED, &[&cause.to_string()], count)
        }));
        let causes = self.links.disconnects.iter();
        points.extend(
            causes.map(|(cause, count)| {
                Point::count(&table::LINKS_ENDED, &[&cause.to_string()], count)
            }),
        );
        points.push(summary(&table::CONNECT, &[], &self.connect));
        points
    }

    /// The counts by class of traffic, as a published test has them.
    pub(crate) fn classes(&self) -> Vec<ClassCounts> {
        let mut classes: BTreeMap<(&str, &str), ClassCounts> = BTreeMap::new();
        for stream in self.streams.iter().filter(|stream| stream.name.is_uplink) {
            let key = (stream.name.protocol.as_str(), stream.name.class);
            let class = classes.entry(key).or_insert_with(|| ClassCounts {
                protocol: stream.name.protocol.clone(),
                class: stream.name.class,
                ..ClassCounts::default()
            });
            stream.add_to_class(class);
        }
        classes.into_values().collect()
    }
}

impl StreamName {
    fn labels(&self) -> [&str; 2] {
        [&self.fleet, &self.stream]
    }
}

impl StreamTotals {
    fn add_to(&self, points: &mut Vec<Point>) {
        let [fleet, stream] = self.name.labels();
        let (of, outcomes, session) = ([fleet, stream], &self.outcomes, &self.session);
        if let Some(downlink) = &self.downlink {
            downlink.add_to(points, of);
        }
        let by_state = State::ALL.iter().map(|state| {
            let count = self.flow.of(*state);
            Point::count(&table::ENDED, &[fleet, stream, state.name()], count)
        });
        points.extend(by_state);
        points.extend([
            Point::count(&table::SENT, &of, self.flow.sent),
            Point::count(&table::FAILED, &of, self.failed()),
            Point::count(&table::RETRANSMITTED, &of, session.retransmitted),
            Point::count(&table::RETRIED, &of, session.retried),
            Point::count(&table::PAYLOAD, &of, session.bytes_payload),
            Point::count(&table::WIRE, &of, session.bytes_wire),
        ]);
        let mut by = |metric, cause: String, count| {
            points.push(Point::count(metric, &[fleet, stream, &cause], count));
        };
        for (code, count) in outcomes.rejected.iter() {
            by(&table::REJECTED, code.to_string(), count);
        }
        for (cause, count) in outcomes.broken.iter() {
            by(&table::BROKEN, cause.to_string(), count);
        }
        for (cause, count) in outcomes.shed.iter() {
            by(&table::SHED, cause.to_string(), count);
        }
        if self.name.answers {
            points.push(summary(&table::RESPONSE, &of, &self.measured.response));
        }
        points.push(summary(&table::LATENESS, &of, &self.measured.lateness));
    }

    /// As rule `failure-ratio` counts them; what we shed ourselves is not the target's.
    fn failed(&self) -> u64 {
        let states = [
            State::Rejected,
            State::TimedOut,
            State::Broken,
            State::InFlight,
            State::Shed,
        ];
        let all: u64 = states.iter().map(|state| self.outcomes.of(*state)).sum();
        (all + self.refused_unawaited).saturating_sub(self.outcomes.shed_own())
    }

    fn add_to_class(&self, class: &mut ClassCounts) {
        let flow = &self.flow;
        class.sent += flow.sent;
        class.success += flow.of(State::Accepted);
        class.unanswered += flow.of(State::TimedOut) + flow.of(State::Broken);
        let sent_ended: u64 = State::SENT.iter().map(|state| flow.of(*state)).sum();
        class.open += flow.sent.saturating_sub(sent_ended);
        class.took_us += self.took_us;
        class.arrived += self.arrived;
        for (code, count) in self.outcomes.rejected.iter() {
            let code = code.to_string();
            match class.refused.iter_mut().find(|(known, _)| *known == code) {
                Some((_, sum)) => *sum += count,
                None => class.refused.push((code, count)),
            }
        }
    }
}

/// True if it has response times; queries have those of commands instead.
fn answers(stream: &StreamPlan) -> bool {
    let is_sent = matches!(stream.kind, StreamKind::Telemetry | StreamKind::Event);
    is_sent && stream.ack != Ack::None
}

/// The two classes of the published test of Hono.
const fn class(stream: &StreamPlan) -> &'static str {
    match stream.kind {
        StreamKind::Event => "event",
        StreamKind::Telemetry
        | StreamKind::CommandQuery { .. }
        | StreamKind::Command { .. }
        | StreamKind::Receive
        | StreamKind::Connect => "telemetry",
    }
}

/// A latency as the result has it: percentiles of enough values, and a mean of whole microseconds.
fn summary(metric: &'static Metric, labels: &[&str], times: &Distribution) -> Point {
    let percentiles = Percentiles::of(times);
    let quantiles = QUANTILES
        .iter()
        .filter_map(|(key, quantile)| Some((*quantile, percentiles.us(key)? as f64 / 1e6)));
    let mean_us = times.mean_us().unwrap_or(0);
    let value = Value::Summary {
        quantiles: quantiles.collect(),
        sum: sum_s(mean_us, times.count),
        count: times.count,
    };
    Point::new(metric, labels, value)
}

/// Sum of all values in seconds, by their mean in whole microseconds: so the result has it too.
pub(crate) fn sum_s(mean_us: u64, count: u64) -> f64 {
    mean_us as f64 * count as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use muster_measure::{ArrivalWindow, UplinkWindow, WindowKey};
    use muster_model::{BackendId, Micros, Outcome, Reason, ShedCause};
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    const SCENARIO: &str = "name: sums
fleet:
  - name: meters
    count: 10
    streams: [ { name: readings, rate: 10/s, qos: 1 }, { name: beats, rate: 10/s, qos: 0 } ]
phases: { warm-up: 1s, measure: 5s }
";

    fn totals() -> Totals {
        let source = Source {
            name: "sums.yaml",
            text: SCENARIO,
        };
        let plan = parse(source, &Overrides::new(), &NoFiles).expect("a scenario");
        Totals::new(&plan)
    }

    fn key(second: u32, phase: Phase) -> WindowKey {
        WindowKey {
            second,
            phase,
            cold: false,
        }
    }

    /// Windows of the first stream in warm-up and in the measured phase.
    fn delta() -> WindowDelta {
        let mut delta = WindowDelta::default();
        for (second, phase, us) in [(0, Phase::WarmUp, 900_000), (1, Phase::Measure, 1_000)] {
            let mut window = UplinkWindow::default();
            window.response.record_n(Micros(us), 30);
            window.service.record_n(Micros(us), 30);
            window.flow.sent = 33;
            window.flow.ended[State::Accepted.index()] = 30;
            window.flow.ended[State::Rejected.index()] = 3;
            window.flow.ended[State::Shed.index()] = 7;
            for (outcome, count) in [
                (Outcome::Accepted, 30),
                (Outcome::Rejected(Reason::Mqtt(0x97)), 3),
                (Outcome::Shed(ShedCause::GeneratorLate), 5),
                (Outcome::Shed(ShedCause::Offline), 2),
            ] {
                (0..count).for_each(|_| window.outcomes.count(&outcome));
            }
            delta
                .uplinks
                .insert((StreamId(0), key(second, phase)), window);
            let mut arrivals = ArrivalWindow {
                arrived: 29,
                ..ArrivalWindow::default()
            };
            arrivals.end_to_end.record_n(Micros(us), 29);
            let place = (BackendId(0), StreamId(0), key(second, phase));
            delta.arrivals.insert(place, arrivals);
        }
        delta
    }

    fn values(totals: &Totals, metric: &'static Metric) -> Vec<(Vec<String>, Value)> {
        let points = totals.points().into_iter();
        points
            .filter(|point| point.metric == metric)
            .map(|point| (point.labels, point.value))
            .collect()
    }

    fn labels(all: &[&str]) -> Vec<String> {
        all.iter().map(|label| (*label).to_owned()).collect()
    }

    #[test]
    fn what_we_shed_ourselves_is_no_failure_of_the_target() {
        let mut totals = totals();
        totals.add(&delta());
        let of = ["meters", "readings"];
        let failed = values(&totals, &table::FAILED);
        assert_eq!(failed[0], (labels(&of), Value::Count(2 * (3 + 2))));
        let rejected = values(&totals, &table::REJECTED);
        assert_eq!(
            rejected,
            [(labels(&[of[0], of[1], "0x97"]), Value::Count(6))]
        );
        assert_eq!(values(&totals, &table::SHED).len(), 2);
        assert_eq!(values(&totals, &table::ENDED).len(), 2 * State::ALL.len());
    }

    #[test]
    fn latencies_are_those_of_the_measured_phase_and_of_streams_with_answers() {
        let mut totals = totals();
        totals.add(&delta());
        let response = values(&totals, &table::RESPONSE);
        let quantiles = vec![(0.5, 0.001)];
        let expected = Value::Summary {
            quantiles,
            sum: 0.03,
            count: 30,
        };
        assert_eq!(response, [(labels(&["meters", "readings"]), expected)]);
        let end_to_end = values(&totals, &table::END_TO_END);
        assert!(
            matches!(end_to_end[0].1, Value::Summary { count: 29, .. }),
            "{end_to_end:?}"
        );
    }

    #[test]
    fn a_published_class_has_the_whole_run_of_all_its_streams() {
        let mut totals = totals();
        totals.add(&delta());
        let classes = totals.classes();
        let expected = ClassCounts {
            protocol: "mqtt".to_owned(),
            class: "telemetry",
            sent: 66,
            success: 60,
            refused: vec![("0x97".to_owned(), 6)],
            unanswered: 0,
            open: 0,
            took_us: 30 * 901_000,
            arrived: 58,
        };
        assert_eq!(classes, [expected]);
    }
}
