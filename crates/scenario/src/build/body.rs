//! The payload and the carrier of a stream, which must fit each other.

use std::sync::Arc;

use muster_load::{
    MAX_PAYLOAD, Payload, PayloadError, PayloadSpec, ScheduleSpec, StampForm, Template,
};
use muster_model::STAMP_TEXT;
use muster_platform::{
    ApplicationId, BlindField, Carrier, Dialect, DittoPayload, IntegrityLevel, NamedPayload,
};
use muster_protocol::mqtt::Version;
use serde_json::Value as Json;

use super::stream::Class;
use super::templates::{message_template, refuse};
use super::{blind, board, json};
use crate::view::View;

const SAP_MEASURES: &str = "sap-measures";
pub(crate) const DITTO_MODIFY: &str = "ditto-modify";
/// A message without a body: a device of Hono reports that it is there, and asks for a command.
const EMPTY: &str = "empty";
/// Media type that CoAP can name; that of Ditto's own protocol has no number there.
const JSON: &str = "application/json";

pub(super) struct Body {
    pub(super) payload: PayloadSpec,
    pub(super) carrier: Carrier,
    pub(super) integrity: IntegrityLevel,
    pub(super) content_type: Option<String>,
    pub(super) most: usize,
}

/// Reads the payload and the carrier of the stream at `position` of its fleet.
pub(super) fn body(
    class: &Class<'_>,
    view: &View<'_>,
    position: u8,
    schedule: Option<&ScheduleSpec>,
) -> Option<Body> {
    let payload_view = view.get("payload")?;
    let mut carrier = carrier(class, view)?;
    let is_ditto = payload_view.text() == DITTO_MODIFY;
    let of_board = board::payload(class, (view, position), &carrier, schedule);
    let spec = match of_board {
        _ if is_ditto => ditto(class, &carrier)?,
        _ if payload_view.text() == EMPTY => empty(class, view, &carrier)?,
        Some(spec) => spec?,
        None => payload(class, &payload_view, &carrier, position)?,
    };
    let payload = Payload::compile(&spec).map_err(|error| {
        if let PayloadError::Template(error) = &error {
            refuse(&payload_view, error);
        } else {
            payload_view.wrong(error.to_string(), "a smaller payload");
        }
    });
    let payload = payload.ok()?;
    if let Carrier::Blind(field) = &mut carrier {
        *field = blind::field(view, &payload, &field.pointer)?;
    }
    fits(class, view, &payload, &carrier)?;
    let (topic, dialect) = (view.text_of("topic"), class.context.dialect);
    let is_in_topic = dialect.numbered(topic, position) != topic;
    if carrier == Carrier::ApplicationId && !is_in_topic {
        holds_id(&payload_view, &payload, position)?;
        if (dialect.topic)(topic).makes_devices {
            chooses_token(&payload_view, &payload, position)?;
        }
    }
    let integrity = integrity(view, &carrier)?;
    let content_type = match payload_view.get("content-type") {
        Some(view) => Some(content_type(class, &view)?),
        None if is_ditto && class.context.scheme.protocol().asks => Some(JSON.to_owned()),
        None => None,
    };
    let spec = json::escaped(spec, content_type.as_deref(), class.variables);
    if let Carrier::Blind(field) = &mut carrier {
        // The field is a string of JSON, in which names stand escaped as well.
        field.text = json::within_strings(&field.text, true, class.variables);
    }
    let (_, most) = Payload::compile(&spec)
        .ok()?
        .bounds(&class.variables.bounds());
    let limit = dialect.publishing().payload_limit;
    let limit = limit.filter(|_| !class.context.scheme.protocol().asks);
    if let Some(limit) = limit.filter(|limit| most > *limit) {
        let what = format!(
            "a payload of up to {most} bytes: {dialect} closes the link above {limit} bytes"
        );
        payload_view.warn(what, "send less in a message");
    }
    Some(Body {
        most,
        integrity,
        payload: spec,
        carrier,
        content_type,
    })
}

fn content_type(class: &Class<'_>, view: &View<'_>) -> Option<String> {
    // Hono's devices write it behind the topic.
    if class.version == Version::V311 && class.context.dialect != Dialect::Hono {
        return view.refuse(
            "MQTT 3.1.1 has no content type",
            "use `version: \"5\"`, or remove it",
        );
    }
    Some(view.text().to_owned())
}

