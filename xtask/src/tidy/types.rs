//! Types that hold more than one thing: many methods, or many fields and behaviour.

use syn::{File, ImplItem, Item, Type};

use super::english::crate_of;
use crate::Violation;
use crate::sources::is_test_only;

const RULE: &str = "type-size";

/// Methods of a type in all its `impl` blocks, those of traits included.
const METHODS: usize = 60;
/// Fields of a type with behaviour.
const FIELDS: usize = 15;
/// A type with at most this many methods is a record: of arguments, settings or results.
const RECORD_METHODS: usize = 3;

/// The types of the project and their methods.
#[derive(Debug, Default)]
pub(super) struct Types {
    defined: Vec<Defined>,
    /// File, name of the type and number of methods of each `impl` block.
    blocks: Vec<(String, String, usize)>,
}

#[derive(Debug)]
struct Defined {
    file: String,
    line: usize,
    name: String,
    fields: usize,
}

impl Types {
    /// Adds the types of a file, without those of its tests.
    pub(super) fn add(&mut self, path: &str, file: &File) {
        self.add_items(path, &file.items);
    }

    fn add_items(&mut self, path: &str, items: &[Item]) {
        let mut define = |ident: &syn::Ident, fields| {
            self.defined.push(Defined {
                file: path.to_owned(),
                line: ident.span().start().line,
                name: ident.to_string(),
                fields,
            });
        };
        let mut inner = Vec::new();
        for item in items {
            match item {
                Item::Struct(item) => define(&item.ident, item.fields.len()),
                Item::Enum(item) => define(&item.ident, 0),
                Item::Mod(module) if !is_test_only(&module.attrs) => {
                    inner.extend(module.content.as_ref().map(|(_, items)| items));
                }
                Item::Impl(block) if !is_test_only(&block.attrs) => {
                    let Type::Path(target) = &*block.self_ty else {
                        continue;
                    };
                    let methods = block.items.iter().filter(|item| is_method(item)).count();
                    let name = target
                        .path
                        .segments
                        .last()
                        .map(|last| last.ident.to_string());
                    let block = name.map(|name| (path.to_owned(), name, methods));
                    self.blocks.extend(block);
                }
                _ => {}
            }
        }
        for items in inner {
            self.add_items(path, items);
        }
    }

    /// Finds the types that are too large. `allowed` types, as `crate::Name` with the reason, must
    /// still be, so that the list only shrinks.
    pub(super) fn check(&self, allowed: &[(&str, &str)]) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut excused = Vec::new();
        for defined in &self.defined {
            let methods = self.methods(defined);
            let many_fields = defined.fields > FIELDS && methods > RECORD_METHODS;
            if methods <= METHODS && !many_fields {
                continue;
            }
            let Defined {
                file,
                line,
                name,
                fields,
            } = defined;
            let full = format!("{}::{name}", crate_of(file));
            if allowed.iter().any(|(name, _)| *name == full) {
                excused.push(full);
                continue;
            }
            let what = format!(
                "`{name}` has {methods} methods and {fields} fields, more than {METHODS} or {FIELDS}: \
                 move what belongs together to another type"
            );
            found.push(Violation::new(file, *line, RULE, what));
        }
        let stale = allowed
            .iter()
            .filter(|(name, _)| !excused.iter().any(|full| full == name));
        found.extend(stale.map(|(name, _)| {
            let what = format!("`{name}` is small enough: strike it from TYPES in allowed.rs");
            Violation::new("xtask/src/tidy/allowed.rs", 0, RULE, what)
        }));
        found
    }

    /// Methods in the blocks that are the type's: of its file, or of a file of its crate that
    /// defines no type of this name.
    fn methods(&self, of: &Defined) -> usize {
        let is_its = |file: &str| {
            let elsewhere = |defined: &&Defined| defined.name == of.name && defined.file == file;
            file == of.file
                || crate_of(file) == crate_of(&of.file)
                    && !self.defined.iter().any(|it| elsewhere(&it))
        };
        let blocks = self.blocks.iter();
        let its = blocks.filter(|(file, name, _)| *name == of.name && is_its(file));
        its.map(|(_, _, methods)| methods).sum()
    }
}

fn is_method(item: &ImplItem) -> bool {
    match item {
        ImplItem::Fn(function) => !is_test_only(&function.attrs),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, String)], allowed: &[(&str, &str)]) -> Vec<String> {
        let mut types = Types::default();
        for (path, text) in files {
            types.add(path, &syn::parse_file(text).expect("it is Rust"));
        }
        let found = types.check(allowed);
        found
            .iter()
            .map(|one| format!("{}:{}", one.file, one.line))
            .collect()
    }

    fn methods(from: usize, count: usize) -> String {
        let methods = (from..from + count).map(|n| format!("fn f{n}() {{}} "));
        format!("impl A {{ {} }}", methods.collect::<String>())
    }

    fn fields(count: usize) -> String {
        let fields = (0..count).map(|n| format!("f{n}: u8, "));
        format!("\nstruct A {{ {} }}", fields.collect::<String>())
    }

    const ONE: &str = "crates/a/src/one.rs";
    const TWO: &str = "crates/a/src/two.rs";

    #[test]
    fn methods_of_all_files_of_a_crate_count_together() {
        let one = (ONE, fields(1) + &methods(0, 30));
        assert!(found(&[one.clone(), (TWO, methods(30, 30))], &[]).is_empty());
        let two = (TWO, methods(30, 31));
        assert_eq!(
            found(&[one.clone(), two.clone()], &[]),
            [format!("{ONE}:2")]
        );
        let allowed = [("a::A", "a reason")];
        assert!(found(&[one.clone(), two], &allowed).is_empty());
        assert_eq!(
            found(std::slice::from_ref(&one), &allowed),
            ["xtask/src/tidy/allowed.rs:0"]
        );
        let other = ("crates/b/src/two.rs", methods(30, 31));
        assert!(found(&[one.clone(), other], &[]).is_empty());
        let namesake = (TWO, fields(1) + &methods(30, 31));
        assert!(found(&[one, namesake], &[]).is_empty());
    }

    #[test]
    fn fields_are_bounded_where_there_is_behaviour() {
        assert!(found(&[(ONE, fields(15) + &methods(0, 60))], &[]).is_empty());
        assert!(found(&[(ONE, fields(50) + &methods(0, 3))], &[]).is_empty());
        let both = (ONE, fields(16) + &methods(0, 4));
        assert_eq!(found(&[both], &[]), [format!("{ONE}:2")]);
    }

    #[test]
    fn tests_are_free() {
        let inside = format!("mod tests {{ {} {} }}", fields(16), methods(0, 61));
        let text = format!("#[cfg(test)] {inside}");
        assert!(found(&[(ONE, text)], &[]).is_empty());
        assert_eq!(found(&[(ONE, inside)], &[]).len(), 1);
    }
}
