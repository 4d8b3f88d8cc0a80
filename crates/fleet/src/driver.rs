//! Drives the links of a shard over an event loop.

use std::fmt::Debug;

use muster_conduct::{Dispatch, FactWriter, Order, RecordingSink};
use muster_device::{Session, Shard, Then, Transport};
use muster_model::{Cause, ConnectFailure, Micros, ShedCause};
use muster_net::{Closed, ConnectError, Handler, Io, Key, ListenerId, TimerId, Written};
use muster_protocol::layer::Ended;

use crate::classes::{ShardError, ShardSpec};
use crate::link_driver::LinkDriver;
use crate::tags::{Owner, Tags};

mod datagrams;
mod lines;
#[cfg(test)]
mod narrow;
#[cfg(test)]
mod receiving;
mod reports;
mod secured;
mod shared;
mod sockets;
mod stale_handshakes;
mod streams;
mod targets;
mod wire;

use lines::Above;
pub use lines::{DatagramLines, Datagrams, Lines, Streams};
use reports::Reports;
pub use secured::{LinkCertificates, Secured};
pub(crate) use shared::DatagramSockets;
use sockets::Event;
pub(crate) use sockets::Sockets;
pub(crate) use streams::StreamSockets;
use targets::Targets;

/// Messages that a driver takes in one turn before the sockets are looked at again: at about 6 us a
/// write this keeps an answer waiting for less than half a millisecond a driver.
const DUE_PER_TURN: u32 = 64;
/// A timer that is set so far ahead does not run out in the same turn: more than a tick of the loop's
/// wheel.
const NEXT_TURN: Micros = Micros(17);
/// Connects begun in one turn, for the same reason at about 30 us each.
const CONNECTS_PER_TURN: u32 = 16;

/// The driver of one shard, whose links all reach their peers in one way.
#[derive(Debug)]
pub(crate) struct Driver<P: Session, L: Lines, C> {
    tags: Tags,
    shard: Shard<P, RecordingSink>,
    keys: Vec<Option<Key>>,
    timers: Vec<Option<(Micros, TimerId)>>,
    lines: L,
    /// By link.
    each: Vec<L::Line>,
    sockets: C,
    targets: Targets,
    reports: Reports,
    out: Vec<u8>,
    is_ramping: bool,
    untaken: ShedCause,
}

impl<P: Session, L: Lines, C: Sockets<P, L>> Handler for Driver<P, L, C> {
    fn turn_begins(&mut self, io: &mut Io) {
        self.shard.traffic_mut().turn_begins(&io.turn());
    }

    fn opened(&mut self, io: &mut Io, key: Key) {
        match Owner::of(io.tag(key)) {
            Owner::Link(link) => self.link_opened(io, link),
            Owner::SharedSocket(at) => C::on_shared(self, io, at, Event::Opened),
        }
    }

    fn accepted(&mut self, _io: &mut Io, _key: Key, _listener: ListenerId) {}

    fn received(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        match Owner::of(io.tag(key)) {
            Owner::Link(link) => self.link_received(io, link, bytes),
            Owner::SharedSocket(at) => {
                let length = bytes.len();
                C::on_shared(self, io, at, Event::Received(bytes));
                length
            }
        }
    }

    fn flushed(&mut self, io: &mut Io, key: Key) {
        match Owner::of(io.tag(key)) {
            Owner::Link(link) => self.link_flushed(io, link, key),
            Owner::SharedSocket(at) => C::on_shared(self, io, at, Event::Flushed),
        }
    }

    fn closed(&mut self, io: &mut Io, key: Key, why: Closed) {
        match Owner::of(io.tag(key)) {
            Owner::Link(link) => self.link_closed(io, link, why),
            Owner::SharedSocket(at) => C::on_shared(self, io, at, Event::Closed(why)),
        }
    }

    fn timer(&mut self, io: &mut Io, token: u64) {
        match Owner::of(token as u32) {
            Owner::Link(link) => self.link_timer(io, link),
            Owner::SharedSocket(at) => C::on_shared(self, io, at, Event::TimeOut),
        }
    }

    fn woken(&mut self, _io: &mut Io) {}

    fn turn(&mut self, io: &mut Io) -> Option<Micros> {
        // An answer that has come is never overdue: what is not read yet may be one.
        while let Some(link) = self.shard.expire(io.presented_until()) {
            self.arm(io, link);
            self.pump(io, link);
        }
        C::begin_turn(self, io);
        let connects_left = self.is_ramping && self.connect(io);
        let due_left = self.take_due(io);
        let shared_left = C::end_turn(self, io);
        if connects_left || due_left || shared_left {
            return Some(io.now());
        }
        let connect = self.shard.connects().next().filter(|_| self.is_ramping);
        let wanted = [
            self.shard.traffic().next_due(),
            self.shard.traffic().next_expiry(),
            connect,
        ];
        wanted.into_iter().flatten().min()
    }
}

