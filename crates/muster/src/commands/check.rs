//! `muster check`.

mod all_links;
mod whole_loop;

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use muster_backend::{Look, look};
use muster_model::{BackendId, Reason, RunId};
use muster_monitor::Environment;
use muster_net::{Clock, limits};
use muster_plan::{Plan, PlatformKind, ProvisionMode};
use muster_provision::{distinct, provisioner};
use muster_scenario::{LONGEST_RUN, Needs, OWN_DESCRIPTORS, PortNeed, needs};

use crate::args::CheckArgs;
use crate::probe::Answer;
use crate::provisioned::Watcher;
use crate::reach::{Reached, check_layers, reach};
use crate::{outcome, scenario_file, sockets, target};

/// Works out whether a scenario can run here, and whether the target answers, without load.
pub(crate) fn check(args: &CheckArgs) -> Result<u8> {
    let loaded = scenario_file::load(&args.scenario)?;
    let plan = &loaded.plan;
    for warning in &plan.warnings {
        outcome::remark(&format!("warning: {warning}"));
    }
    let lines = compare(&needs(plan));
    for line in &lines {
        tell(if line.is_met { "ok" } else { "short" }, &line.text);
    }
    for text in sockets::in_words(plan) {
        tell("ok", &text);
    }
    if lines.iter().any(|line| !line.is_met) {
        outcome::say("infeasible on this machine");
        return Ok(outcome::INVALID);
    }
    // A name that cannot be looked up is a matter of the target, which is tried below.
    let targets = match args.offline {
        true => target::literal_addresses(plan),
        false => target::device_addresses(plan).unwrap_or_default(),
    };
    if let Err(error) = target::check_sources(plan, &targets) {
        tell("short", &format!("cannot {error}"));
        outcome::say("infeasible on this machine");
        return Ok(outcome::INVALID);
    }
    if args.offline {
        outcome::say("target not tried");
        return Ok(outcome::PASS);
    }
    let mut code = answers(plan)?;
    if code != outcome::SILENT && args.all_links {
        code = code.max(all_links::try_all(plan)?);
    }
    if code == outcome::PASS && args.whole_loop {
        return whole_loop::go(args, &loaded);
    }
    Ok(code)
}

fn tell(mark: &str, text: &str) {
    outcome::say(&format!("{mark:<7} {text}"));
}

/// Which keys of the scenario a refusal speaks against, where it does.
fn see(reason: Reason, keys: &str) -> String {
    if reason.is_of_credentials() {
        format!("; see {keys}")
    } else {
        String::new()
    }
}

/// Whether everybody finds somebody who answers, and takes him. A target that refuses is there: what
/// the scenario says of it is wrong.
fn answers(plan: &Plan) -> Result<u8> {
    check_layers(plan)?;
    if let PlatformKind::Gateway { .. } = plan.platform.kind {
        tell("ok", "target: the embedded gateway, which the run starts");
        return Ok(outcome::PASS);
    }
    let mut code = management(plan)?;
    for reached in reach(plan)? {
        let found = Found::new(plan, &reached);
        tell(found.mark, &format!("{}: {}", reached.who, found.text));
        code = code.max(found.code);
    }
    Ok(code.max(clusters(plan)))
}

/// An answer in words.
struct Found {
    mark: &'static str,
    text: String,
    /// The exit code.
    code: u8,
}

impl Found {
    fn new(plan: &Plan, reached: &Reached) -> Self {
        let (mark, text, code) = match &reached.answer {
            Answer::Taken(after) => ("ok", format!("connected within {after}"), outcome::PASS),
            Answer::TakesLess(bytes) => (
                "short",
                format!(
                    "its CONNACK allows packets of at most {bytes} bytes, and payloads of this \
                     fleet need more; use a smaller `payload`, or raise the platform's limit"
                ),
                outcome::INVALID,
            ),
            Answer::Refused(reason, said) => {
                let see = see(*reason, &reached.keys);
                let said = said.as_ref().map(|said| format!(", \"{said}\""));
                let text = format!(
                    "CONNACK {}{}{see}",
                    reason.in_words(),
                    said.unwrap_or_default()
                );
                ("refused", text, outcome::USAGE)
            }
            Answer::Nonsense(what) => {
                let protocol = match plan.platform.scheme().is_coap() {
                    true => "no CoAP",
                    false => "no MQTT",
                };
                (protocol, what.clone(), outcome::USAGE)
            }
            Answer::NoHandshake(why) => ("no link", why.clone(), outcome::SILENT),
            Answer::Silent(why) => ("silent", why.clone(), outcome::SILENT),
        };
        Self { mark, text, code }
    }
}

/// Whether each backend's cluster of Kafka answers, and what it has of the topics.
fn clusters(plan: &Plan) -> u8 {
    let run = RunId(Clock::start().t0_ns() as u32);
    let backends = (0..).map(BackendId).zip(&plan.backends);
    let codes = backends.map(|(id, backend)| {
        let who = format!("{}, backend `{}`", backend.endpoint, backend.name);
        match look(backend, id, run) {
            Look::Found { topics, warnings } => {
                let say = |mark, lines: &[String]| {
                    let lines = lines.iter();
                    lines.for_each(|line| tell(mark, &format!("{who}: {line}")));
                };
                say("ok", &topics);
                say("warning", &warnings);
                outcome::PASS
            }
            Look::Refused(why) => {
                tell("refused", &format!("{who}: {why}"));
                outcome::USAGE
            }
            Look::Silent(why) => {
                tell("silent", &format!("{who}: {why}"));
                outcome::SILENT
            }
        }
    });
    codes.max().unwrap_or(outcome::PASS)
}

