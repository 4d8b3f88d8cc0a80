//! Server-side RPC: commands of the platform to a device, and the device's replies.
//!
//! A command comes on `v1/devices/me/rpc/request/<n>` as `{"method": ..., "params": ...}`, and its reply
//! goes to `v1/devices/me/rpc/response/<n>`; `<n>` is the platform's number. A gateway's link has both on
//! `v1/gateway/rpc`, with the device and the number in the body. `params` and the reply are the
//! application's own: there the id of a command of Muster travels, both ways.

use std::fmt::Write as _;

use muster_model::Stamp;

use super::numbered::{Kind, Numbered};
use crate::command::{
    CommandCopy, CommandScratch, Handing, OutboundCommand, Replying, Returned, named,
};
use crate::downlink::Downlink;
use crate::json::Json;
use crate::rest_commands::RestCommands;
use crate::scope::scoped;

/// Topic on which a gateway's link takes the commands to its devices, and replies for them.
pub(super) const GATEWAY: &str = "v1/gateway/rpc";

const ROOT: &str = "thingsboard-rpc/";
const REQUEST: &str = "/request";
const RESPONSE: &str = "/response";
const REPLY: &str = "v1/devices/me/rpc/response/";
/// The method that the published tool calls where none is named.
const METHOD: &str = "setGpio";

/// The forms in which a device may have asked for its commands.
const FORMS: [&str; 3] = ["v1/devices/me/rpc/request/", "v2/r/req/", "v2/r/req/j/"];

/// A call of a method.
struct Call<'a> {
    request: Option<u32>,
    method: &'a [u8],
    params: Option<&'a [u8]>,
}

/// Renders what the business application says; the platform gives it a number.
pub(super) fn write_command(to: &OutboundCommand<'_>, out: &mut CommandScratch) {
    out.head(&[ROOT, to.device, REQUEST]);
    out.payload.clear();
    for part in ["{\"method\":\"", METHOD, "\",\"params\":"] {
        out.payload.extend_from_slice(part.as_bytes());
    }
    out.write_named(to.stamp);
    out.payload.push(b'}');
}

/// Reads a message to the business application; none if it is no reply.
pub(super) fn returned(topic: &str, payload: &[u8]) -> Option<Returned> {
    below_root(topic, RESPONSE)?;
    Some(reply(payload))
}

fn reply(payload: &[u8]) -> Returned {
    Returned::Reply(CommandCopy {
        stamp: named(payload),
        ..CommandCopy::UNREADABLE
    })
}

/// Commands by the calls of the REST API.
pub(super) const CALLS: RestCommands = RestCommands {
    write: write_request,
    returned: reply,
};

/// Renders the body of a call. The platform waits `waits_ms` milliseconds for the device.
fn write_request(to: &OutboundCommand<'_>, waits_ms: u64, out: &mut CommandScratch) {
    write_command(to, out);
    out.payload.pop();
    let end = format!(",\"timeout\":{waits_ms}}}");
    out.payload.extend_from_slice(end.as_bytes());
}

/// Reads a command that came to a device's own link.
pub(super) fn command(request: u32, payload: &[u8]) -> Downlink<'_> {
    let call = call(payload);
    Downlink::Command(CommandCopy {
        stamp: call.and_then(|call| named(call.params?)),
        request,
        ..CommandCopy::UNREADABLE
    })
}

/// Reads a command that came to a gateway's link.
pub(super) fn command_of_gateway(payload: &[u8]) -> Downlink<'_> {
    Downlink::Command(read_of_gateway(payload).unwrap_or(CommandCopy::UNREADABLE))
}

fn read_of_gateway(payload: &[u8]) -> Option<CommandCopy<'_>> {
    let mut json = Json::new(payload);
    let (mut device, mut data) = (None, None);
    json.members(|key, json| match key {
        b"device" => json.string().map(|name| device = Some(name)),
        b"data" => json.value().map(|value| data = Some(value)),
        _ => json.skip(),
    })?;
    let call = call(data?)?;
    Some(CommandCopy {
        stamp: call.params.and_then(named),
        request: call.request?,
        device: Some(std::str::from_utf8(device?).ok()?),
        ..CommandCopy::UNREADABLE
    })
}

