//! The summary that fits one screen: the verdict first, why, then the figures.

use std::collections::BTreeMap;

use muster_measure::Ledger;
use muster_model::figure::percent;

use crate::number::{bytes, count, known, per_second, seconds};
use crate::{BackendAccount, Latencies, Ledgers, Report, Rule, RuleKind, RuleResult};

mod answers;
mod arrivals;
mod counted;
mod counters;
mod downlink;
mod happened;
mod heading;
mod monitor;
mod reasons;
mod steps;
mod times;

pub(crate) use self::reasons::reason;

/// Lines of one kind that the summary lists; the others are counted.
const WHY_LINES: usize = 5;

/// The least width of the summary: that of the table of latencies.
const WIDTH_MIN: usize = 80;

/// Width of the column of labels.
const LABEL: usize = 11;

/// Backends that have a line; more are counted.
const BACKENDS: usize = 8;

/// The summary as text of lines at most `width` characters long (at least 80); longer ones go on
/// in the next line, so that nothing of a reason is lost.
pub fn text(report: &Report, width: usize) -> String {
    let mut screen = Screen {
        text: String::new(),
        width: width.max(WIDTH_MIN),
    };
    screen.heading(report);
    screen.run(report);
    screen.rates(report);
    screen.ledger(report);
    screen.latency(report);
    screen.steps(report);
    screen.links(report);
    screen.counted(report.target.counted.as_ref());
    screen.counters(&report.target);
    screen.monitor(&report.monitor);
    screen.happened(&report.events);
    screen.generator(report);
    screen.stability(report);
    screen.text
}

struct Screen {
    text: String,
    width: usize,
}

impl Screen {
    /// A line; what does not fit goes on below it, indented by two characters more.
    fn line(&mut self, line: &str) {
        let indent = line.len() - line.trim_start().len() + 2;
        self.wrapped(line, indent);
    }

    /// The first of these lines; the others are counted.
    fn first_lines(&mut self, lines: &[String], others: &str) {
        for line in lines.iter().take(WHY_LINES) {
            self.line(&format!("  {line}"));
        }
        let more = lines.len().saturating_sub(WHY_LINES);
        if more > 0 {
            self.line(&format!("  and {more} more{others}"));
        }
    }

    /// A line; what does not fit goes on below it, indented by `indent` characters.
    fn wrapped(&mut self, line: &str, indent: usize) {
        let mut rest: Vec<char> = line.trim_end().chars().collect();
        while rest.len() > self.width {
            let blank = rest[..=self.width].iter().rposition(|c| *c == ' ');
            // A word of more than a line is the only one that is torn.
            let end = blank.filter(|at| *at > indent).unwrap_or(self.width);
            self.push(&rest[..end]);
            let next = rest[end..].iter().copied().skip_while(|c| *c == ' ');
            rest = std::iter::repeat_n(' ', indent).chain(next).collect();
        }
        self.push(&rest);
    }

