//! Time series: the key of a point is its entity, its key and its instant, so that a second point of the same
//! instant replaces the first.

use muster_platform::board_rest::{Aggregation, Point, Series, SeriesQuery, SortOrder};
use redb::{ReadableTable, ReadableTableMetadata, Table, WriteTransaction};
use serde_json::{Value, json};

use super::refusal::{Answer, Refusal};
use super::serial::Serial;
use super::store::{SERIES, SeriesKey, Tables};

/// Points of a key where the query does not say.
const LIMIT: u32 = 100;
/// Intervals of an aggregation at the most, as ThingsBoard has it.
const INTERVALS_MAX: i64 = 700;
/// Points that are kept at the most: some 1 GB in memory.
pub(super) const POINTS_MAX: u64 = 10_000_000;

/// The points of one series that a query asks for.
#[derive(Debug, Clone, Copy)]
struct Wanted<'a> {
    entity: u64,
    key: &'a str,
    from: i64,
    /// The first instant that is excluded.
    to: i64,
    is_strict: bool,
}

/// Keeps a point; the value is JSON.
pub(super) fn insert(
    series: &mut Table<'_, SeriesKey, &'static [u8]>,
    (entity, key, ts): (Serial, &str, i64),
    value: &[u8],
) -> Answer<()> {
    series.insert((entity.get(), key, ts), value)?;
    Ok(())
}

/// True if no more points may be kept.
pub(super) fn is_full(tables: &impl Tables) -> Answer<bool> {
    Ok(tables.table(SERIES)?.len()? >= POINTS_MAX)
}

/// Returns the keys of an entity in order.
pub(super) fn keys(tables: &impl Tables, of: Serial) -> Answer<Vec<String>> {
    let series = tables.table(SERIES)?;
    let mut keys: Vec<String> = Vec::new();
    loop {
        let after = match keys.last() {
            Some(last) => (last.as_str(), i64::MAX),
            None => ("", i64::MIN),
        };
        let mut rest = series.range((of.get(), after.0, after.1)..(of.get() + 1, "", i64::MIN))?;
        // The last instant that there can be is the last key's own point.
        let next = loop {
            let Some(found) = rest.next() else { break None };
            let (found, _) = found?;
            let (_, key, _) = found.value();
            if Some(key) != keys.last().map(String::as_str) {
                break Some(key.to_owned());
            }
        };
        match next {
            Some(key) => keys.push(key),
            None => return Ok(keys),
        }
    }
}

/// Reads what a query asks for.
pub(super) fn read(tables: &impl Tables, of: Serial, query: &SeriesQuery) -> Answer<Series> {
    let is_strict = query.use_strict_data_types.unwrap_or(false);
    let wanted_keys: Vec<String> = match query.keys.as_str() {
        "" => keys(tables, of)?,
        keys => keys.split(',').map(|key| key.trim().to_owned()).collect(),
    };
    let limit = query.limit.unwrap_or(LIMIT);
    let aggregated = query.interval.filter(|interval| *interval > 0);
    let agg = query.agg.unwrap_or(Aggregation::None);
    if limit == 0 {
        let what = "Incorrect TsKvQuery. Limit must be greater than zero";
        return Err(Refusal::bad_request(what));
    }
    let table = tables.table(SERIES)?;
    let mut answer = Series::new();
    for key in &wanted_keys {
        let wanted = Wanted {
            entity: of.get(),
            key,
            from: query.start_ts.unwrap_or(i64::MIN),
            to: query.end_ts.unwrap_or(i64::MAX),
            is_strict,
        };
        let points = match (query.start_ts, query.end_ts, aggregated) {
            (Some(_), Some(_), Some(interval)) if agg != Aggregation::None => {
                wanted.aggregate(&table, agg, interval)?
            }
            (Some(_), Some(_), _) => {
                let is_ascending = query.order_by == Some(SortOrder::Ascending);
                wanted.points(&table, limit as usize, is_ascending)?
            }
            _ => wanted.latest().points(&table, 1, false)?,
        };
        if !points.is_empty() {
            answer.insert(key.clone(), points);
        }
    }
    Ok(answer)
}

