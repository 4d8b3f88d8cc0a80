//! Words for the causes of a verdict: the first device that was refused, the scheme that is likely meant,
//! and the consumers that kept a run from its beginning.

use std::collections::BTreeMap;

use muster_conduct::{ConsumerRefusal, Ending, PushRefusal, Remedy, directory};
use muster_judge::{FleetHints, Hints, LinkCause, RequestHints};
use muster_measure::BackendLedger;
use muster_model::{ConnectFailure, LinkId, Reason};
use muster_plan::{BackendPlan, Endpoint, FleetPlan, HttpCall, Plan, Security, StreamPlan};
use muster_platform::Protocol;
use muster_report::Event;

use crate::events::{CONSUMER_REFUSED, PUSH_REFUSED};

/// The event of a device whose link was refused.
const DEVICE_REFUSED: &str = "device-refused";

/// The key that decides where consumers connect.
const BACKEND_URL: &str = "platform.backend.url";

/// Findings of a run on the way.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Findings<'a> {
    pub(crate) events: &'a [Event],
    /// Consumers that did not come up.
    pub(crate) refusals: &'a [ConsumerRefusal],
    pub(crate) pushes_refused: &'a [PushRefusal],
}

/// Hints at the causes of a verdict from the findings of the run.
pub(crate) fn hints(
    plan: &Plan,
    findings: Findings<'_>,
    ending: Option<Ending>,
    backends: &[BackendLedger],
) -> Hints {
    let mut consumers = match ending {
        Some(Ending::ConsumersUnreachable) => consumers(plan, findings.refusals),
        Some(_) | None => Vec::new(),
    };
    let refused = findings.pushes_refused;
    let each = plan.backends.iter().zip(backends);
    consumers.extend(each.flat_map(|(backend, of)| pushes(backend, of.consumed, refused)));
    let of_fleet = |fleet| {
        let scheme = plan.scheme_of(fleet);
        let security = Security::of_devices(scheme);
        let endpoints = plan.platform.endpoints_of(fleet.client.protocol());
        FleetHints {
            addresses: Endpoint::each_once(endpoints),
            closed_in_handshake: security.hint_on_silence(),
            other_protocol: security.hint_on_nonsense(),
            other_protocol_words: security.words_on_nonsense(),
            is_refused_in_silence: scheme.is_dtls(),
            has_requests: fleet.client.protocol() == Protocol::Http,
            requests: fleet.streams.iter().filter_map(request).collect(),
        }
    };
    Hints {
        fleets: plan.fleets.iter().map(of_fleet).collect(),
        first_refused: first_refused(plan, findings.events),
        consumers,
    }
}

/// Words for the requests of a stream, if the scenario gives their form. A query may hold secrets.
fn request(stream: &StreamPlan) -> Option<RequestHints> {
    let call = stream.http.as_deref()?;
    let path = stream.topic.source();
    let path = path.split('?').next().unwrap_or_default();
    Some(RequestHints {
        stream: stream.id,
        line: format!("{} /{path}", call.method),
        success: success(call),
    })
}

/// The key `success` as the scenario may write it.
fn success(call: &HttpCall) -> String {
    let ranges = call
        .success
        .iter()
        .map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
    let ranges: Vec<String> = ranges.collect();
    match &ranges[..] {
        [only] => format!("success: {only}"),
        all => format!("success: [ {} ]", all.join(", ")),
    }
}

/// The first device of each fleet and cause, with its line of the fleet's file.
fn first_refused(plan: &Plan, events: &[Event]) -> BTreeMap<(String, String), String> {
    let mut first: BTreeMap<(String, String), (u32, String)> = BTreeMap::new();
    for event in events.iter().filter(|event| event.kind == DEVICE_REFUSED) {
        let Some((name, cause)) = refused(&event.detail) else {
            continue;
        };
        let Some((fleet, link)) = link_named(plan, name) else {
            continue;
        };
        let text = format!("`{name}`{}", line_of(plan, fleet, link));
        // Each shard has a first one.
        let earliest = first
            .entry((fleet.name.clone(), cause))
            .or_insert_with(|| (link.0, text.clone()));
        if link.0 < earliest.0 {
            *earliest = (link.0, text);
        }
    }
    let texts = first.into_iter().map(|(key, (_, text))| (key, text));
    texts.collect()
}