/// Whether the management API answers a call that changes nothing, where a run would call it.
fn management(plan: &Plan) -> Result<u8> {
    let mode = plan.provision.as_ref().map(|provision| provision.mode);
    if matches!(mode, None | Some(ProvisionMode::None)) {
        return Ok(outcome::PASS);
    }
    let Some(provisioner) = provisioner(plan).context("prepare the calls")? else {
        return Ok(outcome::PASS);
    };
    let target = provisioner.target();
    let interrupted = AtomicBool::new(false);
    let greeted =
        distinct(plan).and_then(|()| provisioner.greet(&Watcher::new(&interrupted, true)));
    let (mark, said, code) = match greeted {
        Ok(()) => ("ok", "answers".to_owned(), outcome::PASS),
        Err(error) if error.is_silence() => ("silent", error.to_string(), outcome::SILENT),
        Err(error) => ("refused", error.to_string(), outcome::USAGE),
    };
    tell(mark, &format!("{target}, management API: {said}"));
    Ok(code)
}

/// What the plan needs of one thing, and what there is of it.
struct Line {
    is_met: bool,
    text: String,
}

/// What this machine lacks for so many needs, in words: a run does not begin unless that is nothing.
pub(crate) fn shortage(needs: &Needs) -> Vec<String> {
    let short = compare(needs).into_iter().filter(|line| !line.is_met);
    short.map(|line| line.text).collect()
}

fn compare(needs: &Needs) -> Vec<Line> {
    let descriptors = limits::raise_descriptors();
    let ports = limits::ephemeral_ports();
    let ports_each = u32::from(*ports.end()) - u32::from(*ports.start()) + 1;
    let mut lines = vec![
        of_descriptors(needs, descriptors),
        rates(needs),
        bytes(needs),
        time(needs),
    ];
    let towards = needs.ports.iter();
    lines.extend(towards.map(|need| of_ports(need, ports_each)));
    lines.extend(memory(needs, descriptors));
    lines
}

fn of_descriptors(needs: &Needs, each: u64) -> Line {
    let processes = needs.processes(each);
    let plural = if processes == 1 { "" } else { "es" };
    Line {
        is_met: each > OWN_DESCRIPTORS,
        text: format!(
            "descriptors: {} needed, {each} a process ({OWN_DESCRIPTORS} of them its own), so \
             {processes} generator process{plural}",
            needs.descriptors
        ),
    }
}

/// Messages that one core has never been seen to send in a second, by far: 100 bytes at QoS 0
/// from a bare loop come to a quarter of a million.
const RATE_MAX_PER_CORE: f64 = 500_000.0;
/// Bytes that one core has never been seen to hand to the kernel in a second: about what it can
/// copy in its own memory.
const BYTES_MAX_PER_CORE: f64 = 8e9;

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

fn rates(needs: &Needs) -> Line {
    let (cores, peak) = (cores(), needs.peak.get());
    let most = f64::from(cores) * RATE_MAX_PER_CORE;
    Line {
        is_met: peak <= most,
        text: format!(
            "rates: {} messages, at most {peak:.0}/s, where {cores} cores never send above \
             {most:.0}/s; {} links in at least {}",
            needs.messages, needs.links, needs.connect
        ),
    }
}

fn bytes(needs: &Needs) -> Line {
    let (cores, peak) = (cores(), needs.peak_bytes / 1e6);
    let most = f64::from(cores) * BYTES_MAX_PER_CORE / 1e6;
    Line {
        is_met: peak <= most,
        text: format!(
            "bytes: at most {peak:.1} MB/s of payload, where {cores} cores never send above \
             {most:.0} MB/s"
        ),
    }
}

fn time(needs: &Needs) -> Line {
    let is_met = needs.run <= LONGEST_RUN;
    let days = LONGEST_RUN.as_secs_f64() / 86_400.0;
    let most = if is_met {
        String::new()
    } else {
        format!("; no run can last longer than {days:.1} days")
    };
    Line {
        is_met,
        text: format!(
            "time: at most {}, {} of it to connect{most}",
            needs.run, needs.connect
        ),
    }
}

/// Only on loopback are there many source addresses, unless the scenario names some.
fn of_ports(need: &PortNeed, each: u32) -> Line {
    let host = need.endpoint.host.as_str();
    let is_loopback = host.starts_with("127.") || host == "localhost";
    let sources = need.sources(each);
    // It takes a port when it starts.
    let towards = match need.endpoint.port {
        0 => format!("the embedded gateway ({})", need.endpoint.scheme.name()),
        _ => need.endpoint.to_string(),
    };
    let there = match need.from {
        Some(named) => format!("`connect.from` has {named}"),
        None if is_loopback => "loopback has enough".to_owned(),
        None => "there is one; name more by `connect.from`".to_owned(),
    };
    Line {
        is_met: need
            .from
            .map_or(sources == 1 || is_loopback, |named| sources <= named),
        text: format!(
            "ports towards {towards}: {} needed, {each} a source address, so {sources} of them; {there}",
            need.connections
        ),
    }
}

/// Nothing to say where the host does not tell its memory.
fn memory(needs: &Needs, descriptors: u64) -> Option<Line> {
    let machine = Environment::read();
    let there = [machine.memory_bytes, machine.container.memory_bytes];
    let there = there.into_iter().flatten().min()?;
    let wanted = needs.memory_of_all(descriptors, u64::from(cores()));
    let mib = |bytes: u64| bytes >> 20;
    Some(Line {
        is_met: wanted < there,
        text: format!(
            "memory: about {} MiB needed ({} of them the kernel's), {} MiB there",
            mib(wanted),
            mib(needs.memory.kernel),
            mib(there)
        ),
    })
}
