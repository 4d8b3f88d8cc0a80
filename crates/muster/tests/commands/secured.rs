//! `muster check` where TLS and the scenario differ, and with every credential.

use std::path::Path;

use crate::certificates::{Authority, p256, unchanged};
use crate::program::{Gateway, Said, folder_with, muster};

const SCENARIO: &str = r#"
name: secured
platform: { kind: mqtt, devices: [ "DEVICES" ]TLS }
fleet:
  - name: meters
    count: COUNT
    connect: { timeout: 2s }
    CREDENTIAL
    streams: [ { kind: telemetry, rate: 10/s, qos: 1 } ]
phases: { measure: 1s }
"#;

fn scenario(devices: &str, tls: &str) -> String {
    let text = SCENARIO.replace("DEVICES", devices).replace("TLS", tls);
    text.replace("COUNT", "2").replace("CREDENTIAL", "")
}

/// A gateway with a certificate for `localhost`; the authority that signed it is in the folder.
fn certified(folder: &Path) -> Gateway {
    let authority = Authority::new("authority");
    authority.write_ca(folder);
    authority.write(&folder.join("server"), "server", &p256(), unchanged);
    let path = |name: &str| folder.join(name).display().to_string();
    Gateway::start(&["--cert", &path("server.pem"), "--key", &path("server.key")])
}

fn checked(folder: &Path, text: &str, options: &[&str]) -> Said {
    std::fs::write(folder.join("scenario.yaml"), text).expect("the scenario is written");
    muster(folder, &[&["check", "scenario.yaml"], options].concat())
}

#[test]
fn a_wrong_authority_and_a_wrong_name_are_told_with_their_keys() {
    let folder = folder_with("");
    let path = folder.path();
    let gateway = certified(path);
    std::fs::rename(path.join("ca.pem"), path.join("right.pem")).expect("it is there");
    Authority::new("somebody else").write_ca(path);
    for (tls, key) in [
        (
            ", tls: { ca: ca.pem, server-name: localhost }",
            "`platform.tls.ca`",
        ),
        (", tls: { server-name: localhost }", "`platform.tls.ca`"),
        (", tls: { ca: right.pem }", "`platform.tls.server-name`"),
    ] {
        let text = scenario(&gateway.url, tls);
        let said = checked(path, &text, &[]);
        assert_eq!(said.code, 4, "{said:?}");
        assert!(said.out.contains(key), "{}", said.out);
        let said = muster(path, &["run", "scenario.yaml", "--quiet", "--out", "out"]);
        let result = std::fs::read_to_string(path.join("out/result.json")).expect("a result");
        assert!(result.contains(key), "{said:?}");
        std::fs::remove_dir_all(path.join("out")).expect("it is there");
    }
    let text = scenario(
        &gateway.url,
        ", tls: { ca: right.pem, server-name: localhost }",
    );
    let said = checked(path, &text, &[]);
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn a_backend_with_a_wrong_authority_is_told_with_its_own_key() {
    let folder = folder_with("");
    let path = folder.path();
    let (plain, gateway) = (Gateway::start::<&str>(&[]), certified(path));
    let backend = format!(
        ", backend: {{ url: '{}', filter: 'muster/#', tls: {{ server-name: localhost }} }}",
        gateway.url
    );
    let said = checked(path, &scenario(&plain.url, &backend), &[]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(
        said.out.contains("`platform.backend.tls.ca`"),
        "{}",
        said.out
    );
}

#[test]
fn the_scheme_of_the_other_kind_of_port_is_told_with_the_right_one() {
    let folder = folder_with("");
    let path = folder.path();
    let (plain, secured) = (Gateway::start::<&str>(&[]), certified(path));
    let insecure = ", tls: { insecure: true }";
    for (url, tls, told) in [
        (
            plain.url.replace("mqtt:", "mqtts:"),
            insecure,
            "write `mqtt://`",
        ),
        (
            secured.url.replace("mqtts:", "mqtt:"),
            "",
            "write `mqtts://`",
        ),
        (secured.url.replace("mqtts:", "ws:"), "", "write `wss://`"),
    ] {
        let said = checked(path, &scenario(&url, tls), &[]);
        assert_ne!(said.code, 0, "{url}");
        assert!(said.out.contains(told), "{url}: {}", said.out);
    }
}

#[test]
fn each_link_is_tried_with_its_own_credential() {
    let folder = folder_with("");
    let path = folder.path();
    let count = 300;
    let (mut users, mut table) = (String::new(), "user,pass\n".to_owned());
    for at in 0..count {
        users.push_str(&format!("user{at}:right\n"));
        let pass = if [7, 299].contains(&at) {
            "wrong"
        } else {
            "right"
        };
        table.push_str(&format!("user{at},{pass}\n"));
    }
    std::fs::write(path.join("users"), users).expect("it is written");
    std::fs::write(path.join("devices.csv"), table).expect("it is written");
    let users = path.join("users");
    let gateway = Gateway::start(&["--users", users.to_str().expect("a path in UTF-8")]);
    let credential =
        "data: devices.csv\n    credential: { kind: password, user: '${user}', secret: '${pass}' }";
    let text = SCENARIO
        .replace("DEVICES", &gateway.url)
        .replace("TLS", "")
        .replace("COUNT", &count.to_string())
        .replace("timeout: 2s", "timeout: 10s, rate: 500/s")
        .replace("CREDENTIAL", credential);
    let said = checked(path, &text, &[]);
    assert_eq!(said.code, 0, "the first link alone is right: {said:?}");
    let said = checked(path, &text, &["--all-links"]);
    assert_eq!(said.code, 2, "{said:?}");
    for line in [
        "failed  fleet `meters`: 298 of 300 links connected",
        "refused 2: CONNACK ",
        "(`meters-00000007`, `meters-00000299`)",
        "see `credential` of fleet `meters`",
    ] {
        assert!(said.out.contains(line), "{line}: {}", said.out);
    }
    assert_eq!(gateway.stop()["connected"], 1 + 1 + 298);
}
