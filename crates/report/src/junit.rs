//! The rules as a JUnit file: one test case a rule.
//!
//! A broken rule on the generator is an `error`, a broken SLO a `failure`, a rule that was not
//! evaluated or does not count is `skipped`. A rule that holds has its figures as output, one that
//! makes the run invalid its remedy.

use std::fmt::Write as _;

use muster_judge::{LinkCause, Warning};

use crate::{Consequence, Report, Rule, RuleResult, RunResult, SwitchedOff, Verdict, html};

/// The rules as JUnit XML.
///
/// The suite has as many cases as there are rules. Where the result is not a pass and no rule says so (a
/// target that was never reached), a second suite has the case `verdict`, an error, so that no reader takes
/// silence for success.
pub fn junit(report: &Report) -> String {
    let (verdict, name) = (&report.verdict, &report.name);
    let case = |rule| Case::of(rule).beginning_with(&verdict.causes);
    let off = verdict.switched_off.iter().map(Case::of_switched_off);
    let suites = [
        Suite {
            properties: properties(report),
            output: verdict.warnings.iter().map(warning).collect(),
            ..Suite::new(name.clone(), verdict.rules.iter().map(case))
        },
        Suite::new(format!("{name} switched off"), off),
        Suite::new(format!("{name} verdict"), Case::of_verdict(verdict)),
    ];
    let time = seconds(report);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for suite in suites.iter().filter(|suite| !suite.cases.is_empty()) {
        suite.write(report.started.as_deref(), &time, &mut xml);
    }
    xml.push_str("</testsuites>\n");
    xml
}

/// Length of the run, or of as much of it as was measured.
fn seconds(report: &Report) -> String {
    let phases = report.phases.last().map(|phase| phase.until_s);
    let seconds = phases.or(report.measured_s).unwrap_or(0.0);
    format!("{seconds:.3}")
}

/// Reasons why links did not come up, the result, the counts of the rules, and the caveats on the
/// run that are no rules.
fn properties(report: &Report) -> Vec<(&'static str, String)> {
    let verdict = &report.verdict;
    let counts = verdict.counts();
    let causes = verdict.causes.iter();
    let mut all: Vec<(&str, String)> = causes.map(|cause| ("cause", cause.text.clone())).collect();
    all.push(("result", verdict.result.name().to_owned()));
    let unfinished = report.unfinished.as_ref();
    all.extend(unfinished.map(|words| ("unfinished", words.to_string())));
    all.extend(
        verdict
            .would_be
            .map(|result| ("would-be", result.name().to_owned())),
    );
    all.extend([
        ("rules", counts.rules.to_string()),
        ("hold", counts.hold.to_string()),
        ("fail", counts.fail.to_string()),
        ("not-evaluated", counts.not_evaluated.to_string()),
        ("not-judged", counts.not_judged.to_string()),
    ]);
    let insecure = report.environment["tls"]["insecure"].as_bool();
    all.extend(insecure.map(|insecure| ("insecure", insecure.to_string())));
    all.extend(verdict.unknown_delivery().map(|words| ("delivery", words)));
    all
}

/// Remedies for an invalid run, a line each.
fn remedies(verdict: &Verdict) -> String {
    let lines = verdict.remedies().into_iter();
    let lines: Vec<String> = lines.map(|remedy| format!("remedy: {remedy}")).collect();
    lines.join("\n")
}

fn warning(warning: &Warning) -> String {
    format!("warning: {} [{}]", warning.detail, warning.scope)
}

/// A test suite of one run.
struct Suite {
    name: String,
    cases: Vec<Case>,
    properties: Vec<(&'static str, String)>,
    /// Lines of its output.
    output: Vec<String>,
}

impl Suite {
    fn new(name: String, cases: impl IntoIterator<Item = Case>) -> Self {
        Self {
            name,
            cases: cases.into_iter().collect(),
            properties: Vec::new(),
            output: Vec::new(),
        }
    }

    fn write(&self, started: Option<&str>, time: &str, xml: &mut String) {
        let count = |end: End| self.cases.iter().filter(|case| case.end == end).count();
        let _ = write!(
            xml,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{time}\"",
            escape(&self.name),
            self.cases.len(),
            count(End::Failure),
            count(End::Error),
            count(End::Skipped),
        );
        if let Some(started) = started {
            let _ = write!(xml, " timestamp=\"{}\"", escape(started));
        }
        xml.push_str(">\n");
        if !self.properties.is_empty() {
            xml.push_str("    <properties>\n");
            for (name, value) in &self.properties {
                let value = escape(value);
                let _ = writeln!(xml, "      <property name=\"{name}\" value=\"{value}\"/>");
            }
            xml.push_str("    </properties>\n");
        }
        for case in &self.cases {
            case.write(&self.name, time, xml);
        }
        if !self.output.is_empty() {
            let output = escape_text(&self.output.join("\n"));
            let _ = writeln!(xml, "    <system-out>{output}</system-out>");
        }
        xml.push_str("  </testsuite>\n");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Passed,
    Failure,
    Error,
    Skipped,
}

struct Case {
    name: String,
    end: End,
    message: String,
    text: String,
}

impl Case {
    fn of(rule: &Rule) -> Self {
        let end = match rule.result {
            RuleResult::Pass => End::Passed,
            RuleResult::Fail => match rule.consequence {
                Consequence::Fails => End::Failure,
                Consequence::Invalidates => End::Error,
                Consequence::None => End::Skipped,
            },
            RuleResult::NotEvaluated => End::Skipped,
        };
        let observed = rule.seen().unwrap_or_else(|| "-".to_owned());
        let allowed = rule.allowed().unwrap_or_else(|| "-".to_owned());
        let line = |name: &str, of: &Option<String>| {
            of.as_ref()
                .map_or_else(String::new, |of| format!("\n{name}: {of}"))
        };
        let detail = match end {
            End::Failure if !rule.evidence.is_empty() => format!("; {}", rule.evidence),
            End::Failure | End::Passed | End::Error | End::Skipped => String::new(),
        };
        let both = rule.both_times();
        let both = both.map_or_else(String::new, |both| {
            format!("observed {both}, allowed: {allowed}; ")
        });
        Self {
            name: rule.title(),
            end,
            message: format!("observed {observed}, allowed: {allowed}{detail}"),
            text: both
                + &rule.evidence
                + &line("note", &rule.note)
                + &line("remedy", &rule.invalid.remedy),
        }
    }

