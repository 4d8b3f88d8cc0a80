//! Links that our own silence ended.

use muster_model::{Cause, figure};

use crate::{Evidence, Figure, Reason, RuleKind, RuleResult};

/// Rule `keep-alive missed by us`: no link ended after we had sent nothing for one and a half
/// keep-alives.
pub(crate) fn missed_by_us(evidence: &Evidence<'_>) -> RuleResult {
    let cause = Cause::KeepAliveMissed.to_string();
    let links = &evidence.summary.run.links;
    let missed = links.disconnects.get(&cause).copied().unwrap_or(0);
    let words = match missed {
        0 => "no link ended by our own silence".to_owned(),
        missed => format!(
            "the platform ended {} links after we had sent nothing for 1.5 keep-alives: give the \
             generator more CPU, or the fleet a longer `keep-alive`",
            figure::count(missed)
        ),
    };
    RuleResult::new(RuleKind::Validity, "keep-alive missed by us", "run")
        .because(Reason::KeepAlive)
        .bound(Figure::Count(0))
        .observed(Some(Figure::Count(missed)))
        .evidence(words)
        .decided(missed == 0, None)
}
