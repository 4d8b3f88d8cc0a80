//! Devices that speak HTTP, whatever platform they speak to, and the requests of an API without a dialect.

use muster_load::Template;
use muster_plan::{AnswerId, Credential, HttpCall, HttpSettings, Secret};

use super::fleet::topic_template;
use super::secret::secret_message_template;
use super::stream::Class;
use super::templates::{Variables, device_template};
use crate::view::View;

/// Reads the devices' use of connections.
pub(super) fn client(fleet: &View<'_>) -> Option<HttpSettings> {
    let view = fleet.get("client")?.get("http")?;
    let pipelining = view.whole("pipelining")?;
    let closes = view.text_of("connection") == "per-request";
    if closes && pipelining > 1 {
        let what = "with `connection: per-request` a connection carries one request";
        let help = "remove it, or use `connection: keep-alive`";
        return view.refuse_at("pipelining", what, help);
    }
    Some(HttpSettings {
        pipelining,
        closes,
        obeys_retry_after: fleet.truth("obey-retry-after")?,
        ..HttpSettings::default()
    })
}

/// The key that says where a stream's messages go.
pub(super) fn address<'a>(stream: &View<'a>) -> Option<View<'a>> {
    stream.get("path").or_else(|| stream.get("topic"))
}

/// Reads where a stream's messages go: the topic, or the path without its first slash.
pub(super) fn destination(class: &Class<'_>, stream: &View<'_>) -> Option<Template> {
    match stream.get("path") {
        Some(path) => target(&path, class.variables),
        None => topic_template(&stream.get("topic")?, class.variables),
    }
}

/// Refuses streams of commands on an API for which no convention says how a device gets one.
pub(super) fn takes(class: &Class<'_>, view: &View<'_>) -> Option<()> {
    let kind = view.text_of("kind");
    if !class.context.dialect.has_free_calls || !matches!(kind, "command" | "command-query") {
        return Some(());
    }
    let what = "no convention says how a device of this API gets a command";
    view.refuse_at(
        "kind",
        what,
        "remove the stream, or use a platform such as `kind: hono`",
    )
}

/// Checks that a credential can stand in a header. It is not shown.
pub(super) fn login(
    view: &View<'_>,
    credential: &Credential,
    variables: &Variables<'_>,
) -> Option<()> {
    let (key, template, is_right): (_, _, fn(&str) -> bool) = match credential {
        Credential::Password { user, .. } => ("user", user, is_user),
        Credential::Token { token } => ("secret", token.expose(), is_bearer),
        Credential::None | Credential::Certificate { .. } | Credential::Psk { .. } => {
            return Some(());
        }
    };
    let (what, help) = match key {
        "user" => (
            "the user name",
            "a name without `:` and control characters (RFC 7617 section 2)",
        ),
        _ => (
            "the token",
            "letters, digits and `-._~+/`, then `=` (RFC 6750 section 2.1)",
        ),
    };
    let mut places = variables.places(template);
    let wrong = places.find(|place| !is_right(&variables.render(template, *place)));
    let Some(place) = wrong else {
        return Some(());
    };
    let owner = variables.owner(Some(template), place);
    let written = view.get(key);
    let what = format!("{what}{owner} has a character that `authorization` does not carry");
    written.as_ref().unwrap_or(view).refuse(what, help)
}

/// Returns true for a user name of Basic, which is parted from its password at the first colon.
fn is_user(name: &str) -> bool {
    !name.contains(|c: char| c == ':' || c.is_control())
}

/// Returns true for a token of Bearer.
fn is_bearer(token: &str) -> bool {
    let body = token.trim_end_matches('=');
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !body.is_empty() && body.bytes().all(is_part)
}

/// Longest path, query included, which servers and proxies in wide use take.
const TARGET_MAX: usize = 8_000;

/// Reads a path, which has to be the target of a request for every device (RFC 9112 section 3.2.1).
fn target(view: &View<'_>, variables: &Variables<'_>) -> Option<Template> {
    let template = device_template(view, variables)?;
    let Some(rest) = template.source().strip_prefix('/') else {
        let what = format!(
            "`{}` is no path: it has no `/` at its beginning",
            view.text()
        );
        return view.refuse(what, "such as /v1/devices/${id}/readings");
    };
    let help =
        "percent-encoding, such as `%20` for a space and `%25` for `%` (RFC 3986 section 2.1)";
    // A fault of the text itself is no device's; a variable may be the digits of an escape.
    if let Some(fault) = stray(&template.filled_with("00")) {
        let what = format!("the path `{}` {fault}", view.text().escape_debug());
        return view.refuse(what, help);
    }
    for place in variables.places(&template) {
        let text = variables.render(&template, place);
        let fault = match text.len() > TARGET_MAX {
            true => Some(format!("has more than {TARGET_MAX} bytes")),
            false => stray(&text),
        };
        if let Some(fault) = fault {
            let owner = variables.owner(Some(&template), place);
            let what = format!("the path `{}`{owner} {fault}", text.escape_debug());
            return view.refuse(what, help);
        }
    }
    Template::parse(rest).ok()
}

