//! All that a run left behind, as it stands in `windows.bin`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use muster_agent::Afterlife;
use muster_cluster::RunData;
use muster_conduct::{Ending, Part};
use muster_judge::{GeneratorHealth, Stop};
use muster_load::PayloadSpec;
use muster_measure::{Account, Identity, Record, Records, Timeline, WindowDelta};
use muster_model::{Listening, Micros, RunId};
use muster_plan::{ClientId, ClientPlan, Credential, Plan};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::counters::{Counted, NotedCounter};
use crate::events::{self, NotedEvent};
use crate::line;
use crate::scenario_file::sha256;

mod pulses;
/// Whether a run still writes a file ([`crate::folder::Folder`] holds a lock on it).
fn is_being_written(path: &Path) -> bool {
    use rustix::fs::{FlockOperation, flock};
    let Ok(file) = fs::File::open(path) else {
        return false;
    };
    // The lock goes with the file.
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK)
}

/// Why a folder is no result, and what to do.
fn no_result(folder: &Path) -> String {
    if folder.join("repeat.json").exists() {
        let first = folder.join("1");
        return format!(
            "it holds the runs of a `--repeat`, each in a folder of its own, and what they come to in \
             repeat.json; name one of them, such as {}",
            first.display()
        );
    }
    if !folder.is_dir() {
        return "there is no such folder; name the one that `muster run` ended with".to_owned();
    }
    "it holds no result, neither result.json nor windows.bin; name the folder that `muster run` \
     ended with"
        .to_owned()
}

#[cfg(test)]
mod tests;

use pulses::Pulses;

/// What is known before the first message: the first record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The plan without its secrets.
    pub(crate) plan: Plan,
    pub(crate) run: RunId,
    pub(crate) part: Part,
    pub(crate) scenario_sha256: String,
    /// Of the plan, its rules among them, as [`Header::digest`] has it.
    pub(crate) resolved_sha256: String,
    pub(crate) started: String,
    /// JSON text.
    pub(crate) environment: String,
    pub(crate) co_located: bool,
    /// The clocks that its instants were read from, one for each host.
    pub(crate) clocks: Vec<String>,
}

/// What becomes known on the way: one record each.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Note {
    /// Where the phases begin.
    Timeline(Timeline),
    /// Something that happened.
    Event(NotedEvent),
    /// How the platform's own counters grew.
    Counters(Vec<NotedCounter>),
}

/// What is known at the end: the last record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Footer {
    pub(crate) health: GeneratorHealth,
    pub(crate) afterlives: Vec<Afterlife>,
    pub(crate) end: Micros,
    /// How every consumer listened; none without consumers.
    pub(crate) listening: Option<Listening>,
    /// Until when every device heard; none without devices.
    pub(crate) devices_until: Option<Micros>,
    pub(crate) ending: Ending,
    pub(crate) stop: Option<Stop>,
    pub(crate) target: NotedTarget,
}

/// What the target used, where it was watched, by name.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct NotedTarget {
    pub(crate) cpu_s: BTreeMap<String, f64>,
    pub(crate) memory_bytes: BTreeMap<String, u64>,
}

/// A whole run, or a part of one.
#[derive(Debug)]
pub(crate) struct Archive {
    pub(crate) header: Header,
    pub(crate) windows: WindowDelta,
    pub(crate) identity: Option<Identity>,
    pub(crate) account: Option<Account>,
    pub(crate) timeline: Timeline,
    pub(crate) events: Vec<NotedEvent>,
    /// None where nobody read any.
    pub(crate) counters: Option<Vec<NotedCounter>>,
    pub(crate) pulses: Pulses,
    pub(crate) footer: Option<Footer>,
    /// Whole records that were read.
    records: u64,
    /// Why not all of it could be read, if so.
    pub(crate) unread: Option<String>,
    /// Whether the run that writes it has not ended.
    pub(crate) is_running: bool,
}

