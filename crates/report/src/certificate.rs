//! The certificate of a run: what was measured, how, on what, the rules, and the answer, with a digest
//! of every other file of its folder (docs/certificate.md).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use muster_judge::SetNames;
use muster_measure::{Ledger, Rates};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::result::indented;
use crate::{Figure, GeneratorUse, Latencies, Report, RuleKind, Step, Verdict};

/// The name and version of the form of a certificate.
pub const CERTIFICATE_SCHEMA: &str = "muster-certificate/1";

/// A statement on one run that follows from the files in its folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Always [`CERTIFICATE_SCHEMA`].
    pub schema: String,
    /// Version of the program that ran.
    pub muster: String,
    /// The scenario's name.
    pub name: String,
    /// The run's id.
    pub run: String,
    /// Wall clock at T0, RFC 3339 in UTC.
    pub started: Option<String>,
    /// Length of the measured phase; null if it never began.
    pub measured_s: Option<f64>,
    /// SHA-256 of the scenario's text.
    pub scenario_sha256: Option<String>,
    /// SHA-256 of the plan and its rules, which the run wrote before its first message.
    pub resolved_sha256: Option<String>,
    /// The scenario as resolved, secrets masked.
    pub scenario: Value,
    /// Machine, kernel, limits and target.
    pub environment: Value,
    /// True if the target ran on the generator's machine.
    pub co_located: Option<bool>,
    /// The rules as they were declared before the run.
    pub declared: Vec<DeclaredRule>,
    /// The answer, with the evidence of every rule.
    pub verdict: Verdict,
    /// The figures behind the answer.
    pub figures: CertifiedFigures,
    /// The steps of the run, each with its evidence.
    pub steps: Vec<Step>,
    /// Health of the generator.
    pub generator: GeneratorUse,
    /// Quality of the clocks.
    pub clock: ClockQuality,
    /// Every other file of the folder, by name.
    pub files: BTreeMap<String, FileDigest>,
}

/// A rule before the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeclaredRule {
    /// The rule's name.
    pub rule: String,
    /// Scope of the rule.
    pub scope: String,
    /// The sets of SLOs that it belongs to; left out if it belongs to all.
    #[serde(default, skip_serializing_if = "SetNames::is_all")]
    pub sets: SetNames,
    /// The kind of rule.
    pub kind: RuleKind,
    /// True if the scenario names it, false for a default.
    pub named: bool,
    /// Allowed figure; null for rules without one.
    pub bound: Option<Figure>,
}

/// The figures that a certificate states.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CertifiedFigures {
    /// The rates of the measured phase.
    pub rates: Rates,
    /// Latencies of the measured cohort.
    pub latency: Latencies,
    /// Messages of warm-up and measured phase.
    pub uplink: Ledger,
    /// Messages of the measured phase.
    pub measured: Ledger,
}

/// Quality of the clocks that the instants were read from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClockQuality {
    /// The kernel's source of time, such as `tsc`.
    pub source: Option<String>,
    /// Events of stepped, suspended or different clocks, in words.
    pub events: Vec<String>,
}

/// A file as it was when the certificate was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDigest {
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
}

impl Certificate {
    /// The certificate of a run with these files.
    pub fn new(report: &Report, files: BTreeMap<String, FileDigest>) -> Self {
        let declared = report.verdict.rules.iter().map(|rule| DeclaredRule {
            rule: rule.rule.clone(),
            scope: rule.scope.clone(),
            sets: rule.sets.clone(),
            kind: rule.kind,
            named: rule.named,
            bound: rule.bound,
        });
        let source = report.environment.pointer("/machine/clock_source");
        let is_clock = |kind: &str| kind.contains("clock");
        let events = report.events.iter().filter(|event| is_clock(&event.kind));
        Self {
            schema: CERTIFICATE_SCHEMA.to_owned(),
            muster: report.muster.clone(),
            name: report.name.clone(),
            run: report.run.clone(),
            started: report.started.clone(),
            measured_s: report.measured_s,
            scenario_sha256: report.scenario_sha256.clone(),
            resolved_sha256: report.resolved_sha256.clone(),
            scenario: report.scenario.clone(),
            environment: report.environment.clone(),
            co_located: report.co_located,
            declared: declared.collect(),
            verdict: report.verdict.clone(),
            figures: CertifiedFigures {
                rates: report.rates,
                latency: report.latency.clone(),
                uplink: report.ledger.uplink.clone(),
                measured: report.ledger.measured.clone(),
            },
            steps: report.steps.clone(),
            generator: report.generator.clone(),
            clock: ClockQuality {
                source: source.and_then(Value::as_str).map(str::to_owned),
                events: events
                    .map(|event| format!("{}: {}", event.kind, event.detail))
                    .collect(),
            },
            files,
        }
    }

    /// The text of `certificate.json`: indented, with a line feed at the end.
    pub fn to_json(&self) -> String {
        indented(self)
    }

    /// The certificate in a few lines.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{}  {}  run {}, {}\n",
            self.verdict.result.name().to_uppercase(),
            self.name,
            self.run,
            self.started.as_deref().unwrap_or("start unknown")
        );
        let _ = writeln!(text, "rules: {}", self.verdict.counts());
        let target = self.environment.get("target").and_then(Value::as_str);
        let _ = writeln!(text, "target: {}", target.unwrap_or("-"));
        let _ = writeln!(
            text,
            "clock: {}, {} events",
            self.clock.source.as_deref().unwrap_or("unknown"),
            self.clock.events.len()
        );
        for (name, file) in &self.files {
            let _ = writeln!(text, "sha256 {}  {name}", file.sha256);
        }
        text
    }
}
