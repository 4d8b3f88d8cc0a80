//! `muster verify`: what Muster wrote follows from its windows, and nothing else does.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;

use muster_judge::{Allowance, SloBound};
use muster_measure::{Record, Records, encode_record};
use muster_report::{Report, certificate_html, html};
use muster_result::certificate::certify;
use muster_result::{Archive, encoded};
use proptest::prelude::*;
use rcgen::{KeyPair, PKCS_ED25519};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Said, folder_with, json as read, muster, program, signal};

/// A second of 100 messages; no rule on time decides.
const SCENARIO: &str = r#"
name: certified
platform: { kind: gateway }
fleet:
  - { name: meters, count: 10, streams: [ { kind: telemetry, rate: 100/s, qos: 1 } ] }
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 10s, quiet: 200ms } }
slo: { loss: 0 }
"#;

/// One signed run, from which each test takes a copy.
static RUN: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = folder_with(SCENARIO);
    for name in ["key", "other"] {
        let key = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
        let at = |end: &str| folder.path().join(format!("{name}{end}"));
        fs::write(at(".pem"), key.serialize_pem()).expect("it is written");
        fs::write(at(".pub"), key.public_key_pem()).expect("it is written");
    }
    let options = [
        "run",
        "scenario.yaml",
        "--quiet",
        "--out",
        "run",
        "--sign",
        "key.pem",
    ];
    let said = muster(folder.path(), &options);
    assert_eq!(said.code, 0, "{said:?}");
    folder
});

fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(RUN.path().join("run")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        fs::copy(&path, folder.path().join(name)).expect("it is copied");
    }
    folder
}

fn key(name: &str) -> String {
    RUN.path().join(name).display().to_string()
}

fn verify(folder: &Path, more: &[&str]) -> Said {
    muster(folder, &[&["verify", "."], more].concat())
}

fn assert_refused(folder: &Path, why: &str) {
    let said = verify(folder, &[]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.starts_with("NOT VERIFIED"), "{}", said.out);
    assert!(said.out.contains(why), "{why}: {}", said.out);
}

#[test]
fn what_muster_wrote_is_verified() {
    let folder = copy();
    let said = verify(folder.path(), &[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.starts_with("INTERNALLY CONSISTENT"),
        "{}",
        said.out
    );
    assert!(said.out.contains("not checked"), "{}", said.out);
    let said = verify(folder.path(), &["--key", &key("key.pub")]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("AUTHENTIC"), "{}", said.out);
    let certificate = read(&folder.path().join("certificate.json"));
    assert_eq!(certificate["schema"], "muster-certificate/1");
    assert_eq!(certificate["verdict"]["result"], "pass");
    let page = fs::read_to_string(folder.path().join("certificate.html")).expect("a page");
    assert!(page.contains("<title>pass: certified</title>"));
}

#[test]
fn an_unsigned_certificate_is_never_authentic() {
    let folder = copy();
    fs::remove_file(folder.path().join("certificate.sig")).expect("it is there");
    let said = verify(folder.path(), &[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("not signed"), "{}", said.out);
    assert!(!said.out.contains("AUTHENTIC"), "{}", said.out);
    let said = verify(folder.path(), &["--key", &key("key.pub")]);
    assert_eq!(said.code, 1, "{said:?}");
}

#[test]
fn the_signature_of_another_key_is_refused() {
    let folder = copy();
    let said = verify(folder.path(), &["--key", &key("other.pub")]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("not of this key"), "{}", said.out);
    let said = verify(folder.path(), &["--key", &key("key.pem")]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("openssl"), "{}", said.err);
}

#[test]
fn files_that_were_exchanged_removed_or_added_are_refused() {
    let folder = copy();
    fs::write(folder.path().join("more.json"), "{}").expect("it is written");
    assert_refused(folder.path(), "more.json was added");
    for name in ["windows.bin", "result.json", "report.html", "gateway.json"] {
        let folder = copy();
        let path = folder.path().join(name);
        fs::remove_file(&path).expect("it is there");
        assert_refused(folder.path(), &format!("{name} is listed and missing"));
        fs::copy(folder.path().join("certificate.html"), &path).expect("it is copied");
        assert_refused(
            folder.path(),
            &format!("{name} is not the file that was certified"),
        );
    }
    let folder = copy();
    fs::remove_file(folder.path().join("certificate.html")).expect("it is there");
    assert_refused(folder.path(), "certificate.html does not follow");
}

/// A bound that was changed in the header, its checksum set right, and all other files written anew: only the
/// digest of the plan still says what it was.
#[test]
fn a_run_that_was_judged_by_another_bound_is_refused() {
    let folder = copy();
    let path = folder.path().join("windows.bin");
    let bytes = fs::read(&path).expect("windows");
    let mut records = Records::new(&bytes);
    records.next().expect("a header");
    let rest = &bytes[records.bytes_read()..];
    let mut header = Archive::read(&bytes, "windows.bin").expect("a run").header;
    let bounds = header.plan.rules.slos.iter_mut().map(|slo| &mut slo.bound);
    let loss = bounds.filter(|bound| matches!(bound, SloBound::Loss(_)));
    let replaced = loss.map(|bound| *bound = SloBound::Loss(Allowance::Count(7)));
    assert!(replaced.count() > 0, "a bound was changed");
    let mut forged = Vec::new();
    encode_record(&Record::Header(encoded(&header)), &mut forged).expect("a record");
    forged.extend_from_slice(rest);
    fs::write(&path, &forged).expect("it is written");
    assert_refused(folder.path(), "windows.bin is not the file");
    list_again(folder.path(), "windows.bin");
    assert_refused(folder.path(), "certificate.json: declared");
    let report = Archive::read(&forged, "windows.bin").and_then(|archive| archive.report());
    let report = report.expect("a report");
    write_anew(folder.path(), &report);
    assert_refused(
        folder.path(),
        "resolved_sha256 is not the digest of the plan and the rules",
    );
}

/// Writes result and certificate as if the report were the true one.
fn write_anew(folder: &Path, report: &Report) {
    let put = |name: &str, text: &str| fs::write(folder.join(name), text).expect("it is written");
    put("result.json", &report.to_json());
    put("report.html", &html(report));
    let names = fs::read_dir(folder).expect("a folder");
    let files = names.map(|entry| {
        let entry = entry.expect("an entry");
        let bytes = fs::read(entry.path()).expect("a file");
        (entry.file_name().to_string_lossy().into_owned(), bytes)
    });
    let certificate = certify(report, &files.collect());
    put("certificate.json", &certificate.to_json());
    put("certificate.html", &certificate_html(&certificate));
}

/// A search that was interrupted behind its first step, and again behind its second one: two runs.
static SEARCH: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = folder_with(SCENARIO);
    interrupt_after_a_step(folder.path(), &["--from", "100/s", "--out", "run"]);
    interrupt_after_a_step(folder.path(), &["--resume", "run"]);
    folder
});

