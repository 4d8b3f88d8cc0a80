//! The subject of a certificate as text (RFC 5280 section 4.1.2.6).

use rustls::pki_types::CertificateDer;

/// Tags of DER (X.690) that a name is made of.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;

/// The subject in the certificate's own order, such as `O=meters,CN=meter-7`; none if it cannot be
/// read.
pub(crate) fn of(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    name(certificate.subject())
}

/// The common name in a subject as account and session have it, the first if there are several; none without one.
pub fn common_name(subject: &str) -> Option<String> {
    let mut characters = subject.chars();
    let (mut parts, mut part) = (Vec::new(), String::new());
    while let Some(character) = characters.next() {
        match character {
            ',' => parts.push(std::mem::take(&mut part)),
            '\\' => part.extend(characters.next()),
            other => part.push(other),
        }
    }
    parts.push(part);
    let mut names = parts.iter().filter_map(|part| part.strip_prefix("CN="));
    names.next().map(str::to_owned)
}

/// A name without its outer SEQUENCE: a SET for each part, which holds attributes.
fn name(mut der: &[u8]) -> Option<String> {
    let mut parts = Vec::new();
    while !der.is_empty() {
        let (mut set, rest) = value(der, SET)?;
        der = rest;
        while !set.is_empty() {
            let (attribute, rest) = value(set, SEQUENCE)?;
            set = rest;
            let (id, text) = value(attribute, OBJECT_ID)?;
            let (_, text, _) = any(text)?;
            let text = String::from_utf8_lossy(text)
                .replace('\\', "\\\\")
                .replace(',', "\\,");
            parts.push(format!("{}={text}", short(id)));
        }
    }
    Some(parts.join(","))
}

/// The value behind a tag, and what follows it.
fn value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, value, rest) = any(der)?;
    (found == tag).then_some((value, rest))
}

/// A tag, its value, and what follows. Lengths of more than two bytes are in no name.
fn any(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (length, from) = match *der.get(1)? {
        short @ 0..=0x7f => (usize::from(short), 2),
        0x81 => (usize::from(*der.get(2)?), 3),
        0x82 => (
            usize::from(u16::from_be_bytes([*der.get(2)?, *der.get(3)?])),
            4,
        ),
        _ => return None,
    };
    let value = der.get(from..from + length)?;
    Some((der[0], value, &der[from + length..]))
}

/// The usual short name of an attribute (RFC 4519), or its number in hexadecimal.
fn short(id: &[u8]) -> String {
    let known = match id {
        [0x55, 4, 3] => "CN",
        [0x55, 4, 5] => "serialNumber",
        [0x55, 4, 6] => "C",
        [0x55, 4, 7] => "L",
        [0x55, 4, 8] => "ST",
        [0x55, 4, 10] => "O",
        [0x55, 4, 11] => "OU",
        _ => return id.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_reads_in_its_order_and_with_its_commas() {
        let der = b"\x31\x0b\x30\x09\x06\x03\x55\x04\x0a\x0c\x02a,\x31\x0a\x30\x08\x06\x03\x55\x04\x03\x13\x017";
        assert_eq!(name(der).as_deref(), Some("O=a\\,,CN=7"));
    }

    #[test]
    fn a_common_name_is_found_and_nothing_in_another_part_is_taken_for_it() {
        for (subject, expected) in [
            ("O=meters,CN=sensor1@T1", Some("sensor1@T1")),
            ("CN=a\\,b\\\\,O=x", Some("a,b\\")),
            ("O=x\\,CN=other", None),
            ("O=x\\\\,CN=own", Some("own")),
            ("", None),
        ] {
            assert_eq!(common_name(subject).as_deref(), expected, "{subject}");
        }
    }

    #[test]
    fn what_is_no_name_has_none() {
        assert_eq!(name(b""), Some(String::new()));
        for der in [
            &b"\x31"[..],
            b"\x30\x00",
            b"\x31\x05\x30",
            b"\x31\x83\0\0\x01",
        ] {
            assert_eq!(name(der), None);
        }
    }
}
