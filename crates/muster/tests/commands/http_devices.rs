//! Devices over HTTP whose peer, address or credential is wrong: what `check` and the verdict say.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use crate::certificates::{Authority, p256, unchanged};
use crate::program::{Gateway, Said, folder_with, json, muster};

fn scenario(devices: &str) -> String {
    format!(
        "name: api\nplatform: {{ kind: http, devices: [ {devices} ] }}\nfleet:\n  - name: meters\n    count: 4\n    \
         credential: {{ kind: password, user: meter, secret: meter-secret }}\n    \
         streams: [ {{ name: readings, rate: 20/s }} ]\n\
         phases: {{ warm-up: 0s, measure: 1s, settle: {{ at-most: 5s, quiet: 200ms }} }}\n"
    )
}

/// The gateway's end over HTTP, which admits one user, and its address.
fn api(user: &str) -> (Gateway, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("users");
    std::fs::write(&file, user).expect("the users are written");
    let file = file.to_str().expect("a path in UTF-8");
    let mut gateway = Gateway::start(&[
        "--dialect",
        "http",
        "--http",
        "127.0.0.1:0",
        "--users",
        file,
    ]);
    let url = gateway.next_url();
    (gateway, url)
}

/// A server that says this on each connection, once a request came unless it speaks first, and closes it.
fn saying(bytes: &'static [u8], speaks_first: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            // Whoever is gone has sent nothing, and reads nothing.
            if speaks_first || socket.read(&mut [0; 4_096]).is_ok_and(|count| count > 0) {
                let _ = socket.write_all(bytes);
            }
        }
    });
    format!("http://{address}")
}

fn run(devices: &str) -> (Said, Value) {
    let folder = folder_with(&scenario(devices));
    let said = muster(
        folder.path(),
        &["run", "scenario.yaml", "--quiet", "--out", "out"],
    );
    let result = json(&folder.path().join("out/result.json"));
    (said, result)
}

/// The first cause of the verdict, which is below its first line too.
fn first_cause(said: &Said, result: &Value) -> String {
    let cause = &result["verdict"]["causes"][0]["text"];
    let cause = cause.as_str().unwrap_or_default().to_owned();
    let is_shown = said.unbroken().contains(&cause);
    assert!(is_shown && !cause.is_empty(), "{cause}: {said:?}");
    // Nobody knows it of a run that ended before a message was due.
    let residue = result["ledger"]["uplink"]["residue"].as_u64();
    assert_eq!(residue.unwrap_or(0), 0, "{said:?}");
    cause
}

#[test]
fn check_says_that_only_the_loop_tries_credentials_and_the_loop_does() {
    let (gateway, url) = api("meter:another-secret\n");
    let folder = folder_with(&scenario(&format!("\"{url}\"")));
    let checked = |options: &[&str]| {
        muster(
            folder.path(),
            &[&["check", "scenario.yaml"], options].concat(),
        )
    };
    let untried = "; credentials go with each request over HTTP, and only --loop sends one";
    for options in [&[][..], &["--all-links"]] {
        let said = checked(options);
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.out.contains(untried), "{said:?}");
    }
    let said = checked(&["--loop"]);
    assert_eq!(said.code, 2, "{said:?}");
    let refused =
        "refused meters/readings: http-401 (unauthorized); see `credential` of fleet `meters`\n";
    assert!(said.out.contains(refused), "{said:?}");
    assert_eq!(gateway.stop()["uplinks"]["accepted"], Value::Null);
}

#[test]
fn a_peer_that_speaks_no_http_is_named_with_its_address() {
    for speaks_first in [false, true] {
        let url = saying(b"220 mail.example ESMTP\r\n", speaks_first);
        let (said, result) = run(&format!("\"{url}\""));
        let cause = first_cause(&said, &result);
        assert!(cause.contains(&format!("(malformed), at {url}")), "{cause}");
        assert!(cause.contains("is this the right port?"), "{cause}");
        assert!(cause.ends_with("; see platform.devices"), "{cause}");
    }
}

/// A gateway over HTTPS for `localhost`, and its address; the authority that signed it is in the folder.
fn secured(folder: &Path, options: &[&str]) -> (Gateway, String) {
    let authority = Authority::new("authority");
    authority.write_ca(folder);
    authority.write(&folder.join("server"), "server", &p256(), unchanged);
    let path = |name: &str| folder.join(name).display().to_string();
    let (cert, key, ca) = (path("server.pem"), path("server.key"), path("ca.pem"));
    let own = ["--cert", &cert, "--key", &key];
    let http = ["--dialect", "http", "--https", "127.0.0.1:0"];
    let options: Vec<&str> = options
        .iter()
        .map(|option| if *option == "CA" { &ca } else { *option })
        .collect();
    let mut gateway = Gateway::start(&[&own[..], &http, &options].concat());
    let url = gateway.next_url();
    (gateway, url)
}

/// Over TLS 1.3 the handshake of a device ends before the server has looked at its certificate.
#[test]
fn a_server_that_wants_a_certificate_is_named_by_the_check_and_by_the_run() {
    let folder = folder_with("");
    let path = folder.path();
    let (_gateway, url) = secured(path, &["--client-ca", "CA"]);
    let text = scenario(&format!("\"{url}\"")).replace(
        " ] }\nfleet",
        " ], tls: { ca: ca.pem, server-name: localhost } }\nfleet",
    );
    std::fs::write(path.join("scenario.yaml"), text).expect("it is written");
    let named = "the server wants a client certificate";
    let remedy = "`credential: { kind: certificate, cert: ... }`";
    for options in [&[][..], &["--all-links"], &["--loop"]] {
        let said = muster(path, &[&["check", "scenario.yaml"], options].concat());
        assert_eq!(said.code, 4, "{said:?}");
        let is_named = said.out.contains(named) && said.out.contains(remedy);
        assert!(is_named, "{said:?}");
    }
    let said = muster(path, &["run", "scenario.yaml", "--quiet", "--out", "out"]);
    let cause = first_cause(&said, &json(&path.join("out/result.json")));
    assert!(cause.contains(named), "{cause}");
    assert!(cause.contains("fleet.meters.credential"), "{cause}");
}

#[test]
fn a_port_with_tls_that_is_spoken_to_without_it_is_named_by_the_loop() {
    let folder = folder_with("");
    let path = folder.path();
    let (_gateway, url) = secured(path, &[]);
    let text = scenario(&format!("\"{}\"", url.replace("https:", "http:")));
    std::fs::write(path.join("scenario.yaml"), text).expect("it is written");
    let said = muster(path, &["check", "scenario.yaml", "--loop"]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(said.out.contains("write `https://`"), "{said:?}");
}

#[test]
fn a_dead_one_of_several_addresses_is_named() {
    let (gateway, good) = api("meter:meter-secret\n");
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let dead = closed.local_addr().expect("its address");
    drop(closed);
    let (said, result) = run(&format!("\"{good}\", \"http://{dead}\""));
    let cause = first_cause(&said, &result);
    let words = format!("turned away: nobody listens there (refused), at {dead} of 2 addresses");
    assert!(
        cause.starts_with("2 of 4 links ") && cause.contains(&words),
        "{cause}"
    );
    gateway.stop();
}
