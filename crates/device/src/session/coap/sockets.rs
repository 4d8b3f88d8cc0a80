//! UDP sockets that links of a fleet share: which link sits at which, by formula.

use muster_model::{Micros, mix};
use muster_protocol::coap;

use super::{CoapSettings, CoapState, SocketUse};
use crate::fleets::FleetLinks;
use crate::session::SocketSlot;

/// The links of a class, dealt round to its sockets, so that links which connect one after the other
/// do so on different ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Bank {
    first_link: u32,
    links: u32,
    first_socket: u32,
    /// None where each link has its own.
    sockets: u32,
}

impl Bank {
    fn slot_of(&self, link: u32) -> Option<SocketSlot> {
        let place = link - self.first_link;
        let index = place.checked_div(self.sockets)?;
        let socket = self.first_socket + place % self.sockets;
        Some(SocketSlot { socket, index })
    }

    /// Link at a place of a socket, if the socket is this class's.
    fn link_at(&self, slot: SocketSlot) -> Option<u32> {
        let place = slot.socket.checked_sub(self.first_socket)?;
        if place >= self.sockets {
            return None;
        }
        let place = u64::from(slot.index) * u64::from(self.sockets) + u64::from(place);
        let place = u32::try_from(place).ok().filter(|it| *it < self.links)?;
        Some(self.first_link + place)
    }

    fn slots_of(&self, socket: u32) -> u32 {
        (self.links - (socket - self.first_socket)).div_ceil(self.sockets)
    }
}

/// The shared sockets of a shard.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// By class.
    banks: Vec<Bank>,
    /// By socket; none where each link is an endpoint.
    endpoints: Vec<Option<coap::SharedClient>>,
}

impl Sockets {
    /// Seats the links of the next class.
    pub(super) fn add(&mut self, settings: &CoapSettings, fleet: &FleetLinks) {
        let first_socket = self.count();
        let per_socket = match settings.sockets {
            SocketUse::Own => return self.banks.push(Bank::default()),
            SocketUse::SharedEndpoint { links } | SocketUse::SharedPort { links } => links,
        };
        let bank = Bank {
            first_link: fleet.first,
            links: fleet.count,
            first_socket,
            sockets: fleet.count.div_ceil(per_socket.max(1)),
        };
        for socket in first_socket..first_socket + bank.sockets {
            let endpoint = || {
                let seed = mix(fleet.seed, u64::from(socket));
                coap::SharedClient::shared(settings.client.clone(), seed, bank.slots_of(socket))
            };
            let is_endpoint = matches!(settings.sockets, SocketUse::SharedEndpoint { .. });
            self.endpoints.push(is_endpoint.then(endpoint));
        }
        self.banks.push(bank);
    }

    pub(super) fn count(&self) -> u32 {
        self.endpoints.len() as u32
    }

    /// Number of links that share a socket.
    pub(super) fn slots_of(&self, socket: u32) -> u32 {
        let has_it = |bank: &&Bank| socket.wrapping_sub(bank.first_socket) < bank.sockets;
        let bank = self.banks.iter().find(has_it);
        bank.map_or(0, |bank| bank.slots_of(socket))
    }

    #[inline]
    pub(super) fn slot_of(&self, class: u8, link: u32) -> Option<SocketSlot> {
        self.banks.get(usize::from(class))?.slot_of(link)
    }

    /// The place of a link of the class that was added last.
    pub(super) fn slot_of_last(&self, link: u32) -> Option<SocketSlot> {
        self.banks.last()?.slot_of(link)
    }

    pub(super) fn link_at(&self, slot: SocketSlot) -> Option<u32> {
        self.banks.iter().find_map(|bank| bank.link_at(slot))
    }

    pub(super) fn endpoint(&self, socket: u32) -> Option<&coap::SharedClient> {
        self.endpoints.get(socket as usize)?.as_ref()
    }

    pub(super) fn endpoint_mut(&mut self, socket: u32) -> Option<&mut coap::SharedClient> {
        self.endpoints.get_mut(socket as usize)?.as_mut()
    }

    /// Counts of the sockets that are one endpoint with their links.
    pub(super) fn counts(&self) -> impl Iterator<Item = &coap::ClientCounts> {
        self.endpoints
            .iter()
            .flatten()
            .map(coap::SharedClient::counts)
    }

    /// Number of further requests that a link may open on its socket.
    pub(super) fn window_free(&self, slot: SocketSlot) -> u16 {
        let endpoint = self.endpoint(slot.socket);
        endpoint.map_or(0, |endpoint| endpoint.window_free(slot.index))
    }

