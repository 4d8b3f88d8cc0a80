//! Rule `soak`: each resource of the target lasts for the wanted time.

use muster_model::{Micros, figure};

use crate::outlook::{Lasts, Outlook};
use crate::{Evidence, RuleKind, RuleResult, Rules, Unevaluated};

/// Resources that the evidence names; the others are counted.
const NAMED: usize = 3;

/// Outlook of one resource of the target.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceOutlook {
    /// The entry of `monitor` and the resource, such as `broker memory`.
    pub name: String,
    /// Its outlook.
    pub outlook: Outlook,
}

/// The result of the rule; none if the scenario has no `soak`.
pub(crate) fn evaluate(rules: &Rules, evidence: &Evidence<'_>) -> Option<RuleResult> {
    let wanted = rules.soak?;
    let rule = RuleResult::new(RuleKind::Slo, "soak", "run").named(true);
    let all = evidence.resources;
    if all.is_empty() {
        return Some(rule.not_evaluated(Unevaluated::NoLimit));
    }
    let mut gone: Vec<&ResourceOutlook> = all.iter().filter(|of| runs_out(of)).collect();
    gone.sort_by(|a, b| left(a).total_cmp(&left(b)));
    if !gone.is_empty() {
        let words: Vec<String> = gone.iter().take(NAMED).map(|of| in_words(of)).collect();
        let more = match gone.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let words = format!("not sustainable: {} at this rate{more}", words.join("; "));
        return Some(rule.evidence(words).decided(false, None));
    }
    let needs = all.iter().filter_map(needed_s).fold(0.0, f64::max);
    if needs > 0.0 {
        let needed_s = needs.ceil() as u64;
        return Some(rule.not_evaluated(Unevaluated::Trend { needed_s }));
    }
    let words = format!(
        "sustainable: {} for {} at this rate",
        match all.len() {
            1 => format!("{} lasts", all[0].name),
            many => format!("each of {many} resources lasts"),
        },
        figure::span(u64::from(wanted.second()))
    );
    Some(rule.evidence(words).decided(true, None))
}

fn runs_out(of: &ResourceOutlook) -> bool {
    of.outlook.lasts == Lasts::No
}

fn needed_s(of: &ResourceOutlook) -> Option<f64> {
    match of.outlook.lasts {
        Lasts::Unclear { needs_s } => Some(needs_s),
        Lasts::Yes | Lasts::No => None,
    }
}

/// Seconds until it runs out; 0 of what is at its limit.
fn left(of: &ResourceOutlook) -> f64 {
    of.outlook.runs_out_s.unwrap_or(0.0)
}

/// A resource that runs out, with its time and the interval of that.
fn in_words(of: &ResourceOutlook) -> String {
    let outlook = &of.outlook;
    let (Some(left), Some(earliest)) = (outlook.runs_out_s, outlook.earliest_s) else {
        return format!("{} is at its limit", of.name);
    };
    let latest = outlook.latest_s.map_or("later".to_owned(), span);
    format!(
        "{} in {} ({} to {latest})",
        of.name,
        span(left),
        span(earliest)
    )
}

/// A length of time in words.
fn span(seconds: f64) -> String {
    figure::clock(Micros::from_secs(seconds.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outlook(lasts: Lasts, runs_out_s: Option<f64>) -> Outlook {
        Outlook {
            level: 0.0,
            slope: Some(1.0),
            slope_low: Some(0.9),
            slope_high: Some(1.1),
            runs_out_s,
            earliest_s: runs_out_s.map(|left| left * 0.9),
            latest_s: runs_out_s.map(|left| left * 1.1),
            lasts,
        }
    }

    #[test]
    fn a_resource_that_runs_out_has_its_time_and_interval() {
        let of = |runs_out_s| ResourceOutlook {
            name: "broker memory".to_owned(),
            outlook: outlook(Lasts::No, runs_out_s),
        };
        let words = in_words(&of(Some(20_000.0)));
        assert_eq!(words, "broker memory in 5:33:20 (5:00:00 to 6:06:40)");
        assert_eq!(in_words(&of(None)), "broker memory is at its limit");
    }
}
