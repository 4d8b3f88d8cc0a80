//! The platform and the business application behind it.

use muster_model::Micros;
use muster_model::behaviour::{Amount, Behaviour};
use muster_plan::{
    BackendPlan, Endpoint, FleetPlan, Northbound, Pause, Phases, Plan, PlatformKind, PlatformPlan,
    Scheme, TlsPlan, all_surface,
};
use muster_platform::{Carrier, Dialect, Protocol};
use muster_protocol::mqtt::{Version, topic};

use super::addresses;
use super::behaviour;
use super::body::sampled;
use super::expected::due_from;
use super::fleet;
use super::northbound::{self, northbound};
use super::rpc::rpc;
use super::secret::{secret, secret_bytes};
use super::silent;
use super::transport;
use super::webhook::webhook;
use crate::defaults::default_protocol;
use crate::endpoint;
use crate::view::View;

/// Most accounts of arrivals: each has an id of 8 bits.
const MAX_BACKENDS: usize = 255;

/// Reads `platform`, but for its backends; `is_acknowledged` says that the application acknowledges
/// messages of some stream.
pub(super) fn platform(view: &View<'_>, is_acknowledged: bool) -> Option<PlatformPlan> {
    let dialect = dialect(view);
    let endpoints = endpoints(view).filter(|_| speaks(view, dialect).is_some());
    let weighted = endpoints
        .as_deref()
        .map(|all| addresses::weighted(view, all));
    let tls = match view.get("tls") {
        Some(tls) => {
            transport::fits_datagrams(&tls, &schemes(view)).and_then(|()| transport::tls(&tls))
        }
        None => Some(TlsPlan::default()),
    };
    let kind = match view.text_of("kind") {
        "gateway" => {
            let endpoints = endpoints.as_deref().unwrap_or_default();
            gateway(view, endpoints, (dialect, is_acknowledged))
        }
        _ => deployed(view, dialect),
    };
    let about = view.optional("about", |about| file_text(&about.get("file")?))?;
    Some(PlatformPlan {
        scale: None,
        hooks: Vec::new(),
        kind: kind?,
        endpoints: weighted?,
        uses_all_addresses: view.text_of("addresses") == "all",
        renews_addresses: view
            .time("renew-addresses")
            .filter(|every| *every > Micros::ZERO),
        tls: tls?,
        about,
    })
}

pub(super) fn dialect(platform: &View<'_>) -> Dialect {
    let name = match platform.text_of("kind") {
        "gateway" => platform.text_of("dialect"),
        kind => kind,
    };
    Dialect::named(name).unwrap_or_default()
}

/// The addresses of `devices`, each with or without a weight.
pub(super) fn urls<'a>(platform: &View<'a>) -> Vec<View<'a>> {
    let items = platform.list("devices").into_iter();
    items.map(|item| item.get("url").unwrap_or(item)).collect()
}

/// Schemes of the devices' addresses; MQTT where none can be read, which is said elsewhere.
pub(super) fn schemes(platform: &View<'_>) -> Vec<Scheme> {
    let devices = urls(platform).into_iter();
    let read = devices.map(|view| endpoint::read(view.text()));
    let schemes = read.map(|endpoint| endpoint.map_or(Scheme::Mqtt, |it| it.scheme));
    schemes.collect()
}

/// Checks that the platform speaks the protocols that the addresses name.
fn speaks(platform: &View<'_>, dialect: Dialect) -> Option<()> {
    let mut schemes = schemes(platform).into_iter().zip(urls(platform));
    let Some((scheme, address)) = schemes.find(|(it, _)| !dialect.speaks(it.protocol())) else {
        return Some(());
    };
    let what = format!("{dialect} is not spoken over `{}`", scheme.name());
    let kind = dialect_of(scheme.protocol());
    let help = format!("use `kind: {kind}`, or `dialect: {kind}` with `kind: gateway`");
    address.refuse(what, &help)
}

