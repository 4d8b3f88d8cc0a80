//! The searches of a growth that ended, one line each: a growth that was killed goes on after them.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use muster_judge::capacity::{Outcome as StepOutcome, Phase};
use muster_model::{Micros, figure};
use muster_plan::{Plan, PublishedPolicy, ScalePlan, ScalePolicy, SweepPlan};
use muster_report::CapacityStep;
use muster_result::{Header, encoded, sha256};
use muster_scale::{Outcome, Setting};
use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The name of the file in the folder of the growth.
const FILE: &str = "scale.jsonl";
/// Name and version of its form.
const SCHEMA: &str = "muster-growth/1";

/// A search that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The number of instances, of all components.
    pub(super) instances: u32,
    /// Numbers for each component, and the environment.
    #[serde(flatten)]
    pub(super) setting: Setting,
    /// The outcome.
    #[serde(flatten)]
    pub(super) outcome: Outcome,
    /// The folder of its result.
    pub(super) folder: String,
    /// Its begin, in seconds since that of the growth, without the time between runs of the command.
    pub(super) began_s: f64,
    /// Its length in seconds, that of the change of instances included.
    pub(super) took_s: f64,
    /// The load that each address received; empty where it was not counted by address.
    pub(super) load: Vec<Load>,
    /// Its steps, in order.
    pub(super) steps: Vec<HeldStep>,
}

impl Entry {
    /// Its end, in the time of [`Entry::began_s`].
    pub(super) fn ended_s(&self) -> f64 {
        self.began_s + self.took_s
    }

    /// The same search with the time of its steps counted from `run_s` before its run.
    pub(super) fn later(mut self, run_s: f64) -> Self {
        for step in &mut self.steps {
            step.from_s += run_s;
            step.until_s += run_s;
        }
        self
    }
}

/// A step of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct HeldStep {
    /// Its begin, as that of the search, to about a second.
    pub(super) from_s: f64,
    /// Its end.
    pub(super) until_s: f64,
    /// Its rate, per second.
    pub(super) load: f64,
    /// The failed as a part of the messages due in it; null if none was.
    pub(super) failed_share: Option<f64>,
    /// Its part in the search.
    pub(super) phase: Phase,
    /// Its outcome.
    pub(super) outcome: StepOutcome,
    /// Messages that each address was sent in it; empty where they were not counted by address.
    pub(super) sent_to: BTreeMap<String, u64>,
}

impl HeldStep {
    /// A step, in seconds since its run began.
    pub(super) fn new(step: &CapacityStep) -> Self {
        let ledger = &step.figures.ledger;
        let due = ledger.scheduled.filter(|due| *due > 0);
        Self {
            from_s: step.figures.from_s,
            until_s: step.figures.until_s,
            load: step.load,
            failed_share: due.map(|due| ledger.failed as f64 / due as f64),
            phase: step.phase,
            outcome: step.outcome,
            sent_to: step.sent_to.clone(),
        }
    }
}

/// The load that an address received.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Load {
    /// The address.
    pub(super) address: String,
    /// Links that connected.
    pub(super) connected: u64,
    /// Messages that were sent.
    pub(super) sent: u64,
    /// Messages that were accepted.
    pub(super) accepted: u64,
}

/// The first line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    schema: String,
    /// Hash of the plan and its rules.
    pub(super) plan: String,
    /// Hash of `scale`, without the longest wait: that may be raised where instances were too slow.
    scale: String,
    /// The parts of `scale` that the answer rests on.
    pub(super) basis: Basis,
}

/// The parts of `scale` that an answer rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Basis {
    /// One at the least.
    pub(super) components: Vec<Component>,
    pub(super) sweep: Option<SweepPlan>,
    /// Parameters of the published policy; null of the policy `muster`.
    pub(super) published: Option<PublishedPolicy>,
}

/// A component of the target without its actuator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Component {
    /// Empty if it is the only one.
    pub(super) name: String,
    pub(super) least: u32,
    pub(super) most: u32,
    /// Price of an instance for an hour.
    pub(super) price: Option<f64>,
}

impl Basis {
    pub(super) fn new(scale: &ScalePlan) -> Self {
        let components = scale.components.iter().map(|of| Component {
            name: of.name.clone(),
            least: of.least,
            most: of.most,
            price: of.price,
        });
        Self {
            components: components.collect(),
            sweep: scale.sweep.clone(),
            published: match scale.policy {
                ScalePolicy::Muster => None,
                ScalePolicy::Published(policy) => Some(policy),
            },
        }
    }

    /// The only component of the published policy.
    pub(super) fn only(&self) -> Result<&Component> {
        self.components
            .first()
            .context("find the component that grows")
    }

