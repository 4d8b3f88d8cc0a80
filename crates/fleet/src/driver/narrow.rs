//! Messages for which a socket has no room, or that the kernel refuses: on pairs of local datagram
//! sockets, which lack room as UDP over loopback never does.

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};

use muster_conduct::{Diagnostic, Dispatch, FactWriter, Slice, Trial, recorder_plan, schedules};
use muster_device::Coap;
use muster_model::{Attempt, Fact, Outcome, RunId};
use muster_net::{Clock, Loop, Mailbox, Written};
use muster_platform::Protocol;
use muster_protocol::coap::ExchangeKey;
use muster_protocol::layer::LayerError;
use muster_scenario::{NoFiles, Overrides, Source, parse};

use super::datagrams::send_each;
use super::lines::{Read, Who};
use super::*;
use crate::shards::{Shards, loop_of};

/// Longer than the kernel takes in one datagram.
const TOO_LONG: usize = 1 << 20;
/// Turns that no test needs.
const TURNS_MAX: u32 = 1_000_000;

thread_local! {
    /// The other ends of the sockets, and ours once more.
    static PAIRS: RefCell<Vec<(UnixDatagram, UnixDatagram)>> = const { RefCell::new(Vec::new()) };
    /// To how many bytes each message is made up.
    static LENGTH: Cell<usize> = const { Cell::new(0) };
}

/// Datagrams over such pairs, with flights of their own.
#[derive(Debug, Default)]
struct Narrow(Vec<Vec<u8>>);

impl Lines for Narrow {
    type Line = ();

    fn connect(io: &mut Io, to: SocketAddr, _: Option<IpAddr>) -> Result<Key, ConnectError> {
        let (ours, theirs) = UnixDatagram::pair().expect("two sockets");
        for end in [&ours, &theirs] {
            end.set_nonblocking(true).expect("a socket");
        }
        let again = ours.try_clone().expect("a descriptor");
        PAIRS.with_borrow_mut(|pairs| pairs.push((theirs, again)));
        let key = io.adopt_datagrams(ours.into());
        key.map_err(|_| ConnectError::Kernel(to, 0))
    }

    fn open(&mut self, _: Who, _: Micros, _: &mut Vec<u8>) -> Result<(), LayerError> {
        Ok(())
    }

    fn is_open(_: &()) -> bool {
        true
    }

    fn read<P: Session>(
        &mut self,
        (): &mut (),
        bytes: &mut [u8],
        above: &mut Above<'_, P>,
    ) -> Read {
        let (used, then) = above.receive(bytes);
        let end = None;
        Read { used, then, end }
    }

    fn wrap((): &mut (), out: &mut Vec<u8>, _: usize) {
        out.resize(out.len().max(LENGTH.get()), 0);
    }
}

impl DatagramLines for Narrow {
    fn flush(&mut self, io: &mut Io, key: Key, gathers: bool) -> Written {
        let flight = std::mem::take(&mut self.0);
        send_each(io, key, gathers, flight.iter().map(Vec::as_slice))
    }
}

/// Tells how each message ended.
#[derive(Debug)]
struct Ends(Sender<Attempt>);

impl FactWriter for Ends {
    fn note(&mut self, fact: &Fact) {
        if let Fact::Attempt(attempt) = fact {
            let _ = self.0.send(*attempt);
        }
    }
}

/// The driver of devices over CoAP.
type CoapDriver<L> = Driver<Coap, L, DatagramSockets<ExchangeKey>>;

/// A shard whose turns are the test's.
pub(super) struct Rig<L: DatagramLines> {
    pub(super) shard: Loop<Shards<CoapDriver<L>>>,
    ends: Receiver<Attempt>,
    dispatches: Receiver<(usize, Box<Dispatch>)>,
    attempts: Vec<Attempt>,
}

impl Rig<Narrow> {
    fn new(fleet: &str, buffers: u32) -> Self {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 5683));
        Self::over(Narrow::default(), nowhere, fleet, buffers)
    }
}

