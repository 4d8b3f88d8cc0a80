//! The server end: what a request means, and how a command is handed over with its answer.

use super::commands::{COMMAND, JSON, ONE_WAY_WORDS, REPLY_WORDS};
use super::northbound::write_reply_topic;
use super::requests::{COMMAND_STATUS, EMPTY, Endpoint, TTD};
use crate::command::Commanded;
use crate::incoming::{Asker, HandedCommand, Incoming, Manner, Peer, Refusal, Upload, Wanted};
use crate::request::{Method, Status};

/// The media type of a message without a body, which only asks for a command.
pub(super) const EMPTY_NOTIFICATION: &str = "application/vnd.eclipse-hono-empty-notification";
/// Seconds for which a device may wait for a command; Hono's own default for a tenant.
const TTD_MAX_S: u32 = 60;

pub(super) const BAD_REQUEST: Status = Status(400);
pub(super) const UNAUTHORIZED: Status = Status(401);
pub(super) const FORBIDDEN: Status = Status(403);
pub(super) const NOT_FOUND: Status = Status(404);
pub(super) const METHOD_NOT_ALLOWED: Status = Status(405);

/// Takes over a command to a device that asked in that manner; the error says why it cannot be handed over.
pub(super) fn hand(
    manner: Manner,
    command: &Commanded<'_>,
    out: &mut HandedCommand,
) -> Result<(), &'static str> {
    out.clear();
    out.content_type = JSON;
    out.parameter.extend([COMMAND, command.name]);
    let words = match command.correlation_id {
        Some(_) => REPLY_WORDS,
        None => ONE_WAY_WORDS,
    };
    let mut fits = out.path.push(words[usize::from(manner.is_short)]);
    let whose = match (manner.asker, command.correlation_id) {
        (Asker::Itself, _) | (Asker::Nobody, None) => None,
        (Asker::Gateway, _) => Some(""),
        (Asker::Nobody, Some(_)) => Some(command.tenant),
    };
    if let Some(tenant) = whose {
        fits &= out.path.push(tenant) && out.path.push(command.device);
    }
    if let Some(id) = command.correlation_id {
        fits &= out.path.push(&request_id(id));
    }
    match fits && out.parameter.len() <= PARAMETER_MAX {
        true => Ok(()),
        false => Err(NOT_TO_BE_HANDED),
    }
}

/// The reason why a command can be handed to no device.
pub(super) fn unfit(command: &Commanded<'_>) -> Option<&'static str> {
    let id = command.correlation_id.unwrap_or_default();
    (id.len() > CORRELATION_MAX)
        .then_some("the correlation id is longer than 255 bytes: shorten it")
}

/// The longest correlation id that Hono takes, in bytes: its length is written in two hexadecimal digits.
const CORRELATION_MAX: usize = 255;
/// The reason why a command is not handed over whose names are longer than one option of an answer.
const NOT_TO_BE_HANDED: &str =
    "an answer carries a correlation id of 252 bytes and a name of 242: shorten them";
/// Bytes of a parameter in an answer (RFC 7252 section 5.10).
const PARAMETER_MAX: usize = 255;
/// The flag of a request id that came by Kafka, and no device's name with it.
const FLAG: char = '2';

/// The id of a command as its device sees it.
pub(super) fn request_id(correlation_id: &str) -> String {
    format!("{FLAG}{:02x}{correlation_id}", correlation_id.len())
}

/// The correlation id in a request id.
pub(super) fn correlation_id(request_id: &str) -> Option<&str> {
    let (flag, rest) = request_id.split_at_checked(1)?;
    (flag == "2").then_some(())?;
    let (length, rest) = rest.split_at_checked(2)?;
    let is_hex = length.bytes().all(|digit| digit.is_ascii_hexdigit());
    let length = usize::from_str_radix(length, 16).ok().filter(|_| is_hex)?;
    (rest.len() == length && length > 0).then_some(rest)
}

/// Reads a request, and puts the topic on which it surfaces into `out`. `peer` is none where the link has
/// no credentials.
pub(super) fn read<'a>(
    came: &Incoming<'a>,
    peer: Option<&Peer<'a>>,
    out: &mut String,
) -> Wanted<'a> {
    out.clear();
    let word = came.at(0).unwrap_or_default();
    let wanted = if REPLY_WORDS.contains(&word) {
        reply(came, peer, out).map(Wanted::Reply)
    } else if let Some(named) = Endpoint::named(word) {
        let upload = upload(came, peer, named).inspect(|upload| {
            out.extend([named.0.word(false), "/", upload.tenant, "/", upload.device]);
        });
        upload.map(Wanted::Upload)
    } else {
        Err(Refusal::new(NOT_FOUND, "there is no such resource"))
    };
    wanted.unwrap_or_else(Wanted::Refused)
}

