//! The seconds of a run as at most [`MAX_WINDOWS`] windows, coarsened by merging.

mod widening;

use std::collections::BTreeMap;

use muster_judge::{GeneratorHealth, ThreadRole};
use muster_measure::{CountBy, Distribution, Phase, SecondRow, State, Summary, TOP, WindowDelta};
use muster_model::{Micros, ShedCause};

use crate::{Heat, MAX_WINDOWS, PercentileSpans, Percentiles, Window, WindowHealth};

use widening::Values;

/// Lengths that a coarsened window may have, in seconds: what people read on an axis.
const LENGTHS: [u32; 13] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600];

/// A second of the run, cut at the borders of the phases.
type Key = (u32, Phase);

/// The windows of a report. A window never spans two phases.
pub(super) fn coarsened(
    summary: &Summary,
    windows: &WindowDelta,
    health: &GeneratorHealth,
) -> Vec<Window> {
    let mut cells = BTreeMap::<Key, Cell>::new();
    for row in &summary.run.series {
        cells
            .entry((row.second, row.phase))
            .or_default()
            .add_row(row);
    }
    add_windows(&mut cells, windows);
    add_health(&mut cells, health);
    let keys: Vec<Key> = cells.keys().copied().collect();
    let length = length(&keys);
    let mut groups = BTreeMap::<Key, Cell>::new();
    let mut links_up = 0;
    for ((second, phase), mut cell) in cells {
        links_up = (links_up + cell.connected).saturating_sub(cell.disconnects);
        cell.links_up = links_up;
        groups
            .entry((second / length, phase))
            .or_default()
            .merge(&cell);
    }
    let cells: Vec<(Key, Cell)> = groups.into_iter().collect();
    let windows = cells.iter();
    let mut windows: Vec<Window> = windows
        .map(|(key, cell)| window(summary, *key, length, cell))
        .collect();
    add_percentiles(&cells, &mut windows);
    windows
}

