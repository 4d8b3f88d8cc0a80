//! Simulated targets of known capacity, each a pure function of a seed.

use std::collections::VecDeque;

use muster_judge::capacity::{Batch, Margin, Outcome};

use crate::random::Random;

/// The share of messages that may be slower than the limit.
const SLOW: f64 = 0.01;
/// Messages in the queue at the end of a step after which the target that cannot recover stays overloaded.
const LOST_AT: usize = 2_000;

/// Time that a message is served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Service {
    Exponential,
    Fixed,
    /// Lognormal with this deviation of the logarithm.
    Heavy(f64),
}

/// Disturbance of a target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Disturbance {
    None,
    /// Every server rests for `length` seconds, every `every` seconds.
    Pauses {
        every: f64,
        length: f64,
    },
    /// Pauses at random, with these means of distance and length.
    RandomPauses {
        every: f64,
        length: f64,
    },
    /// Serving takes `factor` times as long in the first seconds of load.
    WarmUp {
        seconds: f64,
        factor: f64,
    },
    /// Serving takes longer by this share with each minute of load.
    Leak {
        a_minute: f64,
    },
    /// Serving takes `factor` times as long for `length` seconds, every `every` seconds, both exponential.
    Neighbour {
        every: f64,
        length: f64,
        factor: f64,
    },
    /// After an overload the target does not come to rest.
    NoRecovery,
}

/// A target with a queue, first come, first served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) servers: usize,
    /// Mean service time in seconds.
    pub(crate) mean: f64,
    pub(crate) service: Service,
    /// Messages that may wait; further ones are lost.
    pub(crate) queue: usize,
    pub(crate) disturbance: Disturbance,
    /// The response time in seconds that 99 % have to keep.
    pub(crate) limit: f64,
    /// The share that may be lost.
    pub(crate) loss: f64,
    /// The highest rate at which both levels hold in the long run.
    pub(crate) truth: Truth,
}

/// Origin of a target's true capacity.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Truth {
    /// The formula of the response time in M/M/c.
    Response,
    /// The formula of the loss in M/M/1/K.
    Loss,
    /// The result of a long simulation, which a test repeats.
    Simulated(f64),
}

pub(crate) const PLAIN: Target = Target {
    name: "M/M/1",
    servers: 1,
    mean: 0.001,
    service: Service::Exponential,
    queue: usize::MAX,
    disturbance: Disturbance::None,
    limit: 0.05,
    loss: 0.001,
    truth: Truth::Response,
};

pub(crate) const FOUR_SERVERS: Target = Target {
    name: "M/M/4",
    servers: 4,
    mean: 0.004,
    ..PLAIN
};

pub(crate) const FIXED: Target = Target {
    name: "M/D/1",
    service: Service::Fixed,
    limit: 0.02,
    truth: Truth::Simulated(886.9),
    ..PLAIN
};

pub(crate) const HEAVY: Target = Target {
    name: "M/G/1, lognormal service",
    service: Service::Heavy(1.2),
    limit: 0.1,
    truth: Truth::Simulated(883.9),
    ..PLAIN
};

pub(crate) const BOUNDED: Target = Target {
    name: "bounded queue that drops",
    queue: 40,
    limit: 1.0,
    truth: Truth::Loss,
    ..PLAIN
};

pub(crate) const PAUSES: Target = Target {
    name: "collection pauses",
    service: Service::Fixed,
    disturbance: Disturbance::Pauses {
        every: 2.0,
        length: 0.03,
    },
    limit: 0.025,
    truth: Truth::Simulated(620.9),
    ..PLAIN
};

pub(crate) const RARE_PAUSES: Target = Target {
    name: "rare long pauses",
    service: Service::Fixed,
    disturbance: Disturbance::RandomPauses {
        every: 20.0,
        length: 0.15,
    },
    limit: 0.05,
    truth: Truth::Simulated(461.7),
    ..PLAIN
};

pub(crate) const WARM_UP: Target = Target {
    name: "warm-up of 30 s",
    disturbance: Disturbance::WarmUp {
        seconds: 30.0,
        factor: 2.0,
    },
    ..PLAIN
};

pub(crate) const LEAK: Target = Target {
    name: "slow leak, 0.2 % a minute",
    disturbance: Disturbance::Leak { a_minute: 0.002 },
    ..PLAIN
};

pub(crate) const NEIGHBOUR: Target = Target {
    name: "noisy neighbour",
    disturbance: Disturbance::Neighbour {
        every: 10.0,
        length: 2.0,
        factor: 1.2,
    },
    truth: Truth::Simulated(783.0),
    ..PLAIN
};