fn upload<'a>(
    came: &Incoming<'a>,
    peer: Option<&Peer<'a>>,
    (endpoint, is_short): (Endpoint, bool),
) -> Result<Upload<'a>, Refusal> {
    let of = whose(came, peer)?;
    if endpoint == Endpoint::Event && !came.is_at_least_once {
        return Err(Refusal::new(BAD_REQUEST, "an event has to be confirmable"));
    }
    let (asker, gateway) = asker(of, peer);
    let ttd_s = came.parameter_value(TTD).and_then(|text| text.parse().ok());
    Ok(Upload {
        tenant: of.tenant,
        device: of.device,
        gateway,
        content_type: content_type(came)?,
        is_at_least_once: came.is_at_least_once,
        ttd_s: ttd_s.and_then(granted_ttd_s),
        manner: Manner { is_short, asker },
        surfaces: true,
        question: None,
        over: None,
    })
}

/// Returns who asks for a device, and the gateway if it is one.
pub(super) fn asker<'a>(of: Peer<'_>, peer: Option<&Peer<'a>>) -> (Asker, Option<&'a str>) {
    match peer {
        None => (Asker::Nobody, None),
        Some(peer) if *peer == of => (Asker::Itself, None),
        Some(peer) => (Asker::Gateway, Some(peer.device)),
    }
}

/// Returns for how many seconds a device waits that asks for that many; none if it does not wait.
pub(super) fn granted_ttd_s(ttd_s: u32) -> Option<u32> {
    (ttd_s > 0).then(|| ttd_s.min(TTD_MAX_S))
}

/// A body has to be of its type: none where the message says that it is empty, and only there.
fn content_type<'a>(came: &Incoming<'a>) -> Result<Option<&'a str>, Refusal> {
    match (
        came.parameter_value(EMPTY).is_some(),
        came.payload.is_empty(),
    ) {
        (true, true) => Ok(Some(EMPTY_NOTIFICATION)),
        (true, false) => Err(Refusal::new(
            BAD_REQUEST,
            "an empty notification has no body",
        )),
        (false, true) if came.content_type.is_none() => Err(Refusal::new(
            BAD_REQUEST,
            "neither a body nor a content type",
        )),
        (false, _) => Ok(came.content_type),
    }
}

fn reply<'a>(
    came: &Incoming<'a>,
    peer: Option<&Peer<'a>>,
    out: &mut String,
) -> Result<Peer<'a>, Refusal> {
    let of = whose(came, peer)?;
    if !came.is_at_least_once {
        return Err(Refusal::new(BAD_REQUEST, "a reply has to be confirmable"));
    }
    let last = matches!(came.segments(), 2 | 4).then(|| came.segments() - 1);
    let id = last.and_then(|last| correlation_id(came.at(last)?));
    let status = came
        .parameter_value(COMMAND_STATUS)
        .and_then(|text| text.parse().ok());
    let status = status.filter(|status| (200..600).contains(status));
    match (id, status) {
        (Some(id), Some(status)) => {
            write_reply_topic([of.tenant, of.device, id], status, out);
            Ok(of)
        }
        _ => Err(Refusal::new(
            BAD_REQUEST,
            "the request id or the status is missing or wrong",
        )),
    }
}

/// Returns the device of a message: POST is the peer's own, PUT names the device.
fn whose<'a>(came: &Incoming<'a>, peer: Option<&Peer<'a>>) -> Result<Peer<'a>, Refusal> {
    match came.method {
        Method::Post => peer
            .copied()
            .ok_or(Refusal::new(UNAUTHORIZED, "no credentials")),
        Method::Put => named([came.at(1), came.at(2)], peer),
        Method::Get | Method::Other => Err(Refusal::new(METHOD_NOT_ALLOWED, "POST and PUT alone")),
    }
}