impl<L: DatagramLines> Rig<L> {
    /// Devices that are up, and whose messages are due from now on.
    pub(super) fn over(lines: L, target: SocketAddr, fleet: &str, buffers: u32) -> Self {
        let text = format!(
            "name: t\nplatform: {{ kind: hono, devices: [ 'coap://127.0.0.1' ] }}\nfleet: [ {{ \
             tenant: t1, connect: {{ rate: 100000/s }}, {fleet} }} ]\n\
             phases: {{ warm-up: 0s, measure: 60s }}\n"
        );
        let (name, text) = ("t.yaml", text.as_str());
        let plan = parse(Source { name, text }, &Overrides::default(), &NoFiles);
        let plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
        let (run, clock) = (RunId(1), Clock::start());
        let schedules = schedules(&plan).expect("the plan was checked");
        let spec = ShardSpec {
            recorder: recorder_plan(&plan, run, &schedules),
            plan: Arc::new(plan),
            schedules,
            run,
            slice: Slice::WHOLE,
            clock,
            targets: vec![(Protocol::Coap, target)],
            renewed: None,
            gateways: Vec::new(),
            trial: Trial {
                slots: 1_000,
                buffers,
                lost_copy: None,
            },
        };
        let (ends, attempts) = channel();
        let ((_, inbox), (outbox, dispatches)) = (sync_channel(1), sync_channel(10_000));
        let mailbox = Mailbox::new(0, inbox, outbox);
        let writer = Some(Box::new(Ends(ends)) as Box<dyn FactWriter>);
        let driver = CoapDriver::new(&spec, 0, lines, writer).expect("it can be placed");
        let shard = loop_of(&spec, vec![Box::new(driver)], mailbox);
        let mut rig = Self {
            shard: shard.expect("it can start"),
            ends: attempts,
            dispatches,
            attempts: Vec::new(),
        };
        rig.obey(Order::Connect);
        rig.until(|rig| {
            rig.driver().shard.links().counts().up == rig.driver().shard.fleets().links()
        });
        let origin = clock.now();
        rig.obey(Order::Start { origin });
        rig
    }

    pub(super) fn driver(&mut self) -> &mut CoapDriver<L> {
        &mut self.shard.parts().0.drivers[0]
    }

    fn obey(&mut self, order: Order) {
        let (shards, io) = self.shard.parts();
        shards.obey(io, order);
    }

    pub(super) fn until(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) {
        for _ in 0..TURNS_MAX {
            self.attempts.extend(self.ends.try_iter());
            if is_so(self) {
                return;
            }
            self.shard.turn(Micros::from_millis(10)).expect("a turn");
        }
        panic!("it never came to that: {:?}", self.attempts);
    }

    /// The end of the first message that has one.
    pub(super) fn first_end(&mut self) -> Attempt {
        self.until(|rig| !rig.attempts.is_empty());
        self.attempts[0]
    }

    /// Diagnostics that were dispatched since the last call, and those still to be dispatched.
    pub(super) fn diagnostics(&mut self) -> Vec<Diagnostic> {
        let diagnostics = self.dispatches.try_iter();
        let diagnostics = diagnostics.flat_map(|(_, dispatch)| dispatch.diagnostics);
        let mut all: Vec<Diagnostic> = diagnostics.collect();
        all.extend(self.driver().reports.diagnostics().iter().cloned());
        all
    }

    fn has_trouble(&mut self, what: &str) -> bool {
        self.diagnostics()
            .iter()
            .any(|it| matches!(it, Diagnostic::Limit(text) if text.contains(what)))
    }

    /// Ends the run: how often messages were sent again.
    fn finish(&mut self) -> u64 {
        self.obey(Order::Finish);
        self.attempts.extend(self.ends.try_iter());
        let windows = self.dispatches.try_iter();
        let windows = windows.flat_map(|(_, dispatch)| dispatch.windows.uplinks);
        windows.map(|(_, of)| of.counts.session.retransmitted).sum()
    }

    fn sent(&self) -> usize {
        self.attempts.iter().filter(|it| it.sent.is_some()).count()
    }

    fn shed_as(&self, cause: ShedCause) -> usize {
        let outcome = Outcome::Shed(cause);
        self.attempts
            .iter()
            .filter(|it| it.outcome == outcome)
            .count()
    }
}

/// Sends from our end of the last socket until it has no room.
fn fill() {
    PAIRS.with_borrow(|pairs| {
        let (_, ours) = pairs.last().expect("a socket");
        while ours.send(b"filler").is_ok() {}
    });
}

/// Reads a datagram at the other end of the first socket.
fn read() -> Option<Vec<u8>> {
    let mut room = vec![0; TOO_LONG];
    let read = PAIRS.with_borrow(|pairs| pairs[0].0.recv(&mut room)).ok()?;
    room.truncate(read);
    Some(room)
}

