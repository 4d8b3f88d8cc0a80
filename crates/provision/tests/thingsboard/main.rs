//! Devices of ThingsBoard: created, verified and removed at a tenant that may misbehave.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../surroundings/page.rs"]
mod page;
mod server;

use std::io::Write as _;
use std::sync::Mutex;

use muster_plan::Plan;
use muster_provision::{
    JOURNAL, Journal, ProvisionError, Provisioner, Summary, Watch, provisioner,
};

use self::page::plan_of;
use self::server::{PASSWORD, Server};

/// Waits for the end, and keeps the remarks.
#[derive(Default)]
struct Patient(Mutex<Vec<String>>);

impl Watch for Patient {
    fn progress(&self, done: u64, of: u64) {
        assert!(done <= of, "{done} of {of}");
    }

    fn is_over(&self) -> bool {
        false
    }

    fn remark(&self, what: &str) {
        self.0.lock().unwrap().push(what.to_owned());
    }
}

struct World {
    server: Server,
    fleet: String,
    keys: String,
    folder: tempfile::TempDir,
}

impl World {
    fn start(fleet: &str, keys: &str) -> Self {
        Self::at(Server::start(), fleet, keys)
    }

    /// The same tenant, used by somebody else.
    fn at(server: Server, fleet: &str, keys: &str) -> Self {
        Self {
            server,
            fleet: fleet.to_owned(),
            keys: keys.to_owned(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn plan(&self) -> Plan {
        let password = match self.keys.contains("password") {
            true => String::new(),
            false => format!(", password: {PASSWORD}"),
        };
        let text = format!(
            "name: t\nplatform: {{ kind: thingsboard, devices: [ 'mqtt://127.0.0.1' ] }}\n\
             provision: {{ url: '{}', rate: 100000/s, user: t@example.org{password}{} }}\n\
             fleet: [ {{ {}, streams: [] }} ]\n",
            self.server.url, self.keys, self.fleet
        );
        plan_of(&text)
    }

    fn provisioner(&self) -> Box<dyn Provisioner> {
        provisioner(&self.plan()).unwrap().unwrap()
    }

    fn journal(&self) -> Journal {
        Journal::open(self.folder.path(), &self.server.url).unwrap()
    }

    fn create(&self) -> Result<Summary, ProvisionError> {
        let watch = Patient::default();
        self.provisioner()
            .create(&self.plan(), &self.journal(), &watch)
    }

    fn verify(&self) -> Result<Summary, ProvisionError> {
        self.provisioner().verify(&self.plan(), &Patient::default())
    }

    fn remove(&self) -> Result<Summary, ProvisionError> {
        self.provisioner()
            .remove(&self.journal(), &Patient::default())
    }

    /// Puts a line at the end of the record, as a killed process leaves it.
    fn append(&self, line: &str) {
        drop(self.journal());
        let path = self.folder.path().join(JOURNAL);
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    fn names(&self) -> Vec<String> {
        self.server.held().devices.keys().cloned().collect()
    }
}

const PLAIN: &str = "count: 3, id: 'DW${index:08}'";
const BULK: &str = ", bulk: 2, pending: 1";

#[test]
fn devices_are_created_once_and_removed() {
    for keys in ["", BULK] {
        let world = World::start(PLAIN, keys);
        assert_eq!(world.create().unwrap().to_string(), "device: 3 created");
        assert_eq!(world.names(), ["DW00000000", "DW00000001", "DW00000002"]);
        // They are kept by device ids, which calls at the same time get in any order.
        let mut tokens: Vec<_> = world.server.held().tokens.values().cloned().collect();
        tokens.sort_unstable();
        assert_eq!(tokens, world.names());
        assert_eq!(
            world.create().unwrap().to_string(),
            "device: 3 already there"
        );
        assert_eq!(
            world.verify().unwrap().to_string(),
            "device: 3 already there"
        );
        assert_eq!(world.remove().unwrap().to_string(), "device: 3 removed");
        assert!(world.names().is_empty());
        assert_eq!(world.remove().unwrap().to_string(), "nothing");
    }
}

#[test]
fn a_missing_device_takes_one_call() {
    let world = World::start("count: 1", ", pending: 1");
    world.create().unwrap();
    let calls = [
        "POST /api/auth/login",
        "GET /api/auth/user",
        "POST /api/device",
    ];
    assert_eq!(world.server.held().calls, calls);
}

#[test]
fn gateways_are_marked_and_their_devices_are_there_before_them() {
    let world = World::start(&format!("{PLAIN}, gateway: {{ devices: 2 }}"), BULK);
    assert_eq!(world.create().unwrap().to_string(), "device: 5 created");
    let held = world.server.held();
    for (name, is_gateway) in [("GW00000001", true), ("DW00000001", false)] {
        assert_eq!(
            held.devices[name]["additionalInfo"]["gateway"], is_gateway,
            "{name}"
        );
    }
}

#[test]
fn profile_and_customers_are_made_and_removed_with_the_devices() {
    let world = World::start(PLAIN, ", profile: smart-meter, customers: 2");
    let summary = world.create().unwrap().to_string();
    let wanted = "customer: 2 created; device: 3 created; device profile: 1 created";
    assert_eq!(summary, wanted);
    assert_eq!(
        world.verify().unwrap().to_string(),
        wanted.replace("created", "already there")
    );
    let customer = |name: &str| world.server.held().devices[name]["customerId"]["id"].clone();
    assert_eq!(customer("DW00000000"), customer("DW00000002"));
    assert_ne!(customer("DW00000000"), customer("DW00000001"));
    assert_eq!(
        world.server.held().devices["DW00000000"]["type"],
        "smart-meter"
    );
    assert_eq!(
        world.remove().unwrap().to_string(),
        wanted.replace("created", "removed")
    );
    let held = world.server.held();
    assert_eq!((held.profiles.len(), held.customers.len()), (1, 0));
}

/// A device whose creation was cut off has the marker of its run and is ours; others that have its name are not.
#[test]
fn only_what_this_run_made_is_removed() {
    for keys in ["", BULK] {
        let world = World::start(PLAIN, keys);
        let others = World::at(world.server.clone(), "count: 1, id: 'DW${index:08}'", "");
        others.create().unwrap();
        world.append(r#"{"did":"creating","kind":"device","key":"DW00000000","id":"0000"}"#);
        let counts = world.create().unwrap().kinds["device"];
        assert_eq!((counts.created, counts.already_there), (2, 1));
        assert_eq!(world.remove().unwrap().kinds["device"].removed, 2);
        assert_eq!(world.names(), ["DW00000000"]);

        others.append(r#"{"did":"removed","kind":"device","key":"DW00000000"}"#);
        let description =
            world.server.held().devices["DW00000000"]["additionalInfo"]["description"].clone();
        let marker = description
            .as_str()
            .unwrap()
            .rsplit(' ')
            .next()
            .unwrap()
            .to_owned();
        others.append(&format!(
            r#"{{"did":"creating","kind":"device","key":"DW00000000","id":"{marker}"}}"#
        ));
        assert_eq!(others.remove().unwrap().kinds["device"].removed, 1);
    }
}

#[test]
fn a_device_that_is_there_with_another_token_is_a_conflict() {
    for keys in ["", BULK] {
        let world = World::start(PLAIN, "");
        world.create().unwrap();
        let secret = format!("{PLAIN}, credential: {{ kind: token, secret: 's-${{index}}' }}");
        let other = World::at(world.server.clone(), &secret, keys);
        let error = other.create().unwrap_err().to_string();
        assert!(
            error.contains("differs: its access token is another one"),
            "{error}"
        );
        assert!(!error.contains("s-0"), "{error}");
        assert_eq!(other.verify().unwrap().kinds["device"].different, 3);
    }
}

#[test]
fn a_token_that_another_device_has_is_named() {
    let world = World::start("count: 2, credential: { kind: token, secret: same }", "");
    let error = world.create().unwrap_err().to_string();
    let wanted = "status 400, `Device credentials are already assigned to another device!` (errorCode 31: bad request)";
    assert!(error.contains(wanted), "{error}");
    world.remove().unwrap();
    assert!(world.names().is_empty());
}

#[test]
fn calls_above_the_rate_are_repeated_at_a_lower_pace() {
    let world = World::start("count: 2", "");
    world.server.held().limited = 1;
    let watch = Patient::default();
    let summary = world
        .provisioner()
        .create(&world.plan(), &world.journal(), &watch);
    assert_eq!(summary.unwrap().to_string(), "device: 2 created");
    let remarks = watch.0.into_inner().unwrap();
    assert_eq!(remarks.len(), 1);
    assert!(
        remarks[0].contains("answers 429") && remarks[0].contains("provision.rate"),
        "{remarks:?}"
    );
}

#[test]
fn a_session_that_has_ended_is_begun_anew() {
    let world = World::start(PLAIN, "");
    let provisioner = world.provisioner();
    provisioner.greet(&Patient::default()).unwrap();
    world.server.held().session += 1;
    let summary = provisioner.create(&world.plan(), &world.journal(), &Patient::default());
    assert_eq!(summary.unwrap().to_string(), "device: 3 created");
}

#[test]
fn refusals_are_named_with_their_remedy() {
    for (keys, device_limit, authority, wanted) in [
        (
            ", password: wrong",
            9,
            "TENANT_ADMIN",
            "`Invalid username or password` (errorCode 10: authentication failed); give the login",
        ),
        (
            "",
            9,
            "CUSTOMER_USER",
            "`t@example.org` is a user of a customer, who may not create devices",
        ),
        (
            "",
            2,
            "TENANT_ADMIN",
            "`Devices limit reached` (errorCode 41: entities limit reached), the limit is 2; raise the limit",
        ),
        (
            BULK,
            2,
            "TENANT_ADMIN",
            "1 of 1 devices were not created: Devices limit reached; those that were are recorded",
        ),
    ] {
        let world = World::start(PLAIN, keys);
        world.server.held().device_limit = device_limit;
        world.server.held().authority = authority;
        let error = world.create().unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
        let there = world.names().len();
        assert_eq!(there, if device_limit == 2 { 2 } else { 0 });
        world.server.held().authority = "TENANT_ADMIN";
        if there > 0 {
            assert_eq!(world.remove().unwrap().kinds["device"].removed, 2);
        }
    }
}

#[test]
fn a_call_that_the_server_lacks_is_named_with_what_works() {
    for (keys, lacking, wanted) in [
        (
            BULK,
            "bulk_import",
            "this server has no such call; remove `provision.bulk`",
        ),
        ("", "auth", "look whether `provision.url` is the address"),
    ] {
        let world = World::start(PLAIN, keys);
        world.server.held().lacking = Some(lacking);
        let error = world.create().unwrap_err();
        assert!(
            matches!(error, ProvisionError::Lacks { status: 404, .. }),
            "{error}"
        );
        assert!(error.to_string().contains(wanted), "{error}");
    }
}
