//! A client and a server with a bad network between them, in virtual time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use muster_model::{Micros, mix};
use muster_protocol::coap::{
    Client, ClientEvent, ClientSettings, Code, ExchangeKey, Failure, Incoming, Opt, OptionNumber,
    Pending, Refused, Reply, Request, Server, ServerEvent, ServerSettings, Ticket, Token, Uint,
};

/// Behaviour of the network, in thousandths of datagrams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Network {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) cut: u64,
    /// The longest that a datagram is under way, which orders them anew.
    pub(crate) delay: Micros,
}

/// A server's way to answer a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    AtOnce,
    Later,
    Separately { is_confirmable: bool },
    Never,
}

/// End of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Response(Code),
    Failed(Failure),
}

/// One request of a world.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) due: Micros,
    pub(crate) is_confirmable: bool,
    /// Bytes of the request's body, and of the response's.
    pub(crate) lengths: (usize, usize),
}

/// A world's record of one request.
#[derive(Debug, Default, Clone)]
pub(crate) struct Seen {
    pub(crate) ends: Vec<End>,
    pub(crate) sent: Option<Micros>,
    pub(crate) ended: Micros,
    pub(crate) body: Vec<u8>,
    key: Option<ExchangeKey>,
}

pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) server: Server,
    pub(crate) now: Micros,
    pub(crate) seen: Vec<Seen>,
    /// Number of requests that reached the server, by token.
    pub(crate) asked: HashMap<Token, u32>,
    /// Bodies that reached the server otherwise than they were sent.
    pub(crate) wrong_bodies: u32,
    jobs: Vec<Job>,
    network: Network,
    datagrams: BTreeMap<(Micros, u64), (bool, Vec<u8>)>,
    answers: BTreeMap<(Micros, u64), (Pending, usize, bool)>,
    seed: u64,
    drawn: u64,
}

/// The body of a request (`salt` 0) or its response (1), which tells whose it is.
pub(crate) fn body(job: usize, salt: u8, length: usize) -> Vec<u8> {
    let byte = |at: usize| mix(job as u64, (at as u64) << 8 | u64::from(salt)) as u8;
    (0..length).map(byte).collect()
}

impl World {
    pub(crate) fn new(
        jobs: Vec<Job>,
        network: Network,
        seed: u64,
        (client, server): (ClientSettings, ServerSettings),
    ) -> Self {
        Self {
            client: Client::new(Arc::new(client), mix(seed, 1)),
            server: Server::new(Arc::new(server), mix(seed, 2)),
            now: Micros::ZERO,
            seen: vec![Seen::default(); jobs.len()],
            asked: HashMap::new(),
            wrong_bodies: 0,
            jobs,
            network,
            datagrams: BTreeMap::new(),
            answers: BTreeMap::new(),
            seed,
            drawn: 0,
        }
    }

    /// Runs until every request has ended and nothing is under way.
    pub(crate) fn run(&mut self) {
        for _ in 0..200_000 {
            self.send_what_is_due();
            let Some(next) = self.next_instant() else {
                return;
            };
            self.now = self.now.max(next);
            self.deliver();
            self.answer_what_is_due();
            self.wake();
        }
        panic!("the world does not end");
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.drawn += 1;
        mix(self.seed, self.drawn) % below.max(1)
    }

    fn next_instant(&self) -> Option<Micros> {
        let waiting = self
            .seen
            .iter()
            .zip(&self.jobs)
            .filter(|(seen, _)| seen.sent.is_none());
        let due = waiting
            .map(|(_, job)| job.due)
            .filter(|due| *due > self.now)
            .min();
        let datagram = self.datagrams.keys().next().map(|(at, _)| *at);
        let answer = self.answers.keys().next().map(|(at, _)| *at);
        let instants = [
            due,
            datagram,
            answer,
            self.client.deadline(),
            self.server.deadline(),
        ];
        instants.into_iter().flatten().min()
    }

