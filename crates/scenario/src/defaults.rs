//! Defaults of keys that are left out, filled into the tree, so that the plan is built from a
//! complete scenario and the result shows the scenario as run.
//!
//! A filled value takes the place of the map it is missing in.

mod addresses;
mod calls;
mod coap;
mod requests;
mod short;
mod stamps;

use muster_plan::BackendKind;
use muster_platform::{Dialect, Protocol};

pub(crate) use addresses::{address, default_protocol};

use self::addresses::{first_protocol, of_applications, of_gateway, schemes};
use crate::check::{Given, alternative};
use crate::endpoint;
use crate::language::{Kind, Object, Owner, SCENARIO, STREAM, Status};
use crate::source::{Place, Sources};
use crate::tree::{self, Entry, Node, Value};
use crate::units;

/// Fills in every default. The tree has passed the check.
pub(crate) fn fill(root: &mut Node) {
    short::lengthen(root);
    let dialect = dialect(root);
    let first = first_protocol(root, dialect);
    for fleet in list_mut(root, "fleet") {
        let protocol = protocol_of(fleet, first);
        requests::fill(fleet, dialect, protocol);
        if protocol == Protocol::Coap {
            coap::fill(fleet);
        }
    }
    fill_dialect(root, dialect);
    stamps::leave_out(root, dialect);
    fill_queries(root);
    let given = Given::new(root);
    fill_object(&SCENARIO, root, &given);
    for fleet in list_mut(root, "fleet") {
        let asks = protocol_of(fleet, first).asks;
        fill_fleet(fleet, asks);
        for stream in list_mut(fleet, "streams") {
            if dialect.has_free_calls && is_uplink(stream) {
                calls::fill(stream);
            }
            leave_out_of_messages(stream);
        }
    }
    fill_settle(root);
    let traffic = Traffic::of(root, dialect);
    if let Some(platform) = root.get_mut("platform") {
        fill_platform(platform, dialect, &traffic);
    }
}

fn dialect(root: &Node) -> Dialect {
    let word = |key: &str| root.get("platform")?.get(key)?.text();
    let name = match word("kind").unwrap_or("gateway") {
        "gateway" => word("dialect").unwrap_or_default(),
        kind => kind,
    };
    Dialect::named(name).unwrap_or_default()
}

/// The protocol of a fleet's devices; by default that of the first address.
fn protocol_of(fleet: &Node, first: Protocol) -> Protocol {
    Protocol::named(text(fleet, "protocol")).unwrap_or(first)
}

/// The dialect's own defaults, which go before the language's.
fn fill_dialect(root: &mut Node, dialect: Dialect) {
    let defaults = dialect.defaults;
    let rewrites = dialect.rewrites_bodies && !is_embedded(root);
    for fleet in list_mut(root, "fleet") {
        fill_all(fleet, defaults.fleet);
        let gateway = fleet.get_mut("gateway");
        let is_gateway = gateway.is_some();
        if let Some(gateway) = gateway {
            fill_all(gateway, defaults.gateway);
        }
        for stream in list_mut(fleet, "streams") {
            let of_topic = (dialect.topic)(text(stream, "topic")).defaults;
            fill_all(stream, of_topic);
            if is_gateway {
                fill_all(stream, defaults.gateway_stream);
            }
            fill_all(stream, defaults.stream);
            if rewrites {
                default(stream, "integrity", "stamp");
            }
            if text(stream, "ack") == "application" {
                fill_all(stream, defaults.acknowledged);
            }
        }
    }
}

fn is_embedded(root: &Node) -> bool {
    let kind = root.get("platform").and_then(|it| it.get("kind"));
    kind.and_then(Node::text).unwrap_or("gateway") == "gateway"
}

fn is_uplink(stream: &Node) -> bool {
    !matches!(text(stream, "kind"), "command" | "receive")
}

/// A query's time-out counts from when it was sent, and its device waits for a command meanwhile.
fn fill_queries(root: &mut Node) {
    for fleet in list_mut(root, "fleet") {
        for stream in list_mut(fleet, "streams") {
            if text(stream, "kind") == "command-query" {
                default(stream, "ttd", DEFAULT_TTD);
                let ttd = units::time(text(stream, "ttd")).map_or(0, |ttd| ttd.get());
                default(stream, "timeout", &written(ttd + QUERY_GRACE_US));
            }
        }
    }
}