/// Forgets all points of an entity.
pub(super) fn delete_all(tables: &WriteTransaction, of: Serial) -> Answer<()> {
    let mut series = tables.open_table(SERIES)?;
    let (from, to) = ((of.get(), "", i64::MIN), (of.get() + 1, "", i64::MIN));
    series.retain_in(from..to, |_, _| false)?;
    Ok(())
}

impl<'a> Wanted<'a> {
    /// The same at any instant.
    const fn latest(self) -> Self {
        Self {
            from: i64::MIN,
            to: i64::MAX,
            ..self
        }
    }

    fn range(&self) -> std::ops::Range<(u64, &'a str, i64)> {
        let at = |ts| (self.entity, self.key, ts);
        at(self.from)..at(self.to.max(self.from))
    }

    fn points<T: ReadableTable<SeriesKey, &'static [u8]>>(
        &self,
        table: &T,
        limit: usize,
        is_ascending: bool,
    ) -> Answer<Vec<Point>> {
        let found = table.range(self.range())?;
        let mut points = Vec::new();
        if is_ascending {
            for found in found.take(limit) {
                let (key, value) = found?;
                points.push(self.point(key.value().2, value.value())?);
            }
        } else {
            for found in found.rev().take(limit) {
                let (key, value) = found?;
                points.push(self.point(key.value().2, value.value())?);
            }
        }
        Ok(points)
    }

    fn point(&self, ts: i64, value: &[u8]) -> Answer<Point> {
        let value = self.shown(serde_json::from_slice(value)?);
        Ok(Point { ts, value })
    }

    /// One point for each interval with points, at the middle of the interval.
    fn aggregate<T: ReadableTable<SeriesKey, &'static [u8]>>(
        &self,
        table: &T,
        agg: Aggregation,
        interval: i64,
    ) -> Answer<Vec<Point>> {
        let length = self.to.saturating_sub(self.from).max(0);
        let intervals = length / interval + i64::from(length % interval > 0);
        if intervals > INTERVALS_MAX {
            let what = format!(
                "Incorrect TsKvQuery. Number of intervals is to high - {intervals}. \
                 Currently supported {INTERVALS_MAX} intervals max."
            );
            return Err(Refusal::bad_request(&what));
        }
        let mut points = Vec::new();
        let mut from = self.from;
        while from < self.to {
            let to = from.saturating_add(interval).min(self.to);
            let mut sum = Sum::default();
            for found in table.range(Self { from, to, ..*self }.range())? {
                let (_, value) = found?;
                sum.add(&serde_json::from_slice(value.value())?);
            }
            if let Some(value) = sum.value(agg) {
                let ts = from + (to - from) / 2;
                let value = self.shown(value);
                points.push(Point { ts, value });
            }
            from = to;
        }
        Ok(points)
    }

    /// A value as it is shown: text, unless data types are wanted.
    fn shown(&self, value: Value) -> Value {
        if self.is_strict || value.is_string() {
            return value;
        }
        Value::String(value.to_string())
    }
}

/// Sums over the values of an interval.
#[derive(Debug, Default)]
struct Sum {
    count: u64,
    numbers: u64,
    sum: f64,
    least: Option<f64>,
    most: Option<f64>,
}

impl Sum {
    fn add(&mut self, value: &Value) {
        self.count += 1;
        if let Some(number) = value.as_f64() {
            self.numbers += 1;
            self.sum += number;
            self.least = Some(self.least.map_or(number, |least| least.min(number)));
            self.most = Some(self.most.map_or(number, |most| most.max(number)));
        }
    }

    /// Its value; none without values of a kind that has one.
    fn value(&self, agg: Aggregation) -> Option<Value> {
        let numbers = (self.numbers > 0).then_some(self.numbers);
        match agg {
            Aggregation::None => None,
            Aggregation::Count => (self.count > 0).then(|| json!(self.count)),
            Aggregation::Sum => numbers.map(|_| json!(self.sum)),
            Aggregation::Avg => numbers.map(|numbers| json!(self.sum / numbers as f64)),
            Aggregation::Min => self.least.map(|least| json!(least)),
            Aggregation::Max => self.most.map(|most| json!(most)),
        }
    }
}
