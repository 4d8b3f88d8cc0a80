//! `muster verify`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use muster_model::figure::number_of;
use muster_result::certificate::{CERTIFICATE, Checked, Files, SIGNATURE, check};

use crate::args::VerifyArgs;
use crate::commands::capacity;
use crate::commands::scale::verifying::{self, grown};
use crate::outcome;
use crate::searching::is_aside;
use crate::signing::VerifyingKey;

/// Faults that are printed; more are counted.
const FAULTS_MAX: usize = 20;

/// Recomputes every figure of a certificate from the windows in its folder.
pub(crate) fn verify(args: &VerifyArgs) -> Result<u8> {
    let key = args.key.as_deref().map(VerifyingKey::read).transpose()?;
    if verifying::is_in(&args.folder) {
        return growth(&args.folder, key.is_some());
    }
    let files = read_files(&args.folder)?;
    if !files.contains_key(CERTIFICATE) && is_of_run(&files) {
        outcome::say(&format!("NOT VERIFIED: {CERTIFICATE} is missing"));
        return Ok(outcome::FAIL);
    }
    let mut checked = checked(&args.folder, &files)?;
    let signature = files.get(SIGNATURE);
    if let Some(key) = &key {
        match signature {
            None => checked
                .faults
                .push(format!("{SIGNATURE} is missing: not signed")),
            Some(bytes) if !key.has_signed(&files[CERTIFICATE], bytes) => checked.faults.push(
                format!("{SIGNATURE} is not of this key and this certificate"),
            ),
            Some(_) => {}
        }
    }
    let stated = format!("the certificate states: {}", checked.certificate.text());
    if let Some(headline) = refusal(&checked.faults) {
        outcome::say(&headline);
        outcome::say(&stated);
        return Ok(outcome::FAIL);
    }
    let (figures, files) = (checked.figures, checked.certificate.files.len());
    let follows = format!("{figures} figures follow from the windows, {files} files are unchanged");
    outcome::say(&match (key, signature) {
        (Some(_), _) => format!("AUTHENTIC: signed by the holder of the key; {follows}"),
        (None, Some(_)) => {
            format!("INTERNALLY CONSISTENT: {follows}; signed, and not checked: give --key PUB.pem")
        }
        (None, None) => format!("INTERNALLY CONSISTENT: {follows}; not signed"),
    });
    outcome::say(&stated);
    Ok(outcome::PASS)
}

/// Checks the files of a run.
fn checked(folder: &Path, files: &Files) -> Result<Checked> {
    let mut checked = check(files, env!("CARGO_PKG_VERSION"))
        .with_context(|| format!("verify {}", folder.display()))?;
    checked.faults.extend(capacity::faults(folder, files));
    Ok(checked)
}

/// Makes the answer of a growth again from its journal and its runs, and recomputes every figure of these.
fn growth(folder: &Path, has_key: bool) -> Result<u8> {
    if has_key {
        bail!(
            "verify the growth in {} by --key: only its runs are signed; name the folder of one",
            folder.display()
        );
    }
    let grown = grown(folder).with_context(|| format!("verify {}", folder.display()))?;
    let mut faults = grown.faults;
    for run in &grown.runs {
        let of = folder.join(run);
        let checked = read_files(&of).and_then(|files| checked(&of, &files));
        match checked {
            Ok(checked) => faults.extend(checked.faults.iter().map(|it| format!("{run}: {it}"))),
            Err(error) => faults.push(format!("{run}: {error:#}")),
        }
    }
    if let Some(headline) = refusal(&faults) {
        outcome::say(&headline);
        return Ok(outcome::FAIL);
    }
    outcome::say(&format!(
        "INTERNALLY CONSISTENT: scale.json follows from {}, whose figures follow from their windows; not signed",
        number_of(grown.runs.len() as u64, "run")
    ));
    Ok(outcome::PASS)
}

/// The headline of a certificate with faults, and the faults; none without one.
fn refusal(faults: &[String]) -> Option<String> {
    if faults.is_empty() {
        return None;
    }
    let shown = faults.iter().take(FAULTS_MAX);
    let number = number_of(faults.len() as u64, "fault");
    let mut text = format!("NOT VERIFIED: {number}\n");
    text.extend(shown.map(|fault| format!("  {fault}\n")));
    if faults.len() > FAULTS_MAX {
        text += &format!("  and {} more\n", faults.len() - FAULTS_MAX);
    }
    Some(text)
}

/// Returns whether these are files of a run, which writes a certificate.
fn is_of_run(files: &Files) -> bool {
    ["windows.bin", "result.json"]
        .iter()
        .any(|name| files.contains_key(*name))
}

/// The files of a folder. A folder in it belongs to no result, but for the earlier runs of a search.
pub(crate) fn read_files(folder: &Path) -> Result<Files> {
    let named = || format!("read {} (name the folder of a run)", folder.display());
    let mut files = Files::new();
    for entry in fs::read_dir(folder).with_context(named)? {
        let entry = entry.with_context(named)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            if is_aside(&name) {
                continue;
            }
            bail!("{}: the folder {name} in it belongs to no run", named());
        }
        let bytes =
            fs::read(entry.path()).with_context(|| format!("read {}", entry.path().display()))?;
        files.insert(name, bytes);
    }
    Ok(files)
}
