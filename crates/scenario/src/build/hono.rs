//! Devices of an Eclipse Hono, whatever protocol they speak.

use muster_load::{Octets, Template};
use muster_model::Micros;
use muster_plan::{Credential, Scheme, StreamKind, StreamPlan};
use muster_platform::{
    ApplicationId, Carrier, Dialect, Endpoint, Identity, PropertyBag, RequestLimits, Who,
};

use super::body::Body;
use super::requests;
use super::stream::Class;
use crate::view::View;

/// Refuses what Hono takes only if it is acknowledged.
pub(super) fn takes(class: &Class<'_>, view: &View<'_>) -> Option<()> {
    let context = class.context;
    if context.dialect != Dialect::Hono {
        return Some(());
    }
    if !context.scheme.protocol().asks {
        return publishes(class, view);
    }
    if view.truth("confirmable") != Some(false) {
        return Some(());
    }
    match view.text_of("kind") {
        "event" => {
            let what = "Hono takes no event that is not confirmable";
            view.refuse_at("confirmable", what, "remove it, or use `kind: telemetry`")
        }
        "command" => requests::is_confirmable(view, "Hono takes no reply that is not confirmable"),
        _ => Some(()),
    }
}

/// Checks what Hono takes over MQTT.
fn publishes(class: &Class<'_>, view: &View<'_>) -> Option<()> {
    match view.text_of("kind") {
        "command" => return takes_commands(class, view),
        "receive" => {
            let what = "devices of hono subscribe to nothing but commands";
            return view.refuse_at("kind", what, "remove the stream");
        }
        "event" if view.text_of("qos") == "0" => {
            let what = "Hono takes no event at QoS 0";
            return view.refuse_at("qos", what, "use `qos: 1`, or `kind: telemetry`");
        }
        _ => {}
    }
    let topic = view.get("topic")?;
    let (path, _) = PropertyBag::split(topic.text());
    let levels: Vec<&str> = path.split('/').collect();
    let word = levels.first().copied().unwrap_or_default();
    if Dialect::Hono.surface(path) == path && !is_endpoint(word) {
        let what = format!("`{path}` is no topic of Hono, which ends a link that publishes there");
        let help = "such as telemetry or event, or remove it";
        if class.context.is_embedded {
            return topic.refuse(what, help);
        }
        topic.warn(what, help);
    }
    let names_device = levels.len() > 2 && !levels[1].is_empty();
    if class.role() == Who::Nobody && !names_device {
        let what = format!("`{path}` does not name its device, and no credential does");
        return topic.refuse(what, "such as telemetry/${tenant}/${id}, or remove it");
    }
    Some(())
}

/// Checks that commands find their devices: those of a gateway are known by the gateway's login.
fn takes_commands(class: &Class<'_>, view: &View<'_>) -> Option<()> {
    let credential = class.view.get("credential")?;
    let is_known = !matches!(credential.text_of("kind"), "none" | "certificate");
    if class.role() != Who::Gateway || is_known {
        return Some(());
    }
    let what = "commands to the devices of a gateway go to the link that logged in as the gateway";
    view.refuse_at(
        "kind",
        what,
        "give the fleet `credential: { kind: password }`",
    )
}

/// True for a word that a topic of messages begins with.
fn is_endpoint(word: &str) -> bool {
    let mut words = [Endpoint::Telemetry, Endpoint::Event].into_iter();
    words.any(|endpoint| {
        [true, false]
            .map(|is_short| endpoint.word(is_short))
            .contains(&word)
    })
}

/// The topic of a stream with the metadata that its messages have there: the content type, which then
/// stands nowhere else, the time to live, the treatment of errors, and, where the fleet subscribes to
/// refusals, the id of each message.
pub(super) fn properties(
    class: &Class<'_>,
    view: &View<'_>,
    topic: Template,
    body: &mut Body,
    position: u8,
) -> Option<Template> {
    let context = class.context;
    if context.dialect != Dialect::Hono || context.scheme.protocol().asks {
        return Some(topic);
    }
    let mut written = topic.source().to_owned();
    if let Some(content_type) = body.content_type.take() {
        PropertyBag::append(
            &mut written,
            PropertyBag::CONTENT_TYPE,
            &content_type,
            false,
        );
    }
    if let Some(ttl) = view.time("ttl") {
        if !ttl.get().is_multiple_of(1_000_000) {
            let what = "Hono takes the time to live of an event in whole seconds";
            return view.refuse_at("ttl", what, "such as 30s");
        }
        let seconds = (ttl.get() / 1_000_000).to_string();
        PropertyBag::append(&mut written, PropertyBag::TTL, &seconds, false);
    }
    if let Some(on_error) = view.get("on-error") {
        PropertyBag::append(&mut written, PropertyBag::ON_ERROR, on_error.text(), false);
    }
    if class.view.truth("error-topic") == Some(true) {
        if view.whole("retry") != Some(0_u8) {
            let what = "a message that is refused by a message is not tried again";
            return view.refuse_at("retry", what, "`retry: 0`, or no `error-topic`");
        }
        let id = ApplicationId::template(position);
        PropertyBag::append(&mut written, PropertyBag::CORRELATION_ID, &id, true);
    }
    Template::parse(&written).ok()
}