impl Header {
    /// Puts a mask where the plan has secrets, so that they never reach a disk.
    pub(crate) fn without_secrets(mut plan: Plan) -> Plan {
        for backend in &mut plan.backends {
            backend.user = None;
            backend.password = None;
            backend.tls.own = None;
        }
        for fleet in &mut plan.fleets {
            fleet.credential = Credential::None;
            if let ClientPlan::Mqtt(client) = &mut fleet.client {
                client.authentication = None;
            }
            // Its columns may be names and passwords, and a report needs only the lines of the rows.
            let lines = fleet.data.as_ref().map(|table| table.without_cells());
            fleet.data = lines.map(Arc::new);
        }
        plan
    }

    /// The plan as it is written to a disk: without secrets, and without the messages, wills and client ids
    /// that hold a value of the environment, which may be one. No report needs them.
    pub(crate) fn for_disk(plan: Plan) -> Plan {
        let written: Option<Json> = serde_json::from_str(&plan.resolved).ok();
        // Of a text that cannot be read nothing is known, so that nothing is kept.
        let has_reference = |fleet: usize, pointer: &str| {
            let part = |text: &Json| text.pointer(&format!("/fleet/{fleet}{pointer}")).cloned();
            written
                .as_ref()
                .is_none_or(|text| part(text).is_some_and(|part| refers_to_environment(&part)))
        };
        let mut plan = Self::without_secrets(plan);
        for (at, fleet) in plan.fleets.iter_mut().enumerate() {
            if let ClientPlan::Mqtt(client) = &mut fleet.client {
                if has_reference(at, "/client/will") {
                    client.will = None;
                }
                if has_reference(at, "/client/id") {
                    client.client_id = ClientId::Name;
                }
            }
            for (stream_at, stream) in fleet.streams.iter_mut().enumerate() {
                if has_reference(at, &format!("/streams/{stream_at}/payload")) {
                    stream.payload = PayloadSpec::Size(0);
                }
            }
        }
        plan
    }

    /// A hash of what is run and by which rules it is judged, however that came about: by the
    /// scenario's text, `--set`, `--seed`, or the files it names. Labels and secrets do not count.
    pub(crate) fn digest(plan: &Plan) -> String {
        let whole = plan;
        let mut plan = Self::without_secrets(whole.clone());
        for (fleet, of_whole) in plan.fleets.iter_mut().zip(&whole.fleets) {
            fleet.data.clone_from(&of_whole.data);
        }
        plan.labels.clear();
        plan.warnings.clear();
        plan.resolved.clear();
        plan.platform.about = None;
        sha256(&encoded(&plan))
    }
}

/// True if a part of the scenario, as it was written, refers to the environment.
fn refers_to_environment(written: &Json) -> bool {
    written.to_string().contains("${env:")
}

impl Header {
    /// Whether senders and consumers read one clock.
    pub(crate) fn has_one_clock(&self) -> bool {
        self.clocks.len() <= 1
    }

    /// Takes in the clocks of another part.
    fn add_clocks(&mut self, clocks: Vec<String>) {
        self.clocks.extend(clocks);
        self.clocks.sort_unstable();
        self.clocks.dedup();
    }
}

impl Archive {
    /// The archive of a run that has ended: its windows are those that were written meanwhile,
    /// and those that could not be.
    pub(crate) fn of(header: Header, data: RunData, target: NotedTarget, folder: &Path) -> Self {
        let written = Self::read(folder);
        let unread = written.as_ref().err().map(|error| format!("{error:#}"));
        let mut windows = written.map(|archive| archive.windows).unwrap_or_default();
        windows.merge(&data.unkept);
        let mut events = events::of_incidents(&data.incidents);
        let end_s = data.end.as_secs_f64();
        let clock = header.clocks.first().map_or("", String::as_str);
        events.extend(
            data.line
                .iter()
                .flat_map(|line| line::events(line, end_s, clock)),
        );
        let devices_until = header.part.links.map(|_| data.end);
        Self {
            header,
            windows,
            identity: data.identity,
            account: data.account,
            timeline: data.timeline,
            events,
            counters: None,
            pulses: Pulses::default(),
            records: 0,
            unread,
            is_running: false,
            footer: Some(Footer {
                health: data.health,
                afterlives: data.afterlives,
                end: data.end,
                listening: data.listening,
                devices_until,
                ending: data.ending,
                stop: data.stop,
                target,
            }),
        }
    }