/// Searches until a step is judged, and ends the search then.
fn interrupt_after_a_step(folder: &Path, arguments: &[&str]) {
    let mut search = program(folder, &["capacity", "scenario.yaml"])
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let out = BufReader::new(search.stdout.take().expect("its output is piped"));
    let mut lines = out.lines().map(|line| line.expect("it tells"));
    let step = lines.find(|line| line.starts_with("step"));
    assert!(step.is_some(), "it ends before a step");
    signal(&search, Signal::INT);
    let rest: Vec<String> = lines.collect();
    search.wait().expect("it ends");
    assert!(
        rest.iter().any(|line| line.starts_with("answer")),
        "{rest:?}"
    );
}

/// A copy of the search, with the folder of its first run in its own.
fn copy_of_search() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let run = SEARCH.path().join("run");
    fs::create_dir(folder.path().join("run-1")).expect("a folder");
    for part in ["", "run-1"] {
        for entry in fs::read_dir(run.join(part)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                let name = path.file_name().expect("a name");
                fs::copy(&path, folder.path().join(part).join(name)).expect("it is copied");
            }
        }
    }
    folder
}

#[test]
fn what_a_search_wrote_is_verified_with_its_answer() {
    let folder = copy_of_search();
    let run = folder.path();
    for of in ["", "run-1"] {
        let said = verify(&run.join(of), &[]);
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.out.contains("capacity.json"), "{}", said.out);
    }
    let result = read(&run.join("result.json"));
    assert_eq!(result["environment"]["load"], "searched");
    let answer = run.join("capacity.json");
    let text = fs::read_to_string(&answer).expect("an answer");
    let forged = text.replacen("\"load\": 100.0", "\"load\": 70.0", 1);
    assert_ne!(text, forged);
    fs::write(&answer, forged).expect("it is written");
    list_again(run, "capacity.json");
    assert_refused(run, "capacity.json does not follow from search.jsonl");
}

#[test]
fn a_search_without_the_windows_of_an_earlier_run_is_refused() {
    let folder = copy_of_search();
    fs::remove_file(folder.path().join("run-1/windows.bin")).expect("it is there");
    assert_refused(folder.path(), "run-1/windows.bin");
    fs::remove_dir_all(folder.path().join("run-1")).expect("it is there");
    assert_refused(folder.path(), "search.jsonl");
}

#[test]
fn a_run_without_its_certificate_is_not_verified_and_a_folder_without_a_run_is_a_usage_error() {
    let folder = copy();
    fs::remove_file(folder.path().join("certificate.json")).expect("it is there");
    assert_refused(folder.path(), "certificate.json is missing");
    let folder = tempfile::tempdir().expect("a folder");
    let said = verify(folder.path(), &[]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("certificate.json"), "{}", said.err);
}