    fn send_what_is_due(&mut self) {
        for job in 0..self.jobs.len() {
            if self.seen[job].sent.is_some() || self.jobs[job].due > self.now {
                continue;
            }
            let ticket = Ticket {
                slot: 0,
                name: job as u32,
            };
            let sent = self.render(job, |client, now, request, out| {
                client.request(now, ticket, request, out)
            });
            match sent {
                Ok(key) => {
                    self.seen[job].sent = Some(self.now);
                    self.seen[job].key = Some(key);
                }
                Err(Refused::Window) => return,
                Err(refused) => panic!("{refused}"),
            }
        }
    }

    /// Renders a job's request for the client, and sends what that writes.
    fn render<T>(
        &mut self,
        job: usize,
        write: impl FnOnce(&mut Client, Micros, &Request<'_>, &mut Vec<u8>) -> T,
    ) -> T {
        let (
            Job {
                is_confirmable,
                lengths,
                ..
            },
            number,
        ) = (self.jobs[job].clone(), job as u32);
        let number = Uint::of(number + 1);
        let options = [
            Opt::text(OptionNumber::URI_PATH, "t"),
            Opt::new(OptionNumber::URI_QUERY, &number),
        ];
        let body = body(job, 0, lengths.0);
        let method = if lengths.0 > 0 { Code::POST } else { Code::GET };
        let request = Request {
            is_confirmable,
            ..Request::new(method, &options, &body)
        };
        let mut out = Vec::new();
        let written = write(&mut self.client, self.now, &request, &mut out);
        self.carry(true, out);
        written
    }

    /// One datagram goes on its way, or two, or none, or a part of it.
    fn carry(&mut self, to_server: bool, mut datagram: Vec<u8>) {
        if datagram.is_empty() || self.draw(1_000) < self.network.lost {
            return;
        }
        if self.draw(1_000) < self.network.cut {
            let length = self.draw(datagram.len() as u64 + 1) as usize;
            datagram.truncate(length);
        }
        let copies = 1 + u64::from(self.draw(1_000) < self.network.doubled);
        for _ in 0..copies {
            let at = self.now + Micros(1 + self.draw(self.network.delay.get()));
            self.datagrams
                .insert((at, self.drawn), (to_server, datagram.clone()));
        }
    }

    fn deliver(&mut self) {
        while let Some(entry) = self.datagrams.first_entry() {
            if entry.key().0 > self.now {
                return;
            }
            let (to_server, datagram) = entry.remove();
            let mut out = Vec::new();
            if to_server {
                let event = self.server.receive(self.now, &datagram, &mut out);
                let request = event.map(asked_of);
                self.carry(false, out);
                if let Some(Some((pending, job, payload))) = request {
                    self.ask(pending, job, &payload);
                }
            } else {
                let event = self
                    .client
                    .receive(self.now, &datagram, &mut out)
                    .map(Told::of);
                self.carry(true, out);
                self.hear(event);
            }
        }
    }

    /// The server is asked: it decides how to answer.
    fn ask(&mut self, mut pending: Pending, job: Option<usize>, payload: &[u8]) {
        *self.asked.entry(pending.token).or_default() += 1;
        let Some(job) = job.filter(|job| *job < self.jobs.len()) else {
            return;
        };
        let is_whole = payload == body(job, 0, self.jobs[job].lengths.0);
        self.wrong_bodies += u32::from(!is_whole);
        let manner = match self.draw(8) {
            0..=3 => Manner::AtOnce,
            4 => Manner::Later,
            5 => Manner::Separately {
                is_confirmable: true,
            },
            6 => Manner::Separately {
                is_confirmable: false,
            },
            _ => Manner::Never,
        };
        let mut is_confirmable = false;
        let wait = match manner {
            Manner::Never => return,
            Manner::AtOnce => 0,
            Manner::Later => self.draw(5_000_000),
            Manner::Separately { is_confirmable: is } => {
                is_confirmable = is;
                let mut out = Vec::new();
                pending = self.server.acknowledge(pending, &mut out);
                self.carry(false, out);
                self.draw(20_000_000)
            }
        };
        let at = (self.now + Micros(wait), self.drawn);
        self.answers.insert(at, (pending, job, is_confirmable));
    }

    fn answer_what_is_due(&mut self) {
        while let Some(entry) = self.answers.first_entry() {
            if entry.key().0 > self.now {
                return;
            }
            let (pending, job, is_confirmable) = entry.remove();
            let body = body(job, 1, self.jobs[job].lengths.1);
            let reply = Reply {
                is_confirmable,
                ..Reply::new(Code::CHANGED, &[], &body)
            };
            let mut out = Vec::new();
            let said = self.server.respond(self.now, pending, &reply, &mut out);
            assert_eq!(said, Ok(()));
            self.carry(false, out);
        }
    }

    fn wake(&mut self) {
        loop {
            let mut out = Vec::new();
            let event = self.server.wake(self.now, &mut out);
            self.carry(false, out);
            if event.is_none() {
                break;
            }
        }
        loop {
            let mut out = Vec::new();
            let event = self.client.wake(self.now, &mut out).map(Told::of);
            self.carry(true, out);
            if event.is_none() {
                break;
            }
            self.hear(event);
        }
    }

    fn hear(&mut self, told: Option<Told>) {
        let Some(Told {
            job,
            key,
            end,
            part,
        }) = told
        else {
            return;
        };
        self.seen[job].body.extend(part);
        if let Some(end) = end {
            self.seen[job].ends.push(end);
            self.seen[job].ended = self.now;
        }
        if let Some(key) = key {
            let again = self.render(job, |client, now, request, out| {
                client.again(now, key, request, out)
            });
            assert_eq!(again, Ok(()));
        }
    }
}

/// Content of a client's event, apart from the datagram.
struct Told {
    job: usize,
    /// Exchange to render again.
    key: Option<ExchangeKey>,
    end: Option<End>,
    part: Vec<u8>,
}

impl Told {
    fn of(event: ClientEvent<'_>) -> Self {
        let nothing = |ticket: Ticket| Self {
            job: ticket.name as usize,
            key: None,
            end: None,
            part: Vec::new(),
        };
        match event {
            ClientEvent::Acknowledged { ticket, .. } => nothing(ticket),
            ClientEvent::Response(response) => Self {
                end: Some(End::Response(response.code)),
                part: response.payload.to_vec(),
                ..nothing(response.ticket)
            },
            ClientEvent::Part(response) => Self {
                key: Some(response.key),
                part: response.payload.to_vec(),
                ..nothing(response.ticket)
            },
            ClientEvent::Again { ticket, key, .. } => Self {
                key: Some(key),
                ..nothing(ticket)
            },
            ClientEvent::Failed { ticket, cause } => Self {
                end: Some(End::Failed(cause)),
                ..nothing(ticket)
            },
            ClientEvent::Duplicate { ticket } => nothing(ticket),
            other @ (ClientEvent::AnsweredLate { .. }
            | ClientEvent::Notification(_)
            | ClientEvent::Pong { .. }
            | ClientEvent::PingedAgain) => panic!("{other:?}"),
        }
    }
}

/// Returns the handle, the job and the body of a server's request.
fn asked_of(event: ServerEvent<'_>) -> Option<(Pending, Option<usize>, Vec<u8>)> {
    let ServerEvent::Request(Incoming {
        pending,
        options,
        payload,
        ..
    }) = event
    else {
        return None;
    };
    let number = options.first(OptionNumber::URI_QUERY);
    let number = number.and_then(|value| Opt::new(OptionNumber::URI_QUERY, value).uint());
    let job = number.and_then(|number| (number as usize).checked_sub(1));
    Some((pending, job, payload.into_owned()))
}
