//! Time series of an entity.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Points of time series by key. A key without points is left out.
pub type Series = BTreeMap<String, Vec<Point>>;

/// A stored point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its instant in milliseconds of the wall clock; the part of its identity that is not entity or key.
    pub ts: i64,
    /// A text, unless strict data types are wanted.
    pub value: Value,
}

/// Query for points. Without `start_ts` and `end_ts` the latest points are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SeriesQuery {
    /// Keys with commas between them; empty for all where the latest points are read.
    pub keys: String,
    /// First instant, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ts: Option<i64>,
    /// First instant that is excluded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ts: Option<i64>,
    /// Milliseconds that are aggregated into one point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<i64>,
    /// Points of each key at the most, above zero; by default 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The aggregation; by default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agg: Option<Aggregation>,
    /// The order by instants; by default descending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_by: Option<SortOrder>,
    /// True if numbers, booleans and objects are wanted as such; else all values are text.
    #[serde(
        deserialize_with = "super::flag",
        skip_serializing_if = "Option::is_none"
    )]
    pub use_strict_data_types: Option<bool>,
}

/// Aggregations of the points in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Aggregation {
    /// Each point as it is.
    None,
    /// Their number.
    Count,
    /// Their average.
    Avg,
    /// Their sum.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// Orders of points by instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SortOrder {
    /// The oldest first.
    #[serde(rename = "ASC")]
    Ascending,
    /// The newest first.
    #[serde(rename = "DESC")]
    Descending,
}
