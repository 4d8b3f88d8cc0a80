//! Cost of a CoAP exchange in the sessions of both ends, and their memory: `cargo run --release -p
//! muster-protocol --example exchange_cost`.
//!
//! One thread, no sockets, 100-byte payloads, piggybacked answers. Costs are CPU time of the thread,
//! so that a busy machine disturbs them little.

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;

use muster_model::Micros;
use muster_protocol::coap::{
    Client, ClientEvent, ClientSettings, Code, Opt, OptionNumber, Reply, Request, Server,
    ServerEvent, ServerSettings, SharedClient, Ticket, Transmission,
};

const ROUNDS: u32 = 1_000;
/// Devices, each with a request under way in every round.
const DEVICES: usize = 1_000;
const REPETITIONS: usize = 5;
const PAYLOAD: [u8; 100] = [7; 100];
/// From one round to the next.
const STEP: Micros = Micros::from_secs(1);

type Failure = Box<dyn std::error::Error>;

/// Nanoseconds of each part of an exchange.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    request: f64,
    server: f64,
    response: f64,
}

/// Both ends of all devices.
struct Fleet<C> {
    clients: C,
    servers: Vec<Server>,
    up: Vec<Vec<u8>>,
    down: Vec<Vec<u8>>,
}

fn main() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let (client, server) = (size_of::<Client>(), size_of::<Server>());
    writeln!(out, "client {client} bytes, server {server} bytes")?;
    let own: Result<Vec<Cost>, Failure> = (0..REPETITIONS).map(|_| own_sockets()).collect();
    writeln!(out, "a socket each: {}", words(&own?))?;
    let shared: Result<Vec<Cost>, Failure> = (0..REPETITIONS).map(|_| one_socket()).collect();
    writeln!(out, "all behind one socket: {}", words(&shared?))?;
    Ok(())
}

fn words(costs: &[Cost]) -> String {
    let median = |part: fn(&Cost) -> f64| {
        let mut values: Vec<f64> = costs.iter().map(part).collect();
        values.sort_by(f64::total_cmp);
        values[REPETITIONS / 2]
    };
    format!(
        "request {:.0} ns, its response {:.0} ns; the server's end {:.0} ns",
        median(|cost| cost.request),
        median(|cost| cost.response),
        median(|cost| cost.server),
    )
}

fn own_sockets() -> Result<Cost, Failure> {
    let settings = Arc::new(ClientSettings::default());
    let seeds = 0..DEVICES as u64;
    let clients = seeds
        .map(|seed| Client::new(Arc::clone(&settings), seed))
        .collect();
    let mut fleet: Fleet<Vec<Client>> = Fleet::new(clients, DEVICES, ServerSettings::default());
    fleet.run(
        |clients, now, device, request, out| {
            let ticket = Ticket { slot: 0, name: 0 };
            Ok(clients[device]
                .request(now, ticket, request, out)
                .map(|_| ())?)
        },
        |clients, now, device, datagram, out| {
            let event = clients[device].receive(now, datagram, out);
            matches!(event, Some(ClientEvent::Response(_)))
        },
    )
}

/// Measures many requests at once, whose message ids are in use only during the exchange.
fn one_socket() -> Result<Cost, Failure> {
    let transmission = Transmission {
        exchange_lifetime: Micros::from_secs(2),
        ..Transmission::default()
    };
    let settings = ClientSettings {
        exchanges_max: 2_000,
        transmission,
        ..ClientSettings::default()
    };
    let client = SharedClient::shared(Arc::new(settings), 1, DEVICES as u32);
    let settings = ServerSettings {
        transmission,
        ..ServerSettings::default()
    };
    Fleet::new(client, 1, settings).run(
        |client, now, device, request, out| {
            let ticket = Ticket {
                slot: device as u32,
                name: 0,
            };
            Ok(client.request(now, ticket, request, out).map(|_| ())?)
        },
        |client, now, _device, datagram, out| {
            let event = client.receive(now, datagram, out);
            matches!(event, Some(ClientEvent::Response(_)))
        },
    )
}

impl<C> Fleet<C> {
    fn new(clients: C, servers: usize, settings: ServerSettings) -> Self {
        let settings = Arc::new(settings);
        let server = |seed| Server::new(Arc::clone(&settings), seed as u64);
        Self {
            clients,
            servers: (0..servers).map(server).collect(),
            up: vec![Vec::new(); DEVICES],
            down: vec![Vec::new(); DEVICES],
        }
    }

    /// Rounds in which every device asks and receives its answer.
    fn run(
        &mut self,
        mut ask: impl FnMut(&mut C, Micros, usize, &Request<'_>, &mut Vec<u8>) -> Result<(), Failure>,
        mut receive: impl FnMut(&mut C, Micros, usize, &[u8], &mut Vec<u8>) -> bool,
    ) -> Result<Cost, Failure> {
        let path = [Opt::text(OptionNumber::URI_PATH, "t")];
        let request = Request::new(Code::POST, &path, &PAYLOAD);
        let (mut cost, mut now) = (Cost::default(), Micros(1));
        for _ in 0..ROUNDS {
            now += STEP;
            let started = cpu_ns();
            for (device, out) in self.up.iter_mut().enumerate() {
                out.clear();
                ask(&mut self.clients, now, device, black_box(&request), out)?;
            }
            let asked = cpu_ns();
            self.answer(now)?;
            let answered = cpu_ns();
            for (device, out) in self.up.iter_mut().enumerate() {
                let datagram = black_box(&self.down[device]);
                if !receive(&mut self.clients, now, device, datagram, out) {
                    return Err("a response was no response".into());
                }
            }
            cost.request += asked - started;
            cost.server += answered - asked;
            cost.response += cpu_ns() - answered;
        }
        let each = |total: f64| total / f64::from(ROUNDS) / DEVICES as f64;
        Ok(Cost {
            request: each(cost.request),
            server: each(cost.server),
            response: each(cost.response),
        })
    }

    fn answer(&mut self, now: Micros) -> Result<(), Failure> {
        let reply = Reply::new(Code::CHANGED, &[], b"");
        let count = self.servers.len();
        for (device, (datagram, out)) in self.up.iter().zip(&mut self.down).enumerate() {
            out.clear();
            let server = &mut self.servers[device % count];
            let Some(ServerEvent::Request(incoming)) = server.receive(now, datagram, out) else {
                return Err("a request was no request".into());
            };
            server.respond(now, incoming.pending, &reply, out)?;
        }
        Ok(())
    }
}

/// Nanoseconds this thread has been on a CPU (Linux, `proc_pid_schedstat(5)`); 0 elsewhere.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next();
    first.and_then(|ns| ns.parse().ok()).unwrap_or(0.0)
}
