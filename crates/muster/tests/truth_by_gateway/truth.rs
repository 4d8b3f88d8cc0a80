//! A run, with both accounts of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};

use muster_model::{DeviceId, MessageId, RunId, Stamp, StreamId};
use serde_json::Value;

pub(crate) const DEVICES: u32 = 50;
pub(crate) const MESSAGES_PER_DEVICE: u32 = 12;
pub(crate) const MESSAGES: u64 = (DEVICES * MESSAGES_PER_DEVICE) as u64;

/// Reasons for an invalid run that only say that the machine was busy.
const OF_TIME: [&str; 6] = [
    "own-delay",
    "own-delay-end-to-end",
    "own-delay-connect",
    "consumer-starved",
    "lateness-grew",
    "shape",
];

/// Device and sequence number.
pub(crate) type Id = (u32, u32);

/// Course of one message, as the facts report it.
#[derive(Debug, Default)]
pub(crate) struct Fared {
    pub(crate) state: String,
    pub(crate) due_us: u64,
    pub(crate) ended_us: u64,
    /// Instants at which copies came.
    pub(crate) seen_us: Vec<u64>,
    pub(crate) is_corrupted: bool,
}

/// Both accounts of one run.
pub(crate) struct Truth {
    pub(crate) exit_code: i32,
    pub(crate) result: Value,
    pub(crate) gateway: Value,
    pub(crate) facts: String,
    pub(crate) fared: BTreeMap<Id, Fared>,
    /// Ids in the order in which copies came.
    pub(crate) order: Vec<Id>,
    pub(crate) names: BTreeMap<u64, Id>,
}

impl Truth {
    pub(crate) fn named(mut self, payload: impl Fn(Id) -> String) -> Self {
        let per_device = MESSAGES as u32 / self.devices();
        let ids = (0..self.devices()).flat_map(|device| (0..per_device).map(move |n| (device, n)));
        self.names = ids.map(|id| (fnv1a(payload(id).as_bytes()), id)).collect();
        assert_eq!(
            self.names.len() as u64,
            MESSAGES,
            "no two payloads have the same hash"
        );
        self
    }

    /// Devices of the run: those that sent something.
    fn devices(&self) -> u32 {
        let last = self.fared.keys().map(|(device, _)| device + 1).max();
        last.expect("there is a message")
    }

    /// The same, where each payload is a stamp between these.
    pub(crate) fn named_by_stamps(self, before: &str, after: &str) -> Self {
        let run = self.result["run"].as_str().expect("a run has an id");
        let run = RunId(u32::from_str_radix(run, 16).expect("it is hexadecimal"));
        self.named(|(device, seq)| {
            let id = MessageId {
                run,
                device: DeviceId(device),
                stream: StreamId(0),
                seq,
            };
            let stamp = Stamp { id, due: None }.encode_text(&[before.as_bytes(), after.as_bytes()]);
            format!("{before}{}{after}", String::from_utf8_lossy(&stamp))
        })
    }

    pub(crate) fn run(scenario: &str) -> Self {
        let _place = Place::take();
        let folder = tempfile::tempdir().expect("a folder for the run");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("truth.yaml"), scenario).expect("the scenario is written");
        let output = Command::new(env!("CARGO_BIN_EXE_muster"))
            .arg("run")
            .arg(at("truth.yaml"))
            .args(["--quiet", "--out"])
            .arg(at("out"))
            .arg("--facts")
            .arg(at("facts"))
            .stdin(Stdio::null())
            .output()
            .expect("the binary runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(at("out/gateway.json").exists(), "{said}");
        let facts = std::fs::read_to_string(at("facts")).expect("facts were asked for");
        let (fared, order) = read_facts(&facts);
        Self {
            exit_code: output.status.code().expect("it was not killed"),
            result: json(&at("out/result.json")),
            gateway: json(&at("out/gateway.json")),
            facts,
            fared,
            order,
            names: BTreeMap::new(),
        }
    }

    /// Checks what holds whatever the gateway does to a message: the ledger closes, and both sides
    /// counted the same on each border between them.
    pub(crate) fn agrees(&self) {
        self.closes();
        assert_eq!(self.account("received"), self.uplink("sent"));
        let answered = self.uplink("accepted") + self.uplink("answered_late");
        assert_eq!(self.account("accepted"), answered);
        let refused = self.account("rejected") + self.account("capacity-rejected");
        assert!([self.account("rejected"), refused].contains(&self.uplink("rejected")));
        assert_eq!(self.account("delivered"), self.uplink("consumed"));
    }

    pub(crate) fn closes(&self) {
        assert_eq!(self.uplink("residue"), 0);
        assert_eq!(self.uplink("scheduled"), MESSAGES);
        assert_eq!(self.uplink("sent") + self.uplink("shed"), MESSAGES);
        assert_eq!(self.reasons_but_time(), [""; 0]);
    }

