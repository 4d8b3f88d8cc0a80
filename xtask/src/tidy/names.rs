//! Names that say nothing, and files that do not say what they are.

use syn::visit::{self, Visit};
use syn::{AttrStyle, File, Ident, ItemFn, ItemMod};

use crate::Violation;
use crate::sources::is_test_only;

const RULE: &str = "banned-name";

/// Names of files, folders and modules that hold whatever was left over.
const BANNED: [&str; 7] = [
    "utils",
    "util",
    "utilities",
    "common",
    "helpers",
    "helper",
    "misc",
];

/// Checks the file's name and the folders above it.
pub(super) fn check_path(path: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    if path.ends_with("/mod.rs") {
        let what = "`mod.rs` hides which module it is: name the file after the module, next \
                    to its folder";
        found.push(Violation::new(path, 0, RULE, what));
    }
    for part in path.split('/') {
        let name = part.strip_suffix(".rs").unwrap_or(part);
        found.extend(banned(path, 0, name));
    }
    found
}

/// Checks that the file opens with a `//!` header.
pub(super) fn check_header(path: &str, file: &File) -> Option<Violation> {
    let opens = file.attrs.first().is_some_and(|attribute| {
        matches!(attribute.style, AttrStyle::Inner(_)) && attribute.path().is_ident("doc")
    });
    (!opens).then(|| {
        let what = "the file opens without a `//!` header: say in one sentence what it holds";
        Violation::new(path, 1, "header", what)
    })
}

/// Checks names of modules and functions.
pub(super) fn check_items(path: &str, file: &File) -> Vec<Violation> {
    let mut items = Items {
        path,
        found: Vec::new(),
    };
    items.visit_file(file);
    items.found
}

fn banned(path: &str, line: usize, name: &str) -> Option<Violation> {
    BANNED.contains(&name).then(|| {
        let what = format!("`{name}` says nothing: name it after the one idea it holds");
        Violation::new(path, line, RULE, what)
    })
}

struct Items<'a> {
    path: &'a str,
    found: Vec<Violation>,
}

impl<'ast> Visit<'ast> for Items<'_> {
    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        // A module in a file of its own is told by the file's path.
        if module.content.is_some() {
            let name = module.ident.to_string();
            self.found
                .extend(banned(self.path, line(&module.ident), &name));
        }
        visit::visit_item_mod(self, module);
    }

    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        let name = function.sig.ident.to_string();
        if let Some(rest) = name
            .strip_prefix("test_")
            .filter(|_| is_test_only(&function.attrs))
        {
            let what = format!("`{name}`: a test's name is a statement, as in `{rest}_is_...`");
            let line = line(&function.sig.ident);
            self.found.push(Violation::new(self.path, line, RULE, what));
        }
        visit::visit_item_fn(self, function);
    }
}

fn line(ident: &Ident) -> usize {
    ident.span().start().line
}

#[cfg(test)]
mod tests {
    use super::super::check_rust;

    fn rules(path: &str, text: &str) -> Vec<String> {
        let found = check_rust(path, text, false);
        found
            .iter()
            .map(|violation| format!("{}:{}", violation.rule, violation.line))
            .collect()
    }

    #[test]
    fn a_file_without_a_header_is_caught() {
        assert_eq!(rules("src/x.rs", "fn f() {}"), ["header:1"]);
        assert_eq!(
            rules("src/x.rs", "/// Not the file.\nfn f() {}"),
            ["header:1"]
        );
        assert_eq!(rules("src/x.rs", "// A comment.\nfn f() {}"), ["header:1"]);
        assert!(rules("src/x.rs", "//! The file.\nfn f() {}").is_empty());
    }

    #[test]
    fn a_file_or_folder_that_says_nothing_is_caught() {
        assert_eq!(rules("src/utils.rs", "//! H."), ["banned-name:0"]);
        assert_eq!(rules("src/common/codec.rs", "//! H."), ["banned-name:0"]);
        assert_eq!(rules("src/codec/mod.rs", "//! H."), ["banned-name:0"]);
        assert!(rules("src/commonality.rs", "//! H.").is_empty());
    }

    #[test]
    fn a_module_that_says_nothing_is_caught() {
        assert_eq!(
            rules("src/x.rs", "//! H.\nmod helpers { fn f() {} }"),
            ["banned-name:2"]
        );
    }

    #[test]
    fn a_test_prefix_is_caught() {
        let text = "//! H.\n#[cfg(test)] mod tests {\n#[test] fn test_sum() {} }";
        assert_eq!(rules("src/x.rs", text), ["banned-name:3"]);
        assert!(rules("src/x.rs", "//! H.\nfn test_lines() {}").is_empty());
    }
}