/// True if the links of a fleet subscribe to refusals of what they publish.
pub(super) fn has_error_topic(fleet: &View<'_>) -> Option<bool> {
    if fleet.truth("error-topic") != Some(true) {
        return Some(false);
    }
    if super::fleet::devices_per_link(fleet) > 1 {
        let what = "a link of many devices cannot match refusals to their messages yet";
        return fleet.refuse_at("error-topic", what, "remove it, or `gateway`");
    }
    Some(true)
}

/// Checks the time that a device waits for a command: requests name whole seconds, and Hono bounds them.
pub(super) fn waits(class: &Class<'_>, view: &View<'_>, ttd: Micros) -> Option<()> {
    if class.context.scheme.protocol().asks && !ttd.get().is_multiple_of(1_000_000) {
        let what = "a request names the time that its device waits in whole seconds";
        return view.refuse_at("ttd", what, "such as 1s");
    }
    let Some(limits) = class.context.request_limits else {
        return Some(());
    };
    if ttd > limits.ttd {
        let (who, help) = if class.context.is_embedded {
            ("the embedded gateway", "a shorter `ttd`".to_owned())
        } else {
            let help = format!(
                "a shorter `ttd`, or a higher {}, if that is not done",
                limits.ttd_key
            );
            ("by default Hono", help)
        };
        let what = format!(
            "these devices wait {ttd} for a command, and {who} ends that after {}",
            limits.ttd
        );
        view.get("ttd")?.warn(what, &help);
    }
    Some(())
}

/// Limits of the platform on a request: the embedded gateway's as configured, and those of Hono's
/// adapter as it comes from its installation.
pub(super) fn request_limits(
    platform: &View<'_>,
    dialect: Dialect,
    scheme: Scheme,
) -> Option<RequestLimits> {
    let usual = dialect.requests(scheme.protocol()).limits?;
    let written = platform.get("max-payload");
    let body = written.and_then(|_| platform.size("max-payload"));
    Some(RequestLimits {
        body: body.unwrap_or(usual.body),
        ..usual
    })
}

/// Says so where the platform would refuse the longest bodies.
pub(super) fn warn_of_large_bodies(class: &Class<'_>, view: &View<'_>, most: usize) {
    let limits = class.context.request_limits;
    let Some(limits) = limits.filter(|limits| most > limits.body as usize) else {
        return;
    };
    let (who, help) = if class.context.is_embedded {
        (
            "the embedded gateway",
            "a smaller payload, or a higher `platform.max-payload`".to_owned(),
        )
    } else {
        (
            "by default Hono's adapter",
            format!(
                "a smaller payload, or a higher {}, if that is not done",
                limits.body_key
            ),
        )
    };
    let what = format!(
        "bodies of up to {most} bytes, and {who} refuses ({}) what is above {}",
        limits.body_code, limits.body
    );
    if let Some(payload) = view.get("payload") {
        payload.warn(what, &help);
    }
}

/// Says so where the embedded gateway, which takes what stands before the `@` of an identity for the
/// device's name, would know a device by another one, and the fleet needs that it does not. The
/// identity is not shown: it may come from the environment.
pub(super) fn warn_of_other_identities(
    class: &Class<'_>,
    credential: &Credential,
    streams: &[StreamPlan],
) {
    let identity = match credential {
        Credential::Psk { identity, .. } => identity.clone(),
        Credential::Password { user, .. } if class.context.dialect == Dialect::Hono => {
            Octets::text(user.clone())
        }
        Credential::Password { .. }
        | Credential::None
        | Credential::Token { .. }
        | Credential::Certificate { .. } => return,
    };
    let is_by_name = |of: &StreamPlan| {
        let is_commanded = matches!(
            of.kind,
            StreamKind::CommandQuery { .. } | StreamKind::Command { .. }
        );
        is_commanded || of.carrier == Carrier::Order
    };
    let is_gateway = class.view.get("gateway").is_some();
    let is_known = class.context.scheme.protocol().asks;
    if !class.context.is_embedded || !is_known || is_gateway || !streams.iter().any(is_by_name) {
        return;
    }
    let variables = class.variables;
    let other = variables.places_of(&identity).find_map(|place| {
        let (identity_text, name) = (
            variables.octets(&identity, place).ok()?,
            variables.name(place),
        );
        let identity_text = String::from_utf8(identity_text).ok()?;
        let is_other = Identity::parse(&identity_text).is_some_and(|it| it.auth_id != name);
        is_other.then_some(name)
    });
    let user = class.view.get("credential").and_then(|of| of.get("user"));
    if let (Some(name), Some(user)) = (other, user) {
        let what = format!(
            "the embedded gateway takes what stands before the `@` for the device's name, and here that \
             is not `{name}`: no command reaches it, and its messages surface under the other name"
        );
        let help = "the same in `id` of the fleet, or `user: \"${id}@${tenant}\"`";
        user.warn(what, help);
    }
}
