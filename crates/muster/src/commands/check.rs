//! `muster check`.

mod all_links;
mod connecting;
mod whole_loop;

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use muster_agent::{check_consumers, link_drivers};
use muster_backend::{Look, look};
use muster_conduct::{Part, Slice};
use muster_model::{BackendId, Dimension, LinkId, Rate, RunId};
use muster_monitor::Environment;
use muster_net::{Clock, limits};
use muster_plan::{FleetPlan, Plan, PlatformKind, ProvisionMode};
use muster_provision::{ProvisionError, distinct, provisioner, store};
use muster_scenario::{LONGEST_RUN, Needs, OWN_DESCRIPTORS, PortNeed, needs};

use self::connecting::{Connecting, names};

use crate::args::CheckArgs;
use crate::calibration::Calibration;
use crate::provisioned::Watcher;
use crate::target::Addresses;
use crate::{outcome, scenario_file, sockets, target};

/// The reason why no link is tried.
const EMBEDDED: &str =
    "the links: the run starts the embedded gateway, so that it is not there yet; try --loop";

/// Connects a second that are not compared with a ceiling: up to the default of `connect.rate`.
const CONNECTS_SURE: f64 = 500.0;

/// Works out whether a scenario can run here, and whether the target answers, without load.
pub(crate) fn check(args: &CheckArgs) -> Result<u8> {
    let loaded = scenario_file::load(&args.scenario)?;
    let plan = &loaded.plan;
    for warning in &plan.warnings {
        outcome::remark(&format!("warning: {warning}"));
    }
    let needs = needs(plan);
    let lines = compare(&needs);
    for line in &lines {
        print(if line.is_met { "ok" } else { "short" }, &line.text);
    }
    for text in sockets::in_words(plan) {
        print("ok", &text);
    }
    if lines.iter().any(|line| !line.is_met) {
        return Ok(infeasible());
    }
    // A name that cannot be looked up is a matter of the target, which is tried below.
    let targets = match args.offline {
        true => target::literal_addresses(plan),
        false => target::device_addresses(plan).unwrap_or_default(),
    };
    if let Err(error) = target::check_sources(plan, &targets) {
        print("short", &format!("cannot {error}"));
        return Ok(infeasible());
    }
    if args.offline {
        let addresses = Addresses::with_devices(targets);
        let code = ceilings(args, plan, &addresses, needs.peak);
        outcome::say("target not tried");
        return Ok(code);
    }
    let code = answers(plan, args.all_links)?;
    if code != outcome::PASS {
        return Ok(code);
    }
    let code = ceilings(args, plan, &target::resolve(plan, Part::WHOLE)?, needs.peak);
    if code == outcome::PASS && args.whole_loop {
        return whole_loop::go(args, &loaded);
    }
    Ok(code)
}

fn infeasible() -> u8 {
    outcome::say("infeasible on this machine");
    outcome::INVALID
}

/// Compares the highest rates of messages, of commands with these messages, and of connects with the generator's own
/// ceilings.
fn ceilings(args: &CheckArgs, plan: &Plan, addresses: &Addresses, peak: Rate) -> u8 {
    let peak = peak.get();
    let commands = plan.stated_load(Dimension::Commands);
    let connects = plan.stated_load(Dimension::Connects);
    let find = |load| measured(Calibration::find(plan, load, addresses, &args.calibration));
    let mut is_met = true;
    let of_messages = (peak > 0.0).then(|| find(Dimension::Rate)).flatten();
    if let Some(messages) = &of_messages {
        is_met &= is_below(messages, peak);
    }
    let of_commands = (commands > 0.0).then(|| find(Dimension::Commands));
    if let Some(mut found) = of_commands.flatten() {
        if let Some(messages) = &of_messages {
            found.ceiling = found.ceiling.together(commands, peak, &messages.ceiling);
        }
        is_met &= is_below(&found, commands);
    }
    let of_connects = (connects > CONNECTS_SURE).then(|| find(Dimension::Connects));
    if let Some(found) = of_connects.flatten() {
        is_met &= is_below(&found, connects);
    }
    match is_met {
        true => outcome::PASS,
        false => infeasible(),
    }
}

