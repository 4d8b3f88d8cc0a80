//! `muster run`.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use muster_agent::FactsLog;
use muster_cluster::{
    Agents, ControlChannel, Membership, Spread, Surroundings, assignments, carry_out,
};
use muster_conduct::{Part, Timetable, Trial, timetable};
use muster_dashboard::Plain;
use muster_measure::{Ledger, Record};
use muster_metrics::{Exporter, Outlets};
use muster_model::{Micros, RunId, mix};
use muster_monitor::Environment;
use muster_net::{Clock, limits};
use muster_plan::{Plan, PlatformKind, ProvisionMode};
use muster_report::{Report, RunResult};
use muster_result::{Archive, Fixed, Header, Live, encoded};
use muster_scenario::{Needs, needs};
use serde_json::json;

use crate::args::RunArgs;
use crate::commands::check::{check_layers, shortage};
use crate::commands::repeat::repeat;
use crate::counters::CounterWatch;
use crate::folder::{Folder, read_archive};
use crate::hooks::Hooks;
use crate::meanwhile::Prepared;
use crate::monitoring::Monitor;
use crate::provisioned::{self, Provisioned};
use crate::read_back::{self, ReadBack};
use crate::scenario_file::{self, Loaded};
use crate::steering::{Decider, Steered};
use crate::target::Target;
use crate::watcher::Watcher;
use crate::{
    beginning, control_channel, outcome, outputs, secured, signals, sockets, target, wall_clock,
    watched,
};

/// The outcome of one run.
pub(crate) struct Done {
    /// None if the run did not begin; the summary has the reason.
    pub(crate) report: Option<Report>,
    result: RunResult,
    /// The last words.
    pub(crate) summary: String,
    /// Export of the run's figures: servers may still read the result.
    pub(crate) exporter: Option<Exporter>,
    /// Decided on the load; none where it was planned.
    pub(crate) steered: Option<Steered>,
}

impl Done {
    /// A run that was judged.
    fn judged(report: Report, summary: String) -> Self {
        Self {
            result: report.verdict.result,
            report: Some(report),
            summary,
            exporter: None,
            steered: None,
        }
    }

    /// A run that could not begin.
    fn none(plan: &Plan, why: &str) -> Self {
        Self {
            report: None,
            result: RunResult::None,
            summary: format!("NONE  {}\n  {why}", plan.name),
            exporter: None,
            steered: None,
        }
    }

    /// A run for which this machine does not have what it needs.
    fn infeasible(plan: &Plan, lacks: &str) -> Self {
        Self::none(plan, &format!("infeasible on this machine\n  {lacks}"))
    }

    /// A run that the user ended before its first message was due.
    fn interrupted(plan: &Plan, when: &str) -> Self {
        Self {
            report: None,
            result: RunResult::Invalid,
            summary: format!(
                "INVALID  {}\n  interrupted {when}: no message was due, and there is no result",
                plan.name
            ),
            exporter: None,
            steered: None,
        }
    }

    pub(crate) const fn outcome(&self) -> RunResult {
        self.result
    }
}

/// Runs a scenario, once or several times; the exit code is the verdict.
pub(crate) fn run(args: &RunArgs) -> Result<u8> {
    let loaded = scenario_file::load(&args.scenario)?;
    for warning in &loaded.plan.warnings {
        outcome::remark(&format!("warning: {warning}"));
    }
    let interrupted = stop_by_signal()?;
    if let Some(times) = args.repeat {
        return repeat(args, times, &loaded, &interrupted);
    }
    let done = once(args, &loaded, &interrupted)?;
    outcome::say(&done.summary);
    let code = done.outcome().exit_code();
    watched::end(done.exporter, args, &interrupted);
    Ok(code)
}

