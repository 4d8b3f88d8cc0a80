//! Drives the links of a shard over an event loop.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use muster_conduct::{Dispatch, FactWriter, Order, RecordingSink};
use muster_device::{Further, Shard, SharedSockets, Then};
use muster_model::{Cause, ConnectFailure, Micros, ShedCause};
use muster_net::{
    Closed, ConnectError, Handler, Io, Key, ListenerId, Loop, LoopConfig, Mailbox, TimerId, WaitsOf,
};
use muster_protocol::layer::Ended;

use crate::classes::{ShardError, ShardSpec};

mod lines;
#[cfg(test)]
mod narrow;
#[cfg(test)]
mod receiving;
mod reports;
mod secured;
mod shared;
mod stale_handshakes;
mod targets;
mod wire;
mod writing;

use lines::Above;
pub use lines::{Datagrams, Lines, Streams};
use reports::Reports;
pub use secured::{LinkCertificates, Secured};
use shared::Shared;
use targets::Targets;

/// Messages taken in one turn before the sockets are looked at again: at about 6 us a write this
/// keeps an answer waiting for less than half a millisecond.
const DUE_PER_TURN: u32 = 64;
/// A timer that is set so far ahead does not run out in the same turn: more than a tick of the loop's
/// wheel.
const NEXT_TURN: Micros = Micros(17);
/// Connects begun in one turn, for the same reason at about 30 us each.
const CONNECTS_PER_TURN: u32 = 16;

/// The driver of one shard, whose links all reach their peers in one way.
#[derive(Debug)]
pub struct Driver<P: SharedSockets, L: Lines> {
    shard: Shard<P, RecordingSink>,
    keys: Vec<Option<Key>>,
    timers: Vec<Option<(Micros, TimerId)>>,
    lines: L,
    /// By link.
    each: Vec<L::Line>,
    shared: Shared<P::Key>,
    /// Copies and blocks that sockets of their own hold, by link.
    held: BTreeMap<u32, Further<P::Key>>,
    targets: Targets,
    reports: Reports,
    /// Control bytes that wait behind a message the kernel holds a part of, by link.
    waiting: BTreeMap<u32, Vec<u8>>,
    out: Vec<u8>,
    is_ramping: bool,
    untaken: ShedCause,
    is_over: bool,
}

/// A shard on its own event loop, to be run on its own thread. Orders are read when the loop's
/// waker is called. `lines` is what lies between sockets and sessions.
///
/// # Errors
/// [`ShardError`] if the plan cannot be placed or the loop cannot start.
pub fn shard_loop<P: SharedSockets, L: Lines>(
    spec: &ShardSpec,
    targets: Vec<SocketAddr>,
    lines: L,
    writer: Option<Box<dyn FactWriter>>,
    mailbox: Mailbox<Order, Box<Dispatch>>,
) -> Result<Loop<Driver<P, L>>, ShardError> {
    let recorder = muster_measure::Recorder::new(spec.recorder.clone());
    let shard = spec.shard::<P, _>(RecordingSink::new(recorder, writer))?;
    let links = shard.fleets().links() as usize;
    let shared = Shared::of(shard.session().sockets(), shard.connects().ramps());
    let driver = Driver {
        shard,
        keys: vec![None; links],
        timers: vec![None; links],
        lines,
        each: (0..links).map(|_| L::Line::default()).collect(),
        shared,
        held: BTreeMap::new(),
        targets: Targets::new(targets, &spec.plan),
        reports: Reports::new(mailbox),
        waiting: BTreeMap::new(),
        out: Vec::new(),
        is_ramping: false,
        untaken: ShedCause::GeneratorLate,
        is_over: false,
    };
    let config = LoopConfig {
        buffers_max: spec.trial.buffers,
        ..LoopConfig::default()
    };
    let config = config.with_packets_of(spec.plan.receive_limit());
    let mut event_loop = Loop::new(spec.clock, &config, driver)?;
    event_loop.parts().1.watch_cpu_wait(WaitsOf {
        gateways: spec.gateways.clone(),
        library: None,
    });
    Ok(event_loop)
}

impl<P: SharedSockets, L: Lines> Handler for Driver<P, L> {
    fn turn_begins(&mut self, io: &mut Io) {
        self.shard.traffic_mut().turn_begins(&io.turn());
    }

    fn opened(&mut self, io: &mut Io, key: Key) {
        if let Some(socket) = self.shared_socket(io, key) {
            return self.shared.opened(socket);
        }
        self.link_opened(io, io.tag(key));
    }

