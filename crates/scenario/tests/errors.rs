//! Every scenario error: one slip, one problem, with its place, what is wrong and what would be
//! right.
//!
//! `errors.txt` is the table. A section begins with `####` and its title, then a scenario that is
//! right, with `@` where a slip goes. Each slip follows a line of `----`; below it stand the place
//! (`>`), what is wrong (`!`) and what would be right (`?`). `just bless` writes the last three.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write;

use muster_plan::Problem;
use muster_scenario::{Overrides, Problems, Reader, Source, parse};

const TABLE: &str = include_str!("errors.txt");

/// Files and variables in memory.
struct World(BTreeMap<&'static str, &'static [u8]>);

impl Reader for World {
    fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        let found = self.0.get(path).map(|bytes| bytes.to_vec());
        found.ok_or_else(|| "no such file".to_owned())
    }

    fn variable(&self, name: &str) -> Option<String> {
        let set = [("SET", "value"), ("BLANK", "")].into_iter();
        let mut set = set.filter(|(known, _)| *known == name);
        set.next().map(|(_, value)| value.to_owned())
    }
}

fn world() -> World {
    World(BTreeMap::from([
        ("three.csv", &b"serial,zone\n1,a\n2,b\n3,c\n"[..]),
        ("plus.csv", b"serial,zone\n1,a\n2,b+c\n3,d\n"),
        ("broken.csv", b"serial,zone\n1\n"),
        ("latin.csv", b"serial\n\xe9\n"),
        ("taken.csv", b"serial,seq\n1,1\n2,2\n3,3\n"),
        ("nul.csv", b"serial\na\nb\0\nc\n"),
        ("times.csv", b"at\n0.5\n1.5\n"),
        ("backwards.csv", b"1.5\n0.5\n"),
        ("words.csv", b"at\n0.5\nsoon\n"),
        ("empty.csv", b"\n"),
        ("twice.csv", b"serial\n7\n8\n\n7\n"),
        ("gap.csv", b"zone,serial\na,1\nb,\nc,3\n"),
        ("slash.csv", b"serial\na\nb/c\nd\n"),
        ("comma.csv", b"dev,v\n1,1,5\n2,2,5\n3,3,5\n"),
        ("semicolon.csv", b"dev;v\n1;1.5\n2;2,5\n3;3\n"),
        ("utf16.csv", b"\xff\xfea\0"),
        ("control.csv", b"serial\na\n\"\x1b[31m\n+\"\n"),
        ("quotes.csv", b"serial\nA\n\"q\"\"q\"\n"),
        ("wide.csv", b"a\0\n\0"),
        ("odd.csv", b"serial,key\n1,00ff\n\n2,00f\n3,00\n"),
        ("comma-notes.csv", b"0,5;a\n1,5;b\n"),
        ("comma-columns.csv", b"at,note\n0.5,a\n1,5,b\n"),
        ("mac.csv", b"a,b\r1,2\r"),
        ("comma-times.csv", b"0.5\n1,5\n"),
        ("semicolon-times.csv", b"at;note\n0.5;a\n1,5;b\n"),
        ("blank.txt", b" secret\n"),
        ("lines.txt", b"secret\nother\n"),
        ("nothing.txt", b"\n"),
        ("nothing.bin", b""),
        ("body.bin", b"0123456789"),
        ("dollar.txt", b"pa$\n"),
        ("colon.txt", b"me:hunter2\n"),
        (
            "ca.pem",
            b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n",
        ),
    ]))
}

fn problems(text: &str) -> Vec<Problem> {
    let source = Source {
        name: "test.yaml",
        text,
    };
    match parse(source, &Overrides::new(), &world()) {
        Ok(_) => Vec::new(),
        Err(Problems(problems)) => problems,
    }
}