/// One run.
pub(crate) fn once(args: &RunArgs, loaded: &Loaded, interrupted: &AtomicBool) -> Result<Done> {
    let mut plan = loaded.plan.clone();
    let descriptors = limits::raise_descriptors();
    let needs = needs(&plan);
    let processes = processes(args, &needs, descriptors);
    clock_of(args)?;
    check_part(args, &plan)?;
    read_back::check(&plan, interrupted)?;
    let outlets = watched::open(args)?;
    let shortage = shortage_of(part_of(args), &needs);
    if !shortage.is_empty() {
        return Ok(Done::infeasible(&plan, &shortage.join("\n  ")));
    }
    check_facts(args, processes)?;
    check_layers(&plan)?;
    let mut hooks = Hooks::new(&plan, part_of(args))?;
    if let Err(failed) = hooks.before(interrupted) {
        return Ok(Done::none(&plan, &failed));
    }
    let addresses = match target::resolve(&plan, part_of(args)) {
        Ok(addresses) => addresses,
        Err(error) => return Ok(Done::none(&plan, &format!("failed to {error:#}"))),
    };
    if let Err(error) = target::check_sources(&plan, &addresses.devices) {
        return Ok(Done::infeasible(&plan, &format!("cannot {error:#}")));
    }
    let target = Target::start(&mut plan, addresses, &needs, descriptors)?;
    let monitor = match Monitor::open(&plan, part_of(args), &target.gateways()) {
        Ok(monitor) => monitor,
        Err(error) => return Ok(Done::none(&plan, &format!("failed to {error:#}"))),
    };
    let line = control_channel::open(args, || membership(args, &plan))?;
    let (folder, facts) = outputs::open(args, &plan)?;
    let watch = provisioned::Watcher::new(interrupted, args.quiet);
    let provisioned = match provisioned::before(&plan, folder.path(), &watch) {
        Ok(provisioned) => provisioned,
        Err(error) => {
            if error.leaves_nothing {
                folder.abandon();
            }
            return Ok(if error.is_interrupted {
                Done::interrupted(&plan, "while it provisioned the devices")
            } else {
                Done::none(&plan, &format!("failed to {}", error.text))
            });
        }
    };
    let counters = CounterWatch::begin(&plan, part_of(args));
    let run = Ready {
        plan,
        target,
        folder,
        facts,
        provisioned,
        meanwhile: Prepared { monitor, hooks },
        counters,
        clock: clock_of(args)?,
        line,
        outlets,
    };
    run.go(args, loaded, processes, interrupted)
}

/// The clock of the run, whose begin may lie ahead.
fn clock_of(args: &RunArgs) -> Result<Clock> {
    let clock = args.start_at.map_or_else(Clock::start, Clock::at_wall);
    if args.start_at.is_some() && clock.until_t0() == Micros::ZERO {
        bail!("begin at --start-at: that instant has passed");
    }
    Ok(clock)
}

/// A run whose target is there and knows its devices.
struct Ready {
    plan: Plan,
    target: Target,
    folder: Folder,
    facts: Option<FactsLog>,
    provisioned: Option<Provisioned>,
    meanwhile: Prepared,
    counters: Option<CounterWatch>,
    clock: Clock,
    line: Option<ControlChannel>,
    outlets: Outlets,
}

impl Ready {
    /// The run itself.
    fn go(
        self,
        args: &RunArgs,
        loaded: &Loaded,
        processes: u32,
        interrupted: &AtomicBool,
    ) -> Result<Done> {
        let Self {
            plan,
            mut target,
            mut folder,
            facts,
            provisioned,
            meanwhile,
            counters,
            clock,
            line,
            outlets,
        } = self;
        let spread = spread(args, processes, clock, &target);
        let mut header = header(&plan, loaded.sha256.clone(), &spread, &target, clock);
        folder.record_all(&first_records(&header, &loaded.decider));
        if !beginning::wait(clock, args.quiet, interrupted)? {
            drop(provisioned);
            folder.abandon();
            return Ok(Done::interrupted(&plan, "before its beginning"));
        }
        let mut agents = agents(&plan, &spread, facts.as_ref())?;
        let timetable = timetable_of(args, &plan);
        let fixed = Fixed::of(&plan, target.name(), timetable)?;
        let exporter = watched::start(outlets, &plan, &spread, target.name());
        let mut watcher = Watcher::new(folder, fixed, exporter, args);
        watcher.steering = loaded.decider.begin(&plan, watcher.folder(), clock)?;
        watcher.registrar = provisioned.as_ref().and_then(Provisioned::registrar);
        watcher.meanwhile = Some(meanwhile.start(clock));
        let surroundings = Surroundings {
            interrupted,
            observer: &mut watcher,
            channel: line,
        };
        let (mut data, line) = carry_out(&mut agents, timetable, &plan, clock, surroundings);
        drop(agents);
        let store = ReadBack::new(&plan, header.run, clock);
        let stored = store.add_to(&mut data, &mut watcher, interrupted);
        let counts = provisioned::end(counters, provisioned, clock);
        let steered = watcher.end_meanwhile(interrupted);
        let noted = target.stop();
        steered.iter().for_each(|it| it.add_to(&mut header.plan));
        let (mut folder, mut exporter, last) = watcher.end();
        let mut events = control_channel::noted(line.as_ref(), &header, data.end);
        events.extend(noted.events.into_iter().chain(stored).chain(counts.events));
        events.extend(watched::lacks(exporter.as_mut(), data.end));
        let mut archive = Archive::of(header, data, noted.used, read_archive(folder.path()));
        archive.events.extend(events);
        archive.counted = counts.counted;
        close(facts);
        folder.record_all(&archive.last_records());
        let report = archive.report()?;
        outputs::write_result(args, &mut folder, &report, noted.account.as_deref());
        exporter.iter_mut().for_each(|it| it.show_result(&report));
        say_last(last, &report.ledger.uplink);
        let summary = outputs::last_words(&report, &mut folder, archive.unread.as_ref());
        Ok(Done {
            exporter,
            steered,
            ..Done::judged(report, summary)
        })
    }
}

