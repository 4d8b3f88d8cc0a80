//! One device of each fleet through the whole loop: to the platform, to every backend, and back.

use anyhow::{Context, Result};
use muster_model::Micros;
use muster_report::{CommandLedger, Latency, Report, StreamAccount, UplinkLedger};
use muster_scenario::ProvisionMode;

use super::tell;
use crate::args::{CheckArgs, RunArgs};
use crate::commands::run::{once, stop_by_signal};
use crate::outcome;
use crate::scenario_file::Loaded;

/// What became of one message.
struct Said {
    mark: &'static str,
    text: String,
    code: u8,
}

impl Said {
    fn new(code: u8, mark: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { mark, text, code }
    }
}

/// Sends one message of each stream, and tells how far it came; the exit code.
pub(super) fn go(args: &CheckArgs, loaded: &Loaded) -> Result<u8> {
    let folder = tempfile::tempdir().context("make a folder for the check")?;
    let run = RunArgs::quiet(args.scenario.clone(), folder.path().join("result"));
    let plan = loaded.plan.one_of_each();
    let is_alone = plan.provision.as_ref().map(|provision| provision.mode);
    if is_alone == Some(ProvisionMode::Auto) {
        tell(
            "ok",
            "the loop's devices are created for it, and removed again",
        );
    }
    let sha256 = loaded.sha256.clone();
    let interrupted = stop_by_signal()?;
    let done = once(&run, &Loaded { plan, sha256 }, &interrupted)?;
    let Some(report) = &done.report else {
        outcome::say(&done.summary);
        return Ok(done.outcome().exit_code());
    };
    Ok(told(report))
}

fn told(report: &Report) -> u8 {
    let mut code = outcome::PASS;
    for (name, account) in &report.ledger.by_stream {
        let has_commands = report.ledger.by_stream.values().any(issues);
        for said in of_stream(account, has_commands) {
            tell(said.mark, &format!("{name}: {}", said.text));
            code = code.max(said.code);
        }
    }
    if code != outcome::PASS {
        let details = report.events.iter();
        details.for_each(|event| tell("note", &event.detail));
    }
    code
}

/// Whether the backend issued commands on this stream.
fn issues(account: &StreamAccount) -> bool {
    account
        .command
        .as_ref()
        .is_some_and(|ledger| ledger.issued > 0)
}

fn of_stream(account: &StreamAccount, has_commands: bool) -> Vec<Said> {
    let mut all = Vec::new();
    if account.ledger.scheduled.unwrap_or(0) > 0 {
        all.push(of_uplink(account));
    }
    if let Some(ledger) = &account.command {
        all.extend(of_commands(account, ledger, has_commands));
    }
    all
}

/// How far a device's own message came.
fn of_uplink(account: &StreamAccount) -> Said {
    let ledger = &account.ledger;
    if ledger.sent == 0 {
        let causes: Vec<&str> = ledger.shed_by_cause.keys().map(String::as_str).collect();
        let why = causes.join(", ");
        return Said::new(
            outcome::SILENT,
            "unsent",
            format!("nothing was sent ({why})"),
        );
    }
    if ledger.rejected > 0 {
        let codes: Vec<&str> = ledger.rejected_by_code.keys().map(String::as_str).collect();
        return Said::new(outcome::USAGE, "refused", codes.join(", "));
    }
    if ledger.accepted + ledger.unacknowledged == 0 {
        return Said::new(outcome::SILENT, "silent", "sent, and not answered");
    }
    arrival(account, ledger)
}

/// What was accepted has to arrive wherever somebody listens.
fn arrival(account: &StreamAccount, ledger: &UplinkLedger) -> Said {
    let accepted = match within(account.latency.response.as_ref()) {
        Some(after) => format!("accepted within {after}"),
        None => "sent".to_owned(),
    };
    match ledger.arrivals.arrived {
        None => Said::new(outcome::PASS, "ok", accepted),
        Some(0) => {
            let text = format!("{accepted}, and not seen at the backend");
            Said::new(outcome::SILENT, "lost", text)
        }
        Some(_) => {
            let seen = within(account.latency.end_to_end.as_ref()).unwrap_or(Micros::ZERO);
            Said::new(
                outcome::PASS,
                "ok",
                format!("{accepted}, seen within {seen}"),
            )
        }
    }
}

fn of_commands(
    account: &StreamAccount,
    ledger: &CommandLedger,
    has_commands: bool,
) -> Option<Said> {
    let after = within(account.latency.command_loop.as_ref());
    if ledger.queries > 0 && ledger.received_by_query == 0 && has_commands {
        return Some(Said::new(
            outcome::SILENT,
            "lost",
            "no command came for the query",
        ));
    }
    if ledger.received == 0 {
        return (ledger.issued > 0 && ledger.queries == 0).then(|| {
            Said::new(
                outcome::SILENT,
                "lost",
                "a command was issued, and did not come",
            )
        });
    }
    let answered = match (ledger.answered, ledger.replies_arrived, after) {
        (0, _, _) => "received".to_owned(),
        (_, Some(0), _) => {
            let text = "the reply to a command was accepted, and not seen at the backend";
            return Some(Said::new(outcome::SILENT, "lost", text));
        }
        (_, _, Some(after)) => format!("received, and its reply seen within {after}"),
        (_, _, None) => "received, and replied to".to_owned(),
    };
    Some(Said::new(
        outcome::PASS,
        "ok",
        format!("a command was {answered}"),
    ))
}

/// How long the only one of a leg took.
fn within(leg: Option<&Latency>) -> Option<Micros> {
    leg?.max_us.map(Micros)
}
