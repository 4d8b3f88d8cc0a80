//! Reads messages of devices and gateways at the server end.

use super::{Topic, gateways, provisioning, requests, rpc};
use crate::json::Json;
use crate::server::DevicePublish;

/// Telemetry or attributes of the devices that a message names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a> {
    topic: Topic,
    link: &'a str,
    payload: &'a [u8],
}

/// The devices that a message has data of, in the order of the message.
#[derive(Debug, Clone)]
pub struct Devices<'a> {
    left: Left<'a>,
}

#[derive(Debug, Clone)]
enum Left<'a> {
    /// The link's own.
    Link(Option<&'a str>),
    /// Devices that a gateway's message names.
    Named(Json<'a>, Place),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Within,
    End,
}

impl<'a> Data<'a> {
    /// Returns the devices with data in the message, at least one.
    pub fn devices(&self) -> Devices<'a> {
        Devices {
            left: match self.topic.is_gateways() {
                true => Left::Named(Json::new(self.payload), Place::Start),
                false => Left::Link(Some(self.link)),
            },
        }
    }

    /// Appends the topic that a device's data surface on.
    pub fn write_surface(&self, device: &str, out: &mut String) {
        let surface = self.topic.surface().unwrap_or_default();
        let (before, after) = surface.split_once("${id}").unwrap_or_default();
        out.extend([before, device, after]);
    }
}

impl<'a> Iterator for Devices<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        match &mut self.left {
            Left::Link(name) => name.take(),
            Left::Named(json, place) => {
                let name = next_name(json, place);
                if name.is_none() {
                    *place = Place::End;
                }
                name
            }
        }
    }
}

/// The next key of an object, whose value is skipped.
fn next_name<'a>(json: &mut Json<'a>, place: &mut Place) -> Option<&'a str> {
    let goes_on = match place {
        Place::Start => {
            json.take(b'{')?;
            json.begins(b'}')?
        }
        Place::Within => json.goes_on(b'}')?,
        Place::End => false,
    };
    *place = Place::Within;
    goes_on.then_some(())?;
    let name = json.key()?;
    json.skip()?;
    std::str::from_utf8(name).ok()
}

/// Reads what a link published; `link` is the device, or the gateway, that it logged in as.
pub(super) fn read<'a>(link: &'a str, topic: &'a str, payload: &'a [u8]) -> DevicePublish<'a> {
    if provisioning::is_provisioning(link) {
        return provisioning::read(link, topic, payload);
    }
    let Some(topic) = Topic::of(topic) else {
        return requests::read(link, topic, payload).unwrap_or(match topic {
            // What can be read there is a reply, and was taken for one.
            rpc::GATEWAY => DevicePublish::Invalid,
            _ => DevicePublish::Unknown,
        });
    };
    let mut json = Json::new(payload);
    let is_readable = match topic {
        Topic::Telemetry if is_empty_list(payload) => return DevicePublish::Ignored,
        Topic::Telemetry => telemetry(&mut json),
        Topic::Attributes => values(&mut json),
        Topic::GatewayTelemetry => of_devices(&mut json, list),
        Topic::GatewayAttributes => of_devices(&mut json, values),
        Topic::GatewayConnect | Topic::GatewayDisconnect => {
            return gateways::announced(topic, payload);
        }
        Topic::Claim if provisioning::is_claim(payload) => return DevicePublish::Taken,
        Topic::Claim => return DevicePublish::Invalid,
    };
    if is_readable.is_none() || !json.is_at_end() {
        return DevicePublish::Invalid;
    }
    DevicePublish::Data(Data {
        topic,
        link,
        payload,
    })
}

/// Telemetry of a device: an object of values, one with `ts` and `values`, or a list of these.
fn telemetry(json: &mut Json<'_>) -> Option<()> {
    match json.peek()? {
        b'[' => list(json),
        _ => point(json),
    }
}

/// A list of no points, which ThingsBoard never acknowledges.
fn is_empty_list(payload: &[u8]) -> bool {
    let mut json = Json::new(payload);
    let is_empty = json.take(b'[').and_then(|()| json.begins(b']')) == Some(false);
    is_empty && json.is_at_end()
}

fn list(json: &mut Json<'_>) -> Option<()> {
    json.take(b'[')?;
    let mut goes_on = json.begins(b']')?;
    while goes_on {
        point(json)?;
        goes_on = json.goes_on(b']')?;
    }
    Some(())
}

/// One object of telemetry. With both `ts` and `values` these are what their names say; without
/// the one the other is a value like any.
fn point(json: &mut Json<'_>) -> Option<()> {
    let (mut ts, mut values_of) = (None, None);
    json.members(|key, json| match key {
        b"ts" => json.value().map(|value| ts = Some(value)),
        b"values" => json.value().map(|value| values_of = Some(value)),
        _ => json.skip(),
    })?;
    match (ts, values_of) {
        (Some(ts), Some(inner)) => {
            let is_right = is_instant(ts) && values(&mut Json::new(inner)).is_some();
            is_right.then_some(())
        }
        _ => Some(()),
    }
}

/// An object whose members are values of any kind.
fn values(json: &mut Json<'_>) -> Option<()> {
    (json.peek()? == b'{').then_some(())?;
    json.skip()
}

