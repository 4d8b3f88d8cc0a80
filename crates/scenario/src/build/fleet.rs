//! A fleet and its links.

use std::fmt::Display;
use std::sync::Arc;

use muster_load::{Names, Octets, Table, Template};
use muster_model::{DeviceId, FleetId, LinkId, Micros};
use muster_plan::{
    Authentication, BackOff, ClientPlan, ConnectPlan, FleetPlan, MqttSettings, Phases, Scheme,
    Secret, Will,
};
use muster_platform::{Dialect, Protocol, RequestLimits};
use muster_protocol::mqtt::{Qos, Version, topic};

use super::addresses;
use super::coap;
use super::command::Commands;
use super::credential::credential;
use super::hono;
use super::http;
use super::json;
use super::names::{self, Rows};
use super::offline::{self, offline};
use super::secret::octets;
use super::stream;
use super::templates::{Variables, device_template, is_built_in, template_of};
use crate::view::View;

/// The keep-alive and the session expiry travel in whole seconds; the keep-alive in 16 bits
/// (MQTT 5 section 3.1.2.10).
const LONGEST_KEEP_ALIVE: u32 = u16::MAX as u32;
/// The session expiry travels in 32 bits; all ones mean that the session never expires (section 3.1.2.11.2).
const LONGEST_EXPIRY: u32 = u32::MAX;

/// First ids of a fleet, and what it shares with the others.
pub(super) struct FleetContext<'a> {
    pub(super) id: FleetId,
    pub(super) dialect: Dialect,
    pub(super) scheme: Scheme,
    pub(super) is_embedded: bool,
    /// Limits of the platform on a request; none where nothing is known of it.
    pub(super) request_limits: Option<RequestLimits>,
    pub(super) device: u32,
    pub(super) link: u32,
    pub(super) stream: u16,
    pub(super) seed: u64,
    pub(super) phases: &'a Phases,
    pub(super) commands: Option<Commands>,
}

pub(super) fn devices_per_link(view: &View<'_>) -> u32 {
    view.get("gateway")
        .and_then(|gateway| gateway.whole("devices"))
        .unwrap_or(1)
}

pub(super) fn fleet(view: &View<'_>, context: &FleetContext<'_>) -> Option<FleetPlan> {
    let known = devices(view)?;
    let variables = known.variables();
    let devices = known.devices;
    let client = client(view, context.scheme, &variables);
    let credential = credential(&view.get("credential")?, context, &variables);
    let connect = connect(&view.get("connect")?);
    let reconnect = reconnect(&view.get("reconnect")?);
    let away = offline(view, context.phases);
    let mqtt = client.as_ref().and_then(ClientPlan::mqtt);
    let version = mqtt.map_or(Version::V5, |mqtt| mqtt.version);
    let class = stream::Class {
        view,
        context,
        devices,
        version,
        variables: &variables,
    };
    let streams = stream::streams(&class);
    let devices_per_link = links_of_its_own(view, context.dialect)?;
    let links = devices.div_ceil(devices_per_link);
    let link_names = names::link_names(view, &variables, (links, devices_per_link))?;
    let (credential, streams) = (credential?, streams?);
    let (client, connect, away) = (client?, connect?, away?);
    names::links_are_named(view, context, (&credential, &client), &streams)?;
    hono::warn_of_other_identities(&class, &credential, &streams);
    if let Some(mqtt) = client.mqtt() {
        offline::warn(view, mqtt, &streams, (&away, links, &connect));
    }
    let client = coap::deal(view, client, &streams, (context.scheme, links))?;
    Some(FleetPlan {
        name: view.text_of("name").to_owned(),
        id: context.id,
        first_device: DeviceId(context.device),
        devices,
        first_index: known.first_index,
        first_link: LinkId(context.link),
        links,
        is_gateway: view.get("gateway").is_some(),
        link_names,
        devices_per_link,
        tenant: known.tenant.to_owned(),
        client,
        credential,
        connect,
        reconnect: reconnect?,
        offline: away,
        streams,
        data: known.data,
        names: known.names,
    })
}

struct Devices<'a> {
    devices: u32,
    first_index: u32,
    tenant: &'a str,
    data: Option<Arc<Table>>,
    file: &'a str,
    names: Names,
}

impl Devices<'_> {
    fn variables(&self) -> Variables<'_> {
        Variables {
            names: &self.names,
            index: (self.first_index, self.first_index + (self.devices - 1)),
            tenant: self.tenant,
            table: self.data.as_deref(),
            file: self.file,
        }
    }
}

