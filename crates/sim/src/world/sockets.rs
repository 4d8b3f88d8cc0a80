//! The device side's sockets: what a driver over real ones does, in the same order.

use muster_device::Then;
use muster_model::{Cause, ConnectFailure};

use super::World;
use crate::queue::Event;

impl World {
    pub(super) fn happened(&mut self, event: Event) {
        let (platform, queue) = (&mut self.platform, &mut self.queue);
        match event {
            Event::Dialled { link, conn, is_up } => self.dialled(link, conn, is_up),
            Event::ToPlatform { link, conn, bytes } => platform.received(link, conn, &bytes, queue),
            Event::EndToPlatform { link, conn } => platform.ended(link, conn),
            Event::ToDevice { link, conn, bytes } => self.received(link, conn, &bytes),
            Event::EndToDevice {
                link,
                conn,
                is_reset,
            } => self.ended(link, conn, is_reset),
            Event::Flushed { link, conn } => self.flushed(link, conn),
            Event::Timer { link } => self.timer(link),
            Event::Answer {
                link,
                session,
                answer,
            } => platform.answer(link, session, &answer, queue),
            Event::Acknowledge { link, answered } => platform.acknowledge(link, &answered, queue),
            Event::Copy(copy) => self.surface(copy),
            Event::Mail(copy) => platform.route(&copy, queue),
            Event::Incident { what, share } => platform.incident(what, share, queue),
        }
    }

    pub(super) fn dial(&mut self, link: u32) {
        let conn = self.wires[link as usize].dial();
        let is_up = self.platform.dial();
        let at = self.queue.now() + self.platform.behaviour().latency;
        self.queue.push(at, Event::Dialled { link, conn, is_up });
        self.shard.opening(link, self.queue.now());
        self.arm(link);
    }

    fn dialled(&mut self, link: u32, conn: u32, is_up: bool) {
        if !self.wires[link as usize].is(conn) {
            return;
        }
        if is_up {
            self.platform.begin(link, conn);
            if self.is_application(link) {
                return self.application_opened(link);
            }
            self.shard.opened(link, self.queue.now(), &mut self.out);
            return self.send(link);
        }
        self.wires[link as usize].close();
        let failure = ConnectFailure::Refused;
        self.shard.connect_failed(link, self.queue.now(), failure);
    }

    fn received(&mut self, link: u32, conn: u32, bytes: &[u8]) {
        let wire = &mut self.wires[link as usize];
        if !wire.is(conn) {
            return;
        }
        let mut unread = std::mem::take(&mut wire.unread);
        unread.extend_from_slice(bytes);
        let (used, then) = if self.is_application(link) {
            self.application_received(&unread)
        } else {
            let now = self.queue.now();
            self.shard.received(link, now, &unread, &mut self.out)
        };
        unread.drain(..used);
        self.wires[link as usize].unread = unread;
        if self.is_application(link) {
            return self.application_goes_on(link, then);
        }
        self.send(link);
        self.follow(link, then);
        if self.shard.links().is_up(link) {
            self.arm(link);
            self.pump(link);
        }
    }

    fn ended(&mut self, link: u32, conn: u32, is_reset: bool) {
        if !self.wires[link as usize].is(conn) {
            return;
        }
        self.wires[link as usize].close();
        if self.is_application(link) {
            return self.application_lost();
        }
        if self.shard.links().is_handshaking(link) {
            let failure = ConnectFailure::Closed;
            return self.shard.connect_failed(link, self.queue.now(), failure);
        }
        let cause = if is_reset {
            Cause::Reset
        } else {
            Cause::PeerClosed
        };
        self.shard.closed(link, self.queue.now(), cause);
    }

    fn flushed(&mut self, link: u32, conn: u32) {
        let wire = &mut self.wires[link as usize];
        if !wire.is(conn) {
            return;
        }
        if let Some(rest) = wire.held.take() {
            self.travel(link, rest);
        }
        self.shard.traffic_mut().flushed(link, self.queue.now());
        self.out.append(&mut self.wires[link as usize].waiting);
        self.send(link);
        self.arm(link);
        self.pump(link);
    }

    fn timer(&mut self, link: u32) {
        let is_due = self.wires[link as usize]
            .timer
            .is_some_and(|at| at <= self.queue.now());
        if !is_due {
            return;
        }
        self.wires[link as usize].timer = None;
        if self.is_application(link) {
            return self.application_timer(link);
        }
        let then = self.shard.timer(link, self.queue.now(), &mut self.out);
        self.send(link);
        self.follow(link, then);
        self.arm(link);
    }

    pub(super) fn pump(&mut self, link: u32) {
        let is_open = self.wires[link as usize].is_open;
        while is_open
            && self
                .shard
                .render_next(link, self.queue.now(), &mut self.out)
        {
            if self.write(link) {
                self.shard.traffic_mut().written(link, self.queue.now());
            } else {
                self.shard.traffic_mut().held(link);
            }
        }
        self.shard.shed_excess(link, self.queue.now());
    }

    /// Sends control bytes of a session, if there are any.
    fn send(&mut self, link: u32) {
        let wire = &mut self.wires[link as usize];
        if self.out.is_empty() || !wire.is_open {
            return self.out.clear();
        }
        if wire.held.is_some() {
            return wire.waiting.append(&mut self.out);
        }
        if !self.write(link) {
            self.shard.traffic_mut().held(link);
        }
    }

    /// Writes what was rendered; whether the socket took the whole.
    fn write(&mut self, link: u32) -> bool {
        let mut bytes = std::mem::take(&mut self.out);
        if !self.platform.holds() {
            self.travel(link, bytes);
            return true;
        }
        let wire = &mut self.wires[link as usize];
        wire.held = Some(bytes.split_off(bytes.len() / 2));
        let conn = wire.conn;
        let at = self.queue.now() + self.platform.behaviour().hold_for;
        self.queue.push(at, Event::Flushed { link, conn });
        self.travel(link, bytes);
        false
    }

    pub(super) fn travel(&mut self, link: u32, bytes: Vec<u8>) {
        let conn = self.wires[link as usize].conn;
        let at = self.queue.now() + self.platform.behaviour().latency;
        self.queue.push(at, Event::ToPlatform { link, conn, bytes });
    }

    pub(super) fn follow(&mut self, link: u32, then: Then) {
        let wire = &mut self.wires[link as usize];
        if then == Then::Stay || !wire.is_open {
            return;
        }
        let conn = wire.conn;
        // What is held goes out before the end of a connection that ends in order.
        let held = wire.held.take().filter(|_| then == Then::Close);
        if let Some(rest) = held {
            self.travel(link, rest);
        }
        self.wires[link as usize].close();
        let at = self.queue.now() + self.platform.behaviour().latency;
        self.queue.push(at, Event::EndToPlatform { link, conn });
    }

    pub(super) fn arm(&mut self, link: u32) {
        let deadline = match &self.commanding {
            Some(application) if application.link == link => application.deadline(),
            Some(_) | None => self.shard.deadline(link),
        };
        let Some(deadline) = deadline else {
            return;
        };
        let timer = &mut self.wires[link as usize].timer;
        if timer.is_some_and(|at| at <= deadline) {
            return;
        }
        *timer = Some(deadline);
        self.queue.push(deadline, Event::Timer { link });
    }
}