fn payload(
    class: &Class<'_>,
    view: &View<'_>,
    carrier: &Carrier,
    position: u8,
) -> Option<PayloadSpec> {
    let forms = ["template", "size", "file", SAP_MEASURES].into_iter();
    let given: Vec<&str> = forms
        .chain(board::NAMES)
        .filter(|form| view.get(form).is_some())
        .collect();
    match given[..] {
        ["template"] => {
            let template_view = view.get("template")?;
            let template = message_template(&template_view, class.variables)?;
            let text = template.source();
            json::cells_are_values(&template_view, text, class.variables)?;
            Some(PayloadSpec::Template(template.source().to_owned()))
        }
        ["size"] => size(view, carrier.least_payload(false)),
        ["file"] => file(&view.get("file")?),
        [SAP_MEASURES] => {
            let samples = view.get(SAP_MEASURES)?.whole("samples")?;
            Some(NamedPayload::SapMeasures { samples }.spec(position))
        }
        [_, second, ..] => {
            let what = format!("`{second}` is a second form of payload");
            view.get(second)?
                .refuse(what, "keep one of template, size, file and the names")
        }
        _ => view.refuse(
            "the payload has no content",
            "add `template`, `size`, `file` or a name, such as `sap-measures`",
        ),
    }
}

fn ditto(class: &Class<'_>, carrier: &Carrier) -> Option<PayloadSpec> {
    let id = class.view.get("id")?;
    let named = NamedPayload::Ditto(DittoPayload {
        device: id.text(),
        is_stamped: matches!(carrier, Carrier::Payload | Carrier::Field(_)),
    });
    Some(named.spec(0))
}

/// An empty notification: the platform knows its type, and its path names the device.
fn empty(class: &Class<'_>, view: &View<'_>, carrier: &Carrier) -> Option<PayloadSpec> {
    if !class.context.scheme.protocol().asks {
        let what = format!("{} has no empty notifications", class.context.dialect);
        let help = "use `payload: { size: 0 }`, or `dialect: hono`";
        return view.refuse_at("payload", what, help);
    }
    if !matches!(carrier, Carrier::Order | Carrier::None) {
        let what = format!("an empty notification has no room for its carrier, {carrier}");
        let help = "remove `carrier`, or use `order` or `none`";
        return view.refuse_at("carrier", what, help);
    }
    Some(PayloadSpec::Size(0))
}

/// A fixed size, or sizes by chance with room for a carrier of `least` bytes.
fn size(view: &View<'_>, least: usize) -> Option<PayloadSpec> {
    let Some(log_normal) = view.get("size")?.get("log-normal") else {
        return Some(PayloadSpec::Size(view.size("size")?));
    };
    let (median, p99) = (log_normal.size("median")?, log_normal.size("p99")?);
    let least = least as u32;
    let spec = PayloadSpec::LogNormal { median, p99, least };
    let payload = Payload::compile(&spec).map_err(|error| {
        let is_too_small = matches!(error, PayloadError::MostlyTooSmall { .. });
        let help = match is_too_small {
            true => "larger sizes, or `carrier: property`, `order` or `none`",
            false => "such as { median: 200, p99: 4096 }",
        };
        log_normal.wrong(error.to_string(), help);
    });
    let redrawn = payload.ok()?.redrawn() * 100.0;
    if redrawn >= 0.01 {
        let what = format!(
            "{redrawn:.2} % of these sizes are below the {least} bytes of the stamp and are drawn again"
        );
        log_normal.warn(
            what,
            "larger sizes, or `carrier: property`, `order` or `none`",
        );
    }
    Some(spec)
}

fn file(view: &View<'_>) -> Option<PayloadSpec> {
    let path = view.text();
    let bytes = view.file(path)?;
    if bytes.len() as u64 > u64::from(MAX_PAYLOAD) {
        let what = format!(
            "{path} has {} bytes, more than an MQTT packet holds",
            bytes.len()
        );
        return view.refuse(what, &format!("at most {MAX_PAYLOAD} bytes"));
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        let what = format!("{path} begins with a byte-order mark, which is sent with it");
        view.warn(
            what,
            "save it without one; JSON has none (RFC 8259 section 8.1)",
        );
    }
    Some(PayloadSpec::File(Arc::from(bytes)))
}

