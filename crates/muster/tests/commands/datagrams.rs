//! Datagrams of UDP besides the answers to messages, through a relay that adds them.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use serde_json::Value;

use crate::program::{Gateway, folder_with, json, muster};

const SCENARIO: &str = r#"
name: noise
platform:
  kind: hono
  devices: [ "DEVICES" ]
  backend: { url: "BACKEND", filter: "telemetry/#" }
fleet:
  - name: meters
    count: 1
    tenant: t
    client: { coap: { ack-timeout: 5s } }
    FLEET
    streams: [ { rate: 25/s, timeout: 5s } ]
phases: { warm-up: 0s, measure: 2s, settle: { at-most: 20s, quiet: 500ms } }
slo: { loss: 0, failure-ratio: 0 }
"#;

/// Of a record, by RFC 5246 and RFC 9146.
const APPLICATION_DATA: u8 = 23;
const WITH_CONNECTION_ID: u8 = 25;
/// Offset of the connection id, behind type, version, epoch and number.
const CONNECTION_ID: usize = 11;

/// Numbers of datagrams and records that were added.
#[derive(Debug, Default)]
struct Added {
    /// Datagrams that are no message, answers nobody waits for, and pings: as many of each.
    strays: AtomicU64,
    /// Records that do not open, or are for nobody.
    bad: AtomicU64,
    /// Records that came before.
    again: AtomicU64,
}

impl Added {
    fn get(&self) -> [u64; 3] {
        [&self.strays, &self.bad, &self.again].map(|count| count.load(Ordering::Relaxed))
    }

    /// Datagrams to send before one of CoAP, so that they are read before the answer is.
    fn before_message(&self, answer: &[u8]) -> Vec<Vec<u8>> {
        self.strays.fetch_add(1, Ordering::Relaxed);
        let stray = vec![0x60, 0x44, answer[2] ^ 0x80, answer[3]];
        let ping = vec![0x40, 0x00, answer[2], answer[3]];
        vec![vec![0xff], stray, ping]
    }

    /// Records to send before one with an answer; `before` is the record that went before it.
    fn before_record(&self, answer: &[u8], before: Option<&Vec<u8>>) -> Vec<Vec<u8>> {
        let mut added = Vec::new();
        let flipped = |at: usize| {
            let mut bad = answer.to_vec();
            bad[at] ^= 0x80;
            bad
        };
        added.push(flipped(answer.len() - 1));
        if answer[0] == WITH_CONNECTION_ID {
            added.push(flipped(CONNECTION_ID));
        }
        self.bad.fetch_add(added.len() as u64, Ordering::Relaxed);
        self.again
            .fetch_add(u64::from(before.is_some()), Ordering::Relaxed);
        added.extend(before.cloned());
        added
    }
}

/// Stands between devices and a gateway: where, and what it added.
fn relay(gateway: SocketAddr) -> (SocketAddr, Arc<Added>) {
    let front = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port"));
    let at = front.local_addr().expect("its address");
    let added = Arc::new(Added::default());
    let counted = Arc::clone(&added);
    thread::spawn(move || {
        let (mut backs, mut bytes) = (BTreeMap::new(), [0; 4_096]);
        while let Ok((length, device)) = front.recv_from(&mut bytes) {
            let back = backs.entry(device).or_insert_with(|| {
                let back = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port"));
                back.connect(gateway).expect("an address");
                let ways = (Arc::clone(&back), Arc::clone(&front));
                let added = Arc::clone(&counted);
                thread::spawn(move || bring_back(&ways.0, &ways.1, device, &added));
                back
            });
            let _ = back.send(&bytes[..length]);
        }
    });
    (at, added)
}

/// Takes to a device what the gateway says to it, and more.
fn bring_back(back: &UdpSocket, front: &UdpSocket, device: SocketAddr, added: &Added) {
    let (mut before, mut bytes) = (None, [0; 4_096]);
    while let Ok(length) = back.recv(&mut bytes) {
        let answer = &bytes[..length];
        let noise = match answer[0] {
            APPLICATION_DATA | WITH_CONNECTION_ID => {
                let noise = added.before_record(answer, before.as_ref());
                before = Some(answer.to_vec());
                noise
            }
            // Version 1, and not the first byte of a record.
            0x40.. => added.before_message(answer),
            _ => Vec::new(),
        };
        for datagram in noise.iter().map(Vec::as_slice).chain([answer]) {
            let _ = front.send_to(datagram, device);
        }
    }
}

