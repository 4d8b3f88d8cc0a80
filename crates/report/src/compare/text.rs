//! A comparison as text for a terminal.

use std::fmt::Write as _;

use muster_judge::compare::{FALSE_ALARMS, Finding};

use super::{Compare, ComparedFigure, Comparison};

/// Differences of the set-up that are listed; more are counted.
const SETUP_LINES: usize = 20;

/// Figures that are listed; more are counted.
const FIGURE_LINES: usize = 30;

/// Length of a value of a set-up that is shown; the rest is cut.
const SETUP_VALUE: usize = 40;

/// Marks a figure that decides the verdict.
const DECIDES: char = '*';

impl Compare {
    /// The comparison as text.
    pub fn text(&self) -> String {
        let parts: Vec<String> = self.comparisons.iter().map(Comparison::text).collect();
        parts.join("\n")
    }
}

impl Comparison {
    fn text(&self) -> String {
        let mut text = format!(
            "{}  {} -> {}, tolerance {} %\n",
            self.verdict.name().to_uppercase(),
            self.base.title(),
            self.change.title(),
            self.tolerance * 100.0
        );
        for reason in &self.reasons {
            let _ = writeln!(text, "  {reason}");
        }
        self.left_out(&mut text);
        self.setup(&mut text);
        self.figures(&mut text);
        text
    }

    /// The runs whose figures do not count.
    fn left_out(&self, text: &mut String) {
        for run in self.base.runs.iter().chain(&self.change.runs) {
            if let Some(reason) = &run.left_out {
                let _ = writeln!(text, "  left out: {}: {reason}", run.folder);
            }
        }
    }

    fn setup(&self, text: &mut String) {
        if self.setup.is_empty() {
            return;
        }
        let cut = |value: &str| shortened(value, SETUP_VALUE);
        let shown = || self.setup.iter().take(SETUP_LINES);
        let names = shown().map(|one| one.key.chars().count()).max();
        let bases = shown().map(|one| cut(&one.base).chars().count()).max();
        let (name, base) = (names.unwrap_or(0), bases.unwrap_or(0));
        text.push_str("\nset-up differs\n");
        for one in shown() {
            let mark = if one.blocks { '!' } else { ' ' };
            let (key, from, to) = (&one.key, cut(&one.base), cut(&one.change));
            let _ = writeln!(text, "{mark} {key:<name$}  {from:<base$}  ->  {to}");
        }
        let more = self.setup.len().saturating_sub(SETUP_LINES);
        if more > 0 {
            let _ = writeln!(text, "  and {more} more; --format json has all");
        }
        if self.setup.iter().any(|one| one.blocks) {
            text.push_str("! a different load: --ignore KEY compares all the same\n");
        }
    }

    fn figures(&self, text: &mut String) {
        if self.figures.is_empty() {
            return;
        }
        let titles = self.figures.iter().map(|of| of.title().chars().count());
        let width = titles.max().unwrap_or(0).max(10);
        let _ = writeln!(
            text,
            "\n  {:<width$} {:>10} {:>10} {:>10}  {:<26}{:<8}finding",
            "", "base", "change", "by", "interval", "p"
        );
        let shown = |of: &&ComparedFigure| of.decides || of.has_moved();
        let mut rest = 0;
        for (at, figure) in self.figures.iter().filter(shown).enumerate() {
            match at < FIGURE_LINES {
                true => drop(writeln!(text, "{}", figure.line(width))),
                false => rest += 1,
            }
        }
        rest += self.figures.iter().filter(|of| !shown(of)).count();
        if rest > 0 {
            let _ = writeln!(text, "  and {rest} more figures: --format json has all");
        }
        let _ = writeln!(
            text,
            "{DECIDES} decides; intervals at {:.4} %: {:.0} % for all that decide together",
            self.confidence * 100.0,
            (1.0 - FALSE_ALARMS) * 100.0
        );
    }
}

impl ComparedFigure {
    /// True if a reader looks for it: it is not the same on both sides.
    fn has_moved(&self) -> bool {
        use Finding::{Better, DiffersHere, Worse};
        self.finding
            .is_some_and(|of| [Better, Worse, DiffersHere].contains(&of))
    }

    fn line(&self, width: usize) -> String {
        let mark = if self.decides { DECIDES } else { ' ' };
        let by = self
            .by
            .map_or("-".to_owned(), |by| self.distance_in_words(by));
        let p = self.p.map_or("-".to_owned(), p_in_words);
        let mut line = format!(
            "{mark} {:<width$} {:>10} {:>10} {by:>10}  {:<26}{p:<8}{}",
            self.title(),
            self.in_words(self.base),
            self.in_words(self.change),
            self.interval_in_words(),
            self.finding_in_words(),
        );
        if let Some(note) = &self.note {
            let _ = write!(line, " ({note})");
        }
        line
    }
}

/// A probability with the digits that count.
pub(super) fn p_in_words(p: f64) -> String {
    match p {
        0.0..0.0001 => "<0.0001".to_owned(),
        _ => format!("{p:.4}"),
    }
}

/// At most `most` characters of a text.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 3).chain("...".chars()).collect(),
        false => text.to_owned(),
    }
}
