//! The payload of the published test: a message of the Ditto protocol.

use muster_load::PayloadSpec;

/// Namespace of a name without one.
const NAMESPACE: &str = "org.eclipse.muster";
/// Name of a message without a stamp, from two numbers.
const NUMBERED: &str = "${index}-${seq}";

/// A payload's thing, and the name of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DittoPayload<'a> {
    /// The template of the devices' names, which are things': `namespace:name`, or a name alone.
    pub device: &'a str,
    /// True if `correlation-id` is `${stamp}`; else it is the device's index and the message's
    /// number.
    pub is_stamped: bool,
}

/// Modifies one property of a thing, to which no reply is wanted (`/headers/response-required`).
pub(crate) fn payload(payload: DittoPayload<'_>) -> PayloadSpec {
    let (namespace, name) = match payload.device.split_once(':') {
        Some((namespace, name)) if !namespace.contains("${") => (namespace, name),
        _ => (NAMESPACE, payload.device),
    };
    let id = if payload.is_stamped {
        "${stamp}"
    } else {
        NUMBERED
    };
    PayloadSpec::Template(format!(
        "{{\"topic\":\"{namespace}/{name}/things/twin/commands/modify\",\
         \"headers\":{{\"response-required\":false,\"correlation-id\":\"{id}\"}},\
         \"path\":\"/features/temperature/properties\",\
         \"value\":{{\"temperature\":${{normal:20:3}},\"unit\":\"Celsius\",\"ts\":${{due_ms}}}}}}"
    ))
}

#[cfg(test)]
mod tests {
    use muster_load::{Payload, Scope};
    use muster_model::{DeviceId, MessageId, Micros, RunId, StreamId};
    use serde_json::Value;

    use super::*;

    fn rendered(device: &str, name: &str, is_stamped: bool) -> Value {
        let payload = Payload::compile(&payload(DittoPayload { device, is_stamped }));
        let mut out = Vec::new();
        let id = MessageId {
            run: RunId(1),
            device: DeviceId(0),
            stream: StreamId(0),
            seq: 41,
        };
        let scope = Scope {
            seed: 1,
            id,
            due: Micros(2_500_000),
            wall_ms_at_t0: 1_712_345_000_000,
            name,
            index: 17,
            tenant: "",
            columns: None,
            unique: None,
        };
        payload.expect("it is a template").render(&scope, &mut out);
        assert!(out.len() < 1_000, "{} bytes", out.len());
        serde_json::from_slice(&out).expect("it is JSON")
    }

    #[test]
    fn a_thing_is_the_device_with_its_namespace() {
        let told = rendered("com.acme:d-${index}", "com.acme:d-17", false);
        assert_eq!(told["topic"], "com.acme/d-17/things/twin/commands/modify");
        assert_eq!(told["headers"]["response-required"], false);
        assert_eq!(told["headers"]["correlation-id"], "17-41");
        assert_eq!(told["path"], "/features/temperature/properties");
        assert_eq!(told["value"]["ts"], 1_712_345_002_500_u64);
        assert!(told["value"]["temperature"].is_number());
        let told = rendered("d-${index}", "d-17", true);
        assert_eq!(
            told["topic"],
            "org.eclipse.muster/d-17/things/twin/commands/modify"
        );
    }

    #[test]
    fn the_stamp_is_the_correlation_id() {
        let stamped = DittoPayload {
            device: "d",
            is_stamped: true,
        };
        let PayloadSpec::Template(text) = payload(stamped) else {
            panic!("it is a template");
        };
        assert!(text.contains("\"correlation-id\":\"${stamp}\""));
    }
}
