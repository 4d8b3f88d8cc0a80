//! What a gateway's link says of its devices before any of them publishes.

use muster_model::{ConnectFailure, DeviceId, Micros, StreamId};
use muster_protocol::mqtt::{Publish, Qos, Refused, Token};

use crate::link::{Announced, State};
use crate::token::nobody;
use crate::{Shard, Sink, Then};

/// The name of every announcement in its session. Nothing else that is answered has it: messages
/// are named by their slots.
const ANNOUNCEMENT: Token = nobody(StreamId(0));
/// Most announcements that wait for their answers at once, so that what a link writes is bounded.
const ANNOUNCEMENTS_MAX: u32 = 64;

impl<S: Sink> Shard<S> {
    /// The link has all that it needs: it is up, or first tells of its devices.
    pub(crate) fn announce(&mut self, link: u32, now: Micros, out: &mut Vec<u8>) -> Then {
        if self.class(link).announces.is_none() {
            self.connected(link, now);
            return Then::Stay;
        }
        let since = self.links[link as usize].since;
        let none = Announced { next: 0, open: 0 };
        self.enter(link, State::Announcing(none), since);
        self.announce_more(link, now, out)
    }

    pub(crate) fn is_announcement(&self, link: u32, token: Token) -> bool {
        let state = self.links[link as usize].state;
        matches!(state, State::Announcing(_)) && token == ANNOUNCEMENT
    }

    /// The platform knows one more device.
    pub(crate) fn announced(&mut self, link: u32, now: Micros, out: &mut Vec<u8>) -> Then {
        if let State::Announcing(announced) = &mut self.links[link as usize].state {
            announced.open = announced.open.saturating_sub(1);
        }
        self.announce_more(link, now, out)
    }

    /// The platform does not take one of the devices: the link is of no use.
    pub(crate) fn unannounced(
        &mut self,
        link: u32,
        now: Micros,
        failure: ConnectFailure,
        out: &mut Vec<u8>,
    ) -> Then {
        self.links[link as usize].session.disconnect(0, out);
        self.connect_failed(link, now, failure);
        Then::Close
    }

    /// Tells of as many devices as may wait for an answer; once all are answered for, the link is up.
    pub(crate) fn announce_more(&mut self, link: u32, now: Micros, out: &mut Vec<u8>) -> Then {
        if !matches!(self.links[link as usize].state, State::Announcing(_)) {
            return Then::Stay;
        }
        let devices = self.devices_of(link);
        while let State::Announcing(Announced { next, open }) = self.links[link as usize].state {
            if next == devices && open == 0 {
                self.connected(link, now);
                break;
            }
            if next == devices || open == ANNOUNCEMENTS_MAX {
                break;
            }
            match self.announce_one(link, next, now, out) {
                Ok(()) => {
                    let state = &mut self.links[link as usize].state;
                    *state = State::Announcing(Announced {
                        next: next + 1,
                        open: open + 1,
                    });
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
                ) => return self.unannounced(link, now, ConnectFailure::Unsendable, out),
            }
        }
        Then::Stay
    }

    /// The failure of a link whose time to connect is over.
    pub(crate) fn unanswered(&self, link: u32) -> ConnectFailure {
        match self.links[link as usize].state {
            State::Announcing(_) => ConnectFailure::AnnouncementUnanswered,
            State::Subscribing => ConnectFailure::SubscribeUnanswered,
            State::Down
            | State::BackOff
            | State::Opening(_)
            | State::Handshaking
            | State::Up
            | State::Ended => ConnectFailure::TimedOut,
        }
    }

    /// Notes the first announcement that a platform left unanswered, with its device.
    pub(crate) fn note_unannounced(&mut self, link: u32) {
        let State::Announcing(Announced { next, open }) = self.links[link as usize].state else {
            return;
        };
        let mut refusals = std::mem::take(&mut self.refusals);
        refusals.note_unanswered("announcement", || {
            let class = self.class(link);
            let announced = class.announces.as_ref();
            // Answers come in the order of the announcements.
            let first = class.first_device_of(self.link_id(link)).0;
            let mut device = String::new();
            let place = next.saturating_sub(open);
            class.roster.render_name(DeviceId(first + place), &mut device);
            format!(
                "link `{}`: the announcement of device `{device}` on `{}` was not answered within {}. {}; others like it are not told",
                self.name_of(link),
                announced.map_or("", |it| it.topic),
                class.client.handshake_timeout,
                announced.map_or("", |it| it.remedy)
            )
        });
        self.refusals = refusals;
    }

    fn announce_one(
        &mut self,
        link: u32,
        place: u32,
        now: Micros,
        out: &mut Vec<u8>,
    ) -> Result<(), Refused> {
        let id = self.link_id(link);
        let state = &mut self.links[link as usize];
        let class = &self.classes[state.class as usize];
        let device = DeviceId(class.first_device_of(id).0 + place);
        let scratch = &mut self.scratch;
        class.roster.render_name(device, &mut scratch.name);
        scratch.announcement.clear();
        let announced = class.announces.ok_or(Refused::NotConnected)?;
        (announced.write)(&scratch.name, &mut scratch.announcement);
        let publish = Publish {
            qos: Qos::AtLeastOnce,
            ..Publish::new(announced.topic, &scratch.announcement)
        };
        let client = state.session.mqtt().ok_or(Refused::NotConnected)?;
        client.publish(now, ANNOUNCEMENT, &publish, out)
    }

    /// How many devices a link carries.
    fn devices_of(&self, link: u32) -> u32 {
        let class = self.class(link);
        let first = class.first_device_of(self.link_id(link)).0 - class.roster.first_device().0;
        class.devices_per_link.min(class.roster.devices() - first)
    }
}
