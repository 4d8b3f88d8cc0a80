//! The model platform: one server end a link.

use std::collections::BTreeSet;

use muster_model::Micros;
use muster_platform::{DevicePublish, Dialect};
use muster_protocol::mqtt::packet::Auth;
use muster_protocol::mqtt::{
    Accept, Incoming, Input, Server, ServerEvent, ServerLimits, SessionState, Version, reason,
};

use crate::account::Account;
use crate::behaviour::{Behaviour, Dice, Fault, What};
use crate::completions;
use crate::mail::Mail;
use crate::queue::{Answer, Copy, Event, Queue};

/// All links of the platform.
#[derive(Debug)]
pub(crate) struct Platform {
    pub(crate) dialect: Dialect,
    pub(crate) behaviour: Behaviour,
    pub(crate) dice: Dice,
    pub(crate) ends: Vec<End>,
    pub(crate) account: Account,
    /// The link of the business application, if it has one.
    application: Option<u32>,
}

#[derive(Debug, Default)]
pub(crate) struct End {
    /// Number of the connection of the device side; 0 is none.
    conn: u32,
    pub(crate) server: Option<Server>,
    /// Name that its CONNECT gave: the user name, or else the client id.
    pub(crate) name: String,
    /// The devices that it said are there on this connection.
    announced: BTreeSet<String>,
    /// True if it has subscribed on this connection, as the dialect wants.
    pub(crate) has_subscribed: bool,
    unread: Vec<u8>,
    /// Session that an earlier connection left.
    kept: Option<SessionState>,
    /// Counts the sessions, so that an answer never reaches a later one.
    session: u32,
    /// True if the client asked for a session that outlives the connection.
    outlives: bool,
    /// Session options of a CONNECT whose challenge waits for its answer.
    asked: Option<Asked>,
    /// The link is forgotten: nothing is read and nothing said.
    pub(crate) is_mute: bool,
    /// Its subscriptions, and the messages that it is still to get.
    pub(crate) mail: Mail,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    is_clean: bool,
    outlives: bool,
}

/// Challenge that precedes the secret in every answer; a platform would choose it anew each time.
const CHALLENGE: &[u8] = b"challenge";

/// One side of a conversation that is under way.
struct Talk<'a> {
    link: u32,
    server: &'a mut Server,
    out: &'a mut Vec<u8>,
}

impl Platform {
    /// A platform that nobody has dialled. The link of the business application, if it has one, is
    /// the last of `links`.
    pub(crate) fn new(
        dialect: Dialect,
        behaviour: Behaviour,
        (links, application): (u32, Option<u32>),
        seed: u64,
    ) -> Self {
        Self {
            dialect,
            behaviour,
            dice: Dice::new(seed),
            ends: (0..links).map(|_| End::default()).collect(),
            account: Account::default(),
            application,
        }
    }

    /// True if a link is a device's, and not the application's.
    pub(crate) fn is_device(&self, link: u32) -> bool {
        self.application != Some(link)
    }

    pub(crate) fn behaviour(&self) -> &Behaviour {
        &self.behaviour
    }

    /// Returns whether the socket takes only a half of a write.
    pub(crate) fn holds(&mut self) -> bool {
        self.dice.hits(self.behaviour.hold)
    }

    /// A device dials; whether the network lets it.
    pub(crate) fn dial(&mut self) -> bool {
        !self.dice.hits(self.behaviour.refuse_connect)
    }

    /// A connection stands; an older one of the link is taken over.
    pub(crate) fn begin(&mut self, link: u32, conn: u32) {
        self.drop_connection(link);
        let limits = ServerLimits {
            receive_maximum: self.behaviour.receive_maximum,
            maximum_packet_size: self.behaviour.maximum_packet_size,
            ..ServerLimits::default()
        };
        let end = &mut self.ends[link as usize];
        end.conn = conn;
        end.server = Some(Server::new(&limits));
    }

    /// The device's end of a connection is gone.
    pub(crate) fn ended(&mut self, link: u32, conn: u32) {
        if self.ends[link as usize].conn == conn {
            self.drop_connection(link);
        }
    }