/// Closes the file of facts; what it lacks is remarked.
fn close(facts: Option<FactsLog>) {
    if let Some(Err(missing)) = facts.map(FactsLog::close) {
        outcome::remark(&format!("warning: --facts lacks {missing}"));
    }
}

/// The records that are written before the first message.
fn first_records(header: &Header, decider: &Decider) -> Vec<Record> {
    let note = decider.first_note();
    let note = note.map(|note| Record::Event(encoded(&note)));
    let header = Record::Header(encoded(header));
    std::iter::once(header).chain(note).collect()
}

/// The first signal asks for the end; the second one ends the program at once.
pub(crate) fn stop_by_signal() -> Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in signals::ending() {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
            .context("listen for signals")?;
    }
    Ok(interrupted)
}

/// Prints the last line of the live view, with the final counts, where lines are shown.
fn say_last(last: Option<Live>, uplink: &Ledger) {
    let Some(mut live) = last else { return };
    live.messages.sent = uplink.sent;
    live.messages.accepted = uplink.accepted;
    live.messages.arrived = uplink.arrivals.arrived;
    live.messages.lost = uplink.arrivals.lost;
    outcome::say(&Plain::last_line(live));
}

fn part_of(args: &RunArgs) -> Part {
    args.part.unwrap_or(Part::WHOLE)
}

/// This part as the other parts know it, which have the same id and plan.
fn membership(args: &RunArgs, plan: &Plan) -> Membership {
    Membership {
        run: RunId(args.run_id.unwrap_or_default()),
        plan: Header::digest(plan),
        part: part_of(args),
        has_backend: !plan.backends.is_empty(),
        clock: Environment::read().clock(),
    }
}

/// The resources that this machine lacks for its part; a backend alone needs next to nothing.
fn shortage_of(part: Part, needs: &Needs) -> Vec<String> {
    match part.links {
        Some(slice) => shortage(&needs.part(slice.of)),
        None => Vec::new(),
    }
}

/// Parts begin at an origin that all of them work out alike.
fn timetable_of(args: &RunArgs, plan: &Plan) -> Timetable {
    let timetable = Timetable {
        is_part: part_of(args) != Part::WHOLE,
        has_links: part_of(args).links.is_some(),
        ..timetable(plan)
    };
    args.start_at.map_or(timetable, |_| timetable.agreed())
}

