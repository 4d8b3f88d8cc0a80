//! The report on an archive: the same steps for a run that has just ended, for one that was
//! killed, and for the merged parts of one.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use muster_conduct::{Afterlife, Ending, Part, PlanCalendar, recorder_plan, schedules};
use muster_judge::{
    Evidence, GeneratorHealth, Hints, ResourceOutlook, StreamEvidence, StreamRole, Warning,
    WarningKind, holds, judge, judge_step,
};
use muster_load::StreamSchedule;
use muster_measure::{Calendar, Closing, Ledger, LinkLedger, Summary, Timeline};
use muster_model::{ConnectFailure, DeviceId, Listening, Micros, figure};
use muster_plan::{Plan, Policy, Problem, StepPlan, StreamKind, StreamPlan};
use muster_platform::Carrier;
use muster_report::{
    Assembly, GeneratorUse, JudgedStep, MonitoredSeries, Names, Report, ResourceTrend, SEARCHED,
    Step, TargetUse, Unfinished,
};

use crate::archive::Archive;
use crate::counters;
use crate::events::{self, CLOCKS_APART};
use crate::hints::{Findings, hints};
use crate::live::HealthLog;
use crate::published::published;
use crate::server_count;

/// Ranges of lost ids listed for each backend; beyond it they are counted only.
const LOST_RANGES_MAX: usize = 1_000;

/// Reasons of consumers that a sentence lists: many of them fail alike.
const REASONS_MAX: usize = 3;

/// With fewer devices the memory of a process that is not the links' (windows, pools, stacks)
/// would be counted as theirs.
const DEVICES_MIN: u64 = 5_000;

impl Archive {
    /// The report, judged by the rules that were fixed before the first message.
    pub fn report(&self) -> Result<Report> {
        let plan = &self.header.plan;
        let schedules = schedules(plan).map_err(|error| anyhow!("make a schedule: {error}"))?;
        let planned = self.steps();
        let (summary, steps) = self.summary(&schedules, &planned);
        let health = self.health();
        let backends = plan.account_names();
        let is_counted = self.is_counted();
        let streams = stream_evidence(plan, &schedules, self.timeline, is_counted);
        let ending = self.ending(&summary);
        let target = self.target(&summary);
        let mut found: Vec<Warning> = plan.warnings.iter().map(of_scenario).collect();
        found.extend(events::warnings(&self.events));
        found.extend(events::hook_warnings(self.usage.hooks()));
        let counters = target.counters.iter().flatten();
        found.extend(counters.filter_map(counters::differing));
        let fleets = plan.fleets.iter().map(|fleet| fleet.name.clone());
        let fleets: Vec<String> = fleets.collect();
        let reason_strings = events::reason_strings(&self.events);
        let hints = self.hints(&summary);
        let resources = self.outlooks();
        let evidence = Evidence {
            summary: &summary,
            windows: &self.windows,
            health: &health,
            streams: &streams,
            fleets: &fleets,
            reason_strings: &reason_strings,
            hints: &hints,
            backends: &backends,
            ending: &ending,
            is_part: self.header.part != Part::WHOLE,
            found: &found,
            resources: &resources,
        };
        let verdict = judge(&plan.rules, &evidence);
        let steps = self.judged_steps(&evidence, &steps, &planned);
        let names = Names {
            streams: streams.iter().map(|stream| stream.name.clone()).collect(),
            backends,
            device: &|device| device_name(plan, device),
        };
        let published = published(
            plan,
            &schedules,
            self.identity.as_ref(),
            &summary,
            self.targets(),
        );
        let facts = Report {
            published,
            steps,
            target,
            monitor: self.monitored(&resources),
            ..self.facts(&summary)?
        };
        let assembly = Assembly {
            facts,
            names: &names,
            summary: &summary,
            windows: &self.windows,
            verdict: &verdict,
            health: &health,
        };
        Ok(assembly.report())
    }

