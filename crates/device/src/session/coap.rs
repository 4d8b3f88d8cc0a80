//! CoAP: requests of links over datagrams, on unshared and on shared sockets.
//!
//! It owns what lies between a message and its answer: copies of datagrams, blocks of bodies, and
//! whose exchange a datagram on a shared socket is about.

mod answering;
mod blocks;
mod observing;
mod requesting;
mod sockets;

use muster_measure::LinkAccount;
use muster_model::{ConnectFailure, Micros};
use muster_plan::{ClientPlan, CoapSettings, SocketUse};
use muster_platform::Protocol;
use muster_protocol::coap::{self, ExchangeKey};

use self::blocks::{BlockDue, Bodies};
use self::observing::is_observation;
use self::sockets::Sockets;
use super::{
    Context, Event, Further, Input, Outgoing, Session, SharedSockets, Transport, Unsent, View,
};
use crate::client::Client;
use crate::fleets::FleetLinks;
use crate::session::SocketSlot;
use crate::token::Token;

/// CoAP, with the sockets that links share.
#[derive(Debug, Default)]
pub struct Coap {
    sockets: Sockets,
    /// Answers that come in blocks.
    bodies: Bodies,
    /// Blocks that could not be asked for at once, by link: at most one an open request.
    blocks_due: Vec<(u32, BlockDue)>,
    /// The datagram that was rendered last, if it is no message's first.
    further: Option<Further<ExchangeKey>>,
    /// Answers to messages that nobody waits for.
    stray: u64,
}

/// The one ping of a link.
const PING: coap::Ticket = coap::Ticket { slot: 0, name: 0 };

/// The session of one link.
#[derive(Debug)]
pub enum CoapState {
    /// An endpoint for this link alone.
    Own(coap::Client),
    /// One endpoint with all links of its socket.
    Shared(SocketSlot),
}

impl Session for Coap {
    type Settings = CoapSettings;
    type State = CoapState;
    type Key = ExchangeKey;
    type Unfit = coap::Refused;

    const PROTOCOL: Protocol = Protocol::Coap;
    const TRANSPORT: Transport = Transport::Datagrams;

    fn settings(client: &ClientPlan) -> Option<&CoapSettings> {
        client.coap()
    }

    fn add_fleet(&mut self, client: &Client<CoapSettings>, links: &FleetLinks) {
        self.sockets.add(&client.settings, links);
    }

    fn state(&self, client: &Client<CoapSettings>, link: u32, seed: u64) -> CoapState {
        let settings = &client.settings;
        let slot = match settings.sockets {
            SocketUse::Own | SocketUse::SharedPort { .. } => None,
            SocketUse::SharedEndpoint { .. } => self.sockets.slot_of_last(link),
        };
        match slot {
            Some(slot) => CoapState::Shared(slot),
            None => CoapState::Own(coap::Client::new(settings.client.clone(), seed)),
        }
    }

