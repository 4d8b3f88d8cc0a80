//! Sources and buffers that messages are rendered from.

use std::fmt;

use muster_model::{LinkId, Stamp};
use muster_platform::{
    Answering, Asking, CommandScratch, ReplyPath, Replying, Request, Requests, UplinkScratch,
};

use super::Session;
use crate::class::{Class, ClassStream, Kind};
use crate::fleets::Fleets;
use crate::reply_paths::ReplyPaths;
use crate::slots::{SlotId, Slots};

/// The messages of a shard, and all that they are rendered from.
#[derive(Debug)]
pub(crate) struct Rendering<'a, P: Session> {
    pub(crate) fleets: &'a Fleets<P::Settings>,
    pub(crate) slots: &'a mut Slots<P::Key>,
    pub(crate) scratch: &'a mut Scratch,
    /// The paths, or topics, of replies where commands name them.
    pub(crate) paths: &'a ReplyPaths,
}

/// Buffers that every message and every CONNECT is rendered in.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) uplink: UplinkScratch,
    /// A device's name.
    pub(crate) name: String,
    /// The user name, or the token, of a link, where requests name it in their path; else empty.
    pub(crate) login: String,
    /// A reply to a command.
    pub(crate) reply: CommandScratch,
    /// A filter that a topic may match.
    pub(crate) filter: String,
    /// The parameters of a request.
    pub(crate) query: String,
    /// Path of the reply to the command that came last.
    pub(crate) reply_path: ReplyPath,
}

/// Hides the login.
impl fmt::Debug for Scratch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

impl Scratch {
    /// Lends the parts of the message that was rendered last.
    pub(crate) fn parts(&mut self) -> Parts<'_> {
        Parts {
            uplink: &self.uplink,
            login: &self.login,
            query: &mut self.query,
        }
    }

    /// Renders the login of a link, if requests of the dialect name it in their path.
    pub(crate) fn render_login<P: Session>(&mut self, class: &Class<P::Settings>, link: LinkId) {
        if class.dialect.requests(P::PROTOCOL).path_token.is_some() {
            let device = class.first_device_of(link);
            let (name, login) = (&mut self.name, &mut self.login);
            class
                .client
                .render_user(&class.directory, device, name, login);
        }
    }
}

/// The parts of a rendered message that a request is made of.
pub(crate) struct Parts<'a> {
    pub(crate) uplink: &'a UplinkScratch,
    pub(crate) login: &'a str,
    pub(crate) query: &'a mut String,
}

impl ClassStream {
    /// Makes the request of a message, or that of a reply to a command, whose path `to` finds.
    pub(crate) fn request<'a>(
        &'a self,
        requests: &Requests,
        parts: Parts<'a>,
        to: impl FnOnce() -> &'a ReplyPath,
    ) -> Request<'a> {
        let Parts {
            uplink,
            login,
            query,
        } = parts;
        if let Kind::Command { status, .. } = self.kind {
            let answering = Answering {
                to: to(),
                status,
                payload: &uplink.payload,
                login,
            };
            return (requests.reply)(&answering, query);
        }
        let asking = Asking {
            path: uplink.topic(),
            payload: &uplink.payload,
            content_type: self.content_type.as_deref(),
            is_at_least_once: self.is_confirmable,
            ttd_s: self.ttd_s(),
            login,
        };
        (requests.uplink)(&asking, query)
    }
}

impl<P: Session> Rendering<'_, P> {
    #[inline]
    pub(crate) fn reborrow(&mut self) -> Rendering<'_, P> {
        Rendering {
            fleets: self.fleets,
            slots: self.slots,
            scratch: self.scratch,
            paths: self.paths,
        }
    }

    /// Renders topic and payload of a message into the scratch buffers: a pure function of the seed,
    /// the message id and its due instant, so that nothing is stored for a second time. Returns the
    /// place of the message's stream.
    #[inline]
    pub(crate) fn render_body(&mut self, id: SlotId) -> u8 {
        let slot = self.slots.get(id);
        let stream_index = self.fleets.place(slot.stream).stream_index;
        let class = self.fleets.class(slot.link);
        let message = self.fleets.message_id(slot.device, slot.stream, slot.seq);
        let stream = &class.streams[usize::from(stream_index)];
        if !stream.is_command() {
            let out = &mut self.scratch.uplink;
            stream
                .uplink
                .render(&class.directory, &message, slot.due, out);
            return stream_index;
        }
        let stamp = Stamp {
            id: message,
            due: Some(slot.issued),
        };
        let status = match stream.kind {
            Kind::Command { status, .. } => status,
            Kind::Uplink | Kind::Query { .. } | Kind::Receive { .. } | Kind::Connect => 0,
        };
        let is_named = !P::PROTOCOL.asks && class.dialect.names_replies(P::PROTOCOL);
        let scratch = &mut *self.scratch;
        class.directory.render_name(slot.device, &mut scratch.name);
        let to = Replying {
            stamp: &stamp,
            request: slot.request,
            device: &scratch.name,
            is_gateways: class.client.gateway.is_some(),
            path: is_named.then(|| self.paths.get(slot.request)),
            status,
        };
        (class.dialect.write_reply)(&to, &mut scratch.reply);
        scratch.uplink.say(&scratch.reply);
        stream_index
    }
}
