//! Any bytes as what a device or a gateway of ThingsBoard publishes, and as what comes to it: reading
//! ends, does not panic, and agrees with another reader of JSON on what is data, and of whom, on
//! commands and their replies, on requests and their answers.

#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_platform::{
    CommandScratch, Commanded, DevicePublish, Dialect, Downlink, Handing, Handover, Reply,
};
use serde_json::Value;

const TELEMETRY: &str = "v1/devices/me/telemetry";
const ATTRIBUTES: &str = "v2/a";
const OF_GATEWAY: &str = "v1/gateway/telemetry";
const CONNECT: &str = "v1/gateway/connect";
const KEYS: &str = "v1/devices/me/attributes/request/4100";
const CALL: &str = "v2/r/req/4101";
const CLAIM: &str = "v1/devices/me/claim";
const PROVISION: &str = "/provision/request";
const PROVISIONING: &str = "provision/link";
const ANSWER: &str = "v1/devices/me/rpc/response/4100";
const PROVISIONED: &str = "/provision/response";
const COMMAND: &str = "v1/devices/me/rpc/request/17";
const RPC_OF_GATEWAY: &str = "v1/gateway/rpc";
const REPLY: &str = "thingsboard-rpc/d/response";
const BOARD: Dialect = Dialect::Thingsboard;

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
    value
        .as_array()
        .is_some_and(|list| list.iter().all(is_point))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(['+', '#', '\0'])
}

/// Returns whether both readers must agree: not on escapes, on numbers that the one cannot hold, on deep
/// nesting, nor on keys that come twice.
fn is_plain(data: &[u8]) -> bool {
    let is_plain = |byte: &u8| !b"\\eE-".contains(byte);
    let opens = data.iter().filter(|byte| b"[{".contains(byte)).count();
    std::str::from_utf8(data).is_ok() && data.iter().all(is_plain) && opens < 60
}

/// Both answers to a request are read as what they are.
fn answered(device: &str, id: Option<&[u8]>) {
    for code in [0, 0x97] {
        let (mut topic, mut answer) = (String::new(), Vec::new());
        (BOARD.server.write_acknowledgement_topic)(device, id, &mut topic);
        (BOARD.server.write_acknowledgement)(&mut [Reply { id, code }].into_iter(), &mut answer);
        let Downlink::Acknowledgements(mut words) = (BOARD.publishing().downlink)(&topic, &answer)
        else {
            panic!("{topic}");
        };
        let word = words.next().expect("one").expect("it is readable");
        assert_eq!(word.is_accepted, code == 0);
    }
}

/// Returns whether an answer on a topic is readable and positive.
fn answer(topic: &str, data: &[u8]) -> Option<bool> {
    let Downlink::Acknowledgements(mut words) = (BOARD.publishing().downlink)(topic, data) else {
        panic!("{topic}");
    };
    let word = words.next().expect("one");
    assert!(words.next().is_none());
    word.ok().map(|word| word.is_accepted)
}

/// Commands and replies: what may be handed on is JSON, and stays so in the form of gateways.
fn commanded(data: &[u8]) {
    for topic in [COMMAND, RPC_OF_GATEWAY] {
        assert!(matches!(
            (BOARD.publishing().downlink)(topic, data),
            Downlink::Command(_)
        ));
    }
    let _ = (BOARD.application.returned)(REPLY, data);
    let mut topic = String::new();
    if (BOARD.server.surfaced_reply)("link", RPC_OF_GATEWAY, data, &mut topic).is_some() {
        assert!(topic.starts_with("thingsboard-rpc/") && !topic.contains(['+', '#', '\0']));
    }
    if !(BOARD.server.takes_command)(data) {
        return;
    }
    let to = Handing {
        command: Commanded {
            tenant: "",
            device: "d",
            correlation_id: None,
            name: "",
        },
        gateway: Some("g"),
        request: 7,
    };
    let mut handed = CommandScratch::default();
    let Handover::RewrittenOrInAnswer(rewrite) = BOARD.server.handover else {
        panic!("ThingsBoard rewrites commands for its devices");
    };
    assert!(rewrite(0, &to, data, &mut handed));
    let Downlink::Command(copy) = (BOARD.publishing().downlink)(RPC_OF_GATEWAY, &handed.payload)
    else {
        panic!("a gateway is commanded");
    };
    assert_eq!((copy.request, copy.device), (7, Some("d")));
}

fn is_taken(topic: &str, data: &[u8]) -> bool {
    let link = match topic {
        PROVISION => PROVISIONING,
        _ => "link",
    };
    match (BOARD.server.read)(link, topic, data) {
        DevicePublish::Data(data) => {
            assert!(data.devices().count() > 0, "data are somebody's");
            for device in data.devices() {
                let mut surface = String::new();
                data.write_surface(device, &mut surface);
                assert!(surface.starts_with("thingsboard/") && !surface.contains(['+', '#', '\0']));
            }
            true
        }
        DevicePublish::Announced { device, is_there } => {
            assert!(!device.is_empty() && is_there);
            true
        }
        DevicePublish::Message { device, id } => {
            assert!(device == "link" || device == PROVISIONING);
            answered(device, id);
            true
        }
        DevicePublish::Taken => true,
        DevicePublish::Invalid | DevicePublish::Ignored | DevicePublish::Foreign => false,
        other => panic!("{other:?} on {topic}"),
    }
}

fuzz_target!(|data: &[u8]| {
    let telemetry = is_taken(TELEMETRY, data);
    let attributes = is_taken(ATTRIBUTES, data);
    let of_gateway = is_taken(OF_GATEWAY, data);
    let announced = is_taken(CONNECT, data);
    let requests = [KEYS, CALL, CLAIM, PROVISION].map(|topic| is_taken(topic, data));
    assert!(
        !of_gateway || attributes,
        "what a gateway says is an object"
    );
    assert!(
        requests.iter().all(|is_request| !is_request || attributes),
        "a request is an object"
    );
    let (said, provisioned) = (answer(ANSWER, data), answer(PROVISIONED, data));
    commanded(data);
    if !is_plain(data) {
        return;
    }
    let Ok(value) = serde_json::from_slice::<Value>(data) else {
        assert!(
            !(telemetry || attributes || of_gateway || announced),
            "it is no JSON"
        );
        assert!(said.is_none() && provisioned.is_none(), "it is no JSON");
        return;
    };
    assert_eq!(said, Some(value.get("error").is_none()));
    assert!(
        provisioned.is_none()
            || value
                .get("status")
                .or(value.get("provisionDeviceStatus"))
                .is_some()
    );
    let is_empty = value.as_array().is_some_and(Vec::is_empty);
    assert_eq!(
        telemetry,
        is_point(&value) || (is_list(&value) && !is_empty)
    );
    assert_eq!(attributes, value.is_object());
    let Some(object) = value.as_object() else {
        return;
    };
    // Of a key that comes twice the other reader keeps the last.
    if of_gateway {
        assert!(
            object
                .iter()
                .all(|(name, value)| is_name(name) && is_list(value))
        );
    }
    if announced {
        assert!(
            object
                .get("device")
                .is_some_and(|device| device.as_str().is_some_and(|d| !d.is_empty()))
        );
    }
});
