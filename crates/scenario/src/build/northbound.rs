//! Sources of a backend's consumers: MQTT's subscriptions, and the topics of Kafka.

use std::collections::BTreeSet;

use muster_plan::{
    BackendKind, Endpoint, FleetPlan, KafkaNorthbound, KafkaTopic, MqttNorthbound, Northbound,
    Sasl, Scheme,
};
use muster_platform::{Dialect, KafkaClass, KafkaRecords, TENANT};
use muster_protocol::mqtt::{Qos, topic};

use super::amqp::amqp;
use super::fleet;
use crate::endpoint;
use crate::view::View;

const NAME_MAX: usize = 249;

/// Reads what the consumers of a backend at this address consume.
pub(super) fn northbound(
    view: &View<'_>,
    endpoint: &Endpoint,
    dialect: Dialect,
    fleets: &[FleetPlan],
) -> Option<Northbound> {
    match endpoint.scheme.spec().backend? {
        BackendKind::Mqtt => mqtt(view).map(Northbound::Mqtt),
        BackendKind::Kafka => kafka(view, dialect, fleets).map(Northbound::Kafka),
        BackendKind::Amqp => amqp(view, endpoint, dialect, fleets).map(Northbound::Amqp),
        // The keys `webhook` and `rpc` name them, and their addresses.
        BackendKind::Webhook | BackendKind::Rpc => None,
    }
}

fn mqtt(view: &View<'_>) -> Option<MqttNorthbound> {
    let filter = view.get("filter").and_then(|filter| filter_of(&filter));
    Some(MqttNorthbound {
        version: fleet::version(view),
        filter: filter?,
        qos: Qos::from_bits(view.whole("qos")?)?,
    })
}

fn filter_of(view: &View<'_>) -> Option<String> {
    let filter = view.text();
    if filter.starts_with("$share/") {
        let help = "write the group under `shared` and the filter alone here";
        return view.refuse("a shared subscription has its own key", help);
    }
    match topic::check_filter(filter) {
        Ok(()) => Some(filter.to_owned()),
        Err(error) => view.refuse(format!("`{filter}` is no topic filter"), &error.to_string()),
    }
}

pub(super) fn group(view: &View<'_>, endpoint: &Endpoint) -> Option<String> {
    let group = view.text();
    if group.contains(['/', '+', '#']) && endpoint.scheme.spec().backend == Some(BackendKind::Mqtt)
    {
        let what = format!("`{group}` is no group of a shared subscription");
        return view.refuse(what, "a name without `/`, `+` and `#` (MQTT-4.8.2-2)");
    }
    Some(group.to_owned())
}

fn kafka(view: &View<'_>, dialect: Dialect, fleets: &[FleetPlan]) -> Option<KafkaNorthbound> {
    if let (Some(user), None) = (view.get("user"), view.get("password")) {
        return user.refuse("a user name without a password", "add `password`");
    }
    if let Some(bytes) = view.get("password").filter(View::is_map) {
        return bytes.refuse(
            "a password of Kafka is text (RFC 4616), and not bytes",
            "write it as text",
        );
    }
    let sasl = view.get("sasl").map_or(Some(Sasl::Plain), |named| {
        let mut all = Sasl::ALL.into_iter();
        let sasl = all.find(|sasl| sasl.mechanism().eq_ignore_ascii_case(named.text()));
        if sasl.is_none() {
            let what = format!("`{}` is no mechanism of Kafka here", named.text());
            return named.refuse(what, "plain, scram-sha-256 or scram-sha-512");
        }
        if view.get("user").is_none() {
            return named.refuse("there is no password to prove", "add `user` and `password`");
        }
        sasl
    })?;
    if let Some(commands) = view
        .get("commands")
        .filter(|_| dialect.application.kafka.is_none())
    {
        let what = format!("no command reaches a device of {dialect} by way of Kafka");
        return commands.refuse(what, "remove `commands`, or use `platform.kind: hono`");
    }
    Some(KafkaNorthbound {
        servers: view.read("url", endpoint::servers)?,
        topics: topics(view, dialect, fleets)?,
        sasl,
    })
}

