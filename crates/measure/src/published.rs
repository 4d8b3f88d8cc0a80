//! The figures of published tests by their own formulas, by device or by stream.
//!
//! The figures stand next to Muster's own and decide nothing: a correlation over a whole run
//! neither sees a late collapse nor distinguishes a harmless drift from one. See `docs/sap-edge.md`.

use muster_model::{
    Answer, Answering, Attempt, DeviceId, Micros, Outcome, Query, QueryOutcome, StreamId,
};
use serde::{Deserialize, Serialize};

use crate::digest_of_times::TimeDigest;
use crate::{PublishedPlan, Role, SlotTimes};

/// The figures of one device, over the whole run: the published test knows no warm-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceFigures {
    /// The device.
    pub device: DeviceId,
    /// Messages sent.
    pub messages: u64,
    /// Messages that were acknowledged, whatever the acknowledgement said.
    pub acknowledged: u64,
    /// From the first message's due instant to the last one's sending.
    pub publishing: Micros,
    /// The longest time from a message's due instant to its sending.
    pub lag: Micros,
    /// Pearson's correlation of latency and the ordinal of the acknowledgement, in millionths.
    pub correlation_ppm: i32,
    /// Percentiles of the latency in whole milliseconds: 50, 95 and 99; none without one.
    pub percentiles_ms: Option<[u64; 3]>,
}

/// Records that one recorder keeps for them; empty where none are asked for.
#[derive(Debug, Default)]
pub(crate) struct Published {
    devices: Vec<Option<Box<Tracker>>>,
    /// By stream.
    slots: Vec<SlotTimes>,
}

/// One device on its way.
#[derive(Debug, Default)]
struct Tracker {
    messages: u64,
    first_due: Option<Micros>,
    last_sent: Micros,
    lag: Micros,
    correlation: Correlation,
    latencies: TimeDigest,
}

/// Pearson's correlation of values and their ordinals, as they come.
#[derive(Debug, Default)]
struct Correlation {
    count: u64,
    mean: [f64; 2],
    variance: [f64; 2],
    covariance: f64,
}

impl Published {
    /// Room for what the plan asks for.
    pub(crate) fn of(plan: PublishedPlan, streams: usize) -> Self {
        let mut published = Self::default();
        match plan {
            PublishedPlan::Nothing => {}
            PublishedPlan::ByDevice(devices) => {
                published.devices.resize_with(devices as usize, || None);
            }
            PublishedPlan::BySlot => published.slots.resize_with(streams, SlotTimes::default),
        }
        published
    }

    /// Records a message of a stream of that role.
    pub(crate) fn attempt(&mut self, attempt: &Attempt, role: Role) {
        if let Some(device) = self.devices.get_mut(attempt.id.device.index()) {
            device.get_or_insert_default().attempt(attempt);
        }
        // That of a query is over when its command has come.
        if role == Role::Uplink && attempt.outcome == Outcome::Accepted {
            let taken = attempt.taken.unwrap_or(attempt.due);
            self.exchange(attempt.id.stream, attempt.ended - taken);
        }
    }

    /// Records a query.
    pub(crate) fn query(&mut self, query: &Query) {
        if query.outcome == QueryOutcome::Received {
            self.exchange(query.id.stream, query.ended - query.taken);
        }
    }

    /// Records a reply.
    pub(crate) fn answer(&mut self, answer: &Answer) {
        if answer.outcome == Answering::Answered {
            self.exchange(answer.id.stream, answer.ended - answer.due);
        }
    }

    fn exchange(&mut self, stream: StreamId, took: Micros) {
        if let Some(slots) = self.slots.get_mut(stream.index()) {
            slots.add(took);
        }
    }

    /// The figures of the devices with a message, in their order, and the times of the streams.
    pub(crate) fn figures(self) -> (Vec<DeviceFigures>, Vec<SlotTimes>) {
        let numbered = (0u32..).zip(self.devices);
        let devices = numbered
            .filter_map(|(number, device)| Some(device?.figures(DeviceId(number))))
            .collect();
        (devices, self.slots)
    }
}

