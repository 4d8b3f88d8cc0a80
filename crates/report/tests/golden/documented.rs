//! The keys of a result in `docs/result.md`, made from the types and their comments, and checked against
//! what the types write.

#![expect(
    clippy::wildcard_enum_match_arm,
    clippy::large_enum_variant,
    reason = "most of what Rust can say is no type of a result"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use muster_judge::SetNames;
use muster_measure::{CommandLedger, Equation, PresenceRow, ReceptionLedger, TargetCounts};
use muster_report::{
    CommandAccount, CounterGrowth, DrainAccount, Figure, LatencyFigures, NodeCount, Percentiles,
    QueriesDue, ReceiveAccount, Report, ServerCount, SubscriberRow, TargetUse, csv,
};
use serde_json::Value;
use syn::visit::Visit as _;

use crate::sample;

/// The crates whose types a result is made of; the first that has a name gives its meaning.
const CRATES: [&str; 4] = ["report", "measure", "judge", "model"];
/// Lines around the generated part of the page.
const MARKS: [&str; 2] = [
    "<!-- generated: the keys of a result, from the types in crates/report -->",
    "<!-- end of generated -->",
];
/// Types that write themselves by hand.
const BY_HAND: [(&str, &str); 2] = [("AtLeast", "list of text"), ("Unfinished", "text")];
/// A key that no field holds: type, the key before it, key, its type, its meaning.
const NO_FIELD: [&str; 5] = [
    "Verdict",
    "causes",
    "counts",
    "RuleCounts",
    "Numbers of rules by how they ended",
];

/// A type as a result shows it.
enum Shape {
    /// An object: its keys.
    Object(Vec<Key>),
    /// One of these words, each with its meaning.
    Words(Vec<(String, String)>),
    /// A value that another type stands for.
    Same(syn::Type),
}

struct Key {
    name: String,
    form: syn::Type,
    meaning: String,
}

struct Types {
    items: BTreeMap<String, (Shape, String)>,
}

impl Types {
    fn read() -> Self {
        let mut items = BTreeMap::new();
        for name in CRATES.iter().rev() {
            for path in sources(&root().join("crates").join(name).join("src")) {
                let text = std::fs::read_to_string(&path).expect("a source file");
                let file = syn::parse_file(&text).expect("Rust");
                let found = file.items.iter().filter_map(shape);
                items.extend(found.map(|(name, shape, doc)| (name, (shape, doc))));
            }
        }
        let types = Self { items };
        assert!(matches!(types.items["Report"].0, Shape::Object(_)));
        types
    }

    /// The keys of an object, those of the structs that it takes in among them.
    fn keys(&self, name: &str) -> Vec<(String, &syn::Type, &str)> {
        let Shape::Object(keys) = &self.items[name].0 else {
            panic!("{name} is no object");
        };
        let mut all = Vec::new();
        for key in keys {
            match (key.name.as_str(), argument(&key.form)) {
                ("", None) => all.extend(self.keys(&word(&key.form))),
                ("", Some(of)) => all.push(("*".to_owned(), of, &*key.meaning)),
                (name, _) => all.push((name.to_owned(), &key.form, &*key.meaning)),
            }
        }
        // The percentiles of a latency are of the answered, so that none of them is a lower bound.
        all.retain(|(key, ..)| name != "LatencyFigures" || key != "at_least");
        all
    }

    /// The type that a key holds, without what may be around it.
    fn inner(&self, form: &syn::Type) -> Option<String> {
        if let syn::Type::Array(array) = form {
            return self.inner(&array.elem);
        }
        if let Some(inner) = argument(form) {
            return self.inner(inner);
        }
        let name = word(form);
        let is_by_hand = BY_HAND.iter().any(|(by_hand, _)| *by_hand == name);
        match self.items.get(&name).filter(|_| !is_by_hand) {
            Some((Shape::Same(form), _)) => self.inner(form),
            Some(_) => Some(name),
            None => None,
        }
    }

