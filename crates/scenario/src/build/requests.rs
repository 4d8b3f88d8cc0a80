//! Messages that are requests: their delivery, and what one of them can hold.

use muster_load::Template;
use muster_plan::Ack;
use muster_platform::{Dialect, Protocol, SEGMENT_MAX, SEGMENTS_MAX};
use muster_protocol::coap::{ClientSettings, content_format};
use muster_protocol::mqtt::Qos;

use super::body::Body;
use super::http;
use super::stream::{Class, Delivery};
use crate::view::View;

/// Reads the delivery of a stream's messages. A protocol without the key `confirmable` answers each.
pub(super) fn delivery(view: &View<'_>, protocol: Protocol, dialect: Dialect) -> Option<Delivery> {
    let confirmable = view.truth("confirmable");
    if confirmable.is_none() {
        is_answered(view, protocol, dialect)?;
    }
    let is_confirmable = confirmable.unwrap_or(true);
    let ack = match (view.text_of("ack"), is_confirmable) {
        ("none", true) => {
            let what = "a CON is always answered";
            let help = "use `confirmable: false`, or `ack: transport`";
            return view.refuse_at("ack", what, help);
        }
        ("application", _) => {
            let what = format!(
                "over {} the application's word is the response",
                protocol.name
            );
            return view.refuse_at("ack", what, "use `ack: transport`");
        }
        ("none", false) => Ack::None,
        _ => Ack::Transport,
    };
    Some(Delivery {
        qos: match ack {
            Ack::None => Qos::AtMostOnce,
            Ack::Transport | Ack::Application => Qos::AtLeastOnce,
        },
        // Where there is a level, it says how surely a message travels on.
        is_confirmable: is_confirmable && view.text_of("qos") != "0",
        ack,
        unanswered: ("a NON with `ack: none`", "use `confirmable: true`"),
    })
}

/// Checks what a request without the key `confirmable` says of its delivery: each is answered, at whatever
/// level.
fn is_answered(view: &View<'_>, protocol: Protocol, dialect: Dialect) -> Option<()> {
    let name = protocol.name;
    if view.text_of("ack") == "none" {
        let what = format!("a request over {name} is always answered");
        return view.refuse_at("ack", what, "use `ack: transport`, or remove it");
    }
    if view.text_of("qos") == "2" {
        let what = format!("{dialect} takes nothing at QoS 2 over {name}");
        return view.refuse_at("qos", what, "at most 1");
    }
    Some(())
}

/// Checks that messages can be sent whole: nothing of them is left out on the way.
pub(super) fn can_be_sent(
    class: &Class<'_>,
    view: &View<'_>,
    (body, topic): (&Body, &Template),
    ack: Ack,
) -> Option<()> {
    let protocol = class.context.scheme.protocol();
    let block = ClientSettings::default().block_size.bytes();
    if protocol.is_in_datagrams && ack == Ack::None && body.most > block {
        let what = format!(
            "bodies of up to {} bytes go in blocks of {block}, each after the answer to the one before, and \
             nobody waits for the answers to these NONs",
            body.most
        );
        let help = "`ack: transport`, or `confirmable: true`, or a smaller payload";
        return view.refuse_at("payload", what, help);
    }
    let media_type = body.content_type.as_deref();
    match protocol {
        Protocol::Mqtt => Some(()),
        Protocol::Coap => {
            has_number(view, media_type)?;
            is_path(class, view, topic)
        }
        Protocol::Http => is_in_header(view, media_type),
    }
}

/// Checks that the platform has a path for what devices send on a topic.
pub(super) fn has_path(class: &Class<'_>, topic: &View<'_>) -> Option<()> {
    let (dialect, protocol) = (class.context.dialect, class.context.scheme.protocol());
    if (dialect.requests(protocol).has)(topic.text()) {
        return Some(());
    }
    let what = format!(
        "{dialect} has no path for `{}` over {}",
        topic.text(),
        protocol.name
    );
    topic.refuse(
        what,
        "such as v1/devices/me/telemetry; links of a gateway speak MQTT",
    )
}

/// Checks that CoAP has a number for a media type.
fn has_number(view: &View<'_>, media_type: Option<&str>) -> Option<()> {
    let unknown = media_type.filter(|it| content_format::of_media_type(it).is_none());
    let Some(unknown) = unknown else {
        return Some(());
    };
    let what = format!("CoAP has no number for `{unknown}`, so that it cannot be sent");
    let help = "such as application/json, application/cbor, text/plain or application/octet-stream";
    view.get("payload")?.refuse_at("content-type", what, help)
}

/// Checks that a header can carry a media type.
fn is_in_header(view: &View<'_>, media_type: Option<&str>) -> Option<()> {
    let Some(stray) = media_type.filter(|it| !http::is_value(it)) else {
        return Some(());
    };
    let stray = stray.escape_debug();
    let what = format!("`{stray}` is no media type that a header carries");
    view.get("payload")?
        .refuse_at("content-type", what, "such as application/json")
}

/// Checks that the paths of a stream fit the options of a request.
fn is_path(class: &Class<'_>, view: &View<'_>, topic: &Template) -> Option<()> {
    for device in class.variables.places(topic) {
        let path = class.variables.render(topic, device);
        let (segments, longest) = (path.split('/').count(), path.split('/').map(str::len).max());
        if segments > SEGMENTS_MAX || longest > Some(SEGMENT_MAX) {
            let what = format!("`{path}` cannot be the path of a request");
            let help = format!("at most {SEGMENTS_MAX} segments of at most {SEGMENT_MAX} bytes");
            return view.refuse_at("topic", what, &help);
        }
    }
    Some(())
}

pub(super) fn is_confirmable(view: &View<'_>, what: &str) -> Option<()> {
    match view.truth("confirmable") {
        Some(false) => view.refuse_at("confirmable", what, "remove it"),
        Some(true) | None => Some(()),
    }
}
