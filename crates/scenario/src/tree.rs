//! A scenario's text as a tree that still knows where each value stands.
//!
//! YAML 1.2 (chapter 6 to 8), with what a scenario has no use for refused: several documents,
//! tags, merge keys and keys that are not plain text. Scalars keep their text, so that units are
//! read in one place and `007` stays what the author wrote.

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span};
use muster_plan::Problem;

use crate::language::Form;
use crate::source::{Place, Sources};

/// Nodes of a scenario after aliases are copied: an alias bomb stops here, a real one is far below.
const MAX_NODES: usize = 200_000;
/// Depth of a scenario: the language itself needs eight levels.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) value: Value,
    /// The text as the author wrote it, where the environment has replaced a part of it.
    pub(crate) written: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Text, a number, `true` or nothing: the reader decides.
    Scalar {
        /// The text, escapes resolved.
        text: String,
        /// True if it was quoted, so that `"true"` stays text.
        quoted: bool,
    },
    /// `- a` or `[a]`.
    List(Vec<Node>),
    /// `key: value` in the order of the file.
    Map(Vec<Entry>),
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) place: Place,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn plain(place: Place, text: impl Into<String>) -> Self {
        Self {
            place,
            value: Value::Scalar {
                text: text.into(),
                quoted: false,
            },
            written: None,
        }
    }

    pub(crate) const fn new(place: Place, value: Value) -> Self {
        Self {
            place,
            value,
            written: None,
        }
    }

    /// Returns true if it is written as nothing at all (`key:`, `~` or `null`).
    pub(crate) fn is_nothing(&self) -> bool {
        let Value::Scalar {
            text,
            quoted: false,
        } = &self.value
        else {
            return false;
        };
        matches!(text.as_str(), "" | "~" | "null")
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } => Some(text),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    pub(crate) fn items(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            Value::Scalar { .. } | Value::Map(_) => &[],
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            Value::Scalar { .. } | Value::List(_) => &[],
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries()
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.node)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let Value::Map(entries) = &mut self.value else {
            return None;
        };
        entries
            .iter_mut()
            .find(|entry| entry.key == key)
            .map(|entry| &mut entry.node)
    }

    pub(crate) fn form(&self) -> Form {
        match &self.value {
            Value::Scalar { .. } => Form::Single,
            Value::List(_) => Form::List,
            Value::Map(_) => Form::Map,
        }
    }
}

/// Reads the text of source number `source`.
///
/// # Errors
/// Text that the parser cannot read, or that a scenario must not hold, with its place.
pub(crate) fn read(sources: &Sources, source: u16) -> Result<Node, Box<Problem>> {
    let text = sources.text(source);
    // A client of Kubernetes switches comments on for the whole program.
    let options = granit_parser::options! { emit_comments: false };
    let mut reader = Reader {
        parser: Parser::new_from_str_with_options(text, options),
        sources,
        source,
        anchors: Vec::new(),
        nodes: 0,
        last: Place::start(source),
    };
    reader.document()
}

