//! The outputs of a run, opened before it begins and written at its end.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use muster_agent::FactsLog;
use muster_plan::Plan;
use muster_report::{Report, certificate_html, counts_csv, html, monitor_csv, steps_csv, text};
use muster_result::certificate::{CERTIFICATE, CERTIFICATE_PAGE, SIGNATURE, certify};

use crate::args::RunArgs;
use crate::commands::verify::read_files;
use crate::folder::{Folder, write_whole};
use crate::signing::SigningKey;
use crate::{outcome, wall_clock};

/// Width of the summary in characters.
const WIDTH: usize = 100;

/// Opens all that is written, so that what can go wrong does so before the run. It comes last of
/// all that may be refused, so that a run which is refused leaves nothing behind.
pub(crate) fn open(args: &RunArgs, plan: &Plan) -> Result<(Folder, Option<FactsLog>)> {
    let folder = match &args.out {
        Some(out) => Folder::create(out)?,
        None => Folder::create_own(&default_folder(plan))?,
    };
    match open_files(args) {
        Ok(facts) => Ok((folder, facts)),
        Err(error) => {
            folder.abandon();
            Err(error)
        }
    }
}

/// Opens the further outputs.
fn open_files(args: &RunArgs) -> Result<Option<FactsLog>> {
    if let Some(key) = &args.sign {
        SigningKey::read(key)?;
    }
    if let Some(path) = &args.json {
        File::create(path).with_context(|| {
            format!(
                "create {} (name a file that you may write with --json)",
                path.display()
            )
        })?;
    }
    args.facts
        .as_deref()
        .map(|path| facts_log(path, args.facts_max))
        .transpose()
}

fn facts_log(path: &Path, most: u64) -> Result<FactsLog> {
    let file = File::create(path).with_context(|| {
        format!(
            "create the facts file {} (name one that you may write with --facts)",
            path.display()
        )
    })?;
    FactsLog::new(Box::new(BufWriter::new(file)), most)
        .with_context(|| format!("write the facts file {}", path.display()))
}

/// The folder of a result without `--out`.
pub(crate) fn default_folder(plan: &Plan) -> PathBuf {
    result_folder(plan, &wall_clock::compact(wall_clock::now_s()))
}

/// The folder of this ending among the scenario's results.
pub(crate) fn result_folder(plan: &Plan, ending: &str) -> PathBuf {
    let plain = |c: char| {
        if c.is_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '-'
        }
    };
    let name: String = plan.name.chars().map(plain).collect();
    Path::new("results").join(format!("{name}-{ending}"))
}

/// Writes `result.json`, what belongs to it and the certificate; what cannot be written is an error of the last words.
pub(crate) fn write_result(
    args: &RunArgs,
    folder: &mut Folder,
    report: &Report,
    gateway_account: Option<&str>,
) {
    let json = report.to_json();
    folder.write("result.json", &json);
    folder.write("report.html", &html(report));
    if let Some(steps) = steps_csv(report) {
        folder.write("steps.csv", &steps);
    }
    if let Some(samples) = monitor_csv(report) {
        folder.write("monitor.csv", &samples);
    }
    if let Some(counts) = counts_csv(report) {
        folder.write("counts.csv", &counts);
    }
    if let Some(account) = gateway_account {
        folder.write("gateway.json", account);
    }
    // It lists the files above.
    write_certificate(folder, report, args.sign.as_deref());
    if let Some(path) = &args.json
        && let Err(error) = std::fs::write(path, &json)
    {
        outcome::remark(&format!(
            "error: failed to write {}: {error}",
            path.display()
        ));
    }
}

/// Writes the certificate of a run behind all other files, and signs it if there is a key.
pub(crate) fn write_certificate(folder: &mut Folder, report: &Report, key: Option<&Path>) {
    if folder.broken.is_some() {
        return;
    }
    if let Err(error) = certificate(folder.path(), report, key) {
        folder.broken = Some(format!("write the certificate: {error:#}"));
    }
}

/// Writes the certificate of a folder anew after files were added to it; a run that could not write all has none.
pub(crate) fn certify_again(folder: &Path, report: &Report, key: Option<&Path>) -> Result<()> {
    match folder.join(CERTIFICATE).exists() {
        true => certificate(folder, report, key),
        false => Ok(()),
    }
}

fn certificate(folder: &Path, report: &Report, key: Option<&Path>) -> Result<()> {
    let key = key.map(SigningKey::read).transpose()?;
    let certificate = certify(report, &read_files(folder)?);
    let text = certificate.to_json();
    write_whole(&folder.join(CERTIFICATE), &text)?;
    write_whole(
        &folder.join(CERTIFICATE_PAGE),
        &certificate_html(&certificate),
    )?;
    if let Some(key) = key {
        let path = folder.join(SIGNATURE);
        std::fs::write(&path, key.sign(text.as_bytes()))
            .with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

/// The last words: the summary and where the report is; what of the result is missing is an error.
pub(crate) fn last_words(report: &Report, folder: &mut Folder, unread: Option<&String>) -> String {
    if let Some(unread) = unread {
        folder.broken.get_or_insert_with(|| unread.clone());
    }
    if let Some(broken) = &folder.broken {
        outcome::remark(&format!(
            "error: the result is not complete: failed to {broken}"
        ));
    }
    let page = folder.path().join("report.html");
    format!("{}report: {}", text(report, WIDTH), page.display())
}