    /// Price of these instances of each component for an hour; none if that of one of the components is unknown.
    pub(super) fn price_per_hour(&self, sizes: &[u32]) -> Option<f64> {
        let all = self.components.iter().zip(sizes);
        all.map(|(of, size)| Some(of.price? * f64::from(*size)))
            .sum()
    }

    /// Instances in words: `2 instances`, or those of each component, with their environment.
    pub(super) fn in_words(&self, setting: &Setting) -> String {
        let all = self.components.iter().zip(&setting.sizes);
        let all = all.map(|(of, size)| match &of.name[..] {
            "" => instances_in_words(*size),
            name => format!("{name} {size}"),
        });
        let mut words: Vec<String> = all.collect();
        let sweep = self.sweep.as_ref();
        let environment = sweep.and_then(|sweep| sweep.environments.get(setting.environment));
        let variables = environment.into_iter().flatten();
        words.extend(variables.map(|of| format!("{}={}", of.name, of.value)));
        words.join(", ")
    }

    /// The line on instances that are ready.
    pub(super) fn ready_in_words(&self, setting: &Setting) -> String {
        let words = self.in_words(setting);
        let is_plain = self.sweep.is_none() && self.components.iter().all(|of| of.name.is_empty());
        match (is_plain, &setting.sizes[..]) {
            (true, [1]) => format!("{words} is ready"),
            (true, _) => format!("{words} are ready"),
            (false, _) => format!("ready: {words}"),
        }
    }

    /// The name of the folder of a search, behind its number.
    pub(super) fn folder_name(&self, setting: &Setting) -> String {
        let all = self.components.iter().zip(&setting.sizes);
        let all = all.map(|(of, size)| match &of.name[..] {
            "" => format!("instances-{size}"),
            name => format!("{name}-{size}"),
        });
        all.collect::<Vec<_>>().join("-")
    }
}

/// A number of instances in words: `1 instance`, `2 instances`.
pub(super) fn instances_in_words(number: u32) -> String {
    figure::number_of(u64::from(number), "instance")
}

impl Head {
    pub(super) fn new(plan: &Plan, scale: &ScalePlan) -> Self {
        let scale = ScalePlan {
            timeout: Micros::ZERO,
            ..scale.clone()
        };
        Self {
            schema: SCHEMA.to_owned(),
            plan: Header::digest(plan),
            scale: sha256(&encoded(&scale)),
            basis: Basis::new(&scale),
        }
    }
}

/// The file of the searches. While it is open, no other growth opens it.
#[derive(Debug)]
pub(crate) struct Log {
    file: File,
    path: PathBuf,
}

impl Log {
    /// True if a folder has one.
    pub(crate) fn is_in(folder: &Path) -> bool {
        folder.join(FILE).exists()
    }

    /// Reads the file of a folder: its first line, and its whole lines.
    ///
    /// # Errors
    /// If it is not there, or has another form.
    pub(super) fn read(folder: &Path) -> Result<(Head, String)> {
        let path = folder.join(FILE);
        let text = std::fs::read_to_string(&path);
        let mut text = text.with_context(|| format!("read {}", path.display()))?;
        text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        let head = parse_head(&text).map_err(|why| anyhow!("read {}: {why}", path.display()))?;
        let head =
            head.with_context(|| format!("read {}: it has no whole line", path.display()))?;
        Ok((head, text))
    }

    /// Opens the file of a folder, and reads the searches in it.
    ///
    /// # Errors
    /// If another growth has it open, or began otherwise.
    pub(super) fn open<E: DeserializeOwned>(folder: &Path, head: &Head) -> Result<(Self, Vec<E>)> {
        let path = folder.join(FILE);
        let options = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(&path);
        let file = options.with_context(|| format!("write to {}", path.display()))?;
        // A file system without locks does not keep a growth from its result.
        let lock = flock(&file, FlockOperation::NonBlockingLockExclusive);
        if lock == Err(rustix::io::Errno::WOULDBLOCK) {
            bail!(
                "grow the target in {}: a growth is under way there; wait for its end, or end its process",
                folder.display()
            );
        }
        let mut log = Self { file, path };
        let mut text = String::new();
        let read = log.file.read_to_string(&mut text);
        read.with_context(|| format!("read {}", log.path.display()))?;
        // What a kill cut off is the last line.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let whole = &text[..whole];
        let unreadable = |why: String| {
            anyhow!(
                "read {}: {why}; begin anew without --resume",
                log.path.display()
            )
        };
        let before = parse_head(whole).map_err(unreadable)?;
        if before.as_ref().is_some_and(|before| before != head) {
            bail!(
                "go on in {}: its scenario, --set or --seed were others; give the same, or begin anew without --resume",
                folder.display()
            );
        }
        // Another policy has other entries.
        let entries = parse(whole).map_err(unreadable)?;
        let cut = log.file.set_len(whole.len() as u64);
        cut.with_context(|| format!("write to {}", log.path.display()))?;
        if before.is_none() {
            log.line(head)?;
        }
        Ok((log, entries))
    }

