//! The past of a growth by the published policy, from its journal: the lines that count, and where it goes on.

use muster_model::Micros;
use muster_scale::{Event, LogLine, Published, PublishedSpec};
use serde::Serialize;

use super::journal::{Entry, Ran};

/// A growth so far, as its journal has it.
#[derive(Debug, Default)]
pub(super) struct Past<'a> {
    events: Vec<Event>,
    lines: Vec<Line<'a>>,
    runs: Vec<&'a Ran>,
    /// Runs that began.
    begun: usize,
}

/// A line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Line<'a> {
    #[serde(flatten)]
    pub(super) line: LogLine,
    /// The folder of the run behind it; null if that run has no result.
    pub(super) folder: Option<&'a str>,
}

impl<'a> Past<'a> {
    /// The growth of these entries. A run whose target was not as it should be counts as if it had not been.
    pub(super) fn new(entries: &'a [Entry]) -> Self {
        let mut past = Self::default();
        let (mut events, mut lines) = (0, 0);
        for entry in entries {
            match entry {
                Entry::Begin { .. } => {
                    past.begun += 1;
                    (events, lines) = (past.events.len(), past.lines.len());
                }
                Entry::Level(level) => past.events.push(Event::Set(*level)),
                Entry::Line(line) => {
                    past.events.push(Event::Log(*line));
                    past.lines.push(Line {
                        line: *line,
                        folder: None,
                    });
                }
                Entry::End { limit } => past.events.push(Event::End(*limit)),
                Entry::Run(run) => {
                    past.runs.push(run);
                    if run.fault.is_some() {
                        past.events.truncate(events);
                        past.lines.truncate(lines);
                    }
                    let behind = past.lines.iter_mut().skip(lines);
                    behind.for_each(|line| line.folder = Some(&run.folder));
                }
            }
        }
        past
    }

    /// The policy where it goes on.
    pub(super) fn policy(&self, spec: PublishedSpec) -> Published {
        Published::resumed(spec, self.events.iter().copied())
    }

    /// The number of the next run; no folder has it yet.
    pub(super) fn next_number(&self) -> usize {
        self.begun + 1
    }

    /// The time of all runs that ended.
    pub(super) fn spent(&self) -> Micros {
        Micros::from_secs_f64(self.runs.iter().map(|run| run.took_s).sum())
    }

    /// The lines that count, in order.
    pub(super) fn lines(&self) -> &[Line<'a>] {
        &self.lines
    }

    /// Every run that ended, in order.
    pub(super) fn runs(&self) -> &[&'a Ran] {
        &self.runs
    }
}

#[cfg(test)]
mod tests {
    use muster_plan::{PublishedPolicy, UnitOfLoad};
    use muster_report::RunResult;
    use muster_scale::{Figures, Level, Limit};
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::super::answer::{Answer, End, Terms};
    use super::*;
    use crate::outcome;
    use crate::scenario_file::Loaded;
    use crate::steering::Decider;

    const POLICY: PublishedPolicy = PublishedPolicy {
        failure_ratio: 0.02,
        window: Micros::from_secs(10),
        offset: Micros::from_secs(5),
        stable_within: Micros::from_secs(10),
        improve: Micros::from_secs(5),
        units: 9,
        adds: UnitOfLoad::Rate,
    };

    fn spec() -> PublishedSpec {
        PublishedSpec {
            failure_ratio: POLICY.failure_ratio,
            window: POLICY.window,
            offset: POLICY.offset,
            stable_within: POLICY.stable_within,
            improve: POLICY.improve,
            least: level((1, 1)),
            most: level((9, 2)),
        }
    }

    fn level((units, instances): (u32, u32)) -> Level {
        Level { units, instances }
    }

    fn set(of: (u32, u32)) -> Entry {
        Entry::Level(level(of))
    }

    fn line(of: (u32, u32), is_stable: bool) -> Entry {
        Entry::Line(LogLine {
            at: Micros::ZERO,
            level: level(of),
            published: Figures::default(),
            summed: Figures::default(),
            is_stable,
        })
    }

    fn begin(folder: &str) -> Entry {
        Entry::Begin {
            folder: folder.to_owned(),
        }
    }

