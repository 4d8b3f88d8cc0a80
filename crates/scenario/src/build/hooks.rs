//! Commands that a run starts.

use muster_measure::Phase;
use muster_model::Micros;
use muster_plan::{HookPlan, HookTime};

use crate::view::View;

/// Each hook that runs has a thread.
const HOOKS_MAX: usize = 64;

pub(super) fn hooks(root: &View<'_>) -> Option<Vec<HookPlan>> {
    let views = root.list("hooks");
    super::only_once(views.iter().filter_map(|view| view.get("name")), "hook");
    if let Some(beyond) = views.get(HOOKS_MAX) {
        let what = format!("this is hook {}", HOOKS_MAX + 1);
        return beyond.refuse(what, &format!("at most {HOOKS_MAX} hooks"));
    }
    // Each that is wrong is said.
    let hooks: Vec<Option<HookPlan>> = views.iter().map(hook).collect();
    hooks.into_iter().collect()
}

fn hook(view: &View<'_>) -> Option<HookPlan> {
    let after = view.time("at")?;
    let when = view.text_of("when");
    let phase = match when {
        "connect" => Some(Phase::Connect),
        "warm-up" => Some(Phase::WarmUp),
        "measure" => Some(Phase::Measure),
        "settle" => Some(Phase::Settle),
        _ => None,
    };
    if phase.is_none() && after > Micros::ZERO {
        let what = format!("`at` has no meaning with `when: {when}`");
        return view.refuse_at("at", what, "remove it, or name a phase in `when`");
    }
    let outside = if when == "before" {
        HookTime::Before
    } else {
        HookTime::After
    };
    Some(HookPlan {
        name: view.text_of("name").to_owned(),
        command: view.text_of("command").to_owned(),
        when: phase.map_or(outside, |phase| HookTime::In { phase, after }),
        timeout: view.time("timeout")?,
    })
}
