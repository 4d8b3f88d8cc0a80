//! The id that a payload holds at the pointer of `carrier: { blind: ... }`.

use muster_load::{Payload, Template, is_inside_string};
use muster_platform::BlindField;
use serde_json::Value as Json;

use super::body::sampled;
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
    let wrong = |what: &str| view.refuse(what, &help);
    let Some(template) = payload.template() else {
        return wrong("the carrier is a field, and the payload is no template");
    };
    let Ok(json) = serde_json::from_str::<Json>(&sample(template)) else {
        return wrong("the carrier is a field, and the template is no JSON");
    };
    let text = match json.pointer(pointer) {
        Some(Json::String(text)) if !text.contains(['"', '\\']) => text.clone(),
        Some(Json::Number(number)) if number.as_u64() == Some(NUMBER_SAMPLE) => NUMBER.to_owned(),
        Some(_) => {
            return wrong(&format!("the field at {pointer} is no id"));
        }
        None => {
            return wrong(&format!("the template has no field at {pointer}"));
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

/// The template as JSON: variables within strings stay as they are, and others are numbers.
fn sample(template: &Template) -> String {
    sampled(template.source(), |before, variable| match variable {
        _ if is_inside_string(before) => variable.to_owned(),
        NUMBER => NUMBER_SAMPLE.to_string(),
        _ => "1".to_owned(),
    })
}