/// The name and the cause in "device `a`: CONNECT refused with 0x87 (not authorized); ...".
fn refused(detail: &str) -> Option<(&str, String)> {
    let (name, rest) = detail.strip_prefix("device `")?.split_once("`: ")?;
    let (packet, why) = rest.split_once(" refused with ")?;
    let code = why.split([' ', ';']).next()?;
    let reason = Reason::named(code)?;
    let failure = match packet {
        "CONNECT" => ConnectFailure::Rejected(reason),
        "SUBSCRIBE" => ConnectFailure::SubscribeRejected(reason),
        _ => return None,
    };
    Some((name, failure.to_string()))
}

fn link_named<'a>(plan: &'a Plan, name: &str) -> Option<(&'a FleetPlan, LinkId)> {
    let mut rendered = String::new();
    plan.fleets.iter().find_map(|fleet| {
        let directory = directory(plan, fleet, 0);
        let first = fleet.first_link.0;
        let mut links = (first..first + fleet.links).map(LinkId);
        let link = links.find(|link| {
            fleet.render_link_name(*link, &directory, &mut rendered);
            rendered == name
        })?;
        Some((fleet, link))
    })
}

/// The place of a link's first device in its fleet's file, such as ` (meters.csv:345)`; empty without one.
fn line_of(plan: &Plan, fleet: &FleetPlan, link: LinkId) -> String {
    let Some(table) = &fleet.data else {
        return String::new();
    };
    let scenario: serde_json::Value = serde_json::from_str(&plan.resolved).unwrap_or_default();
    let fleets = scenario["fleet"].as_array().into_iter().flatten();
    let mut named = fleets.filter(|of| of["name"] == fleet.name.as_str());
    let file = named.next().and_then(|of| of["data"].as_str());
    let row = fleet.first_device_of(link).0 - fleet.first_device.0;
    let line = table.line(row as usize);
    match file {
        Some(file) => format!(" ({file}:{line})"),
        None => format!(" (line {line} of `data`)"),
    }
}

/// A cause for each backend and reason for which its consumers did not come up.
fn consumers(plan: &Plan, refusals: &[ConsumerRefusal]) -> Vec<LinkCause> {
    let mut counts: BTreeMap<(&str, String), (u64, &ConsumerRefusal)> = BTreeMap::new();
    for refusal in refusals {
        let text = format!("{}: {}", refusal.consumer.place(), refusal.cause);
        let known = counts.entry((&refusal.consumer.backend, text));
        known.or_insert((0, refusal)).0 += 1;
    }
    let causes = counts.into_iter().map(|((name, text), (count, refusal))| {
        let backend = plan.backends.iter().find(|backend| backend.name == name);
        let of = backend.map_or(count, |backend| u64::from(backend.consumers).max(count));
        let (see, hint) = match &refusal.cause.remedy {
            Remedy::See(place) => (place.to_string(), String::new()),
            Remedy::None | Remedy::Do(_) => {
                let hint = if text.ends_with('?') { " See" } else { "; see" };
                (BACKEND_URL.to_owned(), format!("{hint} {BACKEND_URL}"))
            }
        };
        let noun = if of == 1 { "consumer" } else { "consumers" };
        LinkCause {
            fleet: String::new(),
            backend: Some(name.to_owned()),
            count,
            of,
            cause: CONSUMER_REFUSED.to_owned(),
            see,
            text: format!("{count} of {of} {noun} of {text}{hint}"),
        }
    });
    causes.collect()
}

/// The most frequent reasons why a webhook refused requests, if it refused more than it took copies.
fn pushes(backend: &BackendPlan, copies: u64, refused: &[PushRefusal]) -> Vec<LinkCause> {
    let of_backend =
        |it: &&PushRefusal| it.consumer.backend == backend.name && !it.requests.is_planned;
    let refused = || refused.iter().filter(of_backend);
    let most = refused().map(|it| it.requests.count).max().unwrap_or(0);
    let causes = refused().filter(|it| it.requests.count == most && most > copies);
    let cause = |PushRefusal { consumer, requests }: &PushRefusal| LinkCause {
        fleet: String::new(),
        backend: Some(backend.name.clone()),
        count: most,
        of: most + copies,
        cause: PUSH_REFUSED.to_owned(),
        see: "platform.backend.webhook".to_owned(),
        text: format!(
            "{}: {}: {}",
            consumer.place(),
            requests.answer(),
            requests.why
        ),
    };
    causes.map(cause).collect()
}

