//! Any link and topic as Hono's adapter of MQTT reads them, and as its devices do: nothing panics, and
//!
//! - an upload surfaces under its device, of the tenant that the link logged in to,
//! - a property comes back from a bag as it was appended, whatever is in the topic already,
//! - a refusal reaches the link that subscribed to refusals, on the name of a topic, and is read there,
//! - a command reaches its device in every form, and the reply surfaces under the command's own id.
//!
//! The first byte chooses flags and a status; then lines follow: the link's name, a topic, and a payload.

#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_model::{DeviceId, MessageId, Micros, RunId, Stamp, StreamId};
use muster_platform::{
    CommandCopy, CommandScratch, Commanded, DevicePublish, Dialect, Downlink, Handing, Handover,
    Identity, Objection, PropertyBag, ReplyPath, Replying, Returned, Rewrite, Server, Who,
};

const HONO: Dialect = Dialect::Hono;
/// More forms than a command or a refusal has.
const FORMS: usize = 32;
const GATEWAY: &str = "gw";

fuzz_target!(|data: &[u8]| {
    let [flags, rest @ ..] = data else { return };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (link, topic, payload) = (line(), line(), line());
    // What a session of MQTT lets through as the name of a topic.
    if !is_name(topic) || topic.is_empty() {
        return;
    }
    let of_device = (HONO.publishing().downlink)(topic, payload.as_bytes());
    if let Downlink::Acknowledgements(all) = of_device {
        assert_eq!(all.count(), 1);
    }
    keeps_properties(topic, link, payload);
    filters_are_the_links_own(link, topic);
    upload(link, topic, payload);
    reply(link, topic, payload);
    refusal(*flags, link, topic);
    if let Some(command) = (HONO.server.command)(topic) {
        hand_over(*flags, &command, payload.as_bytes());
    }
});

fn is_name(topic: &str) -> bool {
    !topic.contains(['+', '#', '\0'])
}

/// The parts of a link's name, if it logged in and both can be levels of a topic.
fn identity(link: &str) -> Option<Identity<'_>> {
    Identity::parse(link).filter(|_| is_name(link) && !link.contains('/'))
}

fn keeps_properties(topic: &str, first: &str, second: &str) {
    let (path, before) = PropertyBag::split(topic);
    let (mut longer, mut read) = (topic.to_owned(), String::new());
    PropertyBag::append(&mut longer, "fuzz-a", first, false);
    PropertyBag::append(&mut longer, "fuzz-b", second, false);
    assert!(longer.starts_with(topic) && is_name(&longer));
    let (path_then, bag) = PropertyBag::split(&longer);
    assert_eq!(path_then, path, "{longer}");
    for (name, value) in [("fuzz-a", first), ("fuzz-b", second)] {
        let was_there = before.read(name, &mut String::new());
        assert!(was_there || bag.read(name, &mut read), "{longer}");
        assert!(
            was_there || topic.contains(name) || read == value,
            "{longer}"
        );
    }
}

/// A filter that is routed is that of the link alone, and known to it as it was.
fn filters_are_the_links_own(link: &str, filter: &str) {
    let mut routed = String::new();
    for filter in [filter, "c///q/#", "c//+/q/#", "e///#"] {
        routed.clear();
        let is_own = (HONO.server.route)(link, filter, &mut routed);
        assert_eq!(is_own, !routed.is_empty());
        if is_own {
            let scope = routed.strip_suffix(filter).expect("the filter is last");
            assert!(
                !scope.contains(['+', '#']) && scope.matches('/').count() == 2,
                "{routed}"
            );
            assert_eq!((HONO.server.unrouted)(&routed), filter);
        }
    }
}

fn upload(link: &str, topic: &str, payload: &str) {
    match (HONO.server.read)(link, topic, payload.as_bytes()) {
        DevicePublish::Published(of) => {
            assert!(!of.device.is_empty() && !of.tenant.is_empty());
            let own = Identity::parse(link);
            assert!(own.is_none_or(|own| own.tenant == of.tenant));
            assert_eq!(
                of.gateway.is_some(),
                own.is_some_and(|own| own.auth_id != of.device)
            );
            let mut surface = String::new();
            of.write_surface(&mut surface);
            let is_of_hono = (HONO.topic)(&surface).counted_as.is_some();
            assert!(is_of_hono && surface.ends_with(of.device), "{surface}");
            let _ = of.ttl_s();
        }
        DevicePublish::Refused(status) => assert!(matches!(status, 400 | 401 | 403 | 404)),
        other => panic!("{other:?} on {topic}"),
    }
}

fn reply(link: &str, topic: &str, payload: &str) {
    let mut surface = String::new();
    let surfaced = (HONO.server.surfaced_reply)(link, topic, payload.as_bytes(), &mut surface);
    assert_eq!(surfaced.is_none(), surface.is_empty());
    if surfaced.is_none() || (identity(link).is_none() && Identity::parse(link).is_some()) {
        return;
    }
    match (HONO.application.returned)(&surface, payload.as_bytes()) {
        Some(Returned::Reply(copy)) => {
            assert!(copy.status.is_some_and(|it| (200..600).contains(&it)));
        }
        other => panic!("{other:?} on {surface}"),
    }
}

