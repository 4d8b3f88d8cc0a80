//! Any bytes as the acknowledgements of an application, and as messages to its server end: reading
//! ends, does not panic, and agrees with another reader of JSON on what it holds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_platform::{ApplicationId, DevicePublish, Dialect, Downlink};
use serde_json::Value;

/// Another reader's result for an array of acknowledgements; none if it is none, or if the two
/// may differ: in a key or an id that is written with escapes.
fn expected(data: &[u8]) -> Option<Vec<(Option<ApplicationId>, u16)>> {
    if data.contains(&b'\\') {
        return None;
    }
    let value: Value = serde_json::from_slice(data).ok()?;
    let one = |element: &Value| {
        let element = element.as_object()?;
        let code = match element.get("code")? {
            Value::Number(code) => u16::try_from(code.as_u64()?).ok()?,
            Value::String(code) => code.parse().ok()?,
            _ => return None,
        };
        let id = match element.get("id") {
            Some(Value::String(id)) => ApplicationId::parse(id.as_bytes()),
            Some(Value::Number(id)) => ApplicationId::parse(id.to_string().as_bytes()),
            Some(_) | None => None,
        };
        Some((id, code))
    };
    value.as_array()?.iter().map(one).collect()
}

fuzz_target!(|data: &[u8]| {
    let Downlink::Acknowledgements(array) = (Dialect::SapEdge.publishing().downlink)("ack/d", data)
    else {
        panic!("it is the topic of acknowledgements");
    };
    let mut read = Vec::new();
    let mut is_broken = false;
    for acknowledgement in array {
        assert!(!is_broken, "an error is the end");
        match acknowledgement {
            Ok(one) => read.push((one.id, one.code)),
            Err(_) => is_broken = true,
        }
    }
    // A number with a fraction or an exponent reads as no id here and may be one there.
    let is_plain = !data.iter().any(|byte| b".eE-".contains(byte));
    if let Some(expected) = expected(data).filter(|_| is_plain) {
        assert!(!is_broken, "it is an array of acknowledgements");
        assert_eq!(read, expected);
    }
    if let DevicePublish::Message { id: Some(id), .. } =
        (Dialect::SapEdge.server.read)("d", "measures/d", data)
    {
        // What is given back is a value of its own, whatever stood around it.
        let mut said = Vec::new();
        let reply = muster_platform::Reply {
            id: Some(id),
            code: 202,
        };
        (Dialect::SapEdge.server.write_acknowledgement)(&mut std::iter::once(reply), &mut said);
        let Downlink::Acknowledgements(mut array) =
            (Dialect::SapEdge.publishing().downlink)("ack/d", &said)
        else {
            panic!("it is the topic of acknowledgements");
        };
        assert!(
            array
                .next()
                .is_some_and(|one| one.is_ok_and(|one| one.is_accepted))
        );
        assert!(array.next().is_none());
    }
});
