//! The workspace keeps its own rules, and a project that breaks them all is told so.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use xtask::{Violation, docs, layers, project, tidy};

#[test]
fn layers_and_purity_hold() -> Result<()> {
    demand_none(&layers::check(&project::root())?);
    Ok(())
}

#[test]
fn the_project_is_tidy() -> Result<()> {
    demand_none(&tidy::check(&project::root())?);
    Ok(())
}

#[test]
fn every_command_of_the_documents_is_run_or_says_what_it_needs() -> Result<()> {
    demand_none(&docs::check_marks(&project::root())?);
    Ok(())
}

#[test]
fn a_project_that_breaks_every_rule_of_tidiness_is_told_of_each() -> Result<()> {
    let root = tempfile::tempdir()?;
    let lines = "\n".repeat(600);
    write(root.path(), "crates/a/Cargo.toml", "[package]")?;
    write(root.path(), "crates/a/src/lib.rs", "mod long; mod utils;")?;
    write(
        root.path(),
        "crates/a/src/utils.rs",
        "//! What is told.\nfn tell(a: A, b: A, c: A, d: A, e: A, f: A) {}",
    )?;
    write(
        root.path(),
        "crates/a/src/long.rs",
        &format!("//! Long.\nfn f() {{{lines}}}\n"),
    )?;
    write(
        root.path(),
        "crates/a/src/left.rs",
        "//! Nobody declares it.",
    )?;
    let prose = format!(
        "{}\n{}\n\u{b5}\n[a](b.md)\n{}\n",
        concat!("TO", "DO"),
        concat!("/ro", "ot/x"),
        "word ".repeat(30)
    );
    write(root.path(), "docs/x.md", &prose)?;
    let rules: BTreeSet<&str> = tidy::check(root.path())?
        .iter()
        .map(|found| found.rule)
        .collect();
    let expected = [
        "arguments",
        "ascii",
        "banned-name",
        "dead-file",
        "file-length",
        "function-length",
        "header",
        "link",
        "machine-path",
        "name",
        "opening",
        "phrase",
        "sentence-length",
        "stray-mark",
        "type-size",
    ];
    assert_eq!(rules, BTreeSet::from(expected));
    Ok(())
}

fn write(root: &Path, path: &str, text: &str) -> Result<()> {
    let path = root.join(path);
    fs::create_dir_all(path.parent().context("a file has a folder")?)?;
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
}

fn demand_none(found: &[Violation]) {
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert!(
        lines.is_empty(),
        "{} violations:\n{}",
        lines.len(),
        lines.join("\n")
    );
}
