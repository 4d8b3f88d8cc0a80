//! Samples of the target's resources, in bounded memory.

use muster_judge::ResourceOutlook;
use muster_judge::outlook::{Extremes, Limit, Outlook};
use muster_measure::Timeline;
use muster_model::{Micros, Resource, ResourceUnit};
use muster_report::{Event, HookRun, MonitoredSeries};
use serde::{Deserialize, Serialize};

/// Stretches that are kept of one resource: as many as a result has windows. Beyond it neighbours in time become one.
const STRETCHES_MAX: usize = 600;
/// Part of the load at whose end a resource may be without samples, and what is still judged.
const UNSEEN_MAX: f64 = 0.1;
/// Seconds for which it may be so at least.
const UNSEEN_S: f64 = 60.0;
/// Events that are kept; a page that fails each second for hours is one event, so this is never met in practice.
const EVENTS_MAX: usize = 1_000;

/// A note of the monitoring of the target while a run goes on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum UsageNote {
    /// All resources, before the first sample.
    Resources(Vec<Resource>),
    /// Values of one entry.
    Sample(UsageSample),
    /// Something that happened to an entry.
    Event(Event),
}

/// Values of one entry of `monitor` at one instant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct UsageSample {
    /// The instant.
    pub at: Micros,
    /// The place of its first resource among all.
    pub first: u16,
    /// The values of its resources; none where one is not known.
    pub values: Vec<Option<f64>>,
}

/// All samples of a run, neighbours merged where there are many, and the hooks that ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct UsageLog {
    series: Vec<Series>,
    events: Vec<Event>,
    hooks: Vec<HookRun>,
}

#[derive(Debug, Clone)]
struct Series {
    resource: Resource,
    /// Length of its stretches.
    length_s: u32,
    stretches: Vec<Stretch>,
}

/// Samples of one stretch of time.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    /// Its begin divided by the length of the stretches.
    place: u32,
    sum: f64,
    count: u32,
    min: f64,
    max: f64,
}

impl UsageLog {
    pub(crate) fn add(&mut self, note: UsageNote) {
        match note {
            UsageNote::Resources(all) => {
                self.series = all.into_iter().map(Series::new).collect();
            }
            UsageNote::Sample(sample) => {
                let series = self.series.iter_mut().skip(usize::from(sample.first));
                for (series, value) in series.zip(sample.values) {
                    if let Some(value) = value {
                        series.add(sample.at, value);
                    }
                }
            }
            UsageNote::Event(event) if self.events.len() < EVENTS_MAX => self.events.push(event),
            UsageNote::Event(_) => {}
        }
    }

    pub(crate) fn add_hook(&mut self, hook: HookRun) {
        self.hooks.push(hook);
    }

    pub(crate) fn hooks(&self) -> &[HookRun] {
        &self.hooks
    }

    /// Takes over the samples of another part of the run, if this one has none.
    pub(crate) fn or(&mut self, other: Self) {
        self.hooks.extend(other.hooks);
        if self.series.is_empty() {
            self.series = other.series;
            self.events = other.events;
        }
    }

    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    /// The outlook of each resource with a limit for a time after the measured phase.
    pub(crate) fn outlooks(&self, timeline: Timeline, wanted: Micros) -> Vec<ResourceOutlook> {
        let all = self.series.iter();
        all.filter_map(|of| of.outlook(timeline, wanted)).collect()
    }

    /// Each resource that was sampled, in the order of the scenario.
    pub(crate) fn series(&self, timeline: Timeline) -> Vec<MonitoredSeries> {
        let series = self.series.iter();
        let sampled = series.filter(|series| !series.stretches.is_empty());
        sampled.map(|series| series.reported(timeline)).collect()
    }
}

impl Series {
    const fn new(resource: Resource) -> Self {
        Self {
            resource,
            length_s: 1,
            stretches: Vec::new(),
        }
    }

