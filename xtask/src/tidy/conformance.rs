//! The tables of what standards demand: each statement with a test that cites it, or the reason why
//! there is none. MQTT 5 numbers its statements: there each stands once, in the standard's order.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::Violation;
use crate::project::TextFile;

const RULE: &str = "conformance";
/// The page with the table of MQTT 5.
pub(super) const PAGE: &str = "docs/mqtt-conformance.md";
/// The page with the tables of CoAP, whose statements are known by RFC and section.
const COAP_PAGE: &str = "docs/coap-conformance.md";
const NO_TEST: &str = "not applicable: ";

/// The statements by section: `MQTT-<section>-<number>`, as appendix B of the standard has them.
const STATEMENTS: [(&str, RangeInclusive<u8>); 56] = [
    ("1.5.4", 1..=3),
    ("1.5.5", 1..=1),
    ("1.5.7", 1..=1),
    ("2.1.3", 1..=1),
    ("2.2.1", 2..=6),
    ("2.2.2", 1..=1),
    ("3.1.0", 1..=2),
    ("3.1.2", 1..=30),
    ("3.1.3", 1..=12),
    ("3.1.4", 1..=6),
    ("3.2.0", 1..=2),
    ("3.2.2", 1..=22),
    ("3.3.1", 1..=13),
    ("3.3.2", 1..=20),
    ("3.3.4", 1..=10),
    ("3.4.2", 1..=3),
    ("3.5.2", 1..=3),
    ("3.6.1", 1..=1),
    ("3.6.2", 1..=3),
    ("3.7.2", 1..=3),
    ("3.8.1", 1..=1),
    ("3.8.3", 1..=5),
    ("3.8.4", 1..=8),
    ("3.9.2", 1..=2),
    ("3.9.3", 1..=2),
    ("3.10.1", 1..=1),
    ("3.10.3", 1..=2),
    ("3.10.4", 1..=6),
    ("3.11.2", 1..=2),
    ("3.11.3", 1..=2),
    ("3.12.4", 1..=1),
    ("3.14.0", 1..=1),
    ("3.14.1", 1..=1),
    ("3.14.2", 1..=4),
    ("3.14.4", 1..=3),
    ("3.15.1", 1..=1),
    ("3.15.2", 1..=3),
    ("4.1.0", 1..=2),
    ("4.2.0", 1..=1),
    ("4.3.1", 1..=1),
    ("4.3.2", 1..=5),
    ("4.3.3", 1..=13),
    ("4.4.0", 1..=2),
    ("4.5.0", 1..=2),
    ("4.6.0", 1..=6),
    ("4.7.0", 1..=1),
    ("4.7.1", 1..=2),
    ("4.7.2", 1..=1),
    ("4.7.3", 1..=4),
    ("4.8.2", 1..=6),
    ("4.9.0", 1..=3),
    ("4.12.0", 1..=7),
    ("4.12.1", 1..=2),
    ("4.13.1", 1..=1),
    ("4.13.2", 1..=1),
    ("6.0.0", 1..=4),
];

/// Checks the tables, where the project has them, against the statements and the tests they name.
pub(super) fn check(files: &[TextFile]) -> Vec<Violation> {
    let texts: BTreeMap<&str, &str> = files
        .iter()
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let mut found = Vec::new();
    for (path, start) in [(PAGE, "| MQTT-"), (COAP_PAGE, "| RFC ")] {
        let Some(page) = texts.get(path) else {
            continue;
        };
        let rows: Vec<Row<'_>> = rows(path, page, start).collect();
        if path == PAGE {
            found.extend(check_order(&rows));
        }
        found.extend(rows.iter().flat_map(|row| row.check(&texts)));
    }
    found
}

