//! Sockets of links over streams of bytes: each link has one to itself.

use std::collections::BTreeMap;

use muster_conduct::RecordingSink;
use muster_device::{Session, Shard};
use muster_model::Cause;
use muster_net::{Io, Key, Written};

use super::{Driver, Lines, Sockets};

/// Control bytes of a link that may wait behind a message. The answers to all 65,535 packet ids
/// are less: a peer beyond it goes on answering what was never sent.
const WAITING_MAX: usize = 1 << 20;

/// The sockets of a shard.
#[derive(Debug)]
pub(crate) struct StreamSockets {
    /// Control bytes that wait behind a message the kernel holds a part of, by link.
    waiting: BTreeMap<u32, Vec<u8>>,
}

impl<P: Session, L: Lines> Sockets<P, L> for StreamSockets {
    fn new(_shard: &Shard<P, RecordingSink>) -> Self {
        let waiting = BTreeMap::new();
        Self { waiting }
    }

    #[inline]
    fn write(driver: &mut Driver<P, L, Self>, io: &mut Io, _link: u32, key: Key) -> Written {
        io.write(key, &driver.out)
    }

    fn hold(driver: &mut Driver<P, L, Self>, _io: &Io, link: u32, _key: Key) {
        driver.shard.traffic_mut().held(link);
    }

    fn unwritten(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32, result: Written) -> bool {
        if result == Written::Exhausted {
            driver.shed_unbuffered(io, link);
            // The session counts as sent what never went out, so it cannot go on.
            driver.cut(io, link, Cause::Network);
        }
        false
    }

    fn send(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32) {
        if driver.out.is_empty() {
            return;
        }
        if let Some(key) = driver.keys[link as usize] {
            match io.write(key, &driver.out) {
                Written::Whole | Written::Lost | Written::Refused => {}
                Written::Held => driver.shard.traffic_mut().held(link),
                Written::Busy => driver.wait_behind_message(io, link),
                Written::Exhausted => {
                    driver.reports.no_buffer();
                    driver.cut(io, link, Cause::Network);
                }
            }
        }
        driver.out.clear();
    }

    fn flushed(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32, _key: Key) {
        let now = io.fresh_now();
        driver.shard.traffic_mut().flushed(link, now);
        if let Some(waiting) = driver.sockets.waiting.remove(&link) {
            driver.out.extend_from_slice(&waiting);
            Self::send(driver, io, link);
        }
    }

    fn close(driver: &mut Driver<P, L, Self>, io: &mut Io, link: u32, key: Key) {
        let line = &mut driver.each[link as usize];
        driver.lines.close(line, &mut driver.out);
        if !driver.out.is_empty() {
            let _ = io.write(key, &driver.out);
            driver.out.clear();
        }
        io.finish(key);
    }

    fn reset(_driver: &mut Driver<P, L, Self>, io: &mut Io, _link: u32, key: Key) {
        io.reset(key);
    }

    fn forget(driver: &mut Driver<P, L, Self>, link: u32) {
        driver.sockets.waiting.remove(&link);
    }
}

impl<P: Session, L: Lines> Driver<P, L, StreamSockets> {
    fn wait_behind_message(&mut self, io: &mut Io, link: u32) {
        let waiting = self.sockets.waiting.entry(link).or_default();
        if waiting.len() + self.out.len() > WAITING_MAX {
            return self.cut(io, link, Cause::Malformed);
        }
        waiting.extend_from_slice(&self.out);
    }
}
