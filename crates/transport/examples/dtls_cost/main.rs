//! Cost of DTLS for a client: handshakes in memory and over sockets, resumed ones, memory at rest,
//! and the time of a record.
//!
//! ```text
//! dtls_cost                                     # what it costs in memory
//! dtls_cost serve SUITE                         # a server on a socket; prints its address
//! dtls_cost shake ADDRESS SUITE HANDSHAKES      # a client of it, a socket a handshake
//! ```
//!
//! SUITE is `ccm8` or `gcm`, or for a client also `ccm8-id`, with a connection id. In memory both ends take turns on
//! one thread, and the client's part is timed. A client over sockets prints a line of JSON with its processor time,
//! system calls and the opening of sockets included; `just bench dtls` compares it with the crate `rtc-dtls`.
//!
//! `cargo run --release -p muster-transport --example dtls_cost`

mod means;
mod sockets;

use std::alloc::System;
use std::error::Error;
use std::io::Write;
use std::time::Duration;

use muster_protocol::dtls::{Dtls, Session, Suite};
use muster_transport::AwsLc;
use rustix::time::{ClockId, clock_gettime};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use means::Means;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Rounds of each measurement; the best is printed.
const ROUNDS: usize = 5;
/// Handshakes of a round.
const HANDSHAKES: usize = 2_000;
/// Records of a round.
const RECORDS: u32 = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [] => {
            alone();
            Ok(())
        }
        ["serve", name] => sockets::serve(suite(name)?.0),
        ["shake", server, name, handshakes] => {
            let (suite, has_id) = suite(name)?;
            sockets::shake(server.parse()?, suite, has_id, handshakes.parse()?)
        }
        _ => Err("usage: dtls_cost [serve SUITE | shake ADDRESS SUITE HANDSHAKES]".into()),
    }
}

/// By its name, and whether a connection id is asked for.
fn suite(name: &str) -> Result<(Suite, bool), String> {
    match name {
        "ccm8" => Ok((Suite::PskCcm8, false)),
        "ccm8-id" => Ok((Suite::PskCcm8, true)),
        "gcm" => Ok((Suite::PskGcm, false)),
        _ => Err(format!("{name} is none of ccm8, ccm8-id and gcm")),
    }
}

fn alone() {
    for suite in [Suite::PskCcm8, Suite::PskGcm, Suite::EcdhePskGcm] {
        in_memory(suite);
    }
    for suite in [Suite::PskCcm8, Suite::PskGcm] {
        records(suite);
        memory(suite);
    }
}

/// A handshake in memory: both ends, and the time that the client took.
fn shake(
    ours: &mut Means,
    theirs: &mut Means,
    session: Option<Session>,
) -> (Dtls<AwsLc>, Dtls<AwsLc>, Duration) {
    let began = cpu();
    let mut client = ours.client(session, None);
    let mut spent = cpu() - began;
    let mut server = None;
    loop {
        let mut up: Vec<_> = ours.out.iter().map(<[u8]>::to_vec).collect();
        ours.out.clear();
        for datagram in &mut up {
            server = server.or_else(|| theirs.welcome(datagram, b"peer"));
            if let Some(server) = &mut server {
                theirs.receive(server, datagram);
            }
        }
        let mut down: Vec<_> = theirs.out.iter().map(<[u8]>::to_vec).collect();
        theirs.out.clear();
        let began = cpu();
        for datagram in &mut down {
            ours.receive(&mut client, datagram);
        }
        spent += cpu() - began;
        if up.is_empty() && down.is_empty() {
            break;
        }
    }
    let server = server.expect("it was welcome");
    assert!(client.is_open() && server.is_open());
    (client, server, spent)
}

fn in_memory(suite: Suite) {
    let (mut ours, mut theirs) = (Means::new(suite), Means::new(suite));
    let mut rate = |is_resumed: bool| {
        best(|| {
            let mut kept = None;
            let mut spent = Duration::ZERO;
            for _ in 0..HANDSHAKES {
                let (mut client, _, took) = shake(&mut ours, &mut theirs, kept.take());
                kept = client.take_session().filter(|_| is_resumed);
                spent += took;
            }
            HANDSHAKES as f64 / spent.as_secs_f64()
        })
    };
    let (full, resumed) = (rate(false), rate(true));
    say(&format!(
        "{suite:?}: {full:.0} handshakes/s of the client in memory, {resumed:.0} resumed"
    ));
}

fn records(suite: Suite) {
    let (mut ours, mut theirs) = (Means::new(suite), Means::new(suite));
    let (mut client, mut server, _) = shake(&mut ours, &mut theirs, None);
    let mut bytes = Vec::new();
    let rate = best(|| {
        let began = cpu();
        for _ in 0..RECORDS {
            bytes.clear();
            bytes.extend_from_slice(&[7; 100]);
            assert!(client.wrap(&mut bytes, 0));
            theirs.receive(&mut server, &mut bytes);
        }
        f64::from(RECORDS) / (cpu() - began).as_secs_f64()
    });
    let nanos = 1e9 / rate;
    say(&format!(
        "{suite:?}: {nanos:.0} ns to seal and open a record of 100 bytes"
    ));
}

fn memory(suite: Suite) {
    let (mut ours, mut theirs) = (Means::new(suite), Means::new(suite));
    ours.settings.resumption = false;
    let mut all = Vec::with_capacity(HANDSHAKES);
    let region = Region::new(ALLOCATOR);
    all.extend((0..HANDSHAKES).map(|_| shake(&mut ours, &mut theirs, None).0));
    let change = region.change();
    let heap = (change.bytes_allocated - change.bytes_deallocated) / HANDSHAKES;
    let own = size_of::<Dtls<AwsLc>>();
    say(&format!(
        "{suite:?}: a client's session at rest has {own} bytes, and {heap} apart"
    ));
}

fn best(mut round: impl FnMut() -> f64) -> f64 {
    (0..ROUNDS).map(|_| round()).fold(0.0, f64::max)
}

/// The processor time of this thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
