//! The test of server-side RPC: calls of the REST API to devices that reply.

use anyhow::Result;

use super::Load;

/// Most calls without an answer: the threads of that test.
const PENDING: u32 = 16;

/// Streams of a device that takes calls and replies at once.
pub(super) const STREAMS: &str = "    streams: [ { kind: command } ]\n";

/// Differences to that test, for the header.
pub(super) const DIFFERENCES: [&str; 3] = [
    "Success of that test is the answer to a call, as `delivered`; here the device and its reply are counted, too",
    "That test issues the calls of a second at its begin, once those before it are answered; here they are spread over it",
    "No telemetry warms up the devices, the parameters of a call are an id, and replies are sent at QoS 1, not 0",
];

/// Variables that the test of RPC does not read.
const IDLE: [&str; 7] = [
    "TEST_PAYLOAD_DATAPOINTS",
    "TEST_TELEMETRY",
    "ALARMS_PER_SECOND",
    "ALARM_STORM_START_SECOND",
    "ALARM_STORM_END_SECOND",
    "UPDATE_ROOT_RULE_CHAIN",
    "WARMUP_ENABLED",
];

impl Load<'_> {
    /// True if the load is calls, and not messages.
    pub(super) fn is_rpc(&self) -> bool {
        self.pod.word("TEST_API") == Some("rpc")
    }

    /// The key `backend` behind the addresses; empty if nothing is called.
    pub(super) fn backend(&self) -> Result<String> {
        if !self.is_rpc() {
            return Ok(String::new());
        }
        if self.is_http() {
            let why = "devices take calls over MQTT; give DEVICE_API=MQTT";
            return Err(self.pod.refuse("DEVICE_API", why));
        }
        if self.pod.truth("REST_CONNECT_SERVER") == Some(false) {
            let why = "calls need the REST API; give REST_CONNECT_SERVER=true";
            return Err(self.pod.refuse("REST_CONNECT_SERVER", why));
        }
        let mode = match self.pod.truth("RPC_TWO_WAY") {
            Some(true) => "two-way",
            _ => "one-way",
        };
        let rate = self.per_second();
        Ok(format!(
            ", backend: {{ rpc: {{ pending: {PENDING} }}, commands: {{ rate: {rate}/s, mode: {mode} }} }}"
        ))
    }

    /// Variables that are given and that only another kind of test reads, with the reason of each.
    pub(super) fn idle_by_mode(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let (names, why) = match self.is_rpc() {
            true => (&IDLE[..], "TEST_API=rpc does not read it"),
            false => (&["RPC_TWO_WAY"][..], "a setting of TEST_API=rpc"),
        };
        let names = names.iter().copied();
        names
            .filter(|name| self.pod.text(name).is_some())
            .map(move |name| (name, why))
    }
}
