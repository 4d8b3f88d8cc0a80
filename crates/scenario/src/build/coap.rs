//! What is particular to devices that speak CoAP.

use muster_load::Template;
use muster_model::Micros;
use muster_plan::{
    Ack, CoapSettings, Credential, Endpoint, FleetPlan, Scheme, SocketUse, StreamKind, StreamPlan,
};
use muster_platform::{
    Carrier, Dialect, Identity, Protocol, RequestLimits, SEGMENT_MAX, SEGMENTS_MAX,
};
use muster_protocol::coap::{ClientSettings, Transmission, content_format};
use muster_protocol::mqtt::Qos;

use super::body::Body;
use super::stream::{Class, Delivery};
use super::target;
use crate::feasibility::{largest, peak};
use crate::view::View;

/// Message ids of a pair of endpoints (RFC 7252 section 3).
const MESSAGE_IDS: f64 = 65_536.0;

/// Whether the platform can be spoken to over the protocol that the addresses name.
pub(super) fn speaks(platform: &View<'_>, dialect: Dialect) -> Option<()> {
    let scheme = target::scheme(platform);
    if dialect.speaks(scheme.protocol()) {
        return Some(());
    }
    let (what, help) = if dialect.speaks(Protocol::Coap) {
        let what = format!("over `{}` {dialect} is not yet built", scheme.name());
        (what, "connect with `coap` or `coaps`")
    } else {
        let what = format!("{dialect} is not spoken over `{}`", scheme.name());
        let help = "use `kind: hono`, or `dialect: hono` with `kind: gateway`";
        (what, help)
    };
    platform.list("devices").first()?.wrong(what, help);
    None
}

/// How devices speak CoAP, but for their sockets.
pub(super) fn client(fleet: &View<'_>) -> Option<CoapSettings> {
    let view = fleet.get("client")?.get("coap")?;
    Some(CoapSettings::new(
        transmission(&view)?,
        view.whole("nstart")?,
        fleet.truth("obey-retry-after")?,
    ))
}

fn transmission(view: &View<'_>) -> Option<Transmission> {
    let transmission = Transmission {
        ack_timeout: view.time("ack-timeout")?,
        ack_random_factor: view.factor("ack-random-factor")?,
        max_retransmit: view.whole("max-retransmit")?,
        exchange_lifetime: view.time("exchange-lifetime")?,
        non_lifetime: view.time("non-lifetime")?,
    };
    if transmission.ack_timeout == Micros::ZERO {
        let what = "no acknowledgement comes at once";
        view.get("ack-timeout")?.wrong(what, "such as 2s");
        return None;
    }
    let wait = transmission.max_transmit_wait();
    if transmission.exchange_lifetime < wait {
        let what = format!(
            "an exchange is over after {}, and its last copy waits until {wait}",
            transmission.exchange_lifetime
        );
        let help = "a longer `exchange-lifetime`, or fewer or shorter waits";
        view.get("exchange-lifetime")?.wrong(what, help);
        return None;
    }
    if transmission.non_lifetime == Micros::ZERO {
        let what = "no answer comes at once";
        view.get("non-lifetime")?.wrong(what, "such as 145s");
        return None;
    }
    Some(transmission)
}

/// How the messages of a stream are delivered.
pub(super) fn delivery(view: &View<'_>) -> Option<Delivery> {
    let is_confirmable = view.truth("confirmable")?;
    let ack = match (view.text_of("ack"), is_confirmable) {
        ("none", true) => {
            let what = "a CON is always answered";
            let help = "use `confirmable: false`, or `ack: transport`";
            view.get("ack")?.wrong(what, help);
            return None;
        }
        ("application", _) => {
            let what = "over CoAP the application's word is the response";
            view.get("ack")?.wrong(what, "use `ack: transport`");
            return None;
        }
        ("none", false) => Ack::None,
        _ => Ack::Transport,
    };
    if view.text_of("kind") == "event" && !is_confirmable {
        let what = "Hono takes no event that is not confirmable";
        view.get("confirmable")?
            .wrong(what, "remove it, or use `kind: telemetry`");
        return None;
    }
    Some(Delivery {
        qos: match ack {
            Ack::None => Qos::AtMostOnce,
            Ack::Transport | Ack::Application => Qos::AtLeastOnce,
        },
        is_confirmable,
        ack,
        unanswered: ("a NON with `ack: none`", "use `confirmable: true`"),
    })
}

/// Refuses streams that only devices which subscribe can have.
pub(super) fn takes_kind(view: &View<'_>) -> Option<()> {
    if view.text_of("kind") != "receive" {
        return Some(());
    }
    let what = "over CoAP a device of Hono subscribes to nothing: it hears the answers to its own requests";
    let help = "use `kind: command-query`, whose answer may bring a command, or remove the stream";
    view.get("kind")?.wrong(what, help);
    None
}

