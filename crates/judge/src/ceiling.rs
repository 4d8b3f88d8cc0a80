//! The generator's own ceiling for one scenario: the rate that it can offer on this machine, and the
//! part that ends it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Largest share of the ceiling at which a rate may be the target's: above it the generator's own limit
/// can be what broke (docs/semantics.md#the-generators-ceiling).
pub const GENERATOR_SHARE_MAX: f64 = 0.7;

/// CPU that one message costs, in microseconds, on the average over the streams.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Of the device shards.
    pub shards_us: f64,
    /// Of the busiest consumer thread.
    pub consumer_us: f64,
    /// Of all consumer threads.
    pub consumers_us: f64,
    /// Of an embedded gateway.
    pub gateway_us: f64,
}

impl Cost {
    /// The average over several streams, each with its rate.
    pub fn average(of: impl Iterator<Item = (f64, Self)>) -> Self {
        let (mut rates, mut sum) = (0.0, Self::default());
        for (rate, cost) in of {
            rates += rate;
            sum.shards_us += rate * cost.shards_us;
            sum.consumer_us += rate * cost.consumer_us;
            sum.consumers_us += rate * cost.consumers_us;
            sum.gateway_us += rate * cost.gateway_us;
        }
        let share = |us: f64| if rates > 0.0 { us / rates } else { 0.0 };
        Self {
            shards_us: share(sum.shards_us),
            consumer_us: share(sum.consumer_us),
            consumers_us: share(sum.consumers_us),
            gateway_us: share(sum.gateway_us),
        }
    }
}

/// A part of the generator that can limit its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GeneratorPart {
    /// The threads that drive devices.
    Devices,
    /// The busiest thread of consumers.
    Consumers,
    /// The cores of this machine, which all threads share.
    Cores,
    /// The network interface towards the target.
    Interface,
}

impl GeneratorPart {
    /// The remedy for a rate that this part limits.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Devices => "add cores or another host for the devices (--part devices:1/2)",
            Self::Consumers => "add consumers, or run the backend part on another host",
            Self::Cores => "add cores, or run target and backend part on other hosts",
            Self::Interface => "add a faster network interface, or a second host",
        }
    }
}

impl fmt::Display for GeneratorPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Devices => "devices",
            Self::Consumers => "consumers",
            Self::Cores => "cores",
            Self::Interface => "interface",
        })
    }
}

/// The highest rate that one part allows, in messages of all streams per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PartCeiling {
    /// The part.
    pub part: GeneratorPart,
    /// Messages per second.
    pub rate: f64,
}

/// The highest rate that the generator can offer, by part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// Messages per second of the part that allows least.
    pub rate: f64,
    /// Each part that is known, in the order of [`GeneratorPart`].
    pub by_part: Vec<PartCeiling>,
}

/// A part of the generator whose share for a rate is above [`GENERATOR_SHARE_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// The part that allows least.
    pub part: GeneratorPart,
    /// Its ceiling, in messages per second.
    pub ceiling: f64,
    /// Share of the ceiling.
    pub share: f64,
}

/// The ceiling for messages of one size.
#[derive(Debug, Clone, PartialEq)]
pub struct SizedCeiling {
    /// Bytes of a message.
    pub bytes: f64,
    /// The ceiling, in messages per second.
    pub ceiling: Ceiling,
}

impl Ceiling {
    /// The ceiling in bytes of a message at a fixed rate, by the ceilings for two sizes: the use of a part grows linearly
    /// with the size. It is scaled such that [`GENERATOR_SHARE_MAX`] of it uses that share of the part. None if no part is
    /// known to depend on the size.
    pub fn of_payload(rate: f64, small: &SizedCeiling, large: &SizedCeiling) -> Option<Self> {
        let more = large.bytes - small.bytes;
        let parts = small.ceiling.by_part.iter().filter_map(|of_small| {
            let mut parts = large.ceiling.by_part.iter();
            let of_large = parts.find(|it| it.part == of_small.part)?;
            let [use_small, use_large] = [of_small, of_large].map(|it| rate / it.rate);
            let use_per_byte = (use_large - use_small) / more;
            let left = (GENERATOR_SHARE_MAX - use_small) / use_per_byte;
            let most = (small.bytes + left).max(0.0);
            (use_per_byte > 0.0).then_some(PartCeiling {
                part: of_small.part,
                rate: most / GENERATOR_SHARE_MAX,
            })
        });
        Self::new(parts.collect())
    }

