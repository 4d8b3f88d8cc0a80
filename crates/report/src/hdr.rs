//! The latencies of every second as an HDR histogram interval log, version 2.
//!
//! The lines are those that the tools of HdrHistogram read: a tag `<stream>:<latency>`, begin and
//! length in seconds since T0, the maximum in milliseconds, and the histogram of microseconds,
//! deflated, as base64.

use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use muster_measure::{Distribution, TOP, WindowDelta};

/// Significant digits of the histograms, those of the windows.
const DIGITS: u8 = 3;

/// The maximum of each line is written in milliseconds, as the readers expect.
const MICROS_PER_MILLI: f64 = 1e3;

/// The latencies in the merged windows of a run as an interval log; `streams` are the names of the
/// streams at the index of their `StreamId`.
pub fn hdr(windows: &WindowDelta, streams: &[String]) -> Vec<u8> {
    let mut intervals = intervals(windows, streams);
    intervals.sort_by(|a, b| (a.second, &a.tag).cmp(&(b.second, &b.tag)));
    let mut log = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment("[Logged by muster; times in seconds since T0, values in microseconds]")
        .with_max_value_divisor(MICROS_PER_MILLI)
        .begin_log_with(&mut log, &mut serializer)
        .expect("writing to memory cannot fail");
    for interval in &intervals {
        writer
            .write_histogram(
                &histogram(interval.values),
                Duration::from_secs(u64::from(interval.second)),
                Duration::from_secs(1),
                Tag::new(&interval.tag),
            )
            .expect("a histogram below one hour serialises, and writing to memory cannot fail");
    }
    log
}

struct Interval<'a> {
    second: u32,
    tag: String,
    values: &'a Distribution,
}

fn intervals<'a>(windows: &'a WindowDelta, streams: &[String]) -> Vec<Interval<'a>> {
    let name = |stream: usize| streams.get(stream).map_or("stream", String::as_str);
    let uplinks = windows.uplinks.iter().flat_map(|((stream, key), window)| {
        [
            ("response", &window.response),
            ("service", &window.service),
            ("lateness", &window.lateness),
            ("held", &window.held),
        ]
        .map(|(leg, values)| (name(stream.index()), leg.to_owned(), key.second, values))
    });
    let arrivals = windows
        .arrivals
        .iter()
        .map(|((backend, stream, key), window)| {
            let leg = match backend.index() {
                0 => "end_to_end".to_owned(),
                other => format!("end_to_end@{other}"),
            };
            (name(stream.index()), leg, key.second, &window.end_to_end)
        });
    uplinks
        .chain(arrivals)
        .filter(|(_, _, _, values)| values.count > 0)
        .map(|(stream, leg, second, values)| Interval {
            second,
            tag: tag(stream, &leg),
            values,
        })
        .collect()
}

/// A tag must hold no comma, no space and no line end.
fn tag(stream: &str, leg: &str) -> String {
    let name = format!("{stream}:{leg}");
    name.replace(|symbol: char| symbol == ',' || symbol.is_whitespace(), "_")
}

fn histogram(values: &Distribution) -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, TOP.get(), DIGITS)
        .expect("the bounds and digits are constants that the library accepts");
    for cell in values.cells() {
        histogram.saturating_record_n(cell.high_us(), cell.count);
    }
    if values.above_top > 0 {
        histogram.saturating_record_n(TOP.get(), values.above_top);
    }
    histogram
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use muster_measure::{Phase, UplinkWindow, WindowKey};
    use muster_model::{Micros, StreamId};

    use super::*;

    fn windows() -> WindowDelta {
        let mut windows = WindowDelta::default();
        for second in [3, 4] {
            let key = WindowKey {
                second,
                phase: Phase::Measure,
                cold: false,
            };
            let mut window = UplinkWindow::default();
            window.response.record_n(Micros(1_234), 10);
            window.response.record(Micros::from_secs(2));
            windows.uplinks.insert((StreamId(0), key), window);
        }
        windows
    }

    #[test]
    fn the_log_reads_back_with_tag_time_and_values() {
        let log = hdr(&windows(), &["fleet/a stream,".to_owned()]);
        let entries: Vec<LogEntry> = IntervalLogIterator::new(&log).map(Result::unwrap).collect();
        assert_eq!(entries.len(), 2);
        for (entry, second) in entries.iter().zip([3, 4]) {
            let LogEntry::Interval(interval) = entry else {
                unreachable!("only intervals were written");
            };
            assert_eq!(interval.tag().unwrap().as_str(), "fleet/a_stream_:response");
            assert_eq!(interval.start_timestamp(), Duration::from_secs(second));
            assert!((interval.max() - 2_000.0).abs() < 2.0, "{}", interval.max());
        }
    }

    #[test]
    fn the_values_are_those_of_the_window() {
        let windows = windows();
        let values = histogram(&windows.uplinks.values().next().unwrap().response);
        assert_eq!(values.len(), 11);
        assert_eq!(values.value_at_quantile(0.5), 1_234);
    }
}
