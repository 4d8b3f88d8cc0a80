//! The head of an HTTP/1.1 message: collected within a bound, then parsed strictly (RFC 6455
//! section 4, RFC 9112).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use httparse::{EMPTY_HEADER, Header, Request, Response, Status};
use sha1::{Digest, Sha1};

use super::Fault;
use super::receive::Cut;

/// Longest head that is taken, in bytes: what servers commonly take.
pub(super) const HEAD_MAX: u16 = 8_192;
/// Most fields of a head; a browser sends about 20.
const FIELDS_MAX: usize = 64;
/// Text hashed behind the nonce (section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The text of a nonce or accept key.
pub(super) type AcceptKey = [u8; 28];

/// The accept key that proves that a server understood the nonce (section 4.2.2, item 5.4).
pub(super) fn accept_key(nonce: &[u8]) -> AcceptKey {
    let hash = Sha1::new().chain_update(nonce).chain_update(GUID);
    let mut text = [0; 28];
    let written = STANDARD.encode_slice(hash.finalize(), &mut text);
    debug_assert_eq!(written, Ok(text.len()), "20 bytes are 28 characters");
    text
}

/// Returns true if a nonce is the base64 of 16 bytes (section 4.1, item 7).
pub(super) fn is_nonce(text: &[u8]) -> bool {
    let mut space = [0; 18];
    text.len() == 24 && STANDARD.decode_slice(text, &mut space) == Ok(16)
}

/// Adds bytes to a head until it is complete; whether it is. Bytes behind it are not touched.
///
/// Lines end in CR LF, as section 4.1 wants it. A head that can no longer become one is refused
/// at once, so that a server that speaks something else is not waited for.
pub(super) fn collect(
    head: &mut Vec<u8>,
    cut: &mut Cut<'_>,
    is_hopeless: fn(&[u8]) -> bool,
) -> Result<bool, Fault> {
    let mut taken = 0;
    let mut is_complete = false;
    for &byte in cut.rest() {
        if is_complete || head.len() == usize::from(HEAD_MAX) {
            break;
        }
        head.push(byte);
        taken += 1;
        if byte == b'\n' && !head.ends_with(b"\r\n") {
            return Err(Fault::Head);
        }
        is_complete = head.ends_with(b"\r\n\r\n");
    }
    cut.skip(taken);
    if is_complete {
        return Ok(true);
    }
    if is_hopeless(head) {
        return Err(Fault::Head);
    }
    if head.len() == usize::from(HEAD_MAX) {
        return Err(Fault::HeadTooLong(HEAD_MAX));
    }
    Ok(false)
}

pub(super) fn is_no_answer(head: &[u8]) -> bool {
    Response::new(&mut [EMPTY_HEADER; FIELDS_MAX])
        .parse(head)
        .is_err()
}

pub(super) fn is_no_request(head: &[u8]) -> bool {
    Request::new(&mut [EMPTY_HEADER; FIELDS_MAX])
        .parse(head)
        .is_err()
}

/// Parses the complete head of an answer and hands its status and fields to `judge`.
pub(super) fn read_answer<T>(
    head: &[u8],
    judge: impl FnOnce(u16, &Fields<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mut space = [EMPTY_HEADER; FIELDS_MAX];
    let mut answer = Response::new(&mut space);
    is_whole(head, answer.parse(head))?;
    let status = answer.code.ok_or(Fault::Head)?;
    if status == 101 && answer.version != Some(1) {
        return Err(Fault::Head);
    }
    judge(status, &Fields(answer.headers))
}

/// Parses the complete head of a request and hands its method, target and fields to `judge`.
pub(super) fn read_request<T>(
    head: &[u8],
    judge: impl FnOnce(&str, &str, &Fields<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let mut space = [EMPTY_HEADER; FIELDS_MAX];
    let mut request = Request::new(&mut space);
    is_whole(head, request.parse(head))?;
    if request.version != Some(1) {
        return Err(Fault::Head);
    }
    let method = request.method.ok_or(Fault::Head)?;
    let target = request.path.ok_or(Fault::Head)?;
    judge(method, target, &Fields(request.headers))
}

/// Checks that parsing ended exactly at the end of the head.
fn is_whole(head: &[u8], parsed: httparse::Result<usize>) -> Result<(), Fault> {
    match parsed {
        Ok(Status::Complete(size)) if size == head.len() => Ok(()),
        Ok(Status::Complete(_) | Status::Partial) | Err(_) => Err(Fault::Head),
    }
}

#[derive(Debug)]
pub(super) struct Fields<'a>(&'a [Header<'a>]);

impl<'a> Fields<'a> {
    fn values(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let named = move |field: &&Header<'_>| field.name.eq_ignore_ascii_case(name);
        let fields = self.0.iter().filter(named);
        fields.map(|field| field.value.trim_ascii())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    /// The value of a field that may stand once at most.
    pub(super) fn single(&self, name: &str) -> Result<Option<&'a [u8]>, Fault> {
        let mut values = self.values(name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(Fault::Head),
        }
    }

    fn members(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let values = self.values(name);
        values.flat_map(|value| value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii))
    }

    /// Returns true if the list has the word, in letters of any case.
    pub(super) fn lists(&self, name: &str, word: &str) -> bool {
        self.members(name)
            .any(|member| member.eq_ignore_ascii_case(word.as_bytes()))
    }

    pub(super) fn lists_exactly(&self, name: &str, word: &str) -> bool {
        self.members(name).any(|member| member == word.as_bytes())
    }
}
