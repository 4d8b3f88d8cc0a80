//! Warnings about messages that a ThingsBoard takes otherwise than the scenario means them.

use std::cell::Cell;
use std::collections::BTreeSet;

use muster_load::{PayloadSpec, Template};
use muster_plan::{Policy, StreamPlan};
use serde_json::Value as Json;

use super::body::sampled;
use super::stream::Class;
use super::templates::differs_by_message;
use crate::view::View;

/// The platform's rule that makes messages with one `ts` overwrite each other.
const ONE_VALUE: &str = "ThingsBoard keeps one value for each device, key and millisecond";

const NO_JSON: &str =
    "ThingsBoard takes JSON: it refuses other bytes, and over MQTT closes the link of their device";
const AS_JSON: &str = "use `payload: smart-meter`, or a template of JSON";

/// Warns of messages that overwrite each other, and of those that are no JSON.
pub(super) fn warn(class: &Class<'_>, streams: &[StreamPlan], views: &[View<'_>]) {
    warn_of_logins(class, streams, views);
    let mut earlier: Vec<(&StreamPlan, Points)> = Vec::new();
    for (stream, view) in streams.iter().zip(views) {
        let takes_data = (class.context.dialect.topic)(stream.topic.source()).has_data;
        let Some(payload) = view.get("payload").filter(|_| takes_data) else {
            continue;
        };
        let Some(sources) = texts(&stream.payload) else {
            payload.warn(NO_JSON, AS_JSON);
            continue;
        };
        if let Some(source) = sources.iter().find(|source| !is_taken(class, source)) {
            warn_of_what_is_not_taken(&payload, source);
            continue;
        }
        if !(class.context.dialect.topic)(stream.topic.source()).has_instants {
            continue;
        }
        let mut points = Points::default();
        sources.iter().for_each(|source| points.add(source));
        overwrites_itself(&payload, stream, &points);
        if let Some((other, key)) = earlier.iter().find_map(|(other, theirs)| {
            let key = points.shared_key(theirs)?;
            Some((other, key))
        }) {
            let what = format!(
                "this stream and `{}` send the key `{key}` of a device with equal `ts`: {ONE_VALUE}",
                other.name
            );
            let help = "write `${unique_ms:2:0}` as the `ts` of one stream and `${unique_ms:2:1}` as that of the other";
            payload.warn(what, help);
        }
        earlier.push((stream, points));
    }
}

/// The user name of a link that asks for devices.
const PROVISION: &str = "provision";

/// Warns of links that ask for devices and log in as none that may, and of those that may do nothing else.
fn warn_of_logins(class: &Class<'_>, streams: &[StreamPlan], views: &[View<'_>]) {
    let topic = class.context.dialect.topic;
    let asks = |stream: &&StreamPlan| topic(stream.topic.source()).makes_devices;
    let credential = class.view.get("credential");
    let token = credential.filter(|it| it.text_of("kind") == "token");
    let may_ask = token.is_some_and(|it| it.text_of("secret").trim() == PROVISION);
    let is_by_path = class.context.scheme.protocol().asks;
    if is_by_path || !streams.iter().any(|stream| asks(&stream)) {
        return;
    }
    for (stream, view) in streams.iter().zip(views) {
        let (what, help) = match (asks(&stream), may_ask) {
            (true, true) | (false, false) => continue,
            (true, false) => (
                "ThingsBoard answers requests for devices only on links that log in as `provision`",
                "give the fleet `credential: { kind: token, secret: provision }`",
            ),
            (false, true) => (
                "this link logs in as `provision`: ThingsBoard closes it when it sends anything but requests for \
                 devices",
                "move the stream to a fleet of devices",
            ),
        };
        view.warn(what, help);
    }
}

/// A template with a digit for each variable, read as JSON.
fn read(source: &str) -> Option<Json> {
    serde_json::from_str(&sampled(source, |_, _| "1".to_owned())).ok()
}

/// True if messages of a template are taken and acknowledged. ThingsBoard reads JSON leniently, and the
/// embedded gateway does not.
fn is_taken(class: &Class<'_>, source: &str) -> bool {
    match read(source) {
        Some(Json::Object(_)) => true,
        Some(Json::Array(points)) => !points.is_empty(),
        Some(Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_)) => false,
        None => source.trim_start().starts_with(['{', '[']) && !class.context.is_embedded,
    }
}

fn warn_of_what_is_not_taken(payload: &View<'_>, source: &str) {
    let what = match read(source) {
        Some(Json::Array(_)) => "ThingsBoard never acknowledges a list without points",
        _ if source.trim_start().starts_with(['{', '[']) => {
            "this template is no JSON: the embedded gateway refuses it, and over MQTT closes the link of its device"
        }
        _ => NO_JSON,
    };
    payload.warn(what, AS_JSON);
}

