//! Parts of the target that are watched.

mod page;

use muster_model::Micros;
use muster_plan::{MonitorPlan, PlatformKind, PlatformPlan, Watched, WebAddress};

use crate::units;
use crate::view::View;
use crate::web;

/// Each entry has a thread; and more pages of counters than this are read for too long before a run.
const MONITORS_MAX: usize = 16;
/// A process is read in some hundred microseconds: more often, that alone would be a load.
const EVERY_LEAST: Micros = Micros::from_millis(100);
/// The keys that say what is watched.
const WATCHED: [&str; 5] = ["process", "cgroup", "prometheus", "command", "counters"];

pub(super) fn monitor(
    root: &View<'_>,
    platform: Option<&PlatformPlan>,
) -> Option<Vec<MonitorPlan>> {
    let views = root.list("monitor");
    super::only_once(
        views.iter().filter_map(|view| view.get("name")),
        "entry of `monitor`",
    );
    if let Some(beyond) = views.get(MONITORS_MAX) {
        let what = format!("this is entry {} of `monitor`", MONITORS_MAX + 1);
        return beyond.refuse(what, &format!("at most {MONITORS_MAX} entries"));
    }
    let plans = views.iter().map(|view| entry(view, platform));
    // Each that is wrong is said.
    let plans: Vec<Option<MonitorPlan>> = plans.collect();
    let plans: Vec<MonitorPlan> = plans.into_iter().collect::<Option<_>>()?;
    can_soak(root, &plans)?;
    Some(plans)
}

/// Rejects a soak without a resource that has a limit, since nothing could run out.
fn can_soak(root: &View<'_>, entries: &[MonitorPlan]) -> Option<()> {
    let has_limit = |entry: &MonitorPlan| match &entry.watched {
        // Without a limit in the scenario it has those of its cgroup, or of this host.
        Watched::Gateway | Watched::Process(_) | Watched::Cgroup(_) => true,
        Watched::Page(page) => page.series.iter().any(|of| of.limit.is_some()),
        Watched::Command(_) | Watched::Counters(_) => entry.limit.is_some(),
    };
    match root.get("soak") {
        Some(soak) if !entries.iter().any(has_limit) => soak.refuse(
            "no resource of `monitor` has a limit, so that nothing can run out",
            "add such as `monitor: [ { name: target, process: NAME } ]`, or a `limit` to an entry",
        ),
        _ => Some(()),
    }
}

/// True if counters of the platform are read that count the run's tenants alone.
pub(super) fn has_counters(
    entries: Option<&[MonitorPlan]>,
    platform: Option<&PlatformPlan>,
) -> bool {
    let names = platform.and_then(|platform| platform.dialect().spec().counters.as_ref());
    let is_exact = names.is_some_and(|names| names.tenant.is_some());
    let mut entries = entries.into_iter().flatten();
    is_exact && entries.any(|entry| entry.counters().is_some())
}

fn entry(view: &View<'_>, platform: Option<&PlatformPlan>) -> Option<MonitorPlan> {
    let named = WATCHED
        .into_iter()
        .filter_map(|key| Some((key, view.get(key)?)));
    let named: Vec<(&str, View<'_>)> = named.collect();
    let (key, of) = match &named[..] {
        [] => {
            let what = "this entry does not say what is watched";
            return view.refuse(
                what,
                "add `process: NAME`, or another of `cgroup`, `prometheus`, `command`, `counters`",
            );
        }
        [(key, of)] => (*key, of),
        [(first, _), (second, of), ..] => {
            let what = format!("this entry watches two things, `{first}` and `{second}`");
            return of.refuse(what, "an entry for each of them");
        }
    };
    let every = view.time("every")?;
    if every < EVERY_LEAST {
        let what = format!("`every` is {every}, which is too often");
        return view.refuse_at("every", what, "at least 100ms");
    }
    let limit = view.optional("limit", |of| of.accept(units::quantity(of.text())))?;
    has_use_of_limit(view, key, platform)?;
    let is_embedded =
        platform.is_some_and(|platform| matches!(platform.kind, PlatformKind::Gateway { .. }));
    Some(MonitorPlan {
        name: view.text_of("name").to_owned(),
        watched: match key {
            "process" if is_embedded && of.text() == "gateway" => Watched::Gateway,
            "process" => Watched::Process(of.text().to_owned()),
            "cgroup" => Watched::Cgroup(of.text().to_owned()),
            "prometheus" => Watched::Page(page::page(of)?),
            "command" => Watched::Command(of.text().to_owned()),
            _ => Watched::Counters(counters(of, platform?)?),
        },
        every,
        limit,
    })
}

/// Figures of a page have their own limits, and counters none but of a queue.
fn has_use_of_limit(view: &View<'_>, key: &str, platform: Option<&PlatformPlan>) -> Option<()> {
    let names = platform.and_then(|platform| platform.dialect().spec().counters.as_ref());
    let figures = names.map_or(&[][..], |names| names.figures);
    let help = match key {
        "prometheus" => "move it into `prometheus`: `limits: { FIGURE: 2GiB }`",
        "counters" if !figures.iter().any(|figure| figure.has_limit) => {
            "remove it: counters have no limit"
        }
        _ => return Some(()),
    };
    match view.get("limit") {
        Some(limit) => limit.refuse(format!("`limit` has no meaning with `{key}`"), help),
        None => Some(()),
    }
}

/// An address of a page that is read without TLS.
fn plain_page(url: &View<'_>, what: &str) -> Option<WebAddress> {
    let address = url.accept(web::read(url.text()))?;
    match address.is_tls {
        true => url.refuse(
            format!("{what} are read over plain HTTP only"),
            "the `http` address of the same page",
        ),
        false => Some(address),
    }
}

fn counters(url: &View<'_>, platform: &PlatformPlan) -> Option<WebAddress> {
    let address = plain_page(url, "counters")?;
    if platform.dialect().counters.is_none() {
        let what = format!("of {} no counters are known", platform.dialect());
        return url.refuse(
            what,
            "remove the entry; those of `hono` and `thingsboard` are known",
        );
    }
    if matches!(platform.kind, PlatformKind::Gateway { .. }) {
        let what = "the embedded gateway is not asked for its counters: its account is exact";
        let help = format!("remove the entry, or use `kind: {}`", platform.dialect());
        return url.refuse(what, &help);
    }
    Some(address)
}
