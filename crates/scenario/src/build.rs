//! From a checked, complete tree to a plan: what depends on several keys at once.
//!
//! Everything wrong is said, not only the first; a part that cannot be built is left out, and the
//! plan with it.

mod addresses;
mod amqp;
mod behaviour;
mod blind;
pub(crate) mod board;
mod body;
mod coap;
mod command;
mod credential;
mod expected;
mod fleet;
mod hono;
mod hooks;
mod http;
mod json;
mod monitor;
mod names;
mod northbound;
mod offline;
mod provision;
mod query;
mod read_back;
mod requests;
mod rpc;
mod rules;
mod scale;
mod secret;
mod shape;
mod silent;
mod stream;
mod subscriptions;
mod target;
mod templates;
mod thingsboard;
mod transport;
mod webhook;

use std::collections::BTreeMap;

use muster_load::{Schedule as _, StreamSchedule};
use muster_measure::Cold;
use muster_model::{FleetId, Micros, StreamId};
use muster_plan::{
    BackendPlan, FleetPlan, Phases, Plan, PlatformKind, PlatformPlan, Settle, StreamKind,
    all_surface,
};
use muster_platform::Dialect;

use crate::feasibility::LONGEST_RUN;
use crate::view::View;

pub(crate) use body::DITTO_MODIFY;

pub(crate) fn build(root: &View<'_>) -> Option<Plan> {
    let seed = root.whole("seed")?;
    let phases = phases(&root.get("phases")?);
    let is_acknowledged =
        command::streams(root).any(|stream| stream.text_of("ack") == "application");
    let platform = scale::platform(root, is_acknowledged);
    let dialect = target::dialect(&root.get("platform")?);
    let commands = command::commands(root, dialect);
    let fleets = phases.and_then(|phases| fleets(root, dialect, (seed, commands?), &phases));
    let (phases, fleets) = (phases?, fleets?);
    subscriptions::subscribers_can_distinguish(root, &fleets)?;
    warn_of_short_settle(root, &phases, &fleets);
    warn_of_nothing_measured(root, &fleets);
    let platform_view = root.get("platform")?;
    let backends = target::backends(root, platform.as_ref(), &fleets, &phases);
    if let Some(platform) = &platform {
        links_are_secured(root, &fleets, platform)?;
    }
    let provision = match &platform {
        Some(platform) => provision::provision(root, platform),
        None => Some(None),
    };
    if let (Some(platform), Some(provision)) = (&platform, &provision) {
        let views = root.list("fleet");
        names::clients_are_registered(&views, &fleets, platform, provision.as_ref())?;
    }
    let registry = provision.as_ref().and_then(Option::as_ref);
    let reads_back = read_back::reads_back(root, &fleets, backends.as_deref(), registry)?;
    let monitor = monitor::monitor(root, platform.as_ref());
    let consumed = match all_surface(dialect, &fleets) {
        true => consuming(backends.as_deref()?),
        false => &[],
    };
    let judged = rules::Judged {
        fleets: &fleets,
        dialect,
        is_watched: monitor::has_counters(monitor.as_deref(), platform.as_ref()),
        backends: consumed,
        reads_back: reads_back.is_some(),
        phases: &phases,
    };
    let rules = rules::rules(root, &judged);
    let mut plan = Plan {
        name: name(&root.get("name")?)?,
        seed,
        labels: labels(root),
        platform: platform?,
        backends: backends?,
        added: None,
        management: provision::uses(provision.as_ref()?.as_ref(), reads_back),
        provision: provision?,
        monitor: monitor?,
        fleets,
        phases,
        cold: cold(root)?,
        rules: rules?,
        resolved: String::new(),
        warnings: Vec::new(),
    };
    let limit = plan.receive_limit();
    for fleet in &mut plan.fleets {
        fleet.client.limit(limit);
    }
    target::warn_of_large_misbehaviour(&platform_view, &plan);
    target::tls_is_used(&platform_view, &plan);
    rules::warn_of_idle_stops(root, &plan);
    Some(plan)
}

/// The backends that consume messages, which are the first ones.
fn consuming(backends: &[BackendPlan]) -> &[BackendPlan] {
    let others = |it: &BackendPlan| it.kind().only_commands;
    let end = backends.iter().position(others);
    &backends[..end.unwrap_or(backends.len())]
}

