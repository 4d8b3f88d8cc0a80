//! `muster check`.

use std::net::TcpStream;
use std::time::Duration;

use anyhow::Result;
use muster_monitor::Environment;
use muster_net::limits;
use muster_scenario::{Needs, Plan, PlatformKind, needs};

use crate::args::CheckArgs;
use crate::{outcome, scenario_file, target};

/// How long the target has to answer a SYN.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Works out whether a scenario can run here, and whether the target answers, without load.
pub(crate) fn check(args: &CheckArgs) -> Result<u8> {
    let plan = scenario_file::load(&args.scenario)?.plan;
    for warning in &plan.warnings {
        outcome::remark(&format!("warning: {warning}"));
    }
    let needs = needs(&plan);
    let lines = compare(&needs);
    let is_feasible = lines.iter().all(|line| line.is_met);
    for line in &lines {
        let mark = if line.is_met { "ok   " } else { "short" };
        outcome::say(&format!("{mark} {}", line.text));
    }
    if !is_feasible {
        outcome::say("infeasible on this machine");
        return Ok(outcome::INVALID);
    }
    let is_embedded = matches!(plan.platform.kind, PlatformKind::Gateway { .. });
    if is_embedded || args.offline {
        outcome::say(if is_embedded {
            "ok    target: the embedded gateway"
        } else {
            "target not tried"
        });
        return Ok(outcome::PASS);
    }
    Ok(if answers(&plan) {
        outcome::PASS
    } else {
        outcome::SILENT
    })
}

struct Line {
    is_met: bool,
    text: String,
}

fn compare(needs: &Needs) -> Vec<Line> {
    let descriptors = limits::raise_descriptors();
    let ports = limits::ephemeral_ports();
    let each = u32::from(*ports.end()) - u32::from(*ports.start()) + 1;
    let processes = needs.processes(descriptors);
    let mut lines = vec![
        Line {
            is_met: true,
            text: format!(
                "descriptors: {} needed, {descriptors} a process, so {processes} generator {}",
                needs.descriptors,
                if processes == 1 {
                    "process"
                } else {
                    "processes"
                }
            ),
        },
        rates(needs),
    ];
    lines.extend(needs.ports.iter().map(|need| {
        let sources = need.sources(each);
        let is_loopback =
            need.endpoint.host.starts_with("127.") || need.endpoint.host == "localhost";
        Line {
            is_met: sources == 1 || is_loopback,
            text: format!(
                "ports towards {}: {} needed, {each} a source address, so {sources} of them",
                need.endpoint, need.connections
            ),
        }
    }));
    if let Some(memory) = Environment::read().memory_bytes {
        let mib = |bytes: u64| bytes >> 20;
        lines.push(Line {
            is_met: needs.memory.total() < memory,
            text: format!(
                "memory: about {} MiB needed ({} of them the kernel's), {} MiB there",
                mib(needs.memory.total()),
                mib(needs.memory.kernel),
                mib(memory)
            ),
        });
    }
    lines
}

/// Messages that one core has never been seen to send in a second, by far: 100 bytes at QoS 0
/// from a bare loop come to a quarter of a million.
const RATE_MAX_PER_CORE: f64 = 500_000.0;

fn rates(needs: &Needs) -> Line {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as f64;
    let peak = needs.peak.get().max(0.0);
    Line {
        is_met: peak <= cores * RATE_MAX_PER_CORE,
        text: format!(
            "rates: {} messages, at most {peak:.0}/s; {} links in at least {}",
            needs.messages, needs.links, needs.connect
        ),
    }
}

fn answers(plan: &Plan) -> bool {
    let mut all = true;
    let addresses = match target::resolve(plan) {
        Ok(addresses) => addresses.devices,
        Err(error) => {
            outcome::say(&format!("silent failed to {error:#}"));
            return false;
        }
    };
    for address in addresses {
        match TcpStream::connect_timeout(&address, ANSWER_MAX) {
            Ok(_) => outcome::say(&format!("ok    target {address} answers")),
            Err(error) => {
                all = false;
                outcome::say(&format!("silent target {address}: {error}"));
            }
        }
    }
    all
}