impl<P: Session, L: Lines, C: Sockets<P, L>> LinkDriver for Driver<P, L, C> {
    fn obey(&mut self, io: &mut Io, order: Order) {
        let now = io.fresh_now();
        match order {
            Order::Connect => {
                self.is_ramping = true;
                self.shard.connect(now);
            }
            Order::Start { origin } => {
                self.shard.traffic_mut().start(origin);
                self.shard.recording().sink().recorder().start(origin);
                (0..self.shard.fleets().links()).for_each(|link| self.arm(io, link));
            }
            Order::Hold(hold) => self.shard.traffic_mut().add_hold(&hold),
            Order::Activate(share) => {
                self.shard.activate(share, now);
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

    fn dispatch(&mut self, io: &mut Io, now: Micros) -> Box<Dispatch> {
        if P::TRANSPORT == Transport::Datagrams {
            self.reports.report_datagrams(io, &self.targets);
        }
        let plan = self.targets.plan();
        let mut dispatch = self.reports.dispatch(now, &mut self.shard, plan);
        let counts = self.shard.recording().targets();
        self.targets
            .report_sent(counts, &mut dispatch.windows.sent_to);
        dispatch
    }

    fn hand_over(&mut self, io: &mut Io) -> Box<Dispatch> {
        if P::TRANSPORT == Transport::Datagrams {
            let (counts, links) = (io.counts(), &mut self.shard.recording().account().links);
            links.counters.icmp_errors = counts.icmp_errors.into();
            links.counters.datagrams_refused = counts.datagrams_refused.into();
        }
        let recording = self.shard.recording();
        let mut account = std::mem::take(recording.account());
        self.targets
            .name(recording.targets(), &mut account.links.targets);
        recording.sink().hand_over(account)
    }
}

impl<P: Session, L: Lines, C: Sockets<P, L>> Driver<P, L, C> {
    /// The driver at a place of its loop, with every link down.
    pub(crate) fn new(
        spec: &ShardSpec,
        place: usize,
        lines: L,
        writer: Option<Box<dyn FactWriter>>,
    ) -> Result<Self, ShardError> {
        let recorder = muster_measure::Recorder::new(spec.recorder.clone());
        let recording = RecordingSink::new(recorder, writer);
        let recording = recording.noting_refused(spec.plan.management.registers_refused);
        let mut shard = spec.shard::<P, _>(recording)?;
        let targets = Targets::new::<P>(spec)?;
        if P::TRANSPORT == Transport::Stream {
            // Links on one shared socket have one address.
            shard.recording().count_by_target(targets.counted());
        }
        let links = shard.fleets().links() as usize;
        let sockets = C::new(&shard);
        Ok(Self {
            tags: Tags::new(place),
            shard,
            keys: vec![None; links],
            timers: vec![None; links],
            lines,
            each: (0..links).map(|_| L::Line::default()).collect(),
            sockets,
            targets,
            reports: Reports::default(),
            out: Vec::new(),
            is_ramping: false,
            untaken: ShedCause::GeneratorLate,
        })
    }

    /// The kernel has taken all that a link's own socket held.
    fn link_flushed(&mut self, io: &mut Io, link: u32, key: Key) {
        C::flushed(self, io, link, key);
        self.arm(io, link);
        self.pump(io, link);
    }

    /// A timer of a link ran out.
    fn link_timer(&mut self, io: &mut Io, link: u32) {
        let now = io.presented_until();
        self.timers[link as usize] = None;
        let then = self.time_passed(link, now);
        C::send(self, io, link);
        self.follow(io, link, then);
        self.arm(io, link);
        if const { P::PROTOCOL.spec().asks } {
            self.go_on(io, link);
        }
    }

    /// Opens a link once its socket stands.
    fn link_opened(&mut self, io: &mut Io, link: u32) {
        let now = io.fresh_now();
        if let Err(error) = self.open(link, now) {
            let then = self.ended(link, now, Ended::Failed(error));
            self.follow(io, link, then);
        }
        C::send(self, io, link);
        // A session without a CONNECT is up at once.
        self.arm(io, link);
        self.go_on(io, link);
    }

    /// Bytes came to a link: how many are used up.
    #[inline]
    fn link_received(&mut self, io: &mut Io, link: u32, bytes: &mut [u8]) -> usize {
        let now = io.fresh_now();
        let (used, then) = self.read(link, now, bytes);
        C::send(self, io, link);
        self.follow(io, link, then);
        self.go_on(io, link);
        used
    }

    /// Begins the connects whose turn has come; whether more are due at once.
    fn connect(&mut self, io: &mut Io) -> bool {
        for _ in 0..CONNECTS_PER_TURN {
            let Some(link) = self.shard.connects_mut().take(io.now()) else {
                return false;
            };
            C::connect(self, io, link);
        }
        true
    }

    /// Connects a link that shares no socket.
    fn connect_alone(&mut self, io: &mut Io, link: u32) {
        // What this turn did before it is not the target's: a connect begins with its SYN.
        let now = io.fresh_now();
        let sockets = self.targets.plan().links();
        self.targets.renew();
        let (target, source) = self.targets.of(self.shard.fleets(), link, sockets);
        if self.targets.may_change() {
            let (id, place) = (
                self.shard.fleets().link_id(link),
                self.targets.place_of(target),
            );
            self.shard.recording().place_at_target(id, place);
        }
        match L::connect(io, target, source) {
            Ok(key) => {
                io.set_tag(key, self.tags.link(link));
                self.keys[link as usize] = Some(key);
                self.shard.opening(link, now);
                self.arm(io, link);
            }
            Err(error) => self.connect_refused(link, now, &error),
        }
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
            if self.shard.links().is_renewing(link) {
                self.arm(io, link);
            }
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
            Then::Close => C::close(self, io, link, key),
            Then::Abort => C::reset(self, io, link, key),
        }
        self.forget(io, link);
    }

    /// Sends what waits on a link, one write a message, as long as it may.
    fn pump(&mut self, io: &mut Io, link: u32) {
        let Some(key) = self.keys[link as usize] else {
            return self.shard.shed_excess(link, io.now());
        };
        while self.shard.render_next(link, io.now(), &mut self.out) {
            self.wrap(link, 0);
            let written = C::write(self, io, link, key);
            self.out.clear();
            match written {
                Written::Whole => self.shard.traffic_mut().written(link, io.fresh_now()),
                Written::Held => C::hold(self, io, link, key),
                Written::Busy | Written::Exhausted | Written::Refused | Written::Lost => {
                    if !C::unwritten(self, io, link, written) {
                        break;
                    }
                }
            }
        }
        self.shard.shed_excess(link, io.now());
        // A request moves the deadlines of its session, and what waits for the end of a silence has one.
        if const { P::PROTOCOL.spec().asks } {
            self.arm(io, link);
        }
    }

    /// Sheds the message of a link for which no buffer was left.
    fn shed_unbuffered(&mut self, io: &mut Io, link: u32) {
        let at = io.fresh_now();
        self.shard.unsent(link, at, ShedCause::GeneratorLimit);
        self.reports
            .diagnostic("no buffer was left for a message that a socket did not take");
    }

    /// Closes a link once its socket has ended.
    fn link_closed(&mut self, io: &mut Io, link: u32, why: Closed) {
        let now = io.fresh_now();
        self.forget(io, link);
        if self.shard.links().is_handshaking(link) {
            let failure = failure_of(why);
            let id = self.shard.fleets().link_id(link);
            let place = self.shard.recording().target_of(id);
            if let Some(address) = place.and_then(|place| self.targets.address_at(place)) {
                self.reports.one_unreachable(address, failure);
            }
            self.shard.connect_failed(link, now, failure);
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
        C::forget(self, link);
        if let Some((_, timer)) = self.timers[link as usize].take() {
            io.cancel_timer(timer);
        }
    }

    /// Makes sure that a timer runs out not later than the link's deadline; one that runs out
    /// early looks again, so that a message costs no timer.
    fn arm(&mut self, io: &mut Io, link: u32) {
        C::arm_shared(self, io, link);
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
        let token = u64::from(self.tags.link(link));
        let timer = io.set_timer(later(io, deadline), token);
        self.timers[link as usize] = Some((deadline, timer));
    }

    fn finish(&mut self, io: &mut Io, now: Micros) {
        C::send_all(self, io);
        self.shard.finish(now, self.untaken);
        for link in 0..self.shard.fleets().links() {
            let then = self.shard.say_goodbye(link, &mut self.out);
            self.wrap(link, 0);
            C::send(self, io, link);
            self.follow(io, link, then);
        }
        C::close_all(self, io);
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
    use muster_device::{
        CLOSED_LOOP_BYTES, COAP_LINK_BYTES, HTTP_LINK_BYTES, LINK_BYTES, STREAM_QUEUE_BYTES,
    };
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
        STREAM_QUEUE_BYTES + DRIVER_BYTES + NET_CONNECTION_BYTES + NET_TIMER_BYTES + LEDGER_BYTES;

    #[test]
    fn a_link_at_rest_with_one_stream_stays_within_its_budget() {
        let link = LINK_BYTES + COMMON_BYTES + size_of::<Pipe<Plain>>();
        assert!(link < USER_BYTES_PER_LINK as usize, "{link}");
        let closed = link + CLOSED_LOOP_BYTES;
        assert!(closed <= USER_BYTES_PER_LINK as usize, "{closed}");
    }

    #[test]
    fn a_link_of_http_at_rest_stays_within_its_budget() {
        let link = HTTP_LINK_BYTES + COMMON_BYTES + size_of::<Pipe<Plain>>();
        assert!(link < USER_BYTES_PER_LINK as usize, "{link}");
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
