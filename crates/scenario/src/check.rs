//! The check of a tree against the language: unknown keys, forms, units and what is *not yet*
//! built, each with its place. What depends on two keys at once is checked when a plan is built.

mod home;
mod owners;

use muster_model::Micros;
use muster_plan::Problem;

use crate::endpoint;
use crate::environment::REFERENCE;
use crate::language::{Form, Key, Kind, Object, SCENARIO, Scalar, Status, Urls, Word};
use crate::nearest::{foreign_name, nearest, synonym};
use crate::source::{Place, Sources};
use crate::tree::{Entry, Node, Value};
use crate::units::{self, Unreadable};
use crate::web;

pub(crate) use self::owners::{Given, connect};

/// Findings of the check, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) wrong: Vec<Problem>,
    /// Keys and words that are right and belong to later work.
    pub(crate) not_yet: Vec<Problem>,
    /// Right keys of other protocols, dialects or kinds; of no use where anything is wrong.
    pub(crate) strays: Vec<Problem>,
}

/// Checks a whole scenario; `is_expanded` is true once its references to the environment
/// have been replaced.
pub(crate) fn check(sources: &Sources, root: &Node, is_expanded: bool) -> Findings {
    let mut check = Check {
        sources,
        is_expanded,
        given: Given::new(root),
        findings: Findings::default(),
    };
    check.object(&SCENARIO, root, "");
    check.findings
}

pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

struct Check<'a> {
    sources: &'a Sources,
    /// True if references to the environment have been replaced.
    is_expanded: bool,
    given: Given,
    findings: Findings,
}

