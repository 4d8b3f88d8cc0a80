//! A session at rest is small, and records cost no memory.

use std::alloc::System;

use muster_model::Micros;
use muster_protocol::dtls::{
    Context, Datagrams, Dtls, Event, Found, Greeting, Incoming, Keys, Opening, Psk, Settings,
    Suite, greet,
};
use muster_transport::AwsLc;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NOW: Micros = Micros(1);
/// Sessions whose memory is counted.
const SESSIONS: usize = 100;
/// Most bytes of a session at rest: a quarter of what a device with DTLS may take.
const AT_REST_MAX: usize = 256;

struct AnyKey;

impl Keys for AnyKey {
    fn find(&self, _identity: &[u8]) -> Found {
        Found::Key(b"key".to_vec().into())
    }
}

/// Both ends' means, and a handshake between them.
struct Pair {
    crypto: AwsLc,
    settings: Settings,
    out: Datagrams,
    bytes: Vec<u8>,
}

macro_rules! context {
    ($pair:expr) => {
        Context {
            crypto: &mut $pair.crypto,
            settings: &$pair.settings,
            certificates: None,
            keys: Some(&AnyKey),
            sessions: None,
        }
    };
}

impl Pair {
    fn new(suite: Suite) -> Self {
        let settings = Settings {
            suites: vec![suite],
            ..Settings::default()
        };
        let (crypto, out, bytes) = (AwsLc::new(), Datagrams::new(), Vec::new());
        Self {
            crypto,
            settings,
            out,
            bytes,
        }
    }

    /// Hands on what was said; whether somebody said something.
    fn hand_on(&mut self, to: &mut Dtls<AwsLc>) -> bool {
        let said: Vec<_> = self.out.iter().map(<[u8]>::to_vec).collect();
        self.out.clear();
        for mut datagram in said {
            let mut input = Incoming::new(&mut datagram);
            let context = &mut context!(self);
            while to.poll(NOW, context, &mut input, &mut self.out).is_some() {}
        }
        !self.out.is_empty()
    }

    fn shake(&mut self) -> (Dtls<AwsLc>, Dtls<AwsLc>) {
        let psk = Psk {
            identity: b"device",
            key: b"key",
        };
        let opening = Opening {
            psk: Some(psk),
            ..Opening::default()
        };
        let mut client = Dtls::client(NOW, &opening, &mut context!(self), &mut self.out);
        let hello: Vec<u8> = self.out.iter().flatten().copied().collect();
        let greeting = greet(&context!(self), &hello, b"", &mut Datagrams::new());
        let Greeting::Welcome(welcome) = greeting else {
            panic!("{greeting:?}");
        };
        let mut server = Dtls::server(NOW, welcome, &context!(self), None);
        while self.hand_on(&mut server) && self.hand_on(&mut client) {}
        assert!(client.is_open() && server.is_open());
        (client, server)
    }

    /// One end says something and the other hears it.
    fn pass(&mut self, from: &mut Dtls<AwsLc>, to: &mut Dtls<AwsLc>) {
        self.bytes.clear();
        self.bytes.extend_from_slice(&[7; 100]);
        assert!(from.wrap(&mut self.bytes, 0));
        let mut input = Incoming::new(&mut self.bytes);
        let mut context = Context {
            crypto: &mut self.crypto,
            settings: &self.settings,
            certificates: None,
            keys: Some(&AnyKey),
            sessions: None,
        };
        let event = to.poll(NOW, &mut context, &mut input, &mut self.out);
        assert!(matches!(event, Some(Event::Data([7, ..]))));
    }
}

#[test]
fn a_session_at_rest_is_small_and_records_allocate_nothing() {
    for suite in [Suite::PskCcm8, Suite::PskGcm, Suite::PskCcm] {
        let mut pair = Pair::new(suite);
        let (mut client, mut server) = pair.shake();
        pair.pass(&mut client, &mut server);
        pair.pass(&mut server, &mut client);

        let region = Region::new(ALLOCATOR);
        for _ in 0..1_000 {
            pair.pass(&mut client, &mut server);
            pair.pass(&mut server, &mut client);
        }
        let change = region.change();
        assert_eq!(
            (change.allocations, change.reallocations),
            (0, 0),
            "{suite:?}"
        );

        let mut clients = Vec::with_capacity(SESSIONS);
        let region = Region::new(ALLOCATOR);
        for _ in 0..SESSIONS {
            let (mut client, mut server) = pair.shake();
            pair.pass(&mut client, &mut server);
            clients.push(client);
        }
        let change = region.change();
        let heap = (change.bytes_allocated - change.bytes_deallocated) / SESSIONS;
        let all = heap + size_of::<Dtls<AwsLc>>();
        assert!(
            all <= AT_REST_MAX,
            "{suite:?}: {all} bytes, {heap} of them apart"
        );
    }
}