    fn accepted(&mut self, io: &mut Io, key: Key, _listener: ListenerId) {
        // A shard listens on nothing; whatever came is none of its business.
        io.close(key);
    }

    fn received(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        if let Some(socket) = self.shared_socket(io, key) {
            self.received_at(io, socket, bytes);
            return bytes.len();
        }
        self.link_received(io, io.tag(key), bytes)
    }

    fn flushed(&mut self, io: &mut Io, key: Key) {
        if let Some(socket) = self.shared_socket(io, key) {
            return self.flushed_at(io, socket);
        }
        let link = io.tag(key);
        let now = io.fresh_now();
        self.tell_flushed(io, link, key, now);
        if let Some(waiting) = self.waiting.remove(&link) {
            self.out.extend_from_slice(&waiting);
            self.send(io, link);
        }
        self.arm(io, link);
        self.pump(io, link);
    }

    fn closed(&mut self, io: &mut Io, key: Key, why: Closed) {
        if let Some(socket) = self.shared_socket(io, key) {
            return self.closed_at(io, socket, why);
        }
        self.link_closed(io, io.tag(key), why);
    }

    fn timer(&mut self, io: &mut Io, token: u64) {
        if let Some(socket) = shared::socket_of_timer(token) {
            return self.time_passed_at(io, socket);
        }
        let link = token as u32;
        let now = io.heard();
        self.timers[link as usize] = None;
        let then = self.time_passed(link, now);
        self.send(io, link);
        self.follow(io, link, then);
        self.arm(io, link);
        if L::IN_DATAGRAMS {
            self.go_on(io, link);
        }
    }

    fn woken(&mut self, io: &mut Io) {
        while let Some(order) = self.reports.next_order() {
            self.obey(io, order);
        }
    }

    fn turn(&mut self, io: &mut Io) -> Option<Micros> {
        if self.is_over {
            return None;
        }
        // An answer that has come is never overdue: what is not read yet may be one.
        while let Some(link) = self.shard.expire(io.heard()) {
            self.arm(io, link);
            self.pump(io, link);
        }
        if L::IN_DATAGRAMS {
            self.use_room(io);
        }
        let connects_left = self.is_ramping && self.connect(io);
        let due_left = self.take_due(io);
        let shared_left = L::IN_DATAGRAMS && self.turn_of_shared(io);
        let now = io.now();
        if now >= self.reports.next_dispatch() {
            self.reports
                .dispatch(io, now, &mut self.shard, &self.targets);
        }
        if connects_left || due_left || shared_left {
            return Some(now);
        }
        let connect = self.shard.connects().next().filter(|_| self.is_ramping);
        let wanted = [
            self.shard.traffic().next_due(),
            self.shard.traffic().next_expiry(),
            connect,
        ];
        let next = wanted.into_iter().flatten().min();
        Some(next.map_or(self.reports.next_dispatch(), |next| {
            next.min(self.reports.next_dispatch())
        }))
    }
}

impl<P: SharedSockets, L: Lines> Driver<P, L> {
    /// Opens a link once its socket stands.
    fn link_opened(&mut self, io: &mut Io, link: u32) {
        let now = io.fresh_now();
        if let Err(error) = self.open(link, now) {
            let then = self.ended(link, now, Ended::Failed(error));
            self.follow(io, link, then);
        }
        self.send(io, link);
        if L::IN_DATAGRAMS {
            self.arm(io, link);
            self.go_on(io, link);
        }
    }

    /// Bytes came to a link: how many are used up.
    #[inline]
    fn link_received(&mut self, io: &mut Io, link: u32, bytes: &mut [u8]) -> usize {
        let now = io.fresh_now();
        let (used, then) = self.read(link, now, bytes);
        self.send(io, link);
        self.follow(io, link, then);
        self.go_on(io, link);
        used
    }

    fn obey(&mut self, io: &mut Io, order: Order) {
        let now = io.fresh_now();
        match order {
            Order::Connect => {
                self.is_ramping = true;
                self.shard.connects_mut().start(now);
            }
            Order::Start { origin } => {
                self.shard.traffic_mut().start(origin);
                self.shard.recording().sink().recorder().start(origin);
                (0..self.shard.fleets().links()).for_each(|link| self.arm(io, link));
            }
            Order::EndDue { at } => {
                self.shard.traffic_mut().end_due(at);
                let recorder = self.shard.recording().sink().recorder();
                if at < recorder.timeline().settle {
                    recorder.stop(at);
                    self.untaken = ShedCause::Interrupted;
                }
            }
            Order::MarkDrain => self.shard.recording().sink().recorder().mark_drain(),
            Order::Finish => self.finish(io, now),
        }
    }