/// Time that a device waits for a command where the scenario does not say.
const DEFAULT_TTD: &str = "10s";
/// Further time that its query may go unanswered (docs/semantics.md#time-outs).
const QUERY_GRACE_US: u64 = 10_000_000;

fn fill_all(node: &mut Node, defaults: &[(&str, &str)]) {
    for (key, value) in defaults {
        if value.contains("${") && !value.starts_with('{') {
            default_text(node, key, (*value).to_owned());
        } else {
            default(node, key, value);
        }
    }
}

/// Fills in the defaults of the language: those of keys that have a meaning here.
fn fill_object(object: &'static Object, node: &mut Node, given: &Given) {
    let given = given.clone().within(object, node);
    for key in object.keys {
        let has_meaning = key.owners.iter().all(|owner| given.has(owner));
        if let (Some(default), Status::Built, true) = (key.default, key.status, has_meaning) {
            self::default(node, key.name, default);
        }
    }
    let Value::Map(entries) = &mut node.value else {
        return;
    };
    for Entry { key, node, .. } in entries {
        if let Some(key) = object.key(key) {
            fill_value(&key.kind, node, &given);
        }
    }
}

fn fill_value(kind: &'static Kind, node: &mut Node, given: &Given) {
    match kind {
        Kind::Object(object) => fill_object(object, node, given),
        Kind::Either(kinds) => {
            if let Some(kind) = alternative(kinds, node) {
                fill_value(kind, node, given);
            }
        }
        Kind::List(inner) => {
            let Value::List(items) = &mut node.value else {
                return;
            };
            items
                .iter_mut()
                .for_each(|item| fill_value(inner, item, given));
        }
        Kind::One(_) | Kind::Url(_) | Kind::Word(_) | Kind::Percentiles | Kind::Table(_) => {}
    }
}

fn fill_fleet(fleet: &mut Node, asks: bool) {
    let id = format!("{}-${{index:08}}", text(fleet, "name"));
    default_text(fleet, "id", id);
    for stream in list_mut(fleet, "streams") {
        fill_stream(stream, asks);
    }
}

/// Fills in a stream; `asks` if its messages are requests, which are answered at whatever level.
fn fill_stream(stream: &mut Node, asks: bool) {
    default_text(stream, "name", text(stream, "kind").to_owned());
    let own = format!("{OWN}${{id}}/{}", text(stream, "name"));
    // A stream with a method has a path.
    match stream.get("method") {
        Some(_) => default_text(stream, "path", format!("/{own}")),
        None => default_text(stream, "topic", own),
    }
    let ack = if text(stream, "qos") == "0" && !asks {
        "none"
    } else {
        "transport"
    };
    default(stream, "ack", ack);
    if let Some(in_flight) = stream
        .get_mut("loop")
        .filter(|node| node.get("overflow").is_some())
        && text(in_flight, "overflow") == "queue"
    {
        default(in_flight, "bound", DEFAULT_BOUND);
    }
}

/// Defaults of keys that do not belong to the kind of a stream are left out.
fn leave_out_of_messages(stream: &mut Node) {
    let (place, kind) = (stream.place, text(stream, "kind").to_owned());
    let has_other = |owner: &Owner| matches!(owner, Owner::Kind(kinds) if !kinds.contains(&&*kind));
    let is_stray = |name: &str| {
        STREAM
            .key(name)
            .is_some_and(|key| key.owners.iter().any(has_other))
    };
    if let Value::Map(entries) = &mut stream.value {
        entries.retain(|entry| entry.node.place != place || !is_stray(&entry.key));
    }
}

const OWN: &str = "muster/";

/// Places in a device's queue where the scenario names none (docs/semantics.md#shed).
pub(crate) const DEFAULT_BOUND: &str = "1000";

/// `settle: 30s` becomes its long form, and at-most gets its default (docs/semantics.md#settling): the
/// longer of 30 s and the longest time-out and quiet.
fn fill_settle(root: &mut Node) {
    let longest = longest_timeout(root);
    let Some(phases) = root.get_mut("phases") else {
        return;
    };
    default(phases, "settle", "{ quiet: 3s }");
    let Some(settle) = phases.get_mut("settle") else {
        return;
    };
    if let Value::Scalar { .. } = settle.value {
        let at_most = settle.clone();
        let place = settle.place;
        let entry = Entry {
            key: "at-most".to_owned(),
            place,
            node: at_most,
        };
        settle.value = Value::Map(vec![entry]);
        default(settle, "quiet", "3s");
    }
    let quiet = units::time(text(settle, "quiet")).map_or(0, |time| time.get());
    let at_most = (longest + quiet).max(30_000_000);
    default(settle, "at-most", &written(at_most));
}

