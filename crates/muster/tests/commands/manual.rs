//! Texts of the program about itself: its version, completions and manual pages.

use std::path::Path;

use crate::program::muster;

fn said(arguments: &[&str]) -> String {
    let said = muster(Path::new("."), arguments);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{arguments:?}");
    said.out
}

#[test]
fn both_options_tell_the_version() {
    let version = format!("muster {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(said(&["-V"]), version);
    assert_eq!(said(&["--version"]), version);
}

#[test]
fn every_shell_gets_completions_of_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = said(&["completions", shell]);
        for word in ["provision", "--all-links"] {
            assert!(
                script.contains(word.trim_start_matches("--")),
                "{shell}: {word}"
            );
        }
    }
    let unknown = muster(Path::new("."), &["completions", "tcsh"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert!(unknown.err.contains("bash"), "{}", unknown.err);
}

#[test]
fn each_command_has_a_manual_page_and_hidden_ones_have_none() {
    assert!(said(&["man"]).starts_with(".ie"), "{}", said(&["man"]));
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("man1");
    said(&["man", "--out", out.to_str().expect("a path in UTF-8")]);
    let page = |name: &str| std::fs::read_to_string(out.join(name));
    for name in ["muster.1", "muster-run.1", "muster-import-sap.1"] {
        let text = page(name).expect(name);
        assert!(text.contains(name.trim_end_matches(".1")), "{text}");
    }
    assert!(page("muster-run.1").expect("a page").contains("Exit codes"));
    assert!(page("muster-agent.1").is_err(), "it is hidden");
}
