//! Commands on their topics, and where their replies go.

use std::fmt::Write as _;

use super::super::server::{request_id, unfit};
use super::{COMMAND_WORDS, REQUEST_WORDS, RESPONSE_WORDS, levels, scope};
use crate::command::{CommandCopy, CommandScratch, Handing, ReplyTopic, Replying, named};
use crate::scope::scoped;

/// Forms of a command to a link of the device itself: each word, and tenant and device named or not.
const OWN_FORMS: usize = 8;
/// Forms of a command to the gateway of the device, which is always named.
const GATEWAY_FORMS: usize = 4;

/// Reads a command that came to a device; none if the topic is none of one.
pub(super) fn read<'a>(topic: &'a str, payload: &[u8]) -> Option<CommandCopy<'a>> {
    let [word, tenant, device, request, id, _name] = levels(topic)?;
    let place = REQUEST_WORDS.iter().position(|known| *known == request)?;
    COMMAND_WORDS.contains(&word).then_some(())?;
    let reply = ReplyTopic([word, tenant, device, RESPONSE_WORDS[place], id]);
    Some(CommandCopy {
        stamp: named(payload),
        device: (!device.is_empty()).then_some(device),
        reply: (!id.is_empty()).then_some(reply),
        ..CommandCopy::UNREADABLE
    })
}

/// Renders a reply, which names its command: its topic is that of the command with a status.
pub(in super::super) fn write_reply(to: &Replying<'_>, out: &mut CommandScratch) {
    out.head(&[]);
    if let Some(path) = to.path {
        for level in path.segments() {
            out.topic.extend([level, "/"]);
        }
        // Writing to a string cannot fail.
        let _ = write!(out.topic, "{}", to.status);
    }
    out.payload.clear();
    out.write_named(to.stamp);
}