impl Tracker {
    fn attempt(&mut self, attempt: &Attempt) {
        let (Some(taken), Some(sent)) = (attempt.taken, attempt.sent) else {
            return;
        };
        self.messages += 1;
        let first = self.first_due.unwrap_or(attempt.due);
        self.first_due = Some(first.min(attempt.due));
        self.last_sent = self.last_sent.max(sent);
        self.lag = self.lag.max(sent - attempt.due);
        if let Outcome::Accepted | Outcome::Rejected(_) = attempt.outcome {
            // The published clock starts before the message is encoded, and counts milliseconds.
            let ms = ((attempt.ended - taken).get() as f64 / 1_000.0).round();
            self.correlation.add(ms);
            self.latencies.add(ms);
        }
    }

    fn figures(mut self, device: DeviceId) -> DeviceFigures {
        let first = self.first_due.unwrap_or_default();
        let digest = &mut self.latencies;
        let percentiles =
            (self.correlation.count > 0).then(|| [0.5, 0.95, 0.99].map(|q| digest.quantile(q)));
        DeviceFigures {
            device,
            messages: self.messages,
            acknowledged: self.correlation.count,
            publishing: self.last_sent - first,
            lag: self.lag,
            correlation_ppm: (self.correlation.value() * 1e6).round() as i32,
            percentiles_ms: percentiles.map(|all| all.map(|ms| ms.round() as u64)),
        }
    }
}

impl Correlation {
    /// Adds the next value; formula and names as published.
    fn add(&mut self, value: f64) {
        self.count += 1;
        let f = 1.0 / self.count as f64;
        let point = [self.count as f64, value];
        let d = [point[0] - self.mean[0], point[1] - self.mean[1]];
        for ((mean, variance), d) in self.mean.iter_mut().zip(&mut self.variance).zip(d) {
            *mean += f * d;
            *variance = (1.0 - f) * (*variance + f * d * d);
        }
        self.covariance = (1.0 - f) * (self.covariance + f * d[0] * d[1]);
    }

