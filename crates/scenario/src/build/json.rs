//! Templates whose text is JSON: no value may break them.

use muster_load::{MixSpec, PayloadSpec, Table, Template, escape_json};
use serde::de::IgnoredAny;

use super::body::sampled;
use super::templates::Variables;
use crate::view::View;

/// The payload with the values in its strings escaped, where it is JSON by its text or by its content
/// type.
pub(super) fn escaped(
    spec: PayloadSpec,
    content_type: Option<&str>,
    variables: &Variables<'_>,
) -> PayloadSpec {
    let is_declared = content_type.is_some_and(is_json_type);
    let escaped = |text: String| match is_declared || is_json(&text) {
        true => within_strings(&text, false, variables),
        false => text,
    };
    match spec {
        PayloadSpec::Template(text) => PayloadSpec::Template(escaped(text)),
        PayloadSpec::Mix(MixSpec { kinds, rare }) => PayloadSpec::Mix(MixSpec {
            kinds: kinds
                .into_iter()
                .map(|(share, text)| (share, escaped(text)))
                .collect(),
            rare: rare.map(|mut rare| {
                rare.template = escaped(rare.template);
                rare
            }),
        }),
        other @ (PayloadSpec::Size(_)
        | PayloadSpec::Held { .. }
        | PayloadSpec::LogNormal { .. }
        | PayloadSpec::File(_)) => other,
    }
}

/// The same of a template that is rendered once per device.
pub(super) fn escaped_template(template: Template, variables: &Variables<'_>) -> Template {
    if !is_json(template.source()) {
        return template;
    }
    let escaped = within_strings(template.source(), false, variables);
    Template::parse(&escaped).unwrap_or(template)
}

/// A text with the values in its strings escaped; `is_inside` is true if it begins in one.
pub(super) fn within_strings(text: &str, is_inside: bool, variables: &Variables<'_>) -> String {
    escape_json(text, is_inside, &|name| variables.need_escapes(name))
}

/// Returns true if a media type is JSON's (RFC 8259 section 11, RFC 6839 section 3.1).
fn is_json_type(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    matches!(essence.as_str(), "application/json" | "text/json") || essence.ends_with("+json")
}

/// Returns true if a template is an object or a list of JSON once each variable is a digit.
fn is_json(text: &str) -> bool {
    let begins = text.trim_start().starts_with(['{', '[']);
    let digits = || sampled(text, |_, _| "1".to_owned());
    begins && serde_json::from_str::<IgnoredAny>(&digits()).is_ok()
}

/// Checks that the values of all devices outside of strings leave a JSON template JSON; the
/// first that does not is named with its row.
pub(super) fn cells_are_values(
    view: &View<'_>,
    text: &str,
    variables: &Variables<'_>,
) -> Option<()> {
    let (Some(table), true) = (variables.table, is_json(text)) else {
        return Some(());
    };
    let devices = variables.index.1 - variables.index.0 + 1;
    for column in whole_values(text) {
        let is_value = |cell: &str| serde_json::from_str::<IgnoredAny>(cell).is_ok();
        let cell = |row: u32| table.row(row as usize).and_then(|row| row.get(column));
        let mut cells = (0..devices).filter_map(|row| Some((row, cell(row)?)));
        let Some((row, cell)) = cells.find(|(_, cell)| !is_value(cell)) else {
            continue;
        };
        let place = variables.line(row);
        let what = format!("`{cell}` in column `{column}`{place} is no JSON value");
        let help = match is_value(&cell.replacen(',', ".", 1)) {
            true => "write decimals with a point".to_owned(),
            false => format!("put the variable into quotes, \"${{{column}}}\", or mend the cell"),
        };
        return view.refuse(what, &help);
    }
    if !has_bare_values(text, table) {
        return Some(());
    }
    let template = Template::parse(&within_strings(text, false, variables)).ok()?;
    let is_json = |place: &u32| {
        let message = variables.render(&template, *place);
        serde_json::from_str::<IgnoredAny>(&message).is_ok()
    };
    let Some(place) = variables.places(&template).find(|it| !is_json(it)) else {
        return Some(());
    };
    let owner = variables.owner(Some(&template), place);
    let help = "put the variables outside of quotes into quotes, or mend the row";
    view.refuse(format!("the message{owner} is no JSON"), help)
}

/// True if a variable whose value differs by device stands outside of the strings of a JSON template.
fn has_bare_values(text: &str, table: &Table) -> bool {
    let mut variables = text.match_indices("${").filter_map(|(open, _)| {
        let close = open + text[open..].find('}')?;
        let name = &text[open + 2..close];
        let is_bare = !text[..open].ends_with('$') && !muster_load::is_inside_string(&text[..open]);
        is_bare.then(|| name.strip_prefix("json:").unwrap_or(name))
    });
    variables.any(|name| {
        let is_index = name.split(':').next() == Some("index");
        is_index || name == "id" || table.columns().iter().any(|column| column == name)
    })
}

/// The columns that stand alone where JSON wants a value.
fn whole_values(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("${").filter_map(|(open, _)| {
        let close = open + text[open..].find('}')?;
        let (before, after) = (text[..open].trim_end(), text[close + 1..].trim_start());
        let is_alone = before.ends_with([':', ',', '[']) && after.starts_with([',', '}', ']']);
        let is_quoted = muster_load::is_inside_string(&text[..open]);
        (is_alone && !is_quoted).then(|| &text[open + 2..close])
    })
}

#[cfg(test)]
mod tests {
    use muster_load::Names;

    use super::*;

    #[test]
    fn json_is_known_by_its_text_or_by_its_type() {
        let table = Table::parse("x\n\"a\"\"b\"\n").unwrap();
        let variables = Variables {
            names: &Names::formula("${index}").unwrap(),
            index: (0, 0),
            tenant: "",
            table: Some(&table),
            file: "x.csv",
        };
        for (text, media_type, is_escaped) in [
            (r#"{"a":"${x}"}"#, None, true),
            (r#"[${seq},"${x}"]"#, None, true),
            (r#"{"a":"${x}"#, None, false),
            (r#"${seq} "${x}""#, None, false),
            (
                r#"${seq} "${x}""#,
                Some("application/json; charset=utf-8"),
                true,
            ),
            (
                r#"${seq} "${x}""#,
                Some("application/vnd.eclipse.ditto+json"),
                true,
            ),
            (r#"a "${x}""#, Some("text/plain"), false),
        ] {
            let spec = escaped(
                PayloadSpec::Template(text.to_owned()),
                media_type,
                &variables,
            );
            let expected = if is_escaped {
                text.replace("${x}", "${json:x}")
            } else {
                text.to_owned()
            };
            assert_eq!(spec, PayloadSpec::Template(expected), "{text}");
        }
    }

    #[test]
    fn values_are_what_stands_alone_outside_of_strings() {
        let text = r#"{"a":${a}, "b":"${b}","c":[${c} , -${d}],"e":${e}0,"f,${f},":1}"#;
        assert_eq!(whole_values(text).collect::<Vec<_>>(), ["a", "c"]);
    }
}
