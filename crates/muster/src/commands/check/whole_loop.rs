//! One device of each fleet through the whole loop: to the platform, to every backend, and back.

mod downlink;

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use muster_measure::Ledger;
use muster_model::{CommandTarget, Micros, Reason};
use muster_plan::{FleetPlan, Plan, ProvisionMode, StreamKind, StreamPlan};
use muster_report::{LatencyFigures, LinkLedger, Report, StreamAccount};

use self::downlink::Taking;
use super::{Found, print};
use crate::args::{CheckArgs, RunArgs};
use crate::commands::run::{once, stop_by_signal};
use crate::outcome;
use crate::scenario_file::Loaded;
use crate::steering::Decider;

/// The counts of a run's streams, by name.
type Accounts = BTreeMap<String, StreamAccount>;

/// Sends one message of each stream, and prints how far it came; the exit code.
pub(super) fn go(args: &CheckArgs, loaded: &Loaded) -> Result<u8> {
    let folder = tempfile::tempdir().context("make a folder for the check")?;
    let run = RunArgs::quiet(args.scenario.clone(), folder.path().join("result"));
    let plan = loaded.plan.one_of_each();
    let is_alone = plan.provision.as_ref().map(|provision| provision.mode);
    if is_alone == Some(ProvisionMode::Auto) {
        print(
            "ok",
            "the loop's devices are created for it, and removed again",
        );
    }
    let sha256 = loaded.sha256.clone();
    let interrupted = stop_by_signal()?;
    let loaded = Loaded {
        plan,
        sha256,
        decider: Decider::Scenario,
    };
    let done = once(&run, &loaded, &interrupted)?;
    let Some(report) = &done.report else {
        outcome::say(&done.summary);
        return Ok(done.outcome().exit_code());
    };
    Ok(print_streams(report, &loaded.plan))
}

fn print_streams(report: &Report, plan: &Plan) -> u8 {
    let mut code = outcome::PASS;
    if let Some(said) = of_links(&report.links) {
        print(said.mark, &said.text);
        code = said.code;
    }
    for (name, said) in of_streams(&report.ledger.by_stream, plan) {
        print(said.mark, &format!("{name}: {}", said.text));
        code = code.max(said.code);
    }
    if code != outcome::PASS {
        let causes = report.verdict.causes.iter().map(|cause| &cause.text);
        let details = report.events.iter().map(|event| &event.detail);
        causes.chain(details).for_each(|text| print("note", text));
    }
    code
}

/// The links that did not come up, so that nothing could be sent on them.
fn of_links(links: &LinkLedger) -> Option<Found> {
    if links.up_at_start >= links.wanted {
        return None;
    }
    let causes: Vec<&str> = links.connect_failures.keys().map(String::as_str).collect();
    let is_refused = causes.iter().any(|cause| cause.contains("rejected-"));
    let (code, mark) = match is_refused {
        true => (outcome::USAGE, "refused"),
        false => (outcome::SILENT, "no link"),
    };
    let down = links.wanted - links.up_at_start;
    let text = format!(
        "{down} of {} links did not come up ({})",
        links.wanted,
        causes.join(", ")
    );
    Some(Found::new(code, mark, text))
}

/// The lines for each stream, by its name.
fn of_streams(accounts: &Accounts, plan: &Plan) -> Vec<(String, Found)> {
    let mut all = Vec::new();
    for (fleet, stream) in plan.streams() {
        let name = name(fleet, stream);
        if let Some(account) = accounts.get(&name) {
            let said = of_stream(account, (fleet, stream), taking(accounts, fleet).as_ref());
            all.extend(said.into_iter().map(|said| (name.clone(), said)));
        }
    }
    all
}

fn name(fleet: &FleetPlan, stream: &StreamPlan) -> String {
    format!("{}/{}", fleet.name, stream.name)
}