    fn of_switched_off(off: &SwitchedOff) -> Self {
        Self {
            name: format!("{} [{}]", off.rule, off.scope),
            end: End::Skipped,
            message: String::new(),
            text: "not judged: switched off by `any`".to_owned(),
        }
    }

    /// A failure of a rule on links that did not come up begins with the reason.
    fn beginning_with(mut self, causes: &[LinkCause]) -> Self {
        let is_about_links = ["connected [", "no-link-up ["]
            .iter()
            .any(|rule| self.name.starts_with(rule));
        let is_failed = is_about_links && self.end == End::Failure;
        if let Some(cause) = causes.first().filter(|_| is_failed) {
            self.message = format!("{}; {}", cause.text, self.message);
        }
        self
    }

    fn of_verdict(verdict: &Verdict) -> Option<Self> {
        let has = |end: End| verdict.rules.iter().any(|rule| Self::of(rule).end == end);
        let is_shown = match verdict.result {
            RunResult::Pass | RunResult::Part => true,
            RunResult::Fail => has(End::Failure),
            RunResult::Invalid => has(End::Error),
            RunResult::None => false,
        };
        (!is_shown).then(|| Self {
            name: "verdict".to_owned(),
            end: End::Error,
            message: match verdict.causes.first() {
                Some(cause) => cause.text.clone(),
                None => format!("the result of the run is {}", verdict.result.name()),
            },
            text: remedies(verdict),
        })
    }

    /// Writes the case; its time is that of the run, which every rule watches.
    fn write(&self, suite: &str, time: &str, xml: &mut String) {
        let (suite, name) = (escape(suite), escape(&self.name));
        let (message, text) = (escape(&self.message), escape_text(&self.text));
        let _ = writeln!(
            xml,
            "    <testcase classname=\"{suite}\" name=\"{name}\" time=\"{time}\">"
        );
        let _ = match self.end {
            End::Passed => writeln!(xml, "      <system-out>{message}\n{text}</system-out>"),
            End::Failure => {
                writeln!(xml, "      <failure message=\"{message}\">{text}</failure>")
            }
            End::Error => writeln!(xml, "      <error message=\"{message}\">{text}</error>"),
            End::Skipped => writeln!(xml, "      <skipped message=\"{}\"/>", escape(&self.text)),
        };
        xml.push_str("    </testcase>\n");
    }
}

/// The text for use in an element: as [`escape`], with its line feeds.
fn escape_text(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escape).collect();
    lines.join("\n")
}

/// The text for use in an attribute or an element (XML 1.0 section 2.4); characters that XML 1.0
/// cannot hold (section 2.2) become the replacement character.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for symbol in html::escape(text).chars() {
        match symbol {
            '\t' | '\n' | '\r' => escaped += &format!("&#{};", symbol as u32),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            symbol => escaped.push(symbol),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Figure;
    use crate::verdict::tests::rule;

    #[test]
    fn no_text_breaks_out_of_its_place() {
        let hostile = "a\"><failure/>&'\u{1}]]>\n";
        assert_eq!(
            escape(hostile),
            "a&quot;&gt;&lt;failure/&gt;&amp;&#39;\u{fffd}]]&gt;&#10;"
        );
    }

    #[test]
    fn a_rule_that_was_switched_off_is_skipped_and_says_why() {
        let mut report = Report::default();
        report.verdict.switched_off = vec![SwitchedOff {
            rule: "loss".to_owned(),
            scope: "run".to_owned(),
        }];
        let xml = junit(&report);
        let skipped = "<skipped message=\"not judged: switched off by `any`\"/>";
        assert!(xml.contains("name=\"loss [run]\""), "{xml}");
        assert!(xml.contains(skipped), "{xml}");
    }

    #[test]
    fn a_rule_that_our_own_delay_leaves_open_has_both_times() {
        let (name, open) = ("response p99", RuleResult::NotEvaluated);
        let rule = Rule {
            observed: Some(Figure::time(12_400)),
            lower: Some(Figure::time(9_300)),
            bound: Some(Figure::time(10_000)),
            evidence: "our own delay decides".to_owned(),
            ..rule(name, open, Consequence::Invalidates)
        };
        let both = "observed between 9.3 ms and 12.4 ms, allowed: at most 10 ms";
        let text = format!("{both}; our own delay decides");
        assert_eq!(Case::of(&rule).text, text);
    }

    #[test]
    fn a_run_that_reached_nobody_is_an_error() {
        let xml = junit(&Report::default());
        assert!(
            xml.contains("tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\""),
            "{xml}"
        );
        assert!(xml.contains("the result of the run is none"), "{xml}");
    }
}
