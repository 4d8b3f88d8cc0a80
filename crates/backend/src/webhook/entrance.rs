//! One webhook's checks of a request: path, method, proof, and what its body holds.

use std::borrow::Cow;

use muster_model::percent;
use muster_plan::{BackendPlan, WebhookNorthbound};
use muster_platform::PROPERTY_NAME;
use muster_protocol::http::ServerRequest;

use super::proof::Proof;
use super::refusals::Cause;

/// The requests that a webhook accepts.
pub(super) struct Entrance {
    /// The path of its address without a slash at the end.
    path: String,
    proof: Option<Proof>,
    /// The header that has the topic; none if the path has it.
    topic: Option<String>,
    batches: bool,
}

/// Copies in a request that may enter.
pub(super) struct Push<'a> {
    /// The topic of all of them.
    pub(super) topic: Cow<'a, str>,
    /// The header that may carry a stamp.
    pub(super) property: Option<&'a str>,
    pub(super) body: &'a [u8],
    /// True if the body may be an array of copies.
    pub(super) is_batch: bool,
}

impl Entrance {
    /// The entrance of a backend; none if that is no webhook.
    pub(super) fn new(backend: &BackendPlan) -> Option<Self> {
        let webhook: &WebhookNorthbound = backend.webhook()?;
        Some(Self {
            path: backend.endpoint.path.trim_end_matches('/').to_owned(),
            proof: Proof::new(backend, webhook),
            topic: webhook.topic.clone(),
            batches: webhook.batches,
        })
    }

    /// The challenge of a refusal for want of a proof.
    pub(super) fn challenge(&self) -> &'static str {
        self.proof.as_ref().map_or("", Proof::challenge)
    }

    /// Checks that a request is one for this webhook, whoever sends it.
    pub(super) fn is_for_it(&self, request: &ServerRequest<'_>) -> Result<(), Cause> {
        self.rest(request.target()).ok_or(Cause::Path)?;
        match request.method() {
            "POST" | "PUT" => Ok(()),
            _ => Err(Cause::Method),
        }
    }

    /// Checks who sends a request, and reads where its copies surface.
    pub(super) fn admit<'a>(&self, request: &'a ServerRequest<'_>) -> Result<Push<'a>, Cause> {
        let head = &request.head;
        if self
            .proof
            .as_ref()
            .is_some_and(|proof| !proof.is_shown(head))
        {
            return Err(Cause::Unproven);
        }
        let coding = head.field("content-encoding");
        if coding.is_some_and(|coding| !coding.eq_ignore_ascii_case(b"identity")) {
            return Err(Cause::Compressed);
        }
        let text = |name: &str| std::str::from_utf8(head.field(name)?).ok();
        let topic = match &self.topic {
            Some(header) => Cow::Borrowed(text(header).unwrap_or_default()),
            None => decoded(self.rest(request.target()).unwrap_or_default()),
        };
        Ok(Push {
            topic,
            property: text(PROPERTY_NAME),
            body: &request.body,
            is_batch: self.batches,
        })
    }

    /// The part of a target behind the path of the address, without its first slash and its query; none if the
    /// target does not begin with that path.
    fn rest<'a>(&self, target: &'a str) -> Option<&'a str> {
        let path = target.split(['?', '#']).next().unwrap_or_default();
        match path.strip_prefix(self.path.as_str())? {
            "" => Some(""),
            rest => rest.strip_prefix('/'),
        }
    }
}

/// A path without its percent-encoding; as it is where that leaves no text.
fn decoded(path: &str) -> Cow<'_, str> {
    percent::decode(path).unwrap_or(Cow::Borrowed(path))
}

#[cfg(test)]
mod tests {
    use muster_protocol::http::{Server, ServerEvent};

    use super::*;

    fn entrance(path: &str, topic: Option<&str>) -> Entrance {
        Entrance {
            path: path.to_owned(),
            proof: None,
            topic: topic.map(str::to_owned),
            batches: false,
        }
    }

    /// Reads a request, and what becomes of it: its topic, or the status of the refusal.
    fn topic(entrance: &Entrance, line: &str, headers: &str) -> Result<String, Option<u16>> {
        let text = format!("{line} HTTP/1.1\r\nHost: h\r\n{headers}\r\n");
        let mut input = text.as_bytes();
        let Some(ServerEvent::Request(request)) =
            Server::new(100).poll(&mut input, &mut Vec::new())
        else {
            panic!("{text} is a request");
        };
        let push = entrance
            .is_for_it(&request)
            .and_then(|()| entrance.admit(&request));
        push.map(|push| push.topic.into_owned())
            .map_err(Cause::status)
    }

    #[test]
    fn the_topic_stands_behind_the_path_or_in_a_header() {
        let by_path = entrance("/hook", None);
        for (target, wanted) in [
            ("/hook", Ok("")),
            ("/hook/", Ok("")),
            ("/hook/t/d-1?x=y", Ok("t/d-1")),
            ("/hook/a%2Fb%c3%a4", Ok("a/b\u{e4}")),
            ("/hook/a%2", Ok("a%2")),
            ("/hooks", Err(Some(404))),
            ("/", Err(Some(404))),
        ] {
            let found = topic(&by_path, &format!("POST {target}"), "");
            assert_eq!(found, wanted.map(str::to_owned), "{target}");
        }
        let by_header = entrance("", Some("x-topic"));
        assert_eq!(
            topic(&by_header, "PUT /any", "X-Topic: t/d-1\r\n"),
            Ok("t/d-1".to_owned())
        );
        assert_eq!(topic(&by_header, "PUT /any", ""), Ok(String::new()));
    }

    #[test]
    fn other_methods_and_compressed_bodies_are_refused() {
        let all = entrance("", None);
        assert_eq!(topic(&all, "GET /", ""), Err(Some(405)));
        assert_eq!(
            topic(&all, "POST /", "Content-Encoding: gzip\r\n"),
            Err(Some(415))
        );
        assert!(topic(&all, "POST /", "Content-Encoding: identity\r\n").is_ok());
    }
}