fn devices<'a>(view: &View<'a>) -> Option<Devices<'a>> {
    let devices: u32 = view.whole("count")?;
    let first_index: u32 = view.whole("first")?;
    is_in_range(view, first_index, devices)?;
    let data = view.optional("data", |file| table(file, devices).map(Arc::new))?;
    let nameless = Devices {
        devices,
        first_index,
        tenant: view.text_of("tenant"),
        data,
        file: view.text_of("data"),
        names: Names::formula("${index}").ok()?,
    };
    let rows = Rows {
        first: first_index,
        count: devices,
        step: 1,
    };
    let names = names::names(&view.get("id")?, &nameless.variables(), rows)?;
    Some(Devices { names, ..nameless })
}

/// Number of devices that each link carries, if the dialect allows for it.
fn links_of_its_own(view: &View<'_>, dialect: Dialect) -> Option<u32> {
    let devices = devices_per_link(view);
    if devices > 1 && !dialect.shares_links {
        let what = format!("a link carries one device with {dialect}");
        return view.refuse_at(
            "gateway",
            what,
            "remove it: each device then has its own link",
        );
    }
    Some(devices)
}

fn is_in_range(view: &View<'_>, first: u32, devices: u32) -> Option<()> {
    let last = first.checked_add(devices - 1);
    if last.is_none() {
        let what = format!("{devices} devices from index {first} on go beyond 4294967295");
        view.get("count")?
            .wrong(what, "fewer devices, or a smaller `first`");
    }
    last.map(drop)
}

fn table(view: &View<'_>, devices: u32) -> Option<Table> {
    let path = view.text();
    let bytes = view.file(path)?;
    let wrong = |error: &dyn Display| {
        let help = "values separated by commas, semicolons or tabs, as RFC 4180 has them, in UTF-8";
        view.wrong(format!("{path}: {error}"), help);
    };
    let text = muster_load::text(&bytes)
        .map_err(|error| wrong(&error))
        .ok()?;
    let table = Table::parse(text).map_err(|error| wrong(&error)).ok()?;
    if let Some(taken) = table.columns().iter().find(|name| is_built_in(name)) {
        let what = format!(
            "{path}: column `{taken}` would never be read: `${{{taken}}}` is a variable of Muster"
        );
        return view.refuse(what, "give the column another name");
    }
    if table.len() < devices as usize {
        let what = format!("{path} has {} rows for {devices} devices", table.len());
        return view.refuse(what, "a row for each device, or a smaller `count`");
    }
    Some(table)
}

pub(super) fn version(view: &View<'_>) -> Version {
    match view.text_of("version") {
        "3.1.1" => Version::V311,
        _ => Version::V5,
    }
}

fn client(fleet: &View<'_>, scheme: Scheme, variables: &Variables<'_>) -> Option<ClientPlan> {
    match scheme.protocol() {
        Protocol::Mqtt => {
            let settings = mqtt(&fleet.get("client")?, variables)?;
            let error_topic = hono::has_error_topic(fleet)?;
            Some(ClientPlan::Mqtt(Box::new(MqttSettings {
                error_topic,
                ..settings
            })))
        }
        Protocol::Coap => coap::client(fleet).map(ClientPlan::Coap),
        Protocol::Http => http::client(fleet).map(ClientPlan::Http),
    }
}

fn mqtt(view: &View<'_>, variables: &Variables<'_>) -> Option<MqttSettings> {
    let version = version(view);
    let session_expiry = seconds(view, "session-expiry", LONGEST_EXPIRY);
    let keep_alive = seconds(view, "keep-alive", LONGEST_KEEP_ALIVE);
    let will = view.optional("will", |view| will(view, variables))?;
    let receive_maximum = view.whole("receive-maximum");
    let authentication = view.optional("authentication", |view| authentication(view, variables))?;
    if version == Version::V311 {
        only_version_5(view, session_expiry)?;
    }
    will_is_in_time(view, (version, session_expiry?), will.as_ref())?;
    Some(MqttSettings {
        version,
        client_id: names::client_id(view, variables)?,
        clean_start: view.truth("clean-start")?,
        session_expiry_s: session_expiry?,
        keep_alive_s: u16::try_from(keep_alive?).ok()?,
        receive_maximum,
        maximum_packet_size: 0,
        needed_packet: 0,
        error_topic: false,
        will,
        authentication,
    })
}

/// A will is published when the session ends, at the latest (MQTT 5 section 3.1.3.2.2).
fn will_is_in_time(
    view: &View<'_>,
    (version, expiry_s): (Version, u32),
    will: Option<&Will>,
) -> Option<()> {
    let Some(will) = will.filter(|will| will.delay_s > 0) else {
        return Some(());
    };
    let delay = view.get("will")?.get("delay")?;
    if version == Version::V311 {
        return delay.refuse(
            "MQTT 3.1.1 has no will delay",
            "use `version: \"5\"`, or remove it",
        );
    }
    if will.delay_s > expiry_s {
        let expiry = Micros::from_secs(expiry_s.into());
        let what = format!("the will is published when the session ends, after {expiry}");
        delay.warn(what, "a `session-expiry` that is longer than the delay");
    }
    Some(())
}

