//! The length of bursts: how long the messages of one instant took to go out.

use serde_json::Value;

use crate::{Latencies, Ledgers};

/// Sets the length of bursts for each stream that has such by the resolved scenario.
pub(super) fn measure(ledgers: &mut Ledgers, scenario: &Value) {
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    for fleet in list(scenario, "fleet") {
        for stream in list(&fleet, "streams") {
            let (Some(fleet), Some(name)) = (fleet["name"].as_str(), stream["name"].as_str())
            else {
                continue;
            };
            if let Some(account) = ledgers.by_stream.get_mut(&format!("{fleet}/{name}")) {
                let longest = has_bursts(&stream).then(|| longest(&account.latency));
                account.burst_us = longest.flatten();
            }
        }
    }
}

fn has_bursts(stream: &Value) -> bool {
    stream["phase"] == "together" || stream["shape"]["burst"].is_object()
}

/// At most so long from due to the last byte sent: the largest lateness and the largest time held
/// need not be of one message.
fn longest(latency: &Latencies) -> Option<u64> {
    let late = latency.lateness.as_ref()?.max_us?;
    let held = latency.held.as_ref().and_then(|held| held.max_us);
    Some(late + held.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{LatencyFigures, StreamAccount};

    #[test]
    fn only_streams_with_bursts_have_a_length_of_them() {
        let leg = |max| {
            Some(LatencyFigures {
                max_us: Some(max),
                ..LatencyFigures::default()
            })
        };
        let mut account = StreamAccount::default();
        (account.latency.lateness, account.latency.held) = (leg(12_000), leg(400));
        for (stream, expected) in [
            (json!({ "name": "r", "phase": "together" }), Some(12_400)),
            (
                json!({ "name": "r", "shape": { "burst": { "n": 2, "every": "1s" } } }),
                Some(12_400),
            ),
            (json!({ "name": "r", "phase": "hash" }), None),
            (json!({ "name": "other", "phase": "together" }), None),
        ] {
            let mut ledgers = Ledgers::default();
            ledgers.by_stream.insert("m/r".to_owned(), account.clone());
            let scenario = json!({ "fleet": [{ "name": "m", "streams": [stream] }] });
            measure(&mut ledgers, &scenario);
            assert_eq!(ledgers.by_stream["m/r"].burst_us, expected);
        }
    }
}
