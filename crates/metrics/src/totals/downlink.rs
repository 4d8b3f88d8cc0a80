//! Sums of what comes to devices: commands with their replies, and messages of other devices.

use muster_measure::{
    CommandCounts, CommandWindow, Distribution, Phase, ReceptionWindow, WindowKey,
};
use muster_plan::{StreamKind, StreamPlan};

use super::summary;
use crate::snapshot::Point;
use crate::table::{self, Metric};

/// Sums of one stream of commands, of queries, or of receptions.
#[derive(Debug)]
pub(super) enum Downlink {
    /// Of commands or queries.
    Commands(Box<Commands>),
    /// Of messages that devices subscribe to.
    Receptions(Receptions),
}

#[derive(Debug, Default)]
pub(super) struct Commands {
    counts: CommandCounts,
    /// True if devices query, or reply.
    has_queries: bool,
    has_replies: bool,
    request: Distribution,
    response: Distribution,
    round: Distribution,
}

#[derive(Debug, Default)]
pub(super) struct Receptions {
    arrived: u64,
    foreign: u64,
    corrupted: u64,
    end_to_end: Distribution,
}

impl Downlink {
    /// Sums of a stream in which nothing has happened; none of one that only sends.
    pub(super) fn of(stream: &StreamPlan) -> Option<Self> {
        let commands = |has_queries, has_replies| {
            Self::Commands(Box::new(Commands {
                has_queries,
                has_replies,
                ..Commands::default()
            }))
        };
        match stream.kind {
            StreamKind::CommandQuery { .. } => Some(commands(true, false)),
            StreamKind::Command { is_two_way, .. } => Some(commands(false, is_two_way)),
            StreamKind::Receive => Some(Self::Receptions(Receptions::default())),
            StreamKind::Telemetry | StreamKind::Event | StreamKind::Connect => None,
        }
    }

    /// Adds a window of commands.
    pub(super) fn commands(&mut self, key: &WindowKey, window: &CommandWindow) {
        if let Self::Commands(sums) = self {
            sums.counts.merge(&window.counts);
            if key.phase == Phase::Measure {
                sums.request.merge(&window.request);
                sums.response.merge(&window.response);
                sums.round.merge(&window.round);
            }
        }
    }

    /// Adds a window of receptions.
    pub(super) fn receptions(&mut self, key: &WindowKey, window: &ReceptionWindow) {
        if let Self::Receptions(sums) = self {
            sums.arrived += window.arrived;
            sums.foreign += window.foreign;
            sums.corrupted += window.corrupted;
            if key.phase == Phase::Measure {
                sums.end_to_end.merge(&window.end_to_end);
            }
        }
    }

    pub(super) fn add_to(&self, points: &mut Vec<Point>, of: [&str; 2]) {
        match self {
            Self::Commands(sums) => sums.add_to(points, of),
            Self::Receptions(sums) => points.extend([
                Point::count(&table::TAKEN_IN, &of, sums.arrived),
                Point::count(&table::FOREIGN_TO_DEVICES, &of, sums.foreign),
                Point::count(&table::CORRUPTED_AT_DEVICES, &of, sums.corrupted),
                summary(&table::RECEPTION, &of, &sums.end_to_end),
            ]),
        }
    }
}

impl Commands {
    fn add_to(&self, points: &mut Vec<Point>, of: [&str; 2]) {
        let counts = &self.counts;
        points.extend(by_name(&table::QUERIES, of, &counts.queries));
        points.extend(by_name(&table::DELIVERIES, of, &counts.issues.ends));
        points.extend(by_name(&table::ANSWERS, of, &counts.answers));
        points.push(Point::count(&table::RECEIVED, &of, counts.received));
        points.extend(counts.replies_by_status.iter().map(|(status, count)| {
            Point::count(&table::REPLIES, &[of[0], of[1], &status.to_string()], count)
        }));
        if self.has_queries {
            points.push(summary(&table::COMMAND_REQUEST, &of, &self.request));
        }
        if self.has_replies {
            points.push(summary(&table::COMMAND_RESPONSE, &of, &self.response));
            points.push(summary(&table::COMMAND_LOOP, &of, &self.round));
        }
    }
}

/// Counts in the order in which the metric's place names them.
fn by_name<'a>(
    metric: &'static Metric,
    of: [&'a str; 2],
    counts: &'a [u64],
) -> impl Iterator<Item = Point> + 'a {
    let named = metric.admitted().zip(counts);
    named.map(move |(name, count)| Point::count(metric, &[of[0], of[1], name], *count))
}