/// The topics of a backend. A dialect with known topics has its own names for them; otherwise the names are
/// the topics'.
fn topics(view: &View<'_>, dialect: Dialect, fleets: &[FleetPlan]) -> Option<Vec<KafkaTopic>> {
    let named = view.get("topics");
    if let Some(kafka) = &dialect.application.kafka {
        return of_dialect(named.as_ref(), kafka.topics, fleets);
    }
    let Some(named) = named else {
        let help = "add `topics: { readings: 4 }`: their names, each with its partitions";
        return view.refuse("the backend does not say which topics it consumes", help);
    };
    let topic = |(name, view): (&str, View<'_>)| {
        is_name(&view, name)?;
        Some(KafkaTopic {
            name: name.to_owned(),
            partitions: named.whole(name)?,
            surface: String::new(),
            tenant: None,
            records: KafkaRecords::Messages,
        })
    };
    let topics = named.entries().map(topic).collect::<Option<Vec<_>>>()?;
    if topics.is_empty() {
        return named.refuse("no topic is named", "such as `topics: { readings: 4 }`");
    }
    Some(topics)
}

/// The topics of each class, one a tenant where the class has one for each.
fn of_dialect(
    named: Option<&View<'_>>,
    classes: &[KafkaClass],
    fleets: &[FleetPlan],
) -> Option<Vec<KafkaTopic>> {
    for (name, stray) in named.iter().flat_map(|named| named.entries()) {
        if classes.iter().all(|class| class.name != name) {
            let known: Vec<&str> = classes.iter().map(|class| class.name).collect();
            let help = format!("the topics here are {}", known.join(", "));
            return stray.refuse(format!("`{name}` is no topic of this platform"), &help);
        }
    }
    let tenants: BTreeSet<&str> = fleets.iter().map(|fleet| fleet.tenant.as_str()).collect();
    let mut topics: Vec<KafkaTopic> = Vec::new();
    for class in classes {
        let partitions = named.and_then(|named| named.whole(class.name));
        for tenant in &tenants {
            let topic = KafkaTopic {
                name: class.topic.replace(TENANT, tenant),
                partitions: partitions.unwrap_or(class.partitions),
                surface: class.surface.replace(TENANT, tenant),
                tenant: class.topic.contains(TENANT).then(|| (*tenant).to_owned()),
                records: class.records,
            };
            if !topics.contains(&topic) {
                topics.push(topic);
            }
        }
    }
    Some(topics)
}

fn is_name(view: &View<'_>, name: &str) -> Option<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_right = name.chars().all(is_plain) && !matches!(name, "" | "." | "..");
    if is_right && name.len() <= NAME_MAX {
        return Some(());
    }
    let help = "letters, digits, `.`, `_` and `-`, at most 249 of them";
    view.refuse(format!("`{name}` cannot name a topic of Kafka"), help)
}

/// Checks that a backend has the northbound address of the embedded gateway, a free port.
pub(super) fn is_beside(url: &View<'_>, endpoint: &Endpoint) {
    if endpoint.scheme == Scheme::Mqtt && endpoint.port == 0 {
        return;
    }
    let what = format!(
        "where no device speaks MQTT the embedded gateway has its broker at a free port, not at {endpoint}"
    );
    url.wrong(what, "remove `url`");
}

/// Checks that a backend with its own listener at the embedded gateway has the address there, a free port.
pub(super) fn is_free(url: &View<'_>, endpoint: &Endpoint) {
    if endpoint.port == 0 {
        return;
    }
    let scheme = endpoint.scheme;
    let name = scheme.spec().backend.map_or("", |kind| kind.name);
    let what = format!("the embedded gateway serves {name} at a free port, not at {endpoint}");
    let other = scheme.other_by_tls();
    let other = other.map_or_else(String::new, |it| format!(" or {}://127.0.0.1:0", it.name()));
    url.wrong(what, &format!("use {}://127.0.0.1:0{other}", scheme.name()));
}
