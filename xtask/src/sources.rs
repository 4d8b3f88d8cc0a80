//! The Rust files of one crate: which module declares which file, and which are only for tests.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use syn::punctuated::Punctuated;
use syn::{Attribute, Expr, Item, Lit, Meta, Token};

/// The files of a crate that some module declares, with whether only tests see them.
///
/// A file that is missing here but exists in the folder is dead.
#[derive(Debug, Default)]
pub struct ModuleTree {
    /// Path, relative to the crate's folder, to "only tests see it".
    pub files: BTreeMap<String, bool>,
}

impl ModuleTree {
    /// Follows the `mod` declarations from every root of a crate, given its Rust files by path
    /// relative to the crate's folder.
    ///
    /// # Errors
    /// If a reached file is not Rust.
    pub fn follow(files: &BTreeMap<String, String>) -> Result<Self> {
        let mut tree = Self::default();
        for path in files.keys() {
            if let Some(test) = root_kind(path) {
                let folder = Path::new(path).parent().unwrap_or(Path::new("")).to_owned();
                tree.enter(files, path, &folder, test)?;
            }
        }
        Ok(tree)
    }

    /// `folder` is where the modules that `path` declares have their files.
    fn enter(
        &mut self,
        files: &BTreeMap<String, String>,
        path: &str,
        folder: &Path,
        test: bool,
    ) -> Result<()> {
        let Some(text) = files.get(path) else {
            return Ok(());
        };
        let known = self.files.entry(path.to_owned()).or_insert(test);
        *known &= test;
        let ast = syn::parse_file(text).with_context(|| format!("parsing {path}"))?;
        let test = test || is_test_only(&ast.attrs);
        let beside = Path::new(path).parent().unwrap_or(Path::new("")).to_owned();
        for declared in declarations(&ast.items, folder, &beside, test) {
            if let Some(file) = declared
                .places
                .iter()
                .find(|place| files.contains_key(*place))
            {
                self.enter(files, file, &declared.folder, declared.test)?;
            }
        }
        Ok(())
    }
}

/// A module declared without a body.
struct Declared {
    /// Possible paths of its file.
    places: Vec<String>,
    /// Folder of its modules' files.
    folder: PathBuf,
    test: bool,
}

/// Returns none if the file begins no crate, else true for a test crate.
fn root_kind(path: &str) -> Option<bool> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["src", "lib.rs" | "main.rs"] | ["build.rs"] => Some(false),
        ["src", "bin", _] | ["src", "bin", _, "main.rs"] => Some(false),
        ["examples", _] | ["examples", _, "main.rs"] | ["fuzz_targets", _] => Some(false),
        ["tests" | "benches", _] | ["tests" | "benches", _, "main.rs"] => Some(true),
        _ => None,
    }
}

fn declarations(items: &[Item], folder: &Path, beside: &Path, test: bool) -> Vec<Declared> {
    let modules = items.iter().filter_map(|item| match item {
        Item::Mod(module) => Some(module),
        _ => None,
    });
    let mut found = Vec::new();
    for module in modules {
        let name = module.ident.to_string();
        let test = test || is_test_only(&module.attrs);
        let inner = folder.join(&name);
        if let Some((_, items)) = &module.content {
            found.extend(declarations(items, &inner, &inner, test));
        } else if let Some(named) = path_attribute(&module.attrs) {
            let place = normal(&beside.join(named));
            let folder = Path::new(&place)
                .parent()
                .unwrap_or(Path::new(""))
                .to_owned();
            found.push(Declared {
                places: vec![place],
                folder,
                test,
            });
        } else {
            let places = vec![
                normal(&folder.join(format!("{name}.rs"))),
                normal(&inner.join("mod.rs")),
            ];
            found.push(Declared {
                places,
                folder: inner,
                test,
            });
        }
    }
    found
}

/// Returns true if an item is compiled for tests alone.
pub fn is_test_only(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => list
            .parse_args::<Meta>()
            .is_ok_and(|condition| implies_test(&condition)),
        Meta::List(_) | Meta::NameValue(_) => false,
    })
}

fn implies_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) => {
            let parse = Punctuated::<Meta, Token![,]>::parse_terminated;
            let parts = list.parse_args_with(parse).unwrap_or_default();
            if list.path.is_ident("all") {
                parts.iter().any(implies_test)
            } else {
                list.path.is_ident("any") && !parts.is_empty() && parts.iter().all(implies_test)
            }
        }
        Meta::NameValue(_) => false,
    }
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else {
            return None;
        };
        let Expr::Lit(literal) = &pair.value else {
            return None;
        };
        let Lit::Str(path) = &literal.lit else {
            return None;
        };
        pair.path.is_ident("path").then(|| path.value())
    })
}

/// A path with `/` between its parts and without `..`.
fn normal(path: &Path) -> String {
    let mut parts: Vec<String> = Vec::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                parts.pop();
            }
            Component::Normal(part) => parts.push(part.to_string_lossy().into_owned()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(files: &[(&str, &str)]) -> BTreeMap<String, bool> {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).into(), (*text).into()))
            .collect();
        ModuleTree::follow(&files)
            .expect("the files are Rust")
            .files
    }

    #[test]
    fn modules_are_followed_into_folders() {
        let tree = follow(&[
            ("src/lib.rs", "mod a;"),
            ("src/a.rs", "mod b;"),
            ("src/a/b.rs", ""),
            ("src/b.rs", ""),
        ]);
        let reached: Vec<_> = tree.keys().map(String::as_str).collect();
        assert_eq!(reached, ["src/a.rs", "src/a/b.rs", "src/lib.rs"]);
    }

    #[test]
    fn a_module_of_tests_makes_its_files_test_only() {
        let tree = follow(&[
            (
                "src/lib.rs",
                "#[cfg(test)] mod tests; #[cfg(feature = \"x\")] mod x;",
            ),
            ("src/tests.rs", "mod inner;"),
            ("src/tests/inner.rs", ""),
            ("src/x.rs", ""),
            ("tests/whole.rs", ""),
            ("tests/golden/main.rs", "mod sample;"),
            ("tests/golden/sample.rs", ""),
        ]);
        assert!(tree["src/tests.rs"] && tree["src/tests/inner.rs"]);
        assert!(tree["tests/whole.rs"] && tree["tests/golden/sample.rs"]);
        assert!(!tree["src/x.rs"] && !tree["src/lib.rs"]);
    }

    #[test]
    fn a_path_attribute_names_the_file() {
        let tree = follow(&[
            ("src/lib.rs", "#[path = \"../common/x.rs\"] mod x;"),
            ("common/x.rs", ""),
        ]);
        assert!(tree.contains_key("common/x.rs"));
    }

    #[test]
    fn a_condition_is_for_tests_only_if_it_implies_them() {
        let only = |text: &str| {
            let item: syn::ItemMod = syn::parse_str(text).expect("it is a module");
            is_test_only(&item.attrs)
        };
        assert!(only("#[cfg(test)] mod a {}"));
        assert!(only("#[cfg(all(test, unix))] mod a {}"));
        assert!(!only("#[cfg(not(test))] mod a {}"));
        assert!(!only("#[cfg(any(test, feature = \"x\"))] mod a {}"));
        assert!(!only("#[cfg(feature = \"test\")] mod a {}"));
    }
}
