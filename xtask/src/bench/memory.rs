//! Memory: of an idle device, and over time.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;

use super::programs::Programs;
use super::side::{Load, Side, connected};
use super::sink::Sink;
use super::table::{begin, end, mebibytes, row};

/// Links whose difference is the slope.
const FEW: u32 = 1_000;
const MANY: u32 = 19_000;
/// The same total for both, so that only the number of devices differs.
const RATE: u64 = 2_000;
/// Traffic before memory is read.
const MINUTE: Duration = Duration::from_secs(60);
/// Bytes that an idle device may cost.
const GOAL: f64 = 512.0;
/// The long run: devices, rate, and minutes between the two readings.
const SOAK_LINKS: u32 = 5_000;
const SOAK_RATE: u64 = 20_000;
const SOAK_MINUTES: u32 = 9;
/// Growth that is allowed meanwhile: 1 % or 1 MiB.
const GROWTH_SHARE: f64 = 0.01;
const GROWTH_BYTES: f64 = 1_048_576.0;

/// User memory a device: the slope of anonymous memory between two numbers of links.
pub(super) fn idle(programs: &Programs, out: &mut dyn Write) -> Result<()> {
    let columns = "side | 1,000 links | 19,000 links | bytes a link";
    begin(
        out,
        "User memory after a minute of traffic, 2,000 messages/s, QoS 1",
        columns,
    )?;
    for (name, side) in [
        ("bare loop", Side::Bare),
        ("Muster", Side::Muster),
        ("Muster with a consumer", Side::MusterWithConsumer),
    ] {
        slope_row(out, name, GOAL, |links| anonymous(programs, side, links))?;
    }
    end(
        out,
        "Anonymous resident memory (`RssAnon`); kernel memory of sockets is not in it.",
    )
}

/// Writes the memory with few and with many links, and the bytes a link.
pub(super) fn slope_row(
    out: &mut dyn Write,
    name: &str,
    goal: f64,
    bytes: impl Fn(u32) -> Result<f64>,
) -> Result<()> {
    let ([few, many], slope) = slope([FEW, MANY], bytes)?;
    let missed = match slope > goal {
        true => format!(" (goal {goal})"),
        false => String::new(),
    };
    let (few, many) = (mebibytes(few), mebibytes(many));
    row(
        out,
        &[name.to_owned(), few, many, format!("{slope:.0}{missed}")],
    )
}

/// Bytes with few and with many links, and the slope between them.
pub(super) fn slope(
    links: [u32; 2],
    bytes: impl Fn(u32) -> Result<f64>,
) -> Result<([f64; 2], f64)> {
    let [few, many] = [bytes(links[0])?, bytes(links[1])?];
    Ok(([few, many], (many - few) / f64::from(links[1] - links[0])))
}

fn anonymous(programs: &Programs, side: Side, links: u32) -> Result<f64> {
    let mut sink = Sink::start(programs)?;
    let load = Load::paced(links, 1, MINUTE.as_secs() as u32 + 5, RATE);
    let mut process = side.start(programs, &load, &sink)?;
    connected(&mut process, &mut sink, links)?;
    std::thread::sleep(MINUTE);
    Ok(process.memory("RssAnon")? as f64)
}

/// Resident memory at minute 1 and minute 10 of the same traffic.
pub(super) fn soak(programs: &Programs, out: &mut dyn Write) -> Result<()> {
    let columns = "minute 1 | minute 10 | growth";
    begin(
        out,
        "Resident memory at 20,000 messages/s, QoS 1, with a consumer",
        columns,
    )?;
    let mut sink = Sink::start(programs)?;
    let seconds = 60 * (SOAK_MINUTES + 1) + 5;
    let load = Load::paced(SOAK_LINKS, 1, seconds, SOAK_RATE);
    let mut process = Side::MusterWithConsumer.start(programs, &load, &sink)?;
    connected(&mut process, &mut sink, SOAK_LINKS)?;
    std::thread::sleep(MINUTE);
    let first = process.memory("VmRSS")? as f64;
    std::thread::sleep(MINUTE * SOAK_MINUTES);
    let last = process.memory("VmRSS")? as f64;
    let missed = last - first > GROWTH_BYTES.max(first * GROWTH_SHARE);
    let growth = format!(
        "{:+.0} KiB{}",
        (last - first) / 1024.0,
        if missed { " (too much)" } else { "" }
    );
    row(out, &[mebibytes(first), mebibytes(last), growth])?;
    end(out, "Goal: within 1 % or 1 MiB.")
}