    fn push(&mut self, line: &[char]) {
        let text: String = line.iter().collect();
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// A label in the left column, then parts that go on in the next line where they do not fit.
    fn row(&mut self, label: &str, parts: &[String]) {
        let mut line = match label.len() < LABEL {
            true => format!("{label:<LABEL$}"),
            false => format!("{label}  "),
        };
        let mut is_empty = true;
        for part in parts {
            if !is_empty && line.chars().count() + 2 + part.chars().count() > self.width {
                self.wrapped(&line, LABEL + 2);
                line = " ".repeat(LABEL);
                is_empty = true;
            }
            line.push_str(if is_empty { "" } else { "  " });
            line.push_str(part);
            is_empty = false;
        }
        self.wrapped(&line, LABEL + 2);
    }

    /// A row, unless it has no part.
    fn row_of_some(&mut self, label: &str, parts: &[String]) {
        if !parts.is_empty() {
            self.row(label, parts);
        }
    }

    fn heading(&mut self, report: &Report) {
        let verdict = &report.verdict;
        self.line(&heading::first_line(report));
        self.causes(verdict);
        if let Some(part) = report.part() {
            self.line(&format!(
                "  part {part}: merge the parts with `muster merge`"
            ));
        }
        if report.is_insecure() {
            self.line(
                "  insecure: any certificate was taken, so nobody knows whom this run talked to",
            );
        }
        for (fleet, own, standard) in report.shortened_lifetimes() {
            self.line(&format!(
                "  coap: fleet `{fleet}` uses message ids again after {own} s, not after {standard} s"
            ));
        }
        if report.is_running() {
            self.line("  the run is judged at its end");
            self.warnings(verdict);
        } else {
            self.judged(report);
        }
        self.line("");
    }

    fn run(&mut self, report: &Report) {
        let mut parts = vec![report.run.clone(), format!("seed {}", report.seed)];
        parts.extend(
            report
                .measured_s
                .map(|s| format!("measured {}", seconds(Some(s)))),
        );
        parts.extend(report.target_name().map(str::to_owned));
        if report.co_located == Some(true) {
            parts.push("co-located".to_owned());
        }
        self.row("run", &parts);
    }

    fn rates(&mut self, report: &Report) {
        let rates = &report.rates;
        let parts = [
            format!("offered {}", per_second(rates.offered)),
            format!("issued {}", per_second(rates.issued)),
            format!("answered {}", per_second(rates.completed)),
            format!("arrived {}", per_second(rates.arrived)),
        ];
        self.row("rates /s", &parts);
    }

    fn ledger(&mut self, report: &Report) {
        let (ledgers, ledger) = (&report.ledger, &report.ledger.uplink);
        let mut due = vec![
            format!("{} due", known(ledger.scheduled)),
            format!("= {} sent", count(ledger.sent)),
            format!("+ {} shed{}", count(ledger.shed), by(&ledger.shed_by_cause)),
        ];
        due.push(format!("residue {}", known(ledger.residue)));
        if let Some(omitted) = ledger.omitted.filter(|omitted| *omitted > 0) {
            due.push(format!("({} omitted by closed loops)", count(omitted)));
        }
        self.row("ledger", &due);
        self.row("  sent", &outcomes(ledger));
        self.row_of_some("  answers", &answers::strays(ledger));
        self.row_of_some("  packets", &answers::packets(ledger, &report.links));
        self.backends(ledgers);
        self.row_of_some("  bursts", &times::bursts(&ledgers.by_stream));
        for (label, parts) in downlink::rows(ledgers) {
            self.row(label, &parts);
        }
        self.line("");
    }

    /// One backend is "the" backend; of several each has its line, with its name.
    fn backends(&mut self, ledgers: &Ledgers) {
        let mut all: Vec<(&String, &BackendAccount)> = ledgers.by_backend.iter().collect();
        all.sort_by_key(|(_, account)| account.number);
        if all.len() < 2 {
            let only = all.first().map(|(_, only)| *only);
            let uplink = &ledgers.uplink.arrivals;
            let known = only.filter(|_| uplink.arrived.is_some());
            let nothing = vec!["none: arrived and lost are not known".to_owned()];
            let parts = known.map_or(nothing, |only| arrivals::parts(uplink, only));
            let is_store = only.is_some_and(|only| only.is_store);
            let label = if is_store { "  store" } else { "  backend" };
            return self.row(label, &parts);
        }
        for (at, (name, account)) in all.iter().take(BACKENDS).enumerate() {
            let mut parts = vec![format!("{name}:")];
            parts.extend(arrivals::parts(&account.arrivals, account));
            self.row(if at == 0 { "  backends" } else { "" }, &parts);
        }
        if all.len() > BACKENDS {
            self.row("", &[format!("and {} more", all.len() - BACKENDS)]);
        }
    }

    fn latency<'a>(&mut self, report: &'a Report) {
        self.line(&format!(
            "{:<16}{:>8}{:>9}{:>9}{:>9}{:>9}{:>11}{:>9}",
            "latency", "p50", "p90", "p99", "p99.9", "max", "answered", "censored"
        ));
        for (name, leg, is_split) in times::LEGS {
            let apart = |table: &'a Option<Latencies>| table.as_ref().filter(|_| is_split);
            let tables = [
                (name, Some(&report.latency)),
                ("  cold", apart(&report.latency_cold)),
                ("  warm", apart(&report.latency_warm)),
            ];
            for (name, table) in tables {
                if let Some(leg) = table.and_then(leg) {
                    times::rows(name, leg).iter().for_each(|row| self.line(row));
                }
            }
        }
        self.line("");
    }

    fn links(&mut self, report: &Report) {
        let links = &report.links;
        let failed: u64 = links.connect_failures.values().sum();
        let lost: u64 = links.disconnects.values().sum();
        let mut parts = vec![
            format!("{} opened", count(links.opened)),
            format!("= {} connected", count(links.connected)),
            format!("+ {} failed{}", count(failed), by(&links.connect_failures)),
            format!("{} disconnects{}", count(lost), by(&links.disconnects)),
        ];
        if links.wanted > 0 {
            parts.push(format!(
                "{} of {} up after the connect phase",
                count(links.up_at_start),
                count(links.wanted)
            ));
            parts.push(format!("{} at the end", known(links.open_at_end)));
        }
        parts.extend(answers::datagrams(links));
        self.row("links", &parts);
        for (address, target) in &links.targets {
            self.row("", &answers::target(address, target));
        }
        self.said(&report.events);
    }