fn call(payload: &[u8]) -> Option<Call<'_>> {
    let mut json = Json::new(payload);
    let (mut request, mut params, mut method) = (None, None, None);
    json.members(|key, json| match key {
        b"id" => json.value().map(|value| request = number(value)),
        b"method" => json.string().map(|name| method = Some(name)),
        b"params" => json.value().map(|value| params = Some(value)),
        _ => json.skip(),
    })?;
    let method = method.filter(|_| json.is_at_end())?;
    Some(Call {
        request,
        method,
        params,
    })
}

/// Reads a command that came to a device that waited: the platform's number of it, as it stands, and its id.
pub(super) fn called(payload: &[u8]) -> Option<(Option<&str>, Option<Stamp>)> {
    let call = call(payload)?;
    let number = call.request.and(number_text(payload));
    Some((number, call.params.and_then(named)))
}

/// The member `id` of a call, as it stands.
fn number_text(payload: &[u8]) -> Option<&str> {
    let mut json = Json::new(payload);
    let mut text = None;
    json.members(|key, json| match key {
        b"id" => json.value().map(|value| text = Some(value)),
        _ => json.skip(),
    })?;
    std::str::from_utf8(text?).ok()
}

fn number(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Renders a device's reply.
pub(super) fn write_reply(to: &Replying<'_>, out: &mut CommandScratch) {
    out.payload.clear();
    if !to.is_gateways {
        out.head(&[REPLY]);
        // Writing to a string cannot fail.
        let _ = write!(out.topic, "{}", to.request);
        return out.write_named(to.stamp);
    }
    // The number is written where text is, and taken from there.
    out.head(&[]);
    let _ = write!(out.topic, "{}", to.request);
    for part in ["{\"device\":\"", to.device, "\",\"id\":", &out.topic] {
        out.payload.extend_from_slice(part.as_bytes());
    }
    out.head(&[GATEWAY]);
    out.payload.extend_from_slice(b",\"data\":");
    out.write_named(to.stamp);
    out.payload.push(b'}');
}

/// Returns the device that the business application commands.
pub(super) fn commanded(topic: &str) -> Option<&str> {
    below_root(topic, REQUEST)
}

fn below_root<'a>(topic: &'a str, word: &str) -> Option<&'a str> {
    let device = topic.strip_prefix(ROOT)?.strip_suffix(word)?;
    (!device.is_empty()).then_some(device)
}

/// Renders a command as the platform hands it on, in one of the forms that its device may have
/// asked for; false if there is no such form.
pub(super) fn hand(
    form: usize,
    to: &Handing<'_>,
    payload: &[u8],
    out: &mut CommandScratch,
) -> bool {
    out.payload.clear();
    out.topic.clear();
    if let Some(gateway) = to.gateway {
        scoped(&[gateway], GATEWAY, &mut out.topic);
        return form == 0 && write_for_gateway(to, payload, &mut out.payload).is_some();
    }
    let Some(before) = FORMS.get(form) else {
        return false;
    };
    scoped(&[to.command.device], before, &mut out.topic);
    let _ = write!(out.topic, "{}", to.request);
    out.payload.extend_from_slice(payload);
    true
}

fn write_for_gateway(to: &Handing<'_>, payload: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let call = call(payload)?;
    let head = format!("{{\"device\":\"{}\",\"data\":", to.command.device);
    out.extend_from_slice(head.as_bytes());
    write_call(&call, to.request, out);
    out.push(b'}');
    Some(())
}

/// Appends a call with the platform's number of it; none if the payload is no call.
pub(super) fn write_numbered(number: u32, payload: &[u8], out: &mut Vec<u8>) -> Option<()> {
    write_call(&call(payload)?, number, out);
    Some(())
}

fn write_call(call: &Call<'_>, number: u32, out: &mut Vec<u8>) {
    let head = format!("{{\"id\":{number},\"method\":\"");
    for part in [
        head.as_bytes(),
        call.method,
        b"\",\"params\":",
        call.params.unwrap_or(b"null"),
        b"}",
    ] {
        out.extend_from_slice(part);
    }
}