impl Check<'_> {
    fn object(&mut self, object: &'static Object, node: &Node, path: &str) {
        if !matches!(node.value, Value::Map(_)) {
            let keys = names(object.keys);
            self.form(
                node,
                path,
                "a map of keys",
                &format!("the keys here are {keys}"),
            );
            return;
        }
        let within = self.given.clone().within(object, node);
        let outer = std::mem::replace(&mut self.given, within);
        let stray = self.given.stray(object, node, (self.sources, path));
        self.findings.strays.extend(stray);
        for entry in node.entries() {
            match object.key(&entry.key) {
                Some(key) => self.entry(key, entry, path),
                None => self.unknown_key(object, entry, path),
            }
        }
        self.given = outer;
        // A misspelt key is also a missing one, and its own problem says enough.
        let mut entries = node.entries().iter();
        if entries.all(|entry| object.key(&entry.key).is_some()) {
            self.missing(object, node, path);
        }
    }

    fn missing(&mut self, object: &'static Object, node: &Node, path: &str) {
        for key in object.keys {
            if key.required && node.get(key.name).is_none() {
                let what = match path {
                    "" => format!("the scenario has no `{}`", key.name),
                    path => format!("`{path}` has no `{}`", key.name),
                };
                let help = if let Kind::Word(words) = key.kind {
                    format!("add `{}: ...`, one of {}", key.name, built(words))
                } else {
                    format!("add `{}: ...` ({})", key.name, lower(key.doc))
                };
                self.wrong(node.place, path, &what, &help);
            }
        }
    }

    fn entry(&mut self, key: &'static Key, entry: &Entry, path: &str) {
        let path = join(path, &entry.key);
        if let Status::NotYet(with) = key.status {
            let help = "remove it; this version of muster would only ignore it";
            let name = format!("`{}`", key.name);
            self.not_yet(entry.place, &path, (&name, with), help);
        }
        if let Status::Refused { why, help } = key.status {
            return self.wrong(entry.place, &path, &refusal(key.name, why), help);
        }
        if entry.node.is_nothing() {
            let what = format!("`{}` has no value", entry.key);
            let help = format!("give it one, or remove the key ({})", lower(key.doc));
            // The file may name the key, and an override take its value away.
            let place = match entry.node.place.source {
                source if source == entry.place.source => entry.place,
                source => Place::path(source),
            };
            self.wrong(place, &path, &what, &help);
            return;
        }
        self.value(&key.kind, &entry.node, &path);
        if let Some((what, help)) = key.zero.filter(|_| is_zero(&entry.node)) {
            self.wrong(entry.node.place, &path, what, help);
        }
    }

    fn value(&mut self, kind: &'static Kind, node: &Node, path: &str) {
        // Without an environment (`not_yet`) nothing is known of what it holds.
        if !self.is_expanded && node.text().is_some_and(|text| text.contains(REFERENCE)) {
            return;
        }
        match kind {
            Kind::Object(object) => self.object(object, node, path),
            Kind::Table(inner) => self.table(inner, node, path),
            Kind::List(inner) => self.list(inner, node, path),
            Kind::Either(kinds) => self.either(kinds, node, path),
            Kind::Percentiles => self.percentiles(node, path),
            Kind::Word(words) => self.word(words, node, path),
            Kind::Url(urls) => self.url(urls, node, path),
            Kind::One(scalar) => self.single(*scalar, node, path),
        }
    }

    fn single(&mut self, scalar: Scalar, node: &Node, path: &str) {
        let Some(text) = node.text() else {
            let help = format!("such as {}", example(scalar));
            self.form(node, path, "a single value", &help);
            return;
        };
        if let Err(unreadable) = readable(scalar, text) {
            self.unreadable(node, path, &unreadable);
        }
    }

    fn list(&mut self, inner: &'static Kind, node: &Node, path: &str) {
        let Value::List(items) = &node.value else {
            let help = match node.text() {
                Some(text) => format!("a list of one item is written [ \"{text}\" ]"),
                None => "write `- ` before each item, or [ ... ] around them".to_owned(),
            };
            self.form(node, path, "a list", &help);
            return;
        };
        for (at, item) in items.iter().enumerate() {
            self.value(inner, item, &format!("{path}[{at}]"));
        }
    }

    fn table(&mut self, inner: &'static Kind, node: &Node, path: &str) {
        if !matches!(node.value, Value::Map(_)) {
            self.form(node, path, "a map of keys", "such as { build: \"4711\" }");
        }
        for entry in node.entries() {
            if entry.key.is_empty() {
                self.wrong(entry.place, path, "this key is empty", "give it a name");
            }
            self.value(inner, &entry.node, &join(path, &entry.key));
        }
    }

    /// Picks the one alternative that has the node's form.
    fn either(&mut self, kinds: &'static [Kind], node: &Node, path: &str) {
        match alternative(kinds, node) {
            Some(Kind::Word(words)) if is_stray(words, node) => {
                self.stray_word(kinds, words, node, path);
            }
            Some(kind) => self.value(kind, node, path),
            None => {
                let forms = kinds.iter().filter_map(Kind::form).map(Form::name);
                let forms: Vec<&str> = forms.collect();
                self.form(node, path, &forms.join(" or "), "see `muster schema`");
            }
        }
    }

    /// A word that is none of those known, where a map may be meant.
    fn stray_word(
        &mut self,
        kinds: &'static [Kind],
        words: &'static [Word],
        node: &Node,
        path: &str,
    ) {
        let text = node.text().unwrap_or_default();
        let keys = kinds.iter().find_map(|kind| {
            if let Kind::Object(object) = kind {
                Some(names(object.keys))
            } else {
                None
            }
        });
        let map = keys.map_or_else(String::new, |keys| {
            format!(", or a map with some of {keys}")
        });
        let what = format!("`{text}` is not known here");
        let help = format!("one of {}{map}", built(words));
        self.wrong(node.place, path, &what, &help);
    }

    fn percentiles(&mut self, node: &Node, path: &str) {
        if node.text() == Some(units::ANY) {
            return;
        }
        if !matches!(node.value, Value::Map(_)) || node.entries().is_empty() {
            let help = "such as { p99: \"<= 250ms\" }";
            self.form(node, path, "a map of percentiles", help);
            return;
        }
        for entry in node.entries() {
            let path = join(path, &entry.key);
            if let Err(unreadable) = units::percentile(&entry.key) {
                self.wrong(entry.place, &path, &unreadable.what, &unreadable.help);
                continue;
            }
            let read = |text| units::or_any(text, units::time_at_most);
            match entry.node.text().map(read) {
                Some(Ok(_)) => {}
                Some(Err(unreadable)) => self.unreadable(&entry.node, &path, &unreadable),
                None => self.form(&entry.node, &path, "a single value", "such as \"<= 250ms\""),
            }
        }
    }

    fn word(&mut self, words: &'static [Word], node: &Node, path: &str) {
        let Some(text) = node.text() else {
            self.form(
                node,
                path,
                "a single word",
                &format!("one of {}", built(words)),
            );
            return;
        };
        self.known_word(words, text, node, path);
    }

    fn known_word(&mut self, words: &[Word], text: &str, node: &Node, path: &str) -> bool {
        let word = words.iter().find(|word| word.name == text);
        match word.map(|word| word.status) {
            Some(Status::Built) => return true,
            Some(Status::NotYet(with)) => {
                let help = match built(words).as_str() {
                    "" => "remove it; this version has none of these".to_owned(),
                    built => format!("this version has {built}"),
                };
                self.not_yet(node.place, path, (&format!("`{text}`"), with), &help);
            }
            Some(Status::Refused { why, help }) => {
                self.wrong(node.place, path, &refusal(text, why), help);
            }
            None => {
                let what = format!("`{text}` is not known here");
                let is_built = |name: &str| {
                    let mut words = words.iter();
                    words.any(|word| word.name == name && word.status == Status::Built)
                };
                let meant = synonym(text)
                    .filter(|meant| is_built(meant))
                    .or_else(|| nearest(text, words.iter().map(|word| word.name)));
                let help = match meant {
                    Some(meant) => format!("did you mean `{meant}`? Known: {}", built(words)),
                    None => format!("one of {}", built(words)),
                };
                self.wrong(node.place, path, &what, &help);
            }
        }
        false
    }

    fn url(&mut self, urls: &Urls, node: &Node, path: &str) {
        let help = "such as mqtt://broker.example:1883";
        let Some(text) = node.text() else {
            self.form(node, path, "a URL", help);
            return;
        };
        let Some((scheme, _)) = text.split_once("://") else {
            let what = format!("`{}` is no URL: it has no scheme", endpoint::shown(text));
            self.wrong(node.place, path, &what, help);
            return;
        };
        if !self.known_word(&urls.words(), scheme, node, path) {
            return;
        }
        if let Err(unreadable) = endpoint::read(text) {
            self.unreadable(node, path, &unreadable);
        }
    }

    fn unknown_key(&mut self, object: &Object, entry: &Entry, path: &str) {
        let what = format!("`{}` is no key here", entry.key);
        let known = || format!("the keys here are {}", names(object.keys));
        let ours = foreign_name(&entry.key).filter(|name| object.key(name).is_some());
        let nearest = || nearest(&entry.key, object.keys.iter().map(|key| key.name));
        let help = match ours.or_else(nearest) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if is_percentile(&entry.key) && judges_percentiles(object) => {
                "a percentile stands under what it is of: `response: { p99: \"<= 250ms\" }`"
                    .to_owned()
            }
            None => match home::home(&entry.key) {
                Some(home) => format!("it belongs under `{home}`; {}", known()),
                None => known(),
            },
        };
        self.wrong(entry.place, &join(path, &entry.key), &what, &help);
    }

    fn form(&mut self, node: &Node, path: &str, wanted: &str, help: &str) {
        let name = match path {
            "" => "the scenario",
            path => path,
        };
        let what = format!("`{name}` is {}, where {wanted} belongs", node.form().name());
        self.wrong(node.place, path, &what, help);
    }

    fn unreadable(&mut self, node: &Node, path: &str, unreadable: &Unreadable) {
        self.wrong(node.place, path, &unreadable.what, &unreadable.help);
    }

    fn not_yet(&mut self, place: Place, path: &str, (name, with): (&str, &str), help: &str) {
        let what = format!("{name} is not yet built: it comes with {with}");
        self.findings
            .not_yet
            .push(self.sources.problem(place, path, &what, help));
    }

    fn wrong(&mut self, place: Place, path: &str, what: &str, help: &str) {
        self.findings
            .wrong
            .push(self.sources.problem(place, path, what, help));
    }
}

