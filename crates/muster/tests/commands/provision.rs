//! The platform is told of devices: by a command of its own, and by a run.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::program::{Gateway, Said, folder_with, json, muster, program};

const SCENARIO: &str = r#"
name: site
platform: { kind: sap-edge, devices: [ 'mqtt://127.0.0.1:PORT' ] }
provision: { url: 'REST', token: '${file:token.txt}', gateway: muster-gateway, rate: 1000/s, KEYS }
fleet:
  - name: devices
    count: 20
    connect: { rate: 1000/s, timeout: 5s }
    streams: [ { rate: 100/s } ]
phases: { warm-up: 0s, measure: 1s, settle: { at-most: 33s, quiet: 300ms } }
slo: { failure-ratio: 0, connected: 100% }
"#;

/// A gateway that takes only devices it was told of, and a scenario beside the token.
struct Site {
    gateway: Gateway,
    rest: String,
    folder: tempfile::TempDir,
}

impl Site {
    fn start(keys: &str) -> Self {
        let folder = folder_with("");
        let token = folder.path().join("token.txt");
        std::fs::write(&token, "hunter2\n").expect("the token is written");
        let mut gateway = Gateway::start(&[
            "--dialect".as_ref(),
            "sap-edge".as_ref(),
            "--only-provisioned".as_ref(),
            "--rest".as_ref(),
            "127.0.0.1:0".as_ref(),
            "--rest-token".as_ref(),
            token.as_os_str(),
        ]);
        let rest = gateway.next_url();
        let (_, port) = gateway.url.rsplit_once(':').expect("a port");
        let scenario = SCENARIO.replace("PORT", port).replace("REST", &rest);
        let scenario = scenario.replace("KEYS", keys);
        std::fs::write(folder.path().join("scenario.yaml"), scenario).expect("written");
        Self {
            gateway,
            rest,
            folder,
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn provision(&self, action: &str, further: &[&str]) -> Said {
        let mut arguments = vec!["provision", "scenario.yaml", action, "--quiet"];
        arguments.extend(further);
        muster(self.path(), &arguments)
    }

    fn check(&self, further: &[&str]) -> Said {
        let arguments = [&["check", "scenario.yaml"], further].concat();
        muster(self.path(), &arguments)
    }

    fn run(&self, further: &[&str]) -> Said {
        let mut arguments = vec!["run", "scenario.yaml", "--quiet", "--out", "out"];
        arguments.extend(further);
        muster(self.path(), &arguments)
    }

    /// Number of devices that the gateway knows.
    fn devices(&self) -> usize {
        let url = format!("{}/devices?top=1000", self.rest);
        let request = ureq::get(url).header("authorization", "Bearer hunter2");
        let mut answer = request.call().expect("an answer");
        let text = answer.body_mut().read_to_string().expect("text");
        let list: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        list.as_array().expect("a list").len()
    }
}

#[test]
fn create_can_be_repeated_and_remove_takes_away_what_it_created() {
    let site = Site::start("pending: 4");
    let said = site.provision("verify", &[]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("device: 20 missing"), "{said:?}");
    // Somebody else's devices, by a record of their own.
    let said = site.provision("create", &["--set", "fleet.count=5", "--out", "theirs"]);
    assert_eq!(said.code, 0, "{said:?}");
    for told in [
        "device: 15 created, 5 already there",
        "device: 20 already there",
    ] {
        let said = site.provision("create", &[]);
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.out.contains(told), "{said:?}");
    }
    assert_eq!(site.provision("verify", &[]).code, 0);
    let said = site.provision("remove", &[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("device: 15 removed"), "{said:?}");
    assert_eq!(site.devices(), 5);
    let said = site.provision("remove", &["--out", "theirs"]);
    assert!(said.out.contains("sensor type: 1 removed"), "{said:?}");
    assert_eq!(site.devices(), 0);
    let said = site.provision("remove", &["--out", "nowhere"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("nothing to remove"), "{said:?}");
}

#[test]
fn a_creation_that_was_killed_is_taken_up_again_and_removed_whole() {
    let site = Site::start("pending: 2");
    // Slow enough to be in the midst of it: two calls for each of 200 devices, four seconds.
    let arguments = [
        "provision",
        "scenario.yaml",
        "create",
        "--set",
        "fleet.count=200",
    ];
    let mut child = program(site.path(), &arguments)
        .args(["--set", "provision.rate=100/s"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let line = lines.next().expect("progress").expect("text");
    let is_first_tenth = line.starts_with("provision: 2") && line.contains(" of 202, about ");
    assert!(is_first_tenth, "{line}");
    child.kill().expect("it is there");
    child.wait().expect("it ends");
    let there = site.devices();
    assert!((19..200).contains(&there), "{there}");
    let said = site.provision("create", &["--set", "fleet.count=200"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.contains(&format!("{there} already there")),
        "{said:?}"
    );
    assert_eq!(site.devices(), 200);
    let said = site.provision("remove", &[]);
    assert!(said.out.contains("device: 200 removed"), "{said:?}");
    assert_eq!(site.devices(), 0);
}

#[test]
fn a_run_provisions_before_it_connects_and_removes_what_it_created() {
    let site = Site::start("mode: auto, remove: true");
    let said = site.run(&[]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(site.devices(), 0);
    let result = json(&site.path().join("out/result.json"));
    assert_eq!(result["ledger"]["uplink"]["accepted"], 100);
    let events = result["events"].as_array().expect("a list");
    let told = |kind: &str| {
        let event = events.iter().find(|event| event["kind"] == kind);
        event.expect("an event")["detail"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    assert!(told("provisioned").contains("device: 20 created"));
    assert!(told("deprovisioned").contains("device: 20 removed"));
    no_secret(site.path());
    let account = site.gateway.stop();
    assert_eq!(account["refused"], serde_json::json!({}));
}

#[test]
fn devices_that_the_gateway_was_not_told_of_are_refused() {
    let site = Site::start("mode: none");
    let said = site.run(&["--set", "phases.settle.at-most=1s"]);
    assert_eq!(said.code, 1, "{said:?}");
    let result = json(&site.path().join("out/result.json"));
    let failures = result["links"]["connect_failures"]
        .as_object()
        .expect("a map");
    assert_eq!(failures.keys().collect::<Vec<_>>(), ["rejected-0x87"]);
    assert_eq!(result["links"]["connected"], 0);
}

#[test]
fn a_run_that_verifies_begins_only_if_all_devices_are_there() {
    let site = Site::start("mode: verify");
    let said = site.run(&[]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.out.contains("device: 20 missing"), "{said:?}");
    assert!(!site.path().join("out").exists());
    assert_eq!(site.provision("create", &[]).code, 0);
    assert_eq!(site.run(&[]).code, 0);
    assert_eq!(site.devices(), 20, "a run that verifies removes nothing");
}

#[test]
fn a_run_whose_devices_cannot_be_created_ends_before_it_loads() {
    let site = Site::start("mode: auto");
    std::fs::write(site.path().join("token.txt"), "wrong\n").expect("written");
    let said = site.run(&[]);
    assert_eq!(said.code, 4, "{said:?}");
    for part in ["NONE  site", "status 401", "`provision.token`", &site.rest] {
        assert!(said.out.contains(part), "{part}: {said:?}");
    }
    assert!(!site.path().join("out").exists(), "nothing is left behind");
    let said = site.provision("create", &[]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("status 401"), "{said:?}");
    std::fs::remove_file(site.path().join("token.txt")).expect("it was there");
    for arguments in [
        ["run", "scenario.yaml"].as_slice(),
        &["provision", "scenario.yaml", "create"],
    ] {
        let said = muster(site.path(), arguments);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains("token.txt cannot be read"), "{said:?}");
        assert!(said.err.contains("scenario.yaml:4:"), "{said:?}");
    }
}

#[test]
fn a_management_api_that_is_not_there_is_silent() {
    let site = Site::start("mode: auto");
    let set = "provision.url=http://127.0.0.1:1";
    let said = site.provision("create", &["--set", set]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(
        said.err.contains("GET http://127.0.0.1:1/api/v1/gateways"),
        "{said:?}"
    );
    assert_eq!(site.run(&["--set", set]).code, 4);
}

#[test]
fn the_embedded_gateway_is_told_of_its_devices() {
    let folder = folder_with(
        "name: own\nplatform: { dialect: sap-edge }\nprovision: { rate: 1000/s }\n\
         fleet: [ { count: 10, streams: [ { rate: 50/s } ] } ]\n\
         phases: { warm-up: 0s, measure: 1s, settle: { at-most: 33s, quiet: 300ms } }\n",
    );
    let said = muster(
        folder.path(),
        &["run", "scenario.yaml", "--quiet", "--out", "out"],
    );
    assert_eq!(said.code, 0, "{said:?}");
    let result = json(&folder.path().join("out/result.json"));
    assert_eq!(result["ledger"]["uplink"]["accepted"], 50);
    let text = std::fs::read_to_string(folder.path().join("out/provisioned.jsonl"));
    assert_eq!(text.expect("a record").lines().count(), 1 + 12 * 3);
    let said = muster(folder.path(), &["provision", "scenario.yaml", "create"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("lives no longer than a run"), "{said:?}");
    assert!(said.err.contains("use `kind: sap-edge`"), "{said:?}");
}

#[test]
fn the_embedded_gateway_of_hono_is_not_told_and_the_remedy_is_honos() {
    let folder = folder_with(
        "name: own\nplatform: { dialect: hono, devices: [ 'coap://127.0.0.1:0' ] }\n\
         fleet: [ { count: 10, streams: [ { rate: 50/s } ] } ]\n",
    );
    let said = muster(folder.path(), &["provision", "scenario.yaml", "create"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("use `kind: hono`"), "{said:?}");
    assert!(!said.err.contains("sap-edge"), "{said:?}");
}

/// The remedy names keys that the scenario takes.
#[test]
fn who_has_no_address_of_the_platform_hears_which_keys_name_it() {
    let scenario = |provision: &str| {
        folder_with(&format!(
            "name: h\nplatform: {{ kind: hono, devices: [ 'coap://127.0.0.1' ] }}\n{provision}\
             fleet: [ {{ streams: [] }} ]\n"
        ))
    };
    let hono = scenario("");
    let said = muster(hono.path(), &["provision", "scenario.yaml", "verify"]);
    assert_eq!(said.code, 2, "{said:?}");
    for key in ["`provision: { url: ... }`", "`provision: { mongodb: ... }`"] {
        assert!(said.err.contains(key), "{said:?}");
    }
    assert!(!said.err.contains("gateway"), "{said:?}");
    let told = scenario("provision: { url: 'http://127.0.0.1:1' }\n");
    let said = muster(told.path(), &["provision", "scenario.yaml", "verify"]);
    assert_eq!(said.code, 4, "{said:?}");
    let site = Site::start("mode: auto");
    let text = std::fs::read_to_string(site.path().join("scenario.yaml")).expect("it is there");
    let without = text.lines().filter(|line| !line.starts_with("provision:"));
    let without: Vec<&str> = without.collect();
    std::fs::write(site.path().join("scenario.yaml"), without.join("\n")).expect("written");
    let said = site.provision("verify", &[]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.err.contains("`provision: { url: ..., gateway: ... }`"),
        "{said:?}"
    );
}

#[test]
fn who_cannot_be_told_is_said_to_be_so() {
    let site = Site::start("mode: auto");
    let part = [
        "--part",
        "1/2",
        "--run-id",
        "1",
        "--start-at",
        "2099-01-01T00:00:00Z",
    ];
    let said = site.run(&part);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.err.contains("would remove devices of the others"),
        "{said:?}"
    );
    let broker = folder_with(
        "name: b\nplatform: { kind: mqtt, devices: [ 'mqtt://127.0.0.1' ] }\nfleet: [ {} ]\n",
    );
    let said = muster(broker.path(), &["provision", "scenario.yaml", "verify"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(
        said.err.contains("mqtt has no API that creates devices"),
        "{said:?}"
    );
    let said = muster(broker.path(), &["gateway", "--rest", "127.0.0.1:0"]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("mqtt has no management API"), "{said:?}");
}

/// No file of a result holds the token.
fn no_secret(folder: &Path) {
    let out = std::fs::read_dir(folder.join("out")).expect("a result");
    let mut seen = 0;
    for entry in out {
        let path = entry.expect("a file").path();
        let bytes = std::fs::read(&path).expect("readable");
        let has_token = bytes.windows(7).any(|part| part == b"hunter2");
        assert!(!has_token, "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 4, "{seen} files");
}

/// The line of the management API, and the code of the check.
fn checked(site: &Site, further: &[&str]) -> (Option<String>, u8) {
    let said = site.check(further);
    let mut lines = said.out.lines();
    let line = lines.find(|line| line.contains("management API:"));
    (line.map(str::to_owned), said.code as u8)
}

#[test]
fn a_check_reads_once_at_the_management_api_and_changes_nothing() {
    let site = Site::start("");
    // Its device is not known yet, and so its CONNECT is refused.
    let (line, code) = checked(&site, &[]);
    let answers = format!("ok      {}, management API: answers", site.rest);
    assert_eq!((line, code), (Some(answers.clone()), 2));
    assert_eq!(site.devices(), 0);
    assert_eq!(site.provision("create", &[]).code, 0);
    assert_eq!(checked(&site, &[]), (Some(answers), 0));
    assert_eq!(site.devices(), 20);
    let without = checked(&site, &["--set", "provision.mode=none"]);
    assert_eq!(without, (None, 0), "a run does not call it");
    let offline = checked(&site, &["--offline"]);
    assert_eq!(offline, (None, 0));
}

#[test]
fn a_management_api_that_refuses_or_is_silent_is_no_success_of_a_check() {
    let site = Site::start("");
    assert_eq!(site.provision("create", &[]).code, 0);
    let nobody = "provision.url='http://127.0.0.1:1'";
    for (value, mark, told, wanted) in [
        (
            "provision.token=stale",
            "refused ",
            ["status 401", "`provision.token`"],
            2,
        ),
        (
            "provision.gateway=edge-9",
            "refused ",
            ["`edge-9`", "`provision.gateway`"],
            2,
        ),
        (nobody, "silent  ", ["efused", "`provision.url`"], 4),
    ] {
        let (line, code) = checked(&site, &["--set", value]);
        let line = line.expect("it is told");
        assert!(line.starts_with(mark), "{line}");
        assert!(told.iter().all(|part| line.contains(part)), "{line}");
        assert!(!line.contains("stale"), "{line}");
        assert_eq!(code, wanted, "{value}");
    }
}

/// The server has a management API, but not that of a Hono.
#[test]
fn a_check_takes_not_every_404_for_a_registry() {
    let mut gateway = Gateway::start(&["--dialect", "sap-edge", "--rest", "127.0.0.1:0"]);
    let rest = gateway.next_url();
    let folder = folder_with(&format!(
        "name: wrong\nplatform: {{ kind: hono, devices: [ 'coap://127.0.0.1:1' ] }}\n\
         provision: {{ url: '{rest}' }}\nfleet: [ {{ count: 1, tenant: t1, streams: [] }} ]\n",
    ));
    for path in ["", "/wrong", "/api/v1"] {
        let set = format!("provision.url={rest}{path}");
        let said = muster(folder.path(), &["check", "scenario.yaml", "--set", &set]);
        let mut lines = said.out.lines();
        let line = lines.find(|line| line.contains("management API:"));
        let line = line.unwrap_or_else(|| panic!("it is told: {said:?}"));
        assert!(
            line.starts_with("refused ") && line.contains("status 404"),
            "{line}"
        );
        assert!(
            line.ends_with("is the base of the management API"),
            "{line}"
        );
    }
}