/// That the rows are the statements, each once and in order.
fn check_order(rows: &[Row<'_>]) -> Vec<Violation> {
    let statements: Vec<String> = statements().collect();
    let ids: Vec<&str> = rows.iter().map(|row| row.id).collect();
    let first = (0..statements.len().max(ids.len())).find(|at| {
        let wanted = statements.get(*at).map(String::as_str);
        ids.get(*at).copied() != wanted
    });
    let Some(at) = first else { return Vec::new() };
    let (line, is) = rows
        .get(at)
        .map_or((0, "the table's end"), |row| (row.line, row.id));
    let wanted = statements.get(at).map_or("the table's end", String::as_str);
    vec![violation(
        PAGE,
        line,
        format!("{is} stands where {wanted} belongs"),
    )]
}

fn statements() -> impl Iterator<Item = String> {
    STATEMENTS.into_iter().flat_map(|(section, numbers)| {
        numbers.map(move |number| format!("MQTT-{section}-{number}"))
    })
}

/// One statement of the table.
struct Row<'a> {
    page: &'a str,
    line: usize,
    id: &'a str,
    concerns: &'a str,
    meaning: &'a str,
    proof: &'a str,
}

/// The rows of a page whose lines have this start.
fn rows<'a>(path: &'a str, page: &'a str, start: &'a str) -> impl Iterator<Item = Row<'a>> {
    let lines = page.lines().enumerate();
    let statements = lines.filter(move |(_, line)| line.starts_with(start));
    statements.map(move |(index, line)| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let mut next = || cells.next().unwrap_or_default();
        Row {
            page: path,
            line: index + 1,
            id: next(),
            concerns: next(),
            meaning: next(),
            proof: next(),
        }
    })
}

impl Row<'_> {
    fn check(&self, texts: &BTreeMap<&str, &str>) -> Vec<Violation> {
        let mut found = Vec::new();
        if !["client", "server", "both"].contains(&self.concerns) {
            found.push(self.wrong("concerns neither client, server nor both"));
        }
        if self.meaning.is_empty() {
            found.push(self.wrong("has no meaning"));
        }
        if let Some(reason) = self.proof.strip_prefix(NO_TEST) {
            if reason.is_empty() {
                found.push(self.wrong("says not why it is not applicable"));
            }
            return found;
        }
        let tests: Vec<&str> = self.proof.split('`').skip(1).step_by(2).collect();
        if tests.is_empty() {
            found.push(self.wrong("has neither a test nor a reason why there is none"));
        }
        let uncited = tests
            .into_iter()
            .filter_map(|test| uncited(self.id, test, texts));
        found.extend(uncited.map(|what| self.wrong(&what)));
        found
    }

    fn wrong(&self, what: &str) -> Violation {
        violation(self.page, self.line, format!("{} {what}", self.id))
    }
}

fn violation(page: &str, line: usize, what: String) -> Violation {
    Violation::new(page, line, RULE, what)
}

/// Why a test, named as `file::test` below `crates/`, does not prove a statement.
fn uncited(id: &str, test: &str, texts: &BTreeMap<&str, &str>) -> Option<String> {
    let Some((file, name)) = test.split_once("::") else {
        return Some(format!("names `{test}`, which is no file::test"));
    };
    let Some(text) = texts.get(format!("crates/{file}").as_str()) else {
        return Some(format!("names `{test}`, but there is no such file"));
    };
    match heading(text, name) {
        None => Some(format!("names `{test}`, but there is no such test")),
        Some(lines) if cites(&lines, id) => None,
        Some(_) => Some(format!(
            "names `{test}`, whose doc comment does not cite it"
        )),
    }
}

/// The doc comment and attributes over a test; none if there is no such test.
fn heading<'a>(text: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let head = format!("fn {name}(");
    let lines: Vec<&str> = text.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.trim_start().starts_with(&head))?;
    let above = lines[..at].iter().rev().map(|line| line.trim_start());
    let over: Vec<&str> = above
        .take_while(|line| line.starts_with("///") || line.starts_with("#["))
        .collect();
    over.contains(&"#[test]").then_some(over)
}