/// The values of a latency in a cell, and where a window has their percentiles.
type Leg = for<'a> fn(
    &'a Cell,
    &'a mut Window,
) -> (Values<'a>, &'a mut Percentiles, &'a mut PercentileSpans);

/// Percentiles of every window, of more than one where one has too few values.
fn add_percentiles(cells: &[(Key, Cell)], windows: &mut [Window]) {
    let legs: [Leg; 3] = [
        |cell, to| {
            let values = Values::new(&cell.response, Some(&cell.censored));
            (values, &mut to.response, &mut to.response_over)
        },
        |cell, to| {
            let values = Values::new(&cell.end_to_end, None);
            (values, &mut to.end_to_end, &mut to.end_to_end_over)
        },
        |cell, to| {
            let values = Values::new(&cell.lateness, None);
            (values, &mut to.lateness, &mut to.lateness_over)
        },
    ];
    for leg in legs {
        let both = cells.iter().zip(windows.iter_mut());
        let seen = both.map(|((_, cell), window)| {
            let (phase, for_s) = (window.phase.clone(), window.for_s);
            let (values, percentiles, spans) = leg(cell, window);
            widening::Seen {
                phase,
                for_s,
                values,
                percentiles,
                spans,
            }
        });
        widening::widen(seen.collect());
    }
}

/// The shortest length that makes few enough windows.
fn length(keys: &[Key]) -> u32 {
    let fits = |length: u32| {
        let group = |(second, phase): &Key| (second / length, *phase);
        let borders = keys
            .windows(2)
            .filter(|pair| group(&pair[0]) != group(&pair[1]))
            .count();
        borders < MAX_WINDOWS
    };
    let longer = (2..).map(|hours| hours * 3_600);
    LENGTHS
        .into_iter()
        .chain(longer)
        .find(|length| fits(*length))
        .unwrap_or(u32::MAX)
}

/// Counts of one second, or of the several that a window is merged of.
#[derive(Debug, Clone, Default)]
struct Cell {
    offered: Option<u64>,
    issued: u64,
    ended: [u64; State::ALL.len()],
    shed: CountBy<ShedCause>,
    arrived: Option<u64>,
    connected: u64,
    disconnects: u64,
    links_up: u64,
    response: Distribution,
    /// The lower bounds of responses that did not come.
    censored: Distribution,
    end_to_end: Distribution,
    lateness: Distribution,
    health: WindowHealth,
}

impl Cell {
    fn add_row(&mut self, row: &SecondRow) {
        self.offered = row.offered;
        self.issued += row.flow.sent;
        for (state, count) in State::ALL.into_iter().zip(&mut self.ended) {
            *count += row.flow.of(state);
        }
        self.shed.merge(&row.due.shed);
        self.arrived = row.arrivals.first().map(|first| first.arrived);
        self.response.merge(&row.response);
        self.censored.merge(&row.censored);
        self.end_to_end.merge(&row.end_to_end);
    }

    fn merge(&mut self, later: &Self) {
        self.offered = sum(self.offered, later.offered);
        self.issued += later.issued;
        for (count, more) in self.ended.iter_mut().zip(later.ended) {
            *count += more;
        }
        self.shed.merge(&later.shed);
        self.arrived = sum(self.arrived, later.arrived);
        self.connected += later.connected;
        self.disconnects += later.disconnects;
        self.links_up = later.links_up;
        self.response.merge(&later.response);
        self.censored.merge(&later.censored);
        self.end_to_end.merge(&later.end_to_end);
        self.lateness.merge(&later.lateness);
        self.health = worse(self.health, later.health);
    }

    /// Responses, and the lower bounds of those that did not come.
    fn all_due(&self) -> Distribution {
        let mut all = self.response.clone();
        all.merge(&self.censored);
        all
    }

    fn of(&self, state: State) -> u64 {
        self.ended[state.index()]
    }

    fn shed_by_cause(&self) -> BTreeMap<String, u64> {
        let causes = self.shed.iter();
        causes
            .map(|(cause, count)| (cause.name().to_owned(), count))
            .collect()
    }
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    a.map_or(b, |a| Some(a + b.unwrap_or(0)))
}

fn worse(a: WindowHealth, b: WindowHealth) -> WindowHealth {
    WindowHealth {
        shard_cpu: larger(a.shard_cpu, b.shard_cpu),
        consumer_cpu: larger(a.consumer_cpu, b.consumer_cpu),
        cpu_wait: larger(a.cpu_wait, b.cpu_wait),
        steal: larger(a.steal, b.steal),
    }
}

fn larger(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.map_or(b, |a| Some(b.map_or(a, |b| a.max(b))))
}

/// Adds figures that the series of the summary does not hold: lateness, and links.
fn add_windows(cells: &mut BTreeMap<Key, Cell>, windows: &WindowDelta) {
    for ((_, key), uplink) in &windows.uplinks {
        let cell = cells.entry((key.second, key.phase)).or_default();
        cell.lateness.merge(&uplink.lateness);
    }
    for ((_, key), links) in &windows.links {
        let cell = cells.entry((key.second, key.phase)).or_default();
        cell.connected += links.counts.connected;
        cell.disconnects += links.counts.disconnects.total();
    }
}

/// Adds each sample to the second that it ended in, where something happened in that second.
fn add_health(cells: &mut BTreeMap<Key, Cell>, health: &GeneratorHealth) {
    let mut add = |until: Micros, sample: WindowHealth| {
        let second = (until - Micros(1)).second();
        let within = cells.range_mut((second, Phase::Connect)..=(second, Phase::Settle));
        for (_, cell) in within {
            cell.health = worse(cell.health, sample);
        }
    };
    for thread in &health.threads {
        for window in &thread.windows {
            let (shard_cpu, consumer_cpu) = match thread.role {
                ThreadRole::Shard => (Some(window.cpu), None),
                ThreadRole::Consumer => (None, Some(window.cpu)),
            };
            let sample = WindowHealth {
                shard_cpu,
                consumer_cpu,
                cpu_wait: window.waiting,
                steal: None,
            };
            add(window.until, sample);
        }
    }
    for (until, steal) in health.hosts.iter().flat_map(|host| &host.steal) {
        let sample = WindowHealth {
            steal: Some(*steal),
            ..WindowHealth::default()
        };
        add(*until, sample);
    }
}

fn window(summary: &Summary, (group, phase): Key, length: u32, cell: &Cell) -> Window {
    let (from, until) = borders(summary, phase);
    let begin = Micros::from_secs(u64::from(group) * u64::from(length));
    let end = (begin + Micros::from_secs(u64::from(length))).min(until);
    let begin = begin.max(from);
    Window {
        t_s: begin.as_secs_f64(),
        for_s: (end - begin).as_secs_f64(),
        phase: name(phase).to_owned(),
        offered: cell.offered,
        issued: cell.issued,
        completed: cell.of(State::Accepted) + cell.of(State::Rejected),
        accepted: cell.of(State::Accepted),
        arrived: cell.arrived,
        shed: cell.of(State::Shed),
        shed_by_cause: cell.shed_by_cause(),
        rejected: cell.of(State::Rejected),
        timed_out: cell.of(State::TimedOut),
        broken: cell.of(State::Broken),
        unacknowledged: cell.of(State::Unacknowledged),
        links_up: Some(cell.links_up),
        disconnects: cell.disconnects,
        response_heat: heat(&cell.all_due()),
        end_to_end_heat: heat(&cell.end_to_end),
        generator: (cell.health != WindowHealth::default()).then_some(cell.health),
        // Percentiles follow once all windows are there.
        ..Window::default()
    }
}

fn borders(summary: &Summary, phase: Phase) -> (Micros, Micros) {
    let timeline = &summary.timeline;
    match phase {
        Phase::Connect => (Micros::ZERO, timeline.origin),
        Phase::WarmUp => (timeline.origin, timeline.measure),
        Phase::Measure => (timeline.measure, timeline.settle),
        Phase::Settle => (timeline.settle, Micros::MAX),
    }
}

const fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Connect => "connect",
        Phase::WarmUp => "warm-up",
        Phase::Measure => "measure",
        Phase::Settle => "settle",
    }
}