/// Renders a command as it is routed, in one of the forms in which its device, or the gateway of that, may
/// have subscribed to it; false if there is no such form.
pub(in super::super) fn hand(
    form: usize,
    to: &Handing<'_>,
    payload: &[u8],
    out: &mut CommandScratch,
) -> bool {
    let command = &to.command;
    let gateway = to.gateway.filter(|_| form >= OWN_FORMS);
    let has_form = form < OWN_FORMS || (gateway.is_some() && form < OWN_FORMS + GATEWAY_FORMS);
    if !has_form || unfit(command).is_some() {
        return false;
    }
    let (place, names_tenant) = (form & 1, form & 2 != 0);
    let names_device = gateway.is_some() || form & 4 != 0;
    let id = command.correlation_id.map(request_id).unwrap_or_default();
    let visible = [
        COMMAND_WORDS[place],
        if names_tenant { command.tenant } else { "" },
        if names_device { command.device } else { "" },
        REQUEST_WORDS[place],
        &id,
        command.name,
    ];
    let visible = visible.join("/");
    let device = gateway.unwrap_or(command.device);
    out.topic.clear();
    scoped(&scope(command.tenant, device), &visible, &mut out.topic);
    out.payload.clear();
    out.payload.extend_from_slice(payload);
    true
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::northbound::{self, tests::issued};
    use super::super::{downlink, route, surfaced_reply};
    use super::*;
    use crate::command::Returned;
    use crate::command::tests::stamp;
    use crate::downlink::Downlink;
    use crate::request::ReplyPath;
    use crate::scope::unscoped;

    const DEVICE: &str = "ns:d-17";
    const OWN: &str = "ns:d-17@tload_tests";
    const GATEWAY: &str = "gw1@tload_tests";

    /// The topics on which a link of that filter gets the command, each as it is routed.
    fn topics(link: &str, filter: &str, is_two_way: bool) -> Vec<String> {
        let said = issued(is_two_way);
        let command = northbound::command(&said.topic).expect("it is a command");
        let to = Handing {
            command,
            gateway: Some("gw1"),
            request: 1,
        };
        let (mut routed, mut out) = (String::new(), CommandScratch::default());
        assert!(route(link, filter, &mut routed), "{filter}");
        // `#` is the last level, and `+` stands for the device.
        let prefix = routed.strip_suffix('#').expect("it is a wildcard");
        let prefix = prefix.replace('+', DEVICE);
        let forms = (0..)
            .take_while(|form| hand(*form, &to, &said.payload, &mut CommandScratch::default()));
        let all = forms.filter_map(|form| {
            hand(form, &to, &said.payload, &mut out);
            out.topic.starts_with(&prefix).then(|| out.topic.clone())
        });
        all.collect()
    }

    /// Steps 4 to 7 of the reference's worked example, over MQTT: in each form that a link may subscribe to.
    #[test]
    fn a_command_comes_in_the_form_that_was_subscribed_to_and_its_reply_goes_back() {
        for (link, filter, expected, reply_to) in [
            (OWN, "c///q/#", "c///q/", "c///s/"),
            (OWN, "command///req/#", "command///req/", "command///res/"),
            (
                OWN,
                "c/tload_tests/ns:d-17/q/#",
                "c/tload_tests/ns:d-17/q/",
                "c/tload_tests/ns:d-17/s/",
            ),
            (
                "",
                "c/tload_tests/ns:d-17/q/#",
                "c/tload_tests/ns:d-17/q/",
                "c/tload_tests/ns:d-17/s/",
            ),
            (GATEWAY, "c//+/q/#", "c//ns:d-17/q/", "c//ns:d-17/s/"),
            (
                GATEWAY,
                "command//ns:d-17/req/#",
                "command//ns:d-17/req/",
                "command//ns:d-17/res/",
            ),
        ] {
            let topics = topics(link, filter, true);
            let [topic] = &topics[..] else {
                panic!("{filter}: {topics:?}");
            };
            let said = issued(true);
            let visible = unscoped(topic);
            assert!(visible.starts_with(expected), "{visible}");
            let Downlink::Command(copy) = downlink(visible, &said.payload) else {
                panic!("{visible} is no command");
            };
            assert_eq!(copy.stamp, Some(stamp()));
            let mut path = ReplyPath::default();
            assert!(copy.reply.expect("a reply is wanted").keep(&mut path));
            let to = Replying {
                stamp: &stamp(),
                request: 0,
                device: DEVICE,
                is_gateways: link == GATEWAY,
                path: Some(&path),
                status: 503,
            };
            let (mut reply, mut surface) = (CommandScratch::default(), String::new());
            write_reply(&to, &mut reply);
            assert!(reply.topic.starts_with(reply_to), "{}", reply.topic);
            let payload = surfaced_reply(link, &reply.topic, &reply.payload, &mut surface);
            let back = northbound::returned(&surface, payload.expect("it is a reply"));
            let Some(Returned::Reply(back)) = back else {
                panic!("{surface}: {back:?}");
            };
            assert_eq!((back.stamp, back.status), (Some(stamp()), Some(503)));
        }
    }

    #[test]
    fn a_command_without_a_reply_has_no_request_id() {
        let topics = topics(OWN, "c///q/#", false);
        assert_eq!(topics, ["$device/ns:d-17@tload_tests/c///q//set"]);
        let said = issued(false);
        let Downlink::Command(copy) = downlink(unscoped(&topics[0]), &said.payload) else {
            panic!("it is a command");
        };
        assert_eq!((copy.stamp, copy.reply), (Some(stamp()), None));
    }

    #[test]
    fn no_two_forms_are_one() {
        let said = issued(true);
        let to = Handing {
            command: northbound::command(&said.topic).expect("it is a command"),
            gateway: Some("gw1"),
            request: 1,
        };
        let mut out = CommandScratch::default();
        let mut forms = BTreeSet::new();
        while hand(forms.len(), &to, &said.payload, &mut out) {
            assert!(forms.insert(out.topic.clone()), "{}", out.topic);
        }
        assert_eq!(forms.len(), OWN_FORMS + GATEWAY_FORMS);
        let alone = Handing {
            gateway: None,
            ..to
        };
        assert!(!hand(OWN_FORMS, &alone, &said.payload, &mut out));
    }

    #[test]
    fn other_topics_are_no_commands() {
        for topic in [
            "c///s/1/200",
            "telemetry",
            "c///q/1",
            "e///t/1/503",
            "x///q/1/set",
        ] {
            assert_eq!(read(topic, b""), None, "{topic}");
        }
    }
}
