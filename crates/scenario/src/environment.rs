//! `${env:NAME}` in the values of a scenario, and the schemes of addresses in small letters, before
//! anything else is read. Secrets and user names are left to the place that hides what they hold.

use muster_plan::Problem;

use crate::check::alternative;
use crate::language::{Kind, Object, SCENARIO, Scalar};
use crate::reader::Reader;
use crate::source::Sources;
use crate::tree::{Node, Value};

pub(crate) const REFERENCE: &str = "${env:";

/// Replaces every reference by what the environment holds. Returns a problem for each that is not set.
pub(crate) fn expand(root: &mut Node, sources: &Sources, reader: &dyn Reader) -> Vec<Problem> {
    let mut expansion = Expansion {
        sources,
        reader,
        problems: Vec::new(),
    };
    expansion.object(&SCENARIO, root, "");
    expansion.problems
}

struct Expansion<'a> {
    sources: &'a Sources,
    reader: &'a dyn Reader,
    problems: Vec<Problem>,
}

impl Expansion<'_> {
    fn object(&mut self, object: &'static Object, node: &mut Node, path: &str) {
        let Value::Map(entries) = &mut node.value else {
            return;
        };
        for entry in entries {
            if let Some(key) = object.key(&entry.key) {
                let path = crate::check::join(path, key.name);
                self.value(&key.kind, &mut entry.node, &path);
            }
        }
    }

    fn value(&mut self, kind: &'static Kind, node: &mut Node, path: &str) {
        match kind {
            Kind::Object(object) => self.object(object, node, path),
            Kind::Either(kinds) => {
                if let Some(kind) = alternative(kinds, node) {
                    self.value(kind, node, path);
                }
            }
            Kind::List(inner) => {
                if let Value::List(items) = &mut node.value {
                    for (at, item) in items.iter_mut().enumerate() {
                        self.value(inner, item, &format!("{path}[{at}]"));
                    }
                }
            }
            Kind::Table(Kind::One(Scalar::Secret | Scalar::Reference)) => {}
            Kind::Table(_) | Kind::Percentiles => {
                if let Value::Map(entries) = &mut node.value {
                    for entry in entries {
                        let path = crate::check::join(path, &entry.key);
                        self.scalar(Scalar::Text, &mut entry.node, &path);
                    }
                } else {
                    self.scalar(Scalar::Text, node, path);
                }
            }
            Kind::One(Scalar::Secret | Scalar::Reference) => {}
            Kind::One(scalar @ Scalar::Web) => {
                self.scalar(*scalar, node, path);
                lower_scheme(node);
            }
            Kind::One(scalar) => self.scalar(*scalar, node, path),
            Kind::Url(_) => {
                self.scalar(Scalar::Text, node, path);
                lower_scheme(node);
            }
            Kind::Word(_) => self.scalar(Scalar::Text, node, path),
        }
    }

    fn scalar(&mut self, scalar: Scalar, node: &mut Node, path: &str) {
        let Value::Scalar { text, .. } = &node.value else {
            return;
        };
        if !text.contains(REFERENCE) {
            return;
        }
        let is_template = matches!(scalar, Scalar::Template | Scalar::ClientId);
        let read = |name: &str| self.reader.variable(name);
        match replaced(text, is_template, &read) {
            Ok(text) => {
                let quoted = true;
                let value = Value::Scalar { text, quoted };
                node.written = node.text().map(str::to_owned);
                node.value = value;
            }
            Err((what, help)) => {
                let problem = self.sources.problem(node.place, path, &what, &help);
                self.problems.push(problem);
            }
        }
    }
}

/// Problem of a reference to a variable that is not set, and what would be right.
pub(crate) fn unset(name: &str) -> (String, String) {
    (
        format!("the environment variable {name} is not set"),
        "set it where muster is started: export NAME=...".to_owned(),
    )
}

/// A text with its references replaced. In a template a value with `${` in it is no variable, and
/// within a string of JSON it cannot end the string.
fn replaced(
    text: &str,
    is_template: bool,
    read: &dyn Fn(&str) -> Option<String>,
) -> Result<String, (String, String)> {
    let is_json = is_template && text.trim_start().starts_with(['{', '[']);
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(REFERENCE) {
        let (before, reference) = rest.split_at(start);
        replaced += before;
        let Some(close) = reference.find('}') else {
            let what = "a `${env:` that is not closed".to_owned();
            return Err((what, "close it with `}`, such as ${env:NAME}".to_owned()));
        };
        let (reference, after) = reference.split_at(close + 1);
        rest = after;
        if before.ends_with('$') {
            // `$${env:NAME}` stands for the characters themselves.
            if !is_template {
                replaced.pop();
            }
            replaced += reference;
            continue;
        }
        let name = reference[REFERENCE.len()..close].trim();
        let value = read(name).ok_or_else(|| unset(name))?;
        if !is_template {
            replaced += &value;
            continue;
        }
        if value.ends_with('$') && after.starts_with(['$', '{']) {
            let what = format!("the value of {name} ends in `$`, and a variable follows");
            return Err((what, "put a character between them".to_owned()));
        }
        let is_quoted = is_json && muster_load::is_inside_string(&replaced);
        let value = match is_quoted {
            true => muster_load::escaped_for_json(&value),
            false => value,
        };
        replaced += &value.replace("${", "$${");
    }
    Ok(replaced + rest)
}

/// Schemes are the same in small and large letters (RFC 3986 section 3.1).
fn lower_scheme(node: &mut Node) {
    let Value::Scalar { text, .. } = &mut node.value else {
        return;
    };
    if let Some((scheme, rest)) = text.split_once("://") {
        let lower = scheme.to_ascii_lowercase();
        if lower != scheme {
            *text = format!("{lower}://{rest}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, is_template: bool, expected: &str) {
        let read = |name: &str| match name {
            "HOST" => Some("broker".to_owned()),
            "ODD" => Some("a\"${id}".to_owned()),
            "DOLLAR" => Some("a$".to_owned()),
            _ => None,
        };
        let found = replaced(text, is_template, &read).unwrap_or_else(|(what, _)| what);
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn references_are_replaced_by_what_the_environment_holds() {
        check(
            "mqtt://${env:HOST}:${env: HOST }",
            false,
            "mqtt://broker:broker",
        );
        check("$${env:HOST}", false, "${env:HOST}");
        check("$${env:HOST}", true, "$${env:HOST}");
        check("${env:ODD}-${id}", true, "a\"$${id}-${id}");
        check(r#"{"a":"${env:ODD}"}"#, true, r#"{"a":"a\"$${id}"}"#);
        check(
            "${env:NONE}",
            false,
            "the environment variable NONE is not set",
        );
        check("${env:HOST", false, "a `${env:` that is not closed");
        check(
            "${env:DOLLAR}${id}",
            true,
            "the value of DOLLAR ends in `$`, and a variable follows",
        );
    }
}
