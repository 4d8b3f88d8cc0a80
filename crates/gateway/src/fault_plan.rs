//! Plan for each uplink: its fault, and the instant at which the gateway is done with it.

use std::collections::BTreeMap;

use muster_model::Micros;
use muster_model::behaviour::Behaviour;
use rustc_hash::FxHashMap;

use crate::config::GatewayConfig;
use crate::fault::{Fault, FaultPicks};
use crate::server::{Admission, OneServer, own_time};

/// The plan of misbehaviour, shared by all threads and asked once for each uplink.
#[derive(Debug)]
pub(crate) struct FaultPlan {
    uplink_faults: FaultLog,
    command_faults: FaultLog,
    behaviour: Behaviour,
    seed: u64,
    picks: FaultPicks,
    command_picks: FaultPicks,
    server: Option<OneServer>,
    arrivals: u64,
    /// Instant at which the first uplink came.
    begun: Option<Micros>,
    /// Faults that a second transmission must meet again, by payload hash: no more than were asked
    /// for.
    lasting: FxHashMap<u64, Fault>,
}

/// Hashes of uplinks or commands, by the fault that befell them.
type FaultLog = BTreeMap<Fault, Vec<u64>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// Its fault comes true at that instant.
    Taken {
        fault: Fault,
        done: Micros,
        blocked_until: Option<Micros>,
    },
    /// No room: neither answered nor delivered.
    Dropped,
    /// No room: answered no.
    Rejected,
}

impl FaultPlan {
    pub(crate) fn new(config: &GatewayConfig) -> Self {
        let behaviour = config.behaviour;
        Self {
            uplink_faults: FaultLog::default(),
            command_faults: FaultLog::default(),
            behaviour,
            seed: config.seed,
            picks: FaultPicks::new(&behaviour, config.seed, config.expected_uplinks),
            command_picks: FaultPicks::new(
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
    pub(crate) fn treat(&mut self, now: Micros, hash: u64, again: bool) -> Treatment {
        let arrival = self.arrivals;
        self.arrivals += 1;
        let admission = match &mut self.server {
            Some(server) => server.admit(now, arrival),
            None => Admission::Done(now),
        };
        let (served, blocked_until) = match admission {
            Admission::Done(done) => (done, None),
            Admission::Blocked { done, until } => (done, Some(until)),
            Admission::Dropped => return Treatment::Dropped,
            Admission::Rejected => return Treatment::Rejected,
        };
        let after = now - *self.begun.get_or_insert(now);
        let own = |time| own_time(time, self.seed, arrival, after);
        let done = served + self.behaviour.service_time.map_or(Micros::ZERO, own);
        Treatment::Taken {
            fault: self.fault(hash, again),
            done,
            blocked_until,
        }
    }

    /// Decides about a command, which comes once, and books what befalls it.
    pub(crate) fn command(&mut self, hash: u64) -> Fault {
        let fault = self.command_picks.pick();
        if fault != Fault::Behave {
            self.command_faults.entry(fault).or_default().push(hash);
        }
        fault
    }

    pub(crate) fn book(&mut self, fault: Fault, hash: u64) {
        self.uplink_faults.entry(fault).or_default().push(hash);
    }

    /// The sorted hashes of the uplinks and commands that misbehaviours befell, by their names.
    pub(crate) fn account(&self) -> BTreeMap<String, Vec<u64>> {
        let uplinks = self
            .uplink_faults
            .iter()
            .map(|(fault, all)| (fault.name(), all));
        let commands = self.command_faults.iter();
        let commands = commands.map(|(fault, all)| (fault.name_of_command(), all));
        let sorted = |(name, hashes): (&str, &Vec<u64>)| {
            let mut hashes = hashes.clone();
            hashes.sort_unstable();
            (name.to_owned(), hashes)
        };
        uplinks.chain(commands).map(sorted).collect()
    }

    fn fault(&mut self, hash: u64, again: bool) -> Fault {
        if again {
            return self.lasting.get(&hash).copied().unwrap_or(Fault::Behave);
        }
        let fault = self.picks.pick();
        if fault.is_lasting() {
            self.lasting.insert(hash, fault);
        }
        fault
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
        let mut plan = FaultPlan::new(&config);
        let taken = |fault| Treatment::Taken {
            fault,
            done: Micros(5),
            blocked_until: None,
        };
        assert_eq!(plan.treat(Micros(5), 77, false), taken(Fault::Drop));
        assert_eq!(plan.treat(Micros(5), 77, true), taken(Fault::Drop));
        assert_eq!(plan.treat(Micros(5), 78, true), taken(Fault::Behave));
    }
}