    /// Adds a search that ended.
    pub(super) fn append(&mut self, entry: &impl Serialize) -> Result<()> {
        self.line(entry)
    }

    /// Reads what was added.
    pub(super) fn entries<E: DeserializeOwned>(&self) -> Result<Vec<E>> {
        let text = std::fs::read_to_string(&self.path);
        let text = text.with_context(|| format!("read {}", self.path.display()))?;
        parse(&text).map_err(|why| anyhow!("read {}: {why}", self.path.display()))
    }

    /// The same file for another owner.
    pub(super) fn again(&self) -> Result<Self> {
        let file = self.file.try_clone();
        Ok(Self {
            file: file.with_context(|| format!("open {}", self.path.display()))?,
            path: self.path.clone(),
        })
    }

    fn line(&mut self, content: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(content)? + "\n";
        let written = self
            .file
            .write_all(text.as_bytes())
            .and_then(|()| self.file.sync_data());
        written.with_context(|| format!("write to {}", self.path.display()))
    }
}

/// The first of whole lines; none of no line.
fn parse_head(whole: &str) -> Result<Option<Head>, String> {
    let Some(first) = whole.lines().next() else {
        return Ok(None);
    };
    let head: Head = serde_json::from_str(first).map_err(|error| format!("line 1: {error}"))?;
    match head.schema == SCHEMA {
        true => Ok(Some(head)),
        false => Err(format!(
            "it has the form `{}`, and this program reads `{SCHEMA}`",
            head.schema
        )),
    }
}

/// The searches of whole lines: all but the first one.
pub(super) fn parse<E: DeserializeOwned>(whole: &str) -> Result<Vec<E>, String> {
    let entries = (1..).zip(whole.lines()).skip(1).map(|(number, line)| {
        serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn head(plan: &str) -> Head {
        Head {
            schema: SCHEMA.to_owned(),
            plan: plan.to_owned(),
            scale: "scale".to_owned(),
            basis: Basis {
                components: Vec::new(),
                sweep: None,
                published: None,
            },
        }
    }

    fn entry(instances: u32) -> Entry {
        Entry {
            instances,
            setting: Setting::new(vec![instances]),
            outcome: Outcome::AtLeast {
                rate: 9.0,
                bound: None,
            },
            folder: "01".to_owned(),
            began_s: 1.0,
            took_s: 2.0,
            load: Vec::new(),
            steps: Vec::new(),
        }
    }

    fn open(folder: &Path, plan: &str) -> Result<(Log, Vec<Entry>)> {
        Log::open(folder, &head(plan))
    }

    #[test]
    fn a_line_that_was_cut_off_is_left_out_and_an_unreadable_one_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        let (mut log, _) = open(folder.path(), "plan").expect("a log");
        log.append(&entry(1)).expect("it is written");
        log.append(&entry(2)).expect("it is written");
        drop(log);
        let text = fs::read_to_string(&path).expect("a text");
        fs::write(&path, &text[..text.len() - 3]).expect("it is cut");
        let (mut log, entries) = open(folder.path(), "plan").expect("a log");
        assert_eq!(entries, [entry(1)]);
        log.append(&entry(2)).expect("it is written");
        drop(log);
        assert_eq!(fs::read_to_string(&path).expect("a text"), text);
        let damaged = text.replacen("\"instances\":1", "\"instances\":x", 1);
        fs::write(&path, &damaged).expect("it is damaged");
        let error = open(folder.path(), "plan").expect_err("a damaged line");
        assert!(format!("{error:#}").contains("line 2"), "{error:#}");
        assert_eq!(fs::read_to_string(&path).expect("a text"), damaged);
    }

    #[test]
    fn a_growth_under_way_or_of_another_plan_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (log, _) = open(folder.path(), "plan").expect("a log");
        let error = open(folder.path(), "plan").expect_err("it is under way");
        assert!(error.to_string().contains("under way"), "{error:#}");
        drop(log);
        let error = open(folder.path(), "another").expect_err("another plan");
        assert!(error.to_string().contains("were others"), "{error:#}");
        open(folder.path(), "plan").expect("it goes on");
        // The entries of another policy are not of the same kind.
        let path = folder.path().join(FILE);
        let text = fs::read_to_string(&path).expect("a text");
        let write = |text: &str| fs::write(&path, text).expect("it is written");
        write(&(text.clone() + "{\"level\":1}\n"));
        let error = open(folder.path(), "another").expect_err("another plan");
        assert!(error.to_string().contains("were others"), "{error:#}");
        write(&text.replace(SCHEMA, "muster-growth/9"));
        let error = open(folder.path(), "plan").expect_err("another form");
        assert!(error.to_string().contains("muster-growth/9"), "{error:#}");
    }
}
