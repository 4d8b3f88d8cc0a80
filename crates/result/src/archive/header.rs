//! The first record of an archive.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use muster_conduct::Part;
use muster_load::PayloadSpec;
use muster_measure::{Record, Records};
use muster_model::RunId;
use muster_plan::{ClientId, ClientPlan, Credential, Plan};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{decoded, encoded, sha256};

/// The first record: all that is known before the first message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Header {
    /// Version of the program that ran.
    pub muster: String,
    /// The plan without its secrets.
    pub plan: Plan,
    /// The run, which its parts share.
    pub run: RunId,
    /// The part of the run that this is.
    pub part: Part,
    /// A hash of the scenario's text.
    pub scenario_sha256: String,
    /// Of the plan, its rules among them, as [`Header::digest`] has it.
    pub resolved_sha256: String,
    /// The instant of the beginning, as RFC 3339.
    pub started: String,
    /// The environment of the run, as JSON text.
    pub environment: String,
    /// True if target or backend shared a machine with the generator.
    pub co_located: bool,
    /// The clocks that its instants were read from, one for each host.
    pub clocks: Vec<String>,
}

impl Header {
    /// Puts a mask where the plan has secrets, so that they never reach a disk.
    pub fn without_secrets(mut plan: Plan) -> Plan {
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
    pub fn for_disk(plan: Plan) -> Plan {
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

    /// A hash of the plan and its rules, whether the scenario's text, `--set`, `--seed` or a file named
    /// there set them. Labels and secrets do not count.
    pub fn digest(plan: &Plan) -> String {
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

    /// The digest that the plan of this header has; none if a part of it that counts was not written.
    pub(crate) fn digest_again(&self) -> Option<String> {
        let plan = &self.plan;
        let has_table = plan.fleets.iter().any(|fleet| fleet.data.is_some());
        let written: Json = serde_json::from_str(&plan.resolved).ok()?;
        let mut fleets = written.get("fleet")?.as_array()?.iter();
        (!has_table && !fleets.any(is_cut)).then(|| Self::digest(plan))
    }

    /// Reads the header of an archive: the plan as it was before the first message.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self> {
        match Records::new(bytes).next() {
            Some(Record::Header(header)) => decoded(&header).context("read the header"),
            Some(_) | None => bail!("it does not begin with the header of a run"),
        }
    }
}

/// True if a part of the scenario, as it was written, refers to the environment.
fn refers_to_environment(written: &Json) -> bool {
    written.to_string().contains("${env:")
}

/// True if [`Header::for_disk`] leaves out a part of a fleet, as it was written.
fn is_cut(fleet: &Json) -> bool {
    let streams = fleet.get("streams").and_then(Json::as_array);
    let payloads = streams.into_iter().flatten();
    let payloads = payloads.filter_map(|stream| stream.get("payload"));
    let of_client = ["/client/will", "/client/id"];
    let of_client = of_client.iter().filter_map(|part| fleet.pointer(part));
    payloads.chain(of_client).any(refers_to_environment)
}

impl Header {
    /// True if senders and consumers read one clock.
    pub fn has_one_clock(&self) -> bool {
        self.clocks.len() <= 1
    }

    /// Takes in the clocks of another part.
    pub(super) fn add_clocks(&mut self, clocks: Vec<String>) {
        self.clocks.extend(clocks);
        self.clocks.sort_unstable();
        self.clocks.dedup();
    }
}
