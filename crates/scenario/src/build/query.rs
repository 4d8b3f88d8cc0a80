//! Queries: messages that ask for a command.

use muster_plan::{Policy, StreamKind, StreamPlan};
use muster_protocol::mqtt::Qos;

use super::command::one_device_a_link;
use super::fleet::devices_per_link;
use super::hono;
use super::requests;
use super::stream::{Class, in_flight};
use crate::view::View;

/// Reads the time that a device waits for a command; a query's time-out adds to it.
pub(super) fn kind(class: &Class<'_>, view: &View<'_>, qos: Qos) -> Option<StreamKind> {
    let ttd = view.time("ttd")?;
    many_can_ask(class, view)?;
    let what = "of a query that is not confirmable nobody knows whether it was taken";
    requests::is_confirmable(view, what)?;
    hono::waits(class, view, ttd)?;
    if !class.context.dialect.has_northbound {
        let what = format!("with {} no query reaches a backend", class.context.dialect);
        return view.refuse_at("kind", what, "remove the stream; queries work with `mqtt`");
    }
    if qos == Qos::AtMostOnce {
        let what = "no answer shows that a query at QoS 0 was accepted";
        return view.refuse_at("qos", what, "use `qos: 1`");
    }
    if let Some(retry) = view
        .get("retry")
        .filter(|_| view.whole("retry") != Some(0_u8))
    {
        return retry.refuse("a query is not tried again: the next one is", "remove it");
    }
    let streams = class.view.list("streams");
    if !streams
        .iter()
        .any(|stream| stream.text_of("kind") == "command")
    {
        let help = "add `{ kind: command }` to the streams of the fleet";
        return view.refuse("these devices ask for commands and take none", help);
    }
    Some(StreamKind::CommandQuery { ttd })
}

/// Checks that each device of a link may ask for commands by itself.
fn many_can_ask(class: &Class<'_>, view: &View<'_>) -> Option<()> {
    if !class.context.scheme.protocol().asks {
        return one_device_a_link(class, view, "queries");
    }
    let loop_ = view.get("loop")?;
    if devices_per_link(class.view) == 1
        || loop_.get("overflow").is_none_or(|it| it.text() == "shed")
    {
        return Some(());
    }
    let what = "on a link of many devices a query does not wait for the one before of its device";
    loop_.refuse(
        what,
        "use `overflow: shed` or `loop: closed`, or remove `loop`",
    )
}

/// A device that waits for a command asks for no other: what is due meanwhile is shed as `busy`, or
/// waits where the stream says so.
pub(super) fn loop_(view: &View<'_>) -> Option<Policy> {
    let loop_view = view.get("loop")?;
    match loop_view.text() {
        "open" => Some(Policy::Shed { in_flight: 1 }),
        "closed" => Some(Policy::Closed),
        _ if loop_view.whole("in-flight") == Some(1_u32) => in_flight(&loop_view),
        _ => {
            let what = "a device has one query under way at the most";
            loop_view.refuse(what, "use `in-flight: 1` or `loop: closed`, or remove it")
        }
    }
}

/// The devices of a fleet take commands by one stream, and ask for them by one.
pub(super) fn one_of_each_kind(streams: &[StreamPlan], views: &[View<'_>]) -> Option<()> {
    let taking = (
        "takes the commands of these devices",
        "one stream of kind command a fleet",
    );
    alone(streams, views, StreamPlan::is_command, taking)?;
    let asking = (
        "asks for these devices, and each has at most one query under way",
        "one stream of kind command-query a fleet, at the sum of their rates",
    );
    alone(streams, views, StreamPlan::is_query, asking)
}

fn alone(
    streams: &[StreamPlan],
    views: &[View<'_>],
    is_of_kind: fn(&StreamPlan) -> bool,
    (what, help): (&str, &str),
) -> Option<()> {
    let both = streams.iter().zip(views);
    let mut of_kind = both.filter(|(stream, _)| is_of_kind(stream));
    let (Some((first, _)), Some((_, second))) = (of_kind.next(), of_kind.next()) else {
        return Some(());
    };
    second.refuse(format!("`{}` {what}", first.name), help)
}

/// Refuses streams that only devices which subscribe can have.
pub(super) fn takes_kind(class: &Class<'_>, view: &View<'_>) -> Option<()> {
    let scheme = class.context.scheme;
    let requests = class.context.dialect.requests(scheme.protocol());
    if requests.observed.is_some() {
        return observes(class, view);
    }
    if view.text_of("kind") != "receive" || !scheme.protocol().asks {
        return Some(());
    }
    let what = format!(
        "over {} a device of {} subscribes to nothing: it receives the answers to its own requests",
        scheme.protocol().name,
        class.context.dialect
    );
    let help = "use `kind: command-query`, whose answer may bring a command, or remove the stream";
    view.refuse_at("kind", what, help)
}

/// Refuses streams that devices which observe their commands cannot have.
fn observes(class: &Class<'_>, view: &View<'_>) -> Option<()> {
    let (scheme, kind) = (class.context.scheme, view.text_of("kind"));
    if kind == "command" && class.view.text_of("sockets") == "shared" && !scheme.is_dtls() {
        let what = "devices that share a socket cannot observe their commands yet";
        return view.refuse_at("kind", what, "remove `sockets: shared`, or the stream");
    }
    if !matches!(kind, "command-query" | "receive") {
        return Some(());
    }
    let what = format!(
        "over {} a device of {} asks for nothing and subscribes to nothing: it observes its commands",
        scheme.protocol().name,
        class.context.dialect
    );
    view.refuse_at(
        "kind",
        what,
        "use `kind: command` alone, or remove the stream",
    )
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