/// Returns true if a payload is a call that may be forwarded.
pub(super) fn is_call(payload: &[u8]) -> bool {
    call(payload).is_some()
}

/// Converts a reply of a device or a gateway for the business application: the topic goes into
/// `out`. None if it is no reply.
pub(super) fn surfaced<'a>(
    link: &str,
    topic: &str,
    payload: &'a [u8],
    out: &mut String,
) -> Option<&'a [u8]> {
    let (device, said) = if topic == GATEWAY {
        said_by_gateway(payload)?
    } else {
        let replied = Numbered::of(topic).filter(|it| it.kind == Kind::RpcResponse);
        (replied.is_some().then_some(link)?, payload)
    };
    out.clear();
    write_surface(device, out);
    Some(said)
}

/// Appends the topic on which a device's replies surface.
pub(super) fn write_surface(device: &str, out: &mut String) {
    out.extend([ROOT, device, RESPONSE]);
}

/// The number of the command that a device or a gateway replies to; none if it is no reply.
pub(super) fn reply_number(topic: &str, payload: &[u8]) -> Option<u32> {
    if topic != GATEWAY {
        let replied = Numbered::of(topic).filter(|it| it.kind == Kind::RpcResponse);
        return replied.map(|replied| replied.number);
    }
    let (mut json, mut request) = (Json::new(payload), None);
    json.members(|key, json| match key {
        b"id" => json.value().map(|value| request = number(value)),
        _ => json.skip(),
    })?;
    request
}

