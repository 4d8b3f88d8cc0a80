//! The part of HTTP/1.1 that a target needs if it accepts whatever a device posts.

/// The answer to every request.
pub const ACCEPTED: &[u8] = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";

/// The blank line behind a head.
const END: &[u8] = b"\r\n\r\n";
/// The field with the length of a body, as the clients here write it.
const LENGTH: &[u8] = b"Content-Length: ";

/// Returns true if bytes of a client begin a POST, PUT or PATCH. MQTT's packet with that first byte is
/// PUBREC, which no client of a target at QoS 0 or 1 sends.
#[must_use]
pub fn is_begun(bytes: &[u8]) -> bool {
    bytes.first() == Some(&b'P')
}

/// The body of the first request of `bytes` and what follows it; none as long as it is incomplete.
#[must_use]
pub fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let head = find(bytes, END)?;
    let (fields, rest) = bytes.split_at(head + END.len());
    let length = find(fields, LENGTH).map(|at| &fields[at + LENGTH.len()..]);
    let digits = length.unwrap_or_default().iter();
    let digits = digits.take_while(|byte| byte.is_ascii_digit());
    let length = digits.fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'));
    rest.split_at_checked(length)
}

fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len()).position(|part| part == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_once_it_is_whole() {
        let request = b"POST /t HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcPOST";
        for end in 0..request.len() - 4 {
            assert_eq!(split(&request[..end]), None, "{end}");
        }
        assert_eq!(split(request), Some((&b"abc"[..], &b"POST"[..])));
        assert!(is_begun(request) && !is_begun(b"\x10\x13"));
    }
}
