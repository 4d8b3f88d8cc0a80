//! Text with variables, compiled once and rendered without allocating.

mod instant;
mod json;
mod number;
mod parse;
mod render;

use std::fmt;

use muster_model::{MessageId, Micros};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::table::{Row, Table};
use crate::unique::UniqueMs;

pub use json::{escape_json, escaped_for_json, escaped_length, is_inside_string, needs_escapes};
pub(crate) use number::push_padded;
pub use parse::VARIABLES;

/// The most characters of a `${hex:n}`: the 256 KiB that brokers commonly take at most.
pub const MAX_HEX: u32 = 262_144;
/// The most bytes of a template: none of a device's messages is longer than this by hand.
pub const MAX_TEMPLATE: usize = 1 << 20;

/// Text with variables: `${id}`, `${index}`, `${index:08}`, `${tenant}`, `${seq}`, `${due_ms}`,
/// `${due_us}`, `${due_iso}`, `${unique_ms}`, `${stamp}`, `${run}`, `${normal:mean:sd}`, `${uniform:a:b}`,
/// `${int:a:b}`, `${hex:n}`, `${choice:a|b|c}`, and any other name for the CSV column of that name; `${json:...}` is
/// any of them but the stamp, escaped for a string of JSON.
///
/// `$${` is a literal `${`. Random numbers have two decimals more than their arguments. A template
/// travels as its source text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Template {
    source: String,
    parts: Vec<Part>,
}

/// Error of a template.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} at byte {offset}: {hint}")]
pub struct TemplateError {
    /// Position in bytes from the start of the text.
    pub offset: usize,
    /// The error.
    pub what: String,
    /// The remedy.
    pub hint: String,
}

/// Inputs of a message's text; rendering is a pure function of them.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The run's seed.
    pub seed: u64,
    /// The message.
    pub id: MessageId,
    /// Its due instant since T0.
    pub due: Micros,
    /// The wall clock at T0, in milliseconds since 1970.
    pub wall_ms_at_t0: u64,
    /// The device's name, `${id}`.
    pub name: &'a str,
    /// The device's index in its fleet, counted from the fleet's first.
    pub index: u32,
    /// The device's tenant; empty if it has none.
    pub tenant: &'a str,
    /// The device's row of the fleet's table.
    pub columns: Option<Row<'a>>,
    /// Source of `${unique_ms}`; if none, the due instant.
    pub unique: Option<&'a UniqueMs>,
}

/// Bounds of the values before a run, from which message sizes follow.
#[derive(Debug, Clone, Copy)]
pub struct Bounds<'a> {
    /// Least and greatest length of a device's name, in bytes.
    pub name: (usize, usize),
    /// The same in a string of JSON.
    pub name_in_json: (usize, usize),
    /// First and last index.
    pub index: (u32, u32),
    /// The tenant; empty if there is none.
    pub tenant: &'a str,
    /// The greatest sequence number.
    pub last_seq: u32,
    /// First and last wall-clock instant of the run, in milliseconds since 1970.
    pub wall_ms: (u64, u64),
    /// The fleet's table.
    pub table: Option<&'a Table>,
}

impl Default for Bounds<'_> {
    /// Any index and sequence number, names of unknown length left out, and a wall clock between
    /// 2001 and 2286, whose milliseconds have 13 digits.
    fn default() -> Self {
        Self {
            name: (0, 0),
            name_in_json: (0, 0),
            index: (0, u32::MAX),
            tenant: "",
            last_seq: u32::MAX,
            wall_ms: (1_000_000_000_000, 9_999_999_999_999),
            table: None,
        }
    }
}

/// A stretch of the text, in order.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    Literal(Box<str>),
    Variable { offset: usize, variable: Variable },
}

/// Value of `${...}`.
#[derive(Debug, Clone, PartialEq)]
enum Variable {
    Id,
    Index {
        width: u8,
    },
    Tenant,
    Seq,
    DueMs,
    DueUs,
    DueIso,
    /// Milliseconds that no other message of the device has, in ticks of `step`, `offset` after each.
    UniqueMs {
        step: u32,
        offset: u32,
    },
    Stamp,
    Run,
    Normal {
        mean: f64,
        deviation: f64,
        decimals: u8,
    },
    Uniform {
        low: f64,
        high: f64,
        decimals: u8,
    },
    Int {
        low: i64,
        high: i64,
    },
    Hex(u32),
    Choice(Box<[Box<str>]>),
    Column(Box<str>),
    Json(Box<Variable>),
}

