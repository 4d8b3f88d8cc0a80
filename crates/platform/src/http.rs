//! Any ingestion API over HTTP: method, path, headers and body of a message are the scenario's, and its answer
//! is a status code.
//!
//! No convention says where messages surface, or how a device gets a command. The server end therefore takes
//! any method on any path, and messages surface on the topic that is the path without its first slash and its
//! query.

use crate::incoming::{Asker, Manner, Refusal, Upload, Wanted};
use crate::protocol::Protocol;
use crate::request::Status;
use crate::spec::{PLAIN, PLAIN_REQUESTS, PLAIN_SERVER, Requests, Server, Spec};

pub(crate) static HTTP: Spec = Spec {
    name: "http",
    has_free_calls: true,
    takes_bare_templates: true,
    server: Server {
        acceptance: ACCEPTED.0,
        refusal: 503,
        is_refusal: |code| matches!(code, 300..=599),
        ..PLAIN_SERVER
    },
    requests: &[(
        Protocol::Http,
        Requests {
            login: "${id}",
            accepted: ACCEPTED,
            commanded: ACCEPTED,
            hint,
            read: |came, _, out| {
                let path = came.target.trim_start_matches('/');
                let path = path.split('?').next().unwrap_or_default();
                out.clear();
                // A topic has no wildcards.
                if path.is_empty() || path.contains(['+', '#']) {
                    return Wanted::Refused(NO_TOPIC);
                }
                out.push_str(path);
                Wanted::Upload(Upload {
                    tenant: "",
                    device: "",
                    gateway: None,
                    content_type: came.content_type,
                    is_at_least_once: true,
                    ttd_s: None,
                    manner: Manner {
                        is_short: false,
                        asker: Asker::Nobody,
                    },
                    surfaces: true,
                    question: None,
                    over: None,
                })
            },
            hand: |_, _, _| Err(NO_COMMANDS),
            ..PLAIN_REQUESTS
        },
    )],
    ..PLAIN
};

/// The answer to a message whose processing goes on (RFC 9110 section 15.3.3).
const ACCEPTED: Status = Status(202);
const NO_COMMANDS: &str = "devices of this API take no commands";
const NO_TOPIC: Refusal = Refusal {
    status: Status(404),
    why: "the path names no topic on which the message could surface",
};

/// Returns the setting to check after a refusal; none where the code says it all.
fn hint(status: Status) -> Option<&'static str> {
    Some(match status.0 {
        400 | 422 => "the API cannot take such a message: see `payload`, `path` and `headers`",
        401 => {
            "the API does not know these credentials: see `credential`, or the header that holds a key"
        }
        403 => "these credentials may not send there: see `credential` and `path`",
        404 => {
            "there is no such path: see `path`, and the path of the address in `platform.devices`"
        }
        405 => "the path takes other methods: see `method`",
        411 | 413 => "the API takes no body of this length: see `payload`",
        415 => "the API takes no such media type: see `payload.content-type`",
        429 => "a limit of the API is reached; `retry-after`, if it says so, is obeyed",
        502 | 504 => "a proxy before the API has nothing behind it that answers",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incoming::Incoming;
    use crate::request::Method;

    fn read(target: &str) -> (Option<u16>, String) {
        let (_, requests) = &HTTP.requests[0];
        let mut came = Incoming::new(Method::Other, true, b"1");
        came.target = target;
        let mut topic = "left over".to_owned();
        let refused = match (requests.read)(&came, None, &mut topic) {
            Wanted::Refused(refusal) => Some(refusal.status.0),
            Wanted::Upload(_) | Wanted::Reply(_) | Wanted::Observation(_) | Wanted::Ignored => None,
        };
        (refused, topic)
    }

    #[test]
    fn a_message_surfaces_on_its_path() {
        for (target, topic) in [
            ("/v1/devices/d-1/readings", "v1/devices/d-1/readings"),
            ("/ingest?device=d-1", "ingest"),
            ("/a/b/c/d/e/f/g", "a/b/c/d/e/f/g"),
        ] {
            assert_eq!(read(target), (None, topic.to_owned()));
        }
        for target in ["/", "", "/?a=b", "/a+b", "/a#b"] {
            assert_eq!(read(target).0, Some(404), "{target}");
        }
    }

    #[test]
    fn usual_refusals_name_the_key_to_look_at() {
        for code in [400, 401, 403, 404, 405, 413, 415, 429] {
            let text = hint(Status(code)).unwrap_or_default();
            assert!(text.contains('`'), "{code}");
        }
        assert_eq!(hint(Status(503)), None);
    }
}
