//! `muster provision`.

use std::path::Path;

use anyhow::{Context, Result, bail};
use muster_plan::{Plan, PlatformKind};
use muster_platform::{Dialect, ManagementApi};
use muster_provision::{Journal, ProvisionError, Provisioner, Summary, provisioner};

use crate::args::{Action, ProvisionArgs};
use crate::commands::run::stop_by_signal;
use crate::provisioned::Watcher;
use crate::{counting, outcome, scenario_file};

/// Creates, verifies or removes a scenario's devices, or restores the platform, without a run.
pub(crate) fn provision(args: &ProvisionArgs) -> Result<u8> {
    let plan = scenario_file::load(&args.scenario)?.plan;
    for warning in &plan.warnings {
        outcome::remark(&format!("warning: {warning}"));
    }
    let provisioner = whom(&plan)?;
    let interrupted = stop_by_signal()?;
    let watch = Watcher::new(&interrupted, args.quiet);
    let folder = args.out.clone();
    let folder = folder.unwrap_or_else(|| counting::default_folder(&plan));
    match act(args.action, &*provisioner, (&plan, &folder), &watch) {
        Ok(summary) => Ok(print(&*provisioner, &summary)),
        Err(error) => {
            let code = code_of(&error);
            outcome::complain(&anyhow::Error::new(error));
            Ok(code)
        }
    }
}

/// The platform to provision; the embedded gateway does not outlive its run.
fn whom(plan: &Plan) -> Result<Box<dyn Provisioner>> {
    if let PlatformKind::Gateway { dialect, .. } = plan.platform.kind {
        bail!("{}", of_embedded(dialect));
    }
    let found = provisioner(plan).context("prepare the calls")?;
    found.with_context(|| {
        let why = without_address(plan.platform.dialect());
        format!("provision the devices: {why}")
    })
}

/// The error for a scenario without a management API.
fn without_address(dialect: Dialect) -> String {
    let missing = match dialect.management {
        None => return format!("{dialect} has no API that creates devices"),
        Some(ManagementApi::HonoRegistry) => {
            "`provision: { url: ... }`, which names the registry's management API, or `provision: { mongodb: \
             ... }`, its database"
        }
        Some(ManagementApi::ThingsBoard) => {
            "`provision: { url: ..., user: ..., password: ... }`, the login of a tenant administrator"
        }
        Some(ManagementApi::SapEdge) => "`provision: { url: ..., gateway: ... }`",
    };
    format!("the scenario has no {missing}")
}

/// The error for the embedded gateway, with the remedy.
fn of_embedded(dialect: Dialect) -> String {
    let remedy = if dialect.management.is_some() && dialect.server.rest.is_some() {
        format!(
            "start one with `muster gateway --dialect {dialect} --rest 127.0.0.1:8080` and use `kind: {dialect}`"
        )
    } else if dialect.management.is_some() {
        format!(
            "it takes every device, so there is nothing to create; for a platform use `kind: {dialect}` with \
             `provision: {{ url: ... }}`"
        )
    } else {
        "it takes every device, so there is nothing to create".to_owned()
    };
    format!("provision the embedded gateway: it lives no longer than a run; {remedy}")
}

fn act(
    action: Action,
    provisioner: &dyn Provisioner,
    (plan, folder): (&Plan, &Path),
    watch: &Watcher<'_>,
) -> Result<Summary, ProvisionError> {
    let journal = || Journal::open(folder, provisioner.target());
    match action {
        Action::Verify => provisioner.verify(plan, watch),
        Action::Create => {
            std::fs::create_dir_all(folder).map_err(|why| ProvisionError::Journal {
                path: folder.display().to_string(),
                why: why.to_string(),
            })?;
            provisioner.create(plan, &journal()?, watch)
        }
        Action::Remove if !folder.join(muster_provision::JOURNAL).exists() => {
            let what = "nothing to remove: there is no record of anything created in";
            outcome::remark(&format!("{what} {}", folder.display()));
            Ok(Summary::default())
        }
        Action::Restore => match counting::restore(plan, folder, watch)? {
            Some(summary) => Ok(summary),
            None => {
                let what = "nothing to restore: there is no record of a rule chain in";
                outcome::remark(&format!("{what} {}", folder.display()));
                Ok(Summary::default())
            }
        },
        Action::Remove => {
            let journal = journal()?;
            let before = journal.len();
            let removed = provisioner.remove(&journal, watch);
            removed.inspect_err(|_| {
                let left = journal.len();
                let gone = before - left;
                outcome::remark(&format!("removed {gone} of {before}, {left} left"));
            })
        }
    }
}

fn print(provisioner: &dyn Provisioner, summary: &Summary) -> u8 {
    outcome::say(&format!("{}  {summary}", provisioner.target()));
    for wrong in &summary.wrong {
        outcome::say(&format!("  {wrong}"));
    }
    if summary.is_as_wanted() {
        outcome::PASS
    } else {
        outcome::FAIL
    }
}

fn code_of(error: &ProvisionError) -> u8 {
    match error {
        ProvisionError::Silent { .. } => outcome::SILENT,
        ProvisionError::Interrupted => outcome::INVALID,
        ProvisionError::Refused { .. }
        | ProvisionError::Unreadable { .. }
        | ProvisionError::Differs { .. }
        | ProvisionError::Database { .. }
        | ProvisionError::Late { .. }
        | ProvisionError::RuleChain { .. }
        | ProvisionError::Rights { .. }
        | ProvisionError::Lacks { .. }
        | ProvisionError::Import { .. }
        | ProvisionError::NoGateway { .. }
        | ProvisionError::NoTenant { .. } => outcome::FAIL,
        ProvisionError::Transport(_)
        | ProvisionError::Identity { .. }
        | ProvisionError::SameLogin { .. }
        | ProvisionError::LongPassword { .. }
        | ProvisionError::NoToken { .. }
        | ProvisionError::NoMongo
        | ProvisionError::NoPostgres
        | ProvisionError::NoRegistration
        | ProvisionError::Random
        | ProvisionError::Journal { .. }
        | ProvisionError::Thread(_) => outcome::USAGE,
    }
}