fn readable(scalar: Scalar, text: &str) -> Result<(), Unreadable> {
    match scalar {
        Scalar::Text | Scalar::Template | Scalar::Secret | Scalar::Reference | Scalar::File => {
            filled(text)
        }
        Scalar::ClientId if text.is_empty() => Ok(()),
        Scalar::ClientId => filled(text),
        Scalar::Bool => units::truth(text).map(drop),
        Scalar::Whole(least, most) => units::whole(text, least, most).map(drop),
        Scalar::Code => units::code(text).map(drop),
        Scalar::Fraction => units::fraction(text).map(drop),
        Scalar::Factor => units::factor(text).map(drop),
        Scalar::Rate => units::rate(text).map(drop),
        Scalar::Time => units::time(text).map(drop),
        Scalar::Percent => units::percent(text).map(drop),
        Scalar::Size => units::size(text).map(drop),
        Scalar::Quantity => units::quantity(text).map(drop),
        Scalar::BoolOrAny => units::or_any(text, units::truth).map(drop),
        Scalar::CountAtMost => units::or_any(text, units::count_at_most).map(drop),
        Scalar::ShareAtMost => units::or_any(text, units::share_at_most).map(drop),
        Scalar::ShareAtLeast => units::or_any(text, units::share_at_least).map(drop),
        Scalar::Above => units::beyond(text, '>').map(drop),
        Scalar::Below => units::beyond(text, '<').map(drop),
        Scalar::PercentileAbove => units::percentile_above(text).map(drop),
        Scalar::Web => web::read(text).map(drop),
    }
}

