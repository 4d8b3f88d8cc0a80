//! `--set path=value`: one key of the scenario, from the command line.

use muster_plan::Problem;

use crate::check::join;
use crate::language::Form;
use crate::nearest::nearest;
use crate::problem::Problems;
use crate::source::{Place, Sources};
use crate::tree::{self, Entry, Node, Value};

const SET: &str = "--set";

/// Overrides in the order they were given; a later one wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides(Vec<Override>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Override {
    pub(crate) flag: String,
    pub(crate) path: String,
    /// By what, as YAML.
    pub(crate) value: String,
    /// Part of what was given before the value.
    pub(crate) prefix: String,
}

impl Overrides {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `path=value`, as the command line has it.
    ///
    /// A path names keys, separated by dots. An item of a list is named by its place
    /// (`fleet[0].count`) or by its name (`fleet.meters.count`); the only item of a list need not
    /// be named (`fleet.count`). The value is YAML, so `[a, b]` is a list.
    ///
    /// # Errors
    /// A missing `=`, or no path before it.
    pub fn add(&mut self, argument: &str) -> Result<(), Problems> {
        match argument.split_once('=') {
            Some((path, value)) if !path.trim().is_empty() => {
                self.set(path.trim(), value.trim());
                Ok(())
            }
            _ => Err(Problems(vec![Problem {
                file: SET.to_owned(),
                line: 1,
                column: 1,
                path: String::new(),
                text: argument.to_owned(),
                length: argument.chars().count().max(1) as u32,
                what: "this is no override".to_owned(),
                help: "path=value, such as fleet.count=500 or phases.measure=1m".to_owned(),
            }])),
        }
    }

    /// Adds an override of one key.
    pub fn set(&mut self, path: &str, value: &str) {
        self.0.push(Override {
            flag: SET.to_owned(),
            path: path.to_owned(),
            value: value.to_owned(),
            prefix: format!("{path}="),
        });
    }

    /// Adds an override of one key by an option that takes its value alone; problems name that option.
    pub fn set_by(&mut self, flag: &str, path: &str, value: &str) {
        self.0.push(Override {
            flag: flag.to_owned(),
            path: path.to_owned(),
            value: value.to_owned(),
            prefix: String::new(),
        });
    }

    /// Adds an override of one key by a text that is not read as YAML.
    pub fn set_text(&mut self, path: &str, text: &str) {
        // A JSON string is a double-quoted scalar of YAML (YAML 1.2.2 section 1.2).
        self.set(path, &serde_json::Value::from(text).to_string());
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Override> {
        self.0.iter()
    }
}

/// Applies every override to a tree; what cannot be applied is a problem each.
pub(crate) fn apply(root: &mut Node, overrides: &Overrides, sources: &Sources) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (number, Override { path, value, .. }) in (1..).zip(overrides.iter()) {
        match read_value(sources, number, value) {
            Err(problem) => problems.push(*problem),
            Ok(node) => {
                if let Err((what, help)) = put(root, path, node) {
                    problems.push(sources.problem(Place::path(number), path, &what, &help));
                }
            }
        }
    }
    problems
}

fn read_value(sources: &Sources, number: u16, value: &str) -> Result<Node, Box<Problem>> {
    if value.is_empty() {
        return Ok(Node::plain(Place::start(number), ""));
    }
    tree::read(sources, number)
}

type Refusal = (String, String);

#[derive(Debug, PartialEq, Eq)]
enum Step<'a> {
    Key(&'a str),
    Place(usize),
}

fn put(root: &mut Node, path: &str, value: Node) -> Result<(), Refusal> {
    let mut node = root;
    let mut so_far = String::new();
    let place = Place::path(value.place.source);
    let mut steps = steps(path)?.into_iter().peekable();
    while let Some(step) = steps.next() {
        match step {
            Step::Place(at) => {
                so_far += &format!("[{at}]");
                node = item(node, at, &so_far)?;
            }
            Step::Key(key) => {
                so_far = join(&so_far, key);
                if matches!(steps.peek(), Some(Step::Place(_))) {
                    is_there(node, key, &so_far)?;
                }
                node = child(node, key, &so_far, place)?;
            }
        }
    }
    *node = value;
    Ok(())
}

