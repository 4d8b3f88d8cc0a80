//! A real consumer before a broker that writes down what it hears.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use muster_backend::consumers_loop;
use muster_conduct::Order;
use muster_model::Micros;
use muster_plan::Plan;
use muster_protocol::layer::Plain;
use muster_protocol::mqtt::{
    Accept, Input, Publish, Qos, RetainHandling, Server, ServerEvent, ServerLimits, Token,
};
use muster_transport::Clients;

use crate::rig::{PATIENCE, Rig, parsed, refusal};

const SCENARIO: &str = "
name: consumer
platform:
  kind: mqtt
  devices: [ 'mqtt://127.0.0.1:1883' ]
  backend: { filter: 'muster/#', qos: 1, pause: [ { at: 0s, for: PAUSE } ] }
fleet: [ { name: meters, count: 1, streams: [ { name: r, rate: 1/s, qos: 1, payload: { size: 64 } } ] } ]
phases: { measure: 60s }
";
/// Interval between the broker's checks for orders of the test.
const GLANCE: Duration = Duration::from_millis(5);

fn plan(pause: &str) -> Plan {
    parsed(&SCENARIO.replace("PAUSE", pause))
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

/// A consumer and its broker.
struct Both {
    rig: Rig,
    heard: Receiver<Heard>,
    broker: Sender<Do>,
}

impl Both {
    /// A consumer that is subscribed.
    fn start(pause: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let target = listener.local_addr().unwrap();
        let (told, heard) = channel();
        let (orders, inbox) = channel();
        broker(listener, told, inbox);
        let rig = connecting(pause, target);
        let heard_first = heard.recv_timeout(PATIENCE);
        assert_eq!(heard_first, Ok(Heard::Subscribe(RetainHandling::Keep)));
        Self {
            rig: rig.until_up(),
            heard,
            broker: orders,
        }
    }

    fn hears(&self) -> Heard {
        self.heard
            .recv_timeout(PATIENCE)
            .expect("the consumer says something")
    }
}

/// A consumer that was ordered to connect.
fn connecting(pause: &str, target: SocketAddr) -> Rig {
    Rig::start(&plan(pause), target, |spec, mailbox| {
        consumers_loop(spec, vec![Clients::Plain(Plain)], None, mailbox)
    })
}

/// Returns why the consumer was refused.
fn why_refused(rig: &mut Rig) -> String {
    rig.until(|rig| refusal(&rig.diagnostics).is_some());
    refusal(&rig.diagnostics).unwrap()
}

#[test]
fn a_consumer_leaves_no_session_behind() {
    let both = Both::start("1s");
    both.rig.order(Order::Finish);
    let mut last = both.hears();
    while last == Heard::Ping {
        last = both.hears();
    }
    assert_eq!(last, Heard::Goodbye(Some(0)));
}

#[test]
fn a_consumer_that_is_paused_shows_signs_of_life_and_reads_nothing() {
    let both = Both::start("3s");
    both.rig.begin();
    assert_eq!(both.hears(), Heard::Ping);
    both.broker.send(Do::Deliver).unwrap();
    assert_eq!(both.hears(), Heard::Ping);
    while both.hears() != Heard::Acked {}
}

#[test]
fn a_consumer_that_comes_back_in_a_pause_does_not_read_before_its_end() {
    let both = Both::start("8s");
    both.rig.begin();
    assert_eq!(both.hears(), Heard::Ping);
    both.broker.send(Do::Hang).unwrap();
    assert_eq!(both.hears(), Heard::Subscribe(RetainHandling::Keep));
    assert_eq!(both.hears(), Heard::Ping, "what came with SUBACK waits");
    both.broker.send(Do::Deliver).unwrap();
    assert_eq!(both.hears(), Heard::Ping, "and so does what came later");
    while both.hears() != Heard::Acked {}
}

#[test]
fn what_a_consumer_waited_for_in_vain_is_told_when_the_run_gives_up() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = listener.local_addr().unwrap();
    let mut rig = connecting("1s", target);
    let (mut silent, _) = listener.accept().unwrap();
    silent.read_exact(&mut [0; 1]).unwrap();
    rig.order(Order::Finish);
    let why = why_refused(&mut rig);
    let wanted = format!(" at {target}: CONNACK did not come within ");
    assert!(why.contains(&wanted), "{why}");
}

#[test]
fn a_refused_connection_is_told_in_words() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let target = listener.local_addr().unwrap();
    drop(listener);
    let mut rig = connecting("1s", target);
    let why = why_refused(&mut rig);
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
    let mut rig = connecting("1s", target);
    let (mut peer, _) = listener.accept().unwrap();
    peer.read_exact(&mut [0; 1]).unwrap();
    drop(peer);
    let why = why_refused(&mut rig);
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
    let mut rig = connecting("1s", target);
    let (mut peer, _) = listener.accept().unwrap();
    // An alert of TLS (RFC 8446 section 5.1).
    peer.write_all(&[0x15, 3, 3, 0, 2, 2, 10]).unwrap();
    let why = why_refused(&mut rig);
    assert!(
        why.contains("answered in bytes of another protocol") && why.contains("`mqtts://`"),
        "{why}"
    );
    rig.order(Order::Finish);
}

/// Law: settling waits for silence, and a frozen broker's does not count.
#[test]
fn the_silence_of_a_broker_counts_only_as_far_as_it_answers_pings() {
    let mut both = Both::start("1s");
    let second = Micros::from_secs(1);
    let begun = both.rig.clock.now();
    both.rig
        .until(|rig| rig.progress.listening.until > begun + second);
    both.broker.send(Do::Freeze).unwrap();
    let frozen = both.rig.clock.now();
    both.rig
        .until(|rig| rig.progress.at > frozen + Micros::from_secs(3));
    let last = both.rig.progress.listening.until;
    assert!(last <= frozen + second, "{last} is long after {frozen}");
}