fn longest_timeout(root: &mut Node) -> u64 {
    let fleets = root.get("fleet").map_or(&[][..], Node::items).iter();
    let streams = fleets.flat_map(|fleet| fleet.get("streams").map_or(&[][..], Node::items));
    let timeouts = streams.filter_map(|stream| units::time(text(stream, "timeout")).ok());
    timeouts.map(|time| time.get()).max().unwrap_or(0)
}

/// A time as a scenario writes it, exact.
fn written(us: u64) -> String {
    match us {
        us if us % 1_000_000 == 0 => format!("{}s", us / 1_000_000),
        us if us % 1_000 == 0 => format!("{}ms", us / 1_000),
        us => format!("{us}us"),
    }
}

/// A topic that nobody publishes on, for a backend that has nothing to consume.
const NOTHING: &str = "muster/nothing";

/// Properties of the scenario that a backend's defaults depend on.
struct Traffic {
    /// A filter that takes every topic of the scenario.
    filter: String,
    qos: String,
    /// True if any stream's messages carry an id.
    carries_ids: bool,
    /// True if all of them surface northbound.
    surfaces: bool,
    /// The newest version of MQTT that a device speaks; 5 where none speaks MQTT.
    version: String,
    /// True if the devices have an address of the application's protocol.
    publishes: bool,
}

/// Northbound address of an embedded gateway whose devices speak no MQTT.
const NORTHBOUND: &str = "mqtt://127.0.0.1:0";

impl Traffic {
    fn of(root: &Node, dialect: Dialect) -> Self {
        let fleets = root.get("fleet").map_or(&[][..], Node::items).iter();
        let streams: Vec<&Node> = fleets
            .flat_map(|fleet| fleet.get("streams").map_or(&[][..], Node::items))
            .filter(|stream| is_uplink(stream))
            .collect();
        let qos = streams
            .iter()
            .filter_map(|stream| stream.get("qos")?.text())
            .max()
            .unwrap_or("1");
        let topics = || streams.iter().map(|stream| surfaced(stream));
        let is_surfacing =
            dialect.has_northbound && topics().all(|topic| (dialect.topic)(topic).surfaces);
        let surfaces: Vec<String> = topics()
            .map(|topic| dialect.surface(topic).to_owned())
            .collect();
        let common = surfaces.iter().map(|topic| levels(topic)).reduce(|a, b| {
            a.into_iter()
                .zip(b)
                .take_while(|(a, b)| a == b)
                .map(|(a, _)| a)
                .collect()
        });
        let prefix = common.map_or_else(|| OWN.to_owned(), |levels| levels.concat());
        let first = first_protocol(root, dialect);
        let of_fleets = root.get("fleet").map_or(&[][..], Node::items).iter();
        let of_mqtt = of_fleets.filter(|fleet| protocol_of(fleet, first) == Protocol::Mqtt);
        let versions = of_mqtt.filter_map(|fleet| Some(text(fleet.get("client")?, "version")));
        let carries_id = |stream: &&Node| text(stream, "carrier") != "none";
        Self {
            filter: match is_surfacing {
                true => format!("{prefix}#"),
                false => dialect.application.replies.unwrap_or(NOTHING).to_owned(),
            },
            qos: qos.to_owned(),
            carries_ids: streams.is_empty() || streams.iter().any(carries_id),
            surfaces: is_surfacing,
            version: versions.max().unwrap_or("5").to_owned(),
            publishes: schemes(root).any(|it| it.protocol().is_applications),
        }
    }
}

/// The topic of a stream, or its path without the first slash and the query.
fn surfaced(stream: &Node) -> &str {
    let path = text(stream, "path").strip_prefix('/');
    let path = path.and_then(|path| path.split('?').next());
    path.unwrap_or_else(|| text(stream, "topic"))
}

/// The leading levels of a topic that hold no variable, each with its slash.
fn levels(topic: &str) -> Vec<&str> {
    topic
        .split_inclusive('/')
        .take_while(|level| level.ends_with('/') && !level.contains("${"))
        .collect()
}

