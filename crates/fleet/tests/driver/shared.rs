//! Links over DTLS that share one socket.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};

use muster_conduct::{FactWriter, Order};
use muster_device::Coap;
use muster_fleet::{LinkCertificates, Secured, ShardSpec, datagram_driver};
use muster_model::{ConnectFailure, Fact, LinkEvent, LinkFact, Micros};
use muster_net::Clock;
use muster_platform::Protocol;
use muster_protocol::dtls::{
    Context, CookieSecret, Datagrams, Dtls, Event, Found, Greeting, Incoming, Keys, Settings, greet,
};
use muster_transport::{AwsLc, DtlsCertificates, TlsSpec};
use zeroize::Zeroizing;

use crate::rig::{Shard, plan};

const LINKS: usize = 10;
const SCENARIO: &str = "
name: shared
platform: { kind: hono, devices: [ 'coaps://127.0.0.1:5684' ] }
fleet:
  - name: meters
    count: 10
    tenant: t
    sockets: shared
    credential: { kind: psk, user: '${id}@t', secret: right }
    connect: { rate: 1000000/s, pending: 16, timeout: 2s }
    streams: [ { rate: 1/s } ]
phases: { measure: 60s }
";
/// Twelve links on six sockets, since each uses as many message ids as half a socket has.
const CROWDED: &str = "
name: crowded
platform: { kind: hono, devices: [ 'coaps://127.0.0.1:5684' ] }
fleet:
  - name: meters
    count: 12
    tenant: t
    sockets: shared
    credential: { kind: psk, user: '${id}@t', secret: right }
    connect: { rate: 100000/s, pending: 2, timeout: 2s }
    reconnect: { min: 60s, max: 60s }
    streams: [ { rate: 1200/s } ]
phases: { measure: 60s }
";
const CROWD: usize = 12;
const CROWDED_SOCKETS: usize = 6;
const ROOM: usize = 2;
/// Of the ClientHello's random, behind the headers of record and message and the version.
const RANDOM: std::ops::Range<usize> = 27..59;

/// Tells what happened to links, and how many handshakes are over.
#[derive(Debug)]
struct Happened {
    told: Sender<LinkFact>,
    over: Arc<AtomicUsize>,
}

impl FactWriter for Happened {
    fn note(&mut self, fact: &Fact) {
        if let Fact::Link(link) = fact {
            self.over.fetch_add(1, Ordering::SeqCst);
            let _ = self.told.send(*link);
        }
    }
}

/// A shard whose links share sockets, before whatever is at this address.
fn start(scenario: &str, socket: &UdpSocket) -> (Shard, Receiver<LinkFact>, Arc<AtomicUsize>) {
    let ((told, happened), over) = (channel(), Arc::default());
    let target = socket.local_addr().expect("it is bound");
    let writer = Box::new(Happened {
        told,
        over: Arc::clone(&over),
    });
    let judge =
        DtlsCertificates::new(None, &TlsSpec::default(), None).expect("whom the host trusts");
    let lines = |spec: &ShardSpec| {
        let certificates = LinkCertificates::new(Box::new(judge), Vec::new());
        Secured::new(Arc::clone(&spec.plan), AwsLc::new(), certificates)
    };
    let driver = datagram_driver::<Coap, _>(lines, Some(writer));
    let shard = Shard::start_over(plan(scenario), vec![(Protocol::Coap, target)], vec![driver]);
    shard.order(Order::Connect);
    (shard, happened, over)
}

/// Of who comes first it knows another key than that.
#[derive(Default)]
struct OneWrong(OnceLock<Vec<u8>>);

impl Keys for OneWrong {
    fn find(&self, identity: &[u8]) -> Found {
        let first = self.0.get_or_init(|| identity.to_vec());
        let key: &[u8] = if first == identity {
            b"wrong"
        } else {
            b"right"
        };
        Found::Key(Zeroizing::new(key.to_vec()))
    }
}

/// A server that says the flights of handshakes which failed again whenever it would hurt most:
/// before each answer to a ClientHello.
fn serve(socket: &UdpSocket) {
    let (clock, keys, mut crypto) = (Clock::start(), OneWrong::default(), AwsLc::new());
    let settings = Settings {
        cookie_secret: Some(CookieSecret::new([7; 32])),
        ..Settings::default()
    };
    let (mut dtls, mut random, mut id) = (Dtls::default(), Vec::new(), 0_u32);
    let (mut failed, mut flight): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    let (mut out, mut bytes) = (Datagrams::new(), [0; 4_096]);
    while let Ok((length, from)) = socket.recv_from(&mut bytes) {
        let mut context = Context {
            crypto: &mut crypto,
            settings: &settings,
            certificates: None,
            keys: Some(&keys),
            sessions: None,
        };
        let datagram = &mut bytes[..length];
        let greeting = greet(&context, datagram, b"address", &mut out);
        if let Greeting::Welcome(welcome) = greeting
            && random != datagram[RANDOM]
        {
            if !dtls.is_open() {
                failed.append(&mut flight);
            }
            (random, id) = (datagram[RANDOM].to_vec(), id + 1);
            flight.clear();
            dtls = Dtls::server(clock.now(), welcome, &context, Some(&id.to_be_bytes()));
        }
        if greeting != Greeting::Answered {
            let mut input = Incoming::new(datagram);
            while let Some(event) = dtls.poll(clock.now(), &mut context, &mut input, &mut out) {
                assert!(matches!(event, Event::Connected(_)), "{event:?}");
            }
        }
        let answers: Vec<Vec<u8>> = out.iter().map(<[u8]>::to_vec).collect();
        out.clear();
        if greeting != Greeting::Ignored {
            for again in &failed {
                let _ = socket.send_to(again, from);
            }
        }
        if matches!(greeting, Greeting::Welcome(_)) && flight.is_empty() {
            flight.clone_from(&answers);
        }
        for answer in &answers {
            let _ = socket.send_to(answer, from);
        }
    }
}

