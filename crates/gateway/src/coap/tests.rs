//! One thread's end of CoAP, moved by hand.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;

use muster_net::{Clock, Loop, LoopConfig, PortUse};
use muster_platform::Dialect;
use muster_protocol::coap::{Header, Kind, Opt, ServerCounts, ServerSettings, Token};
use muster_protocol::mqtt::{Publish, Qos};

use super::endpoint::note;
use super::peers::tests::Nobody;
use super::*;
use crate::commands;
use crate::end::Ends;
use crate::lock::locked;
use crate::message::Message;
use crate::router::Router;
use crate::shared::Shared;
use crate::thread::Thread;

/// A thread with a socket, whose datagrams come from the test.
struct Rig {
    event_loop: Loop<Nobody>,
    shared: Shared,
    thread: Thread,
    router: Router,
    ends: Ends,
    socket: Key,
}

impl Rig {
    fn new() -> Self {
        let config = GatewayConfig {
            dialect: Dialect::Hono,
            ..GatewayConfig::default()
        };
        let event_loop = Loop::new(Clock::start(), &LoopConfig::default(), Nobody);
        let mut event_loop = event_loop.expect("a loop");
        let (_, io) = event_loop.parts();
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let (socket, _) = io.bind_udp(here, PortUse::Alone).expect("a port");
        let ends = crate::ends::prepare(&config).expect("no certificates")(&config);
        let mut rig = Self {
            event_loop,
            thread: Thread::new(0, 1),
            router: Router::default(),
            shared: Shared::new(config),
            ends,
            socket,
        };
        rig.coap(|coap, work| coap.endpoint.add_socket(&mut work.ctx, socket, None));
        rig
    }

    fn work(&mut self) -> Work<'_> {
        Work {
            ctx: self.thread.context(&self.shared, self.event_loop.parts().1),
            router: &mut self.router,
            ends: &mut self.ends,
        }
    }

    fn coap<T>(&mut self, act: impl FnOnce(&mut Coap, &mut Work<'_>) -> T) -> T {
        let done = self.work().with(Protocol::Coap, |end, work| {
            let end: &mut dyn Any = end;
            act(end.downcast_mut().expect("it is of CoAP"), work)
        });
        done.expect("it is not at work")
    }

    fn settle(&mut self, settings: ServerSettings) {
        self.coap(|coap, _| coap.endpoint.set_bounds(settings));
    }

    /// A device asks for a command in a NON, whose answer is a separate message.
    fn ask(&mut self, from: SocketAddr, id: u16, device: &str) {
        let path = ["t", "T1", device].map(|segment| Opt::text(OptionNumber::URI_PATH, segment));
        let ttd = Opt::text(OptionNumber::URI_QUERY, "hono-ttd=20");
        let options: Vec<Opt<'_>> = path.into_iter().chain([ttd]).collect();
        let header = Header {
            kind: Kind::NonConfirmable,
            code: Code::PUT,
            id,
            token: Token::EMPTY,
        };
        let mut request = Vec::new();
        header.write_with(&options, b"{}", &mut request);
        let socket = self.socket;
        let datagram = Datagram {
            socket,
            from,
            bytes: &mut request,
        };
        self.coap(|coap, work| coap.datagram(work, datagram));
    }

    /// Number of copies of a command to a device that went on.
    fn command(&mut self, device: &str) -> usize {
        let topic = format!("command/T1/{device}/7f3a/set");
        let publish = Publish {
            qos: Qos::AtLeastOnce,
            ..Publish::new(&topic, b"on")
        };
        let mut work = self.work();
        let message = Arc::new(Message::new(&publish, work.ctx.now()));
        commands::answer_with(&mut work, &message)
    }

    fn forget(&mut self, from: SocketAddr) {
        let socket = self.socket;
        self.coap(|coap, work| {
            coap.endpoint.forget_at(&mut work.ctx, socket, from);
            coap.end_gone(&mut work.ctx);
        });
    }

    fn counts(&mut self) -> crate::GatewayCounts {
        self.shared.account.read_counts()
    }

    /// Queries that are kept, those that all threads know, and alarms.
    fn waiting(&mut self) -> [usize; 3] {
        let known = locked(&self.shared.waiting).len();
        let queries = self.coap(|coap, _| coap.queries.len());
        [queries, known, self.thread.alarms()]
    }
}

fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

#[test]
fn a_command_whose_answer_finds_no_room_is_undelivered() {
    let mut rig = Rig::new();
    rig.settle(ServerSettings {
        transmissions_max: 1,
        ..ServerSettings::default()
    });
    for (id, device) in [(1, "a"), (2, "b")] {
        rig.ask(at(9), id, device);
    }
    assert_eq!((rig.command("a"), rig.command("b")), (1, 0));
    let counts = rig.counts();
    assert_eq!((counts.queries, counts.commands_handed), (2, 1));
    assert_eq!((counts.commands_undelivered, counts.unanswerable), (1, 1));
}

#[test]
fn queries_of_a_peer_that_is_gone_end_and_those_of_others_do_not() {
    let mut rig = Rig::new();
    for (id, port, device) in [
        (1, 8, "a"),
        (2, 9, "b"),
        (3, 8, "c"),
        (4, 9, "d"),
        (5, 8, "e"),
    ] {
        rig.ask(at(port), id, device);
    }
    assert_eq!(rig.waiting(), [5; 3]);
    assert_eq!(rig.command("c"), 1, "of the middle of those of its peer");
    rig.forget(at(8));
    assert_eq!(rig.waiting(), [2; 3]);
    let had = ["a", "b", "c", "d", "e"].map(|device| rig.command(device));
    assert_eq!(had, [0, 1, 0, 1, 0]);
    let counts = rig.counts();
    assert_eq!((counts.queries, counts.queries_abandoned), (5, 2));
    assert_eq!(
        (counts.commands_handed, counts.commands_undelivered),
        (3, 3)
    );
    assert_eq!(counts.unanswerable, 0);
}

#[test]
fn the_account_has_copies_that_met_silence_and_answers_that_were_given_up() {
    let mut rig = Rig::new();
    let after = ServerCounts {
        unrepeatable: 3,
        copies_given_up: 2,
        ..ServerCounts::default()
    };
    note(&rig.work().ctx, &ServerCounts::default(), &after);
    let counts = rig.counts();
    assert_eq!((counts.unrepeatable, counts.separate_given_up), (3, 2));
}

/// All devices behind an address send at once, and no answer goes out before all have sent.
#[test]
fn a_whole_shared_socket_is_within_the_bounds_of_a_peer() {
    let mut rig = Rig::new();
    for id in 0..2_000 {
        rig.ask(at(9), id, &format!("dev-{id}"));
    }
    let copies: usize = (0..2_000).map(|id| rig.command(&format!("dev-{id}"))).sum();
    assert_eq!((copies, rig.counts().unanswerable), (2_000, 0));
}