    /// Begins the connects whose turn has come; whether more are due at once.
    fn connect(&mut self, io: &mut Io) -> bool {
        for _ in 0..CONNECTS_PER_TURN {
            let Some(link) = self.shard.connects_mut().take(io.now()) else {
                return false;
            };
            if self.is_shared(link) {
                self.connect_shared(io, link);
                continue;
            }
            // What this turn did before it is not the target's: a connect begins with its SYN.
            let now = io.fresh_now();
            let sockets = self.targets.plan().links();
            let (target, source) = self.targets.of(self.shard.fleets(), link, sockets);
            match L::connect(io, target, source) {
                Ok(key) => {
                    io.set_tag(key, link);
                    self.keys[link as usize] = Some(key);
                    self.shard.opening(link, now);
                    self.arm(io, link);
                }
                Err(error) => self.connect_refused(link, now, &error),
            }
        }
        true
    }

    fn connect_refused(&mut self, link: u32, now: Micros, error: &ConnectError) {
        let failure = match error {
            ConnectError::Descriptors | ConnectError::Ports(_) => {
                self.reports.diagnostic(&error.to_string());
                ConnectFailure::GeneratorLimit
            }
            ConnectError::Unreachable(..) | ConnectError::Kernel(..) => ConnectFailure::Unreachable,
        };
        self.shard.connect_failed(link, now, failure);
    }

    /// Sends what is due; whether more is due at once.
    fn take_due(&mut self, io: &mut Io) -> bool {
        for _ in 0..DUE_PER_TURN {
            let Some(link) = self.shard.take_due(io.now()) else {
                return false;
            };
            self.pump(io, link);
        }
        true
    }

    /// A link that is up may have something to send or to wait for.
    fn go_on(&mut self, io: &mut Io, link: u32) {
        if self.shard.links().is_up(link) {
            self.arm(io, link);
            self.pump(io, link);
        }
    }

    /// Ends a link whose session cannot go on.
    fn cut(&mut self, io: &mut Io, link: u32, cause: Cause) {
        self.follow(io, link, Then::Abort);
        self.shard.closed(link, io.now(), cause);
    }

    fn follow(&mut self, io: &mut Io, link: u32, then: Then) {
        let Some(key) = self.keys[link as usize] else {
            return;
        };
        match then {
            Then::Stay => return,
            Then::Close => {
                self.say_last(io, link, key);
                if self.is_shared(link) {
                    // Others go on with the socket.
                } else if L::IN_DATAGRAMS {
                    io.close(key);
                } else {
                    io.finish(key);
                }
            }
            Then::Abort if self.is_shared(link) => {}
            Then::Abort => io.reset(key),
        }
        self.forget(io, link);
    }

    /// Closes a link once its socket has ended.
    fn link_closed(&mut self, io: &mut Io, link: u32, why: Closed) {
        let now = io.fresh_now();
        self.forget(io, link);
        if self.shard.links().is_handshaking(link) {
            self.shard.connect_failed(link, now, failure_of(why));
        } else {
            self.shard.closed(link, now, cause_of(why));
        }
        if why == Closed::PoolExhausted {
            self.reports
                .diagnostic("no buffer was left for bytes that a socket did not take");
        }
    }

    fn forget(&mut self, io: &mut Io, link: u32) {
        self.keys[link as usize] = None;
        let line = std::mem::take(&mut self.each[link as usize]);
        let (counts, links) = (
            L::counts(&line),
            &mut self.shard.recording().account().links,
        );
        links.counters.dtls_retransmitted += u64::from(counts.resent);
        links.counters.dtls_discarded += u64::from(counts.discarded);
        links.counters.dtls_replayed += u64::from(counts.replayed);
        if L::IN_DATAGRAMS {
            self.leave_shared(link);
        }
        self.waiting.remove(&link);
        self.held.remove(&link);
        if let Some((_, timer)) = self.timers[link as usize].take() {
            io.cancel_timer(timer);
        }
    }

    /// Makes sure that a timer runs out not later than the link's deadline; one that runs out
    /// early looks again, so that a message costs no timer.
    fn arm(&mut self, io: &mut Io, link: u32) {
        if let (true, Some(seat)) = (L::IN_DATAGRAMS, self.shard.seat(link)) {
            self.arm_socket(io, seat.socket);
        }
        let of_line = L::deadline(&self.each[link as usize]);
        let both = [self.shard.deadline(link), of_line];
        let Some(deadline) = both.into_iter().flatten().min() else {
            return;
        };
        if let Some((at, timer)) = self.timers[link as usize] {
            if at <= deadline {
                return;
            }
            io.cancel_timer(timer);
        }
        let timer = io.set_timer(later(io, deadline), u64::from(link));
        self.timers[link as usize] = Some((deadline, timer));
    }