    /// Reasons for which the run is invalid, except those of time: they are of a busy machine, on
    /// which all that was counted is true all the same.
    fn reasons_but_time(&self) -> Vec<&str> {
        let reasons = self.rules().filter_map(|rule| rule["reason"].as_str());
        reasons.filter(|reason| !OF_TIME.contains(reason)).collect()
    }

    fn rules(&self) -> impl Iterator<Item = &Value> {
        let rules = self.result["verdict"]["rules"].as_array();
        rules.expect("a verdict has rules").iter()
    }

    /// Checks the verdict: the target broke these rules and no other, and the result follows from that. A busy
    /// machine may leave one of them open by a reason of time, and the run is invalid then, never another result.
    pub(crate) fn is_judged(&self, broken: &[&str], what: &str) {
        let verdict = &self.result["verdict"];
        let is_broken = |rule: &&Value| match rule["consequence"].as_str() {
            Some("fails") => true,
            Some("invalidates") => rule["kind"] != "validity",
            _ => false,
        };
        let names = self.rules().filter(is_broken).map(|rule| &rule["rule"]);
        let names: BTreeSet<&str> = names.filter_map(Value::as_str).collect();
        let evidence: Vec<&Value> = self.rules().filter(is_broken).collect();
        let broken: BTreeSet<&str> = broken.iter().copied().collect();
        assert_eq!(names, broken, "{what}: {evidence:?}");
        assert_eq!(self.reasons_but_time(), [""; 0], "{what}");
        let wanted = if broken.is_empty() { "pass" } else { "fail" };
        let is_open = self
            .rules()
            .any(|rule| rule["consequence"] == "invalidates");
        let (key, code) = match (is_open, wanted) {
            (true, _) => ("would_be", 3),
            (false, "pass") => ("result", 0),
            (false, _) => ("result", 1),
        };
        assert_eq!(verdict[key], wanted, "{what}: {verdict}");
        assert_eq!(self.exit_code, code, "{what}: {verdict}");
    }

    pub(crate) fn account(&self, name: &str) -> u64 {
        count(&self.gateway[name])
    }

    pub(crate) fn uplink(&self, name: &str) -> u64 {
        count(&self.result["ledger"]["uplink"][name])
    }

    pub(crate) fn backend(&self) -> &Value {
        &self.result["ledger"]["by_backend"]["backend"]
    }

    pub(crate) fn cell(&self, state: &str, arrival: &str) -> u64 {
        count(&self.backend()["table"][state][arrival])
    }

    /// Messages of a state that are absent, or outstanding where the run had no need to wait.
    pub(crate) fn not_arrived(&self, state: &str) -> u64 {
        self.cell(state, "absent") + self.cell(state, "outstanding")
    }

    pub(crate) fn by_code(&self, code: &str) -> u64 {
        count(&self.result["ledger"]["uplink"]["rejected_by_code"][code])
    }

    pub(crate) fn latency(&self, leg: &str, figure: &str) -> u64 {
        count(&self.result["latency"][leg][figure])
    }

    /// The messages that the gateway says it treated so, of which there must be so many.
    pub(crate) fn befell(&self, misbehaviour: &str, wanted: usize) -> BTreeSet<Id> {
        let ids = self.befell_some(misbehaviour);
        assert_eq!(ids.len(), wanted, "{misbehaviour}");
        ids
    }

    /// The same, where the gateway may have had less opportunity than was asked for.
    pub(crate) fn befell_some(&self, misbehaviour: &str) -> BTreeSet<Id> {
        let hashes = self.gateway["misbehaved"][misbehaviour].as_array();
        let hashes = hashes.expect("the misbehaviour happened");
        let ids: BTreeSet<Id> = hashes
            .iter()
            .map(|hash| self.names[&self::hash(hash)])
            .collect();
        assert_eq!(ids.len(), hashes.len(), "{misbehaviour} befell each once");
        assert!(!ids.is_empty(), "{misbehaviour} befell none");
        ids
    }

    /// The ids that the result lists as lost.
    pub(crate) fn lost_ids(&self) -> BTreeSet<Id> {
        self.lost_ids_at("backend")
    }

    /// Messages that the account of a backend lists as lost.
    pub(crate) fn lost_ids_at(&self, backend: &str) -> BTreeSet<Id> {
        self.ids_at(backend, "lost_ids")
    }

