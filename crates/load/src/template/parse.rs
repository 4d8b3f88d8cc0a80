//! From the text of a template to its parts.

use super::{MAX_HEX, MAX_TEMPLATE, Part, TemplateError, Variable};

/// Largest magnitude a random number may reach: with 9 decimals it still fits 64 bits.
const MAX_NUMBER: f64 = 1e9;
/// Most decimals of an argument; a random number has two more.
const MAX_DECIMALS: usize = 7;
/// Widest `${index:0N}`: more digits than any number has.
const MAX_WIDTH: u8 = 20;
/// The longest tick of `${unique_ms}`: one millisecond for each stream of a plan.
const MAX_STEP: u32 = 256;
/// A normal value lies within this number of deviations of its mean.
pub(super) const NORMAL_REACH: f64 = 12.0;

const ALL: &str = "id, index, index:08, tenant, seq, due_ms, due_us, due_iso, unique_ms, stamp, run, \
                   normal:mean:sd, uniform:a:b, int:a:b, hex:n, choice:a|b|c, json:name, or a column of the \
                   fleet's data";

/// Variables of templates with their meanings, in the order of their names.
pub const VARIABLES: [(&str, &str); 17] = [
    ("id", "Name of the device"),
    ("index", "Index of the device in its fleet"),
    ("index:08", "Index with leading zeros, here 8 digits"),
    ("tenant", "Tenant of the device"),
    (
        "seq",
        "Number of the message within its device and stream, from 0",
    ),
    ("due_ms", "Due instant in milliseconds since 1970"),
    ("due_us", "Due instant in microseconds since 1970"),
    ("due_iso", "Due instant as RFC 3339 text"),
    (
        "unique_ms",
        "Due instant in milliseconds, a different one for each message of a device",
    ),
    ("stamp", "Id of the message, 30 characters; at most once"),
    ("run", "Id of the run, in decimal"),
    ("normal:mean:sd", "Random number of a normal distribution"),
    ("uniform:a:b", "Random number between a and b"),
    ("int:a:b", "Random whole number from a to b"),
    ("hex:n", "n random hexadecimal digits"),
    ("choice:a|b|c", "One of the words, at random"),
    (
        "json:name",
        "Value of another variable, escaped for a JSON string",
    ),
];

/// Error of one variable, and its remedy.
type Wrong = (String, String);

pub(super) fn parts(source: &str) -> Result<Vec<Part>, TemplateError> {
    if source.len() > MAX_TEMPLATE {
        return Err(TemplateError {
            offset: MAX_TEMPLATE,
            what: format!("a template of {} bytes", source.len()),
            hint: format!("the longest is {MAX_TEMPLATE}; use a payload file or size"),
        });
    }
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut at = 0;
    while let Some(found) = source[at..].find("${") {
        let open = at + found;
        literal.push_str(&source[at..open]);
        if literal_ends_in_escape(&source[at..open]) {
            literal.pop();
            literal.push_str("${");
            at = open + 2;
            continue;
        }
        let (variable, end) = variable_at(source, open)?;
        if variable == Variable::Stamp && has_stamp(&parts) {
            return Err(error(
                open,
                "a second `${stamp}`",
                "a message carries one stamp; remove it",
            ));
        }
        push_literal(&mut parts, &mut literal);
        parts.push(Part::Variable {
            offset: open,
            variable,
        });
        at = end;
    }
    literal.push_str(&source[at..]);
    push_literal(&mut parts, &mut literal);
    Ok(parts)
}

fn literal_ends_in_escape(before: &str) -> bool {
    before.ends_with('$')
}

fn has_stamp(parts: &[Part]) -> bool {
    parts.iter().any(|part| {
        matches!(
            part,
            Part::Variable {
                variable: Variable::Stamp,
                ..
            }
        )
    })
}

fn push_literal(parts: &mut Vec<Part>, literal: &mut String) {
    if !literal.is_empty() {
        parts.push(Part::Literal(std::mem::take(literal).into_boxed_str()));
    }
}

fn error(offset: usize, what: impl Into<String>, hint: impl Into<String>) -> TemplateError {
    TemplateError {
        offset,
        what: what.into(),
        hint: hint.into(),
    }
}

/// The variable that opens at `open`, and where the text goes on.
fn variable_at(source: &str, open: usize) -> Result<(Variable, usize), TemplateError> {
    let Some(close) = close_of(&source[open..]) else {
        return Err(error(
            open,
            "a `${` that is not closed",
            "close it with `}`, or write `$${` for the characters themselves",
        ));
    };
    let inside = &source[open + 2..open + close];
    let variable = variable(inside).map_err(|(what, hint)| error(open, what, hint))?;
    Ok((variable, open + close + 1))
}

