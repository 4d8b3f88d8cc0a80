//! A real consumer before a broker that writes down what it hears.

#![expect(
    clippy::unwrap_used,
    reason = "what the helpers take for granted is the test's own doing"
)]

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use muster_backend::{ConsumerPlan, ConsumersSpec, consumers_loop};
use muster_conduct::{Diagnostic, Dispatch, Order, recorder_plan, schedules};
use muster_model::{BackendId, ConsumerId, Micros, RunId};
use muster_net::{Clock, Mailbox, Waker};
use muster_plan::Plan;
use muster_protocol::layer::Plain;
use muster_protocol::mqtt::{
    Accept, Input, Publish, Qos, RetainHandling, Server, ServerEvent, ServerLimits, Token,
};
use muster_scenario::{NoFiles, Overrides, Source, parse};
use muster_transport::Clients;

const SCENARIO: &str = "
name: consumer
platform:
  kind: mqtt
  devices: [ 'mqtt://127.0.0.1:1883' ]
  backend: { filter: 'muster/#', qos: 1, pause: [ { at: 0s, for: PAUSE } ] }
fleet: [ { name: meters, count: 1, streams: [ { name: r, rate: 1/s, qos: 1, payload: { size: 64 } } ] } ]
phases: { measure: 60s }
";
/// Far longer than a test takes, so that only what hangs meets it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval between the broker's checks for orders of the test.
const GLANCE: Duration = Duration::from_millis(5);

fn plan(pause: &str) -> Plan {
    let text = SCENARIO.replace("PAUSE", pause);
    let source = Source {
        name: "consumer.yaml",
        text: &text,
    };
    parse(source, &Overrides::default(), &NoFiles).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Messages that the broker received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    Subscribe(RetainHandling),
    Ping,
    Acked,
    Goodbye(Option<u32>),
}

/// Orders of the test to the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Do {
    Deliver,
    Hang,
    /// Says nothing more, and reads nothing.
    Freeze,
}

/// Serves one connection until it ends or the test says so.
struct Conversation {
    socket: TcpStream,
    server: Server,
    out: Vec<u8>,
    heard: Sender<Heard>,
    /// True if a message goes out with the answer to SUBSCRIBE.
    greets: bool,
}

impl Conversation {
    fn serve(&mut self, orders: &Receiver<Do>) {
        self.socket.set_read_timeout(Some(GLANCE)).unwrap();
        let (mut unread, mut room) = (Vec::new(), [0; 4_096]);
        loop {
            match orders.try_recv() {
                Ok(Do::Deliver) => self.deliver(),
                Ok(Do::Hang) => return,
                Ok(Do::Freeze) => {
                    // Until the test is over.
                    let _ = orders.recv();
                    return;
                }
                Err(_) => {}
            }
            match self.socket.read(&mut room) {
                Ok(0) => return,
                Ok(count) => unread.extend_from_slice(&room[..count]),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return,
            }
            let used = self.hear(&unread);
            unread.drain(..used);
            if self
                .socket
                .write_all(&std::mem::take(&mut self.out))
                .is_err()
            {
                return;
            }
        }
    }

    fn hear(&mut self, bytes: &[u8]) -> usize {
        let mut input = Input::new(bytes);
        loop {
            match self.server.poll(Micros::ZERO, &mut input, &mut self.out) {
                Some(ServerEvent::Connect(_)) => {
                    let (server, accept) = (&mut self.server, Accept::default());
                    server.accept(Micros::ZERO, &accept, &mut self.out).unwrap();
                }
                Some(ServerEvent::Subscribe(subscribe)) => {
                    let filter = subscribe.filters.iter().next().unwrap();
                    self.tell(Heard::Subscribe(filter.retain_handling));
                    let (server, id) = (&mut self.server, subscribe.packet_id);
                    server.suback(id, &[1], &mut self.out).unwrap();
                    if self.greets {
                        self.deliver();
                    }
                }
                Some(ServerEvent::Ping) => self.tell(Heard::Ping),
                Some(ServerEvent::Acked { .. }) => self.tell(Heard::Acked),
                Some(ServerEvent::Disconnect { session_expiry, .. }) => {
                    self.tell(Heard::Goodbye(session_expiry));
                }
                Some(_) => {}
                None => return input.consumed(),
            }
        }
    }

    fn tell(&self, heard: Heard) {
        // The test that has seen enough is gone.
        let _ = self.heard.send(heard);
    }

