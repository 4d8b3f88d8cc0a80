//! Devices of an Eclipse Hono, whatever protocol they speak.

use muster_load::Octets;
use muster_model::Micros;
use muster_plan::{Credential, Scheme, StreamKind, StreamPlan};
use muster_platform::{Carrier, Dialect, Identity, Protocol, RequestLimits};

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
        return publishes(view, context.is_embedded);
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

/// Checks what Hono takes over MQTT. The embedded gateway knows a device there by its topic alone.
fn publishes(view: &View<'_>, is_embedded: bool) -> Option<()> {
    match view.text_of("kind") {
        "command" => {
            let what = "devices of hono take commands over CoAP only";
            let help = "give the fleet `protocol: coap`, or remove it";
            return view.refuse_at("kind", what, help);
        }
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
    if is_embedded && Dialect::Hono.surface(topic.text()) != topic.text() {
        let what = format!("`{}` does not name its device", topic.text());
        return topic.refuse(what, "such as telemetry/${tenant}/${id}, or remove it");
    }
    Some(())
}

/// Checks the time that a device waits for a command: Hono takes whole seconds, and bounds them.
pub(super) fn waits(class: &Class<'_>, view: &View<'_>, ttd: Micros) -> Option<()> {
    let Some(limits) = class.context.request_limits else {
        return Some(());
    };
    if !ttd.get().is_multiple_of(1_000_000) {
        let what = "Hono takes the time that a device waits in whole seconds";
        return view.refuse_at("ttd", what, "such as 1s");
    }
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
    let code = match class.context.scheme.protocol() {
        Protocol::Http => "413",
        Protocol::Mqtt | Protocol::Coap => "4.13",
    };
    let what = format!(
        "bodies of up to {most} bytes, and {who} refuses ({code}) what is above {}",
        limits.body
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
        Credential::Password { user, .. } => Octets::text(user.clone()),
        Credential::None | Credential::Token { .. } | Credential::Certificate { .. } => return,
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