    /// From -1 to 1; 0 where it is not defined.
    fn value(&self) -> f64 {
        let spread = (self.variance[0] * self.variance[1]).sqrt();
        if spread > 0.0 {
            self.covariance / spread
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use muster_model::{MessageId, RunId, StreamId};
    use proptest::prelude::*;

    use super::*;

    fn correlation(values: &[f64]) -> f64 {
        let mut correlation = Correlation::default();
        values.iter().for_each(|value| correlation.add(*value));
        correlation.value()
    }

    #[test]
    fn a_line_correlates_fully_and_a_constant_not_at_all() {
        assert!((correlation(&[1.0, 2.0, 3.0]) - 1.0).abs() < 1e-12);
        assert!((correlation(&[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[5.0, 5.0, 5.0]), 0.0);
        assert_eq!(correlation(&[]), 0.0);
        // The harmless drift: a microsecond a message on top of 100 ms.
        let drift: Vec<f64> = (0..1_000).map(|n| 100.0 + f64::from(n) * 0.001).collect();
        assert!(correlation(&drift) > 0.999);
    }

    proptest! {
        /// The streaming formula is Pearson's.
        #[test]
        fn the_stream_is_pearsons(values in prop::collection::vec(0.0f64..1_000.0, 2..200)) {
            let n = values.len() as f64;
            let (mean_x, mean_y) = ((n + 1.0) / 2.0, values.iter().sum::<f64>() / n);
            let mut sums = [0.0; 3];
            for (x, y) in (1..).map(f64::from).zip(&values) {
                let (dx, dy) = (x - mean_x, y - mean_y);
                sums[0] += dx * dy;
                sums[1] += dx * dx;
                sums[2] += dy * dy;
            }
            let expected = sums[0] / (sums[1] * sums[2]).sqrt();
            prop_assert!((correlation(&values) - expected).abs() < 1e-9);
        }
    }

    #[test]
    fn only_what_was_sent_counts_and_only_answers_have_a_latency() {
        let attempt = |seq: u32, took_ms: u64, outcome| Attempt {
            id: MessageId {
                run: RunId(1),
                device: DeviceId(1),
                stream: StreamId(0),
                seq,
            },
            due: Micros::from_millis(u64::from(seq) * 100),
            taken: Some(Micros::from_millis(u64::from(seq) * 100)),
            sent: Some(Micros::from_millis(u64::from(seq) * 100 + 1)),
            ended: Micros::from_millis(u64::from(seq) * 100 + took_ms),
            outcome,
            resent: false,
            own: Micros::ZERO,
        };
        let mut published = Published::of(PublishedPlan::ByDevice(2), 1);
        published.attempt(&attempt(0, 10, Outcome::Accepted), Role::Uplink);
        published.attempt(&attempt(1, 20, Outcome::Accepted), Role::Uplink);
        published.attempt(&attempt(2, 30_000, Outcome::TimedOut), Role::Uplink);
        published.attempt(
            &Attempt {
                sent: None,
                ..attempt(3, 0, Outcome::TimedOut)
            },
            Role::Uplink,
        );
        let figures = published.figures().0;
        assert_eq!(figures.len(), 1, "the other device said nothing");
        let of = &figures[0];
        assert_eq!((of.messages, of.acknowledged), (3, 2));
        assert_eq!(of.publishing, Micros::from_millis(201));
        assert_eq!((of.lag, of.correlation_ppm), (Micros(1_000), 1_000_000));
        let [p50, ..] = of.percentiles_ms.expect("there are two");
        assert!((10..=20).contains(&p50));
    }

    #[test]
    fn devices_beyond_those_asked_for_are_left_out() {
        let mut published = Published::of(PublishedPlan::ByDevice(1), 1);
        let id = MessageId {
            run: RunId(1),
            device: DeviceId(1),
            stream: StreamId(0),
            seq: 0,
        };
        published.attempt(
            &Attempt {
                id,
                due: Micros::ZERO,
                taken: Some(Micros::ZERO),
                sent: Some(Micros::ZERO),
                ended: Micros::ZERO,
                outcome: Outcome::Accepted,
                resent: false,
                own: Micros::ZERO,
            },
            Role::Uplink,
        );
        assert!(published.figures().0.is_empty());
    }

    #[test]
    fn slots_hold_what_was_accepted_queries_with_their_command_and_replies() {
        let id = |stream| MessageId {
            run: RunId(1),
            device: DeviceId(0),
            stream: StreamId(stream),
            seq: 0,
        };
        let at = Micros::from_millis;
        let attempt = |stream, outcome| Attempt {
            id: id(stream),
            due: at(0),
            taken: Some(at(100)),
            sent: Some(at(100)),
            ended: at(107),
            outcome,
            resent: false,
            own: Micros::ZERO,
        };
        let query = |outcome| Query {
            id: id(1),
            due: at(0),
            taken: at(100),
            ended: at(300),
            outcome,
            own: Micros::ZERO,
        };
        let answer = |outcome| Answer {
            id: id(2),
            due: at(300),
            sent: Some(at(301)),
            ended: at(333),
            outcome,
            own: Micros::ZERO,
        };
        let mut published = Published::of(PublishedPlan::BySlot, 3);
        published.attempt(&attempt(0, Outcome::Accepted), Role::Uplink);
        published.attempt(&attempt(0, Outcome::TimedOut), Role::Uplink);
        published.attempt(&attempt(1, Outcome::Accepted), Role::Query);
        published.query(&query(QueryOutcome::Received));
        published.query(&query(QueryOutcome::NoCommand));
        published.answer(&answer(Answering::Answered));
        published.answer(&answer(Answering::TimedOut));
        let slots = published.figures().1;
        let told: Vec<_> = slots.iter().map(|of| (of.count(), of.max_ms())).collect();
        assert_eq!(told, [(1, Some(7)), (1, Some(200)), (1, Some(33))]);
    }
}
