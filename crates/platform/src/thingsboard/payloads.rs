//! Payloads of the published performance tests of ThingsBoard, without their defects.
//!
//! The published meter leaks in 98 of 100 messages where one was meant, and the published tracker writes
//! its numbers as text in the format of the machine's language; here one in a hundred leaks, and
//! numbers are numbers.

use std::fmt::Write as _;

use muster_load::{MixSpec, PayloadSpec, RareSpec};

use super::Topic;

/// A payload of the published tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoardPayload<'a> {
    /// Its values.
    pub values: BoardValues,
    /// The topic it goes to, which decides its form; another than ThingsBoard's is taken for that of
    /// telemetry.
    pub topic: &'a str,
    /// True if `${stamp}` stands among the values, as `musterId`.
    pub is_stamped: bool,
    /// Messages that must raise an alarm; only kinds with alarms have them.
    pub alarms: Option<Rare>,
    /// The part of a device's milliseconds that this stream has.
    pub share: BoardShare,
}

/// Streams of one device that divide its milliseconds among them, since the platform keeps one value for
/// each device, key and `ts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoardShare {
    /// Number of streams, at least 1.
    pub streams: u32,
    /// The place of this one, from 0.
    pub place: u32,
}

impl BoardShare {
    /// The only stream of its devices.
    pub const WHOLE: Self = Self {
        streams: 1,
        place: 0,
    };

    /// The variable of a template that gives a message its own millisecond.
    fn variable(self) -> String {
        match self.streams {
            0 | 1 => "${unique_ms}".to_owned(),
            streams => format!("${{unique_ms:{streams}:{}}}", self.place),
        }
    }
}

/// Content of a payload of the published tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoardValues {
    /// Three values of a meter. An alarm is a battery level of 10.
    SmartMeter,
    /// Five values of a vehicle. An alarm is a battery level of 10.
    SmartTracker,
    /// This many values between 0 and 100; never an alarm.
    IndustrialPlc {
        /// From 1 to 999.
        datapoints: u16,
    },
    /// 29 % with one value, 30 % with twenty, 40 % with a hundred in one text and 1 % with a
    /// thousand. An alarm is a message of one value, which is 100.
    RandomMix,
    /// The constant body of 2019, `{"longKey":73}`: 14 bytes that nothing can be added to.
    LongKey,
}

/// The rare messages; see [`RareSpec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rare {
    /// Their number.
    pub count: u64,
    /// The first sequence number with rare messages,
    pub first: u32,
    /// and the first one after them.
    pub end: u32,
    /// Number of devices of the stream.
    pub devices: u32,
}

/// A battery level at which the published device profiles raise an alarm.
const BATTERY_LOW: &str = "10";
const BATTERY_GOOD: &str = "${int:50:99}";
/// Nine decimals and five more, as many as a double of that size has.
const DOUBLE: &str = "${uniform:0.0000000:99.9999999}${int:10000:99999}";

impl BoardPayload<'_> {
    /// Returns true if its messages carry their `ts`.
    pub fn has_instant(&self) -> bool {
        let topic = Topic::of(self.topic).unwrap_or(Topic::Telemetry);
        let is_attributes = matches!(topic, Topic::Attributes | Topic::GatewayAttributes);
        !is_attributes && self.values != BoardValues::LongKey
    }
}

impl BoardValues {
    /// Values of a controller's message where none are asked for.
    pub const DATAPOINTS: u16 = 60;

