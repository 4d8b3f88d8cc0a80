//! Devices over DTLS that show certificates, from the scenario to the exit code.

use std::fs;
use std::path::Path;

use rcgen::{CertificateParams, CertifiedIssuer, DnType, KeyPair};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Gateway, folder_with, json, muster};

const SCENARIO: &str = r#"
name: certificates
platform: { PLATFORM }
fleet:
  - name: meters
    count: 10
    tenant: t1
    connect: { timeout: 2s }
    reconnect: { min: 100ms, max: 200ms }
    CREDENTIAL
    streams: [ { kind: telemetry, rate: 50/s } ]
phases: { warm-up: 0s, measure: 2s, settle: { at-most: 20s, quiet: 500ms } }
"#;

const PER_DEVICE: &str = "use `sockets: per-device`";
const CERTIFICATE: &str = "credential: { kind: certificate, cert: certs/ }";

fn scenario(platform: &str, credential: &str) -> String {
    let platform = format!("dialect: hono, devices: [ 'coaps://127.0.0.1:0' ], {platform}");
    SCENARIO
        .replace("PLATFORM", &platform)
        .replace("CREDENTIAL", credential)
}

/// Vouches for servers and devices.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// Authorities of one name would look like forgeries of each other.
    pub(crate) fn new(called: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, called);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    pub(crate) fn write_ca(&self, folder: &Path) {
        fs::write(folder.join("ca.pem"), self.0.pem()).expect("it is written");
    }

    /// Writes `NAME.pem` and `NAME.key`, of somebody who is called so, changed as the caller likes.
    pub(crate) fn write(
        &self,
        at: &Path,
        called: &str,
        key: &KeyPair,
        change: fn(&mut CertificateParams),
    ) {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("a name");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, called);
        change(&mut params);
        let cert = params.signed_by(key, &self.0).expect("a certificate");
        fs::write(at.with_extension("pem"), cert.pem()).expect("it is written");
        fs::write(at.with_extension("key"), key.serialize_pem()).expect("it is written");
    }
}

fn device(index: u32) -> String {
    format!("meters-{index:08}")
}

pub(crate) fn p256() -> KeyPair {
    KeyPair::generate().expect("a key")
}

/// A folder with a scenario, an authority, and the certificates of ten devices.
fn folder(text: &str, change: fn(&mut CertificateParams)) -> (TempDir, Authority) {
    let folder = folder_with(text);
    let authority = Authority::new("authority");
    authority.write_ca(folder.path());
    let certs = folder.path().join("certs");
    fs::create_dir(&certs).expect("a folder");
    for index in 0..10 {
        let name = device(index);
        let called = format!("{name}@t1");
        authority.write(&certs.join(&name), &called, &p256(), change);
    }
    (folder, authority)
}

pub(crate) fn unchanged(_: &mut CertificateParams) {}

fn ran(folder: &Path) -> (Value, Value) {
    let arguments = ["run", "scenario.yaml", "--quiet", "--out", "out"];
    let said = muster(folder, &arguments);
    assert_eq!(said.code, 0, "{said:?}");
    let out = folder.join("out");
    (
        json(&out.join("result.json")),
        json(&out.join("gateway.json")),
    )
}

/// All links are closed once: each comes back as itself, and where it is told to it resumes its own
/// session.
#[test]
fn each_device_shows_its_certificate_and_resumes_its_own_session_where_it_is_told_to() {
    for (resumption, resumed) in [("", 0), (", session-resumption: true", 10)] {
        let platform = format!(
            "tls: {{ client-ca: ca.pem{resumption} }}, behaviour: {{ close-links: {{ at: 500ms, share: 100% }} }}"
        );
        let text =
            scenario(&platform, CERTIFICATE) + "slo: { failure-ratio: any, disconnects: any }\n";
        let (folder, _) = folder(&text, unchanged);
        let (result, account) = ran(folder.path());
        let uplink = &result["ledger"]["uplink"];
        assert_eq!(uplink["accepted"], uplink["arrived"]);
        assert_eq!(uplink["residue"], 0);
        assert_eq!(account["dtls-handshakes"], 20, "{resumption}");
        assert_eq!(account["dtls-resumed"], resumed, "{resumption}");
        let subjects = account["subjects"].as_object().expect("a map");
        assert_eq!(subjects.len(), 10);
        for index in 0..10 {
            let name = format!("{}@t1", device(index));
            let subject = &subjects[&format!("CN={name}")];
            assert_eq!(subject["client-ids"], serde_json::json!([name]));
            assert_eq!(subject["connected"], 2);
            assert_eq!(subject["resumed"], resumed / 10);
        }
        let tls = &result["environment"]["tls"];
        let resumes = serde_json::json!({ "coaps": resumed > 0 });
        assert_eq!(tls["session_resumption"], resumes);
    }
}