    fn add(&mut self, at: Micros, value: f64) {
        let place = at.second() / self.length_s;
        let sample = Stretch {
            place,
            sum: value,
            count: 1,
            min: value,
            max: value,
        };
        match self.stretches.last_mut() {
            Some(last) if last.place >= place => last.merge(sample),
            Some(_) | None => self.stretches.push(sample),
        }
        if self.stretches.len() > STRETCHES_MAX {
            self.coarsen();
        }
    }

    /// Doubles the length of all stretches.
    fn coarsen(&mut self) {
        self.length_s *= 2;
        let finer = std::mem::take(&mut self.stretches);
        for stretch in finer {
            let place = stretch.place / 2;
            let stretch = Stretch { place, ..stretch };
            match self.stretches.last_mut() {
                Some(last) if last.place == place => last.merge(stretch),
                Some(_) | None => self.stretches.push(stretch),
            }
        }
    }

    fn reported(&self, timeline: Timeline) -> MonitoredSeries {
        let measured: Vec<Stretch> = self.measured(timeline).copied().collect();
        let count: u32 = measured.iter().map(|of| of.count).sum();
        let sum: f64 = measured.iter().map(|of| of.sum).sum();
        let least = measured.iter().map(|of| of.min).reduce(f64::min);
        let most = measured.iter().map(|of| of.max).reduce(f64::max);
        let row = |of: &Stretch| {
            let begin = f64::from(of.place) * f64::from(self.length_s);
            [
                begin,
                rounded(of.average()),
                rounded(of.min),
                rounded(of.max),
            ]
        };
        MonitoredSeries {
            name: self.resource.entry.clone(),
            resource: self.resource.name.clone(),
            unit: self.resource.unit,
            limit: self.resource.limit,
            average: (count > 0).then(|| rounded(sum / f64::from(count))),
            min: least.map(rounded),
            max: most.map(rounded),
            outlook: None,
            for_s: self.length_s,
            windows: self.stretches.iter().map(row).collect(),
        }
    }

    /// Its outlook; none without a limit, or a sample of the measured phase, and none of CPU, which does not run out:
    /// a target that wants more of it answers later, which other rules judge.
    fn outlook(&self, timeline: Timeline, wanted: Micros) -> Option<ResourceOutlook> {
        let unit = self.resource.unit;
        let limit = self
            .resource
            .limit
            .filter(|_| unit != ResourceUnit::Cores)?;
        let length_s = f64::from(self.length_s);
        let extremes = self.measured(timeline).map(|of| Extremes {
            t_s: f64::from(of.place) * length_s,
            min: of.min,
            max: of.max,
        });
        let extremes: Vec<Extremes> = extremes.collect();
        let last = extremes.last()?;
        let limit = match unit {
            ResourceUnit::Number => Limit::of_number(&extremes, limit),
            ResourceUnit::Cores
            | ResourceUnit::Bytes
            | ResourceUnit::BytesPerSecond
            | ResourceUnit::PerSecond => Limit::Ceiling(limit),
        };
        let load_s = (timeline.settle - timeline.measure).as_secs_f64();
        let unseen_s = timeline.settle.as_secs_f64() - last.t_s - length_s;
        let is_cut_off = unseen_s > (load_s * UNSEEN_MAX).max(UNSEEN_S);
        let outlook = if is_cut_off {
            Outlook::cut_off(&extremes, load_s)
        } else {
            Outlook::of(&extremes, length_s, limit, wanted.as_secs_f64())
        };
        let name = format!("{} {}", self.resource.entry, self.resource.name);
        Some(ResourceOutlook { name, outlook })
    }

    /// The stretches that lie within the measured phase.
    fn measured(&self, timeline: Timeline) -> impl Iterator<Item = &Stretch> {
        let length = Micros::from_secs(u64::from(self.length_s));
        self.stretches.iter().filter(move |of| {
            let begin = Micros::from_secs(u64::from(of.place) * u64::from(self.length_s));
            begin >= timeline.measure && begin + length <= timeline.settle
        })
    }
}

impl Stretch {
    fn merge(&mut self, later: Self) {
        self.sum += later.sum;
        self.count += later.count;
        self.min = self.min.min(later.min);
        self.max = self.max.max(later.max);
    }