/// Splits a path at its dots; brackets hold a place, or one key with its dots.
fn steps(path: &str) -> Result<Vec<Step<'_>>, Refusal> {
    let bad = || {
        let help = "such as fleet[0].streams[0].rate or fleet.meters.count";
        (format!("`{path}` is no path"), help.to_owned())
    };
    let mut steps = Vec::new();
    let mut rest = path;
    loop {
        let (key, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
        if key.is_empty() {
            return Err(bad());
        }
        steps.push(Step::Key(key));
        rest = after;
        while let Some(inner) = rest.strip_prefix('[') {
            let (place, after) = inner.split_once(']').ok_or_else(bad)?;
            steps.push(place.parse().map_or(Step::Key(place), Step::Place));
            rest = after;
        }
        match rest.strip_prefix('.') {
            Some(after) => rest = after,
            None if rest.is_empty() => return Ok(steps),
            None => return Err(bad()),
        }
    }
}

/// Checks that a map has the key; a list cannot be made by a number in brackets.
fn is_there(node: &Node, key: &str, path: &str) -> Result<(), Refusal> {
    let Value::Map(entries) = &node.value else {
        return Ok(());
    };
    let keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
    if keys.contains(&key) {
        return Ok(());
    }
    let help = match nearest(key, keys.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("the keys here are {}", keys.join(", ")),
    };
    Err((format!("`{path}` is not in the scenario"), help))
}

fn item<'a>(node: &'a mut Node, at: usize, path: &str) -> Result<&'a mut Node, Refusal> {
    let Value::List(items) = &mut node.value else {
        let help = "leave out the number in brackets";
        return Err((format!("`{path}`: there is no list here"), help.to_owned()));
    };
    let count = items.len();
    items.get_mut(at).ok_or_else(|| {
        let help = format!(
            "the list has {count} item{}, from [0]",
            if count == 1 { "" } else { "s" }
        );
        (format!("`{path}` does not exist"), help)
    })
}

fn child<'a>(
    node: &'a mut Node,
    key: &str,
    path: &str,
    place: Place,
) -> Result<&'a mut Node, Refusal> {
    match &mut node.value {
        Value::Map(entries) => Ok(entry(entries, key, place)),
        Value::List(items) => named(items, key, path, place),
        Value::Scalar { .. } => {
            let help = "set the whole key to a map, such as path={ key: value }";
            Err((
                format!("`{path}`: a single value has no keys"),
                help.to_owned(),
            ))
        }
    }
}

fn entry<'a>(entries: &'a mut Vec<Entry>, key: &str, place: Place) -> &'a mut Node {
    let at = entries
        .iter()
        .position(|entry| entry.key == key)
        .unwrap_or_else(|| {
            let node = Node::new(place, Value::Map(Vec::new()));
            entries.push(Entry {
                key: key.to_owned(),
                place,
                node,
            });
            entries.len() - 1
        });
    &mut entries[at].node
}

/// The item of this name, or a key of the only item.
fn named<'a>(
    items: &'a mut [Node],
    key: &str,
    path: &str,
    place: Place,
) -> Result<&'a mut Node, Refusal> {
    if let Some(at) = items.iter().position(|item| name(item) == Some(key)) {
        return Ok(&mut items[at]);
    }
    if key.parse::<usize>().is_ok() {
        let list = path.strip_suffix(key).unwrap_or(path);
        let help = format!(
            "write the place of an item in brackets: {}[{key}]",
            list.trim_end_matches('.')
        );
        return Err((format!("`{path}`: nothing here is named `{key}`"), help));
    }
    if items.len() == 1 && items[0].form() == Form::Map {
        return child(&mut items[0], key, path, place);
    }
    let names: Vec<&str> = items.iter().filter_map(name).collect();
    let help = match nearest(key, names.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("the names here are {}", names.join(", ")),
    };
    Err((format!("`{path}`: nothing here is named `{key}`"), help))
}