    pub(crate) fn received(&mut self, link: u32, conn: u32, bytes: &[u8], queue: &mut Queue) {
        let end = &mut self.ends[link as usize];
        if end.conn != conn || end.is_mute {
            return;
        }
        let Some(mut server) = end.server.take() else {
            return;
        };
        let mut unread = std::mem::take(&mut end.unread);
        unread.extend_from_slice(bytes);
        let (mut out, mut input, mut goes_on) = (Vec::new(), Input::new(&unread), true);
        while let Some(event) = server.poll(queue.now(), &mut input, &mut out) {
            let talk = Talk {
                link,
                server: &mut server,
                out: &mut out,
            };
            goes_on &= self.happened(talk, event, queue);
        }
        let used = input.consumed();
        unread.drain(..used);
        let end = &mut self.ends[link as usize];
        (end.server, end.unread) = (Some(server), unread);
        if !self.behaviour.completes {
            out = completions::without(&out);
        }
        self.say(link, out, queue);
        self.hand_over(link, queue);
        if !goes_on {
            self.hang_up(link, false, queue);
        }
    }

    pub(crate) fn answer(&mut self, link: u32, session: u32, answer: &Answer, queue: &mut Queue) {
        let end = &mut self.ends[link as usize];
        if end.session != session || end.is_mute {
            return;
        }
        let mut out = Vec::new();
        if let Some(server) = &mut end.server {
            server.ack(answer.pending, answer.reason, &mut out);
        }
        self.say(link, out, queue);
    }

    pub(crate) fn incident(&mut self, what: What, share: f64, queue: &mut Queue) {
        for link in 0..self.ends.len() as u32 {
            if !self.dice.hits(share) || self.ends[link as usize].server.is_none() {
                continue;
            }
            match what {
                What::Fin => self.hang_up(link, false, queue),
                What::Reset => self.hang_up(link, true, queue),
                What::HalfOpen => self.ends[link as usize].is_mute = true,
                What::Goodbye(code) => {
                    let mut out = Vec::new();
                    if let Some(server) = &mut self.ends[link as usize].server {
                        server.disconnect(code, &mut out);
                    }
                    self.say(link, out, queue);
                    self.hang_up(link, false, queue);
                }
            }
        }
    }

    /// Acts on one event; false if the connection is over.
    fn happened(&mut self, talk: Talk<'_>, event: ServerEvent<'_>, queue: &mut Queue) -> bool {
        match event {
            ServerEvent::Connect(connect) => {
                let name = (self.dialect.server.link_name)(connect.user, connect.client_id);
                self.ends[talk.link as usize].name = name;
                let outlives = match connect.version {
                    Version::V311 => !connect.clean_start,
                    Version::V5 => connect.session_expiry() > 0,
                };
                let asked = Asked {
                    is_clean: connect.clean_start,
                    outlives,
                };
                if self.behaviour.secret.is_none() {
                    return self.greet(talk, queue.now(), asked);
                }
                self.ends[talk.link as usize].asked = Some(asked);
                talk.server.challenge(CHALLENGE, talk.out).is_ok()
            }
            ServerEvent::Auth(auth) => self.authenticate(talk, queue.now(), &auth),
            ServerEvent::Publish(publish) => self.take(talk, &publish, queue),
            ServerEvent::Disconnect { .. } => false,
            ServerEvent::Malformed(_) => {
                self.account.malformed += 1;
                false
            }
            ServerEvent::Subscribe(subscribe) => {
                let Talk { link, server, out } = talk;
                self.subscribe(link, server, &subscribe, out)
            }
            ServerEvent::Acked { token, .. } | ServerEvent::Completed { token } => {
                self.ends[talk.link as usize].mail.acknowledged(token);
                true
            }
            ServerEvent::Resend { token } => {
                let mail = &self.ends[talk.link as usize].mail;
                mail.send_again(token, talk.server, talk.out);
                true
            }
            ServerEvent::KeepAliveExpired | ServerEvent::Unsubscribe(_) | ServerEvent::Ping => true,
        }
    }