/// Whether a doc comment holds every word of the id, not only longer ones that begin with it.
fn cites(lines: &[&str], id: &str) -> bool {
    let docs = lines.iter().filter(|line| line.starts_with("///"));
    let words: Vec<&str> = docs
        .flat_map(|line| {
            line.split(|letter: char| !letter.is_ascii_alphanumeric() && !".-".contains(letter))
        })
        .map(|word| word.trim_end_matches('.'))
        .collect();
    id.split(' ').all(|word| words.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project whose table has a row for each statement, with `row` in place of the first.
    fn found(row: &str, source: &str) -> Vec<String> {
        let rest = statements()
            .skip(1)
            .map(|id| format!("| {id} | both | Something. | not applicable: a reason |\n"));
        let page = TextFile {
            path: PAGE.into(),
            text: format!("# Table\n\n{row}\n{}", rest.collect::<String>()),
        };
        let source = TextFile {
            path: "crates/a/tests/b.rs".into(),
            text: source.into(),
        };
        let found = check(&[page, source]);
        found.iter().map(|found| found.what.clone()).collect()
    }

    const ROW: &str = "| MQTT-1.5.4-1 | both | Text is text. | `a/tests/b.rs::it_is` |";

    #[test]
    fn there_are_251_statements() {
        assert_eq!(statements().count(), 251);
    }

    #[test]
    fn a_table_whose_tests_cite_it_is_accepted() {
        let source = "/// MQTT-1.5.4-2, MQTT-1.5.4-1.\n#[test]\nfn it_is() {}\n";
        assert!(found(ROW, source).is_empty());
        let untested = "| MQTT-1.5.4-1 | client | Text. | not applicable: none is sent |";
        assert!(found(untested, "").is_empty());
        assert!(check(&[]).is_empty(), "a project need not have one");
    }

    #[test]
    fn a_statement_that_is_missing_doubled_or_unknown_is_caught() {
        let missing = found("", "");
        assert_eq!(missing, ["MQTT-1.5.4-2 stands where MQTT-1.5.4-1 belongs"]);
        let other = ROW.replace("1.5.4-1", "1.5.4-9");
        let unknown = found(&other, "/// MQTT-1.5.4-9.\n#[test]\nfn it_is() {}\n");
        assert_eq!(unknown, ["MQTT-1.5.4-9 stands where MQTT-1.5.4-1 belongs"]);
        let source = "/// MQTT-1.5.4-1.\n#[test]\nfn it_is() {}\n";
        let doubled = found(&format!("{ROW}\n{ROW}"), source);
        assert_eq!(doubled, ["MQTT-1.5.4-1 stands where MQTT-1.5.4-2 belongs"]);
    }

    #[test]
    fn a_test_that_does_not_exist_or_does_not_cite_is_caught() {
        let none = found(ROW, "/// MQTT-1.5.4-1.\n#[test]\nfn it_was() {}\n");
        assert_eq!(none.len(), 1);
        assert!(none[0].ends_with("but there is no such test"), "{none:?}");
        let longer = found(ROW, "/// MQTT-1.5.4-11.\n#[test]\nfn it_is() {}\n");
        assert!(longer[0].ends_with("does not cite it"), "{longer:?}");
        let no_test = found(ROW, "/// MQTT-1.5.4-1.\nfn it_is() {}\n");
        assert!(no_test[0].ends_with("no such test"), "{no_test:?}");
        let elsewhere = found(&ROW.replace("b.rs", "c.rs"), "");
        assert!(elsewhere[0].ends_with("no such file"), "{elsewhere:?}");
    }

    #[test]
    fn a_row_without_proof_or_reason_is_caught() {
        for proof in ["", "surely", "not applicable: "] {
            let row = format!("| MQTT-1.5.4-1 | both | Text. | {proof} |");
            assert_eq!(found(&row, "").len(), 1, "{proof}");
        }
        let row = "| MQTT-1.5.4-1 | nobody | | not applicable: a reason |";
        assert_eq!(found(row, "").len(), 2);
    }

    #[test]
    fn a_row_of_coap_is_proved_by_a_test_that_cites_rfc_and_section() {
        let found = |docs: &str| {
            let file = |path: &str, text: String| TextFile {
                path: path.into(),
                text,
            };
            let row = "| RFC 7252 4.2 | client | Copies. | `a/tests/b.rs::it_is` |";
            let page = file(COAP_PAGE, row.into());
            let source = format!("{docs}#[test]\nfn it_is() {{}}\n");
            check(&[page, file("crates/a/tests/b.rs", source)]).len()
        };
        assert_eq!(found("/// RFC 7252 sections 4.2 and 4.3: copies.\n"), 0);
        assert_eq!(found("/// RFC 7252 section 4.20.\n"), 1);
        assert_eq!(found("/// RFC 7959 section 4.2.\n"), 1);
        assert_eq!(found(""), 1);
    }
}