fn read_all() -> usize {
    std::iter::from_fn(read).count()
}

const NON: &str = "streams: [ { rate: 100/s, confirmable: false, payload: { size: 64 } } ]";
const CON: &str = "client: { coap: { ack-timeout: 100ms } }, \
                   streams: [ { every: 30s, phase: together, payload: { size: 64 } } ]";
const ANSWER_OR_COPY: &str = "no buffer was left for an answer or a copy";

#[test]
fn a_copy_for_which_no_buffer_is_left_is_a_trouble_and_does_not_count() {
    let mut rig = Rig::new(CON, 0);
    rig.until(|_| read().is_some());
    fill();
    rig.until(|rig| rig.has_trouble(ANSWER_OR_COPY));
    assert_eq!(rig.finish(), 0);
    assert!(rig.attempts.iter().all(|attempt| !attempt.resent));
}

#[test]
fn a_copy_on_a_shared_socket_for_which_no_buffer_is_left_is_a_trouble_and_does_not_count() {
    let mut rig = Rig::new(&format!("sockets: shared, {CON}"), 1);
    rig.until(|_| read().is_some());
    // Another socket, which is full, takes the only buffer.
    let (_, io) = rig.shard.parts();
    let to = SocketAddr::from(([127, 0, 0, 1], 5683));
    let key = Narrow::connect(io, to, None).expect("a socket");
    // It opens once more what is open.
    io.set_tag(key, Tags::new(0).socket(0));
    fill();
    let mut taken = Written::Busy;
    rig.until(|rig| {
        if taken == Written::Busy {
            taken = rig.shard.parts().1.gather(key, b"x");
        }
        rig.has_trouble(ANSWER_OR_COPY)
    });
    assert_eq!(rig.finish(), 0);
}

#[test]
fn a_copy_that_is_written_counts() {
    for sockets in ["", "sockets: shared, "] {
        let mut rig = Rig::new(&format!("{sockets}{CON}"), 16);
        let mut seen = 0;
        rig.until(|_| {
            seen += u64::from(read().is_some());
            seen == 3
        });
        assert_eq!(rig.finish(), 2, "{sockets}");
        PAIRS.take();
    }
}

#[test]
fn what_waits_behind_a_flight_that_is_held_is_not_sent() {
    let mut rig = Rig::new(NON, 16);
    rig.until(|rig| rig.sent() > 0);
    fill();
    let before = rig.sent();
    rig.driver().lines.0.push(b"a flight".to_vec());
    let (shards, io) = rig.shard.parts();
    DatagramSockets::send(&mut shards.drivers[0], io, 0);
    // Much falls due meanwhile.
    let origin = rig.shard.parts().1.now();
    rig.until(|rig| rig.shard.parts().1.now() > origin + Micros::from_millis(100));
    assert_eq!(rig.sent(), before);
    let mut messages = 0;
    rig.until(|rig| {
        let is_message = |it: &Vec<u8>| it.len() > 60;
        messages += std::iter::from_fn(read).filter(is_message).count();
        rig.sent() > before + 3
    });
    rig.finish();
    messages += std::iter::from_fn(read).filter(|it| it.len() > 60).count();
    assert_eq!(rig.sent(), messages);
}

#[test]
fn what_the_kernel_refuses_was_not_sent_and_the_device_was_offline() {
    for sockets in ["", "sockets: shared, "] {
        let mut rig = Rig::new(&format!("{sockets}{NON}"), 16);
        LENGTH.set(TOO_LONG);
        rig.until(|rig| rig.attempts.len() > 3);
        LENGTH.set(0);
        let refused = rig.attempts.len();
        assert_eq!(rig.shed_as(ShedCause::Offline), refused, "{sockets}");
        rig.until(|rig| rig.attempts.len() > 2 * refused);
        rig.finish();
        assert_eq!(rig.sent(), read_all());
        PAIRS.take();
    }
}

#[test]
fn more_than_may_be_gathered_is_a_bound_of_ours() {
    let mut rig = Rig::new(&format!("count: 32, sockets: shared, {NON}"), 16);
    LENGTH.set(60_000);
    rig.until(|rig| rig.shed_as(ShedCause::GeneratorLimit) > 3);
    LENGTH.set(0);
    assert!(rig.has_trouble("no buffer was left for a message"));
    assert_eq!(rig.shed_as(ShedCause::SocketFull), 0);
}