fn carrier(class: &Class<'_>, view: &View<'_>) -> Option<Carrier> {
    let carrier = view.get("carrier")?;
    let protocol = class.context.scheme.protocol();
    match carrier.text() {
        "payload" => Some(Carrier::Payload),
        "order" => Some(Carrier::Order),
        "application-id" => application_id(class, view, &carrier),
        "none" => Some(Carrier::None),
        "property" if class.version == Version::V311 => {
            let help = "use `carrier: payload`, or `version: \"5\"`";
            carrier.refuse("MQTT 3.1.1 has no user properties", help)
        }
        "property" if !protocol.has_user_properties => {
            let what = format!("{} has no user properties", protocol.name);
            carrier.refuse(what, "use `carrier: payload`")
        }
        "property" => Some(Carrier::Property),
        _ => match (carrier.get("field"), carrier.get("blind")) {
            (Some(field), None) => pointer(&field).map(Carrier::Field),
            (None, Some(field)) => pointer(&field).map(|pointer| {
                Carrier::Blind(BlindField {
                    pointer,
                    text: String::new(),
                })
            }),
            (Some(_), Some(second)) => second.refuse(
                "the carrier is two fields",
                "keep one of `field` and `blind`",
            ),
            (None, None) => {
                let help = "such as { field: /headers/id }";
                carrier.refuse("the carrier names no field", help)
            }
        },
    }
}

fn application_id(class: &Class<'_>, stream: &View<'_>, view: &View<'_>) -> Option<Carrier> {
    let dialect = class.context.dialect;
    if (dialect.topic)(stream.text_of("topic")).is_acknowledged {
        return Some(Carrier::ApplicationId);
    }
    let what = format!("messages have no id of the application's with {dialect}");
    view.refuse(
        what,
        "use `carrier: payload`, or a platform that acknowledges, such as sap-edge",
    )
}

/// Checks that the payload names the message as the acknowledgement will.
fn holds_id(view: &View<'_>, payload: &Payload, position: u8) -> Option<()> {
    let id = ApplicationId::template(position);
    if payload
        .template()
        .is_some_and(|template| template.source().contains(&id))
    {
        return Some(());
    }
    let what = format!("the payload does not hold the message's id, `{id}`");
    let help = format!(
        "use a template with the field that the platform gives back, such as \"measureMessageId\": \"{id}\" of sap-edge, or leave out `payload`"
    );
    view.refuse(what, &help)
}

/// Stands for the end of a token, which matches an answer to its request.
const NUMBER_SAMPLE: &str = "~number-sample";

/// A request for a device is matched to its answer by the token that the request chooses. A token that the
/// platform makes is in no request.
fn chooses_token(view: &View<'_>, payload: &Payload, position: u8) -> Option<()> {
    let end = format!("~{}", ApplicationId::template(position));
    let source = payload.template()?.source().replace(&end, NUMBER_SAMPLE);
    let json: Json = serde_json::from_str(&sample(&source)).unwrap_or_default();
    let token = json.get("token").and_then(Json::as_str);
    let kind = json.get("credentialsType").and_then(Json::as_str);
    let what = match (token, kind) {
        (Some(token), None | Some("ACCESS_TOKEN")) if token.ends_with(NUMBER_SAMPLE) => {
            return Some(());
        }
        (_, Some(kind)) if kind != "ACCESS_TOKEN" => {
            format!("a device with credentials of type `{kind}`: the answer names no token that the request chose")
        }
        (Some(_), _) => {
            format!("the request's `token` does not end in `{end}`, so that its answer cannot be matched to it")
        }
        (None, _) => "the request has no `token`, so that the platform makes one, and no device could know which answer is its own".to_owned(),
    };
    let help = format!(
        "add \"credentialsType\":\"ACCESS_TOKEN\",\"token\":\"${{id}}{end}\", or leave out `payload`"
    );
    view.refuse(what, &help)
}

/// Reads the part of a message that the check of a stamp covers.
fn integrity(view: &View<'_>, carrier: &Carrier) -> Option<IntegrityLevel> {
    let is_stamp = match carrier {
        Carrier::Payload | Carrier::Property | Carrier::Field(_) => true,
        Carrier::ApplicationId | Carrier::Blind(_) | Carrier::Order | Carrier::None => false,
    };
    if let Some(stray) = view.written("integrity").filter(|_| !is_stamp) {
        let what = format!("`integrity` is the check of a stamp, and the carrier is {carrier}");
        return stray.refuse(what, "remove it, or use `carrier: payload`");
    }
    Some(match view.text_of("integrity") {
        "stamp" => IntegrityLevel::Stamp,
        _ => IntegrityLevel::Body,
    })
}

fn pointer(view: &View<'_>) -> Option<String> {
    let pointer = view.text();
    if !pointer.starts_with('/') {
        let what = format!("`{pointer}` is no JSON pointer");
        return view.refuse(
            what,
            "begin with `/`, such as /headers/correlation-id (RFC 6901)",
        );
    }
    Some(pointer.to_owned())
}