/// The table with every expectation as it is now, and how many slips it has.
fn written_anew() -> (String, usize) {
    let mut out = String::new();
    let mut count = 0;
    for section in TABLE.split("#### ").skip(1) {
        let mut parts = section.split("----\n");
        let head = parts.next().unwrap();
        write!(out, "#### {head}").unwrap();
        let frame = head.split_once('\n').unwrap().1;
        for part in parts {
            let is_slip = |line: &&str| !line.starts_with(['>', '!', '?']);
            let slip = part.lines().filter(is_slip).collect::<Vec<_>>().join("\n");
            let text = frame.replace('@', &slip);
            let found = problems(&text);
            let [problem] = &found[..] else {
                panic!(
                    "{} problems instead of one in:\n{text}\n{found:#?}",
                    found.len()
                );
            };
            check_place(problem, &text);
            writeln!(out, "----\n{slip}\n> {}:{}", problem.line, problem.column).unwrap();
            writeln!(out, "! {}\n? {}", problem.what, problem.help).unwrap();
            count += 1;
        }
    }
    (out, count)
}

fn check_place(problem: &Problem, text: &str) {
    assert_eq!(problem.file, "test.yaml");
    let line = text
        .lines()
        .nth(problem.line as usize - 1)
        .unwrap_or_default();
    let shown: Vec<char> = problem.text.chars().collect();
    let whole: Vec<char> = line.chars().collect();
    let is_line = shown.len() == whole.len();
    let mut pairs = shown.iter().zip(&whole);
    assert!(
        is_line && pairs.all(|(shown, whole)| shown == whole || *shown == '*'),
        "{} is not {line}",
        problem.text
    );
    for secret in ["secret: x", "hunter2", "hex: \"0"] {
        assert!(!problem.text.contains(secret), "{}", problem.text);
    }
    let after = problem.column as usize - 1 + problem.length as usize;
    assert!(
        after <= line.chars().count().max(1),
        "the caret leaves the line: {problem}"
    );
}

#[test]
fn each_slip_is_one_problem_with_place_cause_and_cure() {
    let (now, count) = written_anew();
    assert!(count >= 60, "only {count} slips");
    if std::env::var_os("MUSTER_BLESS").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/errors.txt");
        std::fs::write(path, &now).unwrap();
    } else {
        assert!(
            now == TABLE,
            "the table differs; `just bless` writes it anew:\n{now}"
        );
    }
}

#[test]
fn a_password_in_an_address_is_shown_nowhere() {
    let text = "name: t\nplatform: { kind: hono, devices: [ 'coap://h' ] }\n\
                provision: { url: 'https://me:hunter2@h' }\nfleet: [ { streams: [] } ]\n";
    let found = problems(text);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].help.contains("`user` and `password`"),
        "{found:#?}"
    );
    assert!(!Problems(found).to_string().contains("hunter2"));
}

#[test]
fn a_problem_is_shown_with_its_line() {
    let text = "name: t\nfleet:\n  - streams:\n      - { rate: 5/s, qos: high }\n";
    insta::assert_snapshot!(Problems(problems(text)), @"
    error: `high` is no whole number
     --> test.yaml:4:27
      |
    4 |       - { rate: 5/s, qos: high }
      |                           ^^^^
      = key: fleet[0].streams[0].qos
      = help: a whole number from 0 to 2

    1 problem in the scenario
    ");
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let stream =
        |keys: &str| format!("name: t\nfleet: [ {{ streams: [ {{ rate: 1/s, {keys} }} ] }} ]");
    assert_eq!(
        problems(&stream("qos: 3, timeout: soon, phase: random, kin: event")).len(),
        4
    );
    assert_eq!(
        problems(&stream(
            "topic: a/+, payload: { size: 5 }, retry: 5, qos: 0"
        ))
        .len(),
        3
    );
    assert_eq!(problems("").len(), 2);
}

#[test]
fn no_more_than_256_streams_have_an_id() {
    let streams = "{ rate: 1/s }, ".repeat(257);
    let found = problems(&format!("name: t\nfleet:\n  - streams: [ {streams} ]\n"));
    assert!(
        found
            .iter()
            .any(|problem| problem.what.contains("257 streams"))
    );
}