/// Name of an item of a list: its own, or the kind that a stream is named after.
fn name(item: &Node) -> Option<&str> {
    item.get("name")
        .or_else(|| item.get("kind"))
        .and_then(Node::text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: x\nfleet:\n  - { name: a, count: 1, streams: [ { kind: event } ] }\n  - { name: b }\n";

    fn set(argument: &str) -> Result<Node, Box<Problem>> {
        let mut overrides = Overrides::new();
        overrides
            .add(argument)
            .map_err(|mut problems| Box::new(problems.0.remove(0)))?;
        let sources = Sources::new("test.yaml", TEXT).with(&overrides);
        let mut root = tree::read(&sources, 0)?;
        match apply(&mut root, &overrides, &sources).pop() {
            Some(problem) => Err(Box::new(problem)),
            None => Ok(root),
        }
    }

    fn fleet(root: &Node, at: usize) -> &Node {
        &root.get("fleet").unwrap().items()[at]
    }

    #[test]
    fn a_key_is_named_by_place_or_by_name() {
        for argument in ["fleet[0].count=7", "fleet.a.count=7", "fleet[a].count = 7"] {
            let root = set(argument).unwrap();
            assert_eq!(
                fleet(&root, 0).get("count").unwrap().text(),
                Some("7"),
                "{argument}"
            );
        }
        for argument in [
            "fleet.a.streams.rate=5/s",
            "fleet[0].streams[0].rate=5/s",
            "fleet.a.streams.event.rate=5/s",
        ] {
            let root = set(argument).unwrap();
            let stream = &fleet(&root, 0).get("streams").unwrap().items()[0];
            assert_eq!(
                stream.get("rate").unwrap().text(),
                Some("5/s"),
                "{argument}"
            );
        }
    }

    #[test]
    fn a_key_may_hold_dots_and_a_text_anything() {
        let mut overrides = Overrides::new();
        overrides.set_text("labels[git.branch]", "a: \"b\" # c");
        let sources = Sources::new("test.yaml", TEXT).with(&overrides);
        let mut root = tree::read(&sources, 0).unwrap();
        assert!(apply(&mut root, &overrides, &sources).is_empty());
        let label = root.get("labels").unwrap().get("git.branch").unwrap();
        assert_eq!(label.text(), Some("a: \"b\" # c"));
    }

    #[test]
    fn a_missing_key_is_made_and_a_value_is_yaml() {
        let root = set("phases.settle={ at-most: 5s }").unwrap();
        let settle = root.get("phases").unwrap().get("settle").unwrap();
        assert_eq!(settle.get("at-most").unwrap().text(), Some("5s"));
    }

    #[test]
    fn a_place_behind_a_dot_is_answered_with_the_form_that_is_read() {
        for (argument, form) in [
            ("fleet.0.streams.0.rate=1/s", "fleet[0]"),
            ("fleet[0].streams.0.rate=1/s", "fleet[0].streams[0]"),
        ] {
            let problem = set(argument).unwrap_err();
            let help = format!("write the place of an item in brackets: {form}");
            assert_eq!(problem.help, help, "{argument}");
        }
    }

    #[test]
    fn what_does_not_exist_is_named() {
        for (argument, what) in [
            ("fleet[2].count=1", "does not exist"),
            ("fleet.c.count=1", "nothing here is named `c`"),
            ("fleet.count=1", "nothing here is named `count`"),
            ("name.x=1", "no keys"),
            ("name[0]=1", "no list"),
            ("flet[0].count=1", "`flet` is not in the scenario"),
            ("a..b=1", "no path"),
            ("a[0=1", "no path"),
            ("a[0]b=1", "no path"),
            ("=1", "no override"),
            ("seed", "no override"),
            ("seed=[1", "no YAML"),
        ] {
            let problem = set(argument).unwrap_err();
            assert!(problem.what.contains(what), "{argument}: {}", problem.what);
            assert_eq!(problem.file, "--set");
            assert_eq!(problem.text, argument);
        }
    }
}
