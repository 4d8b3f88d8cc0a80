//! Reads datagrams of a loop's sockets.

use rustix::event::epoll::EventFlags;

use super::Loop;
use crate::datagrams::Read;
use crate::slab::Flags;
use crate::udp::{BATCH_MAX, Inbox};
use crate::{Handler, Io, Key};

/// Datagrams that the first read of a turn takes: a device's socket has seldom more.
const FEW: usize = 4;
/// Reads that may bring an error instead of datagrams in one turn.
const ERRORS_MAX: usize = 8;

impl<H: Handler> Loop<H> {
    pub(super) fn datagram_event(&mut self, key: Key, events: EventFlags) {
        let Io {
            sockets, datagrams, ..
        } = &mut self.io;
        if events.contains(EventFlags::ERR) {
            datagrams.take_errors(sockets, key);
        }
        if events.contains(EventFlags::OUT) && datagrams.has_room(sockets, key) {
            self.handler.flushed(&mut self.io, key);
        }
        if let Some(slot) = self.io.sockets.get_mut(key) {
            slot.flags.add(Flags::READABLE);
            self.serve_datagrams(key);
        }
    }

    /// Presents the datagrams that came, as many as one turn may: a batch.
    pub(super) fn serve_datagrams(&mut self, key: Key) {
        let Some(slot) = self.io.sockets.get_mut(key) else {
            return;
        };
        if slot.flags.has(Flags::CONNECTING) {
            slot.flags.remove(Flags::CONNECTING);
            self.handler.opened(&mut self.io, key);
        }
        let mut inbox = self.inbox.take().unwrap_or_else(|| Box::new(Inbox::new()));
        for most in [FEW, BATCH_MAX - FEW] {
            if !self.is_datagram_due(key) || !self.read_batch(key, &mut inbox, most) {
                break;
            }
        }
        self.inbox = Some(inbox);
        self.serve_again(key);
    }

    fn is_datagram_due(&self, key: Key) -> bool {
        let slot = self.io.sockets.get(key);
        slot.is_some_and(|slot| slot.flags.has(Flags::READABLE) && !slot.flags.has(Flags::PAUSED))
    }

    /// Reads and presents some datagrams; whether there may be more.
    fn read_batch(&mut self, key: Key, inbox: &mut Inbox, most: usize) -> bool {
        for _ in 0..ERRORS_MAX {
            let Io {
                sockets, datagrams, ..
            } = &mut self.io;
            let count = match datagrams.receive(sockets, key, inbox, most) {
                Read::Came(count) => count,
                Read::Empty => 0,
                Read::Error => continue,
            };
            if count < most
                && let Some(slot) = self.io.sockets.get_mut(key)
            {
                slot.flags.remove(Flags::READABLE);
            }
            self.present(key, inbox, count);
            return count == most;
        }
        false
    }