/// The object of a gateway: at least one device, each with data of that form.
fn of_devices(json: &mut Json<'_>, data: fn(&mut Json<'_>) -> Option<()>) -> Option<()> {
    json.take(b'{')?;
    let mut goes_on = json.begins(b'}')?;
    goes_on.then_some(())?;
    while goes_on {
        is_level(json.key()?).then_some(())?;
        data(json)?;
        goes_on = json.goes_on(b'}')?;
    }
    Some(())
}

/// Milliseconds since 1970, as a number or in quotes.
fn is_instant(ts: &[u8]) -> bool {
    let quoted = ts.strip_prefix(b"\"").and_then(|ts| ts.strip_suffix(b"\""));
    let text = std::str::from_utf8(quoted.unwrap_or(ts));
    text.is_ok_and(|text| text.parse::<i64>().is_ok())
}

/// Returns true if a device of that name has a topic.
pub(super) fn is_level(name: &[u8]) -> bool {
    let is_plain = !name.is_empty() && !name.iter().any(|byte| b"+#\0\\".contains(byte));
    is_plain && std::str::from_utf8(name).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The topics that a message surfaces on; none if it is invalid.
    fn heard(topic: &str, payload: &str) -> Option<Vec<String>> {
        let data = match read("meter-1", topic, payload.as_bytes()) {
            DevicePublish::Data(data) => data,
            DevicePublish::Invalid => return None,
            other @ (DevicePublish::Message { .. }
            | DevicePublish::Unreadable { .. }
            | DevicePublish::Announced { .. }
            | DevicePublish::Ignored
            | DevicePublish::Taken
            | DevicePublish::Unknown
            | DevicePublish::Foreign
            | DevicePublish::Published(_)
            | DevicePublish::Refused(_)
            | DevicePublish::Other) => panic!("{other:?}"),
        };
        let surface = |device: &str| {
            let mut topic = String::new();
            data.write_surface(device, &mut topic);
            topic
        };
        Some(data.devices().map(surface).collect())
    }

    #[test]
    fn a_device_is_known_by_its_link() {
        let telemetry = Some(vec!["thingsboard/meter-1/telemetry".to_owned()]);
        let forms = [
            r#"{"longKey":73}"#,
            r#"{"ts":1600000000000,"values":{"a":1,"b":"x","c":null,"d":{"e":[]}}}"#,
            r#"{"ts":"1600000000000","values":{}}"#,
            r#"[{"ts":1,"values":{"a":true}},{"a":2}]"#,
            r#"{"values":3}"#,
            r#"{"ts":"noon"}"#,
            "{}",
        ];
        for form in forms {
            for topic in ["v1/devices/me/telemetry", "v2/t", "v2/t/j"] {
                assert_eq!(heard(topic, form), telemetry, "{topic} {form}");
            }
        }
        assert_eq!(read("meter-1", "v2/t", b" [ ] "), DevicePublish::Ignored);
        let attributes = Some(vec!["thingsboard/meter-1/attributes".to_owned()]);
        for topic in ["v1/devices/me/attributes", "v2/a", "v2/a/j"] {
            assert_eq!(heard(topic, r#"{"model":"x"}"#), attributes, "{topic}");
            assert_eq!(heard(topic, r#"[{"model":"x"}]"#), None, "{topic}");
        }
    }

    #[test]
    fn a_gateway_names_its_devices() {
        let payload = r#"{"d/1":[{"ts":1,"values":{"a":1}},{"a":2}],"d 2":[{"a":3}]}"#;
        let topics = ["thingsboard/d/1/telemetry", "thingsboard/d 2/telemetry"];
        let expected = Some(topics.map(str::to_owned).to_vec());
        assert_eq!(heard("v1/gateway/telemetry", payload), expected);
        let payload = r#"{"d1":{"model":"x"}}"#;
        let expected = Some(vec!["thingsboard/d1/attributes".to_owned()]);
        assert_eq!(heard("v1/gateway/attributes", payload), expected);
    }

    #[test]
    fn what_is_no_data_is_invalid() {
        for payload in ["", "on", "1", "null", "[1]", r#"{"a":1"#, r#"{"a":1} x"#] {
            assert_eq!(heard("v1/devices/me/telemetry", payload), None, "{payload}");
        }
        for payload in [r#"{"ts":"noon","values":{}}"#, r#"{"ts":1,"values":[]}"#] {
            assert_eq!(heard("v2/t", payload), None, "{payload}");
        }
        for payload in [
            "{}",
            r#"{"d":{"a":1}}"#,
            r#"{"d":[1]}"#,
            r#"{"a+b":[]}"#,
            r#"{"":[]}"#,
        ] {
            assert_eq!(heard("v1/gateway/telemetry", payload), None, "{payload}");
        }
        assert_eq!(heard("v1/gateway/attributes", r#"{"d":[]}"#), None);
        assert_eq!(read("d", "v1/devices/me", b"{}"), DevicePublish::Unknown);
        assert_eq!(
            read("d", "v1/devices/you/telemetry", b"{}"),
            DevicePublish::Unknown
        );
    }

    proptest! {
        /// Law: for any bytes, reading ends and does not panic, and data have a device.
        #[test]
        fn any_bytes_are_survived(text in "[\\[\\]{}\",:0-9tsvalues+\\\\ ]{0,60}", at in 0usize..11) {
            let (topic, _) = super::super::TOPICS[at];
            if let DevicePublish::Data(data) = read("d", topic, text.as_bytes()) {
                prop_assert!(data.devices().count() >= 1);
            }
        }
    }
}
