//! Handshakes of DTLS with pre-shared keys: Muster's client against the best published library, on the same server.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::Bench;
use super::process::{Process, per_cpu_second};
use super::programs::Programs;
use super::table::{at_least, begin, end, medians, row, thousands};

/// Name of a suite to both programs, and in the table.
const SUITES: [(&str, &str); 2] = [("ccm8", "CCM_8"), ("gcm", "GCM")];
/// A turn takes half a second of CPU or more.
const HANDSHAKES: u32 = 20_000;
/// Goal in handshakes a CPU-second, and the ratio to the library.
const GOAL: f64 = 25_000.0;
const GOAL_OF_RATIO: f64 = 1.5;
/// Longest time of a turn: many times that of a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Compares both clients in alternating runs.
pub(super) fn against_library(bench: &mut Bench<'_>) -> Result<()> {
    let ours = bench.programs.example_of("muster-transport", "dtls_cost")?;
    let theirs = bench.programs.rust_peer("rtc-dtls")?;
    let columns = "suite | rtc-dtls per CPU-s | Muster per CPU-s | ratio";
    begin(bench.out, "Handshakes of DTLS, pre-shared keys", columns)?;
    for (suite, title) in SUITES {
        let mut turns = Vec::new();
        for _ in 0..bench.extent.repetitions {
            let mut server = Process::start(
                &ours,
                &["serve".into(), suite.into()],
                bench.programs.scratch("dtls-server.out"),
            )?;
            let address = server.first_line()?;
            let library = handshakes(bench.programs, &theirs, &[&address, suite])?;
            let muster = handshakes(bench.programs, &ours, &["shake", &address, suite])?;
            turns.push((library, muster));
        }
        let [library, muster, ratio] = medians(&turns);
        let missed = if muster < GOAL { " (goal 25k)" } else { "" };
        let cells = [
            title.to_owned(),
            thousands(library),
            format!("{}{missed}", thousands(muster)),
            at_least(ratio, GOAL_OF_RATIO),
        ];
        row(bench.out, &cells)?;
    }
    let note = "100 under way, a socket each, opened for it; CPU of the client's whole process. rtc-dtls 0.21.1 on \
        aws-lc-rs. Goals: 25,000 and 1.5.";
    end(bench.out, note)
}

/// Handshakes per CPU-second of a client that prints how many it made.
fn handshakes(programs: &Programs, client: &Path, words: &[&str]) -> Result<f64> {
    let count = HANDSHAKES.to_string();
    let words: Vec<_> = words
        .iter()
        .chain([&count.as_str()])
        .map(Into::into)
        .collect();
    let process = Process::start(client, &words, programs.scratch("dtls-client.out"))?;
    let (_, printed) = process.finish(LIMIT)?;
    per_cpu_second(&printed, "handshakes")
}