/// A dialect whose devices speak a protocol, and no other by default if there is one.
fn dialect_of(protocol: Protocol) -> Dialect {
    let all = || Dialect::ALL.into_iter().filter(|it| it.speaks(protocol));
    let by_default = all().find(|it| default_protocol(*it) == protocol);
    by_default.or(all().next()).unwrap_or_default()
}

fn endpoints(view: &View<'_>) -> Option<Vec<Endpoint>> {
    let Some(list) = view.get("devices") else {
        let help = "add `devices: [ \"mqtt://broker.example:1883\" ]`, or use `kind: gateway`";
        return view.refuse("the platform has no address", help);
    };
    let items = urls(view);
    if items.is_empty() {
        return list.refuse(
            "the list of addresses is empty",
            "such as [ \"mqtt://127.0.0.1:1883\" ]",
        );
    }
    let endpoints = items
        .iter()
        .map(|item| item.accept(endpoint::read(item.text())))
        .collect::<Option<Vec<_>>>()?;
    transport::one_scheme_a_protocol(&items, &endpoints)?;
    Some(endpoints)
}

fn deployed(view: &View<'_>, dialect: Dialect) -> Option<PlatformKind> {
    let mut is_right = true;
    for item in urls(view) {
        if endpoint::read(item.text()).is_ok_and(|endpoint| endpoint.port == 0) {
            item.wrong(
                "port 0 is no port of a platform",
                "the port it listens on, such as 1883",
            );
            is_right = false;
        }
    }
    is_right.then_some(PlatformKind::Deployed { dialect })
}

fn gateway(
    view: &View<'_>,
    endpoints: &[Endpoint],
    (dialect, is_acknowledged): (Dialect, bool),
) -> Option<PlatformKind> {
    let list = urls(view);
    let protocol = |at: usize| endpoints.get(at).map(|it| it.scheme.protocol());
    for (at, item) in list.iter().enumerate() {
        if (0..at).any(|before| protocol(before) == protocol(at)) {
            return item.refuse(
                "the embedded gateway listens on one address for each protocol",
                "keep one address",
            );
        }
    }
    for (item, endpoint) in list.iter().zip(endpoints) {
        let host = endpoint.host.as_str();
        if host != "localhost" && !is_address(host) {
            let what = format!("the embedded gateway cannot listen on `{host}`");
            return item.refuse(
                what,
                "an address of this machine, such as mqtt://127.0.0.1:0",
            );
        }
    }
    let behaviour = match view.get("behaviour") {
        Some(of) => {
            has_links(&of, &schemes(view))?;
            behaviour::has_commands(view, &of)?;
            behaviour::behaviour(&of, dialect, is_acknowledged)?
        }
        None => Behaviour::default(),
    };
    Some(PlatformKind::Gateway {
        dialect,
        behaviour: Box::new(behaviour),
        max_payload: view.optional("max-payload", |_| view.size("max-payload"))?,
    })
}

/// Refuses `close-links` over addresses where devices have no links.
fn has_links(behaviour: &View<'_>, schemes: &[Scheme]) -> Option<()> {
    let stray = behaviour.get("close-links");
    let has_links = |scheme: &Scheme| scheme.is_dtls() || !scheme.protocol().is_in_datagrams;
    let Some(stray) = stray.filter(|_| !schemes.iter().any(has_links)) else {
        return Some(());
    };
    stray.refuse(
        "`close-links` has no meaning over coap://, where devices have no links",
        "remove it, or use coaps://",
    )
}

/// Returns true if a host is written as an address (RFC 3986 section 3.2.2) and needs no look-up.
fn is_address(host: &str) -> bool {
    let is_version_4 =
        host.split('.').count() == 4 && host.split('.').all(|part| part.parse::<u8>().is_ok());
    is_version_4 || host.contains(':')
}

fn file_text(view: &View<'_>) -> Option<(String, String)> {
    let path = view.text();
    let bytes = view.file(path)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Some((path.to_owned(), text))
}