    fn deliver(&mut self) {
        let publish = Publish {
            qos: Qos::AtLeastOnce,
            ..Publish::new("muster/x", b"x")
        };
        self.server
            .deliver(Token(1), &publish, &mut self.out)
            .unwrap();
    }
}

/// A broker of one connection after the other; from the second on it delivers at once.
fn broker(listener: TcpListener, heard: Sender<Heard>, orders: Receiver<Do>) {
    std::thread::spawn(move || {
        for (socket, greets) in listener.incoming().zip([false, true]) {
            let mut conversation = Conversation {
                socket: socket.unwrap(),
                server: Server::new(&ServerLimits::default()),
                out: Vec::new(),
                heard: heard.clone(),
                greets,
            };
            conversation.serve(&orders);
        }
    });
}

/// One consumer on its thread, and its broker.
struct Rig {
    orders: SyncSender<Order>,
    dispatches: Receiver<(usize, Box<Dispatch>)>,
    waker: Waker,
    clock: Clock,
    heard: Receiver<Heard>,
    broker: Sender<Do>,
}

impl Rig {
    /// A consumer that is subscribed.
    fn start(pause: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let target = listener.local_addr().unwrap();
        let (told, heard) = channel();
        let (broker_orders, broker_inbox) = channel();
        broker(listener, told, broker_inbox);
        let rig = Self::connecting(pause, target, heard, broker_orders);
        assert_eq!(rig.hears(), Heard::Subscribe(RetainHandling::Keep));
        rig.until_up();
        rig
    }

    /// A consumer that has been told to connect.
    fn connecting(
        pause: &str,
        target: SocketAddr,
        heard: Receiver<Heard>,
        broker: Sender<Do>,
    ) -> Self {
        let clock = Clock::start();
        let (orders, inbox) = sync_channel(8);
        let (outbox, dispatches) = sync_channel(1_000);
        let mailbox = Mailbox::new(0, inbox, outbox);
        let mut event_loop = consumers_loop(
            &spec(pause, clock, target),
            vec![Clients::Plain(Plain)],
            None,
            mailbox,
        )
        .unwrap();
        let waker = event_loop.parts().1.waker();
        std::thread::spawn(move || event_loop.run());
        let rig = Self {
            orders,
            dispatches,
            waker,
            clock,
            heard,
            broker,
        };
        rig.order(Order::Connect);
        rig
    }

    /// Returns why the consumer was refused.
    fn refusal(&self) -> String {
        loop {
            let dispatch = self.dispatches.recv_timeout(PATIENCE).unwrap().1;
            let told = dispatch.diagnostics.into_iter().find_map(|diagnostic| {
                if let Diagnostic::ConsumerRefused(refusal) = diagnostic {
                    Some(refusal.to_string())
                } else {
                    None
                }
            });
            if let Some(why) = told {
                return why;
            }
        }
    }

    fn order(&self, order: Order) {
        self.orders.send(order).unwrap();
        self.waker.wake();
    }

    fn hears(&self) -> Heard {
        self.heard
            .recv_timeout(PATIENCE)
            .expect("the consumer says something")
    }

    fn until_up(&self) {
        let is_up = |dispatch: Box<Dispatch>| dispatch.progress.consumers_up == 1;
        while !is_up(self.dispatches.recv_timeout(PATIENCE).unwrap().1) {}
    }

    fn wait_for<T>(&self, mut seen: impl FnMut(&Dispatch) -> Option<T>) -> T {
        loop {
            let (_, dispatch) = self.dispatches.recv_timeout(PATIENCE).unwrap();
            if let Some(found) = seen(&dispatch) {
                return found;
            }
        }
    }

    fn pause_now(&self) {
        let origin = self.clock.now();
        self.order(Order::Start { origin });
    }
}

fn spec(pause: &str, clock: Clock, target: SocketAddr) -> ConsumersSpec {
    let (plan, run) = (plan(pause), RunId(1));
    let schedules = schedules(&plan).unwrap();
    ConsumersSpec {
        recorder: recorder_plan(&plan, run, &schedules),
        plan: Arc::new(plan),
        schedules,
        run,
        clock,
        consumers: vec![ConsumerPlan {
            backend: BackendId(0),
            consumer: ConsumerId(0),
            target,
        }],
        gateways: Vec::new(),
        lost_copy: None,
    }
}