    /// The form of a key's value, in words.
    fn form(&self, form: &syn::Type) -> String {
        if let syn::Type::Array(array) = form {
            let of_numbers = word(&array.elem) == "f64";
            return if of_numbers {
                "four numbers"
            } else {
                "pair of integers"
            }
            .to_owned();
        }
        let name = word(form);
        let of = || self.form(argument(form).expect("an argument"));
        match &*name {
            "Option" => format!("{}, or null", of()),
            "Vec" => format!("list of {}", of()),
            "BTreeMap" => format!("map of {}", of()),
            "u64" | "u32" | "u16" | "u8" | "i64" | "i32" => "integer".to_owned(),
            "f64" => "number".to_owned(),
            "bool" => "boolean".to_owned(),
            "String" => "text".to_owned(),
            "Value" => "any".to_owned(),
            _ => match BY_HAND.iter().find(|(by_hand, _)| *by_hand == name) {
                Some((_, words)) => (*words).to_owned(),
                None => match &self.items[&name].0 {
                    Shape::Same(form) => self.form(form),
                    _ => format!("[{name}](#{})", name.to_lowercase()),
                },
            },
        }
    }

    /// The sections of the page: a type each, in the order in which a reader from the top meets them.
    fn page(&self) -> String {
        let mut page = String::new();
        let mut waiting = std::collections::VecDeque::from([("Report".to_owned(), String::new())]);
        let mut met = BTreeSet::from(["Report".to_owned()]);
        while let Some((name, place)) = waiting.pop_front() {
            let (shape, doc) = &self.items[&name];
            let at = match place.as_str() {
                "" => String::new(),
                place => format!(" For example at `{place}`."),
            };
            let _ = write!(page, "\n## {name}\n\n{doc}{at}\n\n");
            if let Shape::Words(words) = shape {
                page += "| word | meaning |\n|---|---|\n";
                for (word, meaning) in words {
                    let _ = writeln!(page, "| `{word}` | {meaning} |");
                }
                continue;
            }
            page += "| key | form | meaning |\n|---|---|---|\n";
            for (key, form, meaning) in self.keys(&name) {
                let _ = writeln!(page, "| `{key}` | {} | {meaning} |", self.form(form));
                if let Some(inner) = self.inner(form).filter(|inner| met.insert(inner.clone())) {
                    let dot = if place.is_empty() { "" } else { "." };
                    let form = self.form(form);
                    let step = match form.split(' ').next() {
                        Some("list") => format!("{key}[]"),
                        Some("map") => format!("{key}.*"),
                        _ => key.clone(),
                    };
                    waiting.push_back((inner, format!("{place}{dot}{step}")));
                }
            }
        }
        page.push('\n');
        page
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The source files of a folder, in order.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("entry").path()).collect();
    paths.sort();
    let (folders, files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_dir());
    let inner = folders.iter().flat_map(|folder| sources(folder));
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|end| end == "rs");
    inner.chain(files.into_iter().filter(is_rust)).collect()
}

/// A type that is written into a result, with its name and its comment.
fn shape(item: &syn::Item) -> Option<(String, Shape, String)> {
    match item {
        syn::Item::Struct(of) => {
            let shape = match &of.fields {
                syn::Fields::Named(fields) => Shape::Object(object(&of.ident, fields)),
                syn::Fields::Unnamed(fields) => Shape::Same(fields.unnamed.first()?.ty.clone()),
                syn::Fields::Unit => return None,
            };
            Some((of.ident.to_string(), shape, comment(&of.attrs, true)))
        }
        syn::Item::Enum(of) => {
            let fields = of
                .variants
                .iter()
                .filter_map(|variant| match &variant.fields {
                    syn::Fields::Named(fields) => Some(object(&of.ident, fields)),
                    _ => None,
                });
            let words = of.variants.iter().map(|variant| {
                let name = variant.ident.to_string();
                (kebab(&name), comment(&variant.attrs, false))
            });
            let shape = match has(&of.attrs, "untagged") {
                true => Shape::Object(fields.flatten().collect()),
                false => Shape::Words(words.collect()),
            };
            Some((of.ident.to_string(), shape, comment(&of.attrs, true)))
        }
        _ => None,
    }
}