/// The commands to the device of a fleet.
fn taking<'a>(accounts: &'a Accounts, fleet: &FleetPlan) -> Option<Taking<'a>> {
    fleet.streams.iter().find_map(|stream| {
        let StreamKind::Command { to, .. } = stream.kind else {
            return None;
        };
        let account = accounts.get(&name(fleet, stream))?;
        Some(Taking {
            ledger: &account.command.as_ref()?.ledger,
            follows_queries: to == CommandTarget::Waiting,
            is_absent: to.is_absent(fleet.first_device, 0),
            after: within(account.latency.command_loop.as_ref()),
        })
    })
}

fn of_stream(
    account: &StreamAccount,
    (fleet, of): (&FleetPlan, &StreamPlan),
    taking: Option<&Taking<'_>>,
) -> Vec<Found> {
    let mut all = Vec::new();
    if account.ledger.scheduled.unwrap_or(0) > 0 {
        all.push(of_uplink(account, fleet));
    }
    let of_commands = match of.kind {
        StreamKind::Command { .. } => taking.map(Taking::of_command),
        StreamKind::CommandQuery { .. } => {
            let query = account.command.as_ref().map(|command| &command.ledger);
            query
                .zip(taking)
                .and_then(|(query, taking)| taking.of_query(query))
        }
        StreamKind::Telemetry | StreamKind::Event | StreamKind::Receive | StreamKind::Connect => {
            None
        }
    };
    all.extend(of_commands);
    all
}

/// The line for a device's own message.
fn of_uplink(account: &StreamAccount, fleet: &FleetPlan) -> Found {
    let ledger = &account.ledger;
    if ledger.sent == 0 {
        let causes: Vec<&str> = ledger.shed_by_cause.keys().map(String::as_str).collect();
        let why = causes.join(", ");
        return Found::new(
            outcome::SILENT,
            "unsent",
            format!("nothing was sent ({why})"),
        );
    }
    if ledger.rejected > 0 {
        return Found::new(outcome::USAGE, "refused", refusals(ledger, fleet));
    }
    if ledger.broken > 0 {
        let causes: Vec<&str> = ledger.broken_by_cause.keys().map(String::as_str).collect();
        let text = format!("sent, and not answered ({})", causes.join(", "));
        return Found::new(outcome::SILENT, "silent", text);
    }
    if ledger.accepted + ledger.unacknowledged == 0 {
        return Found::new(outcome::SILENT, "silent", "sent, and not answered");
    }
    arrival(account, ledger)
}

/// The codes of refusals in words, with the key to look at.
fn refusals(ledger: &Ledger, fleet: &FleetPlan) -> String {
    let codes = ledger.rejected_by_code.keys();
    let in_words = |code: &String| match Reason::named(code) {
        Some(reason) => reason.in_words(),
        None => code.clone(),
    };
    let words: Vec<String> = codes.clone().map(in_words).collect();
    let mut reasons = codes.filter_map(|code| Reason::named(code));
    let see = match reasons.any(Reason::is_of_credentials) {
        true => format!("; see `credential` of fleet `{}`", fleet.name),
        false => String::new(),
    };
    words.join(", ") + &see
}

/// The line for an accepted message, which has to arrive at each backend.
fn arrival(account: &StreamAccount, ledger: &Ledger) -> Found {
    let accepted = match within(account.latency.response.as_ref()) {
        Some(after) => format!("accepted within {after}"),
        None => "sent".to_owned(),
    };
    match ledger.arrivals.arrived {
        None => Found::new(outcome::PASS, "ok", accepted),
        Some(0) => {
            let text = format!("{accepted}, and not seen at the backend");
            Found::new(outcome::SILENT, "lost", text)
        }
        Some(_) => {
            let seen = within(account.latency.end_to_end.as_ref()).unwrap_or(Micros::ZERO);
            Found::new(
                outcome::PASS,
                "ok",
                format!("{accepted}, seen within {seen}"),
            )
        }
    }
}

/// The time of the only message of a leg.
fn within(leg: Option<&LatencyFigures>) -> Option<Micros> {
    leg?.max_us.map(Micros)
}
