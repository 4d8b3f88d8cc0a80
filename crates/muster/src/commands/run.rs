//! `muster run`.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use muster_agent::FactsLog;
use muster_cluster::{Force, Muster, RunData, assignments, carry_out};
use muster_conduct::{Slice, Timetable, timetable};
use muster_dashboard::{Live, Plain};
use muster_measure::Record;
use muster_model::{Micros, RunId, mix};
use muster_monitor::Environment;
use muster_net::{Clock, limits};
use muster_report::{UplinkLedger, html, text};
use muster_scenario::{Needs, Plan, PlatformKind, needs};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::archive::{Archive, Header, encoded};
use crate::args::RunArgs;
use crate::folder::Folder;
use crate::judged::Reported;
use crate::live::Fixed;
use crate::scenario_file::{self, Loaded};
use crate::target::Target;
use crate::watcher::Watcher;
use crate::{outcome, target, wall_clock};

/// Width of the summary in characters.
const WIDTH: usize = 100;

/// Runs a scenario once; the exit code is the verdict.
pub(crate) fn run(args: &RunArgs) -> Result<u8> {
    let Loaded { mut plan, sha256 } = scenario_file::load(&args.scenario)?;
    for warning in &plan.warnings {
        outcome::remark(&format!("warning: {warning}"));
    }
    let descriptors = limits::raise_descriptors();
    let needs = needs(&plan);
    let facts = open_outputs(args)?;
    let clock = args.start_at.map_or_else(Clock::start, Clock::at_wall);
    check_part(args, &plan, clock)?;
    let addresses = match target::resolve(&plan) {
        Ok(addresses) => addresses,
        Err(error) => {
            outcome::say(&format!("NONE  {}\n  failed to {error:#}", plan.name));
            return Ok(outcome::SILENT);
        }
    };
    let out = args.out.clone().unwrap_or_else(|| default_folder(&plan));
    let mut folder = Folder::create(&out)?;
    let mut target = Target::start(&mut plan, addresses, &needs, descriptors)?;
    let muster = spread(args, &needs, descriptors, clock, &target);
    if facts.is_some() && muster.processes > 1 {
        bail!(
            "write --facts: only a run of one process can; this one has {}",
            muster.processes
        );
    }
    let header = header(&plan, sha256, &muster, &target, clock);
    folder.record(&Record::Header(encoded(&header)));
    std::thread::sleep(Duration::from_micros(clock.until_t0().get()));
    let mut force = force(&plan, &muster, facts.as_ref())?;
    let timetable = timetable(&plan);
    let timetable = args.start_at.map_or(timetable, |_| timetable.agreed());
    let fixed = Fixed::of(&plan, target.name(), timetable)?;
    let mut watcher = Watcher::new(folder, fixed, args.quiet);
    let data = conduct(&plan, timetable, &mut force, (clock, &mut watcher))?;
    drop(force);
    let noted = target.stop();
    let (mut folder, last) = watcher.end();
    let mut archive = Archive::of(header, data, noted.used, folder.path());
    archive.events.extend(noted.events);
    if let Some(Err(missing)) = facts.map(FactsLog::close) {
        outcome::remark(&format!("warning: --facts lacks {missing}"));
    }
    for record in archive.last_records() {
        folder.record(&record);
    }
    let reported = archive.report()?;
    if let Some(live) = last {
        outcome::say(&last_line(live, &reported.report.ledger.uplink));
    }
    write_result(args, &mut folder, &reported, noted.account.as_deref());
    conclude(&reported, &mut folder, archive.unread.as_ref());
    Ok(reported.exit_code)
}

/// Opens what the command line wants written beside the result, so that what can go wrong does so
/// before the run.
fn open_outputs(args: &RunArgs) -> Result<Option<FactsLog>> {
    if let Some(path) = &args.json {
        File::create(path).with_context(|| format!("create {}", path.display()))?;
    }
    args.facts
        .as_deref()
        .map(|path| facts_log(path, args.facts_max))
        .transpose()
}

/// The last line of the live view, with the final counts.
fn last_line(live: Live, uplink: &UplinkLedger) -> String {
    Plain::last_line(&Live {
        sent: uplink.sent,
        accepted: uplink.accepted,
        arrived: uplink.arrivals.arrived,
        lost: uplink.arrivals.lost,
        ..live
    })
}

/// The last words: the summary, where the report is, and what of the result is missing.
fn conclude(reported: &Reported, folder: &mut Folder, unread: Option<&String>) {
    outcome::say(&text(&reported.report, WIDTH));
    let report = folder.path().join("report.html");
    outcome::say(&format!("report: {}", report.display()));
    if let Some(unread) = unread {
        folder.broken.get_or_insert_with(|| unread.clone());
    }
    if let Some(broken) = &folder.broken {
        outcome::remark(&format!(
            "error: the result is not complete: failed to {broken}"
        ));
    }
}

