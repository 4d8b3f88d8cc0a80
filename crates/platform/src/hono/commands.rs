//! Commands as a device has them: how they come, and how it replies.

use std::fmt::Write as _;

use super::requests::{COMMAND_STATUS, method};
use crate::command::{CommandCopy, named};
use crate::request::{
    Answered, Answering, Field, Fields, Method, ReplyPath, Request, Segments, Status,
};

/// Names the command in an answer.
pub(super) const COMMAND: &str = "hono-command=";
/// The words of a path where replies go, long and short; that of commands without a reply is another.
pub(super) const REPLY_WORDS: [&str; 2] = ["command_response", "cr"];
/// The words where none is wanted.
pub(super) const ONE_WAY_WORDS: [&str; 2] = ["command", "c"];
/// The media type of commands and of replies.
pub(super) const JSON: &str = "application/json";

/// Reads an answer. Where a command comes with it that wants a reply, the path of the reply goes into
/// `reply`, which is emptied first.
pub(super) fn answered<'a>(
    status: Status,
    fields: Fields<'_, 'a>,
    payload: &'a [u8],
    _: Segments<'_>,
    reply: &mut ReplyPath,
) -> Answered<'a> {
    reply.clear();
    let (mut is_command, mut is_kept) = (false, true);
    let (mut word, mut device) = (None, None);
    for field in fields {
        match field {
            Field::Parameter(text) => is_command |= text.starts_with(COMMAND),
            Field::PathSegment(segment) => {
                // Word, tenant, device, and the id where a reply is wanted.
                match reply.len() {
                    0 => word = Some(segment),
                    2 => device = Some(segment),
                    _ => {}
                }
                is_kept &= reply.push(segment);
            }
            Field::ContentType(_) | Field::MaxAge(_) | Field::Header(..) => {}
        }
    }
    if !status.is_yes() {
        reply.clear();
        return Answered::Rejected(status);
    }
    if !is_command {
        reply.clear();
        return Answered::Accepted;
    }
    if !is_kept || !word.is_some_and(|word| REPLY_WORDS.contains(&word)) {
        reply.clear();
    }
    Answered::Command(CommandCopy {
        stamp: named(payload),
        device,
        ..CommandCopy::UNREADABLE
    })
}

/// Makes the request that replies to a command, on the path that came with it.
pub(super) fn ask_reply<'a>(answering: &Answering<'a>, query: &'a mut String) -> Request<'a> {
    ask_reply_by(method(answering.to.len() <= 2), answering, query)
}

/// The same by a method that says whether the path names a device.
pub(super) fn ask_reply_by<'a>(
    method: Method,
    answering: &Answering<'a>,
    query: &'a mut String,
) -> Request<'a> {
    query.clear();
    // Writing to a string cannot fail.
    let _ = write!(query, "{COMMAND_STATUS}={}", answering.status);
    Request {
        method,
        path: answering.to.segments(),
        query,
        content_type: Some(JSON),
        headers: &[],
        is_at_least_once: true,
        payload: answering.payload,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::command::CommandScratch;
    use crate::command::tests::stamp;
    use crate::request::Method;

    const CHANGED: Status = Status(204);
    /// The path of a request, which an answer of CoAP does not need.
    const ASKED: Segments<'static> = Segments::of("");

    /// An empty object as a reply.
    pub(in super::super) fn answering(to: &ReplyPath) -> Answering<'_> {
        Answering {
            to,
            status: 200,
            payload: b"{}",
            login: "",
        }
    }

    /// The body of a command of Muster's.
    fn body() -> Vec<u8> {
        let mut scratch = CommandScratch::default();
        scratch.write_named(&stamp());
        scratch.payload
    }

    fn fields<'a>(path: &'a [&'a str]) -> impl Iterator<Item = Field<'a>> {
        let segments = path.iter().map(|segment| Field::PathSegment(segment));
        [Field::ContentType(JSON)]
            .into_iter()
            .chain(segments)
            .chain([Field::Parameter("hono-command=set")])
    }

    /// Steps 5 and 6 of the reference's worked example.
    #[test]
    fn a_reply_goes_where_the_command_said_word_for_word() {
        for (path, method) in [
            (&["cr", "2047f3a"][..], Method::Post),
            (&["command_response", "", "d-2", "2047f3a"], Method::Put),
            (&["cr", "t1", "ns:d-2", "0/\u{e4} &"], Method::Put),
        ] {
            let (body, mut reply) = (body(), ReplyPath::default());
            let Answered::Command(copy) =
                answered(CHANGED, &mut fields(path), &body, ASKED, &mut reply)
            else {
                panic!("a command came on {path:?}");
            };
            assert_eq!(copy.stamp, Some(stamp()));
            assert_eq!(copy.device, path.get(2).copied());
            let mut query = String::new();
            let answering = answering(&reply);
            let request = ask_reply(&answering, &mut query);
            assert_eq!(request.method, method, "{path:?}");
            assert!(request.path.eq(path.iter().copied()), "{path:?}");
            assert!(request.parameters().eq(["hono-cmd-status=200"]));
            assert!(request.is_at_least_once);
        }
    }

    #[test]
    fn a_command_without_a_reply_has_no_path_for_one() {
        for path in [&["c"][..], &["command", "", "d-2"]] {
            let (body, mut reply) = (body(), ReplyPath::default());
            reply.push("left over");
            let came = answered(CHANGED, &mut fields(path), &body, ASKED, &mut reply);
            assert!(matches!(came, Answered::Command(_)), "{path:?}");
            assert!(reply.is_empty(), "{path:?}");
        }
    }

    /// The user guide speaks of 2.05 in places: only the parameter tells.
    #[test]
    fn the_parameter_tells_a_command_and_not_the_code() {
        let mut reply = ReplyPath::default();
        for status in [CHANGED, Status(205)] {
            let mut none = [Field::PathSegment("cr"), Field::MaxAge(2)].into_iter();
            let came = answered(status, &mut none, b"", ASKED, &mut reply);
            assert_eq!(came, Answered::Accepted);
            let command = answered(status, &mut fields(&["c"]), b"", ASKED, &mut reply);
            assert_eq!(command, Answered::Command(CommandCopy::UNREADABLE));
        }
        for status in [Status(404), Status(503)] {
            let came = answered(status, &mut fields(&["cr", "1"]), b"", ASKED, &mut reply);
            assert_eq!(came, Answered::Rejected(status));
            assert!(reply.is_empty());
        }
    }
}