fn fill_platform(platform: &mut Node, dialect: Dialect, traffic: &Traffic) {
    if text(platform, "kind") == "gateway" {
        default(platform, "dialect", dialect.name);
        default(platform, "devices", &of_gateway(dialect));
        // Where no message carries an id, no arrival could join the ledger.
        if traffic.carries_ids && traffic.surfaces {
            default(platform, "backend", "[ { consumers: 1 } ]");
        }
        if let Some(time) = dialect.server.service_time {
            default(platform, "behaviour", "{}");
            if let Some(behaviour) = platform.get_mut("behaviour") {
                default(behaviour, "service-time", time);
            }
        }
        if let Some(behaviour) = platform
            .get_mut("behaviour")
            .filter(|b| b.get("capacity").is_some())
        {
            default(behaviour, "queue", "20000");
            default(behaviour, "full", "drop");
        }
    }
    let is_broker = dialect.is_broker || text(platform, "kind") == "gateway";
    let url = of_applications(platform).filter(|_| is_broker);
    // Where the business application cannot connect, the embedded gateway has a broker for it.
    let is_embedded = text(platform, "kind") == "gateway";
    let url = match is_embedded && !traffic.publishes {
        true => Some(NORTHBOUND.to_owned()),
        false => url.map(str::to_owned),
    };
    let Some(backend) = platform.get_mut("backend") else {
        return;
    };
    if let Value::Map(_) = backend.value {
        backend.value = Value::List(vec![backend.clone()]);
    }
    let Value::List(backends) = &mut backend.value else {
        return;
    };
    let count = backends.len();
    for (number, backend) in (1..).zip(backends) {
        let name = if count == 1 {
            "backend".to_owned()
        } else {
            format!("backend-{number}")
        };
        default_text(backend, "name", name);
        if let Some(url) = url.as_ref().filter(|_| has_url(backend)) {
            default_text(backend, "url", url.clone());
        }
        if backend_kind(backend) == BackendKind::Mqtt {
            default_text(backend, "filter", traffic.filter.clone());
            default(backend, "qos", &traffic.qos);
            default_text(backend, "version", traffic.version.clone());
        }
    }
}

/// True if a backend has an address that its consumers connect to.
fn has_url(backend: &Node) -> bool {
    !matches!(
        backend_kind(backend),
        BackendKind::Webhook | BackendKind::Rpc
    )
}

/// The kind of a backend; MQTT where nothing says another.
pub(crate) fn backend_kind(backend: &Node) -> BackendKind {
    if backend.get("webhook").is_some() {
        return BackendKind::Webhook;
    }
    if backend.get("rpc").is_some() {
        return BackendKind::Rpc;
    }
    let scheme = endpoint::scheme(text(backend, "url"));
    let kind = scheme.and_then(|scheme| scheme.spec().backend);
    kind.unwrap_or(BackendKind::Mqtt)
}

fn default(node: &mut Node, key: &str, value: &str) {
    if node.get(key).is_none() {
        put(node, key, value);
    }
}

fn default_text(node: &mut Node, key: &str, text: String) {
    if node.get(key).is_none() {
        let value = Value::Scalar { text, quoted: true };
        insert(node, key, Node::new(node.place, value));
    }
}

fn put(node: &mut Node, key: &str, value: &str) {
    let place = node.place;
    let sources = Sources::new("default", value);
    let mut filled = tree::read(&sources, 0).unwrap_or_else(|_| Node::plain(place, value));
    move_to(&mut filled, place);
    insert(node, key, filled);
}

fn insert(node: &mut Node, key: &str, value: Node) {
    let place = node.place;
    if let Value::Map(entries) = &mut node.value {
        entries.push(Entry {
            key: key.to_owned(),
            place,
            node: value,
        });
    }
}

fn move_to(node: &mut Node, place: Place) {
    node.place = place;
    match &mut node.value {
        Value::Scalar { .. } => {}
        Value::List(items) => items.iter_mut().for_each(|item| move_to(item, place)),
        Value::Map(entries) => {
            for entry in entries {
                entry.place = place;
                move_to(&mut entry.node, place);
            }
        }
    }
}

fn text<'a>(node: &'a Node, key: &str) -> &'a str {
    node.get(key).and_then(Node::text).unwrap_or_default()
}

fn list_mut<'a>(node: &'a mut Node, key: &str) -> impl Iterator<Item = &'a mut Node> {
    let items = match node.get_mut(key).map(|node| &mut node.value) {
        Some(Value::List(items)) => items.as_mut_slice(),
        Some(Value::Scalar { .. } | Value::Map(_)) | None => &mut [],
    };
    items.iter_mut()
}
