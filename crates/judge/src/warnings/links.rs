//! Warnings about links: that there was none, that some are missing, that the platform ended some.

use std::collections::BTreeMap;

use muster_measure::LinksSecond;
use muster_model::figure;

use super::{MISSING_LINKS_SHARE, NO_LINK_MIN_S, Warning, WarningKind, is_decided, listed, sees};
use crate::{Evidence, RuleResult};

/// Stretches without a link that are listed one by one.
const STRETCHES_MOST: usize = 3;

/// The one warning about links: that there was none says more than that some were missing.
pub(super) fn down(rules: &[RuleResult], evidence: &Evidence<'_>) -> Option<Warning> {
    let warning = |kind: WarningKind, detail: String| Warning {
        kind,
        scope: "run".to_owned(),
        detail,
    };
    let links = &evidence.summary.run.links;
    if links.wanted > 0 && links.connected == 0 {
        return Some(warning(
            WarningKind::NoLink,
            "no link was ever open".to_owned(),
        ));
    }
    let seconds = evidence.windows.links_by_second();
    let mut stretches = without_link(&seconds, evidence);
    if links.disconnects.contains_key("offline") {
        // That they were all away for a while was asked for.
        stretches.retain(|(_, until)| until.is_none());
    }
    if let Some(detail) = no_link(&stretches) {
        return Some(warning(WarningKind::NoLink, detail));
    }
    Some(warning(
        WarningKind::LinksDown,
        links_down(rules, &seconds, evidence)?,
    ))
}

/// Seconds of warm-up and measured phase at which no link was up: from which, and until which;
/// none where it stayed so.
fn without_link(seconds: &[LinksSecond], evidence: &Evidence<'_>) -> Vec<(u32, Option<u32>)> {
    let timeline = &evidence.summary.timeline;
    let (origin, settle) = (timeline.origin.second(), timeline.settle.second());
    let mut stretches = Vec::new();
    let mut since = None;
    for at in seconds {
        if at.connected > 0
            && let Some(from) = since.take()
        {
            stretches.push((from, Some(at.second)));
        }
        if at.up == 0 {
            since = Some(since.unwrap_or(at.second + 1));
        }
    }
    stretches.extend(since.map(|from| (from, None)));
    let of_load = stretches.into_iter().map(|(from, until)| {
        let until = until.filter(|until| *until < settle);
        (from.max(origin), until)
    });
    of_load
        .filter(|(from, until)| until.unwrap_or(settle) >= from.saturating_add(NO_LINK_MIN_S))
        .collect()
}

fn no_link(stretches: &[(u32, Option<u32>)]) -> Option<String> {
    let mut words: Vec<String> = stretches
        .iter()
        .take(STRETCHES_MOST)
        .map(|(from, until)| {
            until.map_or_else(
                || format!("from {from} s on"),
                |until| format!("from {from} s to {until} s"),
            )
        })
        .collect();
    let more = stretches.len().saturating_sub(STRETCHES_MOST);
    if more > 0 {
        words.push(format!("and {more} times more"));
    }
    (!words.is_empty()).then(|| format!("no link was open {}", words.join(", ")))
}

/// Links that were missing when measuring ended. Those that never came up are in rule
/// `connected`, if there is one.
fn links_down(
    rules: &[RuleResult],
    seconds: &[LinksSecond],
    evidence: &Evidence<'_>,
) -> Option<String> {
    let observed = |name: &str| {
        let of_run = |rule: &&RuleResult| rule.rule == name && rule.scope == "run";
        rules.iter().find(of_run).and_then(|rule| rule.observed)
    };
    // Rule `disconnects` has told of them.
    if observed("disconnects").is_some_and(|lost| lost.value() > 0.0) {
        return None;
    }
    let links = &evidence.summary.run.links;
    let wanted = if observed("connected").is_some() {
        links.up_at_start
    } else {
        links.wanted
    };
    let timeline = &evidence.summary.timeline;
    if timeline.measure >= timeline.settle {
        return None;
    }
    let settle = timeline.settle.second();
    let up = seconds.iter().rfind(|at| at.second < settle)?.up;
    let missing = wanted.saturating_sub(up) as f64;
    (missing > wanted as f64 * MISSING_LINKS_SHARE).then(|| {
        format!(
            "only {} of {} links were open when measuring ended",
            figure::count(up),
            figure::count(wanted)
        )
    })
}

/// Links that the platform ended in fleets on which no rule `disconnects` was decided.
pub(super) fn ended(results: &[RuleResult], evidence: &Evidence<'_>) -> Vec<Warning> {
    let fleets = evidence.summary.fleets.iter().zip(evidence.fleets);
    let unseen = fleets.filter(|(_, fleet)| {
        // A stream's rule on links is about the links of its fleet.
        let of_stream = |rule: &RuleResult| rule.scope.starts_with(&format!("{fleet}/"));
        let is_seen = |rule: &RuleResult| {
            sees(rule, "disconnects", fleet)
                || is_decided(rule) && rule.rule == "disconnects" && of_stream(rule)
        };
        !results.iter().any(is_seen)
    });
    let ended = unseen.filter_map(|(scope, fleet)| {
        let causes = scope.links.ended_by_platform.iter();
        let causes: BTreeMap<&str, u64> = causes
            .map(|(cause, count)| (cause.as_str(), *count))
            .collect();
        let all: u64 = causes.values().sum();
        (all > 0).then(|| Warning {
            kind: WarningKind::LinksEnded,
            scope: fleet.clone(),
            detail: format!(
                "{} links were ended by the platform ({})",
                figure::count(all),
                listed(&causes)
            ),
        })
    });
    ended.collect()
}
