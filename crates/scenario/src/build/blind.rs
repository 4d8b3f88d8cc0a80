//! The id that a payload holds at the pointer of `carrier: { blind: ... }`.

use muster_load::{Payload, Template};
use muster_platform::BlindField;
use serde_json::Value as Json;

use crate::view::View;

const NUMBER: &str = "${seq}";
/// Stands for the number where JSON wants one; no template has it by chance.
const NUMBER_SAMPLE: u64 = 7_019_283_746_501;

/// Reads back what the payload of a stream has there.
pub(super) fn field(stream: &View<'_>, payload: &Payload, pointer: &str) -> Option<BlindField> {
    let payload_view = stream.get("payload")?;
    let written = payload_view.get("template");
    let view = written.as_ref().unwrap_or(&payload_view);
    let help = format!("such as '{{\"id\":\"${{id}}-${{seq}}\"}}', with the id at {pointer}");
    let wrong = |what: &str| view.wrong(what, &help);
    let Some(template) = payload.template() else {
        wrong("the carrier is a field, and the payload is no template");
        return None;
    };
    let Ok(json) = serde_json::from_str::<Json>(&sample(template)) else {
        wrong("the carrier is a field, and the template is no JSON");
        return None;
    };
    let text = match json.pointer(pointer) {
        Some(Json::String(text)) if !text.contains(['"', '\\']) => text.clone(),
        Some(Json::Number(number)) if number.as_u64() == Some(NUMBER_SAMPLE) => NUMBER.to_owned(),
        Some(_) => {
            wrong(&format!("the field at {pointer} is no id"));
            return None;
        }
        None => {
            wrong(&format!("the template has no field at {pointer}"));
            return None;
        }
    };
    let field = BlindField {
        pointer: pointer.to_owned(),
        text,
    };
    match field.check() {
        Ok(()) => Some(field),
        Err(error) => view.refuse(error.what, &error.hint),
    }
}

/// The template as JSON: variables within quotes stay as they are, and others are numbers.
fn sample(template: &Template) -> String {
    let mut sample = String::new();
    let mut rest = template.source();
    let mut is_quoted = false;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let (before, variable) = (&rest[..start], &rest[start..=start + length]);
        is_quoted ^= quotes(before) % 2 == 1;
        sample += before;
        match variable {
            _ if is_quoted => sample += variable,
            NUMBER => sample += &NUMBER_SAMPLE.to_string(),
            _ => sample += "1",
        }
        rest = &rest[start + length + 1..];
    }
    sample + rest
}

/// Quotes that open or close a string.
fn quotes(text: &str) -> usize {
    let mut is_escaped = false;
    let mut quotes = 0;
    for c in text.chars() {
        quotes += usize::from(c == '"' && !is_escaped);
        is_escaped = c == '\\' && !is_escaped;
    }
    quotes
}
