//! Plain English and standard names: openings of doc comments, phrases, words of identifiers.

use std::ops::RangeInclusive;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{ItemFn, ItemMod, LitStr};

use crate::Violation;
use crate::sources::is_test_only;

/// The rules of this module.
pub(super) const RULES: [&str; 3] = ["opening", "phrase", "name"];

/// Beginnings that no doc comment may have: each announces a clause (`_` is a space).
const OPENINGS: [&str; 27] = [
    "what",
    "whatever",
    "whether",
    "how",
    "who",
    "whoever",
    "whose",
    "whom",
    "where",
    "wherever",
    "when",
    "whenever",
    "that",
    "which",
    "whichever",
    "why",
    "if",
    "it",
    "the_one_that",
    "the_one_whose",
    "the_one_of",
    "so_many",
    "so_much",
    "those",
    "they",
    "these",
    "there",
];

/// Phrases and words that prose avoids, in lower case, with `_` for a space.
const PHRASES: [&str; 47] = [
    "is_told",
    "are_told",
    "stands_in",
    "stand_in_for",
    "by_turns",
    "of_its_own",
    "of_their_own",
    "as_far_as",
    "so_many",
    "so_much_as",
    "beside",
    "comes_to_nothing",
    "come_to_nothing",
    "of_which",
    "by_which",
    "such_as_do_not",
    "such_as_does_not",
    "nobody's",
    "told",
    "tell",
    "tells",
    "telling",
    "hear",
    "hears",
    "heard",
    "hearing",
    "overheard",
    "overhears",
    "vouch",
    "vouched",
    "vouches",
    "fate",
    "fates",
    "tally",
    "tallies",
    "trouble",
    "troubles",
    "scribe",
    "courier",
    "desk",
    "office",
    "crew",
    "roster",
    "pulses",
    "lane",
    "lanes",
    "seat",
];

/// Words that no identifier and no file name has as a part.
const NAMES: [&str; 31] = [
    "told",
    "tell",
    "tells",
    "says",
    "hear",
    "hears",
    "heard",
    "overheard",
    "vouched",
    "vouches",
    "lane",
    "lanes",
    "seat",
    "seats",
    "office",
    "desk",
    "company",
    "crew",
    "roster",
    "tape",
    "scribe",
    "courier",
    "trouble",
    "troubles",
    "fate",
    "fates",
    "plot",
    "pulse",
    "pulses",
    "tally",
    "tallies",
];

/// Finds the violations in one Rust file; code of tests is checked for openings alone.
pub(super) fn check(path: &str, text: &str, test_only: bool) -> Vec<Violation> {
    let mut checked = Checked {
        path,
        tests: Vec::new(),
        test_only,
        found: Vec::new(),
    };
    // A file that is no Rust breaks a rule of its own.
    if let Ok(file) = syn::parse_file(text) {
        checked.visit_file(&file);
    }
    for part in path.split('/') {
        checked.name(0, part.strip_suffix(".rs").unwrap_or(part));
    }
    if let Ok(tokens) = text.parse() {
        checked.tokens(tokens);
    }
    checked.found
}

/// Returns the crate of a path below the root.
pub(super) fn crate_of(path: &str) -> &str {
    let inside = path.strip_prefix("crates/").unwrap_or(path);
    inside.split('/').next().unwrap_or(inside)
}

/// Returns the lower-case words of an identifier in snake or camel case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut lower = false;
    for letter in name.chars() {
        if !letter.is_alphabetic() || (lower && letter.is_uppercase()) {
            words.push(String::new());
        }
        lower = letter.is_lowercase();
        if letter.is_alphabetic() {
            let last = words.last_mut();
            last.into_iter()
                .for_each(|word| word.extend(letter.to_lowercase()));
        }
    }
    words
}

/// Returns the prose of a text: lower case, single spaces, code between backticks left out.
fn prose(text: &str) -> String {
    let outside = text.split('`').step_by(2).collect::<Vec<_>>().join(" ` ");
    let words = outside.split(|letter: char| !letter.is_alphanumeric() && !"'`".contains(letter));
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    format!(" {} ", words.join(" ").to_lowercase())
}

struct Checked<'a> {
    path: &'a str,
    /// Lines of items that only tests see.
    tests: Vec<RangeInclusive<usize>>,
    test_only: bool,
    found: Vec<Violation>,
}