/// The device for which a gateway replies, and what it says.
fn said_by_gateway(payload: &[u8]) -> Option<(&str, &[u8])> {
    let mut json = Json::new(payload);
    let (mut device, mut data, mut request) = (None, None, None);
    json.members(|key, json| match key {
        b"device" => json.string().map(|name| device = Some(name)),
        b"id" => json.value().map(|value| request = number(value)),
        b"data" => json.value().map(|value| data = Some(value)),
        _ => json.skip(),
    })?;
    request?;
    let device = std::str::from_utf8(device?).ok()?;
    let is_whole = json.is_at_end() && super::uplinks::is_level(device.as_bytes());
    is_whole.then_some((device, data?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Commanded;
    use crate::command::tests::stamp;
    use crate::scope::unscoped;

    /// Returns a command of the business application.
    fn said() -> CommandScratch {
        let mut said = CommandScratch::default();
        let to = OutboundCommand {
            stamp: &stamp(),
            device: "DW1",
            tenant: "",
            is_two_way: true,
        };
        write_command(&to, &mut said);
        said
    }

    /// The same as the platform hands it on, in its first form.
    fn handed(gateway: Option<&str>) -> CommandScratch {
        let (said, mut handed) = (said(), CommandScratch::default());
        let to = Handing {
            command: Commanded::to(commanded(&said.topic).expect("it is a command")),
            gateway,
            request: 17,
        };
        assert!(is_call(&said.payload) && hand(0, &to, &said.payload, &mut handed));
        handed
    }

    fn read<'a>(topic: &str, payload: &'a [u8]) -> CommandCopy<'a> {
        match super::super::downlink(topic, payload) {
            Downlink::Command(copy) => copy,
            other @ (Downlink::Acknowledgements(_) | Downlink::Other) => panic!("{other:?}"),
        }
    }

    fn replied(copy: &CommandCopy<'_>, link: &str) -> (CommandScratch, CommandCopy<'static>) {
        let mut scratch = CommandScratch::default();
        let to = Replying {
            stamp: &copy.stamp.expect("it was read"),
            request: copy.request,
            device: copy.device.unwrap_or(link),
            is_gateways: copy.device.is_some(),
            path: None,
            status: 200,
        };
        write_reply(&to, &mut scratch);
        let mut topic = String::new();
        let surfaced = surfaced(link, &scratch.topic, &scratch.payload, &mut topic);
        assert_eq!(topic, "thingsboard-rpc/DW1/response");
        let read = returned(&topic, surfaced.expect("it is a reply"));
        let Some(Returned::Reply(read)) = read else {
            panic!("{read:?}");
        };
        (scratch, read)
    }

    #[test]
    fn a_command_goes_to_its_device_and_the_reply_comes_back_under_its_number() {
        let handed = handed(None);
        assert_eq!(unscoped(&handed.topic), "v1/devices/me/rpc/request/17");
        let copy = read(unscoped(&handed.topic), &handed.payload);
        assert_eq!(
            (copy.stamp, copy.request, copy.device),
            (Some(stamp()), 17, None)
        );
        let (reply, read) = replied(&copy, "DW1");
        assert_eq!(reply.topic, "v1/devices/me/rpc/response/17");
        assert_eq!(read.stamp, Some(stamp()));
    }

    #[test]
    fn a_gateways_link_is_commanded_and_replies_in_the_body() {
        let handed = handed(Some("GW1"));
        assert_eq!(unscoped(&handed.topic), GATEWAY);
        let body: serde_json::Value = serde_json::from_slice(&handed.payload).expect("it is JSON");
        assert_eq!(
            (&body["device"], &body["data"]["id"]),
            (&"DW1".into(), &17.into())
        );
        assert_eq!(body["data"]["method"], "setGpio");
        let copy = read(GATEWAY, &handed.payload);
        assert_eq!(
            (copy.stamp, copy.request, copy.device),
            (Some(stamp()), 17, Some("DW1"))
        );
        let (reply, read) = replied(&copy, "GW1");
        assert_eq!(reply.topic, GATEWAY);
        let body: serde_json::Value = serde_json::from_slice(&reply.payload).expect("it is JSON");
        assert_eq!((&body["device"], &body["id"]), (&"DW1".into(), &17.into()));
        assert_eq!(read.stamp, Some(stamp()));
    }

    #[test]
    fn a_device_may_have_asked_in_another_form() {
        let (said, mut out) = (said(), CommandScratch::default());
        let to = Handing {
            command: Commanded::to("DW1"),
            gateway: None,
            request: 5,
        };
        for topic in ["v1/devices/me/rpc/request/5", "v2/r/req/5", "v2/r/req/j/5"] {
            let form = FORMS
                .iter()
                .position(|before| topic == format!("{before}5"));
            assert!(hand(form.expect("there is"), &to, &said.payload, &mut out));
            assert_eq!(unscoped(&out.topic), topic);
            assert_eq!(read(topic, &out.payload).request, 5);
        }
        assert!(!hand(FORMS.len(), &to, &said.payload, &mut out));
    }

    #[test]
    fn what_is_no_call_or_damaged_names_no_command() {
        for payload in ["", "{}", "[]", r#"{"method":1}"#, r#"{"params":{}}"#] {
            assert!(!is_call(payload.as_bytes()), "{payload}");
            assert_eq!(
                read("v1/devices/me/rpc/request/1", payload.as_bytes()).stamp,
                None
            );
            assert_eq!(read(GATEWAY, payload.as_bytes()), CommandCopy::UNREADABLE);
        }
        let other = br#"{"method":"x","params":{"pin":7}}"#;
        assert!(is_call(other) && read("v2/r/req/1", other).stamp.is_none());
        for topic in [
            "thingsboard-rpc//request",
            "thingsboard-rpc/d",
            "v1/devices/me/rpc/request/1",
        ] {
            assert_eq!(commanded(topic), None, "{topic}");
        }
        let surfaces = |topic, payload: &str| {
            surfaced("l", topic, payload.as_bytes(), &mut String::new()).is_some()
        };
        assert!(surfaces("v1/devices/me/rpc/response/1", "any text"));
        assert!(surfaces(GATEWAY, r#"{"device":"d","id":1,"data":"any"}"#));
        for payload in [
            "{}",
            r#"{"device":"d","data":1}"#,
            r#"{"device":"a+b","id":1,"data":1}"#,
        ] {
            assert!(!surfaces(GATEWAY, payload), "{payload}");
        }
        assert!(!surfaces("v1/devices/me/rpc/response/x", "{}"));
    }
}
