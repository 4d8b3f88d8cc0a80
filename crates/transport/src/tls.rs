//! TLS as a layer (RFC 8446, RFC 5246), by rustls.
//!
//! rustls decrypts a record into its own memory and encrypts from one place into another, so
//! each record is copied once more here; for that a thread has one scratch buffer, and a link none.

mod client;
mod failure;
mod pem;
mod server;
mod sessions;
mod subject;
mod trust;

use std::cell::RefCell;
use std::fmt;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, EncryptError};
use rustls::unbuffered::{UnbufferedStatus, WriteTraffic};

use muster_protocol::layer::{Ended, Fed, Layer, LayerError, Standing};

pub use client::{TlsLinks, TlsSpec, Versions, provider as crypto_provider};
pub use failure::of_io as tls_failure_of;
pub use pem::{Own, Pem, TransportError};
pub use server::{PeerIdentity, ServerSpec, ServerTls, Servers};
pub use subject::common_name;
pub use trust::trusted;

pub(crate) use failure::of as cause_of;
pub(crate) use server::client_verifier;
pub(crate) use subject::of as subject_of;
pub(crate) use trust::verifier as server_verifier;

/// Plain bytes of one record at the most (RFC 8446 section 5.1).
const RECORD_MAX: usize = 1 << 14;
/// Excess of a record over its plain bytes: header, explicit nonce or inner type, and tag.
const RECORD_MORE: usize = 5 + 8 + 16 + 1;
/// The header of a record: type, version, length.
const HEADER: usize = 5;

thread_local! {
    /// The plain bytes of a record on its way in or out.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Larger scratch buffers are given back.
const SCRATCH_KEPT: usize = 256 * 1024;

/// The client end of TLS.
pub type TlsClient = Tls<UnbufferedClientConnection>;
/// The server end of TLS.
pub type TlsServer = Tls<UnbufferedServerConnection>;

/// A connection of rustls, of either side.
pub trait Connection {
    /// The side.
    type Data;

    /// Takes records up to something that is to be done.
    fn process<'c, 'i>(&'c mut self, records: &'i mut [u8])
    -> UnbufferedStatus<'c, 'i, Self::Data>;

    /// Returns true if the handshake is not over yet.
    fn is_handshaking(&self) -> bool;
}

impl Connection for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        records: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(records)
    }

    fn is_handshaking(&self) -> bool {
        (**self).is_handshaking()
    }
}

impl Connection for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        records: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(records)
    }

    fn is_handshaking(&self) -> bool {
        (**self).is_handshaking()
    }
}

/// One end of a TLS connection; the default is one that is over.
pub struct Tls<C> {
    /// None once it is over.
    connection: Option<Box<C>>,
    detail: Option<Box<str>>,
    /// Bytes of whole records at the front of the input that rustls has taken and waits for more
    /// of: they must be there whenever it is asked.
    pending: u32,
    standing: Standing,
}

impl<C> Default for Tls<C> {
    fn default() -> Self {
        Self {
            connection: None,
            detail: None,
            pending: 0,
            standing: Standing::Over,
        }
    }
}

impl<C> fmt::Debug for Tls<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("standing", &self.standing)
            .finish_non_exhaustive()
    }
}

/// Next action after a step.
enum Step {
    /// Something was done, and there may be more.
    On,
    /// More input is needed.
    Wait,
    /// The peer said goodbye.
    Closed,
    /// Ends the connection.
    Failed(rustls::Error),
}

impl<C: Connection> Tls<C> {
    fn new(connection: C) -> Self {
        Self {
            connection: Some(Box::new(connection)),
            standing: Standing::Opening,
            ..Self::default()
        }
    }

    /// The connection, while it is not over.
    fn connection(&self) -> Option<&C> {
        self.connection.as_deref()
    }

    /// The connection is over, and with it its memory.
    fn over(&mut self) {
        self.connection = None;
        self.standing = Standing::Over;
    }

