//! The generator's own ceiling for a scenario on this machine, measured against a null target: the
//! reference gateway in another process.

mod cache;
mod interface;
mod null_target;

use std::fmt::Write as _;

use anyhow::Result;
use muster_judge::{Ceiling, Cost, GeneratorPart, PartCeiling};
use muster_model::{Dimension, StreamId, figure};
use muster_plan::{Plan, PlatformKind};
use muster_scenario::peaks;
use serde::{Deserialize, Serialize};

use self::interface::Interface;
pub(crate) use self::interface::link_speed;
use crate::args::CalibrationArgs;
use crate::target::Addresses;

/// The most streams that have a turn each; the costliest of them speaks for the others.
const TURNS_MAX: usize = 3;

/// The costs of a scenario's messages, as the null target showed them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Measured {
    /// Each stream that had a turn.
    streams: Vec<StreamCost>,
    /// The highest rate that one shard reached, in messages per second.
    reached: f64,
    /// Largest share of a second in which the shard waited for a CPU.
    waited: f64,
}

/// Share of a second in which the shard waits for a CPU, above which a machine is busy.
const WAITED_MAX: f64 = 0.5;

/// The cost of a stream's messages, commands or connection attempts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct StreamCost {
    stream: StreamId,
    cost: Cost,
    /// Bytes of the protocol for one message, without those of TLS and below; 0 if they are not counted.
    bytes: f64,
}

/// The ceiling of a scenario, and what it does not cover.
pub(crate) struct Calibration {
    pub(crate) ceiling: Ceiling,
    /// The load that it is of: [`Dimension::Commands`], [`Dimension::Connects`], or messages.
    load: Dimension,
    reached: f64,
    waited: f64,
    uncovered: Vec<&'static str>,
}

impl Calibration {
    /// Measures the ceiling of a load of a plan, or reads it from the cache; none if the plan has none of that load.
    pub(crate) fn find(
        plan: &Plan,
        load: Dimension,
        addresses: &Addresses,
        args: &CalibrationArgs,
    ) -> Result<Option<Self>> {
        let attempting = match load {
            Dimension::Connects => plan.attempting(),
            Dimension::Rate | Dimension::Devices | Dimension::Payload | Dimension::Commands => None,
        };
        if load == Dimension::Connects && attempting.is_none() {
            return Ok(None);
        }
        let plan = attempting.as_ref().unwrap_or(plan);
        let rates = rates(plan, load);
        let turns = turns(&rates);
        if turns.is_empty() {
            return Ok(None);
        }
        if load == Dimension::Commands && issues_elsewhere(plan) {
            return Ok(None);
        }
        let null = plan.saturating(&turns);
        let measured = cache::cached(&null, args.no_cache, || {
            null_target::measure(null.clone(), &turns)
        })?;
        let machine = Machine::new(plan, addresses, args);
        Ok(machine
            .ceiling(plan, &measured.average(&rates))
            .map(|ceiling| Self {
                ceiling,
                load,
                reached: measured.reached,
                waited: measured.waited,
                uncovered: uncovered(plan, addresses, &machine),
            }))
    }

    /// One line: the ceiling, each part's, and what is not covered.
    pub(crate) fn in_words(&self, peak: f64) -> String {
        let Ceiling { rate, by_part } = &self.ceiling;
        let parts = by_part.iter();
        let parts = parts.map(|it| format!("{} {}/s", it.part, figure::rate(it.rate)));
        let (of, can, did) = match self.load {
            Dimension::Commands => (" of commands", "issue together with the messages", "took"),
            Dimension::Connects => (" of connects", "make", "made"),
            Dimension::Rate | Dimension::Devices | Dimension::Payload => ("", "send", "sent"),
        };
        let mut text = format!(
            "ceiling{of}: at most {}/s is {} of {}/s, which the generator can {can} here ({}); one shard \
             {did} {}/s to a null target",
            figure::rate(peak),
            figure::percent(self.ceiling.share_of(peak)),
            figure::rate(*rate),
            parts.collect::<Vec<_>>().join(", "),
            figure::rate(self.reached),
        );
        if let Some(busy) = self.busy_in_words() {
            let _ = write!(text, ", {busy}");
        }
        if !self.uncovered.is_empty() {
            let _ = write!(text, "; not covered: {}", self.uncovered.join(", "));
        }
        text
    }

    /// A remark on a machine that was too busy for the measurement, with the remedy; none if it was not.
    pub(crate) fn busy_in_words(&self) -> Option<String> {
        let waited = figure::percent(self.waited);
        (self.waited > WAITED_MAX).then(|| {
            format!("waiting {waited} of the time for a CPU: measure it again with --no-cache when this machine is idle")
        })
    }
}

impl Measured {
    /// True if others left the shard too little CPU.
    fn is_of_busy_machine(&self) -> bool {
        self.waited > WAITED_MAX
    }

    fn is_plausible(&self) -> bool {
        let is_positive = |figure: f64| figure.is_finite() && figure > 0.0;
        let is_known = |it: &StreamCost| is_positive(it.cost.shards_us) && it.bytes.is_finite();
        is_positive(self.reached) && !self.streams.is_empty() && self.streams.iter().all(is_known)
    }