fn refusal(flags: u8, link: &str, topic: &str) {
    let objections = HONO.server.objections.expect("Hono refuses");
    let _ = (objections.treatment)(topic, flags & 1 != 0);
    if identity(link).is_none() && Identity::parse(link).is_some() {
        return;
    }
    let objection = Objection {
        link,
        topic,
        packet_id: (flags & 2 != 0).then_some(7),
        status: 400 + u16::from(flags),
        at: "2026-01-01T00:00:00Z",
    };
    let (mut routed, mut out) = (String::new(), CommandScratch::default());
    let filter = HONO.publishing().filter_of_refusals(Who::Device);
    (HONO.server.route)(link, filter.expect("Hono has one"), &mut routed);
    let mut reaches_its_link = false;
    for form in 0..FORMS {
        if !(objections.write)(form, &objection, &mut out) {
            assert!(form > 0);
            continue;
        }
        assert!(is_name(&out.topic), "{}", out.topic);
        reaches_its_link |= out.topic.starts_with(routed.trim_end_matches('#'));
        let seen = (HONO.server.unrouted)(&out.topic);
        let Downlink::Acknowledgements(mut all) = (HONO.publishing().downlink)(seen, &out.payload)
        else {
            panic!("{seen} is no refusal");
        };
        let read = all.next().expect("it is one").expect("it is readable");
        assert_eq!((read.code, read.is_accepted), (objection.status, false));
        let body: serde_json::Value = serde_json::from_slice(&out.payload).expect("it is JSON");
        assert_eq!(body["code"], objection.status);
    }
    assert!(reaches_its_link || Identity::parse(link).is_none());
}

/// A command goes to its device in each form, and the reply to it comes back.
fn hand_over(flags: u8, command: &Commanded<'_>, payload: &[u8]) {
    let Server {
        handover: Handover::RewrittenOrInAnswer(hand),
        ..
    } = HONO.server
    else {
        panic!("Hono rewrites commands");
    };
    for gateway in [None, Some(GATEWAY)] {
        let to = Handing {
            command: *command,
            gateway,
            request: 0,
        };
        let forms = (0..FORMS).take_while(|form| reaches(hand, *form, &to, payload, flags));
        let forms = forms.count();
        let is_long = command.correlation_id.is_some_and(|id| id.len() > 255);
        let expected = if gateway.is_some() { 12 } else { 8 };
        assert_eq!(forms, if is_long { 0 } else { expected });
    }
}

fn reaches(hand: Rewrite, form: usize, to: &Handing<'_>, payload: &[u8], flags: u8) -> bool {
    let (command, mut out) = (&to.command, CommandScratch::default());
    if !hand(form, to, payload, &mut out) {
        return false;
    }
    assert!(is_name(&out.topic));
    let seen = (HONO.server.unrouted)(&out.topic);
    let Downlink::Command(copy) = (HONO.publishing().downlink)(seen, payload) else {
        panic!("{seen} is no command");
    };
    assert!(copy.device.is_none_or(|device| device == command.device));
    assert_eq!(copy.reply.is_some(), command.correlation_id.is_some());
    replies(&copy, to, payload, flags);
    true
}

fn replies(copy: &CommandCopy<'_>, to: &Handing<'_>, payload: &[u8], flags: u8) {
    let (command, mut path) = (&to.command, ReplyPath::default());
    let Some(id) = command.correlation_id else {
        return;
    };
    // A level that the device cannot keep, and a name that a link cannot have.
    let keeps = copy.reply.is_some_and(|reply| reply.keep(&mut path));
    if !keeps || command.device.contains('@') {
        return;
    }
    let (stamp, status) = (stamp(flags), 200 + u16::from(flags));
    let replying = Replying {
        stamp: &stamp,
        request: 0,
        device: command.device,
        is_gateways: copy.device.is_some(),
        path: Some(&path),
        status,
    };
    let mut reply = CommandScratch::default();
    (HONO.write_reply)(&replying, &mut reply);
    let login = match copy.device {
        Some(_) => to.gateway.unwrap_or(command.device),
        None => command.device,
    };
    let (link, mut surface) = (format!("{login}@{}", command.tenant), String::new());
    let surfaced = (HONO.server.surfaced_reply)(&link, &reply.topic, payload, &mut surface);
    // A level that begins with a question mark begins a property bag; no name of Hono's does.
    if reply.topic.contains("/?") {
        return;
    }
    // Hono takes no message on a topic that names a tenant alone.
    let names_tenant = path
        .segments()
        .nth(1)
        .is_some_and(|tenant| !tenant.is_empty());
    let is_taken = copy.device.is_some() || !names_tenant;
    assert_eq!(surfaced, is_taken.then_some(payload), "{}", reply.topic);
    if !is_taken {
        return;
    }
    let expected = [command.tenant, command.device, id, &status.to_string()].join("/");
    assert_eq!(surface.strip_prefix("command_response/"), Some(&*expected));
}

fn stamp(number: u8) -> Stamp {
    Stamp {
        id: MessageId {
            run: RunId(7),
            device: DeviceId(number.into()),
            stream: StreamId(0),
            seq: 1,
        },
        due: Some(Micros(5)),
    }
}