pub(crate) const NO_RECOVERY: Target = Target {
    name: "no recovery after overload",
    disturbance: Disturbance::NoRecovery,
    ..PLAIN
};

pub(crate) const TARGETS: [Target; 11] = [
    PLAIN,
    FOUR_SERVERS,
    FIXED,
    HEAVY,
    BOUNDED,
    PAUSES,
    RARE_PAUSES,
    WARM_UP,
    LEAK,
    NEIGHBOUR,
    NO_RECOVERY,
];

impl Target {
    /// The same target, but all takes this many times as long.
    pub(crate) fn slowed(self, times: f64) -> Self {
        Self {
            mean: self.mean * times,
            limit: self.limit * times,
            truth: match self.truth {
                Truth::Simulated(rate) => Truth::Simulated(rate / times),
                truth @ (Truth::Response | Truth::Loss) => truth,
            },
            ..self
        }
    }

    /// The highest rate at which both levels hold in the long run, after `age` seconds of load.
    pub(crate) fn truth(&self, age: f64) -> f64 {
        let slower = match self.disturbance {
            Disturbance::Leak { a_minute } => 1.0 + a_minute * age / 60.0,
            Disturbance::None
            | Disturbance::Pauses { .. }
            | Disturbance::RandomPauses { .. }
            | Disturbance::WarmUp { .. }
            | Disturbance::Neighbour { .. }
            | Disturbance::NoRecovery => 1.0,
        };
        let mu = 1.0 / (self.mean * slower);
        match self.truth {
            Truth::Response => highest(mu * self.servers as f64, |rate| {
                slow_share(rate / mu, self.servers, mu * self.limit) <= SLOW
            }),
            Truth::Loss => highest(2.0 * mu, |rate| {
                let (load, room) = (rate / mu, self.queue as i32 + 1);
                let lost = (1.0 - load) * load.powi(room) / (1.0 - load.powi(room + 1));
                lost <= self.loss
            }),
            Truth::Simulated(rate) => rate,
        }
    }

    /// Returns true if both levels hold in one simulation of that many seconds.
    pub(crate) fn passes(&self, rate: f64, seconds: f64) -> bool {
        let mut world = World::new(*self, 1);
        world.hold(rate, seconds, seconds).outcome == Outcome::Pass
    }
}

/// The highest rate up to `most` at which something holds that does not hold above.
pub(crate) fn highest(most: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.3 * most, most);
    while high / low > 1.0002 {
        let middle = f64::midpoint(low, high);
        match holds(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    f64::midpoint(low, high)
}

/// The share of messages of M/M/c whose response takes longer than `limit` mean service times, at a load of
/// `load` servers.
fn slow_share(load: f64, servers: usize, limit: f64) -> f64 {
    // Erlang's formulas: all servers busy without a queue, then with one.
    let blocked = (1..=servers).fold(1.0, |blocked, server| {
        load * blocked / (server as f64 + load * blocked)
    });
    let servers = servers as f64;
    let waits = servers * blocked / (servers - load * (1.0 - blocked));
    let rest = servers - 1.0 - load;
    (-limit).exp() * (1.0 + waits * (1.0 - (-limit * rest).exp()) / rest)
}

/// A message of a simulated step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message {
    /// Its due time in the step, in seconds.
    pub(crate) due: f64,
    /// The time to its response; none if it was lost.
    pub(crate) response: Option<f64>,
}

/// Outcome of a simulated step.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    pub(crate) outcome: Outcome,
    /// The figures of the level that came nearest to its limit.
    pub(crate) margin: Margin,
    pub(crate) has_recovered: bool,
}

/// A target under load.
pub(crate) struct World {
    target: Target,
    random: Random,
    /// Seconds of load so far.
    pub(crate) age: f64,
    /// The next change of a random disturbance, on the scale of `age`, and whether it begins one.
    change: (f64, bool),
    /// The factor on service times of a random disturbance under way. It outlives a step.
    factor: f64,
}

impl World {
    pub(crate) fn new(target: Target, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let first = match target.disturbance {
            Disturbance::RandomPauses { every, .. } | Disturbance::Neighbour { every, .. } => {
                every * random.exponential()
            }
            Disturbance::Pauses { every, .. } => every * random.uniform(),
            Disturbance::None
            | Disturbance::WarmUp { .. }
            | Disturbance::Leak { .. }
            | Disturbance::NoRecovery => f64::INFINITY,
        };
        Self {
            target,
            random,
            age: 0.0,
            change: (first, true),
            factor: 1.0,
        }
    }

