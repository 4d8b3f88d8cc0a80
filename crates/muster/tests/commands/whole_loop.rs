//! `muster check --loop`: one device of each fleet, to the platform and back.

use crate::program::{Said, folder_with, muster};

const SCENARIO: &str = r#"
name: loop
platform:
  kind: gateway
  dialect: DIALECT
  devices: [ "SCHEME://127.0.0.1:0" ]
fleet:
  - name: meters
    count: 500
    tenant: t1
    streams:
      - { name: readings, rate: 1000/s, timeout: 2s }
      - { name: alarms, kind: event, rate: 0.1/s, timeout: 2s }
phases: { measure: 10m, settle: { at-most: 4s, quiet: 3s } }
"#;

fn checked(dialect: &str, scheme: &str, behaviour: &str) -> Said {
    let text = SCENARIO
        .replace("DIALECT", dialect)
        .replace("SCHEME", scheme);
    let folder = folder_with(&text);
    let behaviour = format!("platform.behaviour={behaviour}");
    let arguments = ["check", "scenario.yaml", "--loop", "--set", &behaviour];
    muster(folder.path(), &arguments)
}

fn line<'a>(said: &'a Said, stream: &str) -> &'a str {
    let mut lines = said.out.lines();
    let line = lines.find(|line| line.contains(&format!("{stream}: ")));
    line.unwrap_or_else(|| panic!("{stream} is not told: {said:?}"))
}

#[test]
fn what_comes_through_is_told_with_its_times() {
    for (dialect, scheme) in [("mqtt", "mqtt"), ("hono", "coap")] {
        let said = checked(dialect, scheme, "{}");
        assert_eq!(said.code, 0, "{said:?}");
        for stream in ["meters/readings", "meters/alarms"] {
            let line = line(&said, stream);
            assert!(line.starts_with("ok "), "{line}");
            assert!(line.contains("accepted within"), "{line}");
            assert!(line.contains("seen within"), "{line}");
        }
    }
}

#[test]
fn where_a_message_ends_is_told() {
    for (behaviour, code, start, words) in [
        (
            "{ reject: { code: 0x87, share: 100% } }",
            2,
            "refused",
            "0x87",
        ),
        (
            "{ lose-after-accept: 2 }",
            4,
            "lost",
            "not seen at the backend",
        ),
        ("{ drop: 2 }", 4, "silent", "not answered"),
    ] {
        let said = checked("mqtt", "mqtt", behaviour);
        assert_eq!(said.code, code, "{said:?}");
        let line = line(&said, "meters/readings");
        assert!(line.starts_with(start) && line.contains(words), "{line}");
    }
}

#[test]
fn a_refusal_is_told_with_what_it_means_there() {
    let said = checked("hono", "coap", "{ reject: { code: 4.04, share: 100% } }");
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.out.contains("see `muster provision`"), "{}", said.out);
}