/// The source texts of messages; none if they are no text.
fn texts(payload: &PayloadSpec) -> Option<Vec<String>> {
    match payload {
        PayloadSpec::Template(source) => Some(vec![source.clone()]),
        PayloadSpec::Mix(mix) => {
            let rare = mix.rare.iter().map(|rare| rare.template.clone());
            let kinds = mix.kinds.iter().map(|(_, source)| source.clone());
            Some(kinds.chain(rare).collect())
        }
        PayloadSpec::File(bytes) => String::from_utf8(bytes.to_vec()).ok().map(|it| vec![it]),
        PayloadSpec::Size(_) | PayloadSpec::Held { .. } | PayloadSpec::LogNormal { .. } => None,
    }
}

fn overwrites_itself(payload: &View<'_>, stream: &StreamPlan, points: &Points) {
    let is_closed = stream.policy == Policy::Closed;
    let schedule = &stream.schedule;
    let may_share = schedule.may_share_ms(is_closed);
    let is_once = schedule.limit_per_device == Some(1);
    if points.instants.contains(&Instant::Same) && !is_once {
        let what = format!("all messages of a device have one `ts`: {ONE_VALUE}");
        payload.warn(what, "write `\"ts\":${unique_ms}`");
    } else if points.instants.contains(&Instant::Due) && may_share {
        let what = format!(
            "several messages of a device are due within one millisecond and have one `ts`: {ONE_VALUE}"
        );
        payload.warn(what, "write `\"ts\":${unique_ms}` in place of `${due_ms}`");
    } else if points.instants.contains(&Instant::Arrival) && may_share {
        let what = format!(
            "the messages have no `ts`, and several of a device are due within one millisecond: they get the time of their arrival, and {ONE_VALUE}"
        );
        let help =
            "send `{\"ts\":${unique_ms},\"values\":{...}}`, or spread the messages of a device";
        payload.warn(what, help);
    } else if schedule.outpaces_ms(is_closed) {
        let what = "a device sends more than 1,000 messages a second, so that its `ts` runs ahead of the clock";
        payload.warn(what, "more devices, or fewer messages of each");
    }
}

#[derive(Default)]
struct Points {
    instants: BTreeSet<Instant>,
    keys: BTreeSet<String>,
}

/// Origin of the `ts` of a point.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Instant {
    /// No `ts`: it is the time of arrival.
    Arrival,
    /// Every message of a device has the same one.
    Same,
    Due,
    /// `${unique_ms}`, as it is written.
    Unique(String),
    /// Something else, which may differ from message to message.
    Other,
}

impl Points {
    /// Adds the points of a template; nothing if it is no JSON that the platform could store.
    fn add(&mut self, source: &str) {
        let Ok(template) = Template::parse(source) else {
            return;
        };
        let names = template.names().enumerate();
        let variables: Vec<(String, &str)> = names
            .map(|(at, (_, offset))| (token(at), variable_at(source, offset)))
            .collect();
        let next = Cell::new(0);
        let sample = sampled(source, |_, _| token(next.replace(next.get() + 1)));
        if let Ok(json) = serde_json::from_str::<Json>(&sample) {
            self.add_points(&json, &variables);
        }
    }

    fn add_points(&mut self, json: &Json, variables: &[(String, &str)]) {
        match json {
            Json::Array(points) => {
                let points = points.iter();
                points.for_each(|point| self.add_points(point, variables));
            }
            Json::Object(members) => match (members.get("ts"), members.get("values")) {
                (Some(ts), Some(Json::Object(values))) => {
                    self.instants.insert(Instant::of(ts, variables));
                    self.keys.extend(values.keys().cloned());
                }
                // Lists by the names of devices, as a gateway sends them.
                _ if !members.is_empty() && members.values().all(Json::is_array) => {
                    let lists = members.values();
                    lists.for_each(|list| self.add_points(list, variables));
                }
                _ => {
                    self.instants.insert(Instant::Arrival);
                    self.keys.extend(members.keys().cloned());
                }
            },
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
        }
    }

    /// A key that another stream has too, with instants that may be equal.
    fn shared_key<'a>(&'a self, other: &'a Self) -> Option<&'a str> {
        let mut pairs = self.instants.iter().flat_map(|one| {
            let others = other.instants.iter();
            others.map(move |other| (one, other))
        });
        if !pairs.any(|(one, other)| one.may_equal(other)) {
            return None;
        }
        self.keys
            .intersection(&other.keys)
            .next()
            .map(String::as_str)
    }
}