/// Only devices over DTLS show certificates: those of MQTT and the consumers come in without one, by
/// the name of their own address.
#[test]
fn devices_with_certificates_over_dtls_keep_nobody_out_over_tls() {
    let text = scenario("tls: { client-ca: ca.pem }", CERTIFICATE)
        .replace(
            "[ 'coaps://127.0.0.1:0' ]",
            "[ 'coaps://127.0.0.1:0', 'mqtts://localhost:0' ]",
        )
        .replace(
            "  - name: meters\n",
            "  - { name: publishers, protocol: mqtt, count: 10, tenant: t1, streams: [ { rate: 50/s } ] }\n  \
             - name: meters\n    protocol: coap\n",
        );
    let (folder, _) = folder(&text, unchanged);
    let (result, _) = ran(folder.path());
    assert_eq!(result["links"]["connected"], 20);
    for stream in ["publishers/telemetry", "meters/telemetry"] {
        let ledger = &result["ledger"]["by_stream"][stream]["ledger"];
        assert_eq!(ledger["arrived"], 100, "{stream}");
    }
    // Each scheme has its own default.
    let resumes = serde_json::json!({ "coaps": false, "mqtts": true });
    assert_eq!(result["environment"]["tls"]["session_resumption"], resumes);
}

#[test]
fn devices_share_a_socket_whatever_they_prove_themselves_by() {
    for (credential, subjects) in [(CERTIFICATE, 10), ("credential: { kind: none }", 0)] {
        let tls = if subjects > 0 {
            "tls: { client-ca: ca.pem }"
        } else {
            ""
        };
        let text = scenario(tls, &format!("{credential}\n    sockets: shared"));
        let (folder, _) = folder(&text, unchanged);
        let (result, account) = ran(folder.path());
        let uplink = &result["ledger"]["uplink"];
        let counts = ["sent", "accepted", "arrived", "residue"].map(|name| &uplink[name]);
        assert_eq!(counts, [100, 100, 100, 0], "{credential}");
        assert_eq!(account["dtls-handshakes"], 10);
        let told = account["subjects"].as_object().expect("a map");
        assert_eq!(told.len(), subjects);
        let checked = muster(folder.path(), &["check", "scenario.yaml"]);
        assert_eq!(checked.code, 0, "{checked:?}");
        let sockets = "sockets of fleet `meters`: 1 for 10 links";
        assert!(checked.out.contains(sockets), "{}", checked.out);
    }
}

/// With any credential, `check` and the run say the same of a server without connection ids.
#[test]
fn a_server_that_takes_no_connection_id_is_found_by_the_check_and_ends_the_run() {
    for (credential, asks) in [
        (CERTIFICATE, &["--client-ca", "ca.pem"][..]),
        ("credential: { kind: none }", &[]),
    ] {
        let shared = format!("{credential}\n    sockets: shared");
        let (folder, authority) = folder("", unchanged);
        let path = folder.path();
        let tls = "tls: { ca: ca.pem, server-name: localhost }";
        let start = |options: &[&str]| {
            let options = [asks, options].concat();
            start_certified((path, &authority), (tls, &shared), &options)
        };
        let _declining = start(&["--no-connection-id"]);
        for command in [
            &["check", "scenario.yaml"][..],
            &["run", "scenario.yaml", "--quiet", "--out", "out"],
        ] {
            let said = muster(path, command);
            assert_eq!(said.code, 4, "{credential}: {said:?}");
            let is_named = said.unbroken().contains(PER_DEVICE);
            assert!(is_named, "{credential}: {}", said.out);
        }
        let _taking = start(&[]);
        let said = muster(path, &["check", "scenario.yaml"]);
        assert_eq!(said.code, 0, "{credential}: {said:?}");
    }
}

/// A device that proves nothing looks at the server's certificate, and names itself in its paths.
#[test]
fn a_device_without_credentials_knows_the_server_by_its_certificate() {
    let folder = folder_with(&scenario("", "credential: { kind: none }"));
    let (result, account) = ran(folder.path());
    let uplink = &result["ledger"]["uplink"];
    let counts = ["sent", "accepted", "arrived", "residue"].map(|name| &uplink[name]);
    assert_eq!(counts, [100, 100, 100, 0]);
    assert_eq!(account["dtls-handshakes"], 10);
    assert_eq!(account["subjects"], serde_json::json!({}));
}