/// Reads `platform.backend`. Each plain subscriber has its own account (docs/semantics.md#arrivals), so
/// several consumers without a group become several backends.
pub(super) fn backends(
    root: &View<'_>,
    of_platform: Option<&PlatformPlan>,
    fleets: &[FleetPlan],
    phases: &Phases,
) -> Option<Vec<BackendPlan>> {
    let platform = &root.get("platform")?;
    let views = platform.list("backend");
    let dialect = dialect(platform);
    let is_consumed = all_surface(dialect, fleets);
    if !is_consumed {
        silent::commands_only(&views, dialect, fleets)?;
    }
    super::only_once(views.iter().filter_map(|view| view.get("name")), "backend");
    let built: Vec<_> = views
        .iter()
        .map(|view| match view.get("rpc") {
            Some(_) => rpc(root, of_platform, view),
            None => backend(platform, of_platform, view, (fleets, phases)),
        })
        .collect();
    let mut backends = Vec::new();
    for backend in built {
        backends.extend(accounts(backend?));
    }
    // Accounts of arrivals are those of the first backends.
    backends.sort_by_key(|backend: &BackendPlan| backend.kind().only_commands);
    if backends.len() > MAX_BACKENDS {
        let what = format!("{} plain subscribers are as many accounts", backends.len());
        return platform.refuse_at(
            "backend",
            what,
            "at most 255; a group (`shared`) is one account",
        );
    }
    let consuming = views.iter().filter(|view| view.get("rpc").is_none());
    for view in consuming.filter(|_| is_consumed) {
        joins_arrivals(view, fleets)?;
        sees_properties(view, fleets)?;
        keeps_order(view, fleets);
        warn_of_blind_filter(view, &views, fleets);
    }
    Some(backends)
}

fn accounts(backend: BackendPlan) -> Vec<BackendPlan> {
    if backend.shares() || backend.consumers == 1 {
        return vec![backend];
    }
    let account = |number| BackendPlan {
        name: format!("{}-{number}", backend.name),
        consumers: 1,
        ..backend.clone()
    };
    (1..=backend.consumers).map(account).collect()
}

fn backend(
    platform: &View<'_>,
    of_platform: Option<&PlatformPlan>,
    view: &View<'_>,
    (fleets, phases): (&[FleetPlan], &Phases),
) -> Option<BackendPlan> {
    let user = view.optional("user", secret);
    let password = view.optional("password", secret_bytes);
    let pause = pauses(view, phases);
    if let Some(hook) = view.get("webhook") {
        let hook = webhook(platform, view, &hook)?;
        return Some(BackendPlan {
            name: view.text_of("name").to_owned(),
            endpoint: hook.endpoint,
            tls: hook.tls,
            northbound: Northbound::Webhook(hook.northbound),
            user: user?,
            password: hook.secret.or(password?),
            consumers: 1,
            shared: None,
            pause: pause?,
            issues_commands: false,
        });
    }
    if let (None, Some(stray)) = (view.get("user"), view.get("password")) {
        // MQTT 3.1.1 forbids it (MQTT-3.1.2-22), and brokers of MQTT 5 know nobody by it.
        stray.wrong("a password without a user name", "add `user`");
    }
    if view.get("url").is_none() && !dialect(platform).is_broker {
        let what = format!(
            "{} is no broker, and the backend has no address",
            dialect(platform)
        );
        view.wrong(what, "add the `url` of the broker that it publishes to");
    }
    let endpoint = view.read("url", endpoint::read);
    check_gateway_url(platform, view, endpoint.as_ref());
    let tls = tls_of(view, of_platform, endpoint.as_ref());
    let endpoint = endpoint?;
    let northbound = northbound(view, &endpoint, dialect(platform), fleets);
    let shared = view.optional("shared", |group| northbound::group(group, &endpoint))?;
    Some(BackendPlan {
        name: view.text_of("name").to_owned(),
        endpoint,
        tls: tls?,
        northbound: northbound?,
        user: user?,
        password: password?,
        consumers: view.whole("consumers")?,
        shared,
        pause: pause?,
        issues_commands: view.get("commands").is_some(),
    })
}