    fn finish(&mut self, io: &mut Io, now: Micros) {
        self.send_all_gathered(io);
        self.shard.finish(now, self.untaken);
        for link in 0..self.shard.fleets().links() {
            let then = self.shard.say_goodbye(link, &mut self.out);
            self.wrap(link, 0);
            self.send(io, link);
            self.follow(io, link, then);
        }
        self.close_shared(io);
        self.reports
            .dispatch(io, now, &mut self.shard, &self.targets);
        let (counts, links) = (io.counts(), &mut self.shard.recording().account().links);
        links.counters.icmp_errors = counts.icmp_errors.into();
        links.counters.datagrams_refused = counts.datagrams_refused.into();
        let account = std::mem::take(self.shard.recording().account());
        let last = self.shard.recording().sink().hand_over(account);
        self.reports.post_last(last);
        self.is_over = true;
        io.stop();
    }
}

/// Instant at which a timer for a deadline runs out. A deadline that is over but not decided, since
/// not all that came is read yet, is looked at again in the next turn.
fn later(io: &Io, deadline: Micros) -> Micros {
    deadline.max(io.now() + NEXT_TURN)
}

fn failure_of(why: Closed) -> ConnectFailure {
    match why {
        Closed::Peer | Closed::Reset => ConnectFailure::Closed,
        Closed::Refused => ConnectFailure::Refused,
        Closed::Unreachable | Closed::Network(_) => ConnectFailure::Unreachable,
        Closed::TimedOut => ConnectFailure::TimedOut,
        Closed::PoolExhausted => ConnectFailure::GeneratorLimit,
        Closed::Overrun => ConnectFailure::Malformed,
    }
}

fn cause_of(why: Closed) -> Cause {
    match why {
        Closed::Peer => Cause::PeerClosed,
        Closed::Reset | Closed::Refused => Cause::Reset,
        Closed::Unreachable | Closed::Network(_) | Closed::PoolExhausted | Closed::TimedOut => {
            Cause::Network
        }
        Closed::Overrun => Cause::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use muster_device::{CLOSED_LOOP_BYTES, COAP_LINK_BYTES, LANE_BYTES, LINK_BYTES};
    use muster_protocol::layer::{Pipe, Plain};
    use muster_scenario::{DTLS_BYTES_PER_LINK, LEDGER_BYTES_PER_STREAM, USER_BYTES_PER_LINK};

    use super::*;

    /// A connection of `net` at rest holds no buffer: its slot and its place on the free list.
    const NET_CONNECTION_BYTES: usize = 32;
    /// One timer of `net`'s wheel.
    const NET_TIMER_BYTES: usize = 40;
    /// Bytes that the driver keeps of a link by itself: its key and its timer.
    const DRIVER_BYTES: usize = size_of::<Option<Key>>() + size_of::<Option<(Micros, TimerId)>>();
    const LEDGER_BYTES: usize = LEDGER_BYTES_PER_STREAM as usize;
    /// Bytes that every link with one stream has besides its session and its line.
    const COMMON_BYTES: usize =
        LANE_BYTES + DRIVER_BYTES + NET_CONNECTION_BYTES + NET_TIMER_BYTES + LEDGER_BYTES;

    #[test]
    fn a_link_at_rest_with_one_stream_stays_within_its_budget() {
        let link = LINK_BYTES + COMMON_BYTES + size_of::<Pipe<Plain>>();
        assert!(link < USER_BYTES_PER_LINK as usize, "{link}");
        let closed = link + CLOSED_LOOP_BYTES;
        assert!(closed <= USER_BYTES_PER_LINK as usize, "{closed}");
    }

    #[test]
    fn a_link_of_coap_at_rest_stays_within_its_budget() {
        let link = COAP_LINK_BYTES + COMMON_BYTES;
        assert!(link <= USER_BYTES_PER_LINK as usize, "{link}");
    }

    /// A session of DTLS at rest has no more (`dtls_allocation` of `transport`), and a mark beside it.
    const DTLS_LINE_BYTES: usize = 256 + 8;

    #[test]
    fn a_link_of_dtls_at_rest_stays_within_its_budget() {
        let link = COAP_LINK_BYTES + COMMON_BYTES + DTLS_LINE_BYTES;
        let most = USER_BYTES_PER_LINK + DTLS_BYTES_PER_LINK;
        assert!(link <= most as usize, "{link}");
    }
}