/// The failure is counted by its name, as over TLS, and told once; nobody ever connected.
#[test]
fn a_handshake_that_fails_is_counted_by_its_cause() {
    let expired: fn(&mut CertificateParams) = |params| {
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    };
    let nobody: fn(&mut CertificateParams) =
        |params| params.distinguished_name = rcgen::DistinguishedName::new();
    for (tls, credential, change, cause) in [
        (
            "ca: ca.pem",
            CERTIFICATE,
            unchanged as fn(&mut _),
            "tls-wrong-name",
        ),
        (
            "ca: other.pem, server-name: localhost",
            CERTIFICATE,
            unchanged,
            "tls-unknown-issuer",
        ),
        (
            "ca: ca.pem, server-name: localhost",
            CERTIFICATE,
            expired,
            "tls-alert-certificate-expired-45",
        ),
        (
            "ca: ca.pem, server-name: localhost",
            CERTIFICATE,
            nobody,
            "tls-alert-certificate-unknown-46",
        ),
        (
            "insecure: true",
            "credential: { kind: none }",
            unchanged,
            "tls-alert-handshake-failure-40",
        ),
    ] {
        fails(&format!("tls: {{ {tls} }}"), credential, change, cause);
    }
}

/// A gateway with a certificate for `localhost`, and in the folder the scenario of devices that go there. Files among
/// the options are the folder's.
fn start_certified(
    (path, authority): (&Path, &Authority),
    (tls, credential): (&str, &str),
    options: &[&str],
) -> Gateway {
    authority.write(&path.join("server"), "server", &p256(), unchanged);
    let mut all = ["--dialect", "hono", "--coaps", "127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec();
    let certified = ["--cert", "server.pem", "--key", "server.key"];
    for option in certified.iter().chain(options) {
        let is_file = path.join(option).is_file();
        all.push(match is_file {
            true => path.join(option).display().to_string(),
            false => (*option).to_owned(),
        });
    }
    let mut gateway = Gateway::start(&all);
    let platform = format!("kind: hono, devices: [ '{}' ], {tls}", gateway.next_url());
    let text = SCENARIO
        .replace("PLATFORM", &platform)
        .replace("CREDENTIAL", credential)
        // No further try is under way when the run gives up.
        .replace("min: 100ms, max: 200ms", "min: 60s, max: 60s");
    fs::write(path.join("scenario.yaml"), text).expect("it is written");
    gateway
}

/// A run and a check towards a gateway with a certificate for `localhost`, whose devices' certificates are
/// changed so, fail by this cause.
fn fails(tls: &str, credential: &str, change: fn(&mut CertificateParams), cause: &str) {
    let (folder, authority) = folder("", change);
    let path = folder.path();
    fs::write(
        path.join("other.pem"),
        Authority::new("somebody else").0.pem(),
    )
    .expect("it is written");
    let asks = ["--client-ca", "ca.pem"];
    let _gateway = start_certified((path, &authority), (tls, credential), &asks);
    let said = muster(path, &["run", "scenario.yaml", "--quiet", "--out", "out"]);
    assert_eq!(said.code, 4, "{cause}: {said:?}");
    let result = json(&path.join("out/result.json"));
    let causes = result["links"]["connect_failures"].as_object();
    let causes: Vec<&String> = causes.expect("a map").keys().collect();
    assert_eq!(causes, [cause], "{said:?}");
    let events = result["events"].as_array().expect("a list");
    let told = events.iter().filter(|it| it["kind"] == "handshake-failed");
    let told: Vec<&str> = told.filter_map(|it| it["detail"].as_str()).collect();
    let proof = match (credential == CERTIFICATE, cause) {
        (false, _) => "`: ",
        (true, "tls-alert-certificate-unknown-46") => "` (certificate without a subject): ",
        (true, _) => "` (certificate of `CN=meters-",
    };
    assert!(matches!(told[..], [one] if one.contains(proof)), "{told:?}");
    let checked = muster(path, &["check", "scenario.yaml"]);
    assert_eq!(checked.code, 4, "{checked:?}");
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_its_device() {
    let text = scenario("tls: { client-ca: ca.pem }", CERTIFICATE);
    let (folder, authority) = folder(&text, unchanged);
    let path = folder.path();
    let name = device(3);
    let at = path.join("certs").join(&name);
    let said = |wanted: &str| {
        for command in ["run", "check"] {
            let said = muster(path, &[command, "scenario.yaml"]);
            assert_eq!(said.code, 2, "{said:?}");
            assert!(said.err.contains(wanted), "{}", said.err);
        }
    };
    let p384 = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).expect("a key");
    authority.write(&at, &name, &p384, unchanged);
    said(&format!(
        "device `{name}`: the key in certs/{name}.key is not of P-256"
    ));
    fs::remove_file(at.with_extension("key")).expect("it was there");
    said(&format!("device `{name}`: read certs/{name}.key: "));
}
