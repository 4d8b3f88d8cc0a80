//! Names that a pure crate's source may not use outside its tests.

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, ImplItem, Item};

use super::rooms::FORBIDDEN_PATHS;
use crate::Violation;
use crate::sources::is_test_only;

const RULE: &str = "purity";

/// Checks one file of a pure crate that is not for tests alone; comments and texts are free.
///
/// # Errors
/// If the file is not Rust.
pub fn check_purity(path: &str, text: &str) -> Result<Vec<Violation>> {
    let file = syn::parse_file(text).with_context(|| format!("parsing {path}"))?;
    let mut named = Paths::default();
    named.walk(production_tokens(file.items), &[]);
    let mut found = Vec::new();
    for Named { line, path: parts } in named.found {
        for (forbidden, remedy) in FORBIDDEN_PATHS {
            if contains(&parts, forbidden) {
                let what = format!("a pure crate may not name `{}`: {remedy}", parts.join("::"));
                found.push(Violation::new(path, line, RULE, what));
            }
        }
    }
    found.dedup_by_key(|violation| violation.line);
    Ok(found)
}

fn contains(parts: &[String], wanted: &[&str]) -> bool {
    parts
        .windows(wanted.len())
        .any(|window| window.iter().eq(wanted))
}

/// The tokens of all items that are compiled without tests.
fn production_tokens(items: Vec<Item>) -> TokenStream {
    let mut tokens = TokenStream::new();
    for item in items
        .into_iter()
        .filter(|item| !is_test_only(attributes(item)))
    {
        match item {
            Item::Mod(module) => {
                tokens.extend(module.content.map(|(_, items)| production_tokens(items)));
            }
            Item::Impl(mut block) => {
                block.items.retain(|item| match item {
                    ImplItem::Fn(function) => !is_test_only(&function.attrs),
                    _ => true,
                });
                block.to_tokens(&mut tokens);
            }
            other => other.to_tokens(&mut tokens),
        }
    }
    tokens
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// A path as written, with the line of its last part.
struct Named {
    line: usize,
    path: Vec<String>,
}

/// Every path in a stream of tokens, macros included; `a::{b, c::d}` is `a::b` and `a::c::d`.
#[derive(Default)]
struct Paths {
    found: Vec<Named>,
}

impl Paths {
    fn walk(&mut self, tokens: TokenStream, prefix: &[String]) {
        let mut current = prefix.to_vec();
        let mut colons = 2 * usize::from(!prefix.is_empty());
        let mut line = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.end(&mut current, line);
                    }
                    current.push(ident.to_string());
                    line = ident.span().start().line;
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.enter(&group, &mut current, (colons, line));
                    colons = 0;
                }
                TokenTree::Punct(punct) => {
                    self.end(&mut current, line);
                    let again = punct.as_char() == ',' && !prefix.is_empty();
                    current = if again { prefix.to_vec() } else { Vec::new() };
                    colons = 2 * usize::from(again);
                }
                TokenTree::Literal(_) => {
                    self.end(&mut current, line);
                    colons = 0;
                }
            }
        }
        self.end(&mut current, line);
    }

    fn enter(&mut self, group: &Group, current: &mut Vec<String>, (colons, line): (usize, usize)) {
        if colons == 2 && group.delimiter() == Delimiter::Brace {
            let prefix = std::mem::take(current);
            self.walk(group.stream(), &prefix);
        } else {
            self.end(current, line);
            self.walk(group.stream(), &[]);
        }
    }

    fn end(&mut self, current: &mut Vec<String>, line: usize) {
        if !current.is_empty() && line > 0 {
            self.found.push(Named {
                line,
                path: std::mem::take(current),
            });
        }
        current.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let found = check_purity("x.rs", text).expect("the text is Rust");
        found.iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn every_forbidden_path_is_caught() {
        for (path, _) in FORBIDDEN_PATHS {
            let text = format!("fn f() {{ {}(); }}", path.join("::"));
            assert_eq!(lines(&text), [1], "{text}");
        }
    }

    #[test]
    fn an_import_is_caught_in_every_form() {
        assert_eq!(lines("use std::fs;"), [1]);
        assert_eq!(lines("use std::fs::File;"), [1]);
        assert_eq!(lines("use std::{fmt,\nfs};"), [2]);
        assert_eq!(lines("use std::{fmt, net::{IpAddr, Ipv4Addr}};"), [1]);
        assert_eq!(lines("use std::time::{Duration, Instant};"), [1]);
        assert_eq!(
            lines("use std::{fmt, time::{Duration, SystemTime as Wall}};"),
            [1]
        );
    }

    #[test]
    fn what_threads_share_and_what_writes_is_caught_in_every_form() {
        assert_eq!(lines("use std::sync::{Arc,\nMutex};"), [2]);
        assert_eq!(lines("struct S { a: std::sync::RwLock<u8> }"), [1]);
        assert_eq!(lines("use std::sync::*;\nstatic A: Mutex<u8> = x;"), [2]);
        assert_eq!(lines("use std::sync::atomic::{AtomicU64, Ordering};"), [1]);
        assert_eq!(lines("use std::sync::mpsc::channel;"), [1]);
        assert_eq!(lines("use std::io::Write;"), [1]);
        assert_eq!(lines("struct S { out: Box<dyn std::io::Write> }"), [1]);
        assert_eq!(lines("use std::{fmt, io, thread};"), [1]);
    }

    #[test]
    fn shared_ownership_and_text_are_free() {
        let text = "use std::sync::Arc; use std::fmt::Write; fn f(a: Arc<u8>) { io(a); }";
        assert!(lines(text).is_empty());
    }

    #[test]
    fn a_use_inside_a_macro_is_caught() {
        assert_eq!(lines("fn f() { vec![0, std::thread::sleep(x)]; }"), [1]);
        assert_eq!(lines("macro_rules! m { () => { println!() }; }"), [1]);
    }

    #[test]
    fn a_longer_path_around_the_word_is_caught() {
        assert_eq!(lines("fn f() { ::std::time::Instant::now(); }"), [1]);
        assert_eq!(lines("fn f() -> std::net::IpAddr { g() }"), [1]);
    }

    #[test]
    fn tests_are_free() {
        assert!(lines("#[cfg(test)] mod tests { use std::fs; fn f() { println!(); } }").is_empty());
        assert!(lines("mod a { #[cfg(test)] mod tests { use std::fs; } }").is_empty());
        assert!(
            lines("#[cfg(test)] use std::fs; #[cfg(test)] static A: std::fs::File = x;").is_empty()
        );
        assert!(lines("impl A { #[cfg(test)] fn f() { println!(); } }").is_empty());
        assert_eq!(
            lines("impl A { #[cfg(not(test))] fn f() { println!(); } }"),
            [1]
        );
    }

    #[test]
    fn comments_texts_and_other_names_are_free() {
        let text = "//! Never std::fs.\n/// No `Instant::now()`.\n\
                    fn f() { g(\"std::net\"); standard::fs(); operand(); std::time::Duration::ZERO; }";
        assert!(lines(text).is_empty());
    }
}