/// Describes the first character that no target of a request has.
fn stray(text: &str) -> Option<String> {
    let bad = text.char_indices().find(|(at, c)| match c {
        '#' => true,
        '%' => {
            let digits = text.as_bytes().get(at + 1..at + 3);
            !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
        }
        c => !c.is_ascii_graphic(),
    });
    bad.map(|(_, c)| match c {
        '%' => "has a `%` without two hexadecimal digits behind it".to_owned(),
        c => format!("has the character {c:?}, which no path of a request has"),
    })
}

/// Reads the form of a stream's requests, where the dialect leaves it to the scenario. The outer option:
/// whether it could be read.
pub(super) fn call(class: &Class<'_>, view: &View<'_>) -> Option<Option<Box<HttpCall>>> {
    if !class.context.dialect.has_free_calls {
        return Some(None);
    }
    let headers = view.optional("headers", |headers| all_headers(class, headers));
    let success = success(view);
    let id = view.optional("answer-id", answer_id)?;
    Some(Some(Box::new(HttpCall {
        method: view.text_of("method").to_owned(),
        headers: headers?.unwrap_or_default(),
        success: success?,
        id,
    })))
}

/// Headers that the client writes itself, and where their values come from.
const OWN_HEADERS: [(&str, &str); 8] = [
    ("host", "the address in `platform.devices`"),
    ("content-length", "the payload"),
    ("content-type", "`payload: { content-type: ... }`"),
    ("transfer-encoding", "the payload"),
    ("connection", "`client: { http: { connection: ... } }`"),
    ("expect", "the client"),
    ("upgrade", "the client"),
    ("te", "the client"),
];

type Header = (String, Secret<Template>);

fn all_headers(class: &Class<'_>, view: &View<'_>) -> Option<Vec<Header>> {
    let mut before: Vec<&str> = Vec::new();
    let headers = view.entries().map(|(name, value)| {
        let header = is_name(class, &before, name, &value)
            .and_then(|()| header(class.variables, name, &value));
        before.push(name);
        Some((name.to_owned(), header?))
    });
    // Each is read, so that each fault is reported.
    let headers: Vec<Option<Header>> = headers.collect();
    headers.into_iter().collect()
}

/// Checks that a header can have this name, which differs from those before it.
fn is_name(class: &Class<'_>, before: &[&str], name: &str, value: &View<'_>) -> Option<()> {
    if !is_token(name) {
        let what = format!("`{}` is no name of a header", name.escape_debug());
        let help = "letters, digits and `-`, such as x-api-key (RFC 9110 section 5.6.2)";
        return value.refuse(what, help);
    }
    let is_same = |other: &str| other.eq_ignore_ascii_case(name);
    if let Some((_, from)) = OWN_HEADERS.iter().find(|(own, _)| is_same(own)) {
        let what = format!("the value of `{name}` comes from {from}");
        return value.refuse(what, "remove it");
    }
    if before.iter().any(|other| is_same(other)) {
        let what = format!("`{name}` stands here twice, in letters of another case");
        return value.refuse(what, "remove one");
    }
    let credential = class.view.get("credential")?;
    let kind = credential.text_of("kind");
    if is_same("authorization") && matches!(kind, "password" | "token") {
        let what = format!("`credential` of kind {kind} is sent as this header");
        return value.refuse(what, "remove one of both");
    }
    Some(())
}

/// Reads the value of a header, which has to be one for every device and message. It is not shown: it may be
/// a key.
fn header(variables: &Variables<'_>, name: &str, view: &View<'_>) -> Option<Secret<Template>> {
    let value = secret_message_template(view, variables)?;
    let template = value.expose();
    if template.has_stamp() {
        let what = "`${stamp}` is filled in only by a carrier, and no carrier is a header";
        return view.refuse(
            what,
            "put it into the payload, or use ${run}, ${id} and ${seq}",
        );
    }
    for place in variables.places(template) {
        // Of several words one is chosen by chance, so that the source counts too.
        if !is_value(template.source()) || !is_value(&variables.render(template, place)) {
            let owner = variables.owner(Some(template), place);
            let what = format!(
                "the value of `{name}`{owner} has a line break or another control character, which no header carries"
            );
            return view.refuse(what, "remove it, or mend the file that it comes from");
        }
    }
    Some(value)
}