    /// The ceiling of a load while messages are sent at this rate, by the ceiling of these. It is scaled such that
    /// [`GENERATOR_SHARE_MAX`] of it, with the messages, uses that share of a part; 0 if the messages use it alone.
    #[must_use]
    pub fn left_by(mut self, rate: f64, messages: &Self) -> Self {
        for of in &mut self.by_part {
            let mut parts = messages.by_part.iter();
            let part = parts.find(|it| it.part == of.part);
            let used = part.map_or(0.0, |part| rate / part.rate);
            of.rate *= (GENERATOR_SHARE_MAX - used).max(0.0) / GENERATOR_SHARE_MAX;
        }
        self.rate = self.least().map_or(0.0, |least| least.rate);
        self
    }

    /// The ceiling of a load at this rate that grows and shrinks together with another one, at `other_rate` then, by the
    /// ceiling of that one: the shares of both loads add up in each part.
    #[must_use]
    pub fn together(mut self, rate: f64, other_rate: f64, other: &Self) -> Self {
        for of in &mut self.by_part {
            let mut parts = other.by_part.iter();
            let part = parts.find(|it| it.part == of.part);
            let used = part.map_or(0.0, |part| other_rate / part.rate);
            of.rate = rate / (rate / of.rate + used);
        }
        self.rate = self.least().map_or(0.0, |least| least.rate);
        self
    }

    /// The ceiling that these parts make; none without a part.
    pub fn new(by_part: Vec<PartCeiling>) -> Option<Self> {
        let least = least(&by_part)?;
        Some(Self {
            rate: least.rate,
            by_part,
        })
    }

    /// The part that allows least.
    pub fn least(&self) -> Option<PartCeiling> {
        least(&self.by_part)
    }

    /// Share of the ceiling that a rate needs.
    pub fn share_of(&self, rate: f64) -> f64 {
        rate / self.rate.max(f64::MIN_POSITIVE)
    }

    /// The part that makes a rate generator-bound; none if it needs at most [`GENERATOR_SHARE_MAX`] of
    /// each.
    pub fn bottleneck(&self, rate: f64) -> Option<Bottleneck> {
        let least = self.least()?;
        let share = self.share_of(rate);
        (share > GENERATOR_SHARE_MAX).then_some(Bottleneck {
            part: least.part,
            ceiling: least.rate,
            share,
        })
    }
}

