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
    let [accepted, unanswered] = [of.accepted, of.unanswered].map(count);
    let relation = match of.difference {
        0 if of.messages == of.accepted => "as accepted".to_owned(),
        0 => format!("{accepted} accepted and {unanswered} without an answer"),
        more @ 1.. => {
            let more = count(more.unsigned_abs());
            let than = match of.unanswered {
                0 => String::new(),
                _ => format!(" and the {unanswered} without an answer"),
            };
            format!("{more} more than accepted{than} (others count too)")
        }
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
    use crate::{Report, ServerCount, text};

    #[test]
    fn the_difference_to_the_ledger_is_stated() {
        let mut report = Report::default();
        assert!(!text(&report, 100).contains("counted"));
        for (accepted, relation) in [
            (477, "as accepted"),
            (530, "53 fewer than accepted"),
            (470, "7 more than accepted (others count too)"),
        ] {
            report.target.counted = Some(counted(accepted));
            let summary = text(&report, 120);
            let total = format!("counted    477 messages in the rule engine, {relation}  100/s, ");
            assert!(summary.contains(&total), "{summary}");
            assert!(
                summary.contains("           tb-2: 7  -/s, - a count\n"),
                "{summary}"
            );
        }
    }

    #[test]
    fn messages_without_an_answer_are_not_those_of_others() {
        for (difference, relation) in [
            (0_i64, "400 accepted and 77 without an answer"),
            (
                7,
                "7 more than accepted and the 70 without an answer (others count too)",
            ),
        ] {
            let mut report = Report::default();
            report.target.counted = Some(ServerCount {
                unanswered: 77 - difference.cast_unsigned(),
                difference,
                ..counted(400)
            });
            let summary = text(&report, 160);
            let total = format!("counted    477 messages in the rule engine, {relation}  100/s, ");
            assert!(summary.contains(&total), "{summary}");
        }
    }
}