/// Checks the certificates and handshakes of every link.
fn links_are_secured(root: &View<'_>, fleets: &[FleetPlan], platform: &PlatformPlan) -> Option<()> {
    let views = root.list("fleet");
    transport::certificates_are_shown(&views, fleets, platform)?;
    transport::warn_of_full_handshakes(&views, fleets, platform);
    match platform.kind {
        PlatformKind::Gateway { .. } => transport::gateway_knows(&views, fleets, platform),
        PlatformKind::Deployed { .. } => Some(()),
    }
}

/// The name becomes part of a folder's name.
fn name(view: &View<'_>) -> Option<String> {
    let name = view.text();
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    let why = match name.chars().find(|c| !is_plain(*c)) {
        Some(stray) => format!("it holds {stray:?} (U+{:04X})", stray as u32),
        None if name.starts_with(['.', ' ']) => "it begins with a dot or a blank".to_owned(),
        None if name.len() > 100 => format!("it has {} bytes", name.len()),
        None => return Some(name.to_owned()),
    };
    view.refuse(
        format!("`{name}` cannot name a result folder: {why}"),
        "letters and digits of any script, `-`, `_`, `.` and blanks, at most 100 bytes in UTF-8; a \
         letter with its accent as one character",
    )
}

fn labels(root: &View<'_>) -> BTreeMap<String, String> {
    root.get("labels").map_or_else(BTreeMap::new, |labels| {
        labels
            .entries()
            .map(|(key, value)| (key.to_owned(), value.text().to_owned()))
            .collect()
    })
}

fn phases(view: &View<'_>) -> Option<Phases> {
    let settle = view.get("settle")?;
    let phases = Phases {
        warm_up: view.time("warm-up")?,
        measure: view.time("measure")?,
        settle: Settle {
            at_most: settle.time("at-most")?,
            quiet: settle.time("quiet")?,
        },
    };
    if phases.measure < Micros::from_secs(1) {
        return view.refuse_at("measure", "less than one window is measured", "at least 1s");
    }
    if phases.warm_up + phases.measure + phases.settle.at_most > LONGEST_RUN {
        return view.refuse(
            "the phases together are longer than 12 days",
            "a shorter `measure`",
        );
    }
    if phases.settle.quiet > phases.settle.at_most {
        let what = "`quiet` is longer than `at-most`, so that settling never ends early";
        return settle.refuse_at("quiet", what, "a shorter `quiet`, or a longer `at-most`");
    }
    Some(phases)
}

fn cold(root: &View<'_>) -> Option<Cold> {
    let Some(view) = root.get("cold") else {
        return Some(Cold::Nothing);
    };
    match (
        view.time("first"),
        view.truth("first-message").unwrap_or(false),
    ) {
        (Some(first), false) => Some(Cold::First(first)),
        (None, true) => Some(Cold::FirstMessage),
        (Some(_), true) => view.refuse(
            "`first` and `first-message` exclude each other",
            "keep one of them",
        ),
        (None, false) => view.refuse("`cold` does not say what is cold", "add `first: 60s`"),
    }
}

#[derive(Default)]
struct Next {
    device: u32,
    link: u32,
    stream: u16,
}

fn fleets(
    root: &View<'_>,
    dialect: Dialect,
    (seed, commands): (u64, Option<command::Commands>),
    phases: &Phases,
) -> Option<Vec<FleetPlan>> {
    let views = root.list("fleet");
    let list = root.get("fleet")?;
    if views.is_empty() {
        return list.refuse(
            "there is no fleet",
            "add one: `fleet: [ { count: 100, streams: [] } ]`",
        );
    }
    let platform = root.get("platform")?;
    let is_embedded = platform.text_of("kind") == "gateway";
    let mut next = Next::default();
    let mut fleets = Vec::new();
    let mut spoken = Vec::new();
    for (number, view) in views.iter().enumerate() {
        let Ok(id) = u8::try_from(number).map(FleetId) else {
            return view.refuse("this is the 257th fleet", "at most 256 fleets");
        };
        let scheme = transport::scheme_of(&platform, view)?;
        spoken.push(scheme.protocol());
        let context = fleet::FleetContext {
            id,
            dialect,
            scheme,
            is_embedded,
            request_limits: hono::request_limits(&platform, dialect, scheme),
            device: next.device,
            link: next.link,
            stream: next.stream,
            seed,
            phases,
            commands,
        };
        // A fleet that cannot be built still takes its ids, so that the others are checked too.
        let built = fleet::fleet(view, &context);
        next = after(view, &next)?;
        fleets.push(built);
    }
    transport::all_are_spoken(&platform, &spoken)?;
    names_differ(&views);
    let fleets: Option<Vec<FleetPlan>> = fleets.into_iter().collect();
    let fleets = fleets?;
    let client_ids = views.iter().zip(&fleets);
    let client_ids = client_ids.map(|(view, fleet)| names::client_ids(view, fleet));
    names::differ(&views, &fleets, &client_ids.collect::<Option<Vec<_>>>()?);
    Some(fleets)
}

