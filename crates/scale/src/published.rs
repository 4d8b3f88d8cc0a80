//! The policy of the published scale test of Eclipse Hono: load and target grow in turn.
//!
//! While the ratio of failures is acceptable, a unit of load is added; if it does not become so in time, an instance.
//! The test ends where either has its most. See `docs/scale.md` for what is wrong with its figures.

mod figures;

use muster_model::Micros;
use serde::{Deserialize, Serialize};

pub use figures::{Figures, Reading, Second, Seconds};

/// Pause between two checks.
const POLL: Micros = Micros::from_secs(10);

/// Parameters of the published test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PublishedSpec {
    /// A level is acceptable below this ratio of failures.
    pub failure_ratio: f64,
    /// Length of the window of a reading.
    pub window: Micros,
    /// Time from the end of the window to the reading.
    pub offset: Micros,
    /// Longest wait for an acceptable reading.
    pub stable_within: Micros,
    /// Time in which a better reading replaces the first acceptable one.
    pub improve: Micros,
    /// The first level.
    pub least: Level,
    /// Limits of both numbers.
    pub most: Level,
}

impl PublishedSpec {
    /// The longest time that a test takes from a level on.
    pub fn longest(&self, from: Level) -> Micros {
        let late = Micros(4 * POLL.get());
        let unstable = self.window + self.offset + self.stable_within + late;
        let units = u64::from(self.most.units.saturating_sub(from.units) + 1);
        let instances = u64::from(self.most.instances.saturating_sub(from.instances));
        let stable = (unstable + self.improve).get().saturating_mul(units);
        self.window + Micros(stable.saturating_add(unstable.get().saturating_mul(instances)))
    }
}

/// Load and target together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Units of load, the producers of the published test.
    pub units: u32,
    /// Instances of the target, its adapters.
    pub instances: u32,
}

/// An event of the published test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// A line of its log is due.
    Log(LogLine),
    /// The reading is acceptable; a better one is waited for.
    StableStart,
    /// A level is to be set; nothing happens until it was [`Published::applied`].
    Set(Level),
    /// The test is over.
    End(Limit),
}

/// A limit that ends the published test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The most units of load.
    Units,
    /// The most instances.
    Instances,
}

/// A line of the log, and the same figures by sums.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LogLine {
    /// Its instant since the Unix epoch.
    pub at: Micros,
    /// The level.
    #[serde(flatten)]
    pub level: Level,
    /// The figures that the published test writes. Round-trip time and received rate may be those of an earlier
    /// level: it sets them only when a reading is better than the first acceptable one.
    pub published: Figures,
    /// The sums over the window of the best reading.
    pub summed: Figures,
    /// True for an acceptable level; false for the first and the last line.
    pub is_stable: bool,
}

impl LogLine {
    /// The line as the published test writes it: `time;received/s;failure rate;RTT ms;producers;adapters`.
    pub fn text(&self, time: &str) -> String {
        let Figures {
            failure_ratio,
            rtt_ms,
            received_per_s,
        } = self.published;
        format!(
            "{time};{received_per_s:.0};{:.4};{:.0};{};{}",
            failure_ratio.unwrap_or(f64::NAN),
            rtt_ms.unwrap_or(f64::NAN),
            self.level.units,
            self.level.instances
        )
    }
}

/// The published test under way. All instants count from the Unix epoch.
#[derive(Debug, Clone)]
pub struct Published {
    spec: PublishedSpec,
    level: Level,
    state: State,
    /// The next check.
    next: Micros,
    /// Figures that the test remembers, whatever level they are of.
    remembered: Figures,
    /// Sums of the reading whose ratio of failures is remembered.
    summed: Figures,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// A level is being set.
    Changing {
        is_first: bool,
    },
    /// The load goes on until the window is of this level alone.
    Waiting {
        until: Micros,
        is_first: bool,
    },
    /// No reading was acceptable yet.
    Unstable {
        until: Micros,
    },
    /// One was.
    Improving {
        until: Micros,
    },
    /// A unit of load is to be added.
    Raising,
    /// The last line was written.
    Ending(Limit),
    Over(Limit),
}

impl Published {
    /// A test whose first level is to be set.
    pub fn new(spec: PublishedSpec) -> Self {
        Self {
            level: spec.least,
            state: State::Changing { is_first: true },
            next: Micros::MAX,
            remembered: Figures::default(),
            summed: Figures::default(),
            spec,
        }
    }

    /// A test that was interrupted after these events. Its level is to be set anew; if its last event was a line, the
    /// level that follows from it. Without it, the end follows at once, without the last line.
    pub fn resumed(spec: PublishedSpec, events: impl IntoIterator<Item = Event>) -> Self {
        let mut test = Self::new(spec);
        events.into_iter().for_each(|event| test.repeat(event));
        test.state = match test.state {
            State::Raising if test.level.units >= spec.most.units => State::Over(Limit::Units),
            State::Raising => {
                test.level.units += 1;
                State::Changing { is_first: false }
            }
            State::Ending(limit) => State::Over(limit),
            State::Changing { .. }
            | State::Waiting { .. }
            | State::Unstable { .. }
            | State::Improving { .. }
            | State::Over(_) => test.state,
        };
        test
    }

