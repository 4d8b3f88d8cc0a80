//! One line: measurement, tags, fields and time.

use std::fmt::Write as _;

/// One line: measurement, tags, fields and time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Line {
    measurement: String,
    tags: Vec<(String, String)>,
    fields: Vec<(String, Field)>,
    wall_ms: u64,
}

#[derive(Debug, Clone, PartialEq)]
enum Field {
    Whole(u64),
    Number(f64),
    Text(String),
}

impl Line {
    pub(super) fn new(measurement: String, wall_ms: u64) -> Self {
        Self {
            measurement,
            tags: Vec::new(),
            fields: Vec::new(),
            wall_ms,
        }
    }

    pub(super) fn tag(&mut self, name: &str, value: &str) {
        self.tags.push((name.to_owned(), value.to_owned()));
    }

    pub(super) fn whole(&mut self, name: String, value: u64) {
        self.fields.push((name, Field::Whole(value)));
    }

    pub(super) fn number(&mut self, name: String, value: f64) {
        self.fields.push((name, Field::Number(value)));
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.fields
            .push((name.to_owned(), Field::Text(value.to_owned())));
    }

    /// Its series and instant: what lines that become one have in common.
    pub(super) fn series(&self) -> String {
        let mut text = escaped(&self.measurement, &[',', ' ']);
        // No tag may be empty.
        for (name, value) in self.tags.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = write!(text, ",{}={}", key(name), key(value));
        }
        let _ = write!(text, " {}", self.wall_ms);
        text
    }

    /// Takes the fields of another line of its series.
    pub(super) fn add(&mut self, other: Self) {
        self.fields.extend(other.fields);
    }

    /// Adds the whole numbers of another line to those of the same name.
    pub(super) fn sum(&mut self, other: &Self) {
        for (name, more) in &other.fields {
            let field = self.fields.iter_mut().find(|(known, _)| known == name);
            if let (Some((_, Field::Whole(sum))), Field::Whole(more)) = (field, more) {
                *sum += more;
            }
        }
    }

    pub(super) fn write(&self, text: &mut String) {
        let series = self.series();
        let (series, at) = series.rsplit_once(' ').unwrap_or_default();
        text.push_str(series);
        for (place, (name, value)) in self.fields.iter().enumerate() {
            text.push(if place == 0 { ' ' } else { ',' });
            let _ = write!(text, "{}=", key(name));
            let _ = match value {
                Field::Whole(value) => write!(text, "{}i", (*value).min(i64::MAX as u64)),
                Field::Number(value) => write!(text, "{value}"),
                Field::Text(value) => write!(text, "\"{}\"", quoted(value)),
            };
        }
        let _ = writeln!(text, " {at}");
    }
}

fn key(text: &str) -> String {
    // A backslash at the end would escape what follows.
    escaped(text.trim_end_matches('\\'), &[',', '=', ' '])
}

fn escaped(text: &str, special: &[char]) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        // A line feed would end the line, and no escape exists for it in a key.
        let c = if c.is_control() { ' ' } else { c };
        if special.contains(&c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn quoted(text: &str) -> String {
    let plain = text.replace(|c: char| c.is_control(), " ");
    plain.replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_are_escaped() {
        let mut line = Line::new("m n".to_owned(), 3);
        line.tag("t", "a=b,c d\ne\\");
        line.tag("empty", "");
        line.text("text", "two\nlines");
        line.whole("most".to_owned(), u64::MAX);
        let mut text = String::new();
        line.write(&mut text);
        let expected = "m\\ n,t=a\\=b\\,c\\ d\\ e text=\"two lines\",most=9223372036854775807i 3\n";
        assert_eq!(text, expected);
    }
}
