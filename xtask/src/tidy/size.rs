//! Lengths of functions and files, and numbers of arguments.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, File, ImplItemFn, Item, ItemFn, ItemImpl, Signature, TraitItemFn};

use crate::Violation;
use crate::sources::is_test_only;

/// Lines that fit on a screen.
const FUNCTION_LINES: usize = 70;
/// Lines that one can keep in mind; test modules do not count.
const FILE_LINES: usize = 500;
/// As clippy counts them: `self` is one.
const ARGUMENTS: usize = 5;

/// Checks each function's length, signature to closing brace, and its arguments.
pub(super) fn check_functions(path: &str, file: &File) -> Vec<Violation> {
    let mut functions = Functions {
        path,
        keeps_to_trait: false,
        found: Vec::new(),
    };
    functions.visit_file(file);
    functions.found
}

/// Checks the file's length without its test modules.
pub(super) fn check_length(path: &str, text: &str, file: &File) -> Option<Violation> {
    let lines = text.lines().count() - test_lines(&file.items);
    (lines > FILE_LINES).then(|| {
        let what = format!("{lines} lines without tests, more than {FILE_LINES}: split by idea");
        Violation::new(path, 0, "file-length", what)
    })
}

fn test_lines(items: &[Item]) -> usize {
    let modules = items.iter().filter_map(|item| match item {
        Item::Mod(module) => Some(module),
        _ => None,
    });
    modules
        .map(|module| match &module.content {
            _ if is_test_only(&module.attrs) => lines_of(module),
            Some((_, items)) => test_lines(items),
            None => 0,
        })
        .sum()
}

fn lines_of(node: &impl Spanned) -> usize {
    let span = node.span();
    span.end().line - span.start().line + 1
}

struct Functions<'a> {
    path: &'a str,
    /// True for functions of a trait's implementation, whose arguments the trait has chosen.
    keeps_to_trait: bool,
    found: Vec<Violation>,
}

impl Functions<'_> {
    fn check(&mut self, signature: &Signature, block: Option<&Block>) {
        let (name, line) = (&signature.ident, signature.span().start().line);
        let end = block.map_or(line, |block| block.span().end().line);
        let lines = end - line + 1;
        if lines > FUNCTION_LINES {
            let what = format!("`{name}` has {lines} lines, more than {FUNCTION_LINES}: split it");
            self.found
                .push(Violation::new(self.path, line, "function-length", what));
        }
        let arguments = signature.inputs.len();
        if arguments > ARGUMENTS && !self.keeps_to_trait {
            let what = format!("`{name}` has {arguments} arguments, more than {ARGUMENTS}: group");
            self.found
                .push(Violation::new(self.path, line, "arguments", what));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.check(&function.sig, Some(&function.block));
        visit::visit_item_fn(self, function);
    }

    fn visit_item_impl(&mut self, block: &'ast ItemImpl) {
        let outside = std::mem::replace(&mut self.keeps_to_trait, block.trait_.is_some());
        visit::visit_item_impl(self, block);
        self.keeps_to_trait = outside;
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.check(&function.sig, Some(&function.block));
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        self.check(&function.sig, function.default.as_ref());
        visit::visit_trait_item_fn(self, function);
    }
}

#[cfg(test)]
mod tests {
    use super::super::check_rust;

    fn rules(text: &str, test_only: bool) -> Vec<String> {
        let found = check_rust("src/x.rs", text, test_only);
        found
            .iter()
            .map(|violation| format!("{}:{}", violation.rule, violation.line))
            .collect()
    }

    fn function(lines: usize) -> String {
        format!(
            "//! Header.\n\n/// Does.\n#[must_use]\nfn f() {{{}\n}}\n",
            "\n".repeat(lines - 2)
        )
    }

    #[test]
    fn a_function_of_70_lines_is_the_longest() {
        assert_eq!(rules(&function(70), false), Vec::<String>::new());
        assert_eq!(rules(&function(71), false), ["function-length:5"]);
    }

    #[test]
    fn methods_nested_functions_and_tests_are_measured_too() {
        let long = "\n".repeat(80);
        for text in [
            format!("//! H.\nimpl A {{\nfn f() {{{long}}} }}"),
            format!("//! H.\ntrait A {{\nfn f() {{{long}}} }}"),
            format!("//! H.\n#[cfg(test)] mod tests {{\nfn f() {{{long}}} }}"),
        ] {
            assert_eq!(rules(&text, false), ["function-length:3"]);
        }
    }

    #[test]
    fn five_arguments_are_the_most_self_included() {
        assert!(rules("//! H.\nfn f(a: A, b: A, c: A, d: A, e: A) {}", false).is_empty());
        let six = "//! H.\nimpl A { fn f(&self, b: A, c: A, d: A, e: A, f: A) {} }";
        assert_eq!(rules(six, false), ["arguments:2"]);
        let declared = "//! H.\ntrait A { fn f(a: A, b: A, c: A, d: A, e: A, f: A); }";
        assert_eq!(rules(declared, false), ["arguments:2"]);
        let kept_to = six.replace("impl A", "impl T for A");
        assert!(rules(&kept_to, false).is_empty());
    }

    #[test]
    fn a_file_of_500_lines_is_the_longest() {
        let file =
            |lines: usize| format!("//! Header.\n{}", "const A: u8 = 0;\n".repeat(lines - 1));
        assert!(rules(&file(500), false).is_empty());
        assert_eq!(rules(&file(501), false), ["file-length:0"]);
        assert!(rules(&file(501), true).is_empty());
    }

    #[test]
    fn modules_of_tests_do_not_count_towards_the_file() {
        let code = "const A: u8 = 0;\n".repeat(480);
        let text = format!("//! H.\n{code}#[cfg(test)]\nmod tests {{\n{code}}}\n");
        assert!(rules(&text, false).is_empty());
        let text = format!("//! H.\n{code}mod others {{\n{code}}}\n");
        assert_eq!(rules(&text, false), ["file-length:0"]);
    }
}