impl Checked<'_> {
    fn tokens(&mut self, tokens: TokenStream) {
        let mut documented: Option<(usize, String)> = None;
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let doc = match (&token, tokens.peek()) {
                (TokenTree::Punct(mark), Some(TokenTree::Group(group)))
                    if mark.as_char() == '#' =>
                {
                    doc_line(group)
                }
                (TokenTree::Punct(mark), Some(TokenTree::Punct(_))) if mark.as_char() == '#' => {
                    continue;
                }
                (TokenTree::Punct(mark), Some(TokenTree::Group(group)))
                    if mark.as_char() == '!' =>
                {
                    doc_line(group)
                }
                _ => None,
            };
            if let Some(line) = doc {
                let start = token.span().start().line;
                let (_, text) = documented.get_or_insert((start, String::new()));
                text.push_str(&line);
                text.push('\n');
                tokens.next();
                continue;
            }
            if let Some((line, text)) = documented.take() {
                self.doc(line, &text);
            }
            self.token(token);
        }
        if let Some((line, text)) = documented {
            self.doc(line, &text);
        }
    }

    fn token(&mut self, token: TokenTree) {
        let line = token.span().start().line;
        match token {
            TokenTree::Group(group) => self.tokens(group.stream()),
            TokenTree::Ident(ident) => self.name(line, &ident.to_string()),
            TokenTree::Literal(literal) => {
                let text = syn::parse_str::<LitStr>(&literal.to_string());
                // Text without a space is a key or a name that others read.
                if let Ok(text) = text
                    && text.value().trim().contains(' ')
                {
                    self.phrase(line, &text.value());
                }
            }
            TokenTree::Punct(_) => {}
        }
    }

    fn doc(&mut self, line: usize, text: &str) {
        let prosaic = prose(text);
        let opening = OPENINGS
            .iter()
            .map(|opening| opening.replace('_', " "))
            .find(|opening| prosaic.starts_with(&format!(" {opening} ")));
        if let Some(opening) = opening {
            let what = format!(
                "doc comment opens with `{opening}`: begin with a noun or a verb as in `Returns`"
            );
            self.found
                .push(Violation::new(self.path, line, RULES[0], what));
        }
        let outside: Vec<_> = text.split("```").step_by(2).collect();
        self.phrase(line, &outside.join(" "));
    }

    fn phrase(&mut self, line: usize, text: &str) {
        let prosaic = prose(text);
        let phrase = PHRASES
            .iter()
            .map(|phrase| phrase.replace('_', " "))
            .find(|phrase| prosaic.contains(&format!(" {phrase} ")));
        if let Some(phrase) = phrase.filter(|_| !self.in_test(line)) {
            let what = format!("`{phrase}` is no plain English: say it as a new reader would");
            self.found
                .push(Violation::new(self.path, line, RULES[1], what));
        }
    }

    fn name(&mut self, line: usize, name: &str) {
        let word = words(name)
            .into_iter()
            .find(|word| NAMES.contains(&&**word));
        if let Some(word) = word.filter(|_| !self.in_test(line)) {
            let what = format!("`{name}` has the word `{word}`: use the field's standard word");
            self.found
                .push(Violation::new(self.path, line, RULES[2], what));
        }
    }

    fn in_test(&self, line: usize) -> bool {
        self.test_only || self.tests.iter().any(|lines| lines.contains(&line))
    }

    fn test_item(&mut self, item: &impl Spanned) {
        let span = item.span();
        self.tests.push(span.start().line..=span.end().line);
    }
}

impl<'ast> Visit<'ast> for Checked<'_> {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if is_test_only(&module.attrs) {
            self.test_item(module);
        }
        visit::visit_item_mod(self, module);
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if is_test_only(&function.attrs) {
            self.test_item(function);
        }
    }
}

/// Returns the text of `[doc = ".."]`.
fn doc_line(group: &Group) -> Option<String> {
    if group.delimiter() != Delimiter::Bracket {
        return None;
    }
    let mut tokens = group.stream().into_iter();
    match (tokens.next(), tokens.next(), tokens.next()) {
        (Some(TokenTree::Ident(name)), Some(_), Some(TokenTree::Literal(text)))
            if name == "doc" =>
        {
            let text = syn::parse_str::<LitStr>(&text.to_string()).ok()?;
            Some(text.value())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str, test_only: bool) -> Vec<String> {
        let found = check(path, text, test_only);
        found
            .iter()
            .map(|violation| format!("{}:{}", violation.rule, violation.line))
            .collect()
    }

    #[test]
    fn a_doc_comment_opens_with_a_noun_or_a_verb() {
        let none = Vec::<String>::new();
        let good = "//! Rates.\n\n/// Returns the rate.\n///\n/// What else?\nfn f() {}";
        assert_eq!(rules("src/x.rs", good, false), none);
        for opening in ["Whether", "What", "It", "The one that", "So many"] {
            let text = format!("//! Rates.\n\nstruct A {{\n    /// {opening} is.\n    a: u8,\n}}");
            assert_eq!(rules("tests/x.rs", &text, true), ["opening:4"], "{opening}");
            let header = format!("//! {opening} is.\n\nfn f() {{}}");
            assert_eq!(
                rules("tests/x.rs", &header, true),
                ["opening:1"],
                "{opening}"
            );
        }
        assert_eq!(
            rules("src/x.rs", "//! Whatsoever.\n// What is\nfn f() {}", false),
            none
        );
    }

    #[test]
    fn phrases_are_found_in_docs_and_messages_but_not_in_keys_or_code() {
        assert_eq!(
            rules("src/x.rs", "//! Rates, each\n//! of\n//! which.", false),
            ["phrase:1"]
        );
        assert_eq!(
            rules("src/x.rs", "//! `of which`.\n", false),
            Vec::<String>::new()
        );
        let text = |literal: &str| format!("//! A.\nfn f() {{\n    g!(\"{literal}\");\n}}");
        assert_eq!(
            rules("src/x.rs", &text("the desk: {x}"), false),
            ["phrase:3"]
        );
        assert!(rules("src/x.rs", &text("desk"), false).is_empty());
        assert!(rules("src/x.rs", &text("the desktop"), false).is_empty());
        assert!(rules("src/x.rs", &text("the desk: {x}"), true).is_empty());
    }

    #[test]
    fn names_are_judged_by_whole_words() {
        assert_eq!(rules("src/told.rs", "//! A.", false), ["name:0"]);
        assert_eq!(
            rules("src/x.rs", "//! A.\nfn was_told() {}", false),
            ["name:2"]
        );
        assert_eq!(
            rules("src/x.rs", "//! A.\nstruct CrewOf;", false),
            ["name:2"]
        );
        assert!(rules("src/x.rs", "//! A.\nfn teller() { Screwed }", false).is_empty());
        let test = "//! A.\n#[cfg(test)]\nmod tests {\n    fn is_told() {}\n}";
        assert!(rules("src/x.rs", test, false).is_empty());
    }
}
