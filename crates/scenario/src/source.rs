//! Places of values: in the scenario's file, or in one of the overrides.

use muster_plan::Problem;

use crate::Overrides;
use crate::overrides::Override;

/// The column of what stands before the value of an override: its path.
const PATH_COLUMN: u32 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// 0 is the file, n is the n-th override.
    pub(crate) source: u16,
    pub(crate) line: u32,
    /// The column in characters, from 1; [`PATH_COLUMN`] for an override's path.
    pub(crate) column: u32,
    /// Number of characters that are meant; at least 1.
    pub(crate) length: u32,
}

impl Place {
    pub(crate) const fn path(source: u16) -> Self {
        Self {
            source,
            line: 1,
            column: PATH_COLUMN,
            length: 1,
        }
    }

    pub(crate) const fn start(source: u16) -> Self {
        Self {
            source,
            line: 1,
            column: 1,
            length: 1,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Sources {
    name: String,
    /// The file's text, then each override's value.
    texts: Vec<String>,
    /// Each override as it was given.
    given: Vec<Override>,
    /// Secrets that the scenario spells out; no problem may show them.
    hidden: Vec<Place>,
}

impl Sources {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        Self {
            name: name.to_owned(),
            texts: vec![text.to_owned()],
            given: Vec::new(),
            hidden: Vec::new(),
        }
    }

    /// Adds each override as a source.
    pub(crate) fn with(mut self, overrides: &Overrides) -> Self {
        let values = overrides.iter().map(|given| given.value.clone());
        self.texts.extend(values);
        self.given.extend(overrides.iter().cloned());
        self
    }

    pub(crate) fn hide(&mut self, secrets: Vec<Place>) {
        self.hidden = secrets;
    }

    /// The text of a source; for an override its value alone.
    pub(crate) fn text(&self, source: u16) -> &str {
        self.texts
            .get(usize::from(source))
            .map_or("", String::as_str)
    }

    pub(crate) fn problem(&self, place: Place, path: &str, what: &str, help: &str) -> Problem {
        let Some(given) = usize::from(place.source).checked_sub(1) else {
            return Problem {
                file: self.name.clone(),
                line: place.line,
                column: place.column,
                path: path.to_owned(),
                text: self.shown(&self.line(place), place, 0),
                length: place.length.max(1),
                what: printable(what),
                help: help.to_owned(),
            };
        };
        let given = self.given.get(given).cloned().unwrap_or_default();
        let text = given.prefix.clone() + &given.value;
        let before = given.prefix.chars().count() as u32;
        let is_path = place.column == PATH_COLUMN;
        let whole = text.chars().count() as u32;
        Problem {
            file: given.flag,
            line: place.line,
            column: if is_path { 1 } else { before + place.column },
            path: path.to_owned(),
            text: self.shown(&text, place, before),
            length: match (is_path, before) {
                (true, 0) => whole,
                (true, before) => before - 1,
                (false, _) => place.length,
            }
            .max(1),
            what: printable(what),
            help: help.to_owned(),
        }
    }

    /// The line of a place, `before` characters into the text, with its secrets masked; the mask is
    /// as long, so that the caret stays right.
    fn shown(&self, line: &str, place: Place, before: u32) -> String {
        let same_line =
            |hidden: &&Place| (hidden.source, hidden.line) == (place.source, place.line);
        let hidden: Vec<&Place> = self.hidden.iter().filter(same_line).collect();
        let is_hidden = |at: u32| {
            hidden.iter().any(|hidden| {
                let start = before + hidden.column;
                (start..start.saturating_add(hidden.length)).contains(&at)
            })
        };
        let letters = (1..).zip(line.chars());
        letters
            .map(|(at, letter)| if is_hidden(at) { '*' } else { letter })
            .collect()
    }

    fn line(&self, place: Place) -> String {
        let line = self
            .text(place.source)
            .lines()
            .nth(place.line.saturating_sub(1) as usize);
        line.unwrap_or_default().to_owned()
    }
}

/// A text without control characters, which a cell or a variable may hold and a terminal obeys.
fn printable(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter.is_control() {
            true => out.extend(letter.escape_default()),
            false => out.push(letter),
        }
    }
    out
}
