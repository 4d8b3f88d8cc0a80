//! Messages of a device: measures with an id.

use muster_load::PayloadSpec;

use super::MEASURES;
use crate::downlink::ApplicationId;
use crate::json::Json;
use crate::server::DevicePublish;

/// A sample; all samples of a message are alike.
const SAMPLE: &str = r#"{"ts": "${due_iso}", "sn": ${seq}}"#;

/// The payload of the published test: `measureMessageId`, the alternate ids of capability and
/// sensor, and the samples, written with the blanks that its author's JSON writer sets.
pub(crate) fn measures(samples: u32, stream_index: u8) -> PayloadSpec {
    let id = ApplicationId::template(stream_index);
    let samples = vec![SAMPLE; samples as usize].join(", ");
    PayloadSpec::Template(format!(
        r#"{{"measureMessageId": "{id}", "capabilityAlternateId": "PerfTest", "sensorAlternateId": "PerfTest", "measures": [{samples}]}}"#
    ))
}

/// Reads what came on a topic of measures.
pub(crate) fn read<'a>(topic: &'a str, payload: &'a [u8]) -> DevicePublish<'a> {
    let Some(device) = topic.strip_prefix(MEASURES) else {
        return DevicePublish::Other;
    };
    match message_id(payload) {
        Some(id) => DevicePublish::Message { device, id },
        None => DevicePublish::Unreadable { device },
    }
}

/// Returns the id of a message of measures as the JSON has it. The outer option is none if the payload
/// is no object with measures.
fn message_id(payload: &[u8]) -> Option<Option<&[u8]>> {
    let mut json = Json::new(payload);
    let (mut id, mut has_measures) = (None, false);
    json.members(|key, json| match key {
        b"measureMessageId" => json.value().map(|value| id = Some(value)),
        b"measures" => {
            has_measures = json.peek()? == b'[';
            json.skip()
        }
        _ => json.skip(),
    })?;
    (has_measures && json.is_at_end()).then_some(id)
}

#[cfg(test)]
mod tests {
    use muster_load::{Payload, Scope};
    use muster_model::{DeviceId, MessageId, Micros, RunId, StreamId};

    use super::*;

    fn rendered(samples: u32, stream_index: u8, seq: u32) -> String {
        let id = MessageId {
            run: RunId(1),
            device: DeviceId(0),
            stream: StreamId(0),
            seq,
        };
        let scope = Scope {
            seed: 1,
            id,
            due: Micros(2_500_042),
            wall_ms_at_t0: 1_577_836_800_000,
            name: "PerfTest_0",
            index: 0,
            tenant: "",
            columns: None,
            unique: None,
        };
        let payload = Payload::compile(&measures(samples, stream_index)).expect("it is a template");
        let mut out = Vec::new();
        payload.render(&scope, &mut out);
        String::from_utf8(out).expect("it is text")
    }

    #[test]
    fn a_message_is_the_published_tests_with_its_length() {
        let text = rendered(1, 0, 7);
        let expected = r#"{"measureMessageId": "7", "capabilityAlternateId": "PerfTest", "sensorAlternateId": "PerfTest", "measures": [{"ts": "2020-01-01T00:00:02.500042Z", "sn": 7}]}"#;
        assert_eq!(text, expected);
        // As published: 157 to 165 bytes.
        assert!((157..=165).contains(&text.len()), "{}", text.len());
        assert!((157..=165).contains(&rendered(1, 0, 9_999).len()));
    }

    #[test]
    fn samples_of_a_message_are_alike() {
        let text = rendered(3, 1, 4);
        assert_eq!(text.matches(r#"{"ts": "#).count(), 3);
        assert!(text.contains(r#""measureMessageId": "1.4""#), "{text}");
    }

    #[test]
    fn the_server_end_gives_back_the_id_as_it_came() {
        let heard = |payload: &'static str| read("measures/d-1", payload.as_bytes());
        let message = |id: Option<&'static str>| DevicePublish::Message {
            device: "d-1",
            id: id.map(str::as_bytes),
        };
        let whole = r#"{"measures": [], "measureMessageId": "a\"b"}"#;
        assert_eq!(heard(whole), message(Some(r#""a\"b""#)));
        assert_eq!(heard(r#"{"measures": [1]}"#), message(None));
        for broken in [
            "",
            "[]",
            "{}",
            r#"{"measures": 1}"#,
            r#"{"measures": []} x"#,
        ] {
            assert_eq!(
                heard(broken),
                DevicePublish::Unreadable { device: "d-1" },
                "{broken}"
            );
        }
        assert_eq!(read("ack/d-1", whole.as_bytes()), DevicePublish::Other);
    }
}
