//! The device's end: requests, and their answers.

use std::fmt::Write as _;

use super::{BEFORE_TOKEN, JSON, REQUEST_TIMEOUT, Resource};
use crate::command::CommandCopy;
use crate::json::Json;
use crate::request::{
    Answered, Answering, Asking, Fields, Method, ReplyPath, Request, Segments, Status,
};
use crate::thingsboard::{POLL, provisioning, requests, rpc};

/// Makes a request of a message.
pub(super) fn ask<'a>(asking: &Asking<'a>, text: &'a mut String) -> Request<'a> {
    text.clear();
    text.push_str(BEFORE_TOKEN);
    let resource = Resource::of(asking.path);
    let (mut method, mut payload) = (Method::Post, asking.payload);
    let mut content_type = Some(asking.content_type.unwrap_or(JSON));
    if resource != Some(Resource::Device) {
        text.extend([asking.login, "/"]);
    }
    let word = resource.map_or(Resource::Method.word(), Resource::word);
    text.push_str(word);
    let path = text.len();
    let waits = asking.path == POLL;
    if waits || resource == Some(Resource::Values) {
        (method, payload, content_type) = (Method::Get, &[][..], None);
    }
    if let Some(ttd_s) = asking.ttd_s {
        // Writing to a string cannot fail.
        let _ = write!(text, "timeout={ttd_s}000");
    } else if resource == Some(Resource::Values) {
        write_keys(asking.payload, text);
    }
    let (path, query) = text.split_at(path);
    Request {
        method,
        path: Segments::of(path),
        query,
        content_type,
        headers: &[],
        is_at_least_once: asking.is_at_least_once,
        payload,
    }
}

/// Appends the keys that a payload of MQTT names as parameters.
fn write_keys(payload: &[u8], out: &mut String) {
    let mut before = "";
    let mut json = Json::new(payload);
    // A payload without keys asks for all there are.
    let _ = json.members(|name, json| {
        if !matches!(name, b"clientKeys" | b"sharedKeys") || json.peek()? != b'"' {
            return json.skip();
        }
        let (name, keys) = (
            std::str::from_utf8(name),
            std::str::from_utf8(json.string()?),
        );
        out.extend([before, name.ok()?, "=", keys.ok()?]);
        before = "&";
        Some(())
    });
}

/// Makes the request that replies to a command, whose number is all of the path that came with it.
pub(super) fn reply<'a>(answering: &Answering<'a>, text: &'a mut String) -> Request<'a> {
    text.clear();
    text.extend([BEFORE_TOKEN, answering.login, "/", Resource::Method.word()]);
    let number = answering.to.segments().next().unwrap_or_default();
    text.extend(["/", number]);
    Request {
        method: Method::Post,
        path: Segments::of(text),
        query: "",
        content_type: Some(JSON),
        headers: &[],
        is_at_least_once: true,
        payload: answering.payload,
    }
}

/// Reads an answer. To one that waited for a command 408 says that none came.
pub(super) fn answered<'a>(
    status: Status,
    _: Fields<'_, 'a>,
    payload: &'a [u8],
    asked: Segments<'_>,
    reply: &mut ReplyPath,
) -> Answered<'a> {
    reply.clear();
    let has_waited = asked.eq(POLL.split('/'));
    if has_waited && status == REQUEST_TIMEOUT {
        return Answered::Accepted;
    }
    if !status.is_yes() {
        return Answered::Rejected(status);
    }
    if asked.eq(provisioning::REQUEST.split('/')) {
        return match provisioning::answer(payload) {
            Ok(answer) if answer.is_accepted => Answered::Accepted,
            Ok(_) | Err(_) => Answered::Rejected(Status(requests::REFUSED)),
        };
    }
    if !has_waited {
        return Answered::Accepted;
    }
    let (number, stamp) = rpc::called(payload).unwrap_or_default();
    if let Some(number) = number {
        // The digits of a number are short.
        let _ = reply.push(number);
    }
    Answered::Command(CommandCopy {
        stamp,
        ..CommandCopy::UNREADABLE
    })
}
