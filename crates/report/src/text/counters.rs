//! Counters of the platform itself, next to the ledger.

use super::Screen;
use crate::number::{count, known};
use crate::{CounterGrowth, TargetUse};

impl Screen {
    /// One line; what neither the platform nor the ledger knows any of is left out.
    pub(super) fn counters(&mut self, target: &TargetUse) {
        let all = target.counters.iter().flatten();
        let shown: Vec<&CounterGrowth> = all
            .filter(|it| it.ledger > Some(0) || it.grown != Some(0))
            .collect();
        let Some(first) = shown.first() else {
            return;
        };
        let label = format!("{} says", first.platform);
        let parts: Vec<String> = shown.iter().map(|it| said(it)).collect();
        self.row(&label, &[parts.join(", ")]);
    }
}

/// Value of one counter, and the ledger's. Messages without an answer may be among those that the ledger has less.
fn said(of: &CounterGrowth) -> String {
    let counter = format!("{} {} {}", known(of.grown), of.kind, of.status);
    let Some(ledger) = of.ledger else {
        return counter;
    };
    if of.grown == Some(ledger) {
        return format!("{counter}, as the ledger");
    }
    let counter = format!("{counter}, the ledger {}", count(ledger));
    match of.unanswered {
        open @ 1.. if of.grown > Some(ledger) => {
            format!("{counter} and {} without an answer", count(open))
        }
        _ => counter,
    }
}

#[cfg(test)]
mod tests {
    use crate::{CounterGrowth, Report, text};

    fn summary(grown: Option<u64>, agrees: Option<bool>) -> String {
        let mut report = Report::default();
        let growth = |status: &str, grown, ledger| CounterGrowth {
            platform: "hono".to_owned(),
            kind: "telemetry".to_owned(),
            status: status.to_owned(),
            grown,
            ledger,
            unanswered: 5,
            agrees,
        };
        let both = [
            growth("forwarded", grown, Some(18_500)),
            growth("undeliverable", Some(0), Some(0)),
        ];
        report.target.counters = Some(both.into());
        text(&report, 100)
    }

    #[test]
    fn what_the_platform_says_stands_beside_the_ledger() {
        for (grown, agrees, expected) in [
            (
                Some(18_500),
                Some(true),
                "18,500 telemetry forwarded, as the ledger\n",
            ),
            (
                Some(18_503),
                Some(true),
                "18,503 telemetry forwarded, the ledger 18,500 and 5 without an answer\n",
            ),
            (
                Some(18_509),
                None,
                "18,509 telemetry forwarded, the ledger 18,500 and 5 without an answer\n",
            ),
            (
                Some(7),
                Some(false),
                "7 telemetry forwarded, the ledger 18,500\n",
            ),
            (None, None, "- telemetry forwarded, the ledger 18,500\n"),
        ] {
            let summary = summary(grown, agrees);
            let line = format!("hono says  {expected}");
            assert!(summary.contains(&line), "{summary}");
            assert!(!summary.contains("undeliverable"), "{summary}");
        }
    }

    #[test]
    fn a_counter_that_the_ledger_lacks_stands_alone() {
        let mut report = Report::default();
        let lost = |grown| CounterGrowth {
            platform: "thingsboard".to_owned(),
            kind: "ts_queue".to_owned(),
            status: "failedMsgs".to_owned(),
            grown,
            ledger: None,
            unanswered: 0,
            agrees: Some(grown == Some(0)),
        };
        report.target.counters = Some(vec![lost(Some(53)), lost(Some(0))]);
        let summary = text(&report, 100);
        assert!(
            summary.contains("thingsboard says  53 ts_queue failedMsgs\n"),
            "{summary}"
        );
    }

    #[test]
    fn a_run_that_read_no_counters_says_nothing_of_them() {
        assert!(!text(&Report::default(), 100).contains("says"));
    }
}