    /// Adds what the platform's own counters said, if they were read.
    pub(crate) fn add_counted(&mut self, counted: Option<Counted>) {
        if let Some(counted) = counted {
            self.counters = Some(counted.counters);
            self.events.extend(counted.unread);
        }
    }

    /// The records that follow the windows at the end of a run.
    pub(crate) fn last_records(&self) -> Vec<Record> {
        let mut records: Vec<Record> = self
            .events
            .iter()
            .map(|event| Record::Event(encoded(&Note::Event(event.clone()))))
            .collect();
        let counters = self.counters.clone().map(Note::Counters);
        records.extend(counters.map(|note| Record::Event(encoded(&note))));
        records.push(Record::Event(encoded(&Note::Timeline(self.timeline))));
        records.extend(
            self.identity
                .clone()
                .map(|identity| Record::Identity(Box::new(identity))),
        );
        records.extend(
            self.account
                .clone()
                .map(|account| Record::Account(Box::new(account))),
        );
        records.extend(
            self.footer
                .as_ref()
                .map(|footer| Record::Footer(encoded(footer))),
        );
        records
    }

    /// Reads the archive of a folder; a torn end is what a killed run leaves.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("windows.bin");
        if !path.exists() {
            bail!("read {}: {}", folder.display(), no_result(folder));
        }
        let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        let mut records = Records::new(&bytes);
        if bytes.is_empty() {
            bail!(
                "read {}: this run was ended before it began, so that it has no result",
                path.display()
            );
        }
        let Some(Record::Header(header)) = records.next() else {
            bail!(
                "read {}: it does not begin with the header of a run",
                path.display()
            );
        };
        let header: Header =
            decoded(&header).with_context(|| format!("read the header of {}", path.display()))?;
        let mut archive = Self {
            header,
            windows: WindowDelta::default(),
            identity: None,
            account: None,
            timeline: Timeline::CONNECTING,
            events: Vec::new(),
            counters: None,
            pulses: Pulses::default(),
            footer: None,
            records: 0,
            unread: None,
            is_running: is_being_written(&path),
        };
        let mut whole = 1;
        for record in records.by_ref() {
            archive.take(record)?;
            whole += 1;
        }
        if archive.footer.is_none() && archive.timeline.origin < Micros::MAX {
            // A run that was killed was measured until then, not as long as was planned.
            archive.timeline = archive.timeline.stopped(archive.windows.until);
        }
        if records.is_torn() {
            let (at, path) = (records.bytes_read(), path.display());
            archive.unread = Some(format!(
                "read {path} beyond record {whole} (byte {at} of {}): it is cut or damaged there",
                bytes.len()
            ));
        }
        archive.records = whole;
        Ok(archive)
    }

    /// What of the windows in a folder cannot be read although their run came to its end, as the
    /// end of a sentence that begins with "failed to".
    pub(crate) fn damage(folder: &Path) -> Option<String> {
        match Self::read(folder) {
            Err(error) => Some(format!("{error:#}")),
            Ok(archive) if archive.unread.is_none() && archive.footer.is_none() => Some(format!(
                "read {} beyond record {}: it is cut there, before its last record",
                folder.join("windows.bin").display(),
                archive.records
            )),
            Ok(archive) => archive.unread,
        }
    }

    /// Takes in another part of the same run.
    pub(crate) fn merge(&mut self, other: Self) -> Result<()> {
        if other.header.run != self.header.run {
            bail!(
                "merge the parts: run {:08x} and run {:08x} are not parts of one; give them the \
                 same --run-id",
                self.header.run.0,
                other.header.run.0
            );
        }
        if other.header.resolved_sha256 != self.header.resolved_sha256 {
            bail!(
                "merge the parts: they do not carry the same scenario; start each with the same \
                 file, --set and --seed"
            );
        }
        for archive in [&*self, &other] {
            if archive.timeline.origin == Micros::MAX {
                bail!(
                    "merge the parts: part {} never had a message due; `muster report` of its folder says why",
                    archive.header.part
                );
            }
        }
        if other.timeline.origin != self.timeline.origin {
            bail!(
                "merge the parts: one had messages due from {} us on, another from {} us on; give \
                 them the same --start-at",
                self.timeline.origin.get(),
                other.timeline.origin.get()
            );
        }
        self.timeline.settle = self.timeline.settle.max(other.timeline.settle);
        self.windows.merge(&other.windows);
        self.header.co_located |= other.header.co_located;
        self.header.add_clocks(other.header.clocks);
        if !self.header.has_one_clock() {
            self.windows.forget_end_to_end();
        }
        self.identity = match (self.identity.take(), other.identity) {
            (Some(mut mine), Some(theirs)) => {
                mine.merge(theirs);
                Some(mine)
            }
            (_, _) => None,
        };
        self.account = match (self.account.take(), other.account) {
            (Some(mut mine), Some(theirs)) => {
                mine.merge(&theirs);
                Some(mine)
            }
            (_, _) => None,
        };
        self.events.extend(other.events);
        self.footer = match (self.footer.take(), other.footer) {
            (Some(mine), Some(theirs)) => Some(mine.merged(theirs)),
            (_, _) => None,
        };
        Ok(())
    }

    /// What streams are called.
    pub(crate) fn stream_names(&self) -> Vec<String> {
        let streams = self.header.plan.streams();
        streams
            .map(|(fleet, stream)| format!("{}/{}", fleet.name, stream.name))
            .collect()
    }

    fn take(&mut self, record: Record) -> Result<()> {
        match record {
            Record::Header(_) => {}
            Record::Windows(delta) => self.windows.merge(&delta),
            Record::Health(bytes) => {
                let (agent, pulse) = decoded(&bytes)?;
                self.pulses.add(agent, pulse);
            }
            Record::Event(bytes) => match decoded(&bytes)? {
                Note::Timeline(timeline) => self.timeline = timeline,
                Note::Event(event) => self.events.push(event),
                Note::Counters(counters) => self.counters = Some(counters),
            },
            Record::Identity(identity) => self.identity = Some(*identity),
            Record::Account(account) => self.account = Some(*account),
            Record::Footer(bytes) => self.footer = Some(decoded(&bytes)?),
        }
        Ok(())
    }
}

impl Footer {
    fn merged(mut self, other: Self) -> Self {
        self.health.merge(other.health);
        self.afterlives.extend(other.afterlives);
        self.end = self.end.max(other.end);
        // What came after the first consumer had left, nobody counted: it is no proof of a loss.
        let both = [self.listening, other.listening].into_iter().flatten();
        self.listening = both.reduce(Listening::and);
        // Nor did anybody count what came to devices after the first of them had left.
        let both = [self.devices_until, other.devices_until];
        self.devices_until = both.into_iter().flatten().min();
        if self.ending == Ending::Planned {
            (self.ending, self.stop) = (other.ending, other.stop);
        }
        self.target.cpu_s.extend(other.target.cpu_s);
        self.target.memory_bytes.extend(other.target.memory_bytes);
        self
    }
}

/// A value as the bytes of a record.
pub(crate) fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("a record's value has a binary form and memory for it")
}

fn decoded<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    postcard::from_bytes(bytes).context("read a record; was it written by another version?")
}