    /// True if the platform's own counters were read and count its tenants alone.
    fn is_counted(&self) -> bool {
        let names = self.header.plan.platform.dialect().spec().counters.as_ref();
        let noted = self.counted.counters.iter().flatten();
        let is_exact = names.is_some_and(|names| names.tenant.is_some());
        is_exact && noted.map(|it| it.grown).any(|grown| grown.is_some())
    }

    /// The outlooks of the target's resources, if the scenario has `soak`.
    fn outlooks(&self) -> Vec<ResourceOutlook> {
        let soak = self.header.plan.rules.soak;
        soak.map_or_else(Vec::new, |wanted| {
            self.usage.outlooks(self.timeline, wanted)
        })
    }

    /// The samples of the target, each with its outlook if it has one.
    fn monitored(&self, outlooks: &[ResourceOutlook]) -> Vec<MonitoredSeries> {
        let mut all = self.usage.series(self.timeline);
        for series in &mut all {
            let name = format!("{} {}", series.name, series.resource);
            let known = outlooks.iter().find(|of| of.name == name);
            series.outlook = known.map(|of| ResourceTrend::from(&of.outlook));
        }
        all
    }

    fn hints(&self, summary: &Summary) -> Hints {
        let ending = self.footer.as_ref().map(|footer| footer.ending);
        let (plan, backends) = (&self.header.plan, &summary.backends);
        let findings = Findings {
            events: &self.events,
            refusals: &self.refusals,
            pushes_refused: &self.pushes_refused,
        };
        hints(plan, findings, ending, backends)
    }

    /// The steps that the plan has on the clock of the run.
    fn steps(&self) -> Vec<StepPlan> {
        let measure = self.timeline.measure;
        match measure < Micros::MAX {
            true => self.header.plan.steps(measure),
            false => Vec::new(),
        }
    }

    /// The run in figures, and those of its steps that began.
    fn summary(
        &self,
        schedules: &[Arc<StreamSchedule>],
        steps: &[StepPlan],
    ) -> (Summary, Vec<Summary>) {
        let plan = &self.header.plan;
        let recorder = recorder_plan(plan, self.header.run, schedules);
        let calendar = PlanCalendar::new(plan, schedules, self.timeline);
        let has_begun = self.timeline.origin < Micros::MAX;
        let calendar: Option<&dyn Calendar> = if has_begun && self.header.part == Part::WHOLE {
            Some(&calendar)
        } else {
            None
        };
        let footer = self.footer.as_ref();
        let end = footer.map_or(self.windows.until, |footer| footer.end);
        Closing {
            plan: &recorder,
            windows: &self.windows,
            identity: self.identity.as_ref(),
            account: self.account.as_ref(),
            calendar,
            timeline: self.timeline,
            end,
            listening: footer
                .and_then(|footer| footer.listening)
                .unwrap_or(Listening::until(end)),
            devices_until: footer
                .and_then(|footer| footer.devices_until)
                .unwrap_or(end),
            has_one_clock: self.header.has_one_clock(),
            quiet: plan.phases.settle.quiet,
            lost_ranges_most: LOST_RANGES_MAX,
        }
        .summary_in_steps(
            &steps
                .iter()
                .map(|step| step.from.second())
                .collect::<Vec<_>>(),
        )
    }

    /// The steps with their verdicts. A change of rate is not judged, nor is anything of one part, or of a
    /// run without an end.
    fn judged_steps(
        &self,
        run: &Evidence<'_>,
        steps: &[Summary],
        planned: &[StepPlan],
    ) -> Vec<Step> {
        let has_verdict = self.footer.is_some() && !run.is_part;
        let judged = steps.iter().zip(planned).map(|(step, planned)| JudgedStep {
            rate: planned.rate,
            rate_until: planned.rate_until,
            is_hold: planned.is_hold,
            summary: step,
            verdict: (planned.is_hold && has_verdict)
                .then(|| judge_step(&self.header.plan.rules, run, step))
                .flatten(),
        });
        Step::all(&judged.collect::<Vec<_>>())
    }