    /// Opens without a CONNECT, unless the link observes; a check asks by a ping.
    fn opened(&mut self, at: &mut Context<'_, Self>, out: &mut Vec<u8>) -> Option<Event<'static>> {
        match at.state {
            CoapState::Own(client) if at.class.client.settings.pings => {
                // A new session has room for one.
                let _ = client.ping(at.now, PING, out);
                None
            }
            CoapState::Own(_) | CoapState::Shared(_) if at.class.observed().is_some() => {
                // A new session has room for one; else the time of the handshake ends.
                let _ = self.observe(at, None, out);
                None
            }
            CoapState::Own(_) | CoapState::Shared(_) => Some(Event::Ready),
        }
    }

    #[inline]
    fn poll<'a>(
        &mut self,
        at: &mut Context<'_, Self>,
        input: &mut Input<'a>,
        out: &mut Vec<u8>,
    ) -> Option<Event<'a>> {
        let datagram = input.datagram()?;
        let event = match at.state {
            CoapState::Own(client) => {
                let is_pinging = at.class.client.settings.pings && client.deadline().is_some();
                let event = client.receive(at.now, datagram, out);
                if is_pinging {
                    return Some(pinged(event.as_ref()));
                }
                event
            }
            CoapState::Shared(_) => None,
        };
        self.received(at, input, &event?, out)
    }

    fn timer(&mut self, at: &mut Context<'_, Self>, out: &mut Vec<u8>) -> Option<Event<'static>> {
        let event = match at.state {
            CoapState::Own(client) => client.wake(at.now, out),
            CoapState::Shared(_) => None,
        };
        self.woken(at, &event?, out)
    }

    /// The deadline of a link that shares no socket; that of a shared socket is asked for apart.
    #[inline]
    fn deadline(_settings: &CoapSettings, state: &CoapState) -> Option<Micros> {
        match state {
            CoapState::Own(client) => client.deadline(),
            CoapState::Shared(_) => None,
        }
    }

    #[inline]
    fn submit(
        &mut self,
        at: &mut Context<'_, Self>,
        message: &Outgoing,
        out: &mut Vec<u8>,
    ) -> Result<Option<ExchangeKey>, Unsent<coap::Refused>> {
        self.request(at, message, out)
    }

    fn render_first(&mut self, at: &mut Context<'_, Self>, out: &mut Vec<u8>) -> bool {
        self.render_block(at, out)
    }

    #[inline]
    fn has_first(&self) -> bool {
        !self.blocks_due.is_empty()
    }

    #[inline]
    fn window_free(&self, state: &CoapState) -> u16 {
        match state {
            CoapState::Own(client) => client.window_free(0),
            CoapState::Shared(slot) => self.sockets.window_free(*slot),
        }
    }

    #[inline]
    fn silent_until(&self, state: &CoapState) -> Micros {
        match state {
            CoapState::Own(client) => client.held_until(0),
            CoapState::Shared(slot) => self.sockets.silent_until(*slot),
        }
    }

    fn forget(&mut self, state: &mut CoapState, _token: Token, key: Option<ExchangeKey>) {
        if let (Some(key), Some(mut exchanges)) = (key, self.sockets.exchanges(state)) {
            exchanges.forget(key);
        }
    }

    fn abandon(&mut self, state: &mut CoapState, key: ExchangeKey) {
        if let Some(mut exchanges) = self.sockets.exchanges(state) {
            exchanges.abandon(key);
        }
    }

    /// A shared socket goes on: only the link's exchanges end.
    fn closed(
        &mut self,
        _link: u32,
        state: &mut CoapState,
        open: impl Iterator<Item = ExchangeKey>,
    ) {
        match state {
            CoapState::Own(client) => client.drop_all(|_| {}),
            CoapState::Shared(_) => open.for_each(|key| self.abandon(state, key)),
        }
    }

    fn account<'a>(&'a self, states: impl Iterator<Item = &'a CoapState>, sum: &mut LinkAccount) {
        let own = states.filter_map(|state| match state {
            CoapState::Own(client) => Some(client.counts()),
            CoapState::Shared(_) => None,
        });
        for counts in own.chain(self.sockets.counts()) {
            sum.counters.coap_malformed += u64::from(counts.malformed);
            sum.counters.coap_stray += u64::from(counts.stray);
            sum.counters.coap_unexpected += u64::from(counts.unexpected);
            sum.counters.coap_duplicates += u64::from(counts.duplicates);
        }
        sum.counters.coap_stray += self.stray;
    }

    fn secured(&mut self, state: &mut CoapState) {
        match state {
            CoapState::Own(client) => client.begin_session(),
            CoapState::Shared(_) => {}
        }
    }
}

impl SharedSockets for Coap {
    #[inline]
    fn sockets(&self) -> u32 {
        self.sockets.count()
    }

    #[inline]
    fn slot_of(&self, class: u8, link: u32) -> Option<SocketSlot> {
        self.sockets.slot_of(class, link)
    }

    fn link_at(&self, slot: SocketSlot) -> Option<u32> {
        self.sockets.link_at(slot)
    }

    fn slots_of(&self, socket: u32) -> u32 {
        self.sockets.slots_of(socket)
    }

    fn poll_socket<'a>(
        &mut self,
        socket: u32,
        view: &mut View<'_, Self>,
        input: Option<&mut Input<'a>>,
        out: &mut Vec<u8>,
    ) -> Option<(u32, Option<Event<'a>>)> {
        let now = view.now;
        let endpoint = self.sockets.endpoint_mut(socket)?;
        let Some(input) = input else {
            let event = endpoint.wake(now, out)?;
            let link = self.link_of(socket, &event)?;
            return Some((link, self.woken(&mut view.at(link), &event, out)));
        };
        let event = endpoint.receive(now, input.datagram()?, out)?;
        let link = self.link_of(socket, &event)?;
        Some((link, self.received(&mut view.at(link), input, &event, out)))
    }

    fn socket_deadline(&self, socket: u32) -> Option<Micros> {
        self.sockets.endpoint(socket)?.deadline()
    }

    #[inline]
    fn take_further(&mut self) -> Option<Further<ExchangeKey>> {
        match self.further {
            None => None,
            Some(_) => self.further.take(),
        }
    }
}

impl Coap {
    /// The link on a shared socket that an event is about.
    fn link_of(&self, socket: u32, event: &coap::ClientEvent<'_>) -> Option<u32> {
        let index = event.ticket()?.slot;
        self.sockets.link_at(SocketSlot { socket, index })
    }
}

/// The meaning of the first datagram on a link that pings: only a reset is a sign of life (RFC 7252 section 4.3).
fn pinged(event: Option<&coap::ClientEvent<'_>>) -> Event<'static> {
    match event {
        Some(coap::ClientEvent::Pong { .. }) => Event::Ready,
        _ => Event::Refused(ConnectFailure::Malformed),
    }
}
