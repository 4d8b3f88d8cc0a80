//! The other parts of a run, as far as they were heard of.

use std::net::SocketAddr;

use muster_conduct::{Part, Progress};
use muster_measure::Progress as Windows;
use muster_model::{Listening, Micros};

use super::Membership;
use super::offset::Offset;
use super::word::{Subject, Word};

/// Parts that are listened to: more machines than one listener can be told of.
const PEERS_MAX: usize = 64;
/// A part that was not heard of for so long is not counted on: a dozen words were lost.
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
    pub(crate) word: Word,
    heard: Micros,
    pub(crate) offset: Option<Offset>,
}

/// All other parts.
#[derive(Debug)]
pub(crate) struct Peers {
    who: Membership,
    pub(crate) peers: Vec<Peer>,
    /// Datagrams that were no word of another part of this run.
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

    /// Takes in a datagram; what is no word of another part of this run is counted and changes nothing.
    pub(crate) fn hear(&mut self, at: SocketAddr, bytes: &[u8], now: Micros) {
        let word = Word::decoded(bytes);
        let Some(word) = word.filter(|word| self.is_of_another_part(word)) else {
            self.ignored += 1;
            return;
        };
        let known = self
            .peers
            .iter()
            .position(|peer| peer.word.from == word.from);
        match known {
            Some(place) => self.peers[place].hear(at, word, now),
            None if self.peers.len() < PEERS_MAX => {
                let offset = Offset::of(&word, now);
                let peer = Peer {
                    at,
                    word,
                    heard: now,
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
        let others = self.peers.iter().flat_map(|peer| &peer.word.parts);
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
            windows.merge(&peer.word.windows);
            progress.push(standing(peer.word.progress, peer.word.has_settled, now));
        }
        (progress, windows)
    }

    /// Returns the message for the peer at a place, or for one that is still unknown.
    pub(crate) fn word_for(&self, place: Option<usize>, own: &Own, now: Micros) -> Word {
        let (mut progress, mut windows) = self.others(now, place);
        progress.push(standing(own.progress, own.has_settled, now));
        windows.merge(&own.windows);
        let mut parts = vec![self.who.part];
        parts.extend(self.but(place, now).flat_map(|(_, peer)| &peer.word.parts));
        let others_settled = self.but(place, now).all(|(_, peer)| peer.word.has_settled);
        let peer = place.map(|place| &self.peers[place]);
        Word {
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
            said: now,
            heard: peer.map(|peer| (peer.word.said, peer.heard)),
            has_heard_the_last: peer.is_some_and(|peer| peer.word.has_settled),
        }
    }

    fn but(&self, place: Option<usize>, now: Micros) -> impl Iterator<Item = (usize, &Peer)> {
        let peers = self.peers.iter().enumerate();
        peers.filter(move |(at, peer)| Some(*at) != place && peer.counts(now))
    }

    fn is_of_another_part(&self, word: &Word) -> bool {
        (word.subject.run, &word.subject.plan) == (self.who.run, &self.who.plan)
            && word.from != self.who.part
            && word.parts.len() <= PEERS_MAX
            && word.parts.first() == Some(&word.from)
    }
}

impl Peer {
    /// A datagram may be overtaken by a later one, or come twice: the last word said counts.
    fn hear(&mut self, at: SocketAddr, word: Word, now: Micros) {
        if word.said < self.word.said {
            return;
        }
        self.offset = Offset::better(self.offset.take(), Offset::of(&word, now));
        (self.at, self.word, self.heard) = (at, word, now);
    }

    /// Returns true if its last message is fresh.
    fn counts(&self, now: Micros) -> bool {
        self.word.has_settled || now < self.heard + FRESH
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