#[cfg(test)]
mod tests {
    use muster_conduct::{ConsumerName, RefusalCause, RefusalKind, RefusedRequests};
    use muster_model::ConsumerId;
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    fn plan() -> Plan {
        let text = "
name: x
platform: { kind: mqtt, devices: \"mqtts://127.0.0.1:1\", backend: { name: app, url: \"mqtt://127.0.0.1:1\", filter: \"m/#\" } }
fleet: [ { name: a, count: 3, streams: [] }, { name: b, count: 3, streams: [] } ]
";
        let source = Source {
            name: "x.yaml",
            text,
        };
        parse(source, &Overrides::default(), &NoFiles).expect("a plan")
    }

    fn event(kind: &str, detail: &str) -> Event {
        Event::new(0.0, kind, detail.to_owned())
    }

    #[test]
    fn the_first_device_of_a_fleet_and_cause_is_named() {
        let rest = "others like it are not reported";
        let refused = |name: &str| {
            let why = "CONNECT refused with 0x87 (not authorized)";
            event(DEVICE_REFUSED, &format!("device `{name}`: {why}; {rest}"))
        };
        let events = [refused("b-00000002"), refused("b-00000001")];
        let findings = Findings {
            events: &events,
            ..Findings::default()
        };
        let hints = hints(&plan(), findings, Some(Ending::Planned), &[]);
        let key = ("b".to_owned(), "rejected-0x87".to_owned());
        let only = BTreeMap::from([(key, "`b-00000001`".to_owned())]);
        assert_eq!(hints.first_refused, only);
        let [first, _] = &hints.fleets[..] else {
            panic!("two fleets");
        };
        assert!(first.closed_in_handshake.contains("`mqtt://`"), "{first:?}");
    }

    #[test]
    fn hints_go_by_the_addresses_of_each_fleets_protocol() {
        let text = "
name: x
platform: { kind: gateway, dialect: hono, devices: [ \"mqtts://127.0.0.1:0\", \"coaps://127.0.0.1:0\" ] }
fleet: [ { name: a, tenant: t, streams: [] }, { name: b, protocol: coap, tenant: t, streams: [] } ]
";
        let source = Source {
            name: "x.yaml",
            text,
        };
        let plan = parse(source, &Overrides::default(), &NoFiles).expect("a plan");
        let fleets = hints(&plan, Findings::default(), Some(Ending::Planned), &[]).fleets;
        let silent: Vec<bool> = fleets.iter().map(|it| it.is_refused_in_silence).collect();
        assert_eq!(silent, [false, true]);
        let addresses: Vec<&[String]> = fleets.iter().map(|it| &it.addresses[..]).collect();
        assert_eq!(
            addresses,
            [["mqtts://127.0.0.1:0"], ["coaps://127.0.0.1:0"]]
        );
        assert!(fleets[0].closed_in_handshake.contains("`mqtt://`"));
        assert_eq!(fleets[1].closed_in_handshake, "");
    }

    #[test]
    fn requests_are_named_by_method_path_and_the_answers_that_accept_them() {
        let text = "
name: x
platform: { kind: http, devices: [ \"http://127.0.0.1:1/api\" ] }
fleet: [ { name: a, streams: [ { name: one, rate: 1/s, path: \"/v1/${id}?key=hunter2\", success: 202, payload: { size: 64 } }, { name: two, rate: 1/s, method: PUT, path: \"/v2\", success: [ 200-204, 409 ], payload: { size: 64 } } ] } ]
";
        let source = Source {
            name: "x.yaml",
            text,
        };
        let plan = parse(source, &Overrides::default(), &NoFiles).expect("a plan");
        let [fleet] = &hints(&plan, Findings::default(), Some(Ending::Planned), &[]).fleets[..]
        else {
            panic!("one fleet");
        };
        let words = fleet.requests.iter();
        let words: Vec<_> = words.map(|it| (&it.line[..], &it.success[..])).collect();
        let wanted = [
            ("POST /v1/${id}", "success: 202"),
            ("PUT /v2", "success: [ 200-204, 409 ]"),
        ];
        assert_eq!(words, wanted);
        assert!(fleet.has_requests);
        assert!(fleet.other_protocol_words.contains("right port"));
    }

    #[test]
    fn consumers_that_end_a_run_are_a_cause_with_a_key() {
        let why = "CONNECT refused with 0x86 (bad user name or password)";
        let keys = "platform.backend.user and platform.backend.password";
        let refusal = |what: &str, remedy| ConsumerRefusal {
            consumer: ConsumerName {
                number: ConsumerId(0),
                backend: "app".to_owned(),
                address: "127.0.0.1:1".to_owned(),
            },
            cause: RefusalCause {
                remedy,
                ..RefusalCause::new(RefusalKind::Refused, what.to_owned())
            },
        };
        let refused = refusal(why, Remedy::see(keys));
        let silent = refusal("no answer", Remedy::None);
        let of = |refusal: &ConsumerRefusal, ending| {
            let findings = Findings {
                refusals: std::slice::from_ref(refusal),
                ..Findings::default()
            };
            hints(&plan(), findings, Some(ending), &[]).consumers
        };
        let [cause] = &of(&refused, Ending::ConsumersUnreachable)[..] else {
            panic!("one cause");
        };
        let text = format!("1 of 1 consumer of backend `app` at 127.0.0.1:1: {why}; see {keys}");
        assert_eq!(
            (cause.text.as_str(), cause.see.as_str()),
            (text.as_str(), keys)
        );
        let causes = of(&silent, Ending::ConsumersUnreachable);
        assert!(
            causes[0]
                .text
                .ends_with("no answer; see platform.backend.url"),
            "{causes:?}"
        );
        assert_eq!(of(&refused, Ending::Planned), []);
    }

    #[test]
    fn a_webhook_that_refuses_more_than_it_takes_is_a_cause() {
        let text = "
name: x
platform: { kind: mqtt, devices: \"mqtt://127.0.0.1:1\", backend: { name: hook, webhook: { listen: \"http://127.0.0.1:1\" } } }
fleet: [ { name: a, streams: [] } ]
";
        let source = Source {
            name: "x.yaml",
            text,
        };
        let plan = parse(source, &Overrides::default(), &NoFiles).expect("a plan");
        let refused = |count, status, why: &str| PushRefusal {
            consumer: ConsumerName {
                number: ConsumerId(0),
                backend: "hook".to_owned(),
                address: "http://127.0.0.1:1".to_owned(),
            },
            requests: RefusedRequests {
                count,
                status: Some(status),
                why: why.to_owned(),
                is_total: count > 1,
                is_planned: status == 503,
            },
        };
        let causes = |pushes_refused: &[PushRefusal], consumed| {
            let backend = BackendLedger {
                consumed,
                ..BackendLedger::default()
            };
            let findings = Findings {
                pushes_refused,
                ..Findings::default()
            };
            hints(&plan, findings, Some(Ending::Planned), &[backend]).consumers
        };
        let (secret, path) = (
            "it shows another secret; see it",
            "it is sent to another path",
        );
        let all = [
            refused(1, 401, secret),
            refused(1_200, 401, secret),
            refused(9_999, 503, "the backend is paused"),
        ];
        assert_eq!(causes(&all, 1_200), []);
        let [cause] = &causes(&all, 800)[..] else {
            panic!("one cause");
        };
        assert_eq!((cause.count, cause.of), (1_200, 2_000));
        let text = "backend `hook` at http://127.0.0.1:1: 1,200 requests were answered with 401: it \
                    shows another secret; see it";
        assert_eq!(cause.text, text);
        let tied = causes(&[refused(1, 401, secret), refused(1, 404, path)], 0);
        assert_eq!(tied.len(), 2, "{tied:?}");
    }
}
