//! A comparison as Markdown, for a comment on a pull request.

use std::fmt::Write as _;

use super::text::{p_in_words, shortened};
use super::{Compare, ComparedFigure, Comparison};

/// Length of a value of a set-up that is shown.
const SETUP_VALUE: usize = 60;

/// Differences of a set-up that are listed.
const SETUP_ROWS: usize = 100;

impl Compare {
    /// The comparison as Markdown, as GitHub and GitLab read it.
    pub fn markdown(&self) -> String {
        let parts: Vec<String> = self.comparisons.iter().map(Comparison::markdown).collect();
        parts.join("\n")
    }
}

impl Comparison {
    fn markdown(&self) -> String {
        let mut text = format!(
            "### muster compare: {}\n\n{} against {}, tolerance {} %\n\n",
            self.verdict.name(),
            plain(&self.change.title()),
            plain(&self.base.title()),
            self.tolerance * 100.0
        );
        for reason in &self.reasons {
            let _ = writeln!(text, "- {}", plain(reason));
        }
        for run in self.base.runs.iter().chain(&self.change.runs) {
            if let Some(reason) = &run.left_out {
                let _ = writeln!(
                    text,
                    "- left out: {}: {}",
                    plain(&run.folder),
                    plain(reason)
                );
            }
        }
        let (deciding, others): (Vec<_>, Vec<_>) = self.figures.iter().partition(|of| of.decides);
        table(&mut text, &deciding);
        folded(
            &mut text,
            &format!("{} more figures", others.len()),
            |text| table(text, &others),
        );
        let title = format!("set-up differs in {} keys", self.setup.len());
        folded(&mut text, &title, |text| self.setup_table(text));
        text
    }

    fn setup_table(&self, text: &mut String) {
        if self.setup.is_empty() {
            return;
        }
        text.push_str("\n| key | base | change | |\n|---|---|---|---|\n");
        for one in self.setup.iter().take(SETUP_ROWS) {
            let [base, change] =
                [&one.base, &one.change].map(|of| plain(&shortened(of, SETUP_VALUE)));
            let blocks = if one.blocks { "another load" } else { "" };
            let _ = writeln!(
                text,
                "| {} | {base} | {change} | {blocks} |",
                plain(&one.key)
            );
        }
    }
}

/// Adds a part that a reader opens; nothing if the part is empty.
fn folded(text: &mut String, title: &str, add: impl Fn(&mut String)) {
    let mut part = String::new();
    add(&mut part);
    if !part.is_empty() {
        let _ = writeln!(
            text,
            "\n<details><summary>{title}</summary>\n{part}\n</details>"
        );
    }
}

fn table(text: &mut String, figures: &[&ComparedFigure]) {
    if figures.is_empty() {
        return;
    }
    text.push_str("\n| figure | base | change | by | interval | p | finding |\n");
    text.push_str("|---|--:|--:|--:|---|--:|---|\n");
    for of in figures {
        let by = of.by.map_or("-".to_owned(), |by| of.distance_in_words(by));
        let p = of.p.map_or("-".to_owned(), p_in_words);
        let note = of
            .note
            .as_ref()
            .map_or(String::new(), |note| format!(" ({note})"));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {by} | {} | {} | {}{} |",
            plain(&of.title()),
            of.in_words(of.base),
            of.in_words(of.change),
            of.interval_in_words(),
            plain(&p),
            of.finding_in_words(),
            plain(&note),
        );
    }
}

/// Text that is no markup: what could be one is escaped.
fn plain(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for symbol in text.chars() {
        match symbol {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' => {
                escaped.push('\\');
                escaped.push(symbol);
            }
            // A name behind it would be notified.
            '@' => escaped.push_str("@\u{200b}"),
            symbol if symbol.is_control() => escaped.push(' '),
            symbol => escaped.push(symbol),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_result_becomes_markup() {
        assert_eq!(
            plain("a|b <img> [x](y)\n@all `c`"),
            "a\\|b &lt;img&gt; \\[x\\](y) @\u{200b}all \\`c\\`"
        );
    }
}