fn heat(of: &Distribution) -> Heat {
    let cells = of.cells().iter().map(|cell| (cell.low_us, cell.count));
    let above = (of.above_top > 0).then_some((TOP.get(), of.above_top));
    Heat::of(cells.chain(above))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percentiles_at(us: u64) -> Percentiles {
        let mut distribution = Distribution::default();
        distribution.record_n(Micros(us), 20);
        Percentiles::of(&distribution)
    }

    #[test]
    fn merged_cells_are_sums_and_the_worst_health() {
        let mut first = Cell {
            offered: Some(2),
            issued: 1,
            links_up: 7,
            ..Cell::default()
        };
        first.response.record_n(Micros(100), 10);
        first.health.cpu_wait = Some(0.5);
        let mut later = Cell {
            offered: Some(3),
            arrived: Some(4),
            links_up: 5,
            ..Cell::default()
        };
        later.response.record_n(Micros(100), 10);
        later.health.cpu_wait = Some(0.25);
        first.merge(&later);
        assert_eq!(
            (first.offered, first.issued, first.arrived),
            (Some(5), 1, Some(4))
        );
        assert_eq!((first.links_up, first.health.cpu_wait), (5, Some(0.5)));
        let merged: Percentiles = Percentiles::of(&first.response);
        assert_eq!(merged, percentiles_at(100));
    }

    #[test]
    fn the_length_is_the_shortest_that_fits() {
        let run = |seconds: u32| -> Vec<Key> {
            (0..seconds)
                .map(|second| (second, Phase::Measure))
                .collect()
        };
        let cases = [
            (1, 1),
            (600, 1),
            (601, 2),
            (1_201, 5),
            (86_400, 300),
            (1_000_000, 1_800),
        ];
        for (seconds, wanted) in cases {
            assert_eq!(length(&run(seconds)), wanted, "{seconds} s");
        }
    }
}
