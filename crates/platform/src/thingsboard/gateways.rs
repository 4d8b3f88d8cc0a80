//! Gateways: links that carry many devices, and say which.

use super::Topic;
use crate::json::Json;
use crate::server::DevicePublish;

/// Topic on which a gateway announces a device.
pub(super) const ANNOUNCE: &str = "v1/gateway/connect";

/// Writes what a gateway says of a device before its data.
pub(super) fn write_announcement(device: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"device\":\"");
    out.extend_from_slice(device.as_bytes());
    out.extend_from_slice(b"\"}");
}

/// Reads what a gateway says of a device.
pub(super) fn announced(topic: Topic, payload: &[u8]) -> DevicePublish<'_> {
    let is_there = topic == Topic::GatewayConnect;
    match device(payload) {
        Some(device) => DevicePublish::Announced { device, is_there },
        None => DevicePublish::Invalid,
    }
}

/// The member `device` of an object.
fn device(payload: &[u8]) -> Option<&str> {
    let mut json = Json::new(payload);
    let mut device = None;
    json.members(|key, json| match key {
        b"device" => json.string().map(|name| device = Some(name)),
        _ => json.skip(),
    })?;
    let device = std::str::from_utf8(device?).ok()?;
    (json.is_at_end() && !device.is_empty()).then_some(device)
}

#[cfg(test)]
mod tests {
    use super::super::uplinks::read;
    use super::*;

    fn said(topic: &str, payload: &str) -> Option<(String, bool)> {
        let heard = read("GW00000000", topic, payload.as_bytes());
        if let DevicePublish::Announced { device, is_there } = heard {
            return Some((device.to_owned(), is_there));
        }
        assert_eq!(heard, DevicePublish::Invalid, "{payload}");
        None
    }

    #[test]
    fn a_gateway_announces_its_devices() {
        let mut payload = Vec::new();
        write_announcement("DW00000001", &mut payload);
        let payload = String::from_utf8(payload).expect("it is text");
        assert_eq!(payload, r#"{"device":"DW00000001"}"#);
        let device = || "DW00000001".to_owned();
        assert_eq!(said(ANNOUNCE, &payload), Some((device(), true)));
        assert_eq!(
            said("v1/gateway/disconnect", &payload),
            Some((device(), false))
        );
        let typed = r#" {"type": "default", "device": "DW00000001"} "#;
        assert_eq!(said(ANNOUNCE, typed), Some((device(), true)));
    }

    #[test]
    fn what_names_no_device_is_invalid() {
        for payload in [
            "",
            "{}",
            "[]",
            r#"{"device":1}"#,
            r#"{"device":""}"#,
            r#"{"device":"a"}x"#,
        ] {
            assert_eq!(said(ANNOUNCE, payload), None, "{payload}");
        }
    }
}