    /// Holds a rate, and judges as a run is judged: by the share of slow messages and of lost ones, each counted in parts
    /// of `batch` seconds.
    pub(crate) fn hold(&mut self, rate: f64, seconds: f64, batch: f64) -> Judged {
        let parts = vec![Batch::default(); (seconds / batch).ceil() as usize];
        let levels = [("slow", SLOW), ("lost", self.target.loss)];
        let [mut slow, mut lost] = levels.map(|(slo, allowed)| Margin {
            slo: slo.to_owned(),
            allowed,
            batches: parts.clone(),
        });
        let limit = self.target.limit;
        let queued = self.messages(rate, seconds, |message| {
            let at = (message.due / batch) as usize;
            let is_slow = message.response.is_some_and(|response| response > limit);
            for (margin, is_bad) in [
                (&mut slow, is_slow),
                (&mut lost, message.response.is_none()),
            ] {
                margin.batches[at].messages += 1;
                margin.batches[at].bad += u64::from(is_bad);
            }
        });
        let margin = if lost.ratio() > slow.ratio() {
            lost
        } else {
            slow
        };
        let holds = margin.ratio() <= 1.0;
        let is_lost = self.target.disturbance == Disturbance::NoRecovery && queued > LOST_AT;
        Judged {
            outcome: if holds { Outcome::Pass } else { Outcome::Fail },
            margin,
            has_recovered: !is_lost,
        }
    }

    /// Offers messages at random instants of a mean rate to an idle target; the number of those that wait at the end.
    pub(crate) fn messages(
        &mut self,
        rate: f64,
        seconds: f64,
        mut report: impl FnMut(Message),
    ) -> usize {
        let began = self.age;
        let mut free = vec![0.0_f64; self.target.servers];
        let mut waiting: VecDeque<f64> = VecDeque::new();
        let mut now = self.random.exponential() / rate;
        while now < seconds {
            while began + now >= self.change.0 {
                self.factor = self.disturb(&mut free, began);
            }
            while waiting.front().is_some_and(|start| *start <= now) {
                waiting.pop_front();
            }
            let response = (waiting.len() < self.target.queue).then(|| {
                let server = (0..free.len()).min_by(|a, b| free[*a].total_cmp(&free[*b]));
                let server = server.expect("a target has a server");
                let start = free[server].max(now);
                let service = self.service() * self.factor * self.slower(began + now);
                free[server] = start + service;
                if start > now {
                    waiting.push_back(start);
                }
                free[server] - now
            });
            report(Message { due: now, response });
            now += self.random.exponential() / rate;
        }
        self.age += seconds;
        waiting.len()
    }

    /// Begins or ends a random disturbance, and draws the next; the factor on service times from now on.
    fn disturb(&mut self, free: &mut [f64], began: f64) -> f64 {
        let (at, is_begin) = self.change;
        match self.target.disturbance {
            Disturbance::Pauses { every, length } => {
                rest(free, at - began, length);
                self.change = (at + every, true);
                1.0
            }
            Disturbance::RandomPauses { every, length } => {
                let length = length * self.random.exponential();
                rest(free, at - began, length);
                self.change = (at + every * self.random.exponential(), true);
                1.0
            }
            Disturbance::Neighbour {
                every,
                length,
                factor,
            } => {
                let mean = if is_begin { length } else { every };
                self.change = (at + mean * self.random.exponential(), !is_begin);
                if is_begin { factor } else { 1.0 }
            }
            Disturbance::None
            | Disturbance::WarmUp { .. }
            | Disturbance::Leak { .. }
            | Disturbance::NoRecovery => 1.0,
        }
    }

    fn service(&mut self) -> f64 {
        let random = &mut self.random;
        self.target.mean
            * match self.target.service {
                Service::Exponential => random.exponential(),
                Service::Fixed => 1.0,
                Service::Heavy(deviation) => {
                    (deviation * random.normal() - deviation * deviation / 2.0).exp()
                }
            }
    }

    fn slower(&self, age: f64) -> f64 {
        match self.target.disturbance {
            Disturbance::WarmUp { seconds, factor } if age < seconds => factor,
            Disturbance::Leak { a_minute } => 1.0 + a_minute * age / 60.0,
            Disturbance::None
            | Disturbance::Pauses { .. }
            | Disturbance::RandomPauses { .. }
            | Disturbance::WarmUp { .. }
            | Disturbance::Neighbour { .. }
            | Disturbance::NoRecovery => 1.0,
        }
    }
}

fn rest(free: &mut [f64], at: f64, length: f64) {
    for free in free {
        *free = free.max(at) + length;
    }
}