/// Returns true for a time, rate or size of 0.
fn is_zero(node: &Node) -> bool {
    let text = node.text().unwrap_or_default();
    let time = units::time(text).is_ok_and(|time| time == Micros::ZERO);
    let rate = units::rate(text).is_ok_and(|rate| rate.get() <= 0.0);
    time || rate || units::size(text) == Ok(0)
}

fn filled(text: &str) -> Result<(), Unreadable> {
    let what = match text {
        "" => "this text is empty",
        text if text.contains('\0') => "this text holds a NUL",
        _ => return Ok(()),
    };
    Err(Unreadable {
        what: what.to_owned(),
        help: "write some text".to_owned(),
    })
}

pub(crate) fn example(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::Text => "some-text",
        Scalar::Template | Scalar::ClientId => "\"meter-${index:08}\"",
        Scalar::Secret => "\"${env:SECRET}\"",
        Scalar::Reference => "\"${env:ACCOUNT}\"",
        Scalar::File => "some-file",
        Scalar::Bool | Scalar::BoolOrAny => "true",
        Scalar::Whole(..) => "10",
        Scalar::Code => "0x97",
        Scalar::Fraction => "0.5",
        Scalar::Factor => "1.5",
        Scalar::Rate => "500/s",
        Scalar::Time => "10s",
        Scalar::Percent => "85%",
        Scalar::Size | Scalar::Quantity => "120",
        Scalar::CountAtMost => "0",
        Scalar::ShareAtMost => "\"<= 0.1%\"",
        Scalar::ShareAtLeast => "\">= 99.9%\"",
        Scalar::Above => "\"> 20% for 10s\"",
        Scalar::Below => "\"< 50% for 10s\"",
        Scalar::PercentileAbove => "\"p99 > 500ms for 10s\"",
        Scalar::Web => "https://gateway.example/api/v1",
    }
}

pub(crate) fn alternative(kinds: &'static [Kind], node: &Node) -> Option<&'static Kind> {
    kinds.iter().find(|kind| kind.form() == Some(node.form()))
}

/// Returns true if a key reads as a percentile: `p99`, `p99.9`.
fn is_percentile(key: &str) -> bool {
    let number = key.strip_prefix('p');
    number.is_some_and(|number| number.parse::<f64>().is_ok())
}

fn judges_percentiles(object: &Object) -> bool {
    let mut keys = object.keys.iter();
    keys.any(|key| matches!(key.kind, Kind::Percentiles))
}

/// Returns true if a word is none of these, and near to none of them.
fn is_stray(words: &[Word], node: &Node) -> bool {
    let known = || words.iter().map(|word| word.name);
    let text = node.text().unwrap_or_default();
    known().all(|name| name != text) && nearest(text, known()).is_none()
}

fn refusal(name: &str, why: &str) -> String {
    format!("`{name}` is refused: {why}")
}

fn names(keys: &[Key]) -> String {
    listed(keys.iter().map(|key| (key.name, key.status)))
}

fn built(words: &[Word]) -> String {
    listed(words.iter().map(|word| (word.name, word.status)))
}

fn listed(names: impl Iterator<Item = (&'static str, Status)>) -> String {
    let built = names.filter(|(_, status)| *status == Status::Built);
    let quoted: Vec<_> = built.map(|(name, _)| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn lower(doc: &str) -> String {
    let mut letters = doc.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_lowercase().chain(letters).collect()
    })
}

/// Problem of a default of the language itself, for its test.
#[cfg(test)]
pub(crate) fn wrong_default(kind: &'static Kind, default: &str) -> Option<String> {
    let sources = Sources::new("default", default);
    let node = crate::tree::read(&sources, 0).ok()?;
    let mut check = Check {
        is_expanded: true,
        given: Given::new(&node),
        sources: &sources,
        findings: Findings::default(),
    };
    check.value(kind, &node, "default");
    check
        .findings
        .wrong
        .pop()
        .map(|problem| problem.to_string())
}
