//! Cost of a message in the gateway, compared with a sink that only reads: CPU time of the
//! receiving thread for each message of 100 bytes, one write a message, over 500 connections.
//!
//! `cargo run --release -p muster-gateway --example throughput`

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::thread;

use muster_gateway::{Gateway, GatewayConfig};
use muster_model::Micros;
use muster_net::{Clock, Closed, Handler, Io, Key, ListenerId, Loop, LoopConfig, PortUse, Written};
use muster_protocol::mqtt::{Client, ClientLimits, Connect, Publish, Qos, Token, Version};

const CONNECTIONS: usize = 500;
const MESSAGES: u64 = 1_000_000;

/// Sends one message after the other, round-robin, as fast as the receiver takes them.
struct Flood {
    links: Vec<(Key, Client)>,
    ready: usize,
    out: Vec<u8>,
    qos: Qos,
    sent: u64,
    answered: u64,
    in_flight_max: u64,
}

/// Reads and forgets.
struct Sink;

fn main() {
    for qos in [Qos::AtMostOnce, Qos::AtLeastOnce] {
        for subscriber in [false, true] {
            let gateway = Gateway::start(GatewayConfig::default()).expect("a gateway");
            let consumer = subscriber.then(|| Consumer::start(gateway.addr(), qos));
            let (rate, cost) = measure(gateway.addr(), qos, "gateway-0");
            let counts = gateway.stop().counts;
            drop(consumer);
            report(
                &format!("gateway, {qos:?}, subscriber {subscriber}"),
                rate,
                cost,
            );
            assert_eq!(counts.received, MESSAGES);
        }
    }
    let (addr, clock) = (SocketAddr::from(([127, 0, 0, 1], 0)), Clock::start());
    let mut sink = Loop::new(clock, &LoopConfig::default(), Sink).expect("a loop");
    let (_, addr) = sink.parts().1.listen(addr, PortUse::Alone).expect("a port");
    thread::Builder::new()
        .name("sink".to_owned())
        .spawn(move || sink.run())
        .expect("a thread");
    let (rate, cost) = measure(addr, Qos::AtMostOnce, "sink");
    report("sink", rate, cost);
}

fn report(what: &str, rate: f64, cost: f64) {
    let mut out = std::io::stdout();
    writeln!(
        out,
        "{what}: {rate:.0} messages/s, {cost:.2} us of CPU each"
    )
    .expect("stdout");
}

/// A subscriber that reads all.
struct Consumer;

impl Consumer {
    fn start(addr: SocketAddr, qos: Qos) -> thread::JoinHandle<()> {
        use std::io::Read;
        let mut stream = std::net::TcpStream::connect(addr).expect("it listens");
        let mut client = Client::new(Version::V311, &ClientLimits::default());
        let mut out = Vec::new();
        let connect = Connect {
            keep_alive: 0,
            ..Connect::new("consumer")
        };
        client
            .connect(Micros::ZERO, &connect, &mut out)
            .expect("fresh");
        let mut bytes = vec![0; 256 * 1024];
        let (mut have, mut subscribed) = (0, false);
        stream.write_all(&out).expect("it stands");
        let (ready, is_ready) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            while let Ok(count @ 1..) = stream.read(&mut bytes[have..]) {
                have += count;
                let mut input = muster_protocol::mqtt::Input::new(&bytes[..have]);
                out.clear();
                while client.poll(Micros::ZERO, &mut input, &mut out).is_some() {}
                let used = input.consumed();
                bytes.copy_within(used..have, 0);
                have -= used;
                if !subscribed {
                    subscribed = true;
                    let filters = [muster_protocol::mqtt::Filter::new("#", qos)];
                    let subscribe = muster_protocol::mqtt::Subscribe {
                        id: 1,
                        filters: &filters,
                        subscription_id: None,
                        user_properties: &[],
                    };
                    client
                        .subscribe(Micros::ZERO, &subscribe, &mut out)
                        .expect("connected");
                } else {
                    let _ = ready.send(());
                }
                stream.write_all(&out).expect("it stands");
            }
        });
        is_ready.recv().expect("SUBACK");
        thread
    }
}

/// Messages a second, and microseconds of CPU that the receiving thread spent on each.
fn measure(addr: SocketAddr, qos: Qos, receiver: &str) -> (f64, f64) {
    let flood = Flood {
        links: Vec::new(),
        ready: 0,
        out: Vec::new(),
        qos,
        sent: 0,
        answered: 0,
        in_flight_max: if qos == Qos::AtMostOnce {
            u64::MAX
        } else {
            4_000
        },
    };
    let mut event_loop = Loop::new(Clock::start(), &LoopConfig::default(), flood).expect("a loop");
    let (flood, io) = event_loop.parts();
    for _ in 0..CONNECTIONS {
        let key = io.connect(addr, None).expect("begun");
        flood
            .links
            .push((key, Client::new(Version::V311, &ClientLimits::default())));
    }
    while event_loop.parts().0.ready < CONNECTIONS {
        event_loop.turn(Micros::from_millis(50)).expect("a turn");
    }
    event_loop.turn(Micros::from_millis(50)).expect("a turn");
    let (before, began) = (cpu_us(receiver), event_loop.parts().1.fresh_now());
    event_loop.run().expect("it runs");
    let took = event_loop.parts().1.fresh_now() - began;
    thread::sleep(std::time::Duration::from_millis(200));
    let cost = (cpu_us(receiver) - before) / MESSAGES as f64;
    (MESSAGES as f64 / took.as_secs_f64(), cost)
}

