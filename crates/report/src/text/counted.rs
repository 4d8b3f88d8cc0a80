//! Counts of the platform's rule engine, next to the ledger.

use super::Screen;
use crate::ServerCount;
use crate::number::{count, per_second};

/// Nodes that have a line; more are counted.
const NODES: usize = 8;

impl Screen {
    /// A line for the total, and one for each node if there are several.
    pub(super) fn counted(&mut self, counted: Option<&ServerCount>) {
        let Some(of) = counted else { return };
        self.row("counted", &[total(of), rates(of.rate, of.average)]);
        if of.nodes.len() < 2 {
            return;
        }
        for node in of.nodes.iter().take(NODES) {
            let messages = format!("{}: {}", node.node, count(node.messages));
            self.row("", &[messages, rates(node.rate, node.average)]);
        }
        if of.nodes.len() > NODES {
            self.row("", &[format!("and {} more nodes", of.nodes.len() - NODES)]);
        }
    }
}

fn total(of: &ServerCount) -> String {
    let relation = match of.difference {
        0 => "as accepted".to_owned(),
        more @ 1.. => format!(
            "{} more than accepted (others count too)",
            count(more.unsigned_abs())
        ),
        fewer => format!("{} fewer than accepted", count(fewer.unsigned_abs())),
    };
    format!(
        "{} messages in the rule engine, {relation}",
        count(of.messages)
    )
}

fn rates(rate: Option<f64>, average: Option<f64>) -> String {
    format!("{}/s, {} a count", per_second(rate), per_second(average))
}

#[cfg(test)]
mod tests {
    use crate::server_count::tests::counted;
    use crate::{Report, text};

    #[test]
    fn the_difference_to_the_ledger_is_stated() {
        let mut report = Report::default();
        assert!(!text(&report, 100).contains("counted"));
        for (accepted, told) in [
            (477, "as accepted"),
            (530, "53 fewer than accepted"),
            (470, "7 more than accepted (others count too)"),
        ] {
            report.target.counted = Some(counted(accepted));
            let summary = text(&report, 120);
            let total = format!("counted    477 messages in the rule engine, {told}  100/s, ");
            assert!(summary.contains(&total), "{summary}");
            assert!(
                summary.contains("           tb-2: 7  -/s, - a count\n"),
                "{summary}"
            );
        }
    }
}