    fn fail(&mut self, error: &rustls::Error) -> Ended {
        self.detail = Some(failure::in_words(error).into());
        Ended::Failed(LayerError::Tls(failure::of(error)))
    }
}

impl<C: Connection> Layer for Tls<C> {
    type Border = u32;

    fn open(&mut self, wire: &mut Vec<u8>) {
        if let Some(connection) = self.connection.as_deref_mut() {
            // A server has nothing to say first.
            while matches!(step(connection, &mut [], &mut Vec::new(), wire).1, Step::On) {}
        }
    }

    fn feed(&mut self, bytes: &mut [u8], held: usize, wire: &mut Vec<u8>) -> Fed {
        let Some(connection) = self.connection.as_deref_mut() else {
            let (used, plain, end) = (bytes.len(), held, None);
            return Fed { used, plain, end };
        };
        let mut fed = Fed {
            used: held,
            plain: held,
            end: None,
        };
        let last = scratch(|plain| {
            loop {
                let (used, step) = step(connection, &mut bytes[fed.used..], plain, wire);
                fed.used += used;
                bytes[fed.plain..fed.plain + plain.len()].copy_from_slice(plain);
                fed.plain += plain.len();
                if !matches!(step, Step::On) {
                    return step;
                }
            }
        });
        match last {
            Step::On | Step::Wait => {
                if self.standing == Standing::Opening && !connection.is_handshaking() {
                    self.standing = Standing::Open;
                }
                self.pending = whole_records(&bytes[fed.used..]);
                return fed;
            }
            Step::Closed => {
                self.close(wire);
                fed.end = Some(Ended::Closed(None));
            }
            Step::Failed(error) => {
                last_words(connection, &mut bytes[fed.used..], wire);
                fed.end = Some(self.fail(&error));
            }
        }
        self.over();
        fed.used = bytes.len();
        fed
    }

    #[inline]
    fn standing(&self) -> Standing {
        self.standing
    }

    fn wrap(&mut self, wire: &mut Vec<u8>, from: usize) {
        if wire.len() == from {
            return;
        }
        let pending = self.pending;
        let connection = self.connection.as_deref_mut();
        match connection.filter(|_| self.standing == Standing::Open) {
            None => wire.truncate(from),
            Some(connection) => scratch(|plain| {
                plain.extend_from_slice(&wire[from..]);
                wire.truncate(from);
                speak(connection, pending, wire, |traffic, wire| {
                    seal(traffic, plain, wire);
                });
            }),
        }
    }

    fn close(&mut self, wire: &mut Vec<u8>) {
        match self.standing {
            Standing::Opening => self.over(),
            Standing::Open => {
                self.standing = Standing::Closing;
                let pending = self.pending;
                if let Some(connection) = self.connection.as_deref_mut() {
                    speak(connection, pending, wire, |traffic, wire| {
                        put(wire, RECORD_MORE + 2, |room| {
                            traffic
                                .queue_close_notify(room)
                                .map_err(|error| room_for(&error))
                        });
                    });
                }
            }
            Standing::Closing | Standing::Over => {}
        }
    }

    fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}

/// Lends the thread's scratch buffer, empty.
fn scratch<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.clear();
        let done = work(scratch);
        if scratch.capacity() > SCRATCH_KEPT {
            *scratch = Vec::new();
        }
        done
    })
}

/// Lets the connection do one thing: how many bytes it is done with, and what it was. The plain
/// bytes of a record replace what is in `plain`.
fn step<C: Connection>(
    connection: &mut C,
    records: &mut [u8],
    plain: &mut Vec<u8>,
    wire: &mut Vec<u8>,
) -> (usize, Step) {
    plain.clear();
    let UnbufferedStatus { discard, state } = connection.process(records);
    let state = match state {
        Ok(state) => state,
        Err(error) => return (discard, Step::Failed(error)),
    };
    let step = match state {
        ConnectionState::ReadTraffic(mut traffic) => loop {
            match traffic.next_record() {
                Some(Ok(record)) => plain.extend_from_slice(record.payload),
                Some(Err(error)) => break Step::Failed(error),
                None => break Step::On,
            }
        },
        ConnectionState::EncodeTlsData(mut data) => {
            encode(&mut data, wire);
            Step::On
        }
        ConnectionState::TransmitTlsData(data) => {
            data.done();
            Step::On
        }
        ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_) => Step::Wait,
        ConnectionState::PeerClosed | ConnectionState::Closed => Step::Closed,
        // Early data is not asked for, and there is nothing else.
        ConnectionState::ReadEarlyData(_) | _ => {
            Step::Failed(rustls::Error::General("a state that cannot be".to_owned()))
        }
    };
    (discard, step)
}