/// Parts share a target.
fn check_part(args: &RunArgs, plan: &Plan) -> Result<()> {
    let part = part_of(args);
    if part == Part::WHOLE {
        return Ok(());
    }
    if part.links.is_none() && plan.backends.is_empty() {
        bail!("carry --part {part}: the scenario names no backend; give it one (platform.backend)");
    }
    if matches!(plan.platform.kind, PlatformKind::Gateway { .. }) {
        bail!(
            "carry --part: every part would start its own gateway; start one with `muster \
             gateway` and name it with platform.kind: mqtt"
        );
    }
    let provision = plan.provision.as_ref();
    if provision.is_some_and(|provision| provision.mode == ProvisionMode::Auto) {
        bail!(
            "carry --part: the first part to end would remove devices of the others; use `muster \
             provision SCENARIO create` before and --set provision.mode=verify here"
        );
    }
    if provision.is_some_and(|provision| provision.board.count) {
        bail!(
            "carry --part: the parts would take the root rule chain from each other; use --set \
             provision.count=false here"
        );
    }
    if plan.management.reads_back.is_some() {
        bail!(
            "carry --part: each part would read back what the others stored; use --set \
             provision.read-back=false here"
        );
    }
    Ok(())
}

fn check_facts(args: &RunArgs, processes: u32) -> Result<()> {
    if args.facts.is_some() && processes > 1 {
        bail!("write --facts: only a run of one process can; this one has {processes}");
    }
    match args.facts.as_deref() {
        Some(path) if std::fs::metadata(path).is_ok_and(|file| file.len() > 0) => bail!(
            "write --facts: {} holds something already; remove it, or name another file",
            path.display()
        ),
        Some(_) | None => Ok(()),
    }
}

fn agents(plan: &Plan, spread: &Spread, facts: Option<&FactsLog>) -> Result<Agents> {
    let mut assignments = assignments(plan, spread);
    if assignments.len() == 1
        && let Some(only) = assignments.pop()
    {
        return Agents::here(only, facts).context("start the run");
    }
    let program = std::env::current_exe().context("find this program for its workers")?;
    let worker = move || {
        let mut command = Command::new(&program);
        command.arg("agent");
        command
    };
    Agents::workers(&worker, &assignments).context("start the run")
}

/// Processes of the generator on this machine.
fn processes(args: &RunArgs, needs: &Needs, descriptors: u64) -> u32 {
    let part = part_of(args);
    if part.links.is_none() {
        return 1;
    }
    let wanted = needs
        .processes(descriptors)
        .div_ceil(u64::from(part.carriers()));
    args.workers
        .unwrap_or(u32::try_from(wanted).unwrap_or(1))
        .clamp(1, needs.links.max(1))
}

/// The processes and threads of the run on this machine.
fn spread(args: &RunArgs, processes: u32, clock: Clock, target: &Target) -> Spread {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let cores = target.addresses.cores_for_shards(cores);
    let run = args.run_id.unwrap_or_else(|| {
        mix(
            clock.t0_ns(),
            u64::from(std::process::id()) ^ wall_clock::now_s(),
        ) as u32
    });
    Spread {
        run: RunId(run),
        part: part_of(args),
        clock,
        processes,
        shards: args.shards.unwrap_or((cores / processes).max(1)),
        targets: target.addresses.devices.clone(),
        backends: target.addresses.backends.clone(),
        gateways: target.gateways(),
        trial: Trial {
            slots: args.slots,
            buffers: args.buffers,
            lost_copy: args.lose_copy,
        },
    }
}

fn header(
    plan: &Plan,
    scenario_sha256: String,
    spread: &Spread,
    target: &Target,
    clock: Clock,
) -> Header {
    let here = Environment::read();
    let machine = serde_json::to_value(&here).unwrap_or_default();
    let about = plan.platform.about.as_ref();
    let addresses = target.addresses.devices.iter();
    let addresses = addresses.map(|(_, address)| address.to_string());
    let environment = json!({
        "target": target.name(),
        "addresses": addresses.collect::<Vec<_>>(),
        "tls": secured::described(plan),
        "about": about.map(|(name, text)| json!({ "file": name, "text": text })),
        "processes": spread.processes,
        "shards": spread.shards * spread.processes,
        "coap": sockets::described(plan),
        "machine": machine,
    });
    Header {
        muster: env!("CARGO_PKG_VERSION").to_owned(),
        plan: Header::for_disk(plan.clone()),
        run: spread.run,
        part: spread.part,
        scenario_sha256,
        resolved_sha256: Header::digest(plan),
        started: wall_clock::rfc3339(clock.wall_ms_at_t0()),
        environment: environment.to_string(),
        co_located: target.addresses.is_co_located(),
        clocks: vec![here.clock()],
    }
}
