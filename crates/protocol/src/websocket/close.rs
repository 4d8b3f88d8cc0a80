//! The status codes of close frames, and what a close frame says (RFC 6455 sections 5.5.1, 7.4).

use super::Fault;

pub(super) const NORMAL: u16 = 1000;
pub(super) const PROTOCOL_ERROR: u16 = 1002;
/// The peer sent data of a type that is not taken.
pub(super) const UNSUPPORTED_DATA: u16 = 1003;
/// The peer sent data that is not of its type, such as text that is not UTF-8.
pub(super) const INVALID_DATA: u16 = 1007;
pub(super) const TOO_BIG: u16 = 1009;

/// The status code of a close frame's payload; none where it gives none.
pub(super) fn read(body: &[u8]) -> Result<Option<u16>, Fault> {
    let Some((code, reason)) = body.split_first_chunk() else {
        return if body.is_empty() {
            Ok(None)
        } else {
            Err(Fault::CloseBody)
        };
    };
    let code = u16::from_be_bytes(*code);
    if !may_be_sent(code) {
        return Err(Fault::CloseCode(code));
    }
    if std::str::from_utf8(reason).is_err() {
        return Err(Fault::CloseReason);
    }
    Ok(Some(code))
}

/// Returns true if a close frame may have the code: those that are defined (1012 to 1014 by the
/// registry of section 11.7), and those of libraries and applications. 1004 has no meaning; 1005,
/// 1006 and 1015 report closes without a frame.
const fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn section_5_5_1_a_body_is_empty_or_begins_with_a_code_of_two_bytes() {
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&[3]), Err(Fault::CloseBody));
        assert_eq!(read(&[3, 232]), Ok(Some(1000)));
    }

    #[test]
    fn section_5_5_1_a_reason_is_utf_8() {
        assert_eq!(read(b"\x03\xe9gone \xc3\xbcber"), Ok(Some(1001)));
        assert_eq!(read(b"\x03\xe9\xc3"), Err(Fault::CloseReason));
    }

    #[test]
    fn section_7_4_codes_that_are_reserved_or_undefined_may_not_be_sent() {
        for code in [
            0u16,
            999,
            1004,
            1005,
            1006,
            1015,
            1016,
            2999,
            5000,
            u16::MAX,
        ] {
            assert_eq!(read(&code.to_be_bytes()), Err(Fault::CloseCode(code)));
        }
        for code in [1000u16, 1003, 1007, 1011, 1014, 3000, 4999] {
            assert_eq!(read(&code.to_be_bytes()), Ok(Some(code)));
        }
    }
}