/// Checks that every payload has room for what the carrier puts into it.
fn fits(class: &Class<'_>, view: &View<'_>, payload: &Payload, carrier: &Carrier) -> Option<()> {
    let body = view.get("payload")?;
    match carrier {
        Carrier::Property
        | Carrier::ApplicationId
        | Carrier::Blind(_)
        | Carrier::Order
        | Carrier::None => {
            if let Some(template) = payload.template().filter(|template| template.has_stamp()) {
                return unused_stamp(&body, template, carrier);
            }
            Some(())
        }
        Carrier::Payload => match payload.stamp_form() {
            Some(_) => Some(()),
            None => too_small(class, &body, payload, carrier),
        },
        Carrier::Field(pointer) => match payload.template() {
            Some(template) => holds_field(&body, template, pointer),
            None => {
                let what = "the carrier is a field, and the payload is no template";
                body.refuse(what, "use `payload: { template: '{\"id\":\"${stamp}\"}' }`")
            }
        },
    }
}

/// A stamp that nobody fills in would be 30 characters of filler.
fn unused_stamp(view: &View<'_>, template: &Template, carrier: &Carrier) -> Option<()> {
    let (_, offset) = template.names().find(|(name, _)| *name == "stamp")?;
    let what = format!("`${{stamp}}` is filled in only by a carrier, and the carrier is {carrier}");
    view.get("template")?
        .wrong_at(offset, what, "use `carrier: payload`, or remove it");
    None
}

fn too_small(
    class: &Class<'_>,
    view: &View<'_>,
    payload: &Payload,
    carrier: &Carrier,
) -> Option<()> {
    let is_text = payload.is_text();
    let needed = carrier.least_payload(is_text);
    let (least, _) = payload.bounds(&class.variables.bounds());
    if is_text {
        let what = "the template has no `${stamp}`, so that its messages cannot be recognized";
        let help = format!(
            "add \"${{stamp}}\" ({STAMP_TEXT} characters) to it, or use `carrier: property`, `order` or `none`"
        );
        return view
            .get("template")
            .as_ref()
            .unwrap_or(view)
            .refuse(what, &help);
    }
    let help = if view.get("file").is_some() {
        "a file is sent as it is: use `carrier: property`, `order` or `none`".to_owned()
    } else {
        let least = StampForm::Binary22.size();
        format!("at least {least} bytes, or use `carrier: property`, `order` or `none`")
    };
    let what = format!(
        "a payload of {least} bytes has no room for its carrier, a stamp of {needed} bytes"
    );
    view.refuse(what, &help)
}

/// Checks that the template is JSON whose field is the stamp and nothing else.
fn holds_field(view: &View<'_>, template: &Template, pointer: &str) -> Option<()> {
    let written = view.get("template");
    let view = written.as_ref().unwrap_or(view);
    let sample = sample(template.source());
    let help = format!("such as '{{\"id\":\"${{stamp}}\"}}', with the stamp at {pointer}");
    let Ok(json) = serde_json::from_str::<Json>(&sample) else {
        return view.refuse("the carrier is a field, and the template is no JSON", &help);
    };
    match json.pointer(pointer) {
        Some(Json::String(text)) if text == STAMP_SAMPLE => Some(()),
        Some(_) => view.refuse(
            format!("the field at {pointer} is not \"${{stamp}}\""),
            &help,
        ),
        None => view.refuse(format!("the template has no field at {pointer}"), &help),
    }
}

const STAMP_SAMPLE: &str = "stamp-sample";

/// The template with a value in place of each variable: a number is JSON inside and outside of
/// quotes.
fn sample(source: &str) -> String {
    sampled(source, |_, variable| match variable {
        "${stamp}" => STAMP_SAMPLE.to_owned(),
        _ => "1".to_owned(),
    })
}

/// The template with a text in place of each variable, by what stands before it and as it is written.
/// `$${` is no variable, and stays.
pub(super) fn sampled(source: &str, text: impl Fn(&str, &str) -> String) -> String {
    let mut sample = String::new();
    let mut rest = source;
    while let Some(start) = rest.find("${") {
        let (before, variable) = rest.split_at(start);
        sample += before;
        let length = match variable.find('}') {
            Some(_) if before.ends_with('$') => 1,
            Some(close) => close,
            None => return sample + variable,
        };
        let (variable, after) = variable.split_at(length + 1);
        match before.ends_with('$') {
            true => sample += variable,
            false => sample += &text(&sample, variable),
        }
        rest = after;
    }
    sample + rest
}