    fn ran(folder: &str, fault: Option<&str>) -> Entry {
        Entry::Run(Ran {
            instances: 1,
            folder: folder.to_owned(),
            result: RunResult::Fail,
            took_s: 30.0,
            fault: fault.map(str::to_owned),
            load: Vec::new(),
        })
    }

    /// One instance carries two units; the second one ended in the run that was to add it, and carries four later.
    fn journal() -> Vec<Entry> {
        vec![
            begin("01"),
            line((1, 1), false),
            set((2, 1)),
            line((2, 1), true),
            set((3, 1)),
            set((3, 2)),
            ran("01", None),
            begin("02"),
            line((3, 2), true),
            set((4, 2)),
            ran("02", Some("1 of 2 instances were ready in the end")),
            begin("03"),
            line((3, 2), true),
            set((4, 2)),
            line((4, 2), true),
            set((5, 2)),
            line((5, 2), false),
            Entry::End {
                limit: Limit::Instances,
            },
            ran("03", None),
        ]
    }

    #[test]
    fn a_growth_goes_on_behind_each_line_of_its_journal() {
        let text: Vec<String> = journal()
            .iter()
            .map(|entry| serde_json::to_string(entry).expect("JSON"))
            .collect();
        let entries: Vec<Entry> = text
            .iter()
            .map(|line| serde_json::from_str(line).expect("an entry"))
            .collect();
        assert_eq!(entries, journal());
        let stands = (0..=entries.len()).map(|cut| {
            let past = Past::new(&entries[..cut]);
            let policy = past.policy(spec());
            let Level { units, instances } = policy.level();
            assert_eq!(policy.end().is_some(), cut >= 17, "cut at {cut}");
            (past.next_number(), units, instances)
        });
        let expected = [
            (1, 1, 1),
            (2, 1, 1),
            (2, 2, 1),
            (2, 2, 1),
            (2, 3, 1),
            (2, 3, 1),
            (2, 3, 2),
            (2, 3, 2),
            (3, 3, 2),
            (3, 4, 2),
            (3, 4, 2),
            // What was found on a target with a fault is found again.
            (3, 3, 2),
            (4, 3, 2),
            (4, 4, 2),
            (4, 4, 2),
            (4, 5, 2),
            (4, 5, 2),
            (4, 5, 2),
            (4, 5, 2),
            (4, 5, 2),
        ];
        assert_eq!(stands.collect::<Vec<_>>(), expected);
        assert_eq!(Past::new(&entries).spent(), Micros::from_secs(90));
    }

    #[test]
    fn an_answer_rests_on_runs_with_a_result() {
        let source = Source {
            name: "growth.yaml",
            text: "name: growth\nfleet: [ { streams: [ { rate: 100/s } ] } ]\nplatform: { kind: mqtt, devices: \
                   [ \"mqtt://127.0.0.1:1\" ] }\n",
        };
        let loaded = Loaded {
            plan: parse(source, &Overrides::new(), &NoFiles).expect("a scenario"),
            sha256: "5ca1e".to_owned(),
            decider: Decider::Scenario,
        };
        let entries = journal();
        for (cut, code, folders) in [
            (entries.len(), outcome::PASS, [Some("01"), Some("03")]),
            // A kill while the last run settles.
            (entries.len() - 1, outcome::INVALID, [Some("01"), None]),
        ] {
            let past = Past::new(&entries[..cut]);
            let end = past.policy(spec()).end().map(|limit| End::Limit { limit });
            let terms = Terms {
                policy: POLICY,
                price: None,
            };
            let answer = Answer::new(&loaded, terms, end, &past);
            assert_eq!(answer.exit_code(), code, "{}", answer.words());
            let json = serde_json::to_value(&answer).expect("JSON");
            let found = json["capacities"].as_array().expect("capacities").iter();
            let found: Vec<_> = found
                .map(|of| (of["units"].as_u64(), of["folder"].as_str()))
                .collect();
            assert_eq!(found, [(Some(2), folders[0]), (Some(4), folders[1])]);
            assert_eq!(json["scenario_sha256"], "5ca1e");
            assert_eq!(json["muster"], env!("CARGO_PKG_VERSION"));
        }
    }
}