    /// End of the silence that the platform asked of a link.
    pub(super) fn silent_until(&self, slot: SocketSlot) -> Micros {
        let endpoint = self.endpoint(slot.socket);
        endpoint.map_or(Micros::ZERO, |endpoint| endpoint.held_until(slot.index))
    }

    /// The exchanges of a link.
    pub(super) fn exchanges<'a>(&'a mut self, state: &'a mut CoapState) -> Option<Exchanges<'a>> {
        match state {
            CoapState::Own(client) => Some(Exchanges::Own(client)),
            CoapState::Shared(slot) => {
                let endpoint = self.endpoint_mut(slot.socket)?;
                Some(Exchanges::Shared(endpoint, slot.index))
            }
        }
    }
}

/// The exchanges of one link.
#[derive(Debug)]
pub(super) enum Exchanges<'a> {
    /// On a separate socket, or in a separate session on a shared one.
    Own(&'a mut coap::Client),
    /// On a socket that is one endpoint with all its links; its index there.
    Shared(&'a mut coap::SharedClient, u32),
}

impl Exchanges<'_> {
    /// Sends a request; `name` comes back in events.
    pub(super) fn request(
        &mut self,
        now: Micros,
        name: u32,
        request: &coap::Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<coap::ExchangeKey, coap::Refused> {
        match self {
            Self::Own(client) => client.request(now, coap::Ticket { slot: 0, name }, request, out),
            Self::Shared(client, index) => {
                let ticket = coap::Ticket { slot: *index, name };
                client.request(now, ticket, request, out)
            }
        }
    }

    /// Sends a request that observes; `name` comes back in its events.
    pub(super) fn observe(
        &mut self,
        now: Micros,
        name: u32,
        request: &coap::Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<coap::ExchangeKey, coap::Refused> {
        match self {
            Self::Own(client) => client.observe(now, coap::Ticket { slot: 0, name }, request, out),
            Self::Shared(client, index) => {
                let ticket = coap::Ticket { slot: *index, name };
                client.observe(now, ticket, request, out)
            }
        }
    }

    /// Sends a copy of a request, or its next block.
    pub(super) fn again(
        &mut self,
        now: Micros,
        key: coap::ExchangeKey,
        request: &coap::Request<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), coap::Refused> {
        match self {
            Self::Own(client) => client.again(now, key, request, out),
            Self::Shared(client, _) => client.again(now, key, request, out),
        }
    }

    /// Ends an exchange whose answer nobody wants.
    pub(super) fn abandon(&mut self, key: coap::ExchangeKey) {
        match self {
            Self::Own(client) => client.abandon(key),
            Self::Shared(client, _) => client.abandon(key),
        }
    }

    /// Gives an exchange up from its start; up to `until` it is known whose an answer is.
    pub(super) fn leave(&mut self, key: coap::ExchangeKey, until: Micros) {
        match self {
            Self::Own(client) => client.leave(key, until),
            Self::Shared(client, _) => client.leave(key, until),
        }
    }

    /// Gives an exchange up whose answer may come all the same.
    pub(super) fn forget(&mut self, key: coap::ExchangeKey) {
        match self {
            Self::Own(client) => client.forget(key),
            Self::Shared(client, _) => client.forget(key),
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Each link has one slot, nobody else sits there, and no socket has more than it may.
        #[test]
        fn each_link_has_a_seat_of_its_own(
            first_link in 0u32..1_000,
            links in 1u32..500,
            first_socket in 0u32..10,
            most in 1u32..600,
        ) {
            let sockets = links.div_ceil(most);
            let bank = Bank { first_link, links, first_socket, sockets };
            for link in first_link..first_link + links {
                let slot = bank.slot_of(link).expect("it shares a socket");
                prop_assert!((first_socket..first_socket + sockets).contains(&slot.socket));
                prop_assert!(slot.index < bank.slots_of(slot.socket));
                prop_assert!(bank.slots_of(slot.socket) <= most);
                prop_assert_eq!(bank.link_at(slot), Some(link));
            }
            let all: u32 = (first_socket..first_socket + sockets).map(|it| bank.slots_of(it)).sum();
            prop_assert_eq!(all, links);
            for socket in [first_socket.wrapping_sub(1), first_socket + sockets] {
                prop_assert_eq!(bank.link_at(SocketSlot { socket, index: 0 }), None);
            }
            let beyond = SocketSlot { socket: first_socket, index: bank.slots_of(first_socket) };
            prop_assert_eq!(bank.link_at(beyond), None);
        }
    }

    #[test]
    fn who_has_a_socket_of_its_own_has_no_seat() {
        assert_eq!(Bank::default().slot_of(0), None);
        assert_eq!(
            Bank::default().link_at(SocketSlot {
                socket: 0,
                index: 0
            }),
            None
        );
    }
}