#[test]
fn a_consumer_leaves_no_session_behind() {
    let rig = Rig::start("1s");
    rig.order(Order::Finish);
    let mut last = rig.hears();
    while last == Heard::Ping {
        last = rig.hears();
    }
    assert_eq!(last, Heard::Goodbye(Some(0)));
}

#[test]
fn a_consumer_that_is_paused_shows_signs_of_life_and_reads_nothing() {
    let rig = Rig::start("3s");
    rig.pause_now();
    assert_eq!(rig.hears(), Heard::Ping);
    rig.broker.send(Do::Deliver).unwrap();
    assert_eq!(rig.hears(), Heard::Ping);
    while rig.hears() != Heard::Acked {}
}

#[test]
fn a_consumer_that_comes_back_in_a_pause_does_not_read_before_its_end() {
    let rig = Rig::start("8s");
    rig.pause_now();
    assert_eq!(rig.hears(), Heard::Ping);
    rig.broker.send(Do::Hang).unwrap();
    assert_eq!(rig.hears(), Heard::Subscribe(RetainHandling::Keep));
    assert_eq!(rig.hears(), Heard::Ping, "what came with SUBACK waits");
    rig.broker.send(Do::Deliver).unwrap();
    assert_eq!(rig.hears(), Heard::Ping, "and so does what came later");
    while rig.hears() != Heard::Acked {}
}

#[test]
fn what_a_consumer_waited_for_in_vain_is_told_when_the_run_gives_up() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = listener.local_addr().unwrap();
    let rig = Rig::connecting("1s", target, channel().1, channel().0);
    let (mut silent, _) = listener.accept().unwrap();
    silent.read_exact(&mut [0; 1]).unwrap();
    rig.order(Order::Finish);
    let why = rig.refusal();
    let wanted = format!(" at {target}: CONNACK did not come within ");
    assert!(why.contains(&wanted), "{why}");
}

#[test]
fn a_refused_connection_is_told_in_words() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = listener.local_addr().unwrap();
    drop(listener);
    let rig = Rig::connecting("1s", target, channel().1, channel().0);
    let why = rig.refusal();
    assert!(
        why.ends_with("the connection was refused; does anybody listen there?"),
        "{why}"
    );
    rig.order(Order::Finish);
}

/// A port of TLS closes what does not begin a handshake.
#[test]
fn a_peer_that_hangs_up_before_connack_is_told_with_the_scheme_it_may_want() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = listener.local_addr().unwrap();
    let rig = Rig::connecting("1s", target, channel().1, channel().0);
    let (mut peer, _) = listener.accept().unwrap();
    peer.read_exact(&mut [0; 1]).unwrap();
    drop(peer);
    let why = rig.refusal();
    assert!(
        why.contains(" before CONNACK came; a port with TLS does that"),
        "{why}"
    );
    assert!(why.ends_with("if it is one, write `mqtts://`"), "{why}");
    rig.order(Order::Finish);
}

#[test]
fn a_peer_that_answers_in_another_protocol_is_told_as_one() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = listener.local_addr().unwrap();
    let rig = Rig::connecting("1s", target, channel().1, channel().0);
    let (mut peer, _) = listener.accept().unwrap();
    // An alert of TLS (RFC 8446 section 5.1).
    peer.write_all(&[0x15, 3, 3, 0, 2, 2, 10]).unwrap();
    let why = rig.refusal();
    assert!(
        why.contains("answered in bytes of another protocol") && why.contains("`mqtts://`"),
        "{why}"
    );
    rig.order(Order::Finish);
}

/// Law: settling waits for silence, and a frozen broker's does not count.
#[test]
fn the_silence_of_a_broker_counts_only_as_far_as_it_answers_pings() {
    let rig = Rig::start("1s");
    let second = Micros::from_secs(1);
    let until = |dispatch: &Dispatch| dispatch.progress.listening.until;
    let begun = rig.clock.now();
    rig.wait_for(|dispatch| (until(dispatch) > begun + second).then_some(()));
    rig.broker.send(Do::Freeze).unwrap();
    let frozen = rig.clock.now();
    let last = rig.wait_for(|dispatch| {
        let is_late = dispatch.progress.at > frozen + Micros::from_secs(3);
        is_late.then(|| until(dispatch))
    });
    assert!(last <= frozen + second, "{last} is long after {frozen}");
}