/// A run through the relay: what it says, its `links`, and what was added.
fn run(scheme: &str, fleet: &str) -> (String, Value, [u64; 3]) {
    let keys = tempfile::tempdir().expect("a folder");
    let key = keys.path().join("key");
    std::fs::write(&key, "key").expect("the key is written");
    let key = key.to_str().expect("a path in UTF-8");
    let listen = format!("--{scheme}");
    let mut all = vec!["--dialect", "hono", listen.as_str(), "127.0.0.1:0"];
    if scheme == "coaps" {
        all.extend(["--psk", key]);
    }
    let mut gateway = Gateway::start(&all);
    let url = gateway.next_url();
    let (_, address) = url.split_once("://").expect("an address");
    let (at, added) = relay(address.parse().expect("an address"));
    let scenario = SCENARIO
        .replace("DEVICES", &format!("{scheme}://{at}"))
        .replace("BACKEND", &gateway.url)
        .replace("FLEET", fleet);
    let folder = folder_with(&scenario);
    let arguments = ["run", "scenario.yaml", "--quiet", "--out", "out"];
    let said = muster(folder.path(), &arguments);
    let result = json(&folder.path().join("out/result.json"));
    let uplink = &result["ledger"]["uplink"];
    assert_eq!(uplink["accepted"], 50, "{}{}", said.out, said.err);
    assert_eq!(uplink["residue"], 0, "{}", said.out);
    (said.out, result["links"].clone(), added.get())
}

const PSK: &str = "credential: { kind: psk, user: \"${id}@${tenant}\", secret: key }";

fn count(links: &Value, name: &str) -> u64 {
    links[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name}: {links}"))
}

#[test]
fn what_is_no_answer_over_coap_is_counted_whoever_the_socket_is() {
    for sockets in ["per-device", "shared"] {
        let (out, links, [strays, ..]) = run("coap", &format!("sockets: {sockets}"));
        assert_eq!(strays, 50, "one answer a message: {out}");
        for name in ["coap_malformed", "coap_stray", "coap_unexpected"] {
            assert_eq!(count(&links, name), strays, "{sockets} {name}: {out}");
        }
        for name in ["coap_duplicates", "dtls_discarded", "dtls_replayed"] {
            assert_eq!(count(&links, name), 0, "{sockets} {name}: {out}");
        }
        for told in [
            "50 answers nobody waited for",
            "50 pings and requests",
            "50 datagrams that are no message",
        ] {
            assert!(out.contains(told), "{told}: {out}");
        }
    }
}

#[test]
fn records_that_do_not_open_or_came_again_are_counted_on_a_socket_that_is_shared() {
    let fleet = format!("sockets: shared\n    {PSK}");
    // Two before each answer, and all answers but the last; what goes before the gateway's goodbye comes
    // too late.
    let (out, links, _) = run("coaps", &fleet);
    assert_eq!(count(&links, "dtls_discarded"), 100, "{out}");
    assert_eq!(count(&links, "dtls_replayed"), 49, "{out}");
    assert_eq!(count(&links, "coap_stray"), 0, "{out}");
    assert!(out.contains("100 records discarded"), "{out}");
    assert!(out.contains("49 records that came again"), "{out}");
}

/// A link that ends its life waits for its answers first, and what was added went before those.
#[test]
fn what_sessions_counted_is_kept_when_their_links_connect_again() {
    let fleet = format!("connect: {{ lifetime: 400ms }}\n    {PSK}");
    let (out, links, [_, bad, again]) = run("coaps", &fleet);
    assert!(count(&links, "connected") >= 3, "{out}");
    assert_eq!(bad, 50, "one before each answer: {out}");
    assert_eq!(count(&links, "dtls_discarded"), bad, "{out}");
    assert_eq!(count(&links, "dtls_replayed"), again, "{out}");
}