    /// Messages that a list of the account of a backend has.
    pub(crate) fn ids_at(&self, backend: &str, list: &str) -> BTreeSet<Id> {
        let listed = self.result["ledger"]["by_backend"][backend][list]
            .as_object()
            .expect("a list of ids");
        assert_eq!(listed["truncated"], false);
        let mut ids = BTreeSet::new();
        for (name, ranges) in listed {
            let Some(ranges) = ranges.as_array() else {
                continue;
            };
            let device = name
                .strip_prefix("meters-")
                .and_then(|rest| rest.split('/').next());
            let device: u32 = device.expect("a device").parse().expect("its index");
            for range in ranges {
                let (from, to) = (count(&range[0]) as u32, count(&range[1]) as u32);
                ids.extend((from..=to).map(|seq| (device, seq)));
            }
        }
        ids
    }

    pub(crate) fn in_state(&self, state: &str) -> BTreeSet<Id> {
        self.ids_where(|fared| fared.state == state)
    }

    pub(crate) fn absent(&self) -> BTreeSet<Id> {
        self.ids_where(|fared| fared.seen_us.is_empty())
    }

    pub(crate) fn ids_where(&self, is_so: impl Fn(&Fared) -> bool) -> BTreeSet<Id> {
        let those = self.fared.iter().filter(|(_, fared)| is_so(fared));
        those.map(|(id, _)| *id).collect()
    }

    /// Messages that came after a later one of their device (RFC 4737 section 3.3).
    pub(crate) fn reordered(&self) -> BTreeSet<Id> {
        let mut latest = BTreeMap::new();
        let mut ids = BTreeSet::new();
        for (device, seq) in &self.order {
            let expected = latest.entry(*device).or_insert(*seq);
            if seq < expected {
                ids.insert((*device, *seq));
            }
            *expected = (*expected).max(*seq);
        }
        ids
    }
}

/// Reason for which a scenario is refused; none if it is not.
pub(crate) fn refusal(scenario: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder for the scenario");
    let path = folder.path().join("truth.yaml");
    std::fs::write(&path, scenario).expect("the scenario is written");
    let output = Command::new(env!("CARGO_BIN_EXE_muster"))
        .arg("check")
        .arg(&path)
        .stdin(Stdio::null())
        .output()
        .expect("the binary runs");
    (output.status.code() == Some(2)).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Runs that may go on at once: each is mostly waiting, more would take each other's processor.
const AT_ONCE: usize = 12;

/// A place among the runs that go on.
struct Place;

static TAKEN: Mutex<usize> = Mutex::new(0);
static LEFT: Condvar = Condvar::new();

impl Place {
    /// Waits until there is one.
    fn take() -> Self {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = LEFT.wait_while(taken, |taken| *taken >= AT_ONCE);
        *taken.unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        LEFT.notify_one();
    }
}

/// Reads a facts file: how each message of the first stream fared, and the order in which copies came.
fn read_facts(text: &str) -> (BTreeMap<Id, Fared>, Vec<Id>) {
    let mut fared: BTreeMap<Id, Fared> = BTreeMap::new();
    let mut order = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["attempt", _, device, "0", seq, due, _, _, ended, state, ..] => {
                let fared = fared
                    .entry((number(device) as u32, number(seq) as u32))
                    .or_default();
                assert_eq!(fared.state, "", "one attempt a message: {line}");
                state.clone_into(&mut fared.state);
                fared.due_us = number(due);
                fared.ended_us = number(ended);
            }
            ["arrival", _, "-", ..] => {}
            ["arrival", _, device, "0", seq, _, seen, _, _, integrity, ..] => {
                let id = (number(device) as u32, number(seq) as u32);
                let fared = fared.entry(id).or_default();
                fared.seen_us.push(number(seen));
                fared.is_corrupted |= integrity == "corrupted";
                order.push(id);
            }
            _ => {}
        }
    }
    (fared, order)
}

/// FNV-1a, 64 bits, as its authors published it.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 14_695_981_039_346_656_037_u64;
    for byte in bytes {
        hash ^= u64::from(*byte);
        hash = hash.wrapping_mul(1_099_511_628_211);
    }
    hash
}

pub(crate) fn number(text: &str) -> u64 {
    text.parse().expect("a whole number")
}

/// A hash as the gateway's account has it.
pub(crate) fn hash(value: &Value) -> u64 {
    let hash = value.as_str().map(|text| u64::from_str_radix(text, 16));
    hash.expect("a hash is text")
        .expect("a hash is hexadecimal")
}

pub(crate) fn count(value: &Value) -> u64 {
    value
        .as_u64()
        .unwrap_or_else(|| panic!("{value} is no count"))
}

pub(crate) fn sum(counts: &Value) -> u64 {
    counts
        .as_object()
        .expect("counts by name")
        .values()
        .map(count)
        .sum()
}

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("the run wrote it");
    serde_json::from_str(&text).expect("it is JSON")
}
