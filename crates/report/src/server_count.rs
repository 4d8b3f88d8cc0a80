//! Counts of the platform's rule engine.

use serde::{Deserialize, Serialize};

use crate::Report;
use crate::steps::quoted;

/// Messages that the platform's rule engine counted during the run, those of others included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerCount {
    /// Counted messages of all nodes.
    pub messages: u64,
    /// The ledger's accepted messages of the streams that the rule engine counts, warm-up and measured phase.
    pub accepted: u64,
    /// Their sent messages without an answer, such as all of QoS 0; the rule engine may have counted them or not.
    pub unanswered: u64,
    /// 0 if `messages` lies between `accepted` and `accepted + unanswered`, otherwise how much it is below (negative) or
    /// above. Above 0 if others sent, or if a message had data of several devices or instants.
    pub difference: i64,
    /// Sum of the rates of the nodes; null if no node has one.
    pub rate: Option<f64>,
    /// Sum of the averages of the nodes, the published total; null if no node has one.
    pub average: Option<f64>,
    /// The nodes of the platform, by name.
    pub nodes: Vec<NodeCount>,
}

/// Messages that one node of the platform counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeCount {
    /// The service name of the node.
    pub node: String,
    /// Its messages.
    pub messages: u64,
    /// Stored counts from the first message to the last.
    pub intervals: u64,
    /// Mean seconds between two counts; null with fewer than two, as the next two.
    pub interval_s: Option<f64>,
    /// Messages per second by the instants at which counts were stored.
    pub rate: Option<f64>,
    /// Average of the counts, the published formula, whatever the time between them.
    pub average: Option<f64>,
}

/// The counts of the platform's nodes as comma-separated values, with a heading; none if nothing was counted.
pub fn counts_csv(report: &Report) -> Option<String> {
    let counted = report.target.counted.as_ref()?;
    let cell = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let rows = counted.nodes.iter().map(|of| {
        let (node, messages, intervals) = (quoted(of.node.clone()), of.messages, of.intervals);
        let [interval, rate, average] = [of.interval_s, of.rate, of.average].map(cell);
        format!("{node},{messages},{intervals},{interval},{rate},{average}\n")
    });
    let heading = "node,messages,intervals,interval_s,rate,average\n".to_owned();
    Some(rows.fold(heading, |table, row| table + &row))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A late count makes the published average too high; another node counted once.
    pub(crate) fn counted(accepted: u64) -> ServerCount {
        let node = |node: &str, messages, intervals| NodeCount {
            node: node.to_owned(),
            messages,
            intervals,
            interval_s: None,
            rate: None,
            average: None,
        };
        ServerCount {
            messages: 477,
            accepted,
            unanswered: 0,
            difference: 477 - accepted as i64,
            rate: Some(100.0),
            average: Some(117.5),
            nodes: vec![
                NodeCount {
                    interval_s: Some(1.25),
                    rate: Some(100.0),
                    average: Some(117.5),
                    ..node("tb,1", 470, 4)
                },
                node("tb-2", 7, 1),
            ],
        }
    }

    #[test]
    fn each_node_has_a_row() {
        let mut report = Report::default();
        assert_eq!(counts_csv(&report), None);
        report.target.counted = Some(counted(477));
        let expected = "node,messages,intervals,interval_s,rate,average\n\
                        \"tb,1\",470,4,1.25,100,117.5\n\
                        tb-2,7,1,,,\n";
        assert_eq!(counts_csv(&report).as_deref(), Some(expected));
    }
}
