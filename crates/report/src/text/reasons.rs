//! The reasons of the result: broken rules, remedies and caveats.

use std::fmt::Write as _;

use muster_judge::Warning;

use super::{Screen, WHY_LINES, by};
use crate::number::seconds;
use crate::{Consequence, Report, Rule, RuleKind, RuleResult, RunResult, Verdict};

/// Rules without a decision that the summary names; the others are counted.
const UNDECIDED: usize = 4;

/// Remedies that the summary lists: the first ones often remove the other reasons.
const REMEDIES: usize = 3;

impl Screen {
    /// The reasons for the result, the remedies, and the caveats.
    pub(super) fn judged(&mut self, report: &Report) {
        let verdict = &report.verdict;
        let reasons: Vec<String> = verdict.reasons().map(reason).collect();
        self.first_lines(&reasons, "");
        for remedy in verdict.remedies().into_iter().take(REMEDIES) {
            self.line(&format!("  remedy: {remedy}"));
        }
        if verdict.result == RunResult::Pass {
            let notes = verdict
                .notes()
                .iter()
                .map(|note| format!("; {note}"))
                .collect::<String>();
            let counts = verdict.counts();
            self.line(&format!("  {counts}{notes}"));
        }
        let caveats = [
            undecided(verdict),
            verdict.unknown_delivery(),
            verdict.not_judged(),
        ];
        for caveat in caveats {
            caveat.iter().for_each(|it| self.line(&format!("  {it}")));
        }
        self.warnings(verdict);
        if verdict.result == RunResult::None {
            for rule in verdict
                .rules
                .iter()
                .filter(|rule| rule.consequence == Consequence::Invalidates)
                .take(WHY_LINES)
            {
                self.line(&format!("  {}: {}", rule.rule, rule.evidence));
            }
            self.line(&format!("  no run{}", by(&report.links.connect_failures)));
        }
    }

    /// Writes what went wrong and no rule looked at.
    pub(super) fn warnings(&mut self, verdict: &Verdict) {
        let warnings: Vec<String> = verdict.warnings.iter().map(in_words).collect();
        self.first_lines(&warnings, " warnings");
    }
}

fn in_words(warning: &Warning) -> String {
    match warning.scope.as_str() {
        "run" => format!("warning: {}", warning.detail),
        scope => format!("warning: {} [{scope}]", warning.detail),
    }
}

/// A broken or undecided rule, with what was seen and allowed.
pub(crate) fn reason(rule: &Rule) -> String {
    let mut line = rule.title();
    let both = rule.both_times();
    if let Some(seen) = both.clone().or_else(|| rule.seen()) {
        let _ = write!(line, " {seen}");
    }
    if let Some(allowed) = rule.allowed() {
        let when = if rule.rule == "connected" {
            ", after the connect phase"
        } else {
            ""
        };
        let _ = write!(line, " ({allowed}{when})");
    }
    if let Some(since) = rule.since_s {
        let _ = write!(line, ", since {}", seconds(Some(since)));
    }
    // The time that a percentile came to says the rest; a count does not say what happened.
    let is_time = rule.observed.is_some_and(|observed| observed.is_time());
    let is_at_least = rule.observed.is_some_and(|observed| observed.is_at_least());
    if both.is_some() {
        line.push_str(": our own delay decides");
    } else if rule.result == RuleResult::NotEvaluated {
        let _ = write!(line, ": not evaluated, {}", rule.evidence);
    } else if is_at_least || !is_time {
        let what = without_count(&rule.evidence);
        let _ = write!(line, "{}{what}", if what.is_empty() { "" } else { ": " });
    }
    line
}

/// The rules that were not evaluated and are no reason for the result, with what each lacks: first those that
/// the scenario names, then other SLOs.
fn undecided(verdict: &Verdict) -> Option<String> {
    if !matches!(
        verdict.result,
        RunResult::Pass | RunResult::Fail | RunResult::Invalid
    ) {
        return None;
    }
    let open = verdict.rules_that(RuleResult::NotEvaluated);
    let mut open: Vec<&Rule> = open
        .filter(|rule| rule.consequence == Consequence::None)
        .collect();
    open.sort_by_key(|rule| (!rule.named, rule.kind != RuleKind::Slo));
    let mut lacking: Vec<(&str, Vec<String>)> = Vec::new();
    for rule in open.iter().take(UNDECIDED) {
        let name = rule.title();
        match lacking.last_mut().filter(|(why, _)| *why == rule.evidence) {
            Some((_, names)) => names.push(name),
            None => lacking.push((&rule.evidence, vec![name])),
        }
    }
    let mut open_rules: Vec<String> = lacking
        .iter()
        .map(|(why, names)| format!("{} ({why})", names.join(", ")))
        .collect();
    let more = open.len().saturating_sub(UNDECIDED);
    open_rules.extend((more > 0).then(|| format!("and {more} more")));
    (!open_rules.is_empty()).then(|| format!("not evaluated: {}", open_rules.join(", ")))
}

