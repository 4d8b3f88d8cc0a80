//! Links between the docs lead somewhere, and files that the docs name exist.

use std::collections::BTreeMap;

use crate::Violation;
use crate::project::TextFile;

const RULE: &str = "link";

/// A piece of code in a doc that begins so names a file or folder of the project, unless it holds
/// a place to fill in or a pattern.
const NAMED: [&str; 8] = [
    "crates/",
    "xtask/",
    "docs/",
    "scenarios/",
    "e2e/",
    "fuzz/",
    "golden/",
    ".ci/",
];
const PATTERNS: [char; 5] = ['<', '*', '{', ' ', '$'];

/// Checks every link of every Markdown file: a relative one must name a file or folder, and its
/// fragment a heading there; and every path in code. `exists` checks a path relative to the
/// workspace.
pub fn check_links(files: &[TextFile], exists: impl Fn(&str) -> bool) -> Vec<Violation> {
    let pages: BTreeMap<&str, &str> = files
        .iter()
        .filter(|file| file.path.ends_with(".md"))
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let mut found = Vec::new();
    for (page, text) in &pages {
        for (line, target) in links(text) {
            if let Some(what) = broken(page, &target, &pages, &exists) {
                found.push(Violation::new(page, line, RULE, what));
            }
        }
        for (line, path) in named_paths(text) {
            if !exists(path) {
                let what = format!("`{path}` is named here but does not exist");
                found.push(Violation::new(page, line, RULE, what));
            }
        }
    }
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        for (line, target) in commented_headings(&file.text) {
            if let Some(what) = broken("", target, &pages, &exists) {
                found.push(Violation::new(&file.path, line, RULE, what));
            }
        }
    }
    found
}

/// Headings of the docs that comments in code name, such as `docs/semantics.md#shed`, with their lines.
fn commented_headings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let comments = (1..).zip(text.lines());
    let comments = comments.filter(|(_, line)| line.trim_start().starts_with("//"));
    let words = comments.flat_map(|(number, line)| {
        let words = line.split(|c: char| c.is_whitespace() || "()`,;".contains(c));
        words.map(move |word| (number, word.trim_end_matches(['.', ':'])))
    });
    words.filter(|(_, word)| word.starts_with("docs/") && word.contains(".md#"))
}

fn broken(
    page: &str,
    target: &str,
    pages: &BTreeMap<&str, &str>,
    exists: &impl Fn(&str) -> bool,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() {
        page.to_owned()
    } else {
        resolve(page, path)
    };
    if !exists(&path) {
        return Some(format!(
            "`{target}` leads to `{path}`, which does not exist"
        ));
    }
    let text = pages.get(path.as_str()).filter(|_| !fragment.is_empty())?;
    let known = headings(text).any(|heading| anchor(heading) == fragment);
    (!known).then(|| format!("`{path}` has no heading for `#{fragment}`"))
}

/// A path relative to the page's folder, as one relative to the workspace.
fn resolve(page: &str, path: &str) -> String {
    let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Targets of `[text](target)` with their lines, outside code.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let outside_code: String = line.split('`').step_by(2).collect();
        for (place, _) in outside_code.match_indices("](") {
            let rest = &outside_code[place + 2..];
            let target = rest.split([')', ' ']).next().unwrap_or(rest);
            found.push((number, target.to_owned()));
        }
    }
    found
}

/// Paths of the project in code within prose, with their lines.
fn named_paths(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let code = prose(text).flat_map(|(line, text)| {
        text.split('`')
            .skip(1)
            .step_by(2)
            .map(move |code| (line, code))
    });
    code.filter(|(_, code)| {
        NAMED.iter().any(|start| code.starts_with(start)) && !code.contains(PATTERNS)
    })
}

fn headings(text: &str) -> impl Iterator<Item = &str> {
    prose(text)
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| line)
}

/// A heading's fragment as the usual renderers make it.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words
        .chars()
        .filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// Lines with their numbers, without fenced code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<String> {
        let page = |path: &str, text: &str| TextFile {
            path: path.into(),
            text: text.into(),
        };
        let files = [
            page("docs/a.md", text),
            page("README.md", "# Two words\n## C++ & `code`\n"),
        ];
        let exists =
            |path: &str| ["docs/a.md", "README.md", "docs/x.png", "crates"].contains(&path);
        check_links(&files, exists)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn links_that_lead_somewhere_are_accepted() {
        let text = "# Here\n[a](../README.md) ![b](x.png) [c](#here) [d](../README.md#two-words)\n\
                    [e](https://example.org/x) [f](../crates/) [g](../README.md#c--code)\n";
        assert_eq!(check(text), Vec::<String>::new());
    }

    #[test]
    fn a_link_to_nothing_is_caught() {
        let found = check("Text.\n[a](b.md)\n");
        assert_eq!(
            found,
            ["docs/a.md:2: [link] `b.md` leads to `docs/b.md`, which does not exist"]
        );
    }

    #[test]
    fn a_fragment_without_a_heading_is_caught() {
        let found = check("[a](../README.md#three)\n");
        assert_eq!(
            found,
            ["docs/a.md:1: [link] `README.md` has no heading for `#three`"]
        );
        assert_eq!(check("[a](#nowhere)\n").len(), 1);
    }

    #[test]
    fn a_named_file_must_exist() {
        let found = check("See `docs/a.md`, `docs/b.md`, `docs/<name>.md` and `e2e/*.sh`.\n");
        assert_eq!(
            found,
            ["docs/a.md:1: [link] `docs/b.md` is named here but does not exist"]
        );
    }

    #[test]
    fn a_comment_in_code_names_headings_that_are_there() {
        let code = |comment: &str| {
            let text = |path: &str, text: &str| TextFile {
                path: path.into(),
                text: text.into(),
            };
            let files = [
                text("docs/a.md", "## Two words\n"),
                text("src/x.rs", comment),
            ];
            check_links(&files, |path| path == "docs/a.md").len()
        };
        assert_eq!(code("/// Twice (docs/a.md#two-words).\n"), 0);
        assert_eq!(code("    // Twice (docs/a.md#three).\n"), 1);
        assert_eq!(code("//! docs/b.md#two-words: none\n"), 1);
        assert_eq!(code("let text = \"docs/a.md#three\";\n"), 0);
    }

    #[test]
    fn code_is_free() {
        assert!(check("`[a](b.md)`\n```\n[a](b.md)\n```\n").is_empty());
    }
}
