//! Data of a device in a message: points of time series, or attributes.

use serde_json::{Map, Value};

use super::queue::{Content, Subject};

/// Values of one instant.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    /// Milliseconds of the wall clock; none is the instant at which the message came.
    pub(super) ts: Option<i64>,
    pub(super) values: Map<String, Value>,
}

/// Data of one device in a message.
#[derive(Debug, PartialEq)]
pub(super) struct Data {
    pub(super) entries: Vec<Entry>,
    /// True if a gateway speaks for the device.
    pub(super) is_by_gateway: bool,
}

impl Data {
    /// Values that it has for time series.
    pub(super) fn values_of_series(&self, content: Content) -> u64 {
        match content {
            Content::Telemetry => self.entries.iter().map(|of| of.values.len() as u64).sum(),
            Content::Attributes => 0,
        }
    }
}

/// Reads the data of a device; none if they are not readable. A gateway's message has the device as a key.
pub(super) fn read(of: Subject<'_>, payload: &[u8]) -> Option<Data> {
    let mut whole: Value = serde_json::from_slice(payload).ok()?;
    let own = whole.get_mut(of.device).filter(|own| match of.content {
        Content::Telemetry => own.is_array(),
        Content::Attributes => own.is_object(),
    });
    let is_by_gateway = own.is_some();
    let data = match own {
        Some(own) => own.take(),
        None => whole,
    };
    let entries = match (of.content, data) {
        (Content::Telemetry, Value::Array(entries)) => entries.into_iter().map(entry).collect(),
        (Content::Telemetry, one) => entry(one).map(|entry| vec![entry]),
        (Content::Attributes, Value::Object(values)) => Some(vec![Entry { ts: None, values }]),
        (Content::Attributes, _) => None,
    };
    Some(Data {
        entries: entries?.into_iter().map(cast).collect(),
        is_by_gateway,
    })
}

/// `{"ts": ..., "values": {...}}`, or the values alone.
fn entry(value: Value) -> Option<Entry> {
    let Value::Object(mut members) = value else {
        return None;
    };
    let ts = members.get("ts").and_then(instant);
    match (ts, members.get_mut("values").map(Value::take)) {
        (Some(ts), Some(Value::Object(values))) => Some(Entry {
            ts: Some(ts),
            values,
        }),
        (_, taken) => {
            if let (Some(taken), Some(values)) = (taken, members.get_mut("values")) {
                *values = taken;
            }
            Some(Entry {
                ts: None,
                values: members,
            })
        }
    }
}

/// Milliseconds, as a number or as text.
fn instant(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// The entry as ThingsBoard keeps it: without nulls, and text that is a number as a number.
fn cast(entry: Entry) -> Entry {
    let kept = entry
        .values
        .into_iter()
        .filter(|(_, value)| !value.is_null());
    Entry {
        ts: entry.ts,
        values: kept.map(|(key, value)| (key, number(value))).collect(),
    }
}

fn number(value: Value) -> Value {
    let Value::String(text) = &value else {
        return value;
    };
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(fraction) || !(whole.is_empty() || are_digits(whole)) || digits.is_empty() {
        return value;
    }
    let number = match digits.contains('.') {
        true => text.parse::<f64>().ok().map(Value::from),
        false => text.parse::<i64>().ok().map(Value::from),
    };
    number.unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(content: Content, payload: &str, wanted: &[(Option<i64>, Value)]) {
        let subject = Subject {
            device: "d",
            content,
        };
        let data = read(subject, payload.as_bytes()).expect("it is readable");
        let entries = data.entries.into_iter();
        let entries: Vec<_> = entries
            .map(|entry| (entry.ts, Value::Object(entry.values)))
            .collect();
        assert_eq!(entries, wanted, "{payload}");
    }

    #[test]
    fn telemetry_has_points_with_or_without_an_instant() {
        let a = |value: i64| json!({ "a": value });
        let telemetry = |payload, wanted: &[_]| check(Content::Telemetry, payload, wanted);
        telemetry(r#"{"a":1}"#, &[(None, a(1))]);
        telemetry(r#"{"ts":5,"values":{"a":1}}"#, &[(Some(5), a(1))]);
        telemetry(r#"{"ts":"5","values":{"a":1}}"#, &[(Some(5), a(1))]);
        telemetry(
            r#"[{"ts":5,"values":{"a":1}},{"a":2}]"#,
            &[(Some(5), a(1)), (None, a(2))],
        );
        telemetry(
            r#"{"x":[{"a":9}],"d":[{"ts":5,"values":{"a":1}}]}"#,
            &[(Some(5), a(1))],
        );
        telemetry(r#"{"values":3}"#, &[(None, json!({ "values": 3 }))]);
        telemetry(
            r#"{"values":{"a":1}}"#,
            &[(None, json!({ "values": { "a": 1 } }))],
        );
    }

    #[test]
    fn attributes_are_an_object_of_the_device() {
        check(
            Content::Attributes,
            r#"{"m":"x"}"#,
            &[(None, json!({ "m": "x" }))],
        );
        check(
            Content::Attributes,
            r#"{"d":{"m":1}}"#,
            &[(None, json!({ "m": 1 }))],
        );
        let subject = Subject {
            device: "d",
            content: Content::Attributes,
        };
        assert_eq!(read(subject, b"[]"), None);
        assert_eq!(read(subject, b"{"), None);
    }

    #[test]
    fn text_that_is_a_number_becomes_one_and_null_is_left_out() {
        let payload =
            r#"{"a":"1.50","b":"-7","c":"1e5","d":"x","e":null,"f":1.50,"g":"","h":"1.","i":".5"}"#;
        let wanted = json!({ "a": 1.5, "b": -7, "c": "1e5", "d": "x", "f": 1.5, "g": "", "h": "1.", "i": 0.5 });
        check(Content::Telemetry, payload, &[(None, wanted)]);
    }
}