    fn generator(&mut self, report: &Report) {
        let own = &report.generator;
        let mut parts = vec![
            format!("cpu {}", seconds(own.cpu_s)),
            format!("memory {}", bytes(own.peak_rss_bytes)),
        ];
        if own.messages_per_cpu_s.is_some() {
            parts.push(format!(
                "{} messages per cpu-s",
                per_second(own.messages_per_cpu_s)
            ));
        }
        parts.extend(own.health.iter().map(|figure| {
            let share = percent(figure.share);
            format!("{} {share} ({})", figure.figure, figure.name)
        }));
        self.row("generator", &parts);
    }

    fn stability(&mut self, report: &Report) {
        let rules = || {
            report
                .verdict
                .rules
                .iter()
                .filter(|r| r.kind == RuleKind::Stability)
        };
        for (result, word) in [
            (RuleResult::Fail, "unstable"),
            (RuleResult::NotEvaluated, "not evaluated"),
            (RuleResult::Pass, "stable"),
        ] {
            let found: Vec<&Rule> = rules().filter(|rule| rule.result == result).collect();
            let Some(first) = found.first() else {
                continue;
            };
            let of = match (found.len(), rules().count()) {
                (_, 1) => String::new(),
                (some, all) => format!(" in {some} of {all} streams; {}", first.scope),
            };
            let why = match (first.evidence.as_str(), result) {
                ("", _) => String::new(),
                (evidence, RuleResult::NotEvaluated) => format!(" ({evidence})"),
                (evidence, RuleResult::Pass | RuleResult::Fail) => format!(", {evidence}"),
            };
            let has_grown = result == RuleResult::Pass && first.note.is_some();
            let word = if has_grown { "no steady growth" } else { word };
            self.row("stability:", &[format!("{word}{of}{why}")]);
        }
    }
}

fn outcomes(ledger: &Ledger) -> Vec<String> {
    let rejected = by(&ledger.rejected_by_code);
    // Acceptance at QoS 1 has no second half.
    let completed = match ledger.session.completed + ledger.session.incomplete {
        0 => String::new(),
        all if all == ledger.accepted => {
            format!(" ({} completed)", count(ledger.session.completed))
        }
        all => format!(
            " ({} of {} completed)",
            count(ledger.session.completed),
            count(all)
        ),
    };
    let refused = match ledger.refused_unawaited {
        0 => String::new(),
        refused => match by(&ledger.refused_unawaited_by_code).strip_prefix(" (") {
            None => format!(" ({} refused)", count(refused)),
            Some(codes) => format!(" ({} refused: {codes}", count(refused)),
        },
    };
    let all = [
        (ledger.rejected, &*format!("rejected{rejected}"), true),
        (ledger.timed_out, "timed out", true),
        (ledger.broken, "broken", true),
        (
            ledger.unacknowledged,
            &format!("unacknowledged{refused}"),
            false,
        ),
        (ledger.in_flight, "in flight", false),
    ];
    listed(
        format!("{} accepted{completed}", count(ledger.accepted)),
        &all,
    )
}

/// A first part, and the counts behind it that are not 0 or always shown. Counts that a killed run does
/// not know are no 0.
fn listed<N: Into<Option<u64>> + Copy>(first: String, parts: &[(N, &str, bool)]) -> Vec<String> {
    let counts = parts.iter().filter_map(|(number, name, is_always)| {
        let number: Option<u64> = (*number).into();
        let is_shown = *is_always || number.is_some_and(|number| number > 0);
        is_shown.then(|| format!("{} {name}", known(number)))
    });
    std::iter::once(first).chain(counts).collect()
}

