//! Stray marks, characters outside ASCII, and paths of somebody's machine, in every text file.

use crate::Violation;

/// Marks of unfinished work; split so that this file does not hold them.
const MARKS: [&str; 4] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
];

/// Beginnings of paths that exist on one machine only; split for the same reason.
const MACHINE_PATHS: [&str; 4] = [
    concat!("/wor", "k/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
];

/// Files that nobody of the project writes.
const FOREIGN: [&str; 2] = ["Cargo.lock", "LICENSE"];

/// Files that may hold characters outside ASCII, each with its reason.
pub const ASCII_EXCEPTIONS: [(&str, &str); 0] = [];

/// Checks one text file, by its path and content.
pub fn check_text(path: &str, text: &str) -> Vec<Violation> {
    let name = path.rsplit('/').next().unwrap_or(path);
    if FOREIGN.contains(&name) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        found.extend(mark(path, index + 1, line));
        found.extend(machine_path(path, index + 1, line));
        found.extend(outside_ascii(path, index + 1, line));
    }
    found
}

fn mark(path: &str, number: usize, line: &str) -> Option<Violation> {
    let mut words = line.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let mark = words.find(|word| MARKS.contains(word))?;
    let what = format!("stray `{mark}`: finish it, or file an issue");
    Some(Violation::new(path, number, "stray-mark", what))
}

fn machine_path(path: &str, number: usize, line: &str) -> Option<Violation> {
    let start = MACHINE_PATHS
        .iter()
        .find(|start| begins_a_path(line, start))?;
    let what = format!("`{start}` is a path of one machine: use one relative to the workspace");
    Some(Violation::new(path, number, "machine-path", what))
}

/// Returns true if the text holds a path with this beginning, not only a longer path around it.
fn begins_a_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(place, _)| {
        let before = line[..place].chars().next_back();
        before.is_none_or(|letter| !letter.is_alphanumeric() && !"_-./}".contains(letter))
    })
}

fn outside_ascii(path: &str, number: usize, line: &str) -> Option<Violation> {
    if line.is_ascii()
        || ASCII_EXCEPTIONS
            .iter()
            .any(|(excepted, _)| *excepted == path)
    {
        return None;
    }
    let letter = line.chars().find(|letter| !letter.is_ascii())?;
    let code = letter.escape_unicode();
    let what = format!("`{letter}` is outside ASCII: write it as an escape ({code}) or plainly");
    Some(Violation::new(path, number, "ascii", what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<String> {
        let found = check_text(path, text);
        found
            .iter()
            .map(|violation| format!("{}:{}", violation.rule, violation.line))
            .collect()
    }

    #[test]
    fn every_mark_is_caught_in_every_kind_of_file() {
        for mark in MARKS {
            assert_eq!(
                rules("docs/x.md", &format!("Text.\nAnd {mark}: more.")),
                ["stray-mark:2"]
            );
            assert_eq!(rules("src/x.rs", &format!("// {mark}")), ["stray-mark:1"]);
        }
        assert!(rules("src/x.rs", "let todo = TODOS;").is_empty());
    }

    #[test]
    fn every_machine_path_is_caught() {
        for start in MACHINE_PATHS {
            let line = format!("open(\"{start}me/x\")");
            assert_eq!(rules("src/x.rs", &line), ["machine-path:1"]);
        }
        assert!(rules("src/x.rs", concat!("https://example.org/ho", "me/x")).is_empty());
        assert!(rules("ci", concat!("${HOME}/wor", "k/x")).is_empty());
    }

    #[test]
    fn a_character_outside_ascii_is_caught_with_its_escape() {
        let found = check_text("src/x.rs", "// 5 \u{b5}s");
        assert_eq!(found.len(), 1);
        assert!(found[0].what.contains(r"\u{b5}"), "{}", found[0]);
    }

    #[test]
    fn files_of_others_are_free() {
        assert!(rules("LICENSE", concat!("TO", "DO \u{b5}")).is_empty());
    }

    #[test]
    fn every_exception_has_a_reason_and_exists() {
        for (path, reason) in ASCII_EXCEPTIONS {
            assert!(!reason.is_empty());
            assert!(crate::project::root().join(path).exists(), "{path}");
        }
    }
}
