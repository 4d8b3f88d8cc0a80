//! The reference gateway in another process: it receives by CoAP and DTLS, and forwards by MQTT.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::process::Process;
use super::programs::Programs;

/// The key of every device, whatever its identity.
const KEY: &str = "hono-secret";
/// Longest time until it listens.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running gateway.
#[derive(Debug)]
pub(super) struct Gateway {
    _process: Process,
    /// Its addresses: MQTT, CoAP and CoAP over DTLS.
    addresses: [String; 3],
}

impl Gateway {
    pub(super) fn start(programs: &Programs) -> Result<Self> {
        let key = programs.scratch("key");
        fs::write(&key, KEY).with_context(|| format!("write {}", key.display()))?;
        let free = "127.0.0.1:0";
        let words = ["gateway", "--dialect", "hono", "--listen", free, "--coap"];
        let words = [&words[..], &[free, "--coaps", free, "--psk"]].concat();
        let mut words: Vec<_> = words.iter().map(Into::into).collect();
        words.push(key.into());
        let output = programs.scratch("gateway.out");
        let mut process = Process::start(&programs.muster, &words, output)?;
        let addresses = process.until(PATIENCE, |process| Ok(addresses(&process.printed()?)))?;
        Ok(Self {
            _process: process,
            addresses,
        })
    }

    /// The head of a scenario whose devices speak CoAP by this scheme, and are consumed from.
    pub(super) fn platform(&self, scheme: &str) -> String {
        let [mqtt, coap, coaps] = &self.addresses;
        let devices = if scheme == "coaps" { coaps } else { coap };
        format!(
            r#"{{ kind: hono, devices: [ "{devices}" ], backend: {{ url: "{mqtt}", filter: "telemetry/#" }} }}"#
        )
    }
}

/// Returns the credential of a device for this scheme.
pub(super) fn credential(scheme: &str) -> String {
    match scheme {
        "coaps" => {
            format!(r#"credential: {{ kind: psk, user: "${{id}}@${{tenant}}", secret: "{KEY}" }}"#)
        }
        _ => String::new(),
    }
}

/// Parses the addresses in its first lines, once all of them are there.
fn addresses(printed: &str) -> Option<[String; 3]> {
    let of = |scheme: &str| {
        let begin = printed.find(&format!("{scheme}://"))?;
        let rest = &printed[begin..];
        let end = rest.find(['\n', ';'])?;
        Some(rest[..end].to_owned())
    };
    Some([of("mqtt")?, of("coap")?, of("coaps")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_once_all_are_there() {
        let first = "gateway listens on mqtt://127.0.0.1:1; Ctrl-C ends it\ndevices at coap://127.0.0.1:2\n";
        assert_eq!(addresses(first), None);
        let all = format!("{first}devices at coaps://127.0.0.1:3\n");
        let wanted = [
            "mqtt://127.0.0.1:1",
            "coap://127.0.0.1:2",
            "coaps://127.0.0.1:3",
        ];
        assert_eq!(addresses(&all), Some(wanted.map(str::to_owned)));
    }
}
