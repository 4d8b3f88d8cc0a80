//! Resources of the target that are sampled over time.

use serde::{Deserialize, Serialize};

use crate::figure;

/// One resource of an entry of `monitor`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// Name of the entry.
    pub entry: String,
    /// The resource, such as `cpu` or `memory`.
    pub name: String,
    /// Unit of its values.
    pub unit: ResourceUnit,
    /// The value at which it runs out, in its unit; none if it has no limit, or the limit is not known.
    pub limit: Option<f64>,
}

/// Unit of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResourceUnit {
    /// CPU time divided by time: 1 is one core.
    Cores,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Events per second.
    PerSecond,
    /// Any other number.
    Number,
}

impl ResourceUnit {
    /// Its name, as results write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cores => "cores",
            Self::Bytes => "bytes",
            Self::BytesPerSecond => "bytes-per-second",
            Self::PerSecond => "per-second",
            Self::Number => "number",
        }
    }

    /// A value in words, with its unit.
    pub fn words(self, value: f64) -> String {
        let bytes = || {
            let sign = if value <= -1.0 { "-" } else { "" };
            format!("{sign}{}", figure::bytes(value.abs().round() as u64))
        };
        match self {
            Self::Cores => format!("{} cores", figure::rate(value)),
            Self::Bytes => bytes(),
            Self::BytesPerSecond => format!("{}/s", bytes()),
            Self::PerSecond => format!("{}/s", figure::rate(value)),
            Self::Number => figure::rate(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_unit() {
        use ResourceUnit::{Bytes, BytesPerSecond, Cores, Number, PerSecond};
        for (unit, value, words) in [
            (Cores, 0.42, "0.42 cores"),
            (Bytes, 61_200_000.0, "61.2 MB"),
            (Bytes, -1_500.0, "-1.50 kB"),
            (BytesPerSecond, 0.0, "0 B/s"),
            (PerSecond, 1_234.0, "1,234/s"),
            (Number, 7.5, "7.5"),
        ] {
            assert_eq!(unit.words(value), words);
        }
    }
}