/// Appends records of the handshake.
fn encode<D>(data: &mut EncodeTlsData<'_, D>, wire: &mut Vec<u8>) {
    put(wire, 0, |room| match data.encode(room) {
        Ok(written) => Ok(written),
        Err(EncodeError::InsufficientSize(size)) => Err(Some(size.required_size)),
        Err(EncodeError::AlreadyEncoded) => Err(None),
    });
}

/// Appends plain bytes as records.
fn seal<D>(traffic: &mut WriteTraffic<'_, D>, plain: &[u8], wire: &mut Vec<u8>) {
    let more = RECORD_MORE * (plain.len() / RECORD_MAX + 1);
    put(wire, plain.len() + more, |room| {
        traffic
            .encrypt(plain, room)
            .map_err(|error| room_for(&error))
    });
}

/// Returns the room that was missing; none if the keys are used up.
fn room_for(error: &EncryptError) -> Option<usize> {
    match error {
        EncryptError::InsufficientSize(size) => Some(size.required_size),
        EncryptError::EncryptExhausted => None,
    }
}

/// Appends what `write` writes, with as much room as it wants.
fn put(
    wire: &mut Vec<u8>,
    mut room: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>,
) {
    let start = wire.len();
    loop {
        wire.resize(start + room, 0);
        match write(&mut wire[start..]) {
            Ok(written) => return wire.truncate(start + written),
            Err(Some(wanted)) => room = wanted,
            Err(None) => return wire.truncate(start),
        }
    }
}

/// Brings the connection to where it may speak, and lets it.
fn speak<C: Connection>(
    connection: &mut C,
    pending: u32,
    wire: &mut Vec<u8>,
    say: impl FnOnce(&mut WriteTraffic<'_, C::Data>, &mut Vec<u8>),
) {
    // rustls wants to see the records of which it waits for more; it does not read them again.
    let mut pending = vec![0; pending as usize];
    loop {
        let Ok(state) = connection.process(&mut pending).state else {
            return;
        };
        match state {
            ConnectionState::EncodeTlsData(mut data) => encode(&mut data, wire),
            ConnectionState::TransmitTlsData(data) => data.done(),
            ConnectionState::WriteTraffic(mut traffic) => return say(&mut traffic, wire),
            ConnectionState::ReadTraffic(_)
            | ConnectionState::ReadEarlyData(_)
            | ConnectionState::PeerClosed
            | ConnectionState::Closed
            | ConnectionState::BlockedHandshake
            | _ => return,
        }
    }
}

/// Appends the alert of a failure (RFC 8446 section 6.2). Everything else was
/// said before the input that failed was looked at, and must not be looked at again.
fn last_words<C: Connection>(connection: &mut C, records: &mut [u8], wire: &mut Vec<u8>) {
    if let Ok(ConnectionState::EncodeTlsData(mut data)) = connection.process(records).state {
        encode(&mut data, wire);
    }
}

/// Bytes of whole records at the front of the input: those of a handshake message that has not come
/// whole, for all others are used up.
fn whole_records(bytes: &[u8]) -> u32 {
    let mut whole = 0;
    while let Some([_, _, _, high, low]) = bytes.get(whole..whole + HEADER) {
        let end = whole + HEADER + usize::from(u16::from_be_bytes([*high, *low]));
        if end > bytes.len() {
            break;
        }
        whole = end;
    }
    whole as u32
}

#[cfg(test)]
mod tests;
