//! `${env:NAME}` and `${file:path}`, resolved once; what they hold is never shown.

use muster_load::Template;

use super::templates::{Variables, template_of};
use crate::plan::Secret;
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
                    view.wrong(what, "put a character between them");
                    return None;
                }
                resolved += &value.replace("${", "$${");
            }
            Some(value) => resolved += &value,
            None if is_template => resolved += variable,
            None => {
                let what = format!("`{variable}` is no variable here");
                view.wrong(what, "only ${env:NAME} and ${file:path}");
                return None;
            }
        }
        rest = after;
    }
    Some(resolved + rest)
}

/// What a reference holds; `Some(None)` if it is no reference but another variable.
fn reference(view: &View<'_>, name: &str) -> Option<Option<String>> {
    if let Some(name) = name.strip_prefix("env:") {
        let value = view.reader().variable(name.trim());
        if value.is_none() {
            let what = format!("the environment variable {} is not set", name.trim());
            view.wrong(what, "set it where muster is started: export NAME=...");
        }
        return value.map(Some);
    }
    let Some(path) = name.strip_prefix("file:") else {
        return Some(None);
    };
    let bytes = view.reader().file(path.trim());
    let bytes = bytes.map_err(|reason| {
        let what = format!("{} cannot be read: {reason}", path.trim());
        view.wrong(what, "paths are relative to the scenario's file");
    });
    let text = String::from_utf8(bytes.ok()?);
    let text = text.map_err(|_| view.wrong("the file is no UTF-8 text", "write it as UTF-8"));
    Some(Some(text.ok()?.trim_end_matches(['\n', '\r']).to_owned()))
}