    /// The health of the generator; of a killed run, by its samples.
    fn health(&self) -> GeneratorHealth {
        if let Some(footer) = &self.footer {
            return footer.health.clone();
        }
        let mut log = HealthLog::default();
        for (agent, sample) in self.samples.iter() {
            log.add(agent, sample);
        }
        log.health().clone()
    }

    fn ending(&self, summary: &Summary) -> muster_judge::Ending {
        let Some(footer) = &self.footer else {
            return muster_judge::Ending::Unfinished {
                is_running: self.is_running,
                at: self.windows.until,
            };
        };
        match footer.ending {
            Ending::Planned => muster_judge::Ending::Planned,
            Ending::Interrupted if footer.stop.is_none() => muster_judge::Ending::Interrupted,
            // A rule stops a run only while it measures: what was interrupted later was settling.
            Ending::Interrupted | Ending::SettlingInterrupted => {
                muster_judge::Ending::SettlingInterrupted { stop: footer.stop }
            }
            Ending::StoppedByRule => match footer.stop {
                Some(stop) => muster_judge::Ending::Stopped(stop),
                None => muster_judge::Ending::Interrupted,
            },
            Ending::Refused => muster_judge::Ending::NoLinkUp,
            Ending::Unreachable if is_to_be_judged(&summary.run.links) => {
                muster_judge::Ending::NoLinkUp
            }
            Ending::Unreachable => muster_judge::Ending::NotBegun(format!(
                "no device could connect to {}{}{}{}",
                self.targets(),
                failures(summary),
                self.events_of("handshake-failed", "; "),
                self.events_of("device-refused", "; ")
            )),
            Ending::SharingDeclined => muster_judge::Ending::NotBegun(format!(
                "devices that share a socket could not connect to {}{}{}",
                self.targets(),
                failures(summary),
                self.events_of("handshake-failed", "; ")
            )),
            // The causes of the verdict say why.
            Ending::ConsumersUnreachable => muster_judge::Ending::NotBegun(
                "the consumers of the backend could not subscribe".to_owned(),
            ),
        }
    }

    /// The reason why the run has no planned end.
    fn unfinished(&self) -> Option<Unfinished> {
        let Some(footer) = &self.footer else {
            let at = self.windows.until;
            return Some(match self.is_running {
                true => Unfinished::running(at),
                false => Unfinished::interrupted(at),
            });
        };
        match footer.ending {
            Ending::Interrupted => {
                let at = self.timeline.settle.min(footer.end);
                Some(Unfinished::interrupted(at))
            }
            Ending::SettlingInterrupted => Some(Unfinished::interrupted(footer.end)),
            Ending::Planned
            | Ending::StoppedByRule
            | Ending::Unreachable
            | Ending::Refused
            | Ending::ConsumersUnreachable
            | Ending::SharingDeclined => None,
        }
    }

    /// The details of all events of a kind behind `before`; empty if there are none.
    fn events_of(&self, kind: &str, before: &str) -> String {
        let of_kind = self.events.iter().filter(|event| event.kind == kind);
        let all: BTreeSet<&str> = of_kind.map(|event| event.detail.as_str()).collect();
        match all.is_empty() {
            true => String::new(),
            false => format!("{before}{}", listed(&all)),
        }
    }

    fn targets(&self) -> String {
        let environment: serde_json::Value =
            serde_json::from_str(&self.header.environment).unwrap_or_default();
        environment
            .get("target")
            .and_then(|target| target.as_str())
            .unwrap_or("-")
            .to_owned()
    }

    fn facts(&self, summary: &Summary) -> Result<Report> {
        let plan = &self.header.plan;
        let mut all = self.events.clone();
        let is_measured = all.iter().any(|event| event.kind == CLOCKS_APART);
        all.extend(events::of_clocks(&self.header.clocks, is_measured));
        all.extend(events::of_early(self.windows.early()));
        let is_part = self.header.part != Part::WHOLE;
        all.extend(events::of_series(summary, &self.windows, is_part));
        all.extend_from_slice(self.usage.events());
        all.extend(self.usage.hooks().iter().filter_map(events::event_of_hook));
        Ok(Report {
            muster: self.header.muster.clone(),
            name: plan.name.clone(),
            run: format!("{:08x}", self.header.run.0),
            seed: plan.seed,
            scenario_sha256: Some(self.header.scenario_sha256.clone()),
            resolved_sha256: Some(self.header.resolved_sha256.clone()),
            labels: plan.labels.clone(),
            started: Some(self.header.started.clone()),
            scenario: serde_json::from_str(&plan.resolved).context("read the resolved scenario")?,
            environment: self.environment()?,
            co_located: Some(self.header.co_located),
            unfinished: self.unfinished(),
            generator: self.generator(summary),
            hooks: self.usage.hooks().to_vec(),
            events: all,
            ..Report::default()
        })
    }

