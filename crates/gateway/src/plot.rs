//! What is going to happen to each uplink: its fate, and when the gateway is done with it.

use std::collections::BTreeMap;

use muster_model::Micros;
use muster_model::behaviour::Behaviour;
use rustc_hash::FxHashMap;

use crate::config::GatewayConfig;
use crate::fate::{Fate, Fates};
use crate::server::{Admission, OneServer, own_time};

/// The plan of misbehaviour, shared by all threads and asked once for each uplink.
#[derive(Debug)]
pub(crate) struct Plot {
    misdeeds: Misdeeds,
    /// What befell commands.
    command_misdeeds: Misdeeds,
    behaviour: Behaviour,
    seed: u64,
    fates: Fates,
    command_fates: Fates,
    server: Option<OneServer>,
    arrivals: u64,
    /// When the first uplink came.
    begun: Option<Micros>,
    /// Fates that a second transmission must meet again, by payload hash: no more than were asked
    /// for.
    lasting: FxHashMap<u64, Fate>,
}

/// Which uplinks misbehaviours befell.
type Misdeeds = BTreeMap<Fate, Vec<u64>>;

/// What is going to happen to one uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Its fate comes true at that instant.
    Taken {
        fate: Fate,
        done: Micros,
        blocked_until: Option<Micros>,
    },
    /// No room: neither answered nor delivered.
    Dropped,
    /// No room: answered no.
    Rejected,
}

impl Plot {
    pub(crate) fn new(config: &GatewayConfig) -> Self {
        let behaviour = config.behaviour;
        Self {
            misdeeds: Misdeeds::default(),
            command_misdeeds: Misdeeds::default(),
            behaviour,
            seed: config.seed,
            fates: Fates::new(&behaviour, config.seed, config.expected_uplinks),
            command_fates: Fates::new(
                &behaviour.of_commands(),
                config.seed,
                config.expected_commands,
            ),
            server: behaviour
                .capacity
                .map(|capacity| OneServer::new(capacity, config.seed)),
            arrivals: 0,
            begun: None,
            lasting: FxHashMap::default(),
        }
    }

    /// Notes an uplink; true for the first one of all.
    pub(crate) fn begin(&mut self, now: Micros) -> bool {
        let is_first = self.begun.is_none();
        self.begun.get_or_insert(now);
        is_first
    }

    /// Decides about an uplink; `hash` names its payload, `again` says that it has DUP.
    pub(crate) fn turn(&mut self, now: Micros, hash: u64, again: bool) -> Turn {
        let arrival = self.arrivals;
        self.arrivals += 1;
        let admission = match &mut self.server {
            Some(server) => server.admit(now, arrival),
            None => Admission::Done(now),
        };
        let (served, blocked_until) = match admission {
            Admission::Done(done) => (done, None),
            Admission::Blocked { done, until } => (done, Some(until)),
            Admission::Dropped => return Turn::Dropped,
            Admission::Rejected => return Turn::Rejected,
        };
        let after = now - *self.begun.get_or_insert(now);
        let own = |time| own_time(time, self.seed, arrival, after);
        let done = served + self.behaviour.service_time.map_or(Micros::ZERO, own);
        Turn::Taken {
            fate: self.fate(hash, again),
            done,
            blocked_until,
        }
    }

    /// Decides about a command, which comes once, and books what befalls it.
    pub(crate) fn command(&mut self, hash: u64) -> Fate {
        let fate = self.command_fates.deal();
        if fate != Fate::Behave {
            self.command_misdeeds.entry(fate).or_default().push(hash);
        }
        fate
    }

    /// Notes what befell an uplink.
    pub(crate) fn book(&mut self, fate: Fate, hash: u64) {
        self.misdeeds.entry(fate).or_default().push(hash);
    }

    /// The sorted hashes of the uplinks and commands that misbehaviours befell, by their names.
    pub(crate) fn account(&self) -> BTreeMap<String, Vec<u64>> {
        let uplinks = self.misdeeds.iter().map(|(fate, all)| (fate.name(), all));
        let commands = self.command_misdeeds.iter();
        let commands = commands.map(|(fate, all)| (fate.name_of_command(), all));
        let sorted = |(name, hashes): (&str, &Vec<u64>)| {
            let mut hashes = hashes.clone();
            hashes.sort_unstable();
            (name.to_owned(), hashes)
        };
        uplinks.chain(commands).map(sorted).collect()
    }

    fn fate(&mut self, hash: u64, again: bool) -> Fate {
        if again {
            return self.lasting.get(&hash).copied().unwrap_or(Fate::Behave);
        }
        let fate = self.fates.deal();
        if fate.is_lasting() {
            self.lasting.insert(hash, fate);
        }
        fate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_uplink_stays_dropped_when_it_comes_again() {
        let behaviour = Behaviour {
            drop: 1,
            ..Behaviour::default()
        };
        let config = GatewayConfig {
            behaviour,
            expected_uplinks: 1,
            ..GatewayConfig::default()
        };
        let mut plot = Plot::new(&config);
        let taken = |fate| Turn::Taken {
            fate,
            done: Micros(5),
            blocked_until: None,
        };
        assert_eq!(plot.turn(Micros(5), 77, false), taken(Fate::Drop));
        assert_eq!(plot.turn(Micros(5), 77, true), taken(Fate::Drop));
        assert_eq!(plot.turn(Micros(5), 78, true), taken(Fate::Behave));
    }
}