    fn repeat(&mut self, event: Event) {
        self.state = match event {
            Event::StableStart => return,
            Event::Set(level) => {
                self.level = level;
                State::Changing { is_first: false }
            }
            Event::Log(line) => {
                let is_first = self.state == State::Changing { is_first: true };
                // No reading lies between this line and the one before: no unit was left to add.
                let has_no_unit = self.state == State::Raising && self.level == line.level;
                let state = match (is_first || line.is_stable, has_no_unit) {
                    (true, _) => State::Raising,
                    (false, true) => State::Ending(Limit::Units),
                    (false, false) => State::Ending(Limit::Instances),
                };
                self.level = line.level;
                (self.remembered, self.summed) = (line.published, line.summed);
                state
            }
            Event::End(limit) => State::Over(limit),
        };
    }

    /// The level of load and target.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The limit that ended the test; none while it goes on.
    pub fn end(&self) -> Option<Limit> {
        match self.state {
            State::Over(limit) => Some(limit),
            State::Changing { .. }
            | State::Waiting { .. }
            | State::Unstable { .. }
            | State::Improving { .. }
            | State::Raising
            | State::Ending(_) => None,
        }
    }

    /// Starts the wait at a level that was set.
    pub fn applied(&mut self, now: Micros) {
        if let State::Changing { is_first } = self.state {
            let PublishedSpec { window, offset, .. } = self.spec;
            let first = if is_first { window } else { Micros::ZERO };
            self.state = State::Waiting {
                until: now + window + offset + first,
                is_first,
            };
            self.next = now + POLL;
        }
    }

    /// The next check; nothing happens before it.
    pub fn next_check(&self) -> Micros {
        self.next
    }

    /// The first check that may change the level: the load is constant until then.
    pub fn constant_until(&self) -> Micros {
        match self.state {
            State::Waiting { until, .. } | State::Improving { until } => {
                let polls = (until - self.next).get().div_ceil(POLL.get());
                self.next + Micros(polls * POLL.get())
            }
            State::Changing { .. }
            | State::Unstable { .. }
            | State::Raising
            | State::Ending(_)
            | State::Over(_) => self.next,
        }
    }

    /// Checks if it is time to; call until it answers none.
    pub fn step(&mut self, now: Micros, reading: &Reading) -> Option<Event> {
        if now < self.next {
            return None;
        }
        match self.state {
            State::Changing { .. } | State::Over(_) => None,
            State::Waiting { until, .. } if now < until => self.later(now),
            State::Waiting { is_first: true, .. } => {
                (self.remembered, self.summed) = (reading.published, reading.summed);
                self.state = State::Raising;
                Some(Event::Log(self.line(now, false)))
            }
            State::Waiting { .. } => {
                let until = now + self.spec.stable_within;
                self.state = State::Unstable { until };
                self.unstable(now, until, reading)
            }
            State::Unstable { until } => self.unstable(now, until, reading),
            State::Improving { until } => self.improving(now, until, reading),
            State::Raising => {
                let more = Level {
                    units: self.level.units + 1,
                    ..self.level
                };
                Some(self.change(now, more, reading))
            }
            State::Ending(limit) => {
                self.state = State::Over(limit);
                Some(Event::End(limit))
            }
        }
    }

    fn unstable(&mut self, now: Micros, until: Micros, reading: &Reading) -> Option<Event> {
        let found = reading.published.failure_ratio;
        if found.is_some_and(|ratio| ratio < self.spec.failure_ratio) {
            // As published: the other figures stay those of before.
            self.remembered.failure_ratio = found;
            self.summed = reading.summed;
            let until = now + self.spec.improve;
            self.state = State::Improving { until };
            return Some(Event::StableStart);
        }
        if now < until {
            return self.later(now);
        }
        let more = Level {
            instances: self.level.instances + 1,
            ..self.level
        };
        Some(self.change(now, more, reading))
    }

    fn improving(&mut self, now: Micros, until: Micros, reading: &Reading) -> Option<Event> {
        let found = reading.published.failure_ratio;
        let better = found.zip(self.remembered.failure_ratio);
        if better.is_some_and(|(found, best)| found < best) {
            (self.remembered, self.summed) = (reading.published, reading.summed);
        }
        if now < until {
            return self.later(now);
        }
        self.state = State::Raising;
        Some(Event::Log(self.line(now, true)))
    }

    fn later(&mut self, now: Micros) -> Option<Event> {
        self.next = now + POLL;
        None
    }

    /// Sets a level, or writes the last line if it exceeds a limit.
    fn change(&mut self, now: Micros, level: Level, reading: &Reading) -> Event {
        let most = self.spec.most;
        let limit = match level {
            Level { units, .. } if units > most.units => Limit::Units,
            Level { instances, .. } if instances > most.instances => Limit::Instances,
            Level { .. } => {
                self.level = level;
                self.state = State::Changing { is_first: false };
                self.next = Micros::MAX;
                return Event::Set(level);
            }
        };
        (self.remembered, self.summed) = (reading.published, reading.summed);
        self.state = State::Ending(limit);
        Event::Log(self.line(now, false))
    }

    fn line(&self, at: Micros, is_stable: bool) -> LogLine {
        LogLine {
            at,
            level: self.level,
            published: self.remembered,
            summed: self.summed,
            is_stable,
        }
    }
}