#[test]
fn a_key_that_is_none_is_refused_before_the_run() {
    let folder = folder_with(SCENARIO);
    fs::write(folder.path().join("key.pem"), "no key").expect("it is written");
    let options = ["run", "scenario.yaml", "--out", "run", "--sign", "key.pem"];
    let said = muster(folder.path(), &options);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("openssl genpkey"), "{}", said.err);
    assert!(!folder.path().join("run").exists());
}

/// The places of all plain values in a document.
pub(crate) fn places(value: &Value, path: &str, into: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(inner, &format!("{path}/{key}"), into);
            }
        }
        Value::Array(list) => {
            for (at, inner) in list.iter().enumerate() {
                places(inner, &format!("{path}/{at}"), into);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            into.push(path.to_owned());
        }
    }
}

/// Another value of the same kind.
pub(crate) fn other(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64().unwrap_or(0.0) + 1.0),
        Value::Bool(is) => json!(!is),
        Value::String(text) => json!(format!("{text}0")),
        Value::Null | Value::Array(_) | Value::Object(_) => json!(1),
    }
}

/// Changes one plain value of a document and writes it as it was written.
fn alter(path: &Path, at: prop::sample::Index) -> String {
    let mut document = read(path);
    let place = alter_value(&mut document, at);
    fs::write(
        path,
        serde_json::to_string_pretty(&document).expect("JSON") + "\n",
    )
    .expect("it is written");
    place
}

fn alter_value(document: &mut Value, at: prop::sample::Index) -> String {
    let mut all = Vec::new();
    places(document, "", &mut all);
    let place = at.get(&all).clone();
    let value = document.pointer_mut(&place).expect("a place");
    *value = other(value);
    place
}

/// Makes the certificate list a file as it now is, as a forger would.
fn list_again(folder: &Path, name: &str) {
    let bytes = fs::read(folder.join(name)).expect("a file");
    let path = folder.join("certificate.json");
    let mut certificate = read(&path);
    certificate["files"][name] = json!({
        "sha256": muster_result::sha256(&bytes),
        "bytes": bytes.len(),
    });
    fs::write(
        path,
        serde_json::to_string_pretty(&certificate).expect("JSON") + "\n",
    )
    .expect("it is written");
}

/// Changes one plain value in a line of a journal.
fn alter_line(path: &Path, line: prop::sample::Index, at: prop::sample::Index) -> String {
    let text = fs::read_to_string(path).expect("a journal");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let line = line.index(lines.len());
    let mut document = serde_json::from_str(&lines[line]).expect("JSON");
    let place = alter_value(&mut document, at);
    lines[line] = document.to_string();
    fs::write(path, lines.join("\n") + "\n").expect("it is written");
    format!("line {}: {place}", line + 1)
}

fn flip(path: &PathBuf, at: prop::sample::Index, bit: u8) {
    let mut bytes = fs::read(path).expect("a file");
    let at = at.index(bytes.len());
    bytes[at] ^= 1 << bit;
    fs::write(path, bytes).expect("it is written");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// No value of the certificate or of the result can be altered, a rule's bound or a figure, even if the file
    /// is listed anew.
    #[test]
    fn an_altered_figure_or_rule_is_refused(at: prop::sample::Index, in_certificate: bool, is_listed: bool) {
        let folder = copy();
        let name = if in_certificate { "certificate.json" } else { "result.json" };
        let place = alter(&folder.path().join(name), at);
        if is_listed && !in_certificate {
            list_again(folder.path(), name);
        }
        let said = verify(folder.path(), &[]);
        // A certificate of another schema, version or form is no certificate.
        prop_assert!(said.code == 1 || (in_certificate && said.code == 2), "{place}: {said:?}");
    }

    /// No value of a search can be altered: not of its journals, which the windows of each run give, and not of its answer.
    #[test]
    fn an_altered_value_of_a_search_is_refused(
        file in 0_usize..3,
        line: prop::sample::Index,
        at: prop::sample::Index,
    ) {
        let folder = copy_of_search();
        let name = ["search.jsonl", "run-1/search.jsonl", "capacity.json"][file];
        let path = folder.path().join(name);
        let place = match name {
            "capacity.json" => alter(&path, at),
            _ => alter_line(&path, line, at),
        };
        // The certificate of the search does not list the files of its earlier runs.
        if !name.starts_with("run-1") {
            list_again(folder.path(), name);
        }
        let said = verify(folder.path(), &[]);
        prop_assert_eq!(said.code, 1, "{}: {}: {:?}", name, place, said);
    }

    /// No bit of the windows can be altered, even if the file is listed anew.
    #[test]
    fn altered_windows_are_refused(at: prop::sample::Index, bit in 0_u8..8, is_listed: bool) {
        let folder = copy();
        flip(&folder.path().join("windows.bin"), at, bit);
        if is_listed {
            list_again(folder.path(), "windows.bin");
        }
        let said = verify(folder.path(), &[]);
        prop_assert_eq!(said.code, 1, "{:?}", said);
    }
}