/// The ceiling that was found. One that cannot be measured decides nothing.
fn measured(found: Result<Option<Calibration>>) -> Option<Calibration> {
    found.unwrap_or_else(|error| {
        let why = format!("ceiling: not measured: failed to {error:#}");
        print("skipped", &why);
        None
    })
}

/// Compares a rate with a ceiling of the generator, and prints both.
fn is_below(calibration: &Calibration, peak: f64) -> bool {
    let is_met = calibration.ceiling.share_of(peak) <= 1.0;
    let line = calibration.in_words(peak);
    print(if is_met { "ok" } else { "short" }, &line);
    if let Some(bottleneck) = calibration.ceiling.bottleneck(peak) {
        print("note", &bottleneck.to_string());
    }
    is_met
}

fn print(mark: &str, text: &str) {
    outcome::say(&format!("{mark:<7} {text}"));
}

/// Certificates and keys that cannot be used are an error of the scenario, found before anything is
/// started or opened.
pub(crate) fn check_layers(plan: &Plan) -> Result<()> {
    link_drivers(plan, Slice::WHOLE, &|| None).context("set up the devices' links")?;
    for backend in &plan.backends {
        check_consumers(plan, backend).context("set up the backends")?;
    }
    Ok(())
}

/// Tries devices, consumers, the management API and the store that is read back. A target that refuses is there: what
/// the scenario says of it is wrong.
fn answers(plan: &Plan, all_links: bool) -> Result<u8> {
    check_layers(plan)?;
    if let PlatformKind::Gateway { .. } = plan.platform.kind {
        print("ok", "target: the embedded gateway, which the run starts");
        if all_links {
            print("skipped", EMBEDDED);
        }
        return Ok(outcome::PASS);
    }
    let management = management(plan)?;
    let code = management.max(read_back(plan)?);
    let code = code.max(devices(plan, all_links)?);
    Ok(code.max(consumers(plan)?))
}

/// Connects the first links of each fleet, one to each address of the devices, and then all of them
/// if that is asked for.
fn devices(plan: &Plan, all_links: bool) -> Result<u8> {
    let mut code = outcome::PASS;
    let mut reached = plan.only_connecting();
    reached.platform.endpoints.clear();
    let (mut labels, mut targets) = (Vec::new(), Vec::new());
    for endpoint in &plan.platform.endpoints {
        match target::addresses_of(plan, endpoint) {
            Ok(addresses) => {
                let is_one = addresses.len() == 1;
                labels.extend(addresses.iter().map(|(protocol, address)| match is_one {
                    true => (*protocol, endpoint.to_string()),
                    false => (*protocol, format!("{endpoint} ({address})")),
                }));
                targets.extend(addresses);
                reached.platform.endpoints.push(endpoint.clone());
            }
            Err(error) => {
                print("silent", &format!("{endpoint}: failed to {error:#}"));
                code = outcome::SILENT;
            }
        }
    }
    let is_reached = |fleet: &FleetPlan| {
        let scheme = reached.platform.scheme_of(fleet.client.protocol());
        scheme.is_some()
    };
    if !plan.fleets.iter().all(is_reached) {
        return Ok(code);
    }
    let targets_of = |protocol| {
        let of_it = targets.iter().filter(|(of, _)| *of == protocol);
        of_it.count() as u32
    };
    let first = reached.clone().with_first_links(targets_of);
    let targets = &targets[..];
    let links = Connecting {
        plan: &first,
        targets,
    }
    .links(Slice::WHOLE)?;
    for fleet in &first.fleets {
        let name_of = names(&first, fleet);
        let labels = labels.iter();
        let labels = labels.filter(|(protocol, _)| *protocol == fleet.client.protocol());
        let labels: Vec<_> = labels.map(|(_, label)| label).collect();
        for link in (fleet.first_link.0..fleet.first_link.0 + fleet.links).map(LinkId) {
            let name = name_of(link);
            let found = links.of(fleet, link, &name);
            let found = found.unwrap_or_else(|| Found::new(outcome::SILENT, "silent", "no answer"));
            let label = &labels[link.0 as usize % labels.len()];
            found.print(&format!("{label}, device `{name}`"));
            code = code.max(found.code);
        }
    }
    links.notes().for_each(|note| print("note", note));
    if all_links && code != outcome::SILENT {
        let plan = &reached;
        code = code.max(all_links::try_all(&Connecting { plan, targets })?);
    }
    Ok(code)
}