fn object(owner: &syn::Ident, fields: &syn::FieldsNamed) -> Vec<Key> {
    let mut keys = Vec::new();
    for field in fields
        .named
        .iter()
        .filter(|field| !has(&field.attrs, "skip"))
    {
        let ident = field.ident.as_ref().expect("a name").to_string();
        let name = match renamed(&field.attrs) {
            Some(name) => name,
            None if has(&field.attrs, "flatten") => String::new(),
            None => ident.clone(),
        };
        keys.push(Key {
            name,
            form: field.ty.clone(),
            meaning: comment(&field.attrs, false),
        });
        let [of, after, name, form, meaning] = NO_FIELD;
        if owner == of && ident == after {
            let form = syn::parse_str(form).expect("a type");
            let (name, meaning) = (name.to_owned(), meaning.to_owned());
            keys.push(Key {
                name,
                form,
                meaning,
            });
        }
    }
    keys
}

/// A comment as one line, its links as those of the page.
fn comment(attributes: &[syn::Attribute], is_whole: bool) -> String {
    let lines = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit {
                    lit: syn::Lit::Str(text),
                    ..
                }) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        });
    let lines: Vec<String> = lines.collect();
    let mut words = lines
        .join(" ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    while let Some(start) = words.find("(docs/") {
        let end = start + words[start..].find(')').expect("its end");
        let link = words[start + "(docs/".len()..end].to_owned();
        let page = link
            .split('#')
            .next_back()
            .expect("a name")
            .replace('-', " ");
        words.replace_range(start..=end, &format!("([{page}]({link}))"));
    }
    let words = words.replace("[`", "`").replace("`]", "`");
    let words = words.replace("crate::", "").replace('|', "\\|");
    match is_whole {
        true => words,
        false => words.trim_end_matches('.').to_owned(),
    }
}

/// Words of a `serde` attribute.
fn serde(attributes: &[syn::Attribute]) -> impl Iterator<Item = String> + '_ {
    let serde = attributes.iter().filter(|of| of.path().is_ident("serde"));
    serde.filter_map(|of| match &of.meta {
        syn::Meta::List(list) => Some(list.tokens.to_string()),
        _ => None,
    })
}

fn has(attributes: &[syn::Attribute], name: &str) -> bool {
    let is_it = |word: &str| word.trim() == name;
    serde(attributes).any(|words| words.split(',').any(is_it))
}

fn renamed(attributes: &[syn::Attribute]) -> Option<String> {
    let words = serde(attributes).find(|words| words.starts_with("rename ="))?;
    words.split('"').nth(1).map(str::to_owned)
}

/// The last argument of `Option<T>`, `Vec<T>`, `BTreeMap<K, T>`.
fn argument(form: &syn::Type) -> Option<&syn::Type> {
    let syn::Type::Path(path) = form else {
        return None;
    };
    match &path.path.segments.last()?.arguments {
        syn::PathArguments::AngleBracketed(arguments) => match arguments.args.last()? {
            syn::GenericArgument::Type(form) => Some(form),
            _ => None,
        },
        _ => None,
    }
}

/// The name of a type.
fn word(form: &syn::Type) -> String {
    let syn::Type::Path(path) = form else {
        return String::new();
    };
    let last = path.path.segments.last().expect("a name");
    last.ident.to_string()
}

/// `StopIf` as `stop-if`.
fn kebab(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('-');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

struct Walk<'a> {
    types: &'a Types,
    met: BTreeSet<(String, String)>,
}

