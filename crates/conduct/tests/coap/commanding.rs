//! A platform that has commands, as Hono has them over CoAP.

use std::collections::BTreeMap;

use muster_model::{DeviceId, MessageId, Micros, RunId, Stamp, StreamId};
use muster_platform::{CommandScratch, Dialect, OutboundCommand as To};
use muster_protocol::coap::{
    Code, Incoming, Opt, OptionNumber, Pending, Reply, Uint, content_format,
};

use crate::world::World;

/// The platform's answers to queries and replies.
#[derive(Clone, Copy)]
pub(crate) struct Commands {
    /// Delay of a query's answer in a message of its own; zero: in the acknowledgement.
    pub(crate) after: Micros,
    /// Its content.
    pub(crate) brings: Bringing,
    /// The answer to a reply.
    pub(crate) to_replies: Code,
    /// Datagrams with replies that are lost.
    pub(crate) loses: u32,
}

/// Content of the answer to a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bringing {
    /// No command: the device's time is over.
    Nothing,
    /// A command that wants a reply.
    TwoWay,
    /// One that wants none.
    OneWay,
    /// The first command, again and again.
    TheFirst,
    /// A command that was damaged on its way.
    Damaged,
    /// A command with a body of so many bytes, in blocks.
    Long(usize),
    /// A command that wants a reply, to whichever device of the link asked.
    ToAsker {
        /// Its device.
        device: u32,
        /// True if the path of the reply names it, as for a gateway.
        is_named: bool,
    },
}

/// A request to the platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) at: Micros,
    pub(crate) method: Code,
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<String>,
    pub(crate) payload: Vec<u8>,
    pub(crate) is_confirmable: bool,
}

/// The platform's state of commands.
#[derive(Debug, Default)]
pub(crate) struct Commanding {
    pub(crate) queries: Vec<Asked>,
    pub(crate) replies: Vec<Asked>,
    pub(crate) others: Vec<Asked>,
    pub(crate) issued: u32,
    /// To each device that asked.
    pub(crate) issued_to: BTreeMap<u32, u32>,
    pub(crate) lost: u32,
}

/// In replies and in nothing else.
const OF_REPLIES: &[u8] = b"hono-cmd-status";
/// The stream that takes commands: the second of the scenario.
const COMMANDS: StreamId = StreamId(1);

impl Asked {
    pub(crate) fn of(request: &Incoming<'_>, at: Micros) -> Self {
        let texts = |number| {
            let values = request.options.all(number);
            values
                .map(|value| String::from_utf8(value.to_vec()).unwrap())
                .collect()
        };
        Self {
            at,
            method: request.method,
            path: texts(OptionNumber::URI_PATH),
            query: texts(OptionNumber::URI_QUERY),
            payload: request.payload.to_vec(),
            is_confirmable: request.is_confirmable,
        }
    }

    /// The index of the device that the path names.
    pub(crate) fn device(&self) -> u32 {
        let name = self.path.get(2).and_then(|name| name.strip_prefix("f-"));
        name.and_then(|index| index.parse().ok()).unwrap_or(0)
    }

    fn is_query(&self) -> bool {
        self.query.iter().any(|text| text.starts_with("hono-ttd="))
    }
}

impl World {
    /// Returns true if a datagram is lost on its way to the platform.
    pub(crate) fn loses(&mut self, with: &Commands, datagram: &[u8]) -> bool {
        let mut parts = datagram.windows(OF_REPLIES.len());
        let is_lost = self.commanding.lost < with.loses && parts.any(|part| part == OF_REPLIES);
        self.commanding.lost += u32::from(is_lost);
        is_lost
    }

    /// A request came.
    pub(crate) fn asked(&mut self, with: &Commands, pending: Pending, asked: Asked) {
        if asked.is_query() {
            let mut brings = with.brings;
            if let Bringing::ToAsker { device, .. } = &mut brings {
                *device = asked.device();
            }
            self.commanding.queries.push(asked);
            return self.put_off(pending, with.after, brings);
        }
        let is_reply = asked.path[0].starts_with('c');
        let (kept, code) = match is_reply {
            true => (&mut self.commanding.replies, with.to_replies),
            false => (&mut self.commanding.others, Code::CHANGED),
        };
        kept.push(asked);
        self.answer(pending, &Reply::new(code, &[], b""));
    }

    /// The answer to a query.
    pub(crate) fn bring(&mut self, pending: Pending, what: Bringing) {
        if what == Bringing::Nothing {
            return self.answer(pending, &Reply::new(Code::CHANGED, &[], b""));
        }
        let (device, seq) = match what {
            Bringing::TheFirst => (0, 0),
            Bringing::ToAsker { device, .. } => {
                let issued = self.commanding.issued_to.entry(device).or_default();
                *issued += 1;
                (device, *issued - 1)
            }
            Bringing::Nothing
            | Bringing::TwoWay
            | Bringing::OneWay
            | Bringing::Damaged
            | Bringing::Long(_) => (0, self.commanding.issued),
        };
        self.commanding.issued += 1;
        let mut body = body_to(device, seq);
        if what == Bringing::Damaged {
            body[20] ^= 1;
        }
        if let Bringing::Long(bytes) = what {
            // A further member of the object.
            body.truncate(body.len() - 1);
            let pad = "x".repeat(bytes - body.len() - 10);
            body.extend_from_slice(format!(",\"pad\":\"{pad}\"}}").as_bytes());
            assert_eq!(body.len(), bytes);
        }
        let path = match what {
            Bringing::OneWay => vec!["c".to_owned()],
            Bringing::ToAsker { device, is_named } => askers_path(device, seq, is_named),
            Bringing::Nothing
            | Bringing::TwoWay
            | Bringing::TheFirst
            | Bringing::Damaged
            | Bringing::Long(_) => reply_path(seq),
        };
        let format = Uint::of(u32::from(content_format::JSON));
        let path = path
            .iter()
            .map(|segment| Opt::text(OptionNumber::LOCATION_PATH, segment));
        let mut options: Vec<Opt<'_>> = path.collect();
        options.push(Opt::new(OptionNumber::CONTENT_FORMAT, &format));
        options.push(Opt::text(OptionNumber::LOCATION_QUERY, "hono-command=set"));
        self.answer(pending, &Reply::new(Code::CHANGED, &options, &body));
    }
}

/// Returns the path of the reply to a command, which is opaque to the device.
pub(crate) fn reply_path(seq: u32) -> Vec<String> {
    let segments = ["cr", "t1", "f-00000000"].map(str::to_owned).into_iter();
    segments.chain([format!("0/{seq}/\u{e4} &?=")]).collect()
}

/// The same, where a device of a gateway asked.
pub(crate) fn askers_path(device: u32, seq: u32, is_named: bool) -> Vec<String> {
    let id = format!("{device}-{seq}");
    match is_named {
        true => vec!["cr".into(), String::new(), format!("f-{device:08}"), id],
        false => vec!["cr".into(), id],
    }
}

/// The body of a command to the first device of the scenario.
pub(crate) fn body(seq: u32) -> Vec<u8> {
    body_to(0, seq)
}

fn body_to(device: u32, seq: u32) -> Vec<u8> {
    let id = MessageId {
        run: RunId(1),
        device: DeviceId(device),
        stream: COMMANDS,
        seq,
    };
    let to = To {
        stamp: &Stamp {
            id,
            due: Some(Micros(7)),
        },
        device: &format!("f-{device:08}"),
        tenant: "t1",
        is_two_way: true,
    };
    let mut scratch = CommandScratch::default();
    (Dialect::Hono.application.write_command)(&to, &mut scratch);
    scratch.payload
}
