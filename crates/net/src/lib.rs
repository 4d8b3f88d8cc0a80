//! One epoll loop per core: TCP and UDP sockets, timers, pooled buffers and the real clock.
//!
//! Layer 5. Between the pure crates and the kernel: the engine (`fleet`, `backend`) and the
//! reference gateway implement [`Handler`] and keep their sessions outside the loop; the loop
//! moves bytes and reports instants. It must never know a protocol, a message or a scenario.
//!
//! A connection is watched once for its life (edge-triggered); one `write` is one system call,
//! one readiness is one read when the read comes up short. Bytes that have to wait lie in pooled
//! buffers, bounded by [`LoopConfig`]. Nothing is allocated per message, connection or timer once
//! the loop has grown to its size.
//!
//! A UDP socket is a connection with a [`Key`] too: [`Io::connect_udp`] makes one that speaks to one
//! peer, [`Io::bind_udp`] one that speaks to all. A datagram is written by one call, or
//! gathered with others and sent at the latest at the end of the turn; what came is read by batches,
//! one batch a socket and turn. What the kernel dropped for want of room, what it refused and the
//! errors that ICMP brought are counted; none of them ends a socket. Datagrams are never merged or
//! cut by the kernel (GRO, GSO): devices do not send so.
//!
//! ```
//! use muster_model::Micros;
//! use muster_net::{
//!     Clock, Closed, Handler, Io, Key, ListenerId, Loop, LoopConfig, PortUse, Written,
//! };
//!
//! /// Says hello to itself over loopback.
//! #[derive(Default)]
//! struct Hello { heard: Vec<u8> }
//!
//! impl Handler for Hello {
//!     fn opened(&mut self, io: &mut Io, key: Key) {
//!         assert_eq!(io.write(key, b"hello"), Written::Whole);
//!     }
//!     fn accepted(&mut self, _: &mut Io, _: Key, _: ListenerId) {}
//!     fn received(&mut self, io: &mut Io, _: Key, bytes: &mut [u8]) -> usize {
//!         self.heard.extend_from_slice(bytes);
//!         io.stop();
//!         bytes.len()
//!     }
//!     fn flushed(&mut self, _: &mut Io, _: Key) {}
//!     fn closed(&mut self, _: &mut Io, _: Key, _: Closed) {}
//!     fn timer(&mut self, _: &mut Io, _: u64) {}
//!     fn woken(&mut self, _: &mut Io) {}
//!     fn turn(&mut self, _: &mut Io) -> Option<Micros> { None }
//! }
//!
//! let mut event_loop = Loop::new(Clock::start(), &LoopConfig::default(), Hello::default())?;
//! let (_, io) = event_loop.parts();
//! let (_, addr) = io.listen("127.0.0.1:0".parse()?, PortUse::Alone)?;
//! io.connect(addr, None)?;
//! event_loop.run()?;
//! assert_eq!(event_loop.into_handler().heard, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod counts;
mod cpu_wait;
mod datagrams;
mod errors;
mod event_loop;
mod handler;
mod io;
pub mod limits;
mod loop_config;
mod mailbox;
mod pool;
mod slab;
mod socket;
mod sockets;
mod udp;
mod waker;
mod wheel;

pub use clock::Clock;
pub use counts::IoCounts;
pub use cpu_wait::{SchedStat, WaitsOf};
pub use errors::{ConnectError, ListenError, LoopError};
pub use event_loop::Loop;
pub use handler::{Closed, Handler, Key, ListenerId, Written};
pub use io::{Io, ReadLimit};
pub use loop_config::LoopConfig;
pub use mailbox::Mailbox;
pub use socket::PortUse;
pub use waker::Waker;
pub use wheel::TimerId;
