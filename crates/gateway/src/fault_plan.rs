//! Plan for each uplink: its fault, and the instant at which the gateway is done with it.

use std::collections::BTreeMap;

use muster_model::Micros;
use muster_model::behaviour::Behaviour;
use rustc_hash::FxHashMap;

use crate::config::GatewayConfig;
use crate::fault::{Fault, FaultPicks};
use crate::server::{NoRoom, OneServer, Served, own_time};

/// The plan of misbehaviour, shared by all threads and asked once for each uplink.
#[derive(Debug)]
pub(crate) struct FaultPlan {
    /// Hashes of uplinks and commands, by the name of the fault that befell them.
    befallen: BTreeMap<&'static str, Vec<u64>>,
    behaviour: Behaviour,
    seed: u64,
    picks: FaultPicks,
    command_picks: FaultPicks,
    server: Option<OneServer>,
    /// The server that passes commands on.
    command_server: Option<OneServer>,
    /// The server that takes new connections.
    link_server: Option<OneServer>,
    arrivals: u64,
    /// Instant at which the first uplink came.
    begun: Option<Micros>,
    /// Faults that a second transmission must meet again, by payload hash: no more than were asked
    /// for.
    lasting: FxHashMap<u64, Fault>,
}

impl FaultPlan {
    pub(crate) fn new(config: &GatewayConfig) -> Self {
        let behaviour = config.behaviour;
        Self {
            befallen: BTreeMap::new(),
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
            command_server: behaviour
                .command_rate
                .map(|rate| OneServer::with_rate(rate, config.seed)),
            link_server: behaviour
                .connect_rate
                .map(|rate| OneServer::with_rate(rate, config.seed)),
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

    /// Decides about an uplink: its fault, and the instant at which that comes true. `hash` names its
    /// payload, `again` is true if it has DUP.
    ///
    /// # Errors
    /// [`NoRoom`] if the server's queue is full.
    pub(crate) fn treat(
        &mut self,
        now: Micros,
        hash: u64,
        again: bool,
    ) -> Result<(Fault, Served), NoRoom> {
        let arrival = self.arrivals;
        self.arrivals += 1;
        let served = match &mut self.server {
            Some(server) => server.admit(now, arrival)?,
            None => Served {
                done: now,
                blocked_until: None,
            },
        };
        let after = now - *self.begun.get_or_insert(now);
        let own = |time| own_time(time, self.seed, arrival, after);
        let own = self.behaviour.service_time.map_or(Micros::ZERO, own);
        let done = served.done + own;
        Ok((self.fault(hash, again), Served { done, ..served }))
    }

    /// Decides about a command, which comes once, and books what befalls it: its fault, and the instant at which it is
    /// passed on.
    pub(crate) fn command(&mut self, now: Micros, hash: u64) -> (Fault, Micros) {
        let fault = self.command_picks.pick();
        if fault != Fault::Behave {
            self.note(fault.name_of_command(), hash);
        }
        let server = self.command_server.as_mut();
        let served = server.map_or(now, |server| server.serve(now, 0));
        let late = if fault == Fault::DeliverLate {
            self.behaviour.delay_commands.by
        } else {
            Micros::ZERO
        };
        (fault, served + late)
    }

    /// The instant from which on a new connection is read.
    pub(crate) fn link(&mut self, now: Micros) -> Micros {
        let server = self.link_server.as_mut();
        server.map_or(now, |server| server.serve(now, 0))
    }

    /// The instant at which the first uplink came.
    pub(crate) const fn begun(&self) -> Option<Micros> {
        self.begun
    }

    /// Books an uplink that waited too long for a store that stood still.
    pub(crate) fn book_stalled(&mut self, hash: u64) {
        self.note("stall-store", hash);
    }

    pub(crate) fn book(&mut self, fault: Fault, hash: u64) {
        self.note(fault.name(), hash);
    }

    /// The sorted hashes of the uplinks and commands that misbehaviours befell, by their names.
    pub(crate) fn account(&self) -> BTreeMap<String, Vec<u64>> {
        let sorted = |(name, hashes): (&&str, &Vec<u64>)| {
            let mut hashes = hashes.clone();
            hashes.sort_unstable();
            ((*name).to_owned(), hashes)
        };
        self.befallen.iter().map(sorted).collect()
    }

    fn note(&mut self, name: &'static str, hash: u64) {
        self.befallen.entry(name).or_default().push(hash);
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
        let served = Served {
            done: Micros(5),
            blocked_until: None,
        };
        let taken = |fault| Ok((fault, served));
        assert_eq!(plan.treat(Micros(5), 77, false), taken(Fault::Drop));
        assert_eq!(plan.treat(Micros(5), 77, true), taken(Fault::Drop));
        assert_eq!(plan.treat(Micros(5), 78, true), taken(Fault::Behave));
    }
}
