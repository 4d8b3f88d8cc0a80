//! Any topic and payload as a command that comes to a device and as a reply that comes to the
//! application: reading ends, does not panic, agrees with another reader on whose topic it is, and
//! believes an id only as it was written, over the payload that it was written for.

#![no_main]

use libfuzzer_sys::fuzz_target;
use muster_model::{DeviceId, MessageId, Micros, RunId, STAMP_TEXT, Stamp, StreamId};
use muster_platform::{CommandScratch, Dialect, Downlink, OutboundCommand, Replying, Returned};

const DIALECT: Dialect = Dialect::Mqtt;

fuzz_target!(|data: &[u8]| {
    let Some((&[first, split], rest)) = data.split_first_chunk() else {
        return;
    };
    let (name, payload) = rest.split_at(usize::from(split).min(rest.len()));
    let name = String::from_utf8_lossy(name);
    // Most topics of a fuzzer are nobody's; these begin as those of commands and replies do.
    let topic = match first & 3 {
        0 => name.into_owned(),
        1 => format!("command/{name}"),
        2 => format!("command/d/req/{name}"),
        _ => format!("command/d/res/{name}"),
    };
    check(&topic, payload);
    let of_sap_edge = (Dialect::SapEdge.publishing().downlink)("commands/d", payload);
    assert!(matches!(of_sap_edge, Downlink::Command(_)));
    if let Some((fields, device)) = rest.split_first_chunk() {
        let stamp = stamp(fields, first);
        return_to_sender(&stamp, &String::from_utf8_lossy(device), first);
        named_in_json(&stamp, split, first);
    }
});

/// Rest of a topic behind the last of these levels, by another reader.
fn below<'a>(topic: &'a str, word: &str) -> Option<&'a str> {
    let levels: Vec<&str> = topic.split('/').collect();
    let (_, above) = levels.split_last()?;
    let at = above.iter().rposition(|level| *level == word)?;
    let is_below_device = levels[0] == "command" && at >= 2;
    let length: usize = levels[..=at].iter().map(|level| level.len() + 1).sum();
    is_below_device.then(|| &topic[length..])
}

fn check(topic: &str, payload: &[u8]) {
    let command = below(topic, "req");
    let read = (DIALECT.server.command)(topic);
    assert_eq!(read.is_some(), command.is_some(), "{topic}");
    match ((DIALECT.publishing().downlink)(topic, payload), command) {
        (Downlink::Command(copy), Some(id)) => believes(copy.stamp, id, payload),
        (Downlink::Other, None) => {}
        (read, _) => panic!("{read:?} on {topic}"),
    }
    let returned = (DIALECT.application.returned)(topic, payload);
    match (returned, below(topic, "res")) {
        (Some(Returned::Reply(copy)), Some(rest)) => {
            believes(
                copy.stamp,
                rest.split('/').next().unwrap_or_default(),
                payload,
            );
        }
        (None, None) => {}
        (read, _) => panic!("{read:?} on {topic}"),
    }
}

/// Checks that a stamp is written again as the characters that it was read from.
fn believes(stamp: Option<Stamp>, id: &str, payload: &[u8]) {
    if let Some(stamp) = stamp {
        assert_eq!(stamp.encode_text(&[payload]).as_slice(), id.as_bytes());
    }
}

/// An id by any fields.
fn stamp(fields: &[u8; 16], bit: u8) -> Stamp {
    let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| fields[at + byte]));
    Stamp {
        id: MessageId {
            run: RunId(number(0)),
            device: DeviceId(number(4)),
            stream: StreamId(fields[8]),
            seq: number(9),
        },
        due: (bit & 1 == 0).then(|| Micros(u64::from(number(12)))),
    }
}

/// A command whose id travels in JSON is read back, and once a bit was altered never as another.
fn named_in_json(stamp: &Stamp, at: u8, bit: u8) {
    let mut scratch = CommandScratch::default();
    (Dialect::SapEdge.application.write_command)(&to(stamp, "d"), &mut scratch);
    let read = |scratch: &CommandScratch| match (Dialect::SapEdge.publishing().downlink)(
        &scratch.topic,
        &scratch.payload,
    ) {
        Downlink::Command(copy) => copy.stamp,
        read => panic!("{read:?} on {}", scratch.topic),
    };
    assert_eq!(read(&scratch), Some(*stamp));
    let at = usize::from(at) % scratch.payload.len();
    scratch.payload[at] ^= 1 << (bit & 7);
    assert!(read(&scratch).is_none_or(|other| other == *stamp));
}

/// A command that wants a reply.
fn to<'a>(stamp: &'a Stamp, device: &'a str) -> OutboundCommand<'a> {
    OutboundCommand {
        stamp,
        device,
        tenant: "",
        is_two_way: true,
    }
}

/// A command and its reply to a device of any name are read back, and not once a bit was altered.
fn return_to_sender(stamp: &Stamp, device: &str, bit: u8) {
    let mut scratch = CommandScratch::default();
    (DIALECT.application.write_command)(&to(stamp, device), &mut scratch);
    let command = |scratch: &CommandScratch| match (DIALECT.publishing().downlink)(
        &scratch.topic,
        &scratch.payload,
    ) {
        Downlink::Command(copy) => copy.stamp,
        read => panic!("{read:?} on {}", scratch.topic),
    };
    assert_eq!(command(&scratch), Some(*stamp));
    alter(&mut scratch, bit);
    assert_eq!(command(&scratch), None, "one bit is another");
    let to = Replying {
        stamp,
        request: 0,
        device,
        is_gateways: false,
        path: None,
        status: 200,
    };
    (DIALECT.write_reply)(&to, &mut scratch);
    let reply = |scratch: &CommandScratch| match (DIALECT.application.returned)(
        &scratch.topic,
        &scratch.payload,
    ) {
        Some(Returned::Reply(copy)) => copy.stamp,
        other => panic!("{other:?} on {}", scratch.topic),
    };
    assert_eq!(reply(&scratch), Some(*stamp));
    alter(&mut scratch, bit);
    assert_eq!(reply(&scratch), None, "one bit is another");
}

/// Alters one bit of the payload, or one character of the id.
fn alter(scratch: &mut CommandScratch, bit: u8) {
    let at = usize::from(bit >> 4);
    if bit & 8 == 0 {
        scratch.payload[at] ^= 1 << (bit & 7);
        return;
    }
    let end = scratch.topic.trim_end_matches("/200").len();
    let at = end - STAMP_TEXT + at;
    let other = if &scratch.topic[at..=at] == "A" {
        "B"
    } else {
        "A"
    };
    scratch.topic.replace_range(at..=at, other);
}
