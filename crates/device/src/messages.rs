//! The messages of a shard, as its sessions see them.

use muster_model::{MessageId, RunId, Stamp};
use muster_platform::Replying;

use crate::class::Class;
use crate::reply_paths::ReplyPaths;
use crate::session::Session;
use crate::shard::{Place, Scratch};
use crate::slots::{SlotId, Slots};

/// The messages that are taken and not yet final, and all that they are rendered from.
#[derive(Debug)]
pub(crate) struct Messages<'a, P: Session> {
    pub(crate) run: RunId,
    pub(crate) classes: &'a [Class<P::Settings>],
    pub(crate) places: &'a [Option<Place>],
    pub(crate) slots: &'a mut Slots<P::Key>,
    pub(crate) scratch: &'a mut Scratch,
    /// The paths of replies that are requests.
    pub(crate) paths: &'a ReplyPaths,
}

impl<P: Session> Messages<'_, P> {
    #[inline]
    pub(crate) fn reborrow(&mut self) -> Messages<'_, P> {
        Messages {
            run: self.run,
            classes: self.classes,
            places: self.places,
            slots: self.slots,
            scratch: self.scratch,
            paths: self.paths,
        }
    }

    /// The place of a message's stream.
    #[inline]
    pub(crate) fn place(&self, id: SlotId) -> Place {
        let stream = self.slots.get(id).stream;
        self.places[stream.index()].expect("the stream of a slot is planned")
    }

    /// Renders topic and payload of a message into the scratch buffers: a pure function of the seed,
    /// the message id and its due instant, so that nothing is stored for a second time.
    pub(crate) fn render_body(&mut self, id: SlotId) {
        let place = self.place(id);
        let slot = self.slots.get(id);
        let class = &self.classes[place.class as usize];
        let message = MessageId {
            run: self.run,
            device: slot.device,
            stream: slot.stream,
            seq: slot.seq,
        };
        if class.streams[place.lane as usize].is_command() {
            let stamp = Stamp {
                id: message,
                due: Some(slot.issued),
            };
            let scratch = &mut *self.scratch;
            class.roster.render_name(slot.device, &mut scratch.name);
            let to = Replying {
                stamp: &stamp,
                request: slot.request,
                device: &scratch.name,
                is_gateways: class.client.gateway.is_some(),
            };
            (class.dialect.write_reply)(&to, &mut scratch.reply);
            scratch.uplink.say(&scratch.reply);
            return;
        }
        let uplink = &class.streams[place.lane as usize].uplink;
        uplink.render(&class.roster, &message, slot.due, &mut self.scratch.uplink);
    }
}
