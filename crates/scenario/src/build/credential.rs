//! Credentials that devices log in with.

use muster_load::{Octets, Template};
use muster_plan::{Credential, Scheme, Secret};
use muster_platform::{Protocol, SEGMENT_MAX};

use super::fleet::FleetContext;
use super::http;
use super::secret::{octets, secret_template};
use super::templates::{Variables, template_of};
use crate::view::View;

pub(super) fn credential(
    view: &View<'_>,
    context: &FleetContext<'_>,
    variables: &Variables<'_>,
) -> Option<Credential> {
    let scheme = context.scheme;
    let requests = context.dialect.requests(scheme.protocol());
    if requests.path_token.is_some() {
        return token_in_path(view, context, variables);
    }
    is_of_protocol(view, scheme)?;
    let credential = match view.text_of("kind") {
        "none" => Credential::None,
        "certificate" => certificate(view, variables)?,
        "token" => token(view, variables)?,
        "psk" => psk(view, variables)?,
        _ => password(view, variables)?,
    };
    match scheme.protocol() {
        Protocol::Http => http::login(view, &credential, variables)?,
        Protocol::Mqtt | Protocol::Coap => {}
    }
    Some(credential)
}

/// Reads the token that each request has in its path.
fn token_in_path(
    view: &View<'_>,
    context: &FleetContext<'_>,
    variables: &Variables<'_>,
) -> Option<Credential> {
    let (dialect, protocol) = (context.dialect, context.scheme.protocol().name);
    if view.text_of("kind") != "token" {
        let what = format!(
            "over {protocol} {dialect} knows a device by the token in the path of its requests"
        );
        return view.refuse_at("kind", what, "use `kind: token`, or remove `credential`");
    }
    let credential = token(view, variables)?;
    let Credential::Token { token } = &credential else {
        return Some(credential);
    };
    let template = token.expose();
    let mut places = variables.places(template);
    let wrong = places.find(|place| {
        let token = variables.render(template, *place);
        token.contains('/') || token.len() > SEGMENT_MAX
    });
    let Some(place) = wrong else {
        return Some(credential);
    };
    let owner = variables.owner(Some(template), place);
    let what = format!("the token{owner} cannot be one segment of a path");
    let help = format!("at most {SEGMENT_MAX} bytes, without `/`");
    let secret = view.get("secret");
    secret.as_ref().unwrap_or(view).refuse(what, &help)
}

/// Checks that links can prove themselves by this kind over their protocol. Where a certificate may
/// be shown is checked for all fleets together.
fn is_of_protocol(view: &View<'_>, scheme: Scheme) -> Option<()> {
    let (kind, name) = (view.text_of("kind"), scheme.name());
    let protocol = scheme.protocol();
    let help = match kind {
        "none" | "certificate" => return Some(()),
        "psk" if scheme.is_dtls() => return Some(()),
        "psk" => "connect with `coaps`, or use another kind",
        _ if protocol.has_logins => return Some(()),
        _ if scheme.is_dtls() => "use `kind: psk` or `kind: certificate`",
        _ if protocol.is_in_datagrams => {
            "connect with `coaps` and use `kind: psk`, or use `kind: none`"
        }
        _ => "use `kind: none`",
    };
    let what = format!("over `{name}` nobody proves himself by `{kind}`");
    view.refuse_at("kind", what, help)
}

fn psk(view: &View<'_>, variables: &Variables<'_>) -> Option<Credential> {
    let Some(secret_view) = view.get("secret") else {
        let help = "add `secret: \"${env:DEVICE_KEY}\"`, or a column of `data`";
        return view.refuse("a credential of kind psk has no secret", help);
    };
    let user = view.get("user");
    let identity = match &user {
        Some(user) => octets(user, variables)?,
        None => Octets::text(Template::parse("${id}").ok()?),
    };
    let secret = octets(&secret_view, variables)?;
    let user = user.as_ref().unwrap_or(view);
    has_length(user, &IDENTITY, &identity, variables)?;
    has_length(&secret_view, &KEY, &secret, variables)?;
    Some(Credential::Psk {
        identity,
        secret: Secret::new(secret),
    })
}

/// A kind of bytes and how many of them are taken.
struct Length {
    what: &'static str,
    most: usize,
    help: &'static str,
}

const IDENTITY: Length = Length {
    what: "identity",
    most: 128,
    help: "1 to 128 bytes, which every server takes (RFC 4279 section 5.3)",
};
const KEY: Length = Length {
    what: "key",
    most: 64,
    help: "1 to 64 bytes, which every server takes (RFC 4279 section 5.3)",
};
const SECRET: Length = Length {
    what: "secret",
    most: 65_535,
    help: "1 to 65535 bytes (MQTT 5 section 3.1.3.6)",
};