struct Reader<'a> {
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    sources: &'a Sources,
    source: u16,
    anchors: Vec<(usize, Node)>,
    nodes: usize,
    last: Place,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<Node, Box<Problem>> {
        loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(..), _) => {}
                (Event::StreamEnd, place) => {
                    return Ok(Node::new(place, Value::Map(Vec::new())));
                }
                (event, place) => {
                    let root = self.node(event, place, 0)?;
                    return self.end().map(|()| root);
                }
            }
        }
    }

    fn end(&mut self) -> Result<(), Box<Problem>> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentStart(..), place) => {
                    let what = "a second YAML document begins here";
                    return Err(self.problem(
                        place,
                        what,
                        "one file holds one scenario: remove `---`",
                    ));
                }
                _ => {}
            }
        }
    }

    fn node(&mut self, event: Event<'a>, place: Place, depth: usize) -> Result<Node, Box<Problem>> {
        self.nodes += 1;
        if self.nodes > MAX_NODES || depth > MAX_DEPTH {
            let what = format!(
                "the scenario is too large: above {MAX_NODES} values or {MAX_DEPTH} levels"
            );
            return Err(self.problem(place, &what, "put long tables into a data file"));
        }
        let (anchor, tag, value) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let quoted = style != ScalarStyle::Plain;
                (
                    anchor,
                    tag,
                    Value::Scalar {
                        text: text.into_owned(),
                        quoted,
                    },
                )
            }
            Event::SequenceStart(_, anchor, tag) => (anchor, tag, self.list(depth)?),
            Event::MappingStart(_, anchor, tag) => (anchor, tag, self.map(depth)?),
            Event::Alias(anchor) => return self.alias(anchor, place),
            Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(..)
            | Event::DocumentEnd
            | Event::Anchor(..)
            | Event::UnresolvedAlias(_)
            | Event::SequenceEnd
            | Event::MappingEnd
            | _ => {
                return Err(self.problem(place, "this is no value", "write a value"));
            }
        };
        if tag.is_some() {
            let help = "remove the tag that begins with `!`";
            return Err(self.problem(place, "a scenario has no use for YAML tags", help));
        }
        let node = Node::new(place, value);
        if anchor != 0 {
            self.anchors.push((anchor, node.clone()));
        }
        Ok(node)
    }

    fn list(&mut self, depth: usize) -> Result<Value, Box<Problem>> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Value::List(items)),
                (event, place) => items.push(self.node(event, place, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Value, Box<Problem>> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let (key, place) = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Value::Map(entries)),
                (Event::Scalar(key, ..), place) => (key.into_owned(), place),
                (_, place) => {
                    let help = "write a key as plain text";
                    return Err(self.problem(place, "this key is no text", help));
                }
            };
            if let Some(first) = entries.iter().find(|entry| entry.key == key) {
                let what = format!("key `{key}` stands here a second time");
                let help = format!("remove one: the first is in line {}", first.place.line);
                return Err(self.problem(place, &what, &help));
            }
            if key == "<<" {
                let help = "write the keys out, or repeat a whole value with `&name` and `*name`";
                return Err(self.problem(place, "merge keys (`<<`) are not read", help));
            }
            let (event, at) = self.next()?;
            let node = self.node(event, at, depth + 1)?;
            entries.push(Entry { key, place, node });
        }
    }

    /// The copy of an anchored value; its places stay those of the definition.
    fn alias(&mut self, anchor: usize, place: Place) -> Result<Node, Box<Problem>> {
        let found = self.anchors.iter().rev().find(|(id, _)| *id == anchor);
        let Some(node) = found.map(|(_, node)| node.clone()) else {
            let help = "define it first, and not around itself: `&name value`";
            return Err(self.problem(place, "this alias has no value yet", help));
        };
        self.nodes += count(&node);
        if self.nodes > MAX_NODES {
            let what = format!("aliases blow the scenario up above {MAX_NODES} values");
            return Err(self.problem(place, &what, "use fewer aliases"));
        }
        Ok(node)
    }

    fn next(&mut self) -> Result<(Event<'a>, Place), Box<Problem>> {
        match self.parser.next() {
            Some(Ok((event, span))) => {
                self.last = place(self.source, &span);
                Ok((event, self.last))
            }
            Some(Err(error)) => {
                let place = at(self.source, error.marker());
                let what = format!("this is no YAML: {}", error.info());
                Err(self.problem(place, &what, YAML_HELP))
            }
            None => Err(self.problem(self.last, "the text ends too early", YAML_HELP)),
        }
    }

    fn problem(&self, place: Place, what: &str, help: &str) -> Box<Problem> {
        Box::new(self.sources.problem(place, "", what, help))
    }
}

const YAML_HELP: &str =
    "check indentation, brackets and quotes; text with `${...}`, `#` or `: ` needs quotes";

fn count(node: &Node) -> usize {
    let inner: usize = match &node.value {
        Value::Scalar { .. } => 0,
        Value::List(items) => items.iter().map(count).sum(),
        Value::Map(entries) => entries.iter().map(|entry| count(&entry.node)).sum(),
    };
    inner + 1
}

fn place(source: u16, span: &Span) -> Place {
    let mut place = at(source, &span.start);
    if span.end.line() == span.start.line() {
        place.length = span.end.col().saturating_sub(span.start.col()).max(1) as u32;
    }
    place
}

fn at(source: u16, marker: &Marker) -> Place {
    Place {
        source,
        line: marker.line() as u32,
        column: marker.col() as u32 + 1,
        length: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Result<Node, Box<Problem>> {
        read(&Sources::new("test.yaml", text), 0)
    }

    #[test]
    fn a_value_knows_its_place() {
        let root = tree("a: 1\nb:\n  - x\n  - { c: \"007\" }\n").unwrap();
        let c = root.get("b").unwrap().items()[1].get("c").unwrap();
        assert_eq!((c.place.line, c.place.column, c.place.length), (4, 10, 5));
        assert_eq!(c.text(), Some("007"));
    }

    #[test]
    fn an_empty_file_is_an_empty_map() {
        assert!(tree("").unwrap().entries().is_empty());
        assert!(tree("# only words\n").unwrap().entries().is_empty());
    }

    #[test]
    fn an_alias_is_a_copy() {
        let root = tree("a: &x { k: v }\nb: *x\n").unwrap();
        assert_eq!(root.get("b").unwrap().get("k").unwrap().text(), Some("v"));
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let items = vec![format!("*a{}", level - 1); 10].join(", ");
            text += &format!("a{level}: &a{level} [{items}]\n");
        }
        assert!(tree(&text).unwrap_err().what.contains("aliases blow"));
    }

    #[test]
    fn what_a_scenario_has_no_use_for_is_refused() {
        for (text, what) in [
            ("a: 1\na: 2\n", "a second time"),
            ("a: !!int 1\n", "tags"),
            ("<<: 1\n", "merge keys"),
            ("[a]: 1\n", "no text"),
            ("a: 1\n---\nb: 2\n", "second YAML document"),
            ("a: [1\n", "no YAML"),
            ("a: *nowhere\n", "no YAML"),
        ] {
            let problem = tree(text).unwrap_err();
            assert!(problem.what.contains(what), "{text:?}: {}", problem.what);
        }
    }
}
