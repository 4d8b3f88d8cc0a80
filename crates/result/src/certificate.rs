//! The certificate of a run, made of its files and checked against them.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use muster_report::{
    CERTIFICATE_SCHEMA, Certificate, FileDigest, Report, certificate_html, counts_csv, html,
    steps_csv,
};
use serde::Serialize;
use serde_json::Value;

use crate::{Archive, Header, sha256};

/// The certificate itself, which it cannot list.
pub const CERTIFICATE: &str = "certificate.json";
/// Its page.
pub const CERTIFICATE_PAGE: &str = "certificate.html";
/// Its signature: the 64 bytes of ed25519.
pub const SIGNATURE: &str = "certificate.sig";

/// Faults of one kind that are listed; more are counted.
const FAULTS_MAX: usize = 10;

/// Length of a value that a fault shows.
const VALUE_MAX: usize = 60;

/// The files of a folder by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Outcome of a check.
#[derive(Debug)]
pub struct Checked {
    /// The certificate.
    pub certificate: Certificate,
    /// Number of figures that were recomputed.
    pub figures: u64,
    /// Faults, one sentence each; empty if all follows.
    pub faults: Vec<String>,
}

/// The certificate of a run with its files.
pub fn certify(report: &Report, files: &Files) -> Certificate {
    let others = files.iter().filter(|(name, _)| !is_own(name));
    let digests = others.map(|(name, bytes)| (name.clone(), digest(bytes)));
    Certificate::new(report, digests.collect())
}

/// Checks that the certificate follows from the files: each file is the listed one, and windows and rules give every
/// figure that the certificate and the reports state.
///
/// # Errors
/// If the folder has no certificate, or one of another version.
pub fn check(files: &Files, version: &str) -> Result<Checked> {
    let bytes = files.get(CERTIFICATE).with_context(|| {
        format!("find {CERTIFICATE}: runs of this version write one; name the folder of a run")
    })?;
    let stated: Value = serde_json::from_slice(bytes).context("read certificate.json")?;
    let schema = stated.get("schema").and_then(Value::as_str);
    if schema != Some(CERTIFICATE_SCHEMA) {
        bail!(
            "read certificate.json: its schema is {}, this version reads {CERTIFICATE_SCHEMA}",
            schema.unwrap_or("not stated")
        );
    }
    let certificate: Certificate =
        serde_json::from_value(stated.clone()).context("read certificate.json")?;
    if certificate.muster != version {
        bail!(
            "verify a certificate of muster {}: this is {version}, whose texts may differ; use that version",
            certificate.muster
        );
    }
    let mut faults = file_faults(&certificate, files);
    faults.extend(header_fault(&certificate, files));
    match recomputed(files) {
        Ok(report) => faults.extend(figure_faults(&report, &stated, files)),
        Err(error) => faults.push(format!("the windows give no report: {error:#}")),
    }
    Ok(Checked {
        figures: ["figures", "steps", "verdict"]
            .map(|key| leaves(&stated[key]))
            .iter()
            .sum(),
        certificate,
        faults,
    })
}

/// Returns whether a file belongs to the certificate itself.
fn is_own(name: &str) -> bool {
    [CERTIFICATE, CERTIFICATE_PAGE, SIGNATURE].contains(&name)
}

fn digest(bytes: &[u8]) -> FileDigest {
    FileDigest {
        sha256: sha256(bytes),
        bytes: bytes.len() as u64,
    }
}

/// Returns whether the text of a certificate lists a file with these bytes.
pub fn lists(certificate: &[u8], name: &str, bytes: &[u8]) -> bool {
    let stated: Option<Value> = serde_json::from_slice(certificate).ok();
    let listed = stated.and_then(|stated| stated.get("files")?.get(name).cloned());
    let listed = listed.and_then(|listed| serde_json::from_value(listed).ok());
    listed == Some(digest(bytes))
}

