//! The counts of the platform's rule engine, compared with the ledger.

use muster_measure::Ledger;
use muster_plan::Plan;
use muster_report::{NodeCount, ServerCount};

use crate::counters::unanswered;

/// Sums the counts of all nodes and compares them with the messages of the streams that the rule engine counts: those
/// with values that have instants. `of_streams` are the streams' ledgers.
pub(crate) fn compared(plan: &Plan, nodes: &[NodeCount], of_streams: &[&Ledger]) -> ServerCount {
    let dialect = plan.platform.dialect();
    let streams = plan.streams().zip(of_streams);
    let counted = streams.filter(|((_, stream), _)| {
        stream.is_uplink() && (dialect.topic)(stream.topic.source()).has_instants
    });
    let ledgers: Vec<&Ledger> = counted.map(|(_, ledger)| *ledger).collect();
    let accepted = ledgers.iter().map(|ledger| ledger.accepted).sum::<u64>();
    let unanswered = ledgers.iter().map(|ledger| unanswered(ledger)).sum::<u64>();
    let messages = nodes.iter().map(|node| node.messages).sum::<u64>();
    let nearest = messages.clamp(accepted, accepted + unanswered);
    let sum = |of: fn(&NodeCount) -> Option<f64>| nodes.iter().filter_map(of).reduce(|a, b| a + b);
    ServerCount {
        messages,
        accepted,
        unanswered,
        difference: messages.cast_signed() - nearest.cast_signed(),
        rate: sum(|node| node.rate),
        average: sum(|node| node.average),
        nodes: nodes.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use muster_scenario::{NoFiles, Overrides, Source, parse};

    use super::*;

    const SCENARIO: &str = "name: t
platform: { kind: thingsboard, devices: [ \"mqtt://h\" ] }
fleet:
  - name: f
    streams:
      - { name: a, rate: 1/s }
      - { name: b, topic: v1/devices/me/attributes, rate: 1/s, payload: { template: '{\"a\":1}' } }
";

    fn plan() -> Plan {
        let source = Source {
            name: "t.yaml",
            text: SCENARIO,
        };
        parse(source, &Overrides::new(), &NoFiles).expect("a scenario")
    }

    fn node(messages: u64, rate: Option<f64>) -> NodeCount {
        NodeCount {
            node: "n".to_owned(),
            messages,
            intervals: 1,
            interval_s: None,
            rate,
            average: None,
        }
    }

    #[test]
    fn nodes_are_summed_and_only_streams_of_time_series_are_compared() {
        let [series, attributes] = [600, 40].map(|accepted| Ledger {
            accepted,
            ..Ledger::default()
        });
        let nodes = [node(500, Some(50.0)), node(47, None), node(0, Some(2.0))];
        let counted = compared(&plan(), &nodes, &[&series, &attributes]);
        assert_eq!((counted.messages, counted.accepted), (547, 600));
        assert_eq!(counted.difference, -53);
        assert_eq!((counted.rate, counted.average), (Some(52.0), None));
    }

    #[test]
    fn messages_without_an_answer_may_be_counted_or_not() {
        let series = Ledger {
            accepted: 100,
            timed_out: 1,
            broken: 2,
            in_flight: 3,
            unacknowledged: 4,
            ..Ledger::default()
        };
        let attributes = Ledger {
            unacknowledged: 40,
            ..Ledger::default()
        };
        for (messages, difference) in [(99, -1), (100, 0), (110, 0), (111, 1)] {
            let nodes = [node(messages, None)];
            let counted = compared(&plan(), &nodes, &[&series, &attributes]);
            assert_eq!((counted.accepted, counted.unanswered), (100, 10));
            assert_eq!(counted.difference, difference, "{messages}");
        }
    }
}
