//! A small deterministic simulation of a platform under load, message by message.
//!
//! One server with exponential service times and a bounded queue stalls for a while; later a tenth
//! of the links is closed and comes back. Each message keeps its instants and its state, and every
//! figure of the sample is counted from these.

use std::collections::VecDeque;

/// Setting of the simulated run.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) devices: u64,
    pub(crate) rate: u64,
    pub(crate) connect_s: u64,
    pub(crate) warm_up_s: u64,
    pub(crate) measure_s: u64,
    /// Messages a second that the server can carry.
    pub(crate) capacity: f64,
    /// Messages that may wait.
    pub(crate) queue: usize,
    /// The server stands still, in seconds since T0.
    pub(crate) stall: Option<(u64, u64)>,
    /// A tenth of the links is closed, in seconds since T0.
    pub(crate) close_links: Option<u64>,
    /// Every so many-th accepted message is lost; 0: none.
    pub(crate) lose_each: u64,
    /// The generator takes messages up to so many microseconds late in the second half.
    pub(crate) starved_us: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Accepted,
    Rejected,
    Broken,
}

/// Instants in microseconds since T0.
#[derive(Clone, Copy)]
pub(crate) struct Message {
    pub(crate) due: u64,
    pub(crate) taken: u64,
    pub(crate) sent: u64,
    pub(crate) ended: u64,
    pub(crate) state: State,
    pub(crate) seen: Option<u64>,
}

/// xorshift64* by Marsaglia and Vigna: enough for a sample.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        (bits as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.next().ln()
    }
}

/// Every message of the run, in order of due.
pub(crate) fn simulate(setting: &Setting) -> Vec<Message> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let total = setting.rate * (setting.warm_up_s + setting.measure_s);
    let mut messages: Vec<Message> = (0..total).map(|n| issue(setting, &mut random, n)).collect();
    let mut order: Vec<usize> = (0..messages.len()).collect();
    order.sort_by_key(|n| messages[*n].sent);
    let mut server = Server {
        departures: VecDeque::new(),
        free: 0.0,
        accepted: 0,
    };
    for n in order {
        server.serve(setting, &mut random, &mut messages[n]);
    }
    messages
}

/// The device side: when a message is due, taken and sent, and whether its link breaks under it.
fn issue(setting: &Setting, random: &mut Random, n: u64) -> Message {
    let gap = 1e6 / setting.rate as f64;
    let origin = setting.connect_s * 1_000_000;
    let due = origin + (n as f64 * gap + random.next() * gap * 0.8) as u64;
    let taken = due + lateness(setting, random, due);
    let mut sent = taken + 6 + random.exponential(4.0) as u64;
    let mut state = State::Accepted;
    if let Some(at) = setting.close_links.map(|s| s * 1_000_000)
        && n % 10 == 3
    {
        // The link is down from `at` until its own reconnect 1 to 6 s later.
        let back = at + 1_000_000 + (n / 10 * 7919 % 5_000) * 1_000;
        if sent < at && sent + 30_000 > at {
            state = State::Broken;
        }
        if (at..back).contains(&sent) {
            sent = back;
        }
    }
    Message {
        due,
        taken,
        sent,
        ended: 0,
        state,
        seen: None,
    }
}

/// One server with a queue, as the messages reach it.
struct Server {
    departures: VecDeque<f64>,
    free: f64,
    accepted: u64,
}

impl Server {
    fn serve(&mut self, setting: &Setting, random: &mut Random, message: &mut Message) {
        let arrive = message.sent as f64 + 40.0 + random.exponential(12.0);
        while self.departures.front().is_some_and(|gone| *gone <= arrive) {
            self.departures.pop_front();
        }
        if self.departures.len() >= setting.queue {
            message.state = State::Rejected;
            message.ended = (arrive + 60.0 + random.exponential(15.0)) as u64;
            return;
        }
        let mut begin = self.free.max(arrive);
        if let Some((from, until)) = setting.stall {
            let (from, until) = (from as f64 * 1e6, until as f64 * 1e6);
            begin = if begin >= from && begin < until {
                until
            } else {
                begin
            };
        }
        let done = begin + random.exponential(1e6 / setting.capacity);
        self.free = done;
        self.departures.push_back(done);
        message.ended = (done + 45.0 + random.exponential(15.0)) as u64;
        let is_accepted = message.state == State::Accepted;
        self.accepted += u64::from(is_accepted);
        let each = setting.lose_each;
        let is_lost = is_accepted && each > 0 && self.accepted % each == each / 2;
        message.seen = (!is_lost).then(|| (done + 180.0 + random.exponential(110.0)) as u64);
    }
}

fn lateness(setting: &Setting, random: &mut Random, due: u64) -> u64 {
    let half = (setting.connect_s + setting.warm_up_s + setting.measure_s / 2) * 1_000_000;
    if setting.starved_us > 0 && due >= half && due / 1_000_000 % 7 < 3 {
        return (random.next() * setting.starved_us as f64) as u64;
    }
    let wake_up = 18.0 + random.exponential(45.0);
    let hiccup = if random.next() > 0.995 {
        random.exponential(300.0)
    } else {
        0.0
    };
    (wake_up + hiccup) as u64
}