/// Files that were exchanged, removed or added.
fn file_faults(certificate: &Certificate, files: &Files) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, listed) in &certificate.files {
        match files.get(name) {
            None => faults.push(format!("{name} is listed and missing")),
            Some(bytes) if digest(bytes) != *listed => {
                faults.push(format!("{name} is not the file that was certified"));
            }
            Some(_) => {}
        }
    }
    let is_added = |name: &&String| !is_own(name) && !certificate.files.contains_key(*name);
    let added = files.keys().filter(is_added);
    faults.extend(added.map(|name| format!("{name} was added: the certificate does not list it")));
    faults
}

/// A digest that is not the one of the plan in the header, where all of the plan was written.
fn header_fault(certificate: &Certificate, files: &Files) -> Option<String> {
    let header = Header::read(files.get("windows.bin")?).ok()?;
    let digest = header.digest_again()?;
    (certificate.resolved_sha256.as_ref() != Some(&digest)).then(|| {
        format!(
            "{CERTIFICATE}: resolved_sha256 is not the digest of the plan and the rules, {digest}"
        )
    })
}

/// The report that the windows give, by the rules in their header.
fn recomputed(files: &Files) -> Result<Report> {
    let bytes = files.get("windows.bin").context("find windows.bin")?;
    let archive = Archive::read(bytes, "windows.bin")?;
    if let Some(unread) = &archive.unread {
        bail!("{unread}");
    }
    archive.report()
}

/// Figures, rules and pages that do not follow from the windows.
fn figure_faults(report: &Report, stated: &Value, files: &Files) -> Vec<String> {
    let certificate = certify(report, files);
    let mut faults = differences(CERTIFICATE, stated, &certificate);
    let expected = [
        ("result.json", Some(report.to_json())),
        ("report.html", Some(html(report))),
        ("steps.csv", steps_csv(report)),
        ("counts.csv", counts_csv(report)),
        (CERTIFICATE_PAGE, Some(certificate_html(&certificate))),
        (CERTIFICATE, Some(certificate.to_json())),
    ];
    for (name, text) in expected {
        let found = files.get(name).map(Vec::as_slice);
        if found != text.as_deref().map(str::as_bytes) {
            faults.push(format!("{name} does not follow from the windows"));
            if name == "result.json" {
                let stated = found.and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
                faults.extend(
                    stated
                        .iter()
                        .flat_map(|stated| differences(name, stated, report)),
                );
            }
        }
    }
    faults
}

/// The places at which a stated value differs from the one that the windows give, one sentence each; `path` names the
/// value.
pub fn differences(path: &str, stated: &impl Serialize, own: &impl Serialize) -> Vec<String> {
    let value = "it holds only string keys, so that it is always JSON";
    let stated = serde_json::to_value(stated).expect(value);
    let own = serde_json::to_value(own).expect(value);
    let mut faults = Vec::new();
    add_differences(path, &stated, &own, &mut faults);
    faults
}

/// Adds each place at which two values differ.
fn add_differences(path: &str, stated: &Value, own: &Value, faults: &mut Vec<String>) {
    if stated == own || faults.len() >= FAULTS_MAX {
        return;
    }
    let none = Value::Null;
    match (stated, own) {
        (Value::Object(stated), Value::Object(own)) => {
            let added = own.keys().filter(|key| !stated.contains_key(*key));
            for key in stated.keys().chain(added) {
                let [stated, own] = [stated, own].map(|map| map.get(key).unwrap_or(&none));
                add_differences(&format!("{path}: {key}"), stated, own, faults);
            }
        }
        (Value::Array(stated), Value::Array(own)) if stated.len() == own.len() => {
            for (at, (stated, own)) in stated.iter().zip(own).enumerate() {
                add_differences(&format!("{path}[{at}]"), stated, own, faults);
            }
        }
        _ => faults.push(format!(
            "{path} is {}, the windows give {}",
            short(stated),
            short(own)
        )),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Number of numbers in a value.
fn leaves(value: &Value) -> u64 {
    match value {
        Value::Object(map) => map.values().map(leaves).sum(),
        Value::Array(list) => list.iter().map(leaves).sum(),
        Value::Number(_) => 1,
        Value::Null | Value::Bool(_) | Value::String(_) => 0,
    }
}