    fn average(&self) -> f64 {
        self.sum / f64::from(self.count)
    }
}

/// A value as a result writes it: what a clock of microseconds adds behind the fourth decimal is noise.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use muster_judge::outlook::Lasts;

    use super::*;

    fn log(values: impl Iterator<Item = (u64, f64)>) -> UsageLog {
        let resource = |name: &str| Resource {
            entry: "broker".to_owned(),
            name: name.to_owned(),
            unit: ResourceUnit::Number,
            limit: None,
        };
        let mut log = UsageLog::default();
        log.add(UsageNote::Resources(vec![
            resource("cpu"),
            resource("threads"),
        ]));
        for (second, value) in values {
            log.add(UsageNote::Sample(UsageSample {
                at: Micros::from_secs(second),
                first: 1,
                values: vec![Some(value)],
            }));
        }
        log
    }

    fn timeline(measure: u64, settle: u64) -> Timeline {
        Timeline::starting(
            Micros::ZERO,
            Micros::from_secs(measure),
            Micros::from_secs(settle - measure),
        )
    }

    #[test]
    fn figures_are_of_the_measured_phase_and_windows_of_the_whole_run() {
        let log = log([(0, 900.0), (5, 1.0), (6, 2.0), (9, 6.0), (10, 800.0)].into_iter());
        let all = log.series(timeline(5, 10));
        assert_eq!(all.len(), 1, "of `cpu` there is no sample");
        let threads = &all[0];
        assert_eq!(threads.resource, "threads");
        let figures = (threads.average, threads.min, threads.max);
        assert_eq!(figures, (Some(3.0), Some(1.0), Some(6.0)));
        assert_eq!(threads.windows.len(), 5);
        assert_eq!(threads.windows[4], [10.0, 800.0, 800.0, 800.0]);
        let unmeasured = &log.series(Timeline::CONNECTING)[0];
        assert_eq!((unmeasured.average, unmeasured.windows.len()), (None, 5));
    }

    /// Memory that stands still below its limit, sampled until a second of a measured phase of 1,000 s.
    fn outlooks(unit: ResourceUnit, until: u64) -> Vec<ResourceOutlook> {
        let mut log = UsageLog::default();
        log.add(UsageNote::Resources(vec![Resource {
            entry: "broker".to_owned(),
            name: "use".to_owned(),
            unit,
            limit: Some(100.0),
        }]));
        for second in 0..until {
            log.add(UsageNote::Sample(UsageSample {
                at: Micros::from_secs(second),
                first: 0,
                values: vec![Some(50.0)],
            }));
        }
        log.outlooks(timeline(0, 1_000), Micros::from_secs(3_600))
    }

    #[test]
    fn a_resource_that_is_not_seen_to_the_end_is_unclear() {
        let lasts = |until| outlooks(ResourceUnit::Bytes, until)[0].outlook.lasts;
        assert_eq!(lasts(1_000), Lasts::Yes);
        assert_eq!(lasts(910), Lasts::Yes);
        assert_eq!(lasts(850), Lasts::Unclear { needs_s: 1_000.0 });
    }

    #[test]
    fn a_cpu_does_not_run_out() {
        assert!(outlooks(ResourceUnit::Cores, 1_000).is_empty());
    }

    #[test]
    fn a_run_of_days_keeps_few_stretches_and_their_extremes() {
        let spike = |second: u64| {
            if second == 77_777 {
                50.0
            } else {
                (second % 2) as f64
            }
        };
        let log = log((0..200_000).map(|second| (second, spike(second))));
        let series = &log.series(timeline(0, 200_000))[0];
        assert!((300..=600).contains(&series.windows.len()));
        assert_eq!((series.min, series.max), (Some(0.0), Some(50.0)));
        let average = series.average.expect("it was measured");
        assert!((average - 0.5).abs() < 0.01, "{average}");
        let length = f64::from(series.for_s);
        let begins = series.windows.iter().map(|window| window[0]);
        assert!(
            begins
                .zip(0..)
                .all(|(begin, place)| begin == f64::from(place) * length)
        );
    }
}
