//! The rules as a JUnit file: one test case a rule.
//!
//! A broken rule on the generator is an `error`, a broken SLO a `failure`, a rule that was not
//! evaluated or does not count is `skipped` (DESIGN section 7).

use std::fmt::Write as _;

use crate::{Consequence, Outcome, Report, Rule, RuleResult, Verdict};

/// The rules as JUnit XML.
///
/// Where the result is not a pass and no rule says so (a target that was never reached), a last
/// case `verdict` is an error, so that no reader takes silence for success.
#[must_use]
pub fn junit(report: &Report) -> String {
    let mut cases: Vec<Case> = report.verdict.rules.iter().map(Case::of).collect();
    cases.extend(Case::of_verdict(&report.verdict));
    let count = |end: End| cases.iter().filter(|case| case.end == end).count();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    let _ = write!(
        xml,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        escape(&report.name),
        cases.len(),
        count(End::Failure),
        count(End::Error),
        count(End::Skipped),
    );
    if let Some(started) = &report.started {
        let _ = write!(xml, " timestamp=\"{}\"", escape(started));
    }
    xml.push_str(">\n");
    if let Some(insecure) = report.environment["tls"]["insecure"].as_bool() {
        let _ = writeln!(
            xml,
            "    <properties><property name=\"insecure\" value=\"{insecure}\"/></properties>"
        );
    }
    for case in &cases {
        case.write(&report.name, &mut xml);
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
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
        Self {
            name: format!("{} [{}]", rule.rule, rule.scope),
            end,
            message: format!("observed {observed}, allowed: {allowed}"),
            text: rule.evidence.clone(),
        }
    }

    fn of_verdict(verdict: &Verdict) -> Option<Self> {
        let is_told = match verdict.result {
            Outcome::Pass | Outcome::Part => true,
            Outcome::Fail => verdict
                .rules
                .iter()
                .any(|rule| Self::of(rule).end == End::Failure),
            Outcome::Invalid => verdict
                .rules
                .iter()
                .any(|rule| Self::of(rule).end == End::Error),
            Outcome::None => false,
        };
        (!is_told).then(|| Self {
            name: "verdict".to_owned(),
            end: End::Error,
            message: format!("the result of the run is {}", verdict.result.name()),
            text: String::new(),
        })
    }

    fn write(&self, suite: &str, xml: &mut String) {
        let (suite, name) = (escape(suite), escape(&self.name));
        let (message, text) = (escape(&self.message), escape(&self.text));
        let _ = write!(xml, "    <testcase classname=\"{suite}\" name=\"{name}\"");
        let _ = match self.end {
            End::Passed => writeln!(xml, "/>"),
            End::Failure => writeln!(
                xml,
                ">\n      <failure message=\"{message}\">{text}</failure>\n    </testcase>"
            ),
            End::Error => {
                writeln!(
                    xml,
                    ">\n      <error message=\"{message}\">{text}</error>\n    </testcase>"
                )
            }
            End::Skipped => {
                writeln!(
                    xml,
                    ">\n      <skipped message=\"{text}\"/>\n    </testcase>"
                )
            }
        };
    }
}

/// The text for use in an attribute or an element (XML 1.0 section 2.4); characters that XML 1.0
/// cannot hold (section 2.2) become the replacement character.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for symbol in text.chars() {
        match symbol {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' => escaped.push_str("&#9;"),
            '\n' => escaped.push_str("&#10;"),
            '\r' => escaped.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            symbol => escaped.push(symbol),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_breaks_out_of_its_place() {
        let hostile = "a\"><failure/>&'\u{1}]]>\n";
        assert_eq!(
            escape(hostile),
            "a&quot;&gt;&lt;failure/&gt;&amp;&#39;\u{fffd}]]&gt;&#10;"
        );
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