/// The three largest of the causes or codes, in brackets.
pub(super) fn by(causes: &BTreeMap<String, u64>) -> String {
    let mut causes: Vec<(&String, &u64)> = causes.iter().filter(|(_, n)| **n > 0).collect();
    causes.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    if causes.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = causes
        .iter()
        .take(3)
        .map(|(cause, n)| format!("{} {}", answers::in_words(cause), count(**n)))
        .collect();
    let more = if causes.len() > 3 { ", ..." } else { "" };
    format!(" ({}{more})", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use muster_model::Micros;
    use serde_json::json;

    use super::*;
    use crate::{RunResult, Unfinished};

    #[test]
    fn a_message_that_two_consumers_took_for_the_first_is_told() {
        let mut report = Report::default();
        report.ledger.uplink.arrivals.arrived = Some(10);
        let backend = |split| BackendAccount {
            split,
            ..BackendAccount::default()
        };
        for (splits, told) in [
            (vec![Some(3)], 1),
            (vec![Some(0)], 0),
            (vec![None], 0),
            (vec![Some(3), Some(4)], 2),
        ] {
            let named = splits.iter().enumerate();
            let all = named.map(|(at, split)| (format!("b{at}"), backend(*split)));
            report.ledger.by_backend = all.collect();
            let summary = text(&report, 80);
            assert_eq!(
                summary.matches("first at two consumers").count(),
                told,
                "{summary}"
            );
        }
    }

    #[test]
    fn outcomes_name_what_was_completed_and_the_codes_of_refusals_nobody_waited_for() {
        let mut ledger = Ledger {
            accepted: 200,
            session: muster_measure::SessionCounts {
                completed: 150,
                incomplete: 50,
                ..Default::default()
            },
            ..Ledger::default()
        };
        assert_eq!(outcomes(&ledger)[0], "200 accepted (150 completed)");
        ledger.accepted = 2_200;
        assert_eq!(
            outcomes(&ledger)[0],
            "2,200 accepted (150 of 200 completed)"
        );
        (ledger.unacknowledged, ledger.refused_unawaited) = (90, 50);
        let last = |ledger: &Ledger| outcomes(ledger).pop();
        let told = "90 unacknowledged (50 refused)";
        assert_eq!(last(&ledger).as_deref(), Some(told));
        let codes = &mut ledger.refused_unawaited_by_code;
        codes.insert("4.03".to_owned(), 50);
        let told = "90 unacknowledged (50 refused: 4.03 forbidden 50)";
        assert_eq!(last(&ledger).as_deref(), Some(told));
    }

    #[test]
    fn a_part_says_what_makes_a_whole_of_it() {
        let mut report = Report {
            environment: json!({ "part": "1 of 2" }),
            ..Report::default()
        };
        let hint = "  part 1 of 2: merge the parts with `muster merge`\n";
        assert!(text(&report, 80).contains(hint));
        report.environment = json!({});
        assert!(!text(&report, 80).contains("part"));
    }

    #[test]
    fn answers_that_changed_nothing_are_told_where_there_are_any() {
        let mut report = Report::default();
        assert!(!text(&report, 80).contains("answers"));
        report.ledger.uplink.session.answered_again = 1_200;
        report.ledger.uplink.session.answered_malformed = 3;
        assert!(text(&report, 80).contains("  answers  1,200 again  3 unreadable\n"));
    }

    #[test]
    fn a_run_that_goes_on_has_no_verdict_and_one_that_was_cut_says_where() {
        let mut report = Report {
            name: "first".to_owned(),
            ..Report::default()
        };
        report.verdict.result = RunResult::Invalid;
        let at = Micros::from_millis(8_400);
        report.unfinished = Some(Unfinished::running(at));
        let summary = text(&report, 100);
        let told = "RUNNING, 0:08 so far  first\n  the run is judged at its end\n\n";
        assert!(summary.starts_with(told), "{summary}");
        report.unfinished = Some(Unfinished::interrupted(at));
        let summary = text(&report, 100);
        let told = "INTERRUPTED at 0:08, INVALID (exit code 3)  first\n";
        assert!(summary.starts_with(told), "{summary}");
    }

    #[test]
    fn a_pass_says_which_rules_were_switched_off_and_what_happened() {
        let mut report = Report::default();
        report.verdict.result = RunResult::Pass;
        assert!(!text(&report, 100).contains("not judged"));
        let off = |rule: &str, scope: &str| crate::SwitchedOff {
            rule: rule.to_owned(),
            scope: scope.to_owned(),
        };
        report.verdict.switched_off = vec![off("loss", "run"), off("disconnects", "meters")];
        let summary = text(&report, 100);
        let told = "  not judged: loss, disconnects [meters] (switched off by `any`)\n";
        assert!(summary.contains(told), "{summary}");
        let event = |t_s, until_s| crate::Event {
            t_s,
            until_s,
            kind: "no-answer".to_owned(),
            detail: String::new(),
            recovery: None,
        };
        report.events = vec![event(3.4, None); 8];
        report.events[0] = event(12.0, Some(22.0));
        let after_s = Some(11.0);
        report.events[0].recovery = Some(crate::Recovery { after_s });
        let told = "events     no-answer 12-22 s (recovered after 11 s)  no-answer 3 s";
        assert!(text(&report, 200).contains(told));
        assert!(text(&report, 200).contains("and 2 more\n"));
    }
}
