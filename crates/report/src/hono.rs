//! The result of the published load test of Eclipse Hono, field by field.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Report;

/// The figures of the published test, under its own names and by its own formulas
/// (`published.hono`), over the whole run: it knows no warm-up. What it lacks stands at the end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HonoFigures {
    /// Always `device-simulator`.
    pub r#type: String,
    /// Links that came up.
    pub num_client_successful_connects: u64,
    /// Links that were lost.
    pub num_client_disconnects: u64,
    /// Tries to connect that the target or the network ended.
    pub num_client_connect_failure_clients: u64,
    /// Tries to connect that a limit of the generator's own ended.
    pub num_client_exception_while_opening: u64,
    /// Telemetry messages sent.
    pub published_telemetry_count: u64,
    /// Events sent.
    pub published_events_count: u64,
    /// Command queries sent.
    pub published_command_queries: u64,
    /// Queries answered by a command.
    pub received_commands: u64,
    /// Replies to commands that the platform took.
    pub answered_commands_count: u64,
    /// Telemetry messages, from taken to accepted.
    pub coap_rtt_send_telemetry: SlotFigures,
    /// Events, from taken to accepted.
    pub coap_rtt_send_event: SlotFigures,
    /// Command queries, from taken to the command.
    pub coap_rtt_send_command_request: SlotFigures,
    /// Replies, from the command to accepted.
    pub coap_rtt_send_command_response: SlotFigures,
    /// Telemetry messages that failed, by code; without an answer as `unknownCoapError`.
    pub coap_errors_send_telemetry: BTreeMap<String, u64>,
    /// Events that failed.
    pub coap_errors_send_event: BTreeMap<String, u64>,
    /// Queries that failed; those whose answer held no command as `missingCommand`.
    pub coap_errors_send_command_request: BTreeMap<String, u64>,
    /// The planned length of the run in minutes, rounded.
    pub runtime_in_minutes: u64,
    /// Replies that failed: the published form has no place for them.
    pub coap_errors_send_command_response: BTreeMap<String, u64>,
    /// Sent less accepted and failed, by class: what was still open when the run stopped, which the
    /// published form leaves to be subtracted.
    pub in_flight_at_stop: HonoClasses,
    /// Due and never sent, by class: the published test does not report what it did not issue.
    pub not_issued: HonoClasses,
}

/// A number for each class of traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HonoClasses {
    /// Telemetry messages.
    pub telemetry: u64,
    /// Events.
    pub event: u64,
    /// Command queries.
    pub command_request: u64,
    /// Replies to commands.
    pub command_response: u64,
}

/// A time's figures, each text like `14 ms`; null without a time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SlotFigures {
    /// Number of times.
    pub all: u64,
    /// Their mean.
    pub avg: Option<String>,
    /// The upper edge of the slot of 5 ms that the 95th percentile lies in.
    #[serde(rename = "95%")]
    pub p95: Option<String>,
    /// The same of the 99th.
    #[serde(rename = "99%")]
    pub p99: Option<String>,
    /// The same of the 99.9th.
    #[serde(rename = "99.9%")]
    pub p99_9: Option<String>,
    /// The longest.
    pub max: Option<String>,
}

/// The result of the published test as its device simulator writes it; none where the run has no
/// such figures.
pub fn hono_simulator(report: &Report) -> Option<String> {
    let figures: HonoFigures = report.published("hono")?;
    Some(serde_json::to_string_pretty(&figures).ok()? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published test's first result, as far as it was published.
    fn first() -> HonoFigures {
        let times = |all, texts: [&str; 5]| {
            let [avg, p95, p99, p99_9, max] = texts.map(|text| Some(format!("{text} ms")));
            SlotFigures {
                all,
                avg,
                p95,
                p99,
                p99_9,
                max,
            }
        };
        let errors = |all: &[(&str, u64)]| {
            let owned = all.iter().map(|(code, n)| ((*code).to_owned(), *n));
            owned.collect::<BTreeMap<String, u64>>()
        };
        HonoFigures {
            r#type: "device-simulator".to_owned(),
            num_client_successful_connects: 2_500,
            published_telemetry_count: 127_026,
            published_events_count: 127_026,
            published_command_queries: 127_026,
            received_commands: 125_784,
            answered_commands_count: 125_602,
            coap_rtt_send_telemetry: times(126_824, ["14", "39", "74", "519", "965"]),
            coap_errors_send_telemetry: errors(&[("5.03", 94), ("unknownCoapError", 107)]),
            runtime_in_minutes: 15,
            in_flight_at_stop: HonoClasses {
                telemetry: 1,
                ..HonoClasses::default()
            },
            ..HonoFigures::default()
        }
    }

    #[test]
    fn the_result_has_the_published_names() {
        let mut report = Report::default();
        let value = serde_json::to_value(first()).expect("it is plain data");
        report.published.insert("hono".to_owned(), value);
        let text = hono_simulator(&report).expect("it has the figures");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_run_without_the_figures_has_no_such_result() {
        assert_eq!(hono_simulator(&Report::default()), None);
    }
}
