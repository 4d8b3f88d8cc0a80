//! Sockets that listen: who shares a port, and why one is not to be had.

use std::net::SocketAddr;

use rustix::io::Errno;

/// Error of opening a listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot listen on {addr}: {}", self.reason())]
pub struct ListenError {
    /// The address.
    pub addr: SocketAddr,
    /// The kernel's error.
    pub errno: i32,
}

impl ListenError {
    fn reason(self) -> String {
        match Errno::from_raw_os_error(self.errno) {
            Errno::ADDRINUSE => "another program listens there, perhaps another gateway; stop it \
                                 or choose a free port"
                .to_owned(),
            Errno::ACCESS => "this user may not; choose a port from 1,024 on".to_owned(),
            Errno::ADDRNOTAVAIL => {
                "this host has no such address; choose one of its own".to_owned()
            }
            _ => format!("errno {}; choose a free port of this host", self.errno),
        }
    }
}

/// Sharing of a listening port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortUse {
    /// Nobody.
    Alone,
    /// Nobody did so far, and [`PortUse::Further`] loops of the same user may from now on: the
    /// kernel spreads connections over them (`SO_REUSEPORT`, socket(7)).
    First,
    /// The first does, and perhaps others.
    Further,
}
