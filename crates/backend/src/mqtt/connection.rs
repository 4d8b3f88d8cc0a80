//! The connection of one consumer: its socket, its layers, and the bytes that wait to be written.

use muster_model::Micros;
use muster_net::{Io, Key, TimerId, Written};
use muster_protocol::layer::{Layer, Pipe};
use muster_transport::{Any, TlsClient};

/// Bytes of acknowledgements that may wait for a broker that does not read: some 250,000 of them.
const WAITING_MAX: usize = 1 << 20;
/// The first wait before a consumer connects again: short, since the run misses what the consumer misses.
const RETRY: Micros = Micros::from_millis(100);
/// The longest such wait.
const RETRY_MAX: Micros = Micros::from_secs(2);

/// One connection, opened anew after each loss.
#[derive(Debug, Default)]
pub(super) struct Connection {
    key: Option<Key>,
    stage: Stage,
    /// Instant at which the last try to connect began.
    since: Micros,
    /// Tries that failed since the last success.
    failures: u32,
    /// One for each [`Alarm`].
    timers: [Option<TimerId>; 2],
    /// Output that the kernel has not taken yet.
    waiting: Vec<u8>,
    /// The layers between socket and session; without effect while the connection is down.
    pipe: Pipe<Any<TlsClient>>,
}

/// Stage of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Stage {
    #[default]
    Down,
    Opening,
    Handshaking,
    Subscribing,
    Up,
}

/// Purpose of a timer of the loop; its token names the consumer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Alarm {
    /// The next try to connect, or the end of the time for a handshake.
    Connect,
    /// The next ping.
    Session,
}

/// Reason that output could not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unwritten {
    /// The broker does not read.
    Unread,
    /// No buffer was left on this machine.
    NoBuffer,
}

impl Stage {
    /// Returns the packet or connection that a consumer waits for, if it waits for one.
    pub(super) const fn awaited(self) -> Option<&'static str> {
        match self {
            Self::Opening => Some("the TCP or TLS connection"),
            Self::Handshaking => Some("CONNACK"),
            Self::Subscribing => Some("SUBACK"),
            Self::Down | Self::Up => None,
        }
    }
}

impl Alarm {
    fn token(self, consumer: usize) -> u64 {
        (self as u64) << 32 | consumer as u64
    }

    /// Returns the purpose and the consumer of a token.
    pub(super) fn of_token(token: u64) -> (Self, usize) {
        let alarm = match token >> 32 {
            0 => Self::Connect,
            _ => Self::Session,
        };
        (alarm, token as u32 as usize)
    }
}

impl Connection {
    pub(super) fn key(&self) -> Option<Key> {
        self.key
    }

    pub(super) fn stage(&self) -> Stage {
        self.stage
    }

    /// Returns true if it is up and nothing waits to be written.
    pub(super) fn is_clear(&self) -> bool {
        self.stage == Stage::Up && self.waiting.is_empty()
    }

    pub(super) fn pipe(&mut self) -> &mut Pipe<Any<TlsClient>> {
        &mut self.pipe
    }

    /// Notes that the socket is being opened.
    pub(super) fn open(&mut self, key: Key, now: Micros) {
        (self.key, self.since) = (Some(key), now);
        self.stage = Stage::Opening;
    }

    /// Notes that the connection has reached a stage.
    pub(super) fn reach(&mut self, stage: Stage) {
        self.stage = stage;
        if stage == Stage::Up {
            self.failures = 0;
        }
    }

    /// Forgets the socket, which is closed or about to be.
    pub(super) fn take_key(&mut self) -> Option<Key> {
        self.key.take()
    }

    /// Notes that the connection is over. Returns the wait before the next try.
    pub(super) fn lost(&mut self) -> Micros {
        self.stage = Stage::Down;
        self.pipe = Pipe::default();
        self.waiting.clear();
        self.failures = self.failures.saturating_add(1);
        Micros(RETRY.get() << self.failures.min(5)).min(RETRY_MAX)
    }

    /// Describes a wait that is longer than it may be; none if nothing is waited for.
    pub(super) fn overdue(&self, now: Micros) -> Option<String> {
        let waited = (now - self.since).as_secs_f64();
        let what = self.stage.awaited()?;
        Some(format!("{what} did not come within {waited:.1} s"))
    }

    /// Sets the timer of a purpose, which replaces the timer before.
    pub(super) fn arm(&mut self, io: &mut Io, alarm: Alarm, consumer: usize, at: Micros) {
        let timer = io.set_timer(at, alarm.token(consumer));
        if let Some(before) = self.timers[alarm as usize].replace(timer) {
            io.cancel_timer(before);
        }
    }

    /// Turns what a session appended to `out` from `from` on into what goes over the wire.
    pub(super) fn wrap(&mut self, out: &mut Vec<u8>, from: usize) {
        self.pipe.layer.wrap(out, from);
    }

    /// Writes what waited, once the kernel takes bytes again.
    pub(super) fn flush(&mut self, io: &mut Io, out: &mut Vec<u8>) -> Result<(), Unwritten> {
        out.append(&mut self.waiting);
        self.write(io, out)
    }

    /// Writes `out`, which is empty afterwards. Bytes that the kernel does not take wait, up to
    /// [`WAITING_MAX`].
    pub(super) fn write(&mut self, io: &mut Io, out: &mut Vec<u8>) -> Result<(), Unwritten> {
        let Some(key) = self.key.filter(|_| !out.is_empty()) else {
            out.clear();
            return Ok(());
        };
        let result = match io.write(key, out) {
            // The last is only of datagrams.
            Written::Whole | Written::Held | Written::Lost | Written::Refused => Ok(()),
            Written::Busy if self.waiting.len() < WAITING_MAX => {
                self.waiting.append(out);
                Ok(())
            }
            Written::Busy => Err(Unwritten::Unread),
            Written::Exhausted => Err(Unwritten::NoBuffer),
        };
        out.clear();
        result
    }
}