/// Returns the end of the variable that a text begins with.
pub(super) fn close_of(text: &str) -> Option<usize> {
    text.find('}')
}

/// Returns true for variables with texts of the scenario, which JSON may have to escape.
pub(super) fn is_escapable(name: &str) -> bool {
    matches!(
        variable(name),
        Ok(Variable::Id | Variable::Tenant | Variable::Column(_))
    )
}

fn variable(text: &str) -> Result<Variable, Wrong> {
    let (name, arguments) = match text.split_once(':') {
        Some((name, arguments)) => (name, Some(arguments)),
        None => (text, None),
    };
    match (name, arguments) {
        ("id", None) => Ok(Variable::Id),
        ("index", None) => Ok(Variable::Index { width: 1 }),
        ("index", Some(width)) => index(width),
        ("tenant", None) => Ok(Variable::Tenant),
        ("seq", None) => Ok(Variable::Seq),
        ("due_ms", None) => Ok(Variable::DueMs),
        ("due_us", None) => Ok(Variable::DueUs),
        ("due_iso", None) => Ok(Variable::DueIso),
        ("unique_ms", None) => Ok(Variable::UniqueMs { step: 1, offset: 0 }),
        ("unique_ms", Some(arguments)) => unique_ms(arguments),
        ("stamp", None) => Ok(Variable::Stamp),
        ("run", None) => Ok(Variable::Run),
        ("normal", Some(arguments)) => normal(arguments),
        ("uniform", Some(arguments)) => uniform(arguments),
        ("int", Some(arguments)) => int(arguments),
        ("hex", Some(length)) => hex(length),
        ("choice", Some(choices)) => Ok(Variable::Choice(
            choices.split('|').map(Into::into).collect(),
        )),
        ("normal" | "uniform" | "int" | "hex" | "choice", None) => Err((
            format!("`{name}` without its arguments"),
            format!("one of: {ALL}"),
        )),
        ("json", Some(inner)) => escaped(inner),
        ("file", Some(_)) => Err((
            format!("`${{{text}}}` in a template"),
            "files are read only in users, passwords and secrets".to_owned(),
        )),
        ("env", Some(_)) => Err((
            format!("`${{{text}}}` in a template"),
            "the environment is read only in scenarios".to_owned(),
        )),
        (_, Some(_)) => Err((
            format!("unknown variable `{text}`"),
            format!("one of: {ALL}"),
        )),
        (column, None) => column_name(column),
    }
}

/// The variable whose value `${json:...}` escapes.
fn escaped(inner: &str) -> Result<Variable, Wrong> {
    let variable = variable(inner)?;
    if matches!(variable, Variable::Stamp | Variable::Json(_)) {
        let what = format!("`json:{inner}`: `{inner}` needs no escapes");
        return Err((what, "remove `json:`".to_owned()));
    }
    Ok(Variable::Json(Box::new(variable)))
}

fn column_name(column: &str) -> Result<Variable, Wrong> {
    if column.is_empty() || column.trim() != column {
        let hint = format!("write the name without spaces, one of: {ALL}");
        return Err((format!("`${{{column}}}` names nothing"), hint));
    }
    Ok(Variable::Column(column.into()))
}

fn index(width: &str) -> Result<Variable, Wrong> {
    let wrong = || {
        (
            format!("`{width}` is no width of an index"),
            format!("write `${{index:08}}`: a zero, then digits from 1 to {MAX_WIDTH}"),
        )
    };
    let digits = width.strip_prefix('0').ok_or_else(wrong)?;
    let width = digits
        .parse()
        .ok()
        .filter(|width| (1..=MAX_WIDTH).contains(width));
    Ok(Variable::Index {
        width: width.ok_or_else(wrong)?,
    })
}

fn normal(arguments: &str) -> Result<Variable, Wrong> {
    let usage = "write `${normal:mean:sd}`, such as `${normal:20:3}`";
    let (mean, deviation, decimals) = two_numbers(arguments, usage)?;
    if deviation < 0.0 {
        return Err((
            format!("a standard deviation of {deviation}"),
            "give 0 or more".to_owned(),
        ));
    }
    if mean.abs() + NORMAL_REACH * deviation > MAX_NUMBER {
        return Err(too_large(arguments));
    }
    Ok(Variable::Normal {
        mean,
        deviation,
        decimals,
    })
}