    /// Takes a step of a client that authenticates; false if the connection is over.
    fn authenticate(&mut self, talk: Talk<'_>, now: Micros, auth: &Auth<'_>) -> bool {
        if auth.reason == reason::REAUTHENTICATE {
            return talk.server.challenge(CHALLENGE, talk.out).is_ok();
        }
        let secret = self.behaviour.secret.unwrap_or_default();
        let answer = auth.data().unwrap_or_default();
        if answer.strip_prefix(CHALLENGE) != Some(secret.as_bytes()) {
            talk.server.refuse(reason::NOT_AUTHORIZED, talk.out);
            talk.server.disconnect(reason::NOT_AUTHORIZED, talk.out);
            return false;
        }
        self.account.authenticated += 1;
        match self.ends[talk.link as usize].asked.take() {
            Some(asked) => self.greet(talk, now, asked),
            None => talk.server.authenticated(talk.out).is_ok(),
        }
    }

    fn greet(&mut self, talk: Talk<'_>, now: Micros, asked: Asked) -> bool {
        let Talk { link, server, out } = talk;
        let is_device = self.is_device(link);
        let end = &mut self.ends[link as usize];
        if is_device && self.dice.hits(self.behaviour.deaf) {
            end.is_mute = true;
            return true;
        }
        if is_device && self.dice.hits(self.behaviour.refuse_session) {
            server.refuse(reason::SERVER_BUSY, out);
            return false;
        }
        match end.kept.take().filter(|_| !asked.is_clean) {
            Some(kept) => {
                self.account.resumed += 1;
                server.resume(kept);
            }
            None => {
                end.session += 1;
                end.mail = Mail::after(&end.mail);
            }
        }
        end.outlives = asked.outlives && self.behaviour.keeps_sessions;
        server.accept(now, &Accept::default(), out).is_ok()
    }

    /// Takes one publish; false if the connection is over.
    fn take(&mut self, talk: Talk<'_>, publish: &Incoming<'_>, queue: &mut Queue) -> bool {
        let Talk { link, server, out } = talk;
        if !self.is_device(link) {
            self.command(link, publish, queue);
            return true;
        }
        if (self.dialect.application.returned)(&publish.topic, publish.payload).is_some() {
            self.reply(link, publish, queue);
            return true;
        }
        if self.is_announcement(link, publish) {
            if let Some(pending) = publish.pending {
                server.ack(pending, reason::SUCCESS, out);
            }
            return true;
        }
        self.account.received += 1;
        self.account.received_again += u64::from(publish.dup);
        if self.asks(link, publish, queue) {
            if let Some(pending) = publish.pending {
                server.ack(pending, reason::SUCCESS, out);
            }
            return true;
        }
        let (ways, account) = (&self.behaviour, &mut self.account);
        let fault = self.dice.first([
            (ways.garbage, Fault::Garbage, &mut 0),
            (ways.reject, Fault::Reject, &mut account.rejected),
            (ways.drop, Fault::Drop, &mut account.dropped),
            (ways.ignore, Fault::Ignore, &mut account.ignored),
            (ways.lose, Fault::Lose, &mut account.lost),
        ]);
        if fault == Some(Fault::Garbage) {
            self.say(link, vec![0xff; 8], queue);
            return false;
        }
        let answer = Fault::answer(fault);
        account.accepted += u64::from(answer == Some(reason::SUCCESS));
        if Fault::copies(fault) > 0 {
            self.deliver(link, publish, queue);
        }
        let answer = Answer::new(publish, answer);
        let is_late = answer.is_some() && self.dice.hits(self.behaviour.late);
        let late_by = match is_late {
            true => self.behaviour.late_by,
            false => Micros::ZERO,
        };
        self.answer_after(late_by, link, answer, queue);
        true
    }

    /// Answers a publish, if it waits for that, later than usual by a time.
    pub(crate) fn answer_after(
        &mut self,
        late_by: Micros,
        link: u32,
        answer: Option<Answer>,
        queue: &mut Queue,
    ) {
        let Some(answer) = answer else { return };
        let session = self.ends[link as usize].session;
        let answer = Event::Answer {
            link,
            session,
            answer,
        };
        queue.push(queue.now() + self.behaviour.answer_after + late_by, answer);
    }

