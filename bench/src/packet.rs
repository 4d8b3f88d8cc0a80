//! The part of MQTT 3.1.1 and 5 that a target needs if it accepts whatever it receives.

/// The PINGRESP.
pub const PINGRESP: &[u8] = &[0xd0, 0];

/// A control packet: the first byte of its fixed header, and what follows the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Kind and flags (MQTT 5, section 2.1).
    pub head: u8,
    /// Variable header and payload.
    pub body: &'a [u8],
}

/// Fields of a PUBLISH (MQTT 5, section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publish<'a> {
    /// The topic, with its length before it as on the wire.
    pub topic: &'a [u8],
    /// Two bytes, none at QoS 0.
    pub id: &'a [u8],
    /// The message.
    pub payload: &'a [u8],
}

/// The first packet of `bytes` and what follows it; none as long as it is incomplete.
#[must_use]
pub fn split(bytes: &[u8]) -> Option<(Packet<'_>, &[u8])> {
    let (head, rest) = bytes.split_first()?;
    let (length, rest) = number(rest)?;
    let (body, rest) = rest.split_at_checked(length)?;
    Some((Packet { head: *head, body }, rest))
}

/// Returns true if a CONNECT is of MQTT 5: its protocol level follows the six bytes of the name.
#[must_use]
pub fn is_v5(connect: &[u8]) -> bool {
    connect.get(6) == Some(&5)
}

/// The CONNACK that welcomes a client without a session.
#[must_use]
pub fn connack(v5: bool) -> &'static [u8] {
    if v5 {
        &[0x20, 3, 0, 0, 0]
    } else {
        &[0x20, 2, 0, 0]
    }
}

/// The parts of a PUBLISH; none if it is malformed.
#[must_use]
pub fn publish(packet: Packet<'_>, v5: bool) -> Option<Publish<'_>> {
    let long = usize::from(u16::from_be_bytes(*packet.body.first_chunk()?));
    let (topic, rest) = packet.body.split_at_checked(2 + long)?;
    let (id, rest) = rest.split_at_checked(if packet.head & 0x06 == 0 { 0 } else { 2 })?;
    let payload = if v5 { after_properties(rest)? } else { rest };
    Some(Publish { topic, id, payload })
}

/// Appends the message as a PUBLISH of QoS 0 without properties.
pub fn forward(message: &Publish<'_>, v5: bool, out: &mut Vec<u8>) {
    let length = message.topic.len() + usize::from(v5) + message.payload.len();
    out.push(0x30);
    write_number(length, out);
    out.extend_from_slice(message.topic);
    out.extend_from_slice(if v5 { &[0] } else { &[] });
    out.extend_from_slice(message.payload);
}

/// Appends the SUBACK that grants QoS 0 to every filter; none if the SUBSCRIBE is malformed.
#[must_use]
pub fn suback(subscribe: &[u8], v5: bool, out: &mut Vec<u8>) -> Option<()> {
    let (id, rest) = subscribe.split_at_checked(2)?;
    let mut rest = if v5 { after_properties(rest)? } else { rest };
    let mut filters = 0;
    while !rest.is_empty() {
        let long = usize::from(u16::from_be_bytes(*rest.first_chunk()?));
        rest = rest.get(2 + long + 1..)?;
        filters += 1;
    }
    out.push(0x90);
    write_number(2 + usize::from(v5) + filters, out);
    out.extend_from_slice(id);
    out.resize(out.len() + usize::from(v5) + filters, 0);
    Some(())
}

fn after_properties(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = number(bytes)?;
    rest.get(length..)
}

/// A variable byte integer (MQTT 5, section 1.5.5), and what follows it.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0;
    for (place, byte) in bytes.iter().take(4).enumerate() {
        value |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[place + 1..]));
        }
    }
    None
}

fn write_number(mut value: usize, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_split_where_they_end() {
        let bytes = [0xc0, 0, 0x30, 3, 0, 1, b'a', 0x40];
        let (ping, rest) = split(&bytes).expect("a whole packet");
        assert_eq!((ping.head, ping.body), (0xc0, &[][..]));
        let (message, rest) = split(rest).expect("a whole packet");
        assert_eq!(message.body, [0, 1, b'a']);
        assert_eq!(split(rest), None);
    }

    #[test]
    fn a_message_is_forwarded_without_id_and_properties() {
        let v5 = Packet {
            head: 0x32,
            body: b"\0\x01t\0\x07\x02\x01\x01hello",
        };
        let message = publish(v5, true).expect("well-formed");
        assert_eq!((message.id, message.payload), (&[0, 7][..], &b"hello"[..]));
        let mut out = Vec::new();
        forward(&message, true, &mut out);
        forward(&message, false, &mut out);
        assert_eq!(out, b"\x30\x09\0\x01t\0hello\x30\x08\0\x01thello");
    }

    #[test]
    fn lengths_above_127_take_two_bytes() {
        let payload = [b'x'; 200];
        let message = Publish {
            topic: b"\0\x01t",
            id: &[],
            payload: &payload,
        };
        let mut out = Vec::new();
        forward(&message, false, &mut out);
        let (packet, rest) = split(&out).expect("a whole packet");
        assert_eq!(publish(packet, false), Some(message));
        assert!(rest.is_empty());
    }

    #[test]
    fn every_filter_is_granted() {
        let mut out = Vec::new();
        suback(b"\0\x09\0\x01a\x01\0\x01b\0", false, &mut out).expect("well-formed");
        suback(b"\0\x09\0\0\x01a\x01", true, &mut out).expect("well-formed");
        assert_eq!(out, b"\x90\x04\0\x09\0\0\x90\x04\0\x09\0\0");
        assert_eq!(suback(b"\0\x09\0\x05a", false, &mut out), None);
    }
}