    /// Hands over what was read, until the handler ends the socket.
    fn present(&mut self, key: Key, inbox: &mut Inbox, count: usize) {
        for room in 0..count {
            if self.io.sockets.get(key).is_none() {
                return;
            }
            let from = inbox.from(room);
            let bytes = inbox.datagram(room);
            if let Some(from) = from {
                self.handler.datagram(&mut self.io, key, from, bytes);
            } else {
                self.handler.received(&mut self.io, key, bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use muster_model::Micros;

    use super::*;
    use crate::{Clock, Closed, Io, ListenerId, LoopConfig, Written};

    #[derive(Debug, Default)]
    struct Flushes(Vec<Key>);

    impl Handler for Flushes {
        fn opened(&mut self, _: &mut Io, _: Key) {}
        fn accepted(&mut self, _: &mut Io, _: Key, _: ListenerId) {}
        fn received(&mut self, _: &mut Io, _: Key, bytes: &mut [u8]) -> usize {
            bytes.len()
        }
        fn flushed(&mut self, _: &mut Io, key: Key) {
            self.0.push(key);
        }
        fn closed(&mut self, _: &mut Io, _: Key, _: Closed) {}
        fn timer(&mut self, _: &mut Io, _: u64) {}
        fn woken(&mut self, _: &mut Io) {}
        fn turn(&mut self, _: &mut Io) -> Option<Micros> {
            None
        }
    }

    /// UDP over loopback never lacks room; a pair of local datagram sockets does, by the same calls.
    fn pair(config: &LoopConfig) -> (Loop<Flushes>, Key, UnixDatagram) {
        let (ours, theirs) = UnixDatagram::pair().expect("two sockets");
        for end in [&ours, &theirs] {
            end.set_nonblocking(true).expect("a socket");
        }
        let handler = Flushes::default();
        let mut event_loop = Loop::new(Clock::start(), config, handler).expect("a loop");
        let key = event_loop.io.sockets.watch(ours.into(), Flags::DATAGRAM);
        (event_loop, key.expect("watched"), theirs)
    }

    fn numbered(number: u32) -> Vec<u8> {
        [&number.to_be_bytes()[..], &[7; 3_000]].concat()
    }

    /// Reads while the loop runs until so many datagrams came, each whole and in its place.
    fn read_all(event_loop: &mut Loop<Flushes>, theirs: &UnixDatagram, count: u32) {
        let mut room = vec![0; 10_000];
        for number in 0..count {
            let length = loop {
                if let Ok(length) = theirs.recv(&mut room) {
                    break length;
                }
                event_loop.turn(Micros::from_secs(20)).expect("a turn");
            };
            assert!(room[..length] == numbered(number), "datagram {number}");
        }
        assert!(theirs.recv(&mut room).is_err(), "no more");
    }

    #[test]
    fn a_datagram_that_is_held_goes_out_whole() {
        let (mut event_loop, key, theirs) = pair(&LoopConfig::default());
        let mut count = 0;
        let held = loop {
            let written = event_loop.io.write(key, &numbered(count));
            count += 1;
            if written != Written::Whole {
                break written;
            }
        };
        assert_eq!(held, Written::Held);
        assert_eq!(event_loop.io.write(key, b"x"), Written::Busy);
        assert!(!event_loop.io.is_writable(key));
        assert_eq!(event_loop.io.send_gathered(key), Written::Held);
        event_loop.turn(Micros::ZERO).expect("a turn");
        assert_eq!(event_loop.handler.0, []);
        read_all(&mut event_loop, &theirs, count);
        assert_eq!(event_loop.handler.0, [key]);
        assert!(event_loop.io.is_writable(key));
        let counts = event_loop.io.counts();
        assert_eq!((counts.held, counts.datagrams_out), (1, count.into()));
    }

    #[test]
    fn gathered_datagrams_wait_for_room_within_a_bound() {
        let (mut event_loop, key, theirs) = pair(&LoopConfig::default());
        let mut count = 0;
        while event_loop.io.gather(key, &numbered(count)) == Written::Whole {
            count += 1;
        }
        assert_eq!(event_loop.io.gather(key, b"x"), Written::Busy);
        let waiting = u64::from(count) - event_loop.io.counts().datagrams_out;
        assert!((80..100).contains(&waiting), "256 KiB: {waiting}");
        read_all(&mut event_loop, &theirs, count);
        assert_eq!(event_loop.handler.0, [key]);
        assert_eq!(event_loop.io.gather(key, &numbered(0)), Written::Whole);
        read_all(&mut event_loop, &theirs, 1);
        let counts = event_loop.io.counts();
        assert_eq!(counts.datagrams_out, u64::from(count) + 1);
        assert_eq!(counts.datagrams_refused, 0);
    }

    #[test]
    fn an_empty_pool_is_told_and_nothing_is_sent() {
        let config = LoopConfig {
            buffers_max: 0,
            ..LoopConfig::default()
        };
        let (mut event_loop, key, theirs) = pair(&config);
        let mut count = 0;
        while event_loop.io.write(key, &numbered(count)) == Written::Whole {
            count += 1;
        }
        assert_eq!(event_loop.io.write(key, b"x"), Written::Exhausted);
        assert_eq!(event_loop.io.gather(key, b"x"), Written::Exhausted);
        assert_eq!(event_loop.io.counts().pool_exhausted, 3);
        read_all(&mut event_loop, &theirs, count);
        assert_eq!(event_loop.io.write(key, &numbered(0)), Written::Whole);
    }
}