/// Connects the first consumer of each backend of MQTT or AMQP, listens for each webhook, and asks each cluster of
/// Kafka for its topics.
fn consumers(plan: &Plan) -> Result<u8> {
    let (plan, targets) = (&plan.only_connecting(), &[][..]);
    let run = RunId(Clock::start().t0_ns() as u32);
    let mut code = outcome::PASS;
    for (id, backend) in (0..).map(BackendId).zip(&plan.backends) {
        let who = format!("{}, backend `{}`", backend.endpoint, backend.name);
        let found = if backend.kafka().is_none() {
            match target::consumer_address(backend, target::patience(plan)) {
                Ok(at) => Connecting { plan, targets }.consumer(id, at)?,
                Err(error) => Found::new(outcome::SILENT, "silent", format!("failed to {error:#}")),
            }
        } else {
            match look(backend, id, run) {
                Look::Refused(why) => Found::new(outcome::USAGE, "refused", why),
                Look::Silent(why) => Found::new(outcome::SILENT, "silent", why),
                Look::Found { topics, warnings } => {
                    let ok = topics.iter().map(|line| ("ok", line));
                    let lines = ok.chain(warnings.iter().map(|line| ("warning", line)));
                    lines.for_each(|(mark, line)| print(mark, &format!("{who}: {line}")));
                    continue;
                }
            }
        };
        found.print(&who);
        code = code.max(found.code);
    }
    Ok(code)
}

/// An answer in words.
#[derive(Debug)]
struct Found {
    mark: &'static str,
    text: String,
    /// The exit code.
    code: u8,
}

impl Found {
    fn new(code: u8, mark: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { mark, text, code }
    }

    fn print(&self, who: &str) {
        print(self.mark, &format!("{who}: {}", self.text));
    }
}

/// Makes a call of the management API that changes nothing, where a run would call it; the exit code.
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
    Ok(answer(&format!("{target}, management API"), greeted))
}

/// Reads from the store that is read back, but no device; the exit code.
fn read_back(plan: &Plan) -> Result<u8> {
    let Some(store) = store(plan).context("read back what will be stored")? else {
        return Ok(outcome::PASS);
    };
    let interrupted = AtomicBool::new(false);
    let greeted = store.greet(&Watcher::new(&interrupted, true));
    Ok(answer(&format!("{}, read-back", store.name()), greeted))
}

/// Prints the answer to a first call; the exit code.
fn answer(who: &str, greeted: Result<(), ProvisionError>) -> u8 {
    let found = match greeted {
        Ok(()) => Found::new(outcome::PASS, "ok", "answers"),
        Err(error) if error.is_silence() => {
            Found::new(outcome::SILENT, "silent", error.to_string())
        }
        Err(error) => Found::new(outcome::USAGE, "refused", error.to_string()),
    };
    found.print(who);
    found.code
}

/// The need of the plan for one resource, and the amount that there is.
struct Line {
    is_met: bool,
    text: String,
}

/// The resources that this machine lacks, in words: a run does not begin if there are any.
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
    let is_met = peak <= most;
    let bound = match is_met {
        true => String::new(),
        false => format!(", where {cores} cores never send above {most:.0}/s"),
    };
    Line {
        is_met,
        text: format!(
            "rates: {} messages, at most {peak:.0}/s{bound}; {} links in at least {}",
            needs.messages, needs.links, needs.connect
        ),
    }
}

fn bytes(needs: &Needs) -> Line {
    let (cores, peak) = (cores(), needs.peak_bytes / 1e6);
    let most = f64::from(cores) * BYTES_MAX_PER_CORE / 1e6;
    let is_met = peak <= most;
    let bound = match is_met {
        true => String::new(),
        false => format!(", where {cores} cores never send above {most:.0} MB/s"),
    };
    Line {
        is_met,
        text: format!("bytes: at most {peak:.1} MB/s of payload{bound}"),
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

/// Nothing to say where the host keeps its memory to itself.
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