/// What asks for a command is confirmable, and tells for how many whole seconds the device waits.
pub(super) fn asks(class: &Class<'_>, view: &View<'_>, ttd: Micros) -> Option<()> {
    let what = "of a query that is not confirmable nobody knows whether it was taken";
    is_confirmable(view, what)?;
    if !ttd.get().is_multiple_of(1_000_000) {
        let what = "Hono is told in whole seconds for how long a device waits";
        view.get("ttd")?.wrong(what, "such as 1s");
        return None;
    }
    let limits = class.seat.request_limits;
    if let Some(limits) = limits.filter(|limits| ttd > limits.ttd) {
        let (who, help) = if class.seat.is_embedded {
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

/// What the platform takes in a request: the embedded gateway as it was told to, and Hono's adapter
/// as it comes from its installation.
pub(super) fn request_limits(platform: &View<'_>, dialect: Dialect) -> Option<RequestLimits> {
    let usual = dialect.requests(Protocol::Coap).limits?;
    let told = platform.get("max-payload");
    let body = told.and_then(|_| platform.size("max-payload"));
    Some(RequestLimits {
        body: body.unwrap_or(usual.body),
        ..usual
    })
}

/// Says so where the platform would refuse the longest bodies.
fn warn_of_large_bodies(class: &Class<'_>, view: &View<'_>, most: usize) {
    let limits = class.seat.request_limits;
    let Some(limits) = limits.filter(|limits| most > limits.body as usize) else {
        return;
    };
    let (who, help) = if class.seat.is_embedded {
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
        "bodies of up to {most} bytes, and {who} refuses (4.13) what is above {}",
        limits.body
    );
    if let Some(payload) = view.get("payload") {
        payload.warn(what, &help);
    }
}

/// Whether messages have a form in CoAP, whole: nothing of them is left out on the way.
pub(super) fn can_be_said(
    class: &Class<'_>,
    view: &View<'_>,
    (body, topic): (&Body, &Template),
    ack: Ack,
) -> Option<()> {
    let block = ClientSettings::default().block_size.bytes();
    if ack == Ack::None && body.most > block {
        let what = format!(
            "bodies of up to {} bytes go in blocks of {block}, each after the answer to the one before, and \
             nobody waits for the answers to these NONs",
            body.most
        );
        let help = "`ack: transport`, or `confirmable: true`, or a smaller payload";
        view.get("payload")?.wrong(what, help);
        return None;
    }
    warn_of_large_bodies(class, view, body.most);
    let unknown = body.content_type.as_deref();
    if let Some(unknown) = unknown.filter(|it| content_format::of_media_type(it).is_none()) {
        let what = format!("CoAP has no number for `{unknown}`, so that it could not be told");
        let help =
            "such as application/json, application/cbor, text/plain or application/octet-stream";
        let payload = view.get("payload")?;
        payload.get("content-type")?.wrong(what, help);
        return None;
    }
    for device in class.variables.places(topic) {
        let path = class.variables.render(topic, device);
        let (segments, longest) = (path.split('/').count(), path.split('/').map(str::len).max());
        if segments > SEGMENTS_MAX || longest > Some(SEGMENT_MAX) {
            let what = format!("`{path}` cannot be the path of a request");
            let help = format!("at most {SEGMENTS_MAX} segments of at most {SEGMENT_MAX} bytes");
            view.get("topic")?.wrong(what, &help);
            return None;
        }
    }
    Some(())
}

/// How replies to commands are delivered.
pub(super) fn replies(view: &View<'_>) -> Option<Qos> {
    is_confirmable(view, "Hono takes no reply that is not confirmable")?;
    Some(Qos::AtLeastOnce)
}

fn is_confirmable(view: &View<'_>, what: &str) -> Option<()> {
    if view.truth("confirmable")? {
        return Some(());
    }
    view.get("confirmable")?.wrong(what, "remove it");
    None
}

/// Says so where a fleet takes commands and never asks for one.
pub(super) fn warn_of_deaf_devices(fleet: &View<'_>, commands: &View<'_>) {
    let streams = fleet.list("streams");
    let mut kinds = streams.iter().map(|stream| stream.text_of("kind"));
    if kinds.all(|kind| kind != "command-query") {
        let what = "a command comes in the answer to a query, and these devices ask for none";
        let help = "add `{ kind: command-query, every: 10s }` to the streams of the fleet";
        commands.warn(what, help);
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
    let Credential::Psk { identity, .. } = credential else {
        return;
    };
    let is_by_name = |of: &StreamPlan| {
        let is_commanded = matches!(
            of.kind,
            StreamKind::CommandQuery { .. } | StreamKind::Command { .. }
        );
        is_commanded || of.carrier == Carrier::Order
    };
    let is_gateway = class.view.get("gateway").is_some();
    if !class.seat.is_embedded || is_gateway || !streams.iter().any(is_by_name) {
        return;
    }
    let variables = class.variables;
    let other = variables.places_of(identity).find_map(|place| {
        let (told, name) = (
            variables.octets(identity, place).ok()?,
            variables.name(place),
        );
        let told = String::from_utf8(told).ok()?;
        let is_other = Identity::parse(&told).is_some_and(|it| it.auth_id != name);
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

/// The embedded gateway asks devices over DTLS for a certificate if it knows who vouches for them, and
/// then lets in nobody without one, but for shared keys.
pub(super) fn gateway_knows(view: &View<'_>, fleet: &FleetPlan, asks: bool) -> Option<()> {
    let (what, help) = match (&fleet.credential, asks) {
        (Credential::Certificate { .. }, true) | (Credential::None, false) => return Some(()),
        (Credential::Psk { .. } | Credential::Password { .. } | Credential::Token { .. }, _) => {
            return Some(());
        }
        (Credential::Certificate { .. }, false) => (
            "the embedded gateway asks no device for its certificate",
            "add `platform.tls.client-ca`, the file of who vouches for them",
        ),
        (Credential::None, true) => (
            "with `platform.tls.client-ca` the embedded gateway lets in no device that proves nothing",
            "`credential: { kind: certificate, cert: ... }` or `kind: psk`, or remove `client-ca`",
        ),
    };
    let credential = view.get("credential");
    credential.as_ref().unwrap_or(view).wrong(what, help);
    None
}

/// Deals the links of a fleet to sockets, such that message ids last: each may be used once within
/// `EXCHANGE_LIFETIME` (RFC 7252 section 4.4).
///
/// Over DTLS each link has ids of its own; its sockets are counted alike all the same, so that either
/// kind meets a server with the same number of addresses.
pub(super) fn deal(
    fleet: &View<'_>,
    settings: CoapSettings,
    streams: &[StreamPlan],
    (scheme, links): (Scheme, u32),
) -> Option<CoapSettings> {
    let lifetime_s = settings.client.transmission.exchange_lifetime.as_secs_f64();
    let ids_s: f64 = streams.iter().map(ids_a_second).sum();
    let ids = ids_s * lifetime_s / f64::from(links);
    let is_shared = fleet.text_of("sockets") == "shared";
    let each = links_of_a_socket(ids);
    if ids > MESSAGE_IDS || is_shared && each == 0 {
        let what = format!(
            "{ids_s:.0} messages a second from {links} sockets use more than the 65536 message ids \
             that each has in {lifetime_s:.0} s"
        );
        let help = "more devices, a lower rate, or a shorter `client.coap.exchange-lifetime`";
        fleet.get("streams")?.wrong(what, help);
        return None;
    }
    if !is_shared {
        return Some(settings);
    }
    let links = links.div_ceil(links.div_ceil(each));
    Some(settings.sharing(match scheme.is_dtls() {
        true => SocketUse::SharedPort { links },
        false => SocketUse::SharedEndpoint { links },
    }))
}

/// How many links may share a socket if each uses so many message ids within their lifetime.
///
/// Of the ids a block is always being used up ([`muster_protocol::coap`] counts them in blocks of 256), and
/// how many are due within a lifetime varies: where arrivals are random, by the square root of their
/// number, of which four are left free.
fn links_of_a_socket(ids: f64) -> u32 {
    const BLOCK: f64 = 256.0;
    let usable = MESSAGE_IDS - BLOCK - 4.0 * MESSAGE_IDS.sqrt();
    // No more links than exchanges that may be open at once, however seldom they send.
    let links = if ids > 0.0 { usable / ids } else { usable };
    links.min(usable) as u32
}

/// Message ids that a stream uses in a second, one for each block of a body.
fn ids_a_second(stream: &StreamPlan) -> f64 {
    let block = ClientSettings::default().block_size.bytes() as u32;
    let blocks = largest(&stream.payload).div_ceil(block).max(1);
    // The command that comes for a query may be replied to.
    let replies = u32::from(matches!(stream.kind, StreamKind::CommandQuery { .. }));
    peak(&stream.schedule) * f64::from(blocks + replies)
}

/// The business application finds the embedded gateway at a free port of its own.
pub(super) fn is_northbound(url: &View<'_>, endpoint: &Endpoint) {
    if endpoint.scheme == Scheme::Mqtt && endpoint.port == 0 {
        return;
    }
    let what =
        format!("beside CoAP the embedded gateway has a broker at a free port, not {endpoint}");
    url.wrong(what, "remove `url`");
}
