//! Any bytes as what a device or a gateway of ThingsBoard publishes: hearing ends, does not panic, and
//! agrees with another reader of JSON on what is data, and of whom.

#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_platform::{Dialect, Heard};
use serde_json::Value;

const TELEMETRY: &str = "v1/devices/me/telemetry";
const ATTRIBUTES: &str = "v2/a";
const OF_GATEWAY: &str = "v1/gateway/telemetry";
const CONNECT: &str = "v1/gateway/connect";

fn is_point(value: &Value) -> bool {
    let Some(point) = value.as_object() else {
        return false;
    };
    let (Some(ts), Some(values)) = (point.get("ts"), point.get("values")) else {
        return true;
    };
    let is_instant = match ts {
        Value::Number(ts) => ts.as_i64().is_some(),
        Value::String(ts) => ts.parse::<i64>().is_ok(),
        _ => false,
    };
    is_instant && values.is_object()
}

fn is_list(value: &Value) -> bool {
    value.as_array().is_some_and(|list| list.iter().all(is_point))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['+', '#', '\0'])
}

/// Whether both readers must agree: not on escapes, on numbers that the one cannot hold, on deep
/// nesting, nor on keys that come twice.
fn is_plain(data: &[u8]) -> bool {
    let is_plain = |byte: &u8| !b"\\eE-".contains(byte);
    let opens = data.iter().filter(|byte| b"[{".contains(byte)).count();
    std::str::from_utf8(data).is_ok() && data.iter().all(is_plain) && opens < 60
}

fn hears(topic: &str, data: &[u8]) -> bool {
    match Dialect::Thingsboard.hear("link", topic, data) {
        Heard::Data(data) => {
            assert!(data.devices().count() > 0, "data are somebody's");
            for device in data.devices() {
                let mut surface = String::new();
                data.write_surface(device, &mut surface);
                assert!(surface.starts_with("thingsboard/") && !surface.contains(['+', '#', '\0']));
            }
            true
        }
        Heard::Announced { device, is_there } => {
            assert!(!device.is_empty() && is_there);
            true
        }
        Heard::Invalid => false,
        other => panic!("{other:?} on {topic}"),
    }
}

fuzz_target!(|data: &[u8]| {
    let telemetry = hears(TELEMETRY, data);
    let attributes = hears(ATTRIBUTES, data);
    let of_gateway = hears(OF_GATEWAY, data);
    let announced = hears(CONNECT, data);
    assert!(!of_gateway || attributes, "what a gateway says is an object");
    if !is_plain(data) {
        return;
    }
    let Ok(value) = serde_json::from_slice::<Value>(data) else {
        assert!(!(telemetry || attributes || of_gateway || announced), "it is no JSON");
        return;
    };
    assert_eq!(telemetry, is_point(&value) || is_list(&value));
    assert_eq!(attributes, value.is_object());
    let Some(object) = value.as_object() else {
        return;
    };
    // Of a key that comes twice the other reader keeps the last.
    if of_gateway {
        assert!(object.iter().all(|(name, value)| is_name(name) && is_list(value)));
    }
    if announced {
        assert!(object.get("device").is_some_and(|device| device.as_str().is_some_and(|d| !d.is_empty())));
    }
});
