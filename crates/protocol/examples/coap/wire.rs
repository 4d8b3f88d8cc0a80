//! A socket that waits until a deadline, a clock, and datagrams that are lost on purpose.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use muster_model::Micros;

use crate::{Failure, value};

/// Bytes of the longest datagram.
const DATAGRAM_MAX: usize = 65_536;

pub(crate) struct Wire {
    socket: UdpSocket,
    began: Instant,
    sent: usize,
    lose: Vec<usize>,
    buffer: Vec<u8>,
}

impl Wire {
    pub(crate) fn bind(options: &[&str]) -> Result<Self, Failure> {
        let port = value(options, "port").unwrap_or("0");
        let lose = value(options, "lose").unwrap_or_default();
        let lose = lose.split(',').filter(|number| !number.is_empty());
        #[expect(
            clippy::disallowed_methods,
            reason = "an example is its own run, with its own T0"
        )]
        let began = Instant::now();
        Ok(Self {
            socket: UdpSocket::bind(format!("127.0.0.1:{port}"))?,
            began,
            sent: 0,
            lose: lose.map(str::parse).collect::<Result<_, _>>()?,
            buffer: vec![0; DATAGRAM_MAX],
        })
    }

    pub(crate) fn port(&self) -> Result<u16, Failure> {
        Ok(self.socket.local_addr()?.port())
    }

    pub(crate) fn now(&self) -> Micros {
        Micros(u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX))
    }

    /// Sends what a call has appended, if it has, and empties the buffer.
    pub(crate) fn send(&mut self, peer: SocketAddr, out: &mut Vec<u8>) -> Result<(), Failure> {
        if !out.is_empty() {
            self.sent += 1;
            if !self.lose.contains(&self.sent) {
                self.socket.send_to(out, peer)?;
            }
            out.clear();
        }
        Ok(())
    }

    /// The next datagram, and whose it is; none if the deadline comes first, or the peer's port is
    /// closed.
    pub(crate) fn receive(
        &mut self,
        deadline: Option<Micros>,
    ) -> Result<Option<(SocketAddr, &[u8])>, Failure> {
        let wait = deadline.map(|deadline| deadline - self.now());
        // A time-out of zero would be none; one shorter than the kernel's tick waits for one.
        let wait = wait.map(|wait| Duration::from_micros(wait.get().max(1)));
        self.socket.set_read_timeout(wait)?;
        match self.socket.recv_from(&mut self.buffer) {
            Ok((length, peer)) => Ok(Some((peer, &self.buffer[..length]))),
            Err(error) if is_silence(error.kind()) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns true if nothing came, also if nobody listens.
fn is_silence(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused
    )
}