pub(super) fn tls_of(
    view: &View<'_>,
    platform: Option<&PlatformPlan>,
    endpoint: Option<&Endpoint>,
) -> Option<TlsPlan> {
    let Some(own) = view.get("tls") else {
        return Some(platform.map_or_else(TlsPlan::default, |platform| platform.tls.clone()));
    };
    transport::is_used(&own, endpoint.map(|endpoint| endpoint.scheme))?;
    transport::tls(&own)
}

/// Says so where `tls` stands and nobody speaks it.
pub(super) fn tls_is_used(platform: &View<'_>, plan: &Plan) {
    let schemes = plan.platform.endpoints.iter().map(|it| it.scheme);
    let backends = plan.backends.iter().map(|backend| backend.endpoint.scheme);
    let api = plan.provision.as_ref().and_then(|it| it.api.as_ref());
    let is_for_api = api.is_some_and(|api| api.is_tls);
    if let Some(tls) = platform.get("tls").filter(|_| !is_for_api) {
        // What is wrong has been said.
        let _ = transport::is_used(&tls, schemes.chain(backends));
    }
}

/// The embedded gateway's own address is the only one where its messages surface.
fn check_gateway_url(platform: &View<'_>, view: &View<'_>, endpoint: Option<&Endpoint>) {
    let (Some(url), Some(endpoint)) = (view.get("url"), endpoint) else {
        return;
    };
    let is_gateway = platform.text_of("kind") == "gateway";
    let own = urls(platform).into_iter();
    let mut own = own.filter_map(|url| endpoint::read(url.text()).ok());
    let own = own.find(|own| own.scheme.protocol().is_applications);
    let kind = endpoint.scheme.spec().backend;
    let has_listener = kind.is_some_and(|kind| kind.has_gateway_listener);
    if is_gateway && has_listener {
        northbound::is_free(&url, endpoint);
    } else if is_gateway && own.is_none() {
        northbound::is_beside(&url, endpoint);
    } else if let Some(own) = own.filter(|own| is_gateway && own != endpoint) {
        let what = format!("the embedded gateway listens on {own}, not on {endpoint}");
        url.wrong(what, "remove `url`");
    } else if !is_gateway {
        addresses::check_port(&url, endpoint);
    }
}

fn pauses(view: &View<'_>, phases: &Phases) -> Option<Vec<Pause>> {
    let mut pauses: Vec<Pause> = Vec::new();
    for view in view.list("pause") {
        let pause = Pause {
            at: view.time("at")?,
            lasts: view.time("for")?,
        };
        let end = phases.warm_up + phases.measure;
        if pause.at >= end {
            let what = format!("this pause begins after the last message is due ({end})");
            return view.refuse(what, "an earlier `at`; it counts from the start of warm-up");
        }
        if pauses
            .last()
            .is_some_and(|last| last.at + last.lasts > pause.at)
        {
            return view.refuse(
                "this pause begins before the one above it ends",
                "sort and part them",
            );
        }
        pauses.push(pause);
    }
    Some(pauses)
}

/// Refuses streams of `carrier: none`: their messages could only be lost as a whole, or arrive as
/// somebody else's. With `order`, the n-th arrival is the n-th message for a single consumer.
fn joins_arrivals(view: &View<'_>, fleets: &[FleetPlan]) -> Option<()> {
    let mut streams = fleets.iter().flat_map(|fleet| &fleet.streams);
    let Some(blind) = streams.find(|stream| stream.carrier == Carrier::None) else {
        return Some(());
    };
    let what = format!(
        "`{}` has `carrier: none`, so its arrivals cannot be recognized",
        blind.name
    );
    view.refuse(
        what,
        "give it another carrier (`order` adds nothing to a message), or remove the backend",
    )
}