impl Instant {
    fn of(ts: &Json, variables: &[(String, &str)]) -> Self {
        let text = ts.as_str().map_or_else(|| ts.to_string(), str::to_owned);
        let used: Vec<&(String, &str)> = variables
            .iter()
            .filter(|(token, _)| text.contains(token.as_str()))
            .collect();
        match used[..] {
            [(token, "${due_ms}" | "${json:due_ms}")] if *token == text => Self::Due,
            [(token, variable)] if *token == text && variable.starts_with("${unique_ms") => {
                Self::Unique((*variable).to_owned())
            }
            _ if used
                .iter()
                .all(|(_, variable)| !differs_by_message(variable)) =>
            {
                Self::Same
            }
            _ => Self::Other,
        }
    }

    /// Returns true if messages of two streams may have this and the other instant at once.
    fn may_equal(&self, other: &Self) -> bool {
        let step = |variable: &str| {
            let parts = variable.trim_end_matches('}').split(':');
            parts.skip(1).map(str::to_owned).collect::<Vec<_>>()
        };
        match (self, other) {
            (Self::Due | Self::Unique(_), Self::Due) | (Self::Due, Self::Unique(_)) => true,
            (Self::Unique(one), Self::Unique(two)) => match (&step(one)[..], &step(two)[..]) {
                ([step, offset], [others_step, others_offset]) => {
                    step != others_step || offset == others_offset
                }
                _ => true,
            },
            (Self::Arrival | Self::Same | Self::Other, _)
            | (_, Self::Arrival | Self::Same | Self::Other) => false,
        }
    }
}

/// Stands for the variable at a place of a template.
fn token(at: usize) -> String {
    (9_000_000_000 + at as u64).to_string()
}

/// The variable that opens at an offset, as it is written.
fn variable_at(source: &str, offset: usize) -> &str {
    let rest = &source[offset..];
    let end = rest.find('}').map_or(rest.len(), |end| end + 1);
    &rest[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instants(source: &str) -> Vec<Instant> {
        let mut points = Points::default();
        points.add(source);
        points.instants.into_iter().collect()
    }

    #[test]
    fn the_instant_of_a_point_is_told_by_its_template() {
        let unique = Instant::Unique("${unique_ms:2:1}".to_owned());
        for (source, expected) in [
            (r#"{"ts":${due_ms},"values":{"a":${seq}}}"#, Instant::Due),
            (r#"{"ts":"${due_ms}","values":{"a":1}}"#, Instant::Due),
            (r#"[{"ts":${unique_ms:2:1},"values":{"a":1}}]"#, unique),
            (r#"{"${id}":[{"ts":${due_ms},"values":{}}]}"#, Instant::Due),
            (r#"{"ts":"${json:due_ms}","values":{"a":1}}"#, Instant::Due),
            (r#"{"ts":"${json:seq}","values":{"a":1}}"#, Instant::Other),
            (r#"{"a":${due_ms}}"#, Instant::Arrival),
            (r#"{"ts":${due_ms},"a":1}"#, Instant::Arrival),
            (r#"{"ts":1600000000000,"values":{"a":1}}"#, Instant::Same),
            (r#"{"ts":16000${index:08},"values":{"a":1}}"#, Instant::Same),
            (r#"{"ts":16000${seq},"values":{"a":1}}"#, Instant::Other),
            (r#"{"ts":${int:1:9},"values":{"a":1}}"#, Instant::Other),
        ] {
            assert_eq!(instants(source), [expected], "{source}");
        }
        assert_eq!(instants("on"), []);
    }

    #[test]
    fn streams_share_a_key_unless_their_milliseconds_are_apart() {
        let points = |ts: &str, key: &str| {
            let mut points = Points::default();
            points.add(&format!(r#"{{"ts":{ts},"values":{{"{key}":1}}}}"#));
            points
        };
        for (one, two, expected) in [
            ("${due_ms}", "${due_ms}", Some("a")),
            ("${due_ms}", "${unique_ms}", Some("a")),
            ("${unique_ms}", "${unique_ms}", Some("a")),
            ("${unique_ms:2:0}", "${unique_ms:3:1}", Some("a")),
            ("${unique_ms:2:0}", "${unique_ms:2:1}", None),
            ("${due_ms}", "16000${seq}", None),
        ] {
            let (one, other) = (points(one, "a"), points(two, "b"));
            assert_eq!(one.shared_key(&other), None);
            assert_eq!(one.shared_key(&points(two, "a")), expected, "{two}");
        }
    }
}