    /// The kinds of values with their shares.
    fn kinds(self) -> Vec<(u32, String)> {
        match self {
            Self::SmartMeter => vec![(1, meter(BATTERY_GOOD))],
            Self::SmartTracker => vec![(1, tracker(BATTERY_GOOD))],
            Self::IndustrialPlc { datapoints } => vec![(1, plc(datapoints))],
            Self::RandomMix => vec![
                (29, r#""t1":${int:0:99}"#.to_owned()),
                (30, listed(20, |at| format!(r#""t2_{at}":${{int:0:99}}"#))),
                (40, text_of("t3", 100)),
                (1, text_of("t4", 1_000)),
            ],
            Self::LongKey => vec![(1, r#""longKey":73"#.to_owned())],
        }
    }

    /// The values that raise an alarm.
    fn alarm(self) -> Option<String> {
        match self {
            Self::SmartMeter => Some(meter(BATTERY_LOW)),
            Self::SmartTracker => Some(tracker(BATTERY_LOW)),
            Self::RandomMix => Some(r#""t1":100"#.to_owned()),
            Self::IndustrialPlc { .. } | Self::LongKey => None,
        }
    }
}

/// The payload's template, or its mix of templates.
pub(crate) fn payload(payload: BoardPayload<'_>) -> PayloadSpec {
    let topic = Topic::of(payload.topic).unwrap_or(Topic::Telemetry);
    let is_constant = payload.values == BoardValues::LongKey;
    let stamp = match payload.is_stamped && !is_constant {
        true => r#""musterId":"${stamp}","#,
        false => "",
    };
    let ts = (!is_constant).then(|| payload.share.variable());
    let framed = |values: &str| framed(topic, &format!("{stamp}{values}"), ts.as_deref());
    let kinds = payload.values.kinds().into_iter();
    let mut kinds: Vec<(u32, String)> = kinds
        .map(|(share, values)| (share, framed(&values)))
        .collect();
    let rare = payload.values.alarm().zip(payload.alarms);
    let rare = rare.map(|(values, rare)| RareSpec {
        template: framed(&values),
        count: rare.count,
        first: rare.first,
        end: rare.end,
        devices: rare.devices,
    });
    match (kinds.len(), &rare) {
        (1, None) => PayloadSpec::Template(kinds.remove(0).1),
        _ => PayloadSpec::Mix(MixSpec { kinds, rare }),
    }
}

/// Values in the form of their topic.
fn framed(topic: Topic, values: &str, ts: Option<&str>) -> String {
    let point = match ts {
        Some(ts) => format!(r#"{{"ts":{ts},"values":{{{values}}}}}"#),
        None => format!("{{{values}}}"),
    };
    match topic {
        Topic::Telemetry | Topic::GatewayConnect | Topic::GatewayDisconnect | Topic::Claim => point,
        Topic::Attributes => format!("{{{values}}}"),
        Topic::GatewayTelemetry => format!(r#"{{"${{id}}":[{point}]}}"#),
        Topic::GatewayAttributes => format!(r#"{{"${{id}}":{{{values}}}}}"#),
    }
}

fn meter(battery: &str) -> String {
    let dry = vec!["false"; 99].join("|");
    format!(
        r#""pulseCounter":${{int:0:999999}},"leakage":${{choice:true|{dry}}},"batteryLevel":{battery}"#
    )
}

fn tracker(battery: &str) -> String {
    format!(
        r#""latitude":${{uniform:0.0000:100}},"longitude":${{uniform:0.0000:100}},"speed":${{int:0:99}}.${{int:0:9}},"fuel":${{int:0:99}},"batteryLevel":{battery}"#
    )
}

fn plc(datapoints: u16) -> String {
    listed(datapoints, |line| format!(r#""line{line:03}":{DOUBLE}"#))
}

/// One value that is itself JSON, as text.
fn text_of(name: &str, keys: u16) -> String {
    let members = listed(keys, |at| format!(r#"\"v{at}\":${{int:0:99}}"#));
    format!(r#""{name}":"{{{members}}}""#)
}

fn listed(count: u16, one: impl Fn(u16) -> String) -> String {
    let mut list = String::new();
    for at in 0..count {
        let comma = if at == 0 { "" } else { "," };
        // Writing to a text cannot fail.
        let _ = write!(list, "{comma}{}", one(at));
    }
    list
}

#[cfg(test)]
mod tests {
    use muster_load::{Payload, Scope};
    use muster_model::{DeviceId, MessageId, Micros, RunId, StreamId};
    use serde_json::Value;

    use super::*;

    const TELEMETRY: &str = "v1/devices/me/telemetry";

    fn plain(values: BoardValues) -> BoardPayload<'static> {
        BoardPayload {
            values,
            topic: TELEMETRY,
            is_stamped: false,
            alarms: None,
            share: BoardShare::WHOLE,
        }
    }

    fn rendered(spec: &PayloadSpec, device: u32, seq: u32) -> String {
        let id = MessageId {
            run: RunId(1),
            device: DeviceId(device),
            stream: StreamId(0),
            seq,
        };
        let scope = Scope {
            seed: 5,
            id,
            due: Micros(2_500_999),
            wall_ms_at_t0: 1_600_000_000_000,
            name: "DW00000007",
            index: 7,
            tenant: "",
            columns: None,
            unique: None,
        };
        let mut out = Vec::new();
        let payload = Payload::compile(spec).expect("it is possible");
        payload.render(&scope, &mut out);
        String::from_utf8(out).expect("it is text")
    }

    fn message(payload_of: BoardPayload<'_>, seq: u32) -> Value {
        let text = rendered(&payload(payload_of), 0, seq);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    fn battery(message: &Value) -> Option<u64> {
        message["values"]["batteryLevel"].as_u64()
    }

    #[test]
    fn the_forms_are_those_of_the_topics() {
        let of = |topic| {
            let template = BoardPayload {
                topic,
                ..plain(BoardValues::IndustrialPlc { datapoints: 1 })
            };
            let text = rendered(&payload(template), 0, 0);
            let start = text.find("\"line000\":").expect("the value");
            let digits = |c: char| c.is_ascii_digit() || c == '.';
            let value = text[start + 10..].trim_start_matches(digits);
            format!("{}V{value}", &text[..start + 10])
        };
        let expected = r#"{"ts":1600000002500,"values":{"line000":V}}"#;
        assert_eq!(of(TELEMETRY), expected);
        assert_eq!(of("v2/t"), expected);
        assert_eq!(of("v1/devices/me/attributes"), r#"{"line000":V}"#);
        let expected = r#"{"DW00000007":[{"ts":1600000002500,"values":{"line000":V}}]}"#;
        assert_eq!(of("v1/gateway/telemetry"), expected);
        let expected = r#"{"DW00000007":{"line000":V}}"#;
        assert_eq!(of("v1/gateway/attributes"), expected);
    }

    #[test]
    fn streams_of_a_device_divide_its_milliseconds() {
        let of = |place| {
            let meter = BoardPayload {
                share: BoardShare { streams: 2, place },
                ..plain(BoardValues::SmartMeter)
            };
            message(meter, 0)["ts"].as_u64().unwrap()
        };
        assert_eq!((of(0), of(1)), (1_600_000_002_500, 1_600_000_002_501));
        let has_instant = |values, topic| {
            let payload = BoardPayload {
                topic,
                ..plain(values)
            };
            payload.has_instant()
        };
        assert!(has_instant(BoardValues::SmartMeter, "v1/gateway/telemetry"));
        assert!(!has_instant(BoardValues::SmartMeter, "v2/a"));
        assert!(!has_instant(BoardValues::LongKey, TELEMETRY));
    }

    #[test]
    fn the_body_of_2019_has_14_bytes_and_no_room() {
        let stamped = BoardPayload {
            is_stamped: true,
            ..plain(BoardValues::LongKey)
        };
        let text = rendered(&payload(stamped), 0, 0);
        assert_eq!((text.as_str(), text.len()), (r#"{"longKey":73}"#, 14));
    }

    #[test]
    fn one_message_of_a_hundred_leaks() {
        let meter = plain(BoardValues::SmartMeter);
        let leaks = |seq: &u32| message(meter, *seq)["values"]["leakage"] == true;
        let leaking = (0..20_000).filter(leaks).count();
        // Within five standard errors of 200.
        assert!((130..=270).contains(&leaking), "{leaking}");
        for seq in 0..200 {
            let message = message(meter, seq);
            assert_eq!(message["ts"], 1_600_000_002_500_u64);
            assert_eq!(
                message["values"].as_object().map(serde_json::Map::len),
                Some(3)
            );
            assert!(message["values"]["pulseCounter"].as_u64().unwrap() < 1_000_000);
            assert!((50..100).contains(&battery(&message).unwrap()));
        }
    }

    #[test]
    fn a_tracker_says_numbers() {
        for seq in 0..200 {
            let message = message(plain(BoardValues::SmartTracker), seq);
            for name in ["latitude", "longitude", "speed"] {
                let value = message["values"][name].as_f64().expect(name);
                assert!((0.0..=100.0).contains(&value), "{name} {value}");
            }
            assert!(message["values"]["fuel"].as_u64().unwrap() < 100);
            assert!((50..100).contains(&battery(&message).unwrap()));
        }
    }

    #[test]
    fn a_plc_has_its_datapoints() {
        for datapoints in [1, 60, 999] {
            let message = message(plain(BoardValues::IndustrialPlc { datapoints }), 3);
            let values = message["values"].as_object().unwrap();
            assert_eq!(values.len(), usize::from(datapoints));
            let last = format!("line{:03}", datapoints - 1);
            assert!(values.keys().any(|name| *name == last));
            assert!(
                values
                    .values()
                    .all(|value| (0.0..100.0).contains(&value.as_f64().unwrap()))
            );
        }
    }

    #[test]
    fn the_random_mix_has_four_kinds() {
        let payload = payload(plain(BoardValues::RandomMix));
        let mut counts = [0; 4];
        for seq in 0..2_000 {
            let text = rendered(&payload, 0, seq);
            let message: Value = serde_json::from_str(&text).expect("it is JSON");
            let values = message["values"].as_object().expect("values");
            let (name, value) = values.iter().next().expect("one at least");
            let inner = |value: &Value| {
                let text = value.as_str().expect("a text");
                let inner: Value = serde_json::from_str(text).expect("JSON as text");
                inner.as_object().expect("an object").len()
            };
            let (kind, keys) = match name.as_str() {
                "t1" => (0, values.len()),
                "t2_0" => (1, values.len()),
                "t3" => (2, inner(value)),
                "t4" => (3, inner(value)),
                other => panic!("{other}"),
            };
            assert_eq!(keys, [1, 20, 100, 1_000][kind]);
            counts[kind] += 1;
        }
        // Within five standard errors.
        for (count, share) in counts.into_iter().zip([0.29_f64, 0.3, 0.4, 0.01]) {
            let (mean, error) = (2_000.0 * share, (2_000.0 * share * (1.0 - share)).sqrt());
            assert!((f64::from(count) - mean).abs() < 5.0 * error, "{counts:?}");
        }
    }

    #[test]
    fn alarms_are_as_many_as_asked_for_in_their_window() {
        let alarms = Some(Rare {
            count: 30,
            first: 10,
            end: 20,
            devices: 12,
        });
        for values in [BoardValues::SmartMeter, BoardValues::SmartTracker] {
            let payload = payload(BoardPayload {
                alarms,
                is_stamped: true,
                ..plain(values)
            });
            let mut alarms = Vec::new();
            for seq in 0..40 {
                for device in 0..12 {
                    let text = rendered(&payload, device, seq);
                    let message: Value = serde_json::from_str(&text).expect("it is JSON");
                    if battery(&message) == Some(10) {
                        alarms.push(seq);
                    }
                }
            }
            assert_eq!(alarms.len(), 30, "{values:?}");
            assert!(
                alarms.iter().all(|seq| (10..20).contains(seq)),
                "{alarms:?}"
            );
        }
    }

    #[test]
    fn a_stamp_stands_behind_the_same_text_in_every_kind() {
        let kinds = [
            BoardValues::SmartMeter,
            BoardValues::SmartTracker,
            BoardValues::IndustrialPlc { datapoints: 60 },
            BoardValues::RandomMix,
        ];
        for (values, (topic, _)) in kinds
            .iter()
            .flat_map(|v| super::super::TOPICS.map(|t| (v, t)))
        {
            let spec = payload(BoardPayload {
                topic,
                is_stamped: true,
                ..plain(*values)
            });
            let payload = Payload::compile(&spec).expect("the stamps agree");
            let anchor = payload.stamp_anchor().expect("it has a stamp");
            assert!(anchor.ends_with(r#""musterId":""#), "{anchor}");
        }
    }
}
