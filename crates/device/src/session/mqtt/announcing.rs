//! Announcements that a gateway's link makes of its devices before any of them publishes.

use muster_model::{ConnectFailure, DeviceId, StreamId};
use muster_protocol::mqtt::{self, Publish, Qos, Refused};

use super::{Mqtt, Step, refuse};
use crate::class::Class;
use crate::session::{Context, Event};
use crate::token::nobody;

/// The name of every announcement in its session. Nothing else that is answered has it: messages
/// are named by their slots.
const ANNOUNCEMENT: mqtt::Token = mqtt::Token(nobody(StreamId(0)).0);
/// Most announcements that wait for their answers at once, so that what a link writes is bounded.
const ANNOUNCEMENTS_MAX: u32 = 64;

/// The progress of a link's announcements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Announced {
    /// Place of the first device that was not announced, among the link's devices.
    next: u32,
    /// Number of announcements that the platform has not answered.
    open: u32,
}

impl Mqtt {
    /// Makes a link ready, or first announces its devices.
    pub(super) fn announce<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'a>> {
        if at.class.announces.is_none() {
            self.steps.remove(&at.link);
            return Some(Event::Ready);
        }
        let none = Announced { next: 0, open: 0 };
        self.steps.insert(at.link, Step::Announcing(none));
        self.announce_more(at, out)
    }

    /// Announces as many devices as may wait for an answer; once all are answered, the link is ready.
    pub(super) fn announce_more<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'a>> {
        while let Some(Step::Announcing(announced)) = self.steps.get(&at.link) {
            let (devices, Announced { next, open }) = (devices_of(at), *announced);
            if next == devices && open == 0 {
                self.steps.remove(&at.link);
                return Some(Event::Ready);
            }
            if next == devices || open == ANNOUNCEMENTS_MAX {
                break;
            }
            match self.announce_one(at, next, out) {
                Ok(()) => {
                    let more = Announced {
                        next: next + 1,
                        open: open + 1,
                    };
                    self.steps.insert(at.link, Step::Announcing(more));
                }
                // An answer makes room, to whatever it is.
                Err(Refused::Window | Refused::PacketIds) => break,
                // A peer that takes no such packet takes no data either.
                Err(
                    Refused::TooLarge { .. }
                    | Refused::TextTooLong
                    | Refused::RetainUnavailable
                    | Refused::QosUnavailable
                    | Refused::Unknown
                    | Refused::Authentication
                    | Refused::NotConnected,
                ) => return Some(refuse(at, ConnectFailure::Unsendable, out)),
            }
        }
        None
    }

    fn announce_one(
        &mut self,
        at: &mut Context<'_, Self>,
        place: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let class = at.class;
        let device = DeviceId(class.first_device_of(at.id).0 + place);
        class.directory.render_name(device, &mut self.name);
        self.announcement.clear();
        let announced = class.announces.ok_or(Refused::NotConnected)?;
        (announced.write)(&self.name, &mut self.announcement);
        let publish = Publish {
            qos: Qos::AtLeastOnce,
            ..Publish::new(announced.topic, &self.announcement)
        };
        let client = &mut at.state.client;
        client.publish(at.now, ANNOUNCEMENT, &publish, out)
    }

    /// Closes the announcement that an answer belongs to; false if it belongs to none.
    #[inline]
    pub(super) fn takes_announcement(&mut self, link: u32, token: mqtt::Token) -> bool {
        if token != ANNOUNCEMENT {
            return false;
        }
        match self.steps.get_mut(&link) {
            Some(Step::Announcing(announced)) => {
                announced.open = announced.open.saturating_sub(1);
                true
            }
            Some(Step::Subscribing) | None => false,
        }
    }

    /// Notes the first announcement that a platform left unanswered, with its device.
    pub(super) fn note_unannounced(&self, at: &mut Context<'_, Self>) {
        let Some(Step::Announcing(Announced { next, open })) = self.steps.get(&at.link) else {
            return;
        };
        let (class, id) = (at.class, at.id);
        let announced = class.announces.as_ref();
        at.refusals.note_once("announcement", || {
            // Answers come in the order of the announcements.
            let first = class.first_device_of(id).0;
            let mut device = String::new();
            let place = next.saturating_sub(*open);
            class.directory.render_name(DeviceId(first + place), &mut device);
            format!(
                "link `{}`: the announcement of device `{device}` on `{}` was not answered within {}. {}; others like it are not reported",
                class.name_of(id),
                announced.map_or("", |it| it.topic),
                class.client.handshake_timeout,
                announced.map_or("", |it| it.remedy)
            )
        });
    }
}

/// The number of devices that a link carries.
fn devices_of(at: &Context<'_, Mqtt>) -> u32 {
    let class: &Class<_> = at.class;
    let first = class.first_device_of(at.id).0 - class.directory.first_device().0;
    class
        .devices_per_link
        .min(class.directory.devices() - first)
}