/// Returns true for a token (RFC 9110 section 5.6.2).
fn is_token(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_part)
}

/// Returns true for the value of a field (RFC 9110 section 5.5).
pub(super) fn is_value(text: &str) -> bool {
    !text
        .bytes()
        .any(|byte| byte.is_ascii_control() && byte != b'\t')
}

/// Reads the codes that accept a message, as ranges.
fn success(view: &View<'_>) -> Option<Vec<(u16, u16)>> {
    let (all, mut items) = (view.get("success")?, view.list("success"));
    if !all.is_list() {
        items.push(all);
    } else if items.is_empty() {
        return all.refuse("no code accepts a message", "such as [ 200, 202 ], or 2xx");
    }
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    let mut are_right = Some(());
    for item in items {
        let Some((first, last)) = range(item.text()) else {
            let what = format!("`{}` is no status code of an answer", item.text());
            are_right = item.refuse(what, "such as 201, 200-204 or 2xx, from 200 to 599");
            continue;
        };
        if ranges.iter().any(|of| of.0 <= last && first <= of.1) {
            let what = format!("`{}` has codes that stand here already", item.text());
            are_right = item.refuse(what, "keep one of both");
        }
        ranges.push((first, last));
    }
    are_right.map(|()| ranges)
}

/// The first and the last code of `201`, `200-204` or `2xx`.
fn range(text: &str) -> Option<(u16, u16)> {
    let code = |text: &str| {
        let is_plain = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        let code = text.parse::<u16>().ok().filter(|_| is_plain);
        code.filter(|code| (200..600).contains(code))
    };
    if let Some(class) = text.strip_suffix("xx") {
        let first = code(&format!("{class}00"))?;
        return Some((first, first + 99));
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (code(first.trim())?, code(last.trim())?);
    (first <= last).then_some((first, last))
}

fn answer_id(view: &View<'_>) -> Option<AnswerId> {
    match (view.get("header"), view.get("pointer")) {
        (Some(header), None) if is_token(header.text()) => {
            Some(AnswerId::Header(header.text().to_ascii_lowercase()))
        }
        (Some(header), None) => {
            let what = format!("`{}` is no name of a header", header.text().escape_debug());
            header.refuse(what, "such as location (RFC 9110 section 5.6.2)")
        }
        (None, Some(pointer)) if pointer.text().starts_with('/') => {
            Some(AnswerId::Pointer(pointer.text().to_owned()))
        }
        (None, Some(pointer)) => {
            let what = format!("`{}` is no JSON pointer", pointer.text());
            pointer.refuse(what, "begin with `/`, such as /id (RFC 6901)")
        }
        (Some(_), Some(second)) => second.refuse(
            "the id is in two places",
            "keep one of `header` and `pointer`",
        ),
        (None, None) => view.refuse(
            "the place of the id is not said",
            "such as { header: location } or { pointer: /id }",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_single_ones_ranges_and_classes() {
        assert_eq!(range("201"), Some((201, 201)));
        assert_eq!(range("200-204"), Some((200, 204)));
        assert_eq!(range("2xx"), Some((200, 299)));
        for wrong in [
            "", "20", "2x", "xx", "199", "600", "204-200", "+20", "1xx", "200-",
        ] {
            assert_eq!(range(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn names_and_tokens_can_stand_in_a_header() {
        assert!(is_user("sensor1@DEFAULT_TENANT") && is_user("\u{e4}"));
        assert!(!is_user("ns:d-1") && !is_user("a\n"));
        assert!(is_bearer("eyJhbGci.e30.AA-_") && is_bearer("dG9rZW4=="));
        for wrong in ["", "=", "a b", "a=b", "a\r\n", "\u{e4}"] {
            assert!(!is_bearer(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_target_has_visible_characters_and_whole_escapes() {
        for right in ["/", "/v1/d-1?a=b&c=%20", "/a//b", "/~x;y=(1)"] {
            assert_eq!(stray(right), None, "{right}");
        }
        for wrong in ["/a b", "/a#b", "/\u{e4}", "/a\r\n", "/%2", "/%zz", "/100%"] {
            assert!(stray(wrong).is_some(), "{wrong}");
        }
    }
}
