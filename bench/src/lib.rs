//! Parts shared by the bare loop and the sinks: command line, clock, non-blocking calls.
//!
//! Tools that `xtask bench` compares Muster with: `bare-loop`, `bare-http` and `bare-coap` are the
//! cheapest clients that the kernel allows, `sink` and `coap-sink` the cheapest targets. They must
//! never know a crate of Muster's, else a fault of it would be on both sides of the comparison.
//!
//! ```
//! let before = muster_bench::now(rustix::time::ClockId::Monotonic);
//! assert!(muster_bench::now(rustix::time::ClockId::Monotonic) >= before);
//! ```

pub mod exchanges;
pub mod packet;
pub mod request;
pub mod subscriber;

use std::io::{self, Error, ErrorKind};
use std::net::SocketAddr;

use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

/// A second, in nanoseconds.
pub const SECOND_NS: u64 = 1_000_000_000;

/// The command line: an address, then `N` numbers.
///
/// # Errors
/// If it is anything else: the error is `usage`.
pub fn arguments<const N: usize>(usage: &str) -> io::Result<(SocketAddr, [u64; N])> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let parse = || {
        let (address, numbers) = words.split_first()?;
        let numbers: Result<Vec<u64>, _> = numbers.iter().map(|word| word.parse()).collect();
        Some((address.parse().ok()?, numbers.ok()?.try_into().ok()?))
    };
    parse().ok_or_else(|| Error::new(ErrorKind::InvalidInput, format!("usage: {usage}")))
}

/// Reads a clock, in nanoseconds.
#[must_use]
pub fn now(clock: ClockId) -> u64 {
    let at = clock_gettime(clock);
    at.tv_sec as u64 * SECOND_NS + at.tv_nsec as u64
}

/// The value that 99 of 100 do not exceed; 0 of none.
#[must_use]
pub fn p99(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() * 99 / 100).copied().unwrap_or(0)
}

/// Takes the one error that says "not yet" for an answer.
///
/// # Errors
/// Every other one.
pub fn unless<T>(not_yet: Errno, instead: T, result: rustix::io::Result<T>) -> io::Result<T> {
    match result {
        Err(error) if error == not_yet => Ok(instead),
        result => Ok(result?),
    }
}
