//! `${env:NAME}` and `${file:path}`, resolved once, and bytes that need not be text; what they hold is
//! never shown.

use muster_load::{Encoding, Octets, Template};
use muster_plan::Secret;

use super::names::is_decodable;
use super::templates::{Variables, device_template, message_template_of, template_of};
use crate::environment::unset;
use crate::view::View;

/// A secret that is the same for everyone.
pub(super) fn secret(view: &View<'_>) -> Option<Secret> {
    resolve(view, false).map(Secret::new)
}

/// A secret that may differ from device to device.
pub(super) fn secret_template(
    view: &View<'_>,
    variables: &Variables<'_>,
) -> Option<Secret<Template>> {
    let text = resolve(view, true)?;
    template_of(view, &text, variables).map(Secret::new)
}

/// A secret that may differ from message to message.
pub(super) fn secret_message_template(
    view: &View<'_>,
    variables: &Variables<'_>,
) -> Option<Secret<Template>> {
    let text = resolve(view, true)?;
    message_template_of(view, &text, variables).map(Secret::new)
}

/// Bytes that may differ from device to device: a text, or `{ hex }`, `{ base64 }` or `{ file }`.
pub(super) fn octets(view: &View<'_>, variables: &Variables<'_>) -> Option<Octets> {
    if !view.is_map() {
        return secret_template(view, variables).map(|text| Octets::text(text.expose().clone()));
    }
    let (encoding, value) = match form(view)? {
        Form::File(file) => return of_files(&file, variables),
        Form::Text(encoding, value) => (encoding, value),
    };
    let template = secret_template(&value, variables)?;
    let octets = Octets::new(template.expose().clone(), encoding);
    is_decodable(&value, &octets, variables)?;
    Some(octets)
}

/// Bytes that are the same for everyone.
pub(super) fn secret_bytes(view: &View<'_>) -> Option<Secret<Vec<u8>>> {
    let bytes = if view.is_map() {
        match form(view)? {
            Form::File(file) => {
                let bytes = bytes_of(&file, file.text())?;
                warn_of_newline(&file, file.text(), &bytes);
                bytes
            }
            Form::Text(encoding, value) => {
                let text = resolve(&value, false)?;
                let decoded = encoding.decode(text.into_bytes()).map_err(|error| {
                    value.wrong(format!("the value cannot be read: {error}"), MEND);
                });
                decoded.ok()?
            }
        }
    } else {
        resolve(view, false)?.into_bytes()
    };
    Some(Secret::new(bytes))
}

pub(super) const MEND: &str = "mend it; it is not shown, since it may be a secret";

enum Form<'a> {
    Text(Encoding, View<'a>),
    File(View<'a>),
}

/// Reads a map of bytes, which has one of three forms.
fn form<'a>(view: &View<'a>) -> Option<Form<'a>> {
    let hex = view.get("hex").map(|text| Form::Text(Encoding::Hex, text));
    let base64 = view.get("base64");
    let base64 = base64.map(|text| Form::Text(Encoding::Base64, text));
    let file = view.get("file").map(Form::File);
    let mut given = [hex, base64, file].into_iter().flatten();
    if let (Some(form), None) = (given.next(), given.next()) {
        return Some(form);
    }
    let what = "bytes are one of `hex`, `base64` and `file`";
    view.refuse(
        what,
        "such as { hex: \"00ff\" }, { base64: \"AP8=\" } or { file: key.bin }",
    )
}

/// The bytes of a file for all devices, or of a file for each.
fn of_files(view: &View<'_>, variables: &Variables<'_>) -> Option<Octets> {
    let path = device_template(view, variables)?;
    if path.names().next().is_none() {
        let path = variables.render(&path, 0);
        let bytes = bytes_of(view, &path)?;
        warn_of_newline(view, &path, &bytes);
        return Some(Octets::fixed(&bytes));
    }
    let mut files: Vec<Vec<u8>> = Vec::new();
    let mut is_warned = false;
    for place in 0..=variables.index.1 - variables.index.0 {
        let path = variables.render(&path, place);
        let bytes = bytes_of(view, &path)?;
        is_warned = is_warned || warn_of_newline(view, &path, &bytes);
        files.push(bytes);
    }
    Some(Octets::listed(files.iter().map(Vec::as_slice)))
}

/// Says so where text ends in a newline, which is likely an editor's.
fn warn_of_newline(view: &View<'_>, path: &str, bytes: &[u8]) -> bool {
    let has_newline = bytes.ends_with(b"\n") && std::str::from_utf8(bytes).is_ok();
    if has_newline {
        let what = format!("the newline at the end of {path} is one of its bytes");
        view.warn(
            what,
            "remove it, or write \"${file:...}\", which leaves it out",
        );
    }
    has_newline
}

fn bytes_of(view: &View<'_>, path: &str) -> Option<Vec<u8>> {
    let bytes = view.file(path)?;
    if bytes.is_empty() {
        refuse_empty(view, path);
        return None;
    }
    Some(bytes)
}

/// The text with its references replaced. In a template other variables stay, and what a reference
/// holds is escaped, so that a password with `${` in it is no variable.
fn resolve(view: &View<'_>, is_template: bool) -> Option<String> {
    let mut resolved = String::new();
    let mut rest = view.text();
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        resolved += before;
        let Some(length) = from.find('}') else { break };
        let (variable, after) = from.split_at(length + 1);
        match reference(view, &variable[2..length])? {
            Some(value) if is_template => {
                if value.ends_with('$') && after.starts_with(['$', '{']) {
                    let what = "this secret ends in `$`, and a variable follows";
                    return view.refuse(what, "put a character between them");
                }
                resolved += &value.replace("${", "$${");
            }
            Some(value) => resolved += &value,
            None if is_template => resolved += variable,
            None => {
                let what = format!("`{variable}` is no variable here");
                return view.refuse(what, "only ${env:NAME} and ${file:path}");
            }
        }
        rest = after;
    }
    Some(resolved + rest)
}

/// Content of a reference; `Some(None)` if it is no reference but another variable.
fn reference(view: &View<'_>, name: &str) -> Option<Option<String>> {
    if let Some(name) = name.strip_prefix("env:") {
        let value = view.reader().variable(name.trim());
        match &value {
            None => {
                let (what, help) = unset(name.trim());
                view.wrong(what, &help);
            }
            Some(value) if value.is_empty() => {
                let what = format!("the environment variable {} is empty", name.trim());
                return view.refuse(what, "give it a value where muster is started");
            }
            Some(_) => {}
        }
        return value.map(Some);
    }
    let Some(path) = name.strip_prefix("file:") else {
        return Some(None);
    };
    let bytes = view.file(path.trim())?;
    let text = muster_load::text(&bytes).map_err(|error| {
        let help = "write it as UTF-8, or give bytes by `{ file: ... }`";
        view.wrong(format!("{}: {error}", path.trim()), help);
    });
    let text = text.ok()?.trim_end_matches(['\n', '\r']);
    if text != text.trim() {
        let what = format!("{} begins or ends with a blank", path.trim());
        return view.refuse(what, "remove it; `{ file: ... }` takes every byte as it is");
    }
    if text.is_empty() {
        refuse_empty(view, path.trim());
        return None;
    }
    if text.contains('\n') {
        let what = format!("{} has more than one line", path.trim());
        return view.refuse(what, "keep one; `{ file: ... }` takes every byte as it is");
    }
    Some(Some(text.to_owned()))
}

fn refuse_empty(view: &View<'_>, path: &str) {
    let what = format!("{path} is empty");
    view.wrong(what, "write the value into it, or remove the key");
}
