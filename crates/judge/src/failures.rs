//! Messages that failed, by their ends and by the platform's codes or our causes.

use std::collections::BTreeMap;

use muster_measure::Ledger;
use muster_model::{ShedCause, figure};

/// Codes or causes of one end that a sentence lists.
const CAUSES_MAX: usize = 3;

/// The ends of failed messages as the end of a sentence: ": rejected 30 (4.03), shed 8 (offline 5,
/// unsendable 3)"; nothing where none failed.
pub(crate) fn listed(ledger: &Ledger) -> String {
    let own: Vec<&str> = ShedCause::ALL
        .into_iter()
        .filter(|cause| cause.is_own())
        .map(|cause| cause.name())
        .collect();
    let shed = ledger.shed_by_cause.iter();
    let shed = shed.filter(|(cause, _)| !own.contains(&cause.as_str()));
    let all = |causes: &BTreeMap<String, u64>| by_cause(causes.iter());
    let parts = [
        ("rejected", ledger.rejected, all(&ledger.rejected_by_code)),
        (
            "refused unawaited",
            ledger.refused_unawaited,
            all(&ledger.refused_unawaited_by_code),
        ),
        ("timed out", ledger.timed_out, String::new()),
        ("broken", ledger.broken, all(&ledger.broken_by_cause)),
        ("in flight", ledger.in_flight, String::new()),
        ("shed", ledger.shed_by_others(), by_cause(shed)),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(_, count, _)| *count > 0)
        .map(|(end, count, causes)| format!("{end} {}{causes}", figure::count(count)))
        .collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!(": {}", parts.join(", ")),
    }
}

/// The most frequent causes in brackets; a single one without its count, which stands before it.
fn by_cause<'a>(causes: impl Iterator<Item = (&'a String, &'a u64)>) -> String {
    let mut causes: Vec<(&String, &u64)> = causes.filter(|(_, count)| **count > 0).collect();
    causes.sort_by(|a, b| b.1.cmp(a.1));
    match causes.as_slice() {
        [] => return String::new(),
        [(only, _)] => return format!(" ({only})"),
        _ => {}
    }
    let shown = causes.iter().take(CAUSES_MAX);
    let mut shown: Vec<String> = shown
        .map(|(cause, count)| format!("{cause} {}", figure::count(**count)))
        .collect();
    let more = causes.len().saturating_sub(CAUSES_MAX);
    shown.extend((more > 0).then(|| format!("and {more} more")));
    format!(" ({})", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_listed_with_the_codes_and_causes_behind_them() {
        let causes = |all: &[(&str, u64)]| -> BTreeMap<String, u64> {
            all.iter()
                .map(|(cause, count)| ((*cause).to_owned(), *count))
                .collect()
        };
        let mut ledger = Ledger {
            rejected: 30,
            rejected_by_code: causes(&[("4.03", 30)]),
            shed: 15,
            shed_by_cause: causes(&[("generator-late", 7), ("offline", 3), ("unsendable", 5)]),
            ..Ledger::default()
        };
        assert_eq!(
            listed(&ledger),
            ": rejected 30 (4.03), shed 8 (unsendable 5, offline 3)"
        );
        ledger.rejected_by_code = causes(&[("4.00", 1), ("4.01", 2), ("4.03", 20), ("5.03", 7)]);
        assert!(listed(&ledger).starts_with(": rejected 30 (4.03 20, 5.03 7, 4.01 2, and 1 more)"));
        assert_eq!(listed(&Ledger::default()), "");
    }
}