fn uniform(arguments: &str) -> Result<Variable, Wrong> {
    let usage = "write `${uniform:a:b}`, such as `${uniform:0:1}`";
    let (low, high, decimals) = two_numbers(arguments, usage)?;
    if low > high {
        return Err((
            format!("`{low}` above `{high}`"),
            "put the lower bound first".to_owned(),
        ));
    }
    if low.abs().max(high.abs()) > MAX_NUMBER {
        return Err(too_large(arguments));
    }
    Ok(Variable::Uniform {
        low,
        high,
        decimals,
    })
}

fn too_large(arguments: &str) -> Wrong {
    (
        format!("`{arguments}` reaches too far"),
        format!("stay within -{MAX_NUMBER} to {MAX_NUMBER}"),
    )
}

/// Two numbers and the decimals of what is drawn from them.
fn two_numbers(arguments: &str, usage: &str) -> Result<(f64, f64, u8), Wrong> {
    let (first, second) = arguments.split_once(':').ok_or_else(|| {
        (
            format!("`{arguments}` is not two numbers"),
            usage.to_owned(),
        )
    })?;
    let decimals = |text: &str| {
        text.split_once('.')
            .map_or(0, |(_, decimals)| decimals.len())
    };
    let most = decimals(first).max(decimals(second));
    if most > MAX_DECIMALS {
        let hint = format!("give at most {MAX_DECIMALS} decimals");
        return Err((format!("`{arguments}` is too exact"), hint));
    }
    Ok((
        number(first, usage)?,
        number(second, usage)?,
        most as u8 + 2,
    ))
}

fn number(text: &str, usage: &str) -> Result<f64, Wrong> {
    let is_plain = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte));
    let value = text
        .parse()
        .ok()
        .filter(|value: &f64| is_plain && value.is_finite());
    value.ok_or_else(|| (format!("`{text}` is no plain number"), usage.to_owned()))
}

fn int(arguments: &str) -> Result<Variable, Wrong> {
    let usage = "write `${int:a:b}` with whole numbers, such as `${int:1:6}`";
    let wrong = || {
        (
            format!("`{arguments}` is not two whole numbers"),
            usage.to_owned(),
        )
    };
    let (low, high) = arguments.split_once(':').ok_or_else(wrong)?;
    let low: i64 = low.parse().map_err(|_| wrong())?;
    let high: i64 = high.parse().map_err(|_| wrong())?;
    if low > high {
        return Err((
            format!("`{low}` above `{high}`"),
            "put the lower bound first".to_owned(),
        ));
    }
    Ok(Variable::Int { low, high })
}

fn unique_ms(arguments: &str) -> Result<Variable, Wrong> {
    let parts = arguments.split_once(':');
    let numbers = parts.and_then(|(step, offset)| Some((step.parse().ok()?, offset.parse().ok()?)));
    let fitting = numbers.filter(|(step, offset)| offset < step && *step <= MAX_STEP);
    let Some((step, offset)) = fitting else {
        let what = format!("`{arguments}` is not a step and an offset below it");
        let hint = format!(
            "write `${{unique_ms}}`, or `${{unique_ms:2:0}}` and `${{unique_ms:2:1}}` in two streams; the step is at most {MAX_STEP}"
        );
        return Err((what, hint));
    };
    Ok(Variable::UniqueMs { step, offset })
}

fn hex(length: &str) -> Result<Variable, Wrong> {
    let length = length
        .parse()
        .ok()
        .filter(|length| (1..=MAX_HEX).contains(length));
    length.map(Variable::Hex).ok_or_else(|| {
        let hint = format!("write `${{hex:n}}` with n from 1 to {MAX_HEX}");
        ("`hex` of no length".to_owned(), hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_its_variables_keeps_its_literals() {
        let template = crate::Template::parse("/a b/${id}/$${x}/${index:08}").expect("a template");
        assert_eq!(template.filled_with("0"), "/a b/0/${x}/0");
    }

    #[test]
    fn every_variable_that_an_error_names_has_a_meaning() {
        let named: Vec<&str> = ALL.split(", ").take(VARIABLES.len()).collect();
        assert_eq!(named, VARIABLES.map(|(name, _)| name));
        for (name, _) in VARIABLES.into_iter().take(VARIABLES.len() - 1) {
            let numbers = name.replace(":mean:sd", ":20:3").replace(":a:b", ":1:6");
            assert!(variable(&numbers.replace(":n", ":8")).is_ok(), "{name}");
        }
    }
}
