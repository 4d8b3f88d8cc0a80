//! A request as the dialect reads it.

use muster_platform::{Incoming, Method};
use muster_protocol::http::ServerRequest;

use super::target::{Target, path_and_query};

/// The request as the dialect reads it; none if its path or a parameter is no text.
pub(super) fn read<'a>(
    request: &'a ServerRequest<'_>,
    target: &'a mut Target,
) -> Option<Incoming<'a>> {
    if !target.decode(request.target()) {
        return None;
    }
    let target: &'a Target = target;
    let method = match request.method() {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        _ => Method::Other,
    };
    let mut came = Incoming::new(method, true, &request.body);
    came.target = path_and_query(request.target());
    target.segments().for_each(|segment| came.segment(segment));
    target
        .parameters()
        .for_each(|parameter| came.parameter(parameter));
    for (name, value) in request.head.fields() {
        let text = (std::str::from_utf8(name), std::str::from_utf8(value));
        if let (Ok(name), Ok(value)) = text {
            if name.eq_ignore_ascii_case("content-type") {
                came.content_type = Some(value);
            } else if !is_of_http(name) {
                came.header(name, value);
            }
        }
    }
    Some(came)
}

/// True for a header that says nothing to an application: the others are few.
fn is_of_http(name: &str) -> bool {
    /// Beginnings of their names.
    const GROUPS: [&str; 4] = ["accept", "content-", "sec-", "if-"];
    const NAMES: [&str; 12] = [
        "host",
        "user-agent",
        "connection",
        "authorization",
        "transfer-encoding",
        "expect",
        "te",
        "cache-control",
        "pragma",
        "cookie",
        "origin",
        "referer",
    ];
    let begins = |with: &&str| {
        let start = name.get(..with.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    GROUPS.iter().any(begins) || NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}