impl Handler for Flood {
    fn opened(&mut self, io: &mut Io, key: Key) {
        let at = self
            .links
            .iter()
            .position(|(known, _)| *known == key)
            .expect("one of ours");
        io.set_tag(key, at as u32);
        self.out.clear();
        let name = format!("device-{at}");
        let connect = Connect {
            keep_alive: 0,
            ..Connect::new(&name)
        };
        self.links[at]
            .1
            .connect(io.now(), &connect, &mut self.out)
            .expect("fresh");
        assert_eq!(io.write(key, &self.out), Written::Whole);
        // The sink never answers: the client gets the answers of a gateway from here.
        let mut answer = muster_protocol::mqtt::Input::new(&[0x20, 2, 0, 0]);
        self.links[at].1.poll(io.now(), &mut answer, &mut self.out);
        self.ready += 1;
    }

    fn accepted(&mut self, _: &mut Io, _: Key, _: ListenerId) {}

    fn received(&mut self, io: &mut Io, key: Key, bytes: &mut [u8]) -> usize {
        let skip = if bytes[0] == 0x20 { 4 } else { 0 };
        let mut input = muster_protocol::mqtt::Input::new(&bytes[skip..]);
        let (_, client) = &mut self.links[io.tag(key) as usize];
        self.out.clear();
        while client.poll(io.now(), &mut input, &mut self.out).is_some() {
            self.answered += 1;
        }
        skip + input.consumed()
    }

    fn flushed(&mut self, _: &mut Io, _: Key) {}
    fn closed(&mut self, _: &mut Io, _: Key, why: Closed) {
        assert_eq!(why, Closed::Peer);
    }
    fn timer(&mut self, _: &mut Io, _: u64) {}
    fn woken(&mut self, _: &mut Io) {}

    fn turn(&mut self, io: &mut Io) -> Option<Micros> {
        if self.ready < CONNECTIONS || io.connections() < CONNECTIONS {
            return None;
        }
        let answered = if self.qos == Qos::AtMostOnce {
            self.sent
        } else {
            self.answered
        };
        if self.sent == MESSAGES {
            if answered == MESSAGES {
                io.stop();
            }
            return None;
        }
        for _ in 0..256 {
            if self.sent == MESSAGES {
                return Some(Micros::ZERO);
            }
            if self.sent - answered >= self.in_flight_max {
                return None;
            }
            let (key, client) = &mut self.links[(self.sent % CONNECTIONS as u64) as usize];
            if !io.is_writable(*key) {
                return None;
            }
            self.out.clear();
            let token = Token(self.sent as u32);
            let publish = Publish {
                qos: self.qos,
                ..Publish::new("muster/meter/t", &[7; 84])
            };
            client
                .publish(io.now(), token, &publish, &mut self.out)
                .expect("connected");
            assert_ne!(io.write(*key, &self.out), Written::Lost);
            self.sent += 1;
        }
        Some(Micros::ZERO)
    }
}

impl Handler for Sink {
    fn opened(&mut self, _: &mut Io, _: Key) {}
    fn accepted(&mut self, _: &mut Io, _: Key, _: ListenerId) {}
    fn received(&mut self, _: &mut Io, _: Key, bytes: &mut [u8]) -> usize {
        bytes.len()
    }
    fn flushed(&mut self, _: &mut Io, _: Key) {}
    fn closed(&mut self, _: &mut Io, _: Key, _: Closed) {}
    fn timer(&mut self, _: &mut Io, _: u64) {}
    fn woken(&mut self, _: &mut Io) {}
    fn turn(&mut self, _: &mut Io) -> Option<Micros> {
        None
    }
}

/// Microseconds on a CPU of the thread with that name (schedstat, proc(5)).
fn cpu_us(name: &str) -> f64 {
    let tasks = fs::read_dir("/proc/self/task").expect("procfs");
    let paths = tasks.map(|task| task.expect("a thread").path());
    let path = paths
        .filter(|path| fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name))
        .last()
        .expect("the thread runs");
    let text = fs::read_to_string(path.join("schedstat")).expect("schedstat");
    let ns: f64 = text
        .split(' ')
        .next()
        .expect("a figure")
        .parse()
        .expect("a number");
    ns / 1e3
}
