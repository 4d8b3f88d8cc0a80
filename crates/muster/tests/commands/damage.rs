//! A result whose windows were cut or damaged after they were written.

use std::fs;
use std::path::Path;

use crate::program::{folder_with, muster};

const SCENARIO: &str = r#"
name: damaged
fleet:
  - { name: meters, count: 10, streams: [ { kind: telemetry, rate: 100/s, qos: 1 } ] }
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 10s, quiet: 200ms } }
"#;

/// Remarks of `muster report` on the folder `out`; the report itself comes all the same.
fn remarks(folder: &Path, format: &str) -> String {
    let said = muster(folder, &["report", "out", "--format", format]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!said.out.is_empty());
    said.err
}

/// Start of the last record; each begins with its length and a check, four bytes each.
fn last_record(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let length = bytes[at..at + 4].try_into().expect("four bytes");
        let next = at + 8 + u32::from_le_bytes(length) as usize;
        if next >= bytes.len() {
            return at;
        }
        at = next;
    }
}

#[test]
fn a_report_says_which_records_of_the_windows_are_missing() {
    let folder = folder_with(SCENARIO);
    let folder = folder.path();
    muster(folder, &["run", "scenario.yaml", "--quiet", "--out", "out"]);
    let file = folder.join("out/windows.bin");
    let whole = fs::read(&file).expect("the windows are there");
    assert_eq!(remarks(folder, "csv"), "");

    fs::write(&file, &whole[..whole.len() - 3]).expect("cut");
    for format in ["text", "csv"] {
        let said = remarks(folder, format);
        assert!(said.contains("beyond record"), "{said}");
        assert!(said.contains("it is cut or damaged there"), "{said}");
    }

    fs::write(&file, &whole[..last_record(&whole)]).expect("cut between two records");
    let said = remarks(folder, "text");
    assert!(said.contains("before its last record"), "{said}");

    let mut altered = whole.clone();
    altered[whole.len() / 2] ^= 1;
    fs::write(&file, &altered).expect("altered");
    let said = remarks(folder, "html");
    assert!(said.contains("it is cut or damaged there"), "{said}");

    fs::remove_file(&file).expect("removed");
    let said = remarks(folder, "text");
    assert!(said.contains("warning: failed to read"), "{said}");
}