/// The evidence without a leading "3 of 100 (3 %)", which the figure of the rule says already.
fn without_count(evidence: &str) -> &str {
    let is_count = |text: &str| {
        text.chars()
            .all(|it| it.is_ascii_digit() || " ,.(of".contains(it))
    };
    match evidence.split_once(" %)") {
        Some((count, what)) if is_count(count) => what.trim_start_matches([':', ';', ' ']),
        _ => evidence,
    }
}

#[cfg(test)]
mod tests {
    use muster_judge::SetNames;

    use super::*;
    use crate::{InvalidReason, text};

    #[test]
    fn a_broken_rule_says_what_happened_without_its_count_again() {
        let mut report = Report::default();
        report.verdict.result = RunResult::Fail;
        let mut rule = Rule {
            rule: "failure-ratio".to_owned(),
            scope: "run".to_owned(),
            except: Vec::new(),
            sets: SetNames::default(),
            kind: RuleKind::Slo,
            named: false,
            result: RuleResult::Fail,
            consequence: Consequence::Fails,
            observed: Some(crate::Figure::Fraction { fraction: 1.0 }),
            lower: None,
            bound: Some(crate::Figure::Fraction { fraction: 0.0 }),
            since_s: None,
            evidence: "38 of 38 (100 %): rejected 30 (4.03), shed 8 (unsendable)".to_owned(),
            note: None,
            invalid: InvalidReason::default(),
        };
        report.verdict.rules = vec![rule.clone()];
        let told =
            "failure-ratio [run] 100 % (at most 0 %): rejected 30 (4.03), shed 8 (unsendable)\n";
        let summary = text(&report, 120);
        assert!(summary.contains(told), "{summary}");
        rule.evidence = "360 of 360 accepted by PUBREC, no PUBCOMP".to_owned();
        report.verdict.rules = vec![rule];
        let told = ": 360 of 360 accepted by PUBREC, no PUBCOMP\n";
        assert!(text(&report, 120).contains(told));
    }

    #[test]
    fn rules_that_were_not_evaluated_are_named_with_what_they_lack() {
        let mut report = Report::default();
        report.verdict.result = RunResult::Pass;
        let rule = |name: &str, named, kind, evidence: &str| Rule {
            rule: name.to_owned(),
            scope: "run".to_owned(),
            except: Vec::new(),
            sets: SetNames::default(),
            kind,
            named,
            result: RuleResult::NotEvaluated,
            consequence: Consequence::None,
            observed: None,
            lower: None,
            bound: None,
            since_s: None,
            evidence: evidence.to_owned(),
            note: None,
            invalid: InvalidReason::default(),
        };
        report.verdict.rules = vec![
            rule("stable", false, RuleKind::Stability, "needs 30 s"),
            rule("loss", false, RuleKind::Slo, "no message was due"),
            rule(
                "response p99",
                true,
                RuleKind::Slo,
                "needs 1,000 messages, had 990",
            ),
            rule(
                "response p90",
                true,
                RuleKind::Slo,
                "needs 1,000 messages, had 990",
            ),
        ];
        let told = "  not evaluated: response p99 [run], response p90 [run] (needs 1,000 messages, had 990), \
                    loss [run] (no message was due), stable [run] (needs 30 s)\n";
        let summary = text(&report, 200);
        assert!(summary.contains(told), "{summary}");
        report
            .verdict
            .rules
            .push(rule("clock", false, RuleKind::Validity, "unknown"));
        let summary = text(&report, 200);
        assert!(
            summary.contains("stable [run] (needs 30 s), and 1 more\n"),
            "{summary}"
        );
        report.verdict.rules.clear();
        assert!(!text(&report, 200).contains("not evaluated:"));
    }
}