fn least(by_part: &[PartCeiling]) -> Option<PartCeiling> {
    let rates = by_part.iter().copied();
    rates.min_by(|a, b| a.rate.total_cmp(&b.rate))
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (share, ceiling) = (self.share * 100.0, muster_model::figure::rate(self.ceiling));
        let (part, remedy) = (self.part, self.part.remedy());
        write!(
            f,
            "generator-bound: {share:.0} % of {ceiling}/s, the ceiling of its {part}; {remedy}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_payload_is_the_one_that_uses_the_allowed_share_of_a_part() {
        // 10 us a message and 1 ns a byte of the devices; 2 us and 4 ns of the consumers.
        let sized = |bytes: f64| SizedCeiling {
            bytes,
            ceiling: ceiling(&[
                (GeneratorPart::Devices, 1e6 / (10.0 + 0.001 * bytes)),
                (GeneratorPart::Consumers, 1e6 / (2.0 + 0.004 * bytes)),
            ]),
        };
        let largest = |rate: f64| {
            let found = Ceiling::of_payload(rate, &sized(100.0), &sized(1_600.0));
            let found = found.and_then(|found| found.least()).expect("a part");
            (found.part, (found.rate * GENERATOR_SHARE_MAX).round())
        };
        // 10,000/s leave 70 us for a message.
        assert_eq!(largest(10_000.0), (GeneratorPart::Consumers, 17_000.0));
        assert_eq!(largest(69_000.0), (GeneratorPart::Devices, 145.0));
        assert_eq!(largest(80_000.0), (GeneratorPart::Devices, 0.0));
        let same = sized(100.0);
        let unmoved = SizedCeiling {
            bytes: 1_600.0,
            ..same.clone()
        };
        assert_eq!(Ceiling::of_payload(1.0, &same, &unmoved), None);
    }

    fn ceiling(parts: &[(GeneratorPart, f64)]) -> Ceiling {
        let parts = parts.iter().map(|&(part, rate)| PartCeiling { part, rate });
        Ceiling::new(parts.collect()).expect("a part")
    }

    #[test]
    fn the_part_that_allows_least_is_the_ceiling_and_is_named_above_70_percent_of_it() {
        let ceiling = ceiling(&[
            (GeneratorPart::Devices, 100_000.0),
            (GeneratorPart::Consumers, 40_000.0),
            (GeneratorPart::Interface, 90_000.0),
        ]);
        assert_eq!(ceiling.rate, 40_000.0);
        assert_eq!(ceiling.share_of(10_000.0), 0.25);
        assert_eq!(ceiling.bottleneck(28_000.0), None);
        let bound = ceiling.bottleneck(30_000.0).expect("above 70 %");
        assert_eq!((bound.part, bound.share), (GeneratorPart::Consumers, 0.75));
        assert!(bound.to_string().starts_with("generator-bound: 75 % of 40"));
    }

    #[test]
    fn a_load_with_messages_has_what_they_leave_of_each_part() {
        let (messages, commands) = messages_and_commands();
        // 3,500/s use 35 % of the devices and 7 % of the consumers.
        let left = commands.clone().left_by(3_500.0, &messages);
        assert_eq!(rates(&left), [4_000.0, 3_600.0, 7_000.0]);
        assert_eq!(left.rate.round(), 3_600.0);
        assert_eq!(commands.clone().left_by(0.0, &messages), commands);
        assert_eq!(commands.left_by(9_000.0, &messages).rate, 0.0);
    }

    #[test]
    fn the_shares_of_loads_that_grow_together_add_up_in_each_part() {
        let (messages, commands) = messages_and_commands();
        // Each alone uses 60 % of the devices.
        let together = commands.clone().together(4_800.0, 6_000.0, &messages);
        assert_eq!(rates(&together), [4_000.0, 3_636.0, 7_000.0]);
        assert_eq!((together.share_of(4_800.0) * 100.0).round(), 132.0);
        assert_eq!(
            rates(&commands.clone().together(1.0, 0.0, &messages)),
            rates(&commands)
        );
    }

    fn messages_and_commands() -> (Ceiling, Ceiling) {
        let messages = ceiling(&[
            (GeneratorPart::Devices, 10_000.0),
            (GeneratorPart::Consumers, 50_000.0),
        ]);
        let commands = ceiling(&[
            (GeneratorPart::Devices, 8_000.0),
            (GeneratorPart::Consumers, 4_000.0),
            (GeneratorPart::Cores, 7_000.0),
        ]);
        (messages, commands)
    }

    fn rates(of: &Ceiling) -> Vec<f64> {
        of.by_part.iter().map(|of| of.rate.round()).collect()
    }

    #[test]
    fn no_part_is_no_ceiling() {
        assert_eq!(Ceiling::new(Vec::new()), None);
    }

    #[test]
    fn a_cost_is_weighted_by_the_rates_of_the_streams() {
        let cost = |shards_us| Cost {
            shards_us,
            ..Cost::default()
        };
        let average = Cost::average([(900.0, cost(10.0)), (100.0, cost(30.0))].into_iter());
        assert!((average.shards_us - 12.0).abs() < 1e-9, "{average:?}");
        assert_eq!(Cost::average(std::iter::empty()), Cost::default());
    }
}