/// Returns the tenant and the device of a path; an empty tenant is that of the credentials.
pub(super) fn named<'a>(
    [tenant, device]: [Option<&'a str>; 2],
    peer: Option<&Peer<'a>>,
) -> Result<Peer<'a>, Refusal> {
    let own = peer.map(|peer| peer.tenant);
    let (Some(tenant), Some(device)) = (tenant.or(own), device) else {
        return Err(Refusal::new(
            NOT_FOUND,
            "the path has to name tenant and device",
        ));
    };
    if own.is_some_and(|own| own != tenant) {
        return Err(Refusal::new(
            FORBIDDEN,
            "the tenant is not that of the credentials",
        ));
    }
    Ok(Peer { tenant, device })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::command::tests::stamp;
    use crate::command::{CommandScratch, OutboundCommand};
    use crate::hono::{commands, northbound, requests};
    use crate::request::{Answered, Asking, ReplyPath, Request, SEGMENT_MAX, Segments};

    const PEER: Peer<'static> = Peer {
        tenant: "t1",
        device: "dev1",
    };

    #[test]
    fn a_command_that_cannot_be_handed_over_is_told_the_lengths_that_can() {
        let lengths = [
            SEGMENT_MAX - request_id("").len(),
            PARAMETER_MAX - COMMAND.len(),
        ];
        for length in lengths {
            let told = NOT_TO_BE_HANDED;
            assert!(told.contains(&length.to_string()), "{length}: {told}");
        }
    }

    fn came<'a>(request: &Request<'a>) -> Incoming<'a> {
        let mut came = Incoming::new(request.method, request.is_at_least_once, request.payload);
        came.content_type = request.content_type;
        request.path.for_each(|segment| came.segment(segment));
        request
            .parameters()
            .for_each(|parameter| came.parameter(parameter));
        came
    }

    fn put(path: &'static str) -> Incoming<'static> {
        let mut came = Incoming::new(Method::Put, true, b"{\"a\":1}");
        came.content_type = Some("application/json");
        path.split('/').for_each(|segment| came.segment(segment));
        came
    }

    fn post(path: &'static str) -> Incoming<'static> {
        let mut came = put(path);
        came.method = Method::Post;
        came
    }

    fn status(came: &Incoming<'_>, peer: Option<&Peer<'_>>) -> Status {
        match read(came, peer, &mut String::new()) {
            Wanted::Refused(refusal) => refusal.status,
            Wanted::Upload(_) | Wanted::Reply(_) | Wanted::Observation(_) | Wanted::Ignored => {
                Status(204)
            }
        }
    }

    fn non(mut came: Incoming<'static>) -> Incoming<'static> {
        came.is_at_least_once = false;
        came
    }

    fn untyped(mut came: Incoming<'static>) -> Incoming<'static> {
        came.content_type = None;
        came
    }

    fn bare(came: Incoming<'static>) -> Incoming<'static> {
        let mut came = untyped(came);
        came.payload = b"";
        came
    }

    fn saying(mut came: Incoming<'static>, parameter: &'static str) -> Incoming<'static> {
        came.parameter(parameter);
        came
    }

    /// Asserts the codes that answer these requests.
    fn are_answered<const N: usize>(peer: Option<&Peer<'_>>, cases: [(Incoming<'static>, u16); N]) {
        for (came, expected) in cases {
            assert_eq!(status(&came, peer), Status(expected), "{came:?}");
        }
    }

    /// As the script `codes.sh` of the test set-up asks a real Hono, as far as no registry is needed.
    #[test]
    fn each_refusal_of_somebody_without_credentials_has_honos_code() {
        let mut get = put("telemetry/t1/dev1");
        get.method = Method::Other;
        let own = "telemetry/t1/dev1";
        are_answered(
            None,
            [
                (put(own), 204),
                (non(put("t/t1/dev1")), 204),
                (put("e/t1/dev1"), 204),
                (non(put("event/t1/dev1")), 400),
                (bare(put(own)), 400),
                (saying(put(own), "empty"), 400),
                (saying(bare(put(own)), "empty"), 204),
                (untyped(put(own)), 204),
                (saying(put(own), "hono-ttd=abc"), 204),
                (post("telemetry"), 401),
                (get, 405),
                (put("nosuch/t1/dev1"), 404),
                (put("telemetry//dev1"), 404),
            ],
        );
    }

    #[test]
    fn each_refusal_of_a_device_or_a_gateway_has_honos_code() {
        let done = |came| saying(came, "hono-cmd-status=200");
        are_answered(
            Some(&PEER),
            [
                (post("telemetry"), 204),
                (put("telemetry//dev2"), 204),
                (put("telemetry/t1/dev2"), 204),
                (put("telemetry/t2/dev2"), 403),
                (put("telemetry"), 404),
                (done(put("command_response//dev1/xyz")), 400),
                (put("command_response//dev1/203abc"), 400),
                (done(post("cr/203abc")), 204),
                (done(non(post("cr/203abc"))), 400),
                (done(post("cr/204abc")), 400),
                (saying(post("cr/203abc"), "hono-cmd-status=600"), 400),
            ],
        );
    }

    #[test]
    fn no_device_waits_longer_than_hono_lets_it() {
        for (said, ttd_s) in [
            ("10", Some(10)),
            ("0", None),
            ("-1", None),
            ("999", Some(60)),
        ] {
            let parameter = format!("hono-ttd={said}");
            let mut came = post("t");
            came.parameter(&parameter);
            let Wanted::Upload(upload) = read(&came, Some(&PEER), &mut String::new()) else {
                panic!("{said}");
            };
            assert_eq!(upload.ttd_s, ttd_s, "{said}");
        }
    }

    /// Steps 1 to 8 of the reference's worked example, and the same for a gateway and for a device without
    /// credentials, with both ends of this dialect.
    #[test]
    fn a_command_goes_to_its_device_and_its_reply_comes_back() {
        let gateway = Peer {
            device: "gw1",
            ..PEER
        };
        let cases = [
            ("t", Some(&PEER), vec!["cr"]),
            ("event", Some(&PEER), vec!["command_response"]),
            (
                "telemetry//dev1",
                Some(&gateway),
                vec!["command_response", "", "dev1"],
            ),
            ("e/t1/dev1", None, vec!["cr", "t1", "dev1"]),
        ];
        for (path, peer, before) in cases {
            for is_two_way in [true, false] {
                let (stamp, mut issued) = (stamp(), CommandScratch::default());
                let to = OutboundCommand {
                    stamp: &stamp,
                    device: "dev1",
                    tenant: "t1",
                    is_two_way,
                };
                northbound::write_command(&to, &mut issued);
                let command = northbound::command(&issued.topic).expect("it is a command");
                let mut handed = HandedCommand::default();
                assert_eq!(hand(manner(path, peer), &command, &mut handed), Ok(()));

                let mut reply = ReplyPath::default();
                let (changed, fields) = (Status(204), &mut handed.fields());
                let came_back = commands::answered(
                    changed,
                    fields,
                    &issued.payload,
                    Segments::of(path),
                    &mut reply,
                );
                let Answered::Command(copy) = came_back else {
                    panic!("{path}: {came_back:?}");
                };
                assert_eq!(copy.stamp, Some(stamp), "{path}");
                assert_eq!(reply.is_empty(), !is_two_way, "{path}");
                if is_two_way {
                    let segments: Vec<&str> = reply.segments().collect();
                    assert_eq!(segments[..segments.len() - 1], before, "{path}");
                    surfaces(&reply, peer, &command);
                }
            }
        }
    }

    #[test]
    fn a_gateway_that_asks_in_its_own_name_hears_whom_the_command_is_for() {
        for (addressed, before) in [("dev1", vec!["cr"]), ("dev2", vec!["cr", "", "dev2"])] {
            let (stamp, mut issued) = (stamp(), CommandScratch::default());
            let to = OutboundCommand {
                stamp: &stamp,
                device: addressed,
                tenant: "t1",
                is_two_way: true,
            };
            northbound::write_command(&to, &mut issued);
            let command = northbound::command(&issued.topic).expect("it is a command");
            let mut handed = HandedCommand::default();
            let manner = manner("t", Some(&PEER)).towards("dev1", addressed);
            assert_eq!(hand(manner, &command, &mut handed), Ok(()));
            let path: Vec<&str> = handed.path.segments().collect();
            assert_eq!(path[..path.len() - 1], before);
        }
    }

    /// Returns the form of a device's request on that path.
    fn manner(path: &'static str, peer: Option<&Peer<'static>>) -> Manner {
        let mut query = String::new();
        let asking = Asking {
            path,
            payload: b"{}",
            content_type: Some(JSON),
            is_at_least_once: true,
            ttd_s: Some(10),
            login: "",
        };
        let request = requests::ask(&asking, &mut query);
        let Wanted::Upload(upload) = read(&came(&request), peer, &mut String::new()) else {
            panic!("{path} is refused");
        };
        assert_eq!(
            (upload.tenant, upload.device, upload.ttd_s),
            ("t1", "dev1", Some(10))
        );
        upload.manner
    }

    /// The reply on that path comes northbound as one to that command.
    fn surfaces(reply: &ReplyPath, peer: Option<&Peer<'_>>, command: &Commanded<'_>) {
        let mut query = String::new();
        let answering = commands::tests::answering(reply);
        let request = commands::ask_reply(&answering, &mut query);
        let (mut topic, id) = (String::new(), command.correlation_id);
        let Wanted::Reply(replied) = read(&came(&request), peer, &mut topic) else {
            panic!("{reply:?} is refused");
        };
        assert_eq!(
            (replied.tenant, replied.device),
            (command.tenant, command.device)
        );
        let id = id.expect("a reply is wanted");
        assert_eq!(topic, format!("command_response/t1/dev1/{id}/200"));
    }

    #[test]
    fn a_correlation_id_is_taken_as_long_as_two_hexadecimal_digits_tell() {
        for (length, is_taken) in [(0, true), (255, true), (256, false)] {
            let id = "x".repeat(length);
            let command = Commanded {
                correlation_id: Some(&id),
                ..Commanded::to("d")
            };
            assert_eq!(unfit(&command).is_none(), is_taken, "{length}");
        }
    }

    #[test]
    fn an_id_that_no_option_can_carry_is_not_handed_over() {
        let id = "x".repeat(253);
        let command = Commanded {
            tenant: "t1",
            device: "dev1",
            correlation_id: Some(&id),
            name: "set",
        };
        let manner = manner("t", Some(&PEER));
        let mut handed = HandedCommand::default();
        let refused = hand(manner, &command, &mut handed);
        assert_eq!(refused, Err(NOT_TO_BE_HANDED));
        let shorter = Commanded {
            correlation_id: Some(&id[1..]),
            ..command
        };
        assert_eq!(hand(manner, &shorter, &mut handed), Ok(()));
    }

    #[test]
    fn the_id_that_a_device_sees_tells_its_length() {
        assert_eq!(request_id("7f3a"), "2047f3a");
        assert_eq!(correlation_id("2047f3a"), Some("7f3a"));
        for wrong in [
            "", "2", "204", "2047f3", "2047f3ab", "1047f3a", "2zz7f3a", "200", "2+47f3a",
        ] {
            assert_eq!(correlation_id(wrong), None, "{wrong}");
        }
    }

    proptest! {
        /// Law: any request is read without a panic, and an accepted one names its device.
        #[test]
        fn anything_is_heard(
            segments in prop::collection::vec("(t|cr|event|2..|[a-z/\u{e4}]{0,3})", 0..7),
            parameters in prop::collection::vec("(hono-ttd|empty|hono-cmd-status)?=?[0-9a-z]{0,4}", 0..12),
            is_put: bool, is_at_least_once: bool, is_known: bool,
        ) {
            let method = if is_put { Method::Put } else { Method::Post };
            let mut came = Incoming::new(method, is_at_least_once, b"1");
            segments.iter().for_each(|segment| came.segment(segment));
            parameters.iter().for_each(|parameter| came.parameter(parameter));
            let mut topic = String::new();
            match read(&came, is_known.then_some(&PEER), &mut topic) {
                Wanted::Upload(upload) => prop_assert!(!upload.device.is_empty()),
                Wanted::Reply(_) => {
                    prop_assert!(topic.starts_with("command_response/") && !topic.contains("//"));
                }
                Wanted::Ignored => prop_assert!(false, "everything is answered"),
                Wanted::Observation(_) => prop_assert!(false, "nothing is observed"),
                Wanted::Refused(refusal) => {
                    prop_assert!(!refusal.status.is_yes() && topic.is_empty());
                }
            }
        }
    }
}