impl Walk<'_> {
    fn object(&mut self, value: &Value, name: &str) {
        let keys = self.types.keys(name);
        for (key, value) in value.as_object().expect("an object") {
            let known = keys.iter().find(|(own, ..)| own == key);
            let known = known.or_else(|| keys.iter().find(|(own, ..)| own == "*"));
            let (own, form, _) = known.unwrap_or_else(|| panic!("{name} has no {key}"));
            self.met.insert((name.to_owned(), own.clone()));
            if let Some(inner) = self.types.inner(form) {
                self.value(value, &inner, self.types.form(form).starts_with("map"));
            }
        }
    }

    fn value(&mut self, value: &Value, name: &str, is_map: bool) {
        match value {
            Value::Object(map) if is_map => {
                map.values()
                    .for_each(|value| self.value(value, name, false));
            }
            Value::Object(_) => self.object(value, name),
            Value::Array(list) => list.iter().for_each(|value| self.value(value, name, false)),
            Value::String(word) => {
                let Shape::Words(words) = &self.types.items[name].0 else {
                    panic!("{name} is no word, but is written as {word}");
                };
                assert!(words.iter().any(|(own, _)| own == word), "{name}: {word}");
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// A report in which every part that can be there is.
fn full() -> Report {
    let (mut report, apart) = (sample::failed(), sample::apart());
    let response = report.latency.response.as_mut();
    let all_due = response.and_then(|leg| leg.all_due.as_mut());
    all_due.expect("all due").at_least.add("p99_9_us");
    report.verdict.rules[0].observed = Some(Figure::Time {
        us: 749,
        at_least: true,
    });
    report.verdict.rules[0].sets = SetNames::new(vec!["gold".to_owned()]);
    report.latency_cold = apart.latency_cold;
    report.latency_warm = apart.latency_warm;
    report.steps = sample::staircase().steps;
    let equation = Equation {
        name: "sent".to_owned(),
        left: 2,
        right: 1,
        difference: 1,
    };
    let queue = DrainAccount {
        took: Some(LatencyFigures {
            all_due: Some(Percentiles::default()),
            lower: Some(Percentiles::default()),
            ..LatencyFigures::default()
        }),
        ..DrainAccount::default()
    };
    report.ledger.command = Some(CommandAccount {
        offline_queue: Some(queue.clone()),
        queries_cold: Some(QueriesDue::default()),
        queries_warm: Some(QueriesDue::default()),
        ledger: CommandLedger {
            by_presence: BTreeMap::from([("online".to_owned(), PresenceRow::default())]),
            equations: vec![equation.clone()],
            ..CommandLedger::default()
        },
        ..CommandAccount::default()
    });
    report.ledger.receive = Some(ReceiveAccount {
        offline_queue: Some(queue),
        end_to_end: Some(LatencyFigures {
            all_due: Some(Percentiles::default()),
            ..LatencyFigures::default()
        }),
        by_subscriber: BTreeMap::from([("sub-1/all".to_owned(), SubscriberRow::default())]),
        ledger: ReceptionLedger {
            equations: vec![equation.clone()],
            ..ReceptionLedger::default()
        },
    });
    report.ledger.uplink.equations.push(equation);
    let at = "192.0.2.1:8080".to_owned();
    report.links.targets = BTreeMap::from([(at, TargetCounts::default())]);
    report.target = TargetUse {
        counters: Some(vec![counter_growth()]),
        counted: Some(server_count()),
        ..report.target
    };
    report
}

fn counter_growth() -> CounterGrowth {
    CounterGrowth {
        platform: "hono".to_owned(),
        kind: "telemetry".to_owned(),
        status: "forwarded".to_owned(),
        grown: Some(1),
        ledger: Some(1),
        unanswered: 0,
        agrees: Some(true),
    }
}

fn server_count() -> ServerCount {
    ServerCount {
        messages: 1,
        accepted: 1,
        unanswered: 0,
        difference: 0,
        rate: Some(1.0),
        average: Some(1.0),
        nodes: vec![NodeCount {
            node: "tb-1".to_owned(),
            messages: 1,
            intervals: 1,
            interval_s: Some(1.0),
            rate: Some(1.0),
            average: Some(1.0),
        }],
    }
}

fn page() -> (PathBuf, String) {
    let path = root().join("docs/result.md");
    let text = std::fs::read_to_string(&path).expect("the page is there");
    (path, text)
}

#[test]
fn the_page_of_the_result_has_the_keys_that_the_types_write() {
    let types = Types::read();
    let mut walk = Walk {
        types: &types,
        met: BTreeSet::new(),
    };
    for report in [
        full(),
        sample::invalid(),
        sample::passed(),
        sample::unlooked(),
        sample::empty(),
    ] {
        let json: Value = serde_json::from_str(&report.to_json()).expect("JSON");
        walk.object(&json, "Report");
    }
    let objects: BTreeSet<String> = walk.met.iter().map(|(name, _)| name.clone()).collect();
    for name in objects {
        for (key, ..) in types.keys(&name) {
            let is_met = walk.met.contains(&(name.clone(), key.clone()));
            assert!(is_met, "no sample has {key} of {name}");
        }
    }
    let (path, text) = page();
    let (before, rest) = text.split_once(MARKS[0]).expect("the first mark");
    let (own, after) = rest.split_once(MARKS[1]).expect("the last mark");
    let wanted = types.page();
    let keys = wanted.trim_start_matches('\n');
    let wanted = format!("\n\n{keys}");
    if std::env::var_os("MUSTER_BLESS").is_some() {
        let text = format!("{before}{}{wanted}{}{after}", MARKS[0], MARKS[1]);
        std::fs::write(path, text).expect("the page is written");
    } else {
        assert!(own == wanted, "docs/result.md differs: run `just bless`");
    }
}

#[test]
fn every_cause_and_column_is_in_the_page_of_the_result() {
    struct Texts(Vec<String>);
    impl<'a> syn::visit::Visit<'a> for Texts {
        fn visit_item_impl(&mut self, of: &'a syn::ItemImpl) {
            let is_display = of.trait_.as_ref().is_some_and(|(path, ..)| {
                let last = path.segments.last();
                last.is_some_and(|last| last.ident == "Display")
            });
            if is_display {
                syn::visit::visit_item_impl(self, of);
            }
        }
        fn visit_macro(&mut self, of: &'a syn::Macro) {
            let text = of.tokens.to_string();
            self.0.extend(text.split('"').nth(1).map(str::to_owned));
        }
        fn visit_item_fn(&mut self, _: &'a syn::ItemFn) {}
        fn visit_item_const(&mut self, of: &'a syn::ItemConst) {
            // A table has the meanings of codes, and no codes.
            if !matches!(*of.ty, syn::Type::Array(_)) {
                syn::visit::visit_item_const(self, of);
            }
        }
        fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
        fn visit_lit_str(&mut self, text: &'a syn::LitStr) {
            self.0.push(text.value());
        }
    }
    let (path, mut page) = page();
    page +=
        &std::fs::read_to_string(path.with_file_name("semantics.md")).expect("the page is there");
    let mut texts = Texts(Vec::new());
    for file in ["outcome.rs", "tls.rs", "code.rs"] {
        let source = std::fs::read_to_string(root().join("crates/model/src").join(file));
        texts.visit_file(&syn::parse_file(&source.expect("a file")).expect("Rust"));
    }
    assert!(texts.0.len() > 20, "{:?}", texts.0);
    let shed = muster_model::ShedCause::ALL.map(|cause| cause.name().to_owned());
    for cause in texts.0.into_iter().chain(shed) {
        let start = cause
            .trim_start_matches('-')
            .split('{')
            .next()
            .expect("a start");
        assert!(page.contains(&format!("`{start}")), "no cause {cause}");
        let end = cause.rsplit_once('}').map_or("", |(_, end)| end);
        assert!(page.contains(&format!("{end}`")), "no end of {cause}");
    }
    let table = csv(&sample::passed());
    let heading = table.lines().next().expect("a heading");
    for column in heading.split(',') {
        let shown = match column.split_once("_p") {
            Some((leg, _)) => leg,
            None if column.starts_with("shed_") => "shed_in_flight",
            None => column,
        };
        assert!(page.contains(&format!("`{shown}")), "no column {column}");
    }
}