/// MQTT 3.1.1 has no user properties, so a broker leaves them out for a consumer that speaks it.
fn sees_properties(view: &View<'_>, fleets: &[FleetPlan]) -> Option<()> {
    let mut streams = fleets.iter().flat_map(|fleet| &fleet.streams);
    let stamped = streams.find(|stream| stream.carrier == Carrier::Property);
    let (Some(stream), Version::V311) = (stamped, fleet::version(view)) else {
        return Some(());
    };
    let what = format!(
        "`{}` has `carrier: property`, which MQTT 3.1.1 does not bring to a consumer",
        stream.name
    );
    view.refuse_at("version", what, "`version: \"5\"`, or another carrier")
}

fn keeps_order(view: &View<'_>, fleets: &[FleetPlan]) {
    let mut streams = fleets.iter().flat_map(|fleet| &fleet.streams);
    let scheme = endpoint::scheme(view.text_of("url"));
    let kind = scheme.and_then(|scheme| scheme.spec().backend);
    let is_of_one = view.get("shared").is_some() || kind.is_some_and(|kind| kind.competes);
    let is_shared = is_of_one && view.whole("consumers") != Some(1_u16);
    let ordered = streams.find(|stream| stream.carrier == Carrier::Order);
    if let (true, Some(stream), Some(consumers)) = (is_shared, ordered, view.get("consumers")) {
        let what = format!(
            "`{}` has `carrier: order`, and several consumers share it",
            stream.name
        );
        consumers.wrong(what, "`consumers: 1`, or another carrier");
    }
}

/// A stream whose topics no filter takes would be lost as a whole.
fn warn_of_blind_filter(view: &View<'_>, all: &[View<'_>], fleets: &[FleetPlan]) {
    let Some(filter) = view.get("filter").filter(|_| all.len() == 1) else {
        return;
    };
    let streams = fleets.iter().flat_map(|fleet| &fleet.streams);
    for stream in streams.filter(|stream| stream.is_uplink()) {
        let topic = sampled(stream.surface.source(), |_, _| "x".to_owned());
        if topic::check_filter(filter.text()).is_ok() && !topic::matches(filter.text(), &topic) {
            let what = format!("this filter does not take the topics of `{}`", stream.name);
            let help = format!("such as `{topic}`: they would all count as lost");
            filter.warn(what, &help);
        }
    }
}

/// Counts that the run can never reach make the gateway's account differ from what was asked.
pub(super) fn warn_of_large_misbehaviour(platform: &View<'_>, plan: &Plan) {
    let PlatformKind::Gateway { behaviour, .. } = &plan.platform.kind else {
        return;
    };
    let asked = misbehaviours(behaviour);
    let due: u64 = plan
        .uplinks()
        .map(|(_, stream)| due_from(stream, Micros::ZERO))
        .sum();
    if let (true, Some(view)) = (asked > due, platform.get("behaviour")) {
        let what = format!("{asked} misbehaviours are asked for, and only {due} messages are due");
        view.warn(what, "smaller counts, or more messages");
    }
}

fn misbehaviours(behaviour: &Behaviour) -> u64 {
    let rejected = behaviour.reject.map_or(0, |reject| match reject.amount {
        Amount::Count(count) => count,
        Amount::Share(_) => 0,
    });
    let counts = [
        behaviour.lose_after_accept,
        behaviour.drop,
        behaviour.ignore,
        behaviour.answer_late.count,
        behaviour.answer_twice,
        behaviour.answer_garbled,
        behaviour.answer_unknown,
        behaviour.duplicate,
        behaviour.reorder,
        behaviour.deliver_late.count,
        behaviour.corrupt,
        behaviour.reject_but_deliver.count,
        rejected,
    ];
    counts.into_iter().map(u64::from).sum()
}
