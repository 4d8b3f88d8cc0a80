//! The other parts of a run, by the status that each sent last.

use std::net::SocketAddr;

use muster_conduct::{Part, Progress};
use muster_measure::Progress as Windows;
use muster_model::{Listening, Micros};

use super::Membership;
use super::offset::Offset;
use super::status::{Status, Subject};

/// Most other parts: more machines than a run has.
const PEERS_MAX: usize = 64;
/// Age at which a status no longer counts: a dozen later ones were lost.
const FRESH: Micros = Micros::from_secs(3);

/// State of this part, reported to the others.
#[derive(Debug, Clone)]
pub(crate) struct Own {
    pub(crate) progress: Progress,
    pub(crate) windows: Windows,
    pub(crate) has_settled: bool,
}

/// Another part.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) at: SocketAddr,
    pub(crate) status: Status,
    received: Micros,
    pub(crate) offset: Option<Offset>,
}

/// All other parts.
#[derive(Debug)]
pub(crate) struct Peers {
    who: Membership,
    pub(crate) peers: Vec<Peer>,
    /// Datagrams that were no status of another part of this run.
    pub(crate) ignored: u64,
}

impl Peers {
    pub(crate) fn new(who: Membership) -> Self {
        Self {
            who,
            peers: Vec::new(),
            ignored: 0,
        }
    }

    /// Takes in a datagram. If it is no status of another part of this run, it is only counted.
    pub(crate) fn receive(&mut self, at: SocketAddr, bytes: &[u8], now: Micros) {
        let status = Status::decoded(bytes);
        let Some(status) = status.filter(|status| self.is_of_another_part(status)) else {
            self.ignored += 1;
            return;
        };
        let known = self
            .peers
            .iter()
            .position(|peer| peer.status.from == status.from);
        match known {
            Some(place) => self.peers[place].receive(at, status, now),
            None if self.peers.len() < PEERS_MAX => {
                let offset = Offset::from_status(&status, now);
                let peer = Peer {
                    at,
                    status,
                    received: now,
                    offset,
                };
                self.peers.push(peer);
            }
            None => self.ignored += 1,
        }
    }

    /// Returns true if every other part is received: none is missing, and none fell silent before
    /// it had settled.
    pub(crate) fn is_complete(&self, now: Micros) -> bool {
        let others = self.peers.iter().flat_map(|peer| &peer.status.parts);
        let mut parts: Vec<Part> = others.copied().collect();
        parts.push(self.who.part);
        let is_whole = Part::are_whole(&parts, self.who.has_backend);
        is_whole && self.peers.iter().all(|peer| peer.counts(now))
    }

    /// Returns the progress of all others except the one at this place.
    pub(crate) fn others(&self, now: Micros, but: Option<usize>) -> (Vec<Progress>, Windows) {
        let mut windows = Windows::default();
        let mut progress = Vec::new();
        for (_, peer) in self.but(but, now) {
            windows.merge(&peer.status.windows);
            progress.push(standing(peer.status.progress, peer.status.has_settled, now));
        }
        (progress, windows)
    }

    /// Returns the message for the peer at a place, or for one that is still unknown.
    pub(crate) fn status_for(&self, place: Option<usize>, own: &Own, now: Micros) -> Status {
        let (mut progress, mut windows) = self.others(now, place);
        progress.push(standing(own.progress, own.has_settled, now));
        windows.merge(&own.windows);
        let mut parts = vec![self.who.part];
        parts.extend(
            self.but(place, now)
                .flat_map(|(_, peer)| &peer.status.parts),
        );
        let others_settled = self
            .but(place, now)
            .all(|(_, peer)| peer.status.has_settled);
        let peer = place.map(|place| &self.peers[place]);
        Status {
            subject: Subject {
                run: self.who.run,
                plan: self.who.plan.clone(),
            },
            from: self.who.part,
            parts,
            progress: Progress::united(progress),
            windows,
            has_settled: own.has_settled && others_settled,
            clock: self.who.clock.clone(),
            sent: now,
            last_received: peer.map(|peer| (peer.status.sent, peer.received)),
            has_final: peer.is_some_and(|peer| peer.status.has_settled),
        }
    }

    fn but(&self, place: Option<usize>, now: Micros) -> impl Iterator<Item = (usize, &Peer)> {
        let peers = self.peers.iter().enumerate();
        peers.filter(move |(at, peer)| Some(*at) != place && peer.counts(now))
    }

    fn is_of_another_part(&self, status: &Status) -> bool {
        (status.subject.run, &status.subject.plan) == (self.who.run, &self.who.plan)
            && status.from != self.who.part
            && status.parts.len() <= PEERS_MAX
            && status.parts.first() == Some(&status.from)
    }
}

impl Peer {
    /// A datagram may be overtaken by a later one, or come twice: the status sent last counts.
    fn receive(&mut self, at: SocketAddr, status: Status, now: Micros) {
        if status.sent < self.status.sent {
            return;
        }
        self.offset = Offset::better(self.offset.take(), Offset::from_status(&status, now));
        (self.at, self.status, self.received) = (at, status, now);
    }

    /// Returns true if its last message is fresh.
    fn counts(&self, now: Micros) -> bool {
        self.status.has_settled || now < self.received + FRESH
    }
}

/// Returns a part's progress; a settled part delays nothing any more.
fn standing(progress: Progress, has_settled: bool, now: Micros) -> Progress {
    if !has_settled {
        return progress;
    }
    Progress {
        at: now,
        open: 0,
        behind: 0,
        consumers_wanted: 0,
        consumers_up: 0,
        consumers_refused: 0,
        listening: Listening::NOBODY,
        ..progress
    }
}
