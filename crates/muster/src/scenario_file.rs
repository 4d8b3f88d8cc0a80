//! Reads a scenario with what the command line says of it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use muster_plan::Plan;
use muster_result::sha256;
use muster_scenario::{Overrides, Reader, Source, parse};

use crate::args::ScenarioArgs;
use crate::outcome;
use crate::steering::Decider;

/// A plan and the text it was made from.
pub(crate) struct Loaded {
    pub(crate) plan: Plan,
    pub(crate) sha256: String,
    /// Decides on the load.
    pub(crate) decider: Decider,
}

/// Reads and parses; problems of the scenario are one error with all of them.
pub(crate) fn load(args: &ScenarioArgs) -> Result<Loaded> {
    let name = args.scenario.display().to_string();
    let bytes =
        std::fs::read(&args.scenario).with_context(|| format!("read the scenario {name}"))?;
    let text = muster_load::text(&bytes).map_err(|error| {
        anyhow!("read the scenario {name}: {error}, or name another file if it is no scenario")
    })?;
    let mut overrides = Overrides::new();
    for set in &args.set {
        if let Some(path) = literal_secret(set) {
            outcome::remark(&format!(
                "warning: --set {path}: everybody can read this secret in the process list and in the shell's \
                 history; write --set '{path}=${{env:NAME}}' and put it into that variable"
            ));
        }
        overrides
            .add(set)
            .map_err(|problems| anyhow!("{problems}"))?;
    }
    if let Some(seed) = args.seed {
        overrides.set("seed", &seed.to_string());
    }
    for label in &args.labels {
        let (key, value) = label
            .split_once('=')
            .filter(|(key, value)| !key.is_empty() && !value.is_empty())
            .ok_or_else(|| {
                anyhow!("read --label `{label}`: write it as key=value, neither of them empty")
            })?;
        overrides.set_text(&format!("labels[{key}]"), value);
    }
    let reader = Disk {
        folder: args
            .scenario
            .parent()
            .map(Path::to_path_buf)
            .unwrap_or_default(),
    };
    let source = Source { name: &name, text };
    let plan = parse(source, &overrides, &reader).map_err(|problems| anyhow!("{problems}"))?;
    let sha256 = sha256(text.as_bytes());
    Ok(Loaded {
        plan,
        sha256,
        decider: Decider::Scenario,
    })
}

/// The path of a value that is a secret and stands on the command line itself.
fn literal_secret(set: &str) -> Option<&str> {
    let (path, value) = set.split_once('=')?;
    let mut keys = path.rsplit('.');
    let last = keys.next()?;
    // Bytes stand one key deeper: `secret.hex`.
    let key = match last {
        "hex" | "base64" => keys.next()?,
        last => last,
    };
    let is_secret = ["token", "password", "secret"].contains(&key);
    (is_secret && !value.contains("${")).then_some(path)
}

/// Files in the scenario's folder, and this process's environment.
struct Disk {
    folder: PathBuf,
}

impl Reader for Disk {
    fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        std::fs::read(self.folder.join(path)).map_err(|error| error.to_string())
    }

    fn folder(&self) -> String {
        // A worker process is started where this one was.
        self.folder.join("").display().to_string()
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}