    /// Takes note of a device that a gateway's link says is there; false if the publish is not that.
    fn is_announcement(&mut self, link: u32, publish: &Incoming<'_>) -> bool {
        let end = &mut self.ends[link as usize];
        match (self.dialect.server.read)(&end.name, &publish.topic, publish.payload) {
            DevicePublish::Announced { device, .. } => {
                self.account.announced += 1;
                end.announced.insert(device.to_owned());
                true
            }
            DevicePublish::Data(data) => {
                let is_gateways =
                    (self.dialect.topic)(&publish.topic).is_for_gateways == Some(true);
                let unknown = data.devices().filter(|name| !end.announced.contains(*name));
                self.account.unannounced += unknown.filter(|_| is_gateways).count() as u64;
                false
            }
            DevicePublish::Message { .. }
            | DevicePublish::Unreadable { .. }
            | DevicePublish::Published(_)
            | DevicePublish::Refused(_)
            | DevicePublish::Ignored
            | DevicePublish::Taken
            | DevicePublish::Invalid
            | DevicePublish::Unknown
            | DevicePublish::Foreign
            | DevicePublish::Other => false,
        }
    }

    /// The topic that a publish surfaces on; of several devices that it names the first one's.
    fn surface(&self, link: u32, publish: &Incoming<'_>) -> String {
        let name = &self.ends[link as usize].name;
        let mut topic = String::new();
        let read = (self.dialect.server.read)(name, &publish.topic, publish.payload);
        if let DevicePublish::Data(data) = read {
            for device in data.devices().take(1) {
                data.write_surface(device, &mut topic);
            }
        } else if let DevicePublish::Published(published) = read {
            published.write_surface(&mut topic);
        } else {
            topic.push_str(&publish.topic);
        }
        topic
    }

    fn deliver(&mut self, link: u32, publish: &Incoming<'_>, queue: &mut Queue) {
        let mut copy = Copy::of(publish, self.surface(link, publish));
        let (dice, ways) = (&mut self.dice, &self.behaviour);
        let mut at = queue.now() + ways.deliver_after;
        if dice.hits(ways.reorder) {
            at = at + ways.deliver_after + ways.late_by;
        }
        if dice.hits(ways.corrupt)
            && let Some(last) = copy.payload.last_mut()
        {
            *last ^= 1;
            self.account.corrupted += 1;
        }
        if dice.hits(ways.duplicate) {
            self.account.delivered += 1;
            self.account.duplicated += 1;
            queue.push(at + ways.deliver_after, Event::Copy(copy.clone()));
        }
        self.account.delivered += 1;
        queue.push(at, Event::Copy(copy));
    }

    pub(crate) fn say(&mut self, link: u32, bytes: Vec<u8>, queue: &mut Queue) {
        let end = &self.ends[link as usize];
        if !bytes.is_empty() && !end.is_mute {
            let conn = end.conn;
            let event = Event::ToDevice { link, conn, bytes };
            queue.push(queue.now() + self.behaviour.latency, event);
        }
    }

    fn hang_up(&mut self, link: u32, is_reset: bool, queue: &mut Queue) {
        let conn = self.ends[link as usize].conn;
        let event = Event::EndToDevice {
            link,
            conn,
            is_reset,
        };
        queue.push(queue.now() + self.behaviour.latency, event);
        self.drop_connection(link);
    }

    /// The connection is over for the platform; a session that is to outlive it is kept.
    fn drop_connection(&mut self, link: u32) {
        let end = &mut self.ends[link as usize];
        let session = end.server.take().map(|mut server| server.take_session());
        if end.outlives && session.is_some() {
            end.kept = session;
        } else if end.kept.is_none() {
            end.mail = Mail::after(&end.mail);
        }
        end.outlives = false;
        end.conn = 0;
        end.unread.clear();
        end.is_mute = false;
        end.has_subscribed = false;
        end.announced.clear();
    }
}