    /// The environment of the run, with the part of it that this is, and who decided on its load.
    fn environment(&self) -> Result<serde_json::Value> {
        let mut environment: serde_json::Value =
            serde_json::from_str(&self.header.environment).context("read the environment")?;
        let part = self.header.part;
        if let Some(map) = environment.as_object_mut() {
            if part != Part::WHOLE {
                map.insert("part".to_owned(), part.to_string().into());
            }
            if self.header.plan.added.is_some() {
                map.insert("load".to_owned(), SEARCHED.into());
            }
        }
        Ok(environment)
    }

    fn generator(&self, summary: &Summary) -> GeneratorUse {
        let Some(footer) = &self.footer else {
            return GeneratorUse::default();
        };
        let sum = |pick: fn(&Afterlife) -> u64| footer.afterlives.iter().map(pick).sum::<u64>();
        let seconds = |us: u64| us as f64 / 1e6;
        let shards_cpu_s = seconds(sum(|life| life.shards_cpu_us));
        let sent = summary.run.uplink.sent;
        let devices = sum(|life| life.devices);
        GeneratorUse {
            cpu_s: Some(seconds(sum(|life| life.cpu_us))),
            shards_cpu_s: Some(shards_cpu_s),
            consumers_cpu_s: Some(seconds(sum(|life| life.consumers_cpu_us))),
            peak_rss_bytes: Some(sum(|life| life.peak_rss_bytes)),
            user_bytes_per_device: (devices >= DEVICES_MIN)
                .then(|| sum(|life| life.links_bytes) / devices),
            lateness_p99_us: None,
            messages_per_cpu_s: (shards_cpu_s > 0.0).then(|| sent as f64 / shards_cpu_s),
            health: Vec::new(),
        }
    }

    /// CPU and memory of the target, and its counts, each with those of the ledgers.
    fn target(&self, summary: &Summary) -> TargetUse {
        let plan = &self.header.plan;
        let of_streams: Vec<&Ledger> = summary.streams.iter().map(|it| &it.uplink).collect();
        let counters = self.counted.counters.as_deref();
        let counted = self.counted.nodes.as_deref();
        let noted = self.footer.as_ref().map(|footer| &footer.target);
        let noted = noted.filter(|noted| !noted.cpu_s.is_empty());
        TargetUse {
            cpu: noted.map(|noted| noted.cpu_s.clone()),
            memory: noted.map(|noted| noted.memory_bytes.clone()),
            counters: counters.map(|noted| counters::compared(plan, noted, &of_streams)),
            counted: counted.map(|nodes| server_count::compared(plan, nodes, &of_streams)),
        }
    }
}

/// True if a run without a link is judged although nobody was refused: a platform that took
/// a link and ended it again is there, and where we are to blame nothing says that it is not.
fn is_to_be_judged(links: &LinkLedger) -> bool {
    links.connected > 0 || links.is_down_by_us()
}

/// A warning on the scenario, in one line.
fn of_scenario(problem: &Problem) -> Warning {
    let help = match problem.help.as_str() {
        "" => String::new(),
        help => format!(" (help: {help})"),
    };
    Warning {
        kind: WarningKind::Scenario,
        scope: "run".to_owned(),
        detail: format!("{}: {}{help}", problem.path, problem.what),
    }
}