/// MQTT 3.1.1 has neither properties nor a session that outlives a clean one.
fn only_version_5(view: &View<'_>, expiry_s: Option<u32>) -> Option<()> {
    let help = "use `version: \"5\"`, or remove it";
    if expiry_s.is_some_and(|expiry| expiry > 0) {
        let what = "MQTT 3.1.1 has no session expiry: `clean-start: false` keeps the session";
        return view.refuse_at("session-expiry", what, help);
    }
    for (key, what) in [
        ("receive-maximum", "MQTT 3.1.1 has no receive maximum"),
        (
            "authentication",
            "MQTT 3.1.1 has no authentication beyond name and password",
        ),
    ] {
        if let Some(stray) = view.get(key) {
            return stray.refuse(what, help);
        }
    }
    Some(())
}

fn authentication(view: &View<'_>, variables: &Variables<'_>) -> Option<Authentication> {
    let method = view.text_of("method");
    if method.len() > topic::TOPIC_MAXIMUM {
        let help = "at most 65535 bytes (MQTT 5 section 1.5.4)";
        return view.refuse_at("method", "the method's name is too long for MQTT", help);
    }
    let text = |key| view.optional(key, |text| octets(text, variables).map(Secret::new));
    let data = match text("data")? {
        Some(data) => data,
        None => Secret::new(Octets::text(template_of(view, "", variables)?)),
    };
    Some(Authentication {
        method: method.to_owned(),
        answer: text("answer")?.unwrap_or_else(|| data.clone()),
        data,
        echo: view.truth("echo")?,
        again: view.time("again").filter(|again| *again > Micros::ZERO),
    })
}

fn seconds(view: &View<'_>, key: &str, most: u32) -> Option<u32> {
    let time = view.time(key)?;
    if time.get() % 1_000_000 != 0 {
        let what = format!("`{key}` travels in whole seconds");
        return view.refuse_at(key, what, "such as 60s");
    }
    let seconds = u32::try_from(time.get() / 1_000_000);
    let Some(seconds) = seconds.ok().filter(|seconds| *seconds <= most) else {
        let what = format!("`{key}` is at most {most} s in MQTT");
        return view.refuse_at(key, what, "a shorter time");
    };
    Some(seconds)
}

fn will(view: &View<'_>, variables: &Variables<'_>) -> Option<Will> {
    let topic = topic_template(&view.get("topic")?, variables);
    let payload = device_template(&view.get("payload")?, variables)
        .map(|template| json::escaped_template(template, variables));
    Some(Will {
        topic: topic?,
        payload: payload?,
        qos: Qos::from_bits(view.whole("qos")?)?,
        retain: view.truth("retain")?,
        delay_s: seconds(view, "delay", LONGEST_EXPIRY)?,
    })
}

/// A template whose texts are topic names for every device.
pub(super) fn topic_template(view: &View<'_>, variables: &Variables<'_>) -> Option<Template> {
    let template = device_template(view, variables)?;
    is_topic(view, &template, variables).then_some(template)
}

/// Returns whether the texts of a template are topic names for every device.
pub(super) fn is_topic(view: &View<'_>, template: &Template, variables: &Variables<'_>) -> bool {
    for place in variables.places(template) {
        let topic = variables.render(template, place);
        if !topic::is_name(&topic) {
            let owner = variables.owner(Some(template), place);
            let what = format!("`{topic}`{owner} is no topic name");
            view.wrong(
                what,
                "a text of 1 to 65535 bytes without `+`, `#` and NUL (MQTT-4.7.1-1)",
            );
            return false;
        }
    }
    true
}

fn connect(view: &View<'_>) -> Option<ConnectPlan> {
    let (pack, pending) = (view.whole("pack")?, view.whole("pending")?);
    if pack > pending {
        let what = format!("{pack} links cannot connect at once, since `pending` is {pending}");
        return view.refuse_at("pack", what, "a smaller `pack`, or a larger `pending`");
    }
    Some(ConnectPlan {
        rate: view.rate("rate")?,
        pack,
        pending,
        timeout: view.time("timeout")?,
        lifetime: view
            .time("lifetime")
            .filter(|lifetime| *lifetime > Micros::ZERO),
        from: addresses::sources(view)?,
    })
}

fn reconnect(view: &View<'_>) -> Option<BackOff> {
    let reconnect = BackOff {
        min: view.time("min")?,
        max: view.time("max")?,
        jitter: view.fraction("jitter")?,
    };
    if reconnect.min > reconnect.max {
        let what = format!(
            "`min` ({}) is longer than `max` ({})",
            reconnect.min, reconnect.max
        );
        return view.refuse_at("min", what, "a shorter `min`, or a longer `max`");
    }
    Some(reconnect)
}