fn after(view: &View<'_>, before: &Next) -> Option<Next> {
    let count: u32 = view.whole("count")?;
    let per_link = fleet::devices_per_link(view);
    let stream = before.stream + view.list("streams").len() as u16;
    if stream > u16::from(u8::MAX) + 1 {
        let what = format!("the scenario has {stream} streams up to here");
        return view.refuse_at(
            "streams",
            what,
            "at most 256 streams in all fleets together",
        );
    }
    let Some(device) = before.device.checked_add(count) else {
        return view.refuse_at(
            "count",
            format!(
                "{count} more devices than the {} before are too many",
                before.device
            ),
            "at most 4294967295 devices in all fleets together",
        );
    };
    Some(Next {
        device,
        link: before.link + count.div_ceil(per_link),
        stream,
    })
}

/// The stream of this number; the number of streams was checked.
fn stream_id(number: u16) -> StreamId {
    StreamId(u8::try_from(number).unwrap_or(u8::MAX))
}

fn names_differ(fleets: &[View<'_>]) {
    only_once(fleets.iter().filter_map(|fleet| fleet.get("name")), "fleet");
    for fleet in fleets {
        only_once(
            fleet.list("streams").iter().filter_map(|s| s.get("name")),
            "stream of the fleet",
        );
    }
}

/// Says of each name that stands a second time that it does.
fn only_once<'a>(names: impl Iterator<Item = View<'a>>, what: &str) {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        let text = name.text();
        if seen.contains(&text) {
            let help = "give each its own `name`";
            name.wrong(format!("another {what} is named `{text}` too"), help);
        } else if text.contains('/') {
            name.wrong(
                format!("`{text}` holds a `/`"),
                "results use `/` between fleet and stream",
            );
        }
        seen.push(text);
    }
}

/// Says so where messages are due in the warm-up alone. A stream without any has a warning already.
fn warn_of_nothing_measured(root: &View<'_>, fleets: &[FleetPlan]) {
    let streams = fleets.iter().flat_map(|fleet| &fleet.streams);
    let streams = streams.filter(|stream| !matches!(stream.kind, StreamKind::Receive));
    let schedules = streams.filter_map(|stream| StreamSchedule::new(stream.schedule.clone()).ok());
    let last = schedules.filter_map(|of| Some((of.due(of.count().checked_sub(1)?)?, of)));
    let mut is_measured = last.map(|(last, of)| last >= of.spec().warm_up).peekable();
    if is_measured.peek().is_none() || is_measured.any(|is_measured| is_measured) {
        return;
    }
    let help = "such a run is invalid: a higher rate, or a longer `measure`";
    let phases = root.get("phases");
    let view = phases.as_ref().unwrap_or(root);
    view.warn("not one message is due while measuring", help);
}

fn warn_of_short_settle(root: &View<'_>, phases: &Phases, fleets: &[FleetPlan]) {
    let timeouts = fleets
        .iter()
        .flat_map(|fleet| &fleet.streams)
        .map(|stream| stream.timeout);
    let longest = timeouts.max().unwrap_or(Micros::ZERO);
    let at_most = phases.settle.at_most;
    let Some(settle) = root.get("phases").and_then(|phases| phases.get("settle")) else {
        return;
    };
    if at_most < longest {
        let what = format!(
            "settling lasts at most {at_most}, less than the longest time-out of {longest}"
        );
        let help = "answers that come later are counted as in flight: a longer `at-most`";
        settle.warn(what, help);
    }
}