/// The first reasons, and how many more there are.
fn listed(whys: &BTreeSet<&str>) -> String {
    let shown: Vec<&str> = whys.iter().take(REASONS_MAX).copied().collect();
    let more = match whys.len().saturating_sub(REASONS_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    format!("{}{more}", shown.join("; "))
}

/// The causes of links that did not open, as the end of a sentence; empty if none failed.
fn failures(summary: &Summary) -> String {
    let failures = summary.run.links.connect_failures.iter();
    let ended = ConnectFailure::RunEnded.to_string();
    let causes: Vec<String> = failures
        .filter(|(cause, _)| **cause != ended)
        .map(|(cause, count)| match count {
            1 => format!("{cause} in 1 try"),
            _ => format!("{cause} in {} tries", figure::count(*count)),
        })
        .collect();
    if causes.is_empty() {
        return String::new();
    }
    format!(": {}", causes.join(", "))
}

/// The facts of a plan about its streams. `is_counted` is true if the platform's own counters were read.
pub(crate) fn stream_evidence(
    plan: &Plan,
    schedules: &[Arc<StreamSchedule>],
    timeline: Timeline,
    is_counted: bool,
) -> Vec<StreamEvidence> {
    let dialect = plan.platform.dialect();
    let streams = plan.streams().zip(schedules);
    streams
        .map(|((fleet, stream), schedule)| StreamEvidence {
            role: role(stream),
            name: format!("{}/{}", fleet.name, stream.name),
            fleet: fleet.id,
            promise: stream.promise(dialect),
            is_delivery_seen: is_counted
                || (plan.accounts() > 0 && stream.carrier != Carrier::None),
            is_closed: stream.policy == Policy::Closed,
            holds: if timeline.origin < Micros::MAX {
                holds(schedule, timeline.origin)
            } else {
                Vec::new()
            },
        })
        .collect()
}

const fn role(stream: &StreamPlan) -> StreamRole {
    match stream.kind {
        StreamKind::Telemetry | StreamKind::Event | StreamKind::Connect => StreamRole::Uplink,
        StreamKind::CommandQuery { .. } => StreamRole::Query,
        StreamKind::Command { is_two_way, .. } => StreamRole::Command { is_two_way },
        StreamKind::Receive => StreamRole::Receive,
    }
}

fn device_name(plan: &Plan, device: DeviceId) -> String {
    let mut name = String::new();
    if let Some(fleet) = plan.fleet_of(device) {
        fleet.names.render(fleet.index_of(device), &mut name);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_on_the_scenario_is_one_of_the_verdict_with_its_key() {
        let problem = Problem {
            file: "scenario.yaml".to_owned(),
            line: 3,
            column: 1,
            path: "fleet[0].streams[0].topic".to_owned(),
            text: "topic: here".to_owned(),
            length: 5,
            what: "the platform drops this topic".to_owned(),
            help: "`v1/devices/me/telemetry`".to_owned(),
        };
        let warning = of_scenario(&problem);
        assert_eq!(warning.kind, WarningKind::Scenario);
        assert_eq!(
            warning.detail,
            "fleet[0].streams[0].topic: the platform drops this topic (help: \
             `v1/devices/me/telemetry`)"
        );
    }

    #[test]
    fn a_run_without_a_link_is_judged_where_we_may_be_to_blame() {
        let links = |failure: ConnectFailure, timed_out_by_us| LinkLedger {
            connect_failures: [(failure.to_string(), 50)].into(),
            timed_out_by_us,
            ..LinkLedger::default()
        };
        assert!(!is_to_be_judged(&links(ConnectFailure::TimedOut, 0)));
        assert!(!is_to_be_judged(&links(ConnectFailure::TimedOut, 49)));
        assert!(is_to_be_judged(&links(ConnectFailure::TimedOut, 50)));
        assert!(is_to_be_judged(&links(ConnectFailure::GeneratorLimit, 0)));
        assert!(!is_to_be_judged(&links(ConnectFailure::Malformed, 0)));
        let ended_again = LinkLedger {
            connected: 1,
            ..links(ConnectFailure::TimedOut, 0)
        };
        assert!(is_to_be_judged(&ended_again));
    }
}
