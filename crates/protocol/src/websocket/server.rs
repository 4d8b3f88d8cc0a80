//! The server's handshake: what it demands of a request, and its answers (RFC 6455 section 4.2).

use super::http::{AcceptKey, Fields, accept_key, is_nonce, read_request};
use super::{Fault, SUBPROTOCOL};

/// Judges the complete request in the order of section 4.2.1; the accept key of the answer.
pub(super) fn judge(head: &[u8], path: Option<&str>) -> Result<AcceptKey, Fault> {
    read_request(head, |method, target, fields| {
        if method != "GET" {
            return Err(Fault::Method);
        }
        if path.is_some_and(|path| path != resource(target)) {
            return Err(Fault::Path);
        }
        judge_fields(fields)
    })
}

/// The path that a request's target names. A target may be a whole URI (section 4.2.1, item 1);
/// what stands behind a question mark is for the service.
fn resource(target: &str) -> &str {
    let (path, _query) = target.split_once('?').unwrap_or((target, ""));
    let after_scheme = ["http://", "https://"].map(|scheme| path.strip_prefix(scheme));
    match after_scheme.into_iter().flatten().next() {
        Some(uri) => uri.find('/').map_or("/", |slash| &uri[slash..]),
        None => path,
    }
}

fn judge_fields(fields: &Fields<'_>) -> Result<AcceptKey, Fault> {
    if fields.single("host")?.is_none() {
        return Err(Fault::Host);
    }
    if !fields.lists("upgrade", "websocket") || !fields.lists("connection", "upgrade") {
        return Err(Fault::NotUpgrade);
    }
    if fields.single("sec-websocket-version")? != Some(b"13") {
        return Err(Fault::Version);
    }
    let nonce = fields.single("sec-websocket-key")?.unwrap_or_default();
    if !is_nonce(nonce) {
        return Err(Fault::Nonce);
    }
    if !fields.lists_exactly("sec-websocket-protocol", SUBPROTOCOL) {
        return Err(Fault::NotOffered);
    }
    Ok(accept_key(nonce))
}

/// Appends the answer to a good request (section 4.2.2, item 5).
pub(super) fn put_switch(accept: &AcceptKey, wire: &mut Vec<u8>) {
    wire.extend_from_slice(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
          Sec-WebSocket-Accept: ",
    );
    wire.extend_from_slice(accept);
    wire.extend_from_slice(b"\r\nSec-WebSocket-Protocol: ");
    wire.extend_from_slice(SUBPROTOCOL.as_bytes());
    wire.extend_from_slice(b"\r\n\r\n");
}

/// Appends the answer to a request that was refused (sections 4.2.1, 4.2.2, 4.4).
pub(super) fn put_refusal(fault: Fault, wire: &mut Vec<u8>) {
    let status: &[u8] = if matches!(fault, Fault::NotUpgrade | Fault::Version) {
        b"426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\
          Sec-WebSocket-Version: 13\r\n"
    } else if fault == Fault::Path {
        b"404 Not Found\r\nConnection: close\r\n"
    } else {
        b"400 Bad Request\r\nConnection: close\r\n"
    };
    wire.extend_from_slice(b"HTTP/1.1 ");
    wire.extend_from_slice(status);
    wire.extend_from_slice(b"Content-Length: 0\r\n\r\n");
}