    /// The average message of streams with these rates.
    fn average(&self, rates: &[(StreamId, f64)]) -> Message {
        let costliest = self.streams.iter();
        let costliest = costliest.max_by(|a, b| a.cost.shards_us.total_cmp(&b.cost.shards_us));
        let of = |stream| {
            let mut all = self.streams.iter();
            all.find(|it| it.stream == stream).or(costliest)
        };
        let known = || {
            let rates = rates.iter();
            rates.filter_map(|(stream, rate)| Some((*rate, of(*stream)?)))
        };
        let all: f64 = known().map(|(rate, _)| rate).sum();
        let bytes: f64 = known().map(|(rate, it)| rate * it.bytes).sum();
        Message {
            cost: Cost::average(known().map(|(rate, it)| (rate, it.cost))),
            bytes: bytes / all.max(f64::MIN_POSITIVE),
        }
    }
}

/// The average message of a scenario.
struct Message {
    cost: Cost,
    bytes: f64,
}

/// Resources of a run of a plan on this machine.
struct Machine {
    cores: f64,
    /// Device shards of a run without `--shards`.
    shards: f64,
    /// True if a run starts the gateway itself.
    is_embedded: bool,
    interface: Interface,
}

impl Machine {
    fn new(plan: &Plan, addresses: &Addresses, args: &CalibrationArgs) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        Self {
            cores: f64::from(cores),
            shards: f64::from(addresses.cores_for_shards(cores)),
            is_embedded: matches!(plan.platform.kind, PlatformKind::Gateway { .. }),
            interface: Interface::towards(addresses, args.link_speed),
        }
    }

    /// Cores and threads divided by the CPU that a message needs of them (docs/semantics.md).
    fn ceiling(&self, plan: &Plan, message: &Message) -> Option<Ceiling> {
        let Message { cost, bytes } = message;
        let gateway_us = if self.is_embedded {
            cost.gateway_us
        } else {
            0.0
        };
        let together = cost.shards_us + cost.consumers_us + gateway_us;
        let backends = plan.accounts() as f64;
        let parts = [
            (GeneratorPart::Devices, self.shards * 1e6 / cost.shards_us),
            (GeneratorPart::Consumers, 1e6 / cost.consumer_us),
            (GeneratorPart::Cores, self.cores * 1e6 / together),
            (
                GeneratorPart::Interface,
                self.interface.messages(*bytes, backends),
            ),
        ];
        let is_known = |(part, rate): &(GeneratorPart, f64)| {
            rate.is_finite() && (*part != GeneratorPart::Interface || *bytes > 0.0)
        };
        let known = parts.into_iter().filter(is_known);
        Ceiling::new(
            known
                .map(|(part, rate)| PartCeiling { part, rate })
                .collect(),
        )
    }
}

/// The highest rate of each stream of a load.
fn rates(plan: &Plan, load: Dimension) -> Vec<(StreamId, f64)> {
    let of_commands = plan.streams().filter(|(_, stream)| stream.is_command());
    let of_commands = of_commands.map(|(_, stream)| (stream.id, stream.schedule.rate.get()));
    let rates: Vec<(StreamId, f64)> = match load {
        Dimension::Commands => of_commands.collect(),
        Dimension::Rate | Dimension::Devices | Dimension::Payload | Dimension::Connects => {
            peaks(plan).collect()
        }
    };
    rates.into_iter().filter(|(_, rate)| *rate > 0.0).collect()
}

/// The streams with the highest rates, in their order.
fn turns(rates: &[(StreamId, f64)]) -> Vec<StreamId> {
    let mut rates = rates.to_vec();
    rates.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    rates.truncate(TURNS_MAX);
    rates.into_iter().map(|(stream, _)| stream).collect()
}

/// Returns whether commands are issued by a backend that a null target has not.
fn issues_elsewhere(plan: &Plan) -> bool {
    let mut issuers = plan.backends.iter().filter(|it| it.issues_commands);
    issuers.any(|it| it.kafka().is_some() || it.kind().only_commands)
}

fn uncovered(plan: &Plan, addresses: &Addresses, machine: &Machine) -> Vec<&'static str> {
    let is_embedded = machine.is_embedded;
    let all = [
        (
            plan.backends.iter().any(|it| it.kafka().is_some()),
            "consumers of Kafka",
        ),
        (
            issues_elsewhere(plan),
            "commands over Kafka or by a REST API",
        ),
        (
            !is_embedded && addresses.is_co_located(),
            "the target's own CPU on this machine",
        ),
        (
            machine.interface.is_unknown(),
            "the network interface (give its speed with --link-speed)",
        ),
    ];
    let lacking = all.into_iter().filter(|(is_lacking, _)| *is_lacking);
    lacking.map(|(_, what)| what).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(shards_us: f64) -> StreamCost {
        StreamCost {
            stream: StreamId(0),
            cost: Cost {
                shards_us,
                consumer_us: 4.0,
                consumers_us: 5.0,
                gateway_us: 15.0,
            },
            bytes: 100.0,
        }
    }

    #[test]
    fn a_stream_without_a_turn_costs_as_much_as_the_costliest() {
        let measured = Measured {
            streams: vec![
                cost(10.0),
                StreamCost {
                    stream: StreamId(1),
                    ..cost(20.0)
                },
            ],
            reached: 1.0,
            waited: 0.0,
        };
        let rates = [(StreamId(0), 1.0), (StreamId(1), 1.0), (StreamId(2), 2.0)];
        let message = measured.average(&rates);
        assert_eq!((message.cost.shards_us, message.bytes), (17.5, 100.0));
    }

    #[test]
    fn the_streams_with_the_highest_rates_have_a_turn() {
        let rates: Vec<_> = (0..5).map(|id| (StreamId(id), f64::from(id % 4))).collect();
        assert_eq!(turns(&rates), [3, 2, 1].map(StreamId));
    }
}
