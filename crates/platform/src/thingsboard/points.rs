//! Points of time series in the messages of devices.

use serde_json::Value;

/// Returns the `ts` of the point that holds an id among its values, in milliseconds; none if there is no such point, or
/// the point has no `ts`.
pub(super) fn instant(payload: &[u8], id: &[u8]) -> Option<i64> {
    let id = std::str::from_utf8(id).ok()?;
    of_point(&serde_json::from_slice(payload).ok()?, id)
}

fn of_point(points: &Value, id: &str) -> Option<i64> {
    match points {
        Value::Array(points) => points.iter().find_map(|point| of_point(point, id)),
        Value::Object(members) => match (members.get("ts"), members.get("values")) {
            (Some(ts), Some(Value::Object(values))) => {
                let holds_it = values.values().any(|value| value == id);
                holds_it.then(|| milliseconds(ts)).flatten()
            }
            // Lists by the names of devices, as a gateway sends them.
            _ => {
                let mut lists = members.values().filter(|list| list.is_array());
                lists.find_map(|list| of_point(list, id))
            }
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Milliseconds, as a number or as text.
fn milliseconds(ts: &Value) -> Option<i64> {
    ts.as_i64().or_else(|| ts.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instant_of_a_message_is_that_of_the_point_with_its_id() {
        for (payload, expected) in [
            (r#"{"ts":5,"values":{"a":1,"musterId":"me"}}"#, Some(5)),
            (r#"{"ts":"5","values":{"musterId":"me"}}"#, Some(5)),
            (
                r#"[{"ts":4,"values":{"a":1}},{"ts":5,"values":{"musterId":"me"}}]"#,
                Some(5),
            ),
            (
                r#"{"d":[{"ts":5,"values":{"musterId":"me"}}],"e":[{"ts":6,"values":{}}]}"#,
                Some(5),
            ),
            (r#"{"ts":5,"values":{"musterId":"you"}}"#, None),
            (r#"{"ts":5,"musterId":"me"}"#, None),
            (r#"{"musterId":"me"}"#, None),
            ("me", None),
        ] {
            assert_eq!(instant(payload.as_bytes(), b"me"), expected, "{payload}");
        }
    }
}