/// Checks that the bytes of all devices are neither none nor too many. None of them is shown.
fn has_length(
    view: &View<'_>,
    wanted: &Length,
    octets: &Octets,
    variables: &Variables<'_>,
) -> Option<()> {
    let length = |place: u32| {
        variables
            .octets(octets, place)
            .map_or(0, |bytes| bytes.len())
    };
    let lengths = variables
        .places_of(octets)
        .map(|place| (place, length(place)));
    let mut wrong = lengths.filter(|(_, bytes)| !(1..=wanted.most).contains(bytes));
    let Some((place, bytes)) = wrong.next() else {
        return Some(());
    };
    let owner = variables.owner(octets.source_template(), place);
    let what = match bytes {
        0 => format!("the {}{owner} is empty", wanted.what),
        bytes => format!("the {}{owner} has {bytes} bytes", wanted.what),
    };
    view.refuse(what, wanted.help)
}

/// A user name or token of MQTT as a template: neither can be bytes that are no text.
fn user_name(view: &View<'_>, variables: &Variables<'_>) -> Option<Secret<Template>> {
    if view.is_map() {
        let what = "an MQTT user name is text in UTF-8 (MQTT 5 section 3.1.3.5), and not bytes";
        return view.refuse(
            what,
            "write it as text; bytes may be the `secret` of kind password, or of kind psk",
        );
    }
    secret_template(view, variables)
}

fn token(view: &View<'_>, variables: &Variables<'_>) -> Option<Credential> {
    let token = match view.get("secret") {
        Some(secret) => user_name(&secret, variables)?,
        None => Secret::new(Template::parse("${id}").ok()?),
    };
    let secret = view.get("secret");
    let is_text = is_user_name(secret.as_ref().unwrap_or(view), token.expose(), variables);
    is_text.then_some(Credential::Token { token })
}

fn password(view: &View<'_>, variables: &Variables<'_>) -> Option<Credential> {
    let Some(secret_view) = view.get("secret") else {
        let help = "add `secret: \"${env:DEVICE_SECRET}\"`";
        return view.refuse("a credential of kind password has no secret", help);
    };
    let user = match view.get("user") {
        Some(user) => user_name(&user, variables).map(|user| user.expose().clone()),
        None => Template::parse("${id}").ok(),
    };
    let secret = octets(&secret_view, variables);
    let user = user?;
    if !is_user_name(view.get("user").as_ref().unwrap_or(view), &user, variables) {
        return None;
    }
    let secret = secret?;
    has_length(&secret_view, &SECRET, &secret, variables)?;
    Some(Credential::Password {
        user,
        secret: Secret::new(secret),
    })
}

/// The paths of a device's certificate and key: a folder that has both for each device, a path for
/// each, or one file that holds both.
fn certificate(view: &View<'_>, variables: &Variables<'_>) -> Option<Credential> {
    let Some(cert) = view.get("cert") else {
        let help = "add `cert: \"certs/${id}.pem\"`";
        return view.refuse("a credential of kind certificate has no certificate", help);
    };
    let folder = cert.text();
    if folder.ends_with('/') {
        if let Some(stray) = view.get("key") {
            let what = "`key` has no meaning where `cert` is a folder, which has the keys too";
            return stray.refuse(what, "remove it, or name the file of the certificate");
        }
        return Some(Credential::Certificate {
            cert: path(&cert, &format!("{folder}${{id}}.pem"), variables)?,
            key: path(&cert, &format!("{folder}${{id}}.key"), variables)?,
            place: cert.place(),
        });
    }
    let key = view.get("key").unwrap_or_else(|| cert.clone());
    Some(Credential::Certificate {
        cert: path(&cert, cert.text(), variables)?,
        key: path(&key, key.text(), variables)?,
        place: cert.place(),
    })
}

/// A path that may differ from device to device, as it is opened later. What folder the scenario
/// lies in is no template.
fn path(view: &View<'_>, path: &str, variables: &Variables<'_>) -> Option<Template> {
    let folder = if path.starts_with('/') {
        String::new()
    } else {
        view.reader().folder().replace("${", "$${")
    };
    template_of(view, &format!("{folder}{path}"), variables)
}

/// A user name travels as text, in which NUL is forbidden. The text is not shown: it may be a token.
fn is_user_name(view: &View<'_>, template: &Template, variables: &Variables<'_>) -> bool {
    for place in variables.places(template) {
        let name = variables.render(template, place);
        let (fault, help) = match (name.is_empty(), name.contains('\0')) {
            (true, _) => ("is empty", "give each row of `data` one"),
            (_, true) => (
                "holds a NUL",
                "MQTT forbids it in user names (MQTT-1.5.4-2): mend the file",
            ),
            _ => continue,
        };
        let owner = variables.owner(Some(template), place);
        view.wrong(format!("the user name{owner} {fault}"), help);
        return false;
    }
    true
}
