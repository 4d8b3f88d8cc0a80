//! Counters of the target that are watched.

use muster_plan::{MonitorPlan, PlatformKind, PlatformPlan};

use crate::view::View;
use crate::web;

/// More instances than this are read one after the other for too long before a run.
const MONITORS_MAX: usize = 16;

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
    plans.collect::<Vec<_>>().into_iter().collect()
}

fn entry(view: &View<'_>, platform: Option<&PlatformPlan>) -> Option<MonitorPlan> {
    let Some(url) = view.get("counters") else {
        let what = "this entry does not say what is watched";
        return view.refuse(what, "add `counters: \"http://127.0.0.1:8088/prometheus\"`");
    };
    let counters = url.accept(web::read(url.text()))?;
    if counters.is_tls {
        let what = "counters are read over plain HTTP only";
        return url.refuse(what, "the `http` address of the same page");
    }
    let platform = platform?;
    if platform.dialect().counters.is_none() {
        let what = format!("of {} no counters are known", platform.dialect());
        return url.refuse(what, "remove the entry; those of `dialect: hono` are known");
    }
    if matches!(platform.kind, PlatformKind::Gateway { .. }) {
        let what = "the embedded gateway has no page of counters: its account is exact";
        return url.refuse(what, "remove the entry, or use `kind: hono`");
    }
    Some(MonitorPlan {
        name: view.text_of("name").to_owned(),
        counters,
    })
}
