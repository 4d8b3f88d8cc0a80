//! Tidiness: sizes, names, headers, stray marks, characters, machine paths, dead files, links, the
//! tables of what standards demand.

mod allowed;
mod conformance;
mod english;
mod links;
mod names;
mod sentences;
mod size;
mod types;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

pub use conformance::write_tables;
pub use links::check_links;
pub use words::{ASCII_EXCEPTIONS, check_text};

use crate::Violation;
use crate::project::{TextFile, relative, text_files};
use crate::sources::ModuleTree;

/// Checks the whole project.
///
/// # Errors
/// If a file cannot be read or a Rust file cannot be parsed.
pub fn check(root: &Path) -> Result<Vec<Violation>> {
    let files = text_files(root)?;
    let mut found = Vec::new();
    let crates = crate_folders(&files);
    let mut test_only = BTreeSet::new();
    for folder in &crates {
        let tree = ModuleTree::follow(&rust_files(&files, folder))?;
        found.extend(dead_files(&files, folder, &tree));
        let tests = tree.files.into_iter().filter(|(_, test)| *test);
        test_only.extend(tests.map(|(path, _)| format!("{folder}/{path}")));
    }
    let mut types = types::Types::default();
    for file in &files {
        found.extend(check_text(&file.path, &file.text));
        if is_rust(&file.path) {
            let for_tests = test_only.contains(&file.path);
            let (violations, parsed) = check_and_parse(&file.path, &file.text, for_tests);
            found.extend(violations);
            if let Some(parsed) = parsed.filter(|_| !for_tests) {
                types.add(&file.path, &parsed);
            }
            found.extend(english::check(&file.path, &file.text, for_tests));
        }
    }
    found.extend(types.check(allowed::TYPES));
    found.extend(sentences::check(&files));
    found.extend(check_links(&files, |path| root.join(path).exists()));
    found.extend(conformance::check(&files));
    found.sort();
    Ok(found)
}

/// Checks one Rust file; `test_only` spares its length. A file that is no Rust is a violation.
pub fn check_rust(path: &str, text: &str, test_only: bool) -> Vec<Violation> {
    check_and_parse(path, text, test_only).0
}

fn check_and_parse(path: &str, text: &str, test_only: bool) -> (Vec<Violation>, Option<syn::File>) {
    let mut found = names::check_path(path);
    let parsed = syn::parse_file(text);
    match &parsed {
        Ok(file) => {
            found.extend(names::check_header(path, file));
            found.extend(names::check_items(path, file));
            found.extend(size::check_functions(path, file));
            if !test_only {
                found.extend(size::check_length(path, text, file));
            }
        }
        Err(error) => {
            let line = error.span().start().line;
            found.push(Violation::new(path, line, "syntax", error.to_string()));
        }
    }
    (found, parsed.ok())
}

/// The files of one crate's library or binary, without tests and examples: path relative to the
/// root, and text.
///
/// # Errors
/// If a file cannot be read or parsed.
pub fn production_files(root: &Path, folder: &Path) -> Result<Vec<(String, String)>> {
    let inside = relative(root, folder);
    let files = text_files(folder).with_context(|| format!("reading crate {inside}"))?;
    let files: BTreeMap<String, String> = files
        .into_iter()
        .filter(|file| is_rust(&file.path) && file.path.starts_with("src/"))
        .map(|file| (file.path, file.text))
        .collect();
    let tree = ModuleTree::follow(&files)?;
    let production = files
        .into_iter()
        .filter(|(path, _)| tree.files.get(path) == Some(&false));
    Ok(production
        .map(|(path, text)| (format!("{inside}/{path}"), text))
        .collect())
}

fn is_rust(path: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|extension| extension == "rs")
}

/// Every folder below the root that has a manifest.
fn crate_folders(files: &[TextFile]) -> Vec<String> {
    let manifests = files
        .iter()
        .filter_map(|file| file.path.strip_suffix("/Cargo.toml"));
    manifests.map(str::to_owned).collect()
}

fn rust_files(files: &[TextFile], folder: &str) -> BTreeMap<String, String> {
    let inside = files.iter().filter_map(|file| {
        let below = file.path.strip_prefix(folder)?.strip_prefix('/')?;
        is_rust(below).then(|| (below.to_owned(), file.text.clone()))
    });
    inside.collect()
}

fn dead_files(files: &[TextFile], folder: &str, tree: &ModuleTree) -> Vec<Violation> {
    let dead = rust_files(files, folder)
        .into_keys()
        .filter(|path| !tree.files.contains_key(path));
    dead.map(|path| {
        let what = "no module declares this file: declare it or delete it";
        Violation::new(&format!("{folder}/{path}"), 0, "dead-file", what)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project;

    #[test]
    fn a_file_that_no_module_declares_is_dead() -> Result<()> {
        let file = |path: &str, text: &str| TextFile {
            path: path.into(),
            text: text.into(),
        };
        let files = [
            file("crates/a/Cargo.toml", ""),
            file("crates/a/src/lib.rs", "mod used;"),
            file("crates/a/src/used.rs", ""),
            file("crates/a/src/left.rs", ""),
        ];
        assert_eq!(crate_folders(&files), ["crates/a"]);
        let tree = ModuleTree::follow(&rust_files(&files, "crates/a"))?;
        let found = dead_files(&files, "crates/a", &tree);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].file, "crates/a/src/left.rs");
        Ok(())
    }

    #[test]
    fn what_is_no_rust_is_a_violation() {
        let found = check_rust("x.rs", "//! Header.\nfn f( {}\n", false);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].rule, "syntax");
    }

    #[test]
    fn files_of_tests_are_no_production() -> Result<()> {
        let root = project::root();
        let files = production_files(&root, &root.join("xtask"))?;
        let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
        assert!(paths.contains(&"xtask/src/tidy.rs"));
        assert!(!paths.contains(&"xtask/tests/house.rs"));
        Ok(())
    }
}
