//! All that a run left behind: the content of `windows.bin`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use muster_conduct::{Afterlife, ConsumerRefusal, Ending, PushRefusal, RunData};
use muster_judge::{GeneratorHealth, Stop};
use muster_load::AddedHold;
use muster_measure::{Account, Identity, Record, Records, Timeline, WindowDelta};
use muster_model::{Listening, Micros};
use muster_report::{Event, HookRun, NodeCount};
use serde::{Deserialize, Serialize};

use sha2::{Digest, Sha256};

use crate::capacity::{Judgement, SearchBegun};
use crate::counters::NotedCounter;
use crate::events;
use crate::usage::{UsageLog, UsageNote};

mod header;
mod samples;

#[cfg(test)]
mod tests;

pub use header::Header;
use samples::SampleSeries;

/// A record of something that became known on the way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Note {
    /// The begins of the phases.
    Timeline(Timeline),
    /// Something that happened.
    Event(Event),
    /// A consumer that did not come up.
    Refusal(ConsumerRefusal),
    /// Requests that a webhook refused.
    PushesRefused(PushRefusal),
    /// The growth of the platform's own counters.
    Counters(Vec<NotedCounter>),
    /// A hold that was added while the run went on.
    Hold(AddedHold),
    /// The search whose steps the run holds.
    Search(Box<SearchBegun>),
    /// The judgement on the step of the last hold, by the windows before this record.
    Judged(Judgement),
    /// A note of the monitoring of the target.
    Usage(UsageNote),
    /// A hook that ended.
    Hook(HookRun),
    /// The counts of the platform's rule engine.
    Counted(Vec<NodeCount>),
}

/// The last record: all that is known at the end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Footer {
    pub(crate) health: GeneratorHealth,
    pub(crate) afterlives: Vec<Afterlife>,
    pub(crate) end: Micros,
    /// The time in which every consumer listened; none without consumers.
    pub(crate) listening: Option<Listening>,
    /// The end of the time in which every device received; none without devices.
    pub(crate) devices_until: Option<Micros>,
    pub(crate) ending: Ending,
    pub(crate) stop: Option<Stop>,
    pub(crate) target: NotedTarget,
}

/// CPU and memory of the target by name, if it was watched.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct NotedTarget {
    /// CPU time in seconds.
    pub cpu_s: BTreeMap<String, f64>,
    /// The largest resident set in bytes.
    pub memory_bytes: BTreeMap<String, u64>,
}

/// A whole run, or a part of one.
#[derive(Debug)]
pub struct Archive {
    /// The header.
    pub header: Header,
    /// All windows.
    pub windows: WindowDelta,
    pub(crate) identity: Option<Identity>,
    pub(crate) account: Option<Account>,
    pub(crate) timeline: Timeline,
    /// The events of the run itself; those that the windows show are added in the report.
    pub events: Vec<Event>,
    pub(crate) refusals: Vec<ConsumerRefusal>,
    pub(crate) pushes_refused: Vec<PushRefusal>,
    /// Counts that the platform made itself.
    pub counted: Counted,
    pub(crate) samples: SampleSeries,
    pub(crate) usage: UsageLog,
    pub(crate) footer: Option<Footer>,
    /// Whole records that were read.
    records: u64,
    /// The reason why a part could not be read, if so.
    pub unread: Option<String>,
    /// True if the run that writes it has not ended.
    pub is_running: bool,
}

impl Archive {
    /// The archive of a run that has written its header only.
    fn new(header: Header) -> Self {
        Self {
            header,
            windows: WindowDelta::default(),
            identity: None,
            account: None,
            timeline: Timeline::CONNECTING,
            events: Vec::new(),
            refusals: Vec::new(),
            pushes_refused: Vec::new(),
            counted: Counted::default(),
            samples: SampleSeries::default(),
            usage: UsageLog::default(),
            footer: None,
            records: 0,
            unread: None,
            is_running: false,
        }
    }