/// Parts share a target, and begin together.
fn check_part(args: &RunArgs, plan: &Plan, clock: Clock) -> Result<()> {
    let is_part = args.part.is_some_and(|part| part != Slice::WHOLE);
    if is_part && matches!(plan.platform.kind, PlatformKind::Gateway { .. }) {
        bail!(
            "carry --part: every part would start a gateway of its own; start one with `muster \
             gateway` and name it with platform.kind: mqtt"
        );
    }
    if args.start_at.is_some() && clock.until_t0() == Micros::ZERO {
        bail!("begin at --start-at: that instant has passed");
    }
    Ok(())
}

fn conduct(
    plan: &Plan,
    timetable: Timetable,
    force: &mut Force,
    (clock, watcher): (Clock, &mut Watcher),
) -> Result<RunData> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The second signal ends the program at once; the first one asks the run to settle.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupted)))
            .context("listen for signals")?;
    }
    Ok(carry_out(
        force,
        timetable,
        &plan.rules,
        clock,
        (&interrupted, watcher),
    ))
}

fn force(plan: &Plan, muster: &Muster, facts: Option<&FactsLog>) -> Result<Force> {
    let mut assignments = assignments(plan, muster);
    if assignments.len() == 1
        && let Some(only) = assignments.pop()
    {
        return Force::here(only, facts).context("start the run");
    }
    let program = std::env::current_exe().context("find this program for its workers")?;
    let worker = move || {
        let mut command = Command::new(&program);
        command.arg("agent");
        command
    };
    Force::workers(&worker, &assignments).context("start the run")
}

/// How the run is spread over processes and threads of this machine.
fn spread(
    args: &RunArgs,
    needs: &Needs,
    descriptors: u64,
    clock: Clock,
    target: &Target,
) -> Muster {
    let part = args.part.unwrap_or(Slice::WHOLE);
    let wanted = needs.processes(descriptors).div_ceil(u64::from(part.of));
    let processes = args
        .workers
        .unwrap_or(u32::try_from(wanted).unwrap_or(1))
        .clamp(1, needs.links.max(1));
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let cores = if target.addresses.is_co_located() {
        cores.div_ceil(2)
    } else {
        cores
    };
    let run = args.run_id.unwrap_or_else(|| {
        mix(
            clock.t0_ns(),
            u64::from(std::process::id()) ^ wall_clock::now_s(),
        ) as u32
    });
    Muster {
        run: RunId(run),
        part,
        t0_ns: clock.t0_ns(),
        processes,
        shards: args.shards.unwrap_or((cores / processes).max(1)),
        targets: target.addresses.devices.clone(),
        backends: target.addresses.backends.clone(),
        slot_limit: args.slots,
    }
}

fn header(
    plan: &Plan,
    scenario_sha256: String,
    muster: &Muster,
    target: &Target,
    clock: Clock,
) -> Header {
    let machine = serde_json::to_value(Environment::read()).unwrap_or_default();
    let about = plan.platform.about.as_ref();
    let environment = json!({
        "target": target.name(),
        "about": about.map(|(name, text)| json!({ "file": name, "text": text })),
        "processes": muster.processes,
        "shards": muster.shards * muster.processes,
        "machine": machine,
    });
    Header {
        plan: Header::without_secrets(plan.clone()),
        run: muster.run,
        part: muster.part,
        scenario_sha256,
        started: wall_clock::rfc3339(clock.wall_ms_at_t0()),
        environment: environment.to_string(),
        co_located: target.addresses.is_co_located(),
    }
}

fn write_result(
    args: &RunArgs,
    folder: &mut Folder,
    reported: &Reported,
    gateway_account: Option<&str>,
) {
    let json = reported.report.to_json();
    folder.write("result.json", &json);
    folder.write("report.html", &html(&reported.report));
    if let Some(account) = gateway_account {
        folder.write("gateway.json", account);
    }
    if let Some(path) = &args.json
        && let Err(error) = std::fs::write(path, &json)
    {
        outcome::remark(&format!(
            "error: failed to write {}: {error}",
            path.display()
        ));
    }
}

fn facts_log(path: &Path, most: u64) -> Result<FactsLog> {
    let file =
        File::create(path).with_context(|| format!("create the facts file {}", path.display()))?;
    FactsLog::new(Box::new(BufWriter::new(file)), most)
        .with_context(|| format!("write the facts file {}", path.display()))
}

fn default_folder(plan: &Plan) -> PathBuf {
    let name: String = plan
        .name
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || "-_.".contains(c) {
                c
            } else {
                '-'
            }
        })
        .collect();
    Path::new("results").join(format!(
        "{name}-{}",
        wall_clock::compact(wall_clock::now_s())
    ))
}