impl Template {
    /// Compiles a template.
    ///
    /// # Errors
    /// [`TemplateError`] with the place, what is wrong there and what would be right.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let parts = parse::parts(source)?;
        Ok(Self {
            source: source.to_owned(),
            parts,
        })
    }

    /// A template without variables, whose text is this one.
    pub(crate) fn literal(text: &str) -> Self {
        Self {
            source: text.replace("${", "$${"),
            parts: vec![Part::Literal(text.into())],
        }
    }

    /// The text it was compiled from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The text with `filling` in place of each variable.
    pub fn filled_with(&self, filling: &str) -> String {
        let parts = self.parts.iter().map(|part| match part {
            Part::Literal(text) => &**text,
            Part::Variable { .. } => filling,
        });
        parts.collect()
    }

    /// Returns true if it has a `${stamp}`.
    pub fn has_stamp(&self) -> bool {
        self.variables()
            .any(|(_, variable)| *variable == Variable::Stamp)
    }

    /// The ticks of its `${unique_ms}` in milliseconds; none if it has none.
    pub fn unique_step(&self) -> Option<u32> {
        let steps = self.variables().filter_map(|(_, variable)| {
            if let Variable::UniqueMs { step, .. } = variable.bare() {
                Some(*step)
            } else {
                None
            }
        });
        steps.max()
    }

    /// The CSV columns it uses, with the offset of each use in the source.
    pub fn columns(&self) -> impl Iterator<Item = (&str, usize)> {
        self.variables().filter_map(|(offset, variable)| {
            if let Variable::Column(name) = variable.bare() {
                Some((&**name, offset))
            } else {
                None
            }
        })
    }

    /// The names of the variables it uses, in order, with the offset of each in the source.
    pub fn names(&self) -> impl Iterator<Item = (&str, usize)> {
        self.variables()
            .map(|(offset, variable)| (variable.name(), offset))
    }

    /// The fixed text directly before the stamp, which a consumer looks for; empty
    /// if the stamp opens the text or follows a variable. None without a stamp.
    pub fn stamp_anchor(&self) -> Option<&str> {
        let at = self.parts.iter().position(|part| {
            matches!(
                part,
                Part::Variable {
                    variable: Variable::Stamp,
                    ..
                }
            )
        })?;
        match at.checked_sub(1).map(|before| &self.parts[before]) {
            Some(Part::Literal(text)) => Some(text),
            Some(Part::Variable { .. }) | None => Some(""),
        }
    }

    /// The texts around the index, for names that must lead back to it.
    pub(crate) fn around_index(&self) -> Result<(String, u8, String), TemplateError> {
        let refused = |offset, what: &str| TemplateError {
            offset,
            what: what.to_owned(),
            hint:
                "a device name has exactly one `${index}` (or `${index:08}`) between fixed texts, \
                   so that it leads back to its device"
                    .to_owned(),
        };
        let (mut before, mut width, mut after) = (String::new(), None, String::new());
        for part in &self.parts {
            match part {
                Part::Literal(text) if width.is_none() => before.push_str(text),
                Part::Literal(text) => after.push_str(text),
                Part::Variable {
                    offset,
                    variable: Variable::Index { width: digits },
                } => {
                    if width.replace(*digits).is_some() {
                        return Err(refused(*offset, "a second index"));
                    }
                }
                Part::Variable { offset, variable } => {
                    return Err(refused(
                        *offset,
                        &format!("`{}` in a name", variable.name()),
                    ));
                }
            }
        }
        let width = width.ok_or_else(|| refused(0, "a name without an index"))?;
        Ok((before, width, after))
    }

    fn variables(&self) -> impl Iterator<Item = (usize, &Variable)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Variable { offset, variable } => Some((*offset, variable)),
        })
    }
}

impl Variable {
    /// The variable whose value is escaped, or itself.
    fn bare(&self) -> &Self {
        if let Self::Json(inner) = self {
            return inner;
        }
        self
    }

    fn name(&self) -> &str {
        match self {
            Self::Json(inner) => inner.name(),
            Self::Id => "id",
            Self::Index { .. } => "index",
            Self::Tenant => "tenant",
            Self::Seq => "seq",
            Self::DueMs => "due_ms",
            Self::DueUs => "due_us",
            Self::DueIso => "due_iso",
            Self::UniqueMs { .. } => "unique_ms",
            Self::Stamp => "stamp",
            Self::Run => "run",
            Self::Normal { .. } => "normal",
            Self::Uniform { .. } => "uniform",
            Self::Int { .. } => "int",
            Self::Hex(_) => "hex",
            Self::Choice(_) => "choice",
            Self::Column(name) => name,
        }
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl TryFrom<String> for Template {
    type Error = TemplateError;
    fn try_from(source: String) -> Result<Self, TemplateError> {
        Self::parse(&source)
    }
}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.source
    }
}