    /// The archive of a run that has ended: its windows are those that were written meanwhile,
    /// and those that could not be; its samples and hooks are those that were written.
    pub fn of(header: Header, data: RunData, target: NotedTarget, written: Result<Self>) -> Self {
        let unread = written.as_ref().err().map(|error| format!("{error:#}"));
        let (mut windows, usage) = written
            .map(|archive| (archive.windows, archive.usage))
            .unwrap_or_default();
        windows.merge(&data.unkept);
        let events = events::of_incidents(&data.incidents);
        let devices_until = header.part.links.map(|_| data.end);
        Self {
            header,
            windows,
            identity: data.identity,
            account: data.account,
            timeline: data.timeline,
            events,
            refusals: events::refusals(&data.incidents),
            pushes_refused: events::pushes_refused(&data.incidents),
            counted: Counted::default(),
            samples: SampleSeries::default(),
            usage,
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

    /// The records that follow the windows at the end of a run.
    pub fn last_records(&self) -> Vec<Record> {
        let events = self.events.iter().cloned().map(Note::Event);
        let refusals = self.refusals.iter().cloned().map(Note::Refusal);
        let pushes = self.pushes_refused.iter().cloned();
        let pushes = pushes.map(Note::PushesRefused);
        let counters = self.counted.counters.clone().map(Note::Counters);
        let counted = self.counted.nodes.clone().map(Note::Counted);
        let notes = events.chain(refusals).chain(pushes);
        let notes = notes.chain(counters).chain(counted);
        let notes = notes.chain([Note::Timeline(self.timeline)]);
        let mut records: Vec<Record> = notes.map(|note| Record::Event(encoded(&note))).collect();
        let identity = self.identity.clone().map(Box::new);
        records.extend(identity.map(Record::Identity));
        let account = self.account.clone().map(Box::new);
        records.extend(account.map(Record::Account));
        let footer = self.footer.as_ref();
        records.extend(footer.map(|footer| Record::Footer(encoded(footer))));
        records
    }

    /// Reads the bytes of an archive; a torn end is what a killed run leaves. `name` is where they are kept.
    ///
    /// # Errors
    /// If they hold no run, or one of another version.
    pub fn read(bytes: &[u8], name: &str) -> Result<Self> {
        let mut records = Records::new(bytes);
        if bytes.is_empty() {
            bail!("read {name}: this run was ended before it began, so that it has no result");
        }
        let Some(Record::Header(header)) = records.next() else {
            bail!("read {name}: it does not begin with the header of a run");
        };
        let header: Header =
            decoded(&header).with_context(|| format!("read the header of {name}"))?;
        let mut archive = Self::new(header);
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
            let at = records.bytes_read();
            archive.unread = Some(format!(
                "read {name} beyond record {whole} (byte {at} of {}): it is cut or damaged there",
                bytes.len()
            ));
        }
        archive.records = whole;
        Ok(archive)
    }

    /// A part that cannot be read although the run came to its end, as the end of a sentence that
    /// begins with "failed to"; `name` is where the bytes are kept.
    pub fn damage(self, name: &str) -> Option<String> {
        let is_cut = self.unread.is_none() && self.footer.is_none();
        self.unread.or_else(|| {
            is_cut.then(|| {
                format!(
                    "read {name} beyond record {}: it is cut there, before its last record",
                    self.records
                )
            })
        })
    }

    /// Takes in another part of the same run.
    pub fn merge(&mut self, other: Self) -> Result<()> {
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
        let identity = self.identity.take().zip(other.identity);
        self.identity = identity.map(|(mut mine, theirs)| {
            mine.merge(theirs);
            mine
        });
        let account = self.account.take().zip(other.account);
        self.account = account.map(|(mut mine, theirs)| {
            mine.merge(&theirs);
            mine
        });
        self.events.extend(other.events);
        self.usage.or(other.usage);
        self.refusals.extend(other.refusals);
        self.pushes_refused.extend(other.pushes_refused);
        let footer = self.footer.take().zip(other.footer);
        self.footer = footer.map(|(mine, theirs)| mine.merged(theirs));
        Ok(())
    }

    /// The names of the streams.
    pub fn stream_names(&self) -> Vec<String> {
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
                let (agent, sample) = decoded(&bytes)?;
                self.samples.add(agent, sample);
            }
            Record::Event(bytes) => match decoded(&bytes)? {
                Note::Timeline(timeline) => self.timeline = timeline,
                Note::Event(event) => self.events.push(event),
                Note::Refusal(refusal) => self.refusals.push(refusal),
                Note::PushesRefused(refusal) => self.pushes_refused.push(refusal),
                Note::Hold(hold) => self.header.plan.add_hold(&hold),
                Note::Counters(counters) => self.counted.counters = Some(counters),
                Note::Counted(nodes) => self.counted.nodes = Some(nodes),
                Note::Usage(note) => self.usage.add(note),
                Note::Hook(hook) => self.usage.add_hook(hook),
                Note::Search(_) | Note::Judged(_) => {}
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

/// Counts that the platform made itself during a run.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// Growth of the platform's counters; none if nobody read any.
    pub counters: Option<Vec<NotedCounter>>,
    /// Counts of its rule engine by node; none if it did not count.
    pub nodes: Option<Vec<NodeCount>>,
}

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A value as the bytes of a record.
pub fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("a record's value has a binary form and memory for it")
}

pub(crate) fn decoded<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    postcard::from_bytes(bytes).context("read a record; was it written by another version?")
}
