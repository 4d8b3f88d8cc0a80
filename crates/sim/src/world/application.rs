//! The business application's place in the world.

use muster_conduct::{CommandSink, Progress};
use muster_device::Then;
use muster_model::Micros;

use super::World;
use crate::commanding::Commanding;
use crate::queue::{Copy, Event};
use crate::witness::Witness;

impl World {
    pub(super) fn is_application(&self, link: u32) -> bool {
        let application = self.commanding.as_ref();
        application.is_some_and(|application| application.link == link)
    }

    /// A copy of a device's message comes out of the platform, if anybody listens.
    pub(super) fn surface(&mut self, copy: Copy) {
        let back = self.platform.behaviour().consumers_back(self.queue.now());
        match back {
            Some(back) => self.queue.push(back, Event::Copy(copy)),
            None => self.surfaced(&copy),
        }
    }

    fn surfaced(&mut self, copy: &Copy) {
        let (now, application) = (self.queue.now(), self.commanding.as_ref());
        let mut asked = None;
        self.consumers.arrived(now, copy, |backend, id| {
            if application.is_some_and(|known| known.backend == backend) {
                asked = Some(*id);
            }
        });
        if let Some(id) = asked {
            self.with_application(|application, now, sink, _| application.asked(&id, now, sink));
        }
        self.platform.route(copy, &mut self.queue);
    }

    pub(super) fn dial_application(&mut self) {
        let Some(link) = self.commanding.as_ref().map(|known| known.link) else {
            return;
        };
        let conn = self.wires[link as usize].dial();
        let at = self.queue.now() + self.platform.behaviour().latency;
        let is_up = true;
        self.queue.push(at, Event::Dialled { link, conn, is_up });
    }

    pub(super) fn application_opened(&mut self, link: u32) {
        self.with_application(|application, now, _, out| application.greet(now, out));
        self.application_goes_on(link, Then::Stay);
    }

    pub(super) fn application_received(&mut self, bytes: &[u8]) -> (usize, Then) {
        self.with_application(|application, now, sink, out| {
            application.received(now, bytes, sink, out)
        })
        .unwrap_or((bytes.len(), Then::Stay))
    }

    pub(super) fn application_timer(&mut self, link: u32) {
        let now = self.queue.now();
        let application = self.commanding.as_mut();
        if application.is_some_and(|known| known.is_to_connect(now)) {
            return self.dial_application();
        }
        let then = self.with_application(|application, now, _, out| application.timer(now, out));
        self.application_goes_on(link, then.unwrap_or(Then::Stay));
    }

    pub(super) fn issue(&mut self) {
        self.with_application(|application, now, sink, out| application.issue(now, sink, out));
        if let Some(link) = self.commanding.as_ref().map(|known| known.link) {
            self.say_for_application(link);
        }
    }

    /// Sends what the session said; then it goes on, or is over.
    pub(super) fn application_goes_on(&mut self, link: u32, then: Then) {
        self.say_for_application(link);
        if then != Then::Stay {
            self.follow(link, then);
            self.application_lost();
        }
        self.arm(link);
    }

    fn say_for_application(&mut self, link: u32) {
        let bytes = std::mem::take(&mut self.out);
        if !bytes.is_empty() && self.wires[link as usize].is_open {
            self.travel(link, bytes);
        }
    }

    pub(super) fn application_lost(&mut self) {
        self.with_application(|application, now, sink, _| application.lost(now, sink));
        if let Some(link) = self.commanding.as_ref().map(|known| known.link) {
            self.arm(link);
        }
    }

    pub(super) fn finish_application(&mut self) {
        self.with_application(|application, now, sink, _| application.finish(now, sink));
    }

    /// Progress of the application, as a thread of consumers reports it.
    pub(super) fn application_progress(&mut self) -> Option<Progress> {
        let (application, now) = (self.commanding.as_mut()?, self.queue.now());
        Some(Progress {
            at: now,
            consumers_wanted: 1,
            consumers_up: u64::from(application.is_up()),
            listening: application.listening(now),
            open: application.open(),
            behind: u64::from(application.next().is_some_and(|due| due <= now)),
            ..Progress::default()
        })
    }

    fn with_application<T>(
        &mut self,
        act: impl FnOnce(&mut Commanding, Micros, &mut CommandSink<'_, Witness>, &mut Vec<u8>) -> T,
    ) -> Option<T> {
        let mut sink = CommandSink {
            account: &mut self.consumers.account,
            sink: &mut self.consumers.witness,
        };
        let application = self.commanding.as_mut()?;
        Some(act(application, self.queue.now(), &mut sink, &mut self.out))
    }
}