#[test]
fn of_ten_links_one_with_a_wrong_key_takes_no_other_along() {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let (_shard, happened, _) = start(SCENARIO, &socket);
    std::thread::spawn(move || serve(&socket));
    let (mut up, mut failed) = (BTreeSet::new(), BTreeSet::new());
    while up.len() < LINKS - 1 {
        let link = happened.recv().expect("the shard lives");
        match link.event {
            LinkEvent::Connected { took } => {
                assert!(!failed.contains(&link.link), "at the first try: {failed:?}");
                // Its turn came with that of the first, whose time had to be over.
                assert!(took > Micros::from_secs(1), "{took}");
                up.insert(link.link);
            }
            LinkEvent::Failed(failure) => {
                assert_eq!(failure, ConnectFailure::TimedOut);
                failed.insert(link.link);
                assert_eq!(failed.len(), 1, "{failed:?}");
            }
            LinkEvent::Returned { .. }
            | LinkEvent::Disconnected(_)
            | LinkEvent::LastSent { .. } => panic!("{link:?}"),
        }
    }
}

/// Everybody's key is the same.
struct Right;

impl Keys for Right {
    fn find(&self, _identity: &[u8]) -> Found {
        Found::Key(Zeroizing::new(b"right".to_vec()))
    }
}

/// Observations of a server.
#[derive(Debug, Default, PartialEq, Eq)]
struct Crowd {
    sockets: usize,
    /// The most handshakes that had begun and were not over.
    most: usize,
}

/// A server that leaves the first handshakes, for which there is room, without an answer.
fn serve_crowd(socket: &UdpSocket, over: &AtomicUsize, crowd: &Mutex<Crowd>) {
    let (clock, mut crypto, settings) = (Clock::start(), AwsLc::new(), Settings::default());
    let (mut begun, mut sessions) = (Vec::new(), BTreeMap::new());
    let (mut out, mut bytes) = (Datagrams::new(), [0; 4_096]);
    while let Ok((length, from)) = socket.recv_from(&mut bytes) {
        let mut context = Context {
            crypto: &mut crypto,
            settings: &settings,
            certificates: None,
            keys: Some(&Right),
            sessions: None,
        };
        let datagram = &mut bytes[..length];
        if let Greeting::Welcome(welcome) = greet(&context, datagram, b"", &mut out)
            && !begun.contains(welcome.random())
        {
            begun.push(*welcome.random());
            let id = (begun.len() as u32).to_be_bytes();
            let session = (begun.len() > ROOM)
                .then(|| Dtls::server(clock.now(), welcome, &context, Some(&id)));
            sessions.insert(from, session);
            let mut crowd = crowd.lock().expect("nobody panics with it");
            let under_way = begun.len().saturating_sub(over.load(Ordering::SeqCst));
            *crowd = Crowd {
                sockets: sessions.len(),
                most: crowd.most.max(under_way),
            };
        }
        let Some(Some(dtls)) = sessions.get_mut(&from) else {
            continue;
        };
        let mut input = Incoming::new(datagram);
        while let Some(event) = dtls.poll(clock.now(), &mut context, &mut input, &mut out) {
            assert!(matches!(event, Event::Connected(_)), "{event:?}");
        }
        for answer in out.iter() {
            let _ = socket.send_to(answer, from);
        }
        out.clear();
    }
}

/// The first handshakes are never answered, so that all others wait until these are given up.
#[test]
fn no_more_handshakes_are_under_way_than_may_be_on_all_sockets_together() {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let (_shard, happened, over) = start(CROWDED, &socket);
    let crowd = Arc::new(Mutex::new(Crowd::default()));
    let seen = Arc::clone(&crowd);
    std::thread::spawn(move || serve_crowd(&socket, &over, &seen));
    let (mut up, mut failed) = (BTreeSet::new(), BTreeSet::new());
    while up.len() + failed.len() < CROWD {
        let link = happened.recv().expect("the shard lives");
        match link.event {
            LinkEvent::Connected { .. } => assert!(up.insert(link.link), "{link:?}"),
            LinkEvent::Failed(failure) => {
                assert_eq!(failure, ConnectFailure::TimedOut);
                assert!(failed.insert(link.link), "{link:?}");
            }
            LinkEvent::Returned { .. }
            | LinkEvent::Disconnected(_)
            | LinkEvent::LastSent { .. } => panic!("{link:?}"),
        }
    }
    assert_eq!((up.len(), failed.len()), (CROWD - ROOM, ROOM));
    let expected = Crowd {
        sockets: CROWDED_SOCKETS,
        most: ROOM,
    };
    assert_eq!(*crowd.lock().expect("nobody panicked"), expected);
}
