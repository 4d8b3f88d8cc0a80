//! The addresses of AMQP 1.0: every thread finds here where a message goes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, RwLock};

use muster_platform::{AmqpServer, AmqpWay, Commanded, Dialect};
use muster_protocol::mqtt::topic::matches;
use rustc_hash::FxHashMap;

use super::address::Address;
use super::sending::Sending;
use crate::backlog::Room;
use crate::broker::Routed;
use crate::fault::Response;
use crate::lock::locked;
use crate::message::Parcel;
use crate::shared::Shared;
use crate::thread::Ctx;
use crate::uplink::Uplink;

/// Most addresses: a few for each tenant of a large installation.
const ADDRESSES_MAX: usize = 10_000;
/// Commands whose reply addresses are known at the most: as many as a large run has under way.
const REPLIES_MAX: usize = 100_000;
/// Commands that wait for the disposition of one uplink at the most: its answer carries one of them.
const HELD_MAX: usize = 16;

/// The addresses, and where replies to commands go.
#[derive(Debug)]
pub(crate) struct Exchange {
    dialect: Dialect,
    addresses: RwLock<Addresses>,
    replies: Mutex<ReplyAddresses>,
    /// Devices whose uplinks wait for a disposition, and that want a command then.
    asking: Mutex<FxHashMap<Box<str>, HeldCommands>>,
}

/// Commands that came before the disposition of their device's uplink, in order.
type HeldCommands = Arc<Mutex<Vec<Sending>>>;

/// Notes an uplink as waiting for its disposition until it is dropped. Commands to its device are passed on then:
/// the thread of the uplink has the disposition before them.
#[derive(Debug)]
pub(super) struct AskingGuard {
    shared: Arc<Shared>,
    exchange: Arc<Exchange>,
    device: Box<str>,
    /// The thread of the uplink.
    shard: u16,
    held: HeldCommands,
}

impl Drop for AskingGuard {
    fn drop(&mut self) {
        let mut asking = locked(&self.exchange.asking);
        let known = asking.get(&self.device);
        // A later uplink of the device may have taken its place.
        if known.is_some_and(|known| Arc::ptr_eq(known, &self.held)) {
            asking.remove(&self.device);
        }
        drop(asking);
        for command in locked(&self.held).drain(..) {
            command.post(&self.shared, self.shard);
        }
    }
}

#[derive(Debug, Default)]
struct Addresses {
    by_name: FxHashMap<Box<str>, Arc<Address>>,
    /// Addresses that are filters of topics.
    filters: Vec<Arc<Address>>,
}

/// Reply addresses by tenant and correlation id; the oldest is forgotten first.
#[derive(Debug, Default)]
struct ReplyAddresses {
    by_command: FxHashMap<Box<str>, Box<str>>,
    in_order: VecDeque<Box<str>>,
}

/// An uplink whose device waits for a disposition.
#[derive(Debug)]
pub(crate) struct Offer {
    /// The thread that gets the answer.
    pub(crate) shard: u16,
    pub(crate) offered: Offered,
}

/// An uplink that was offered to receivers.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) uplink: Box<Uplink>,
    /// The answer to its sender if a receiver takes it.
    pub(crate) response: Response,
}

/// The way that is open to an uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passage {
    /// Through the receivers, to which it has to be offered.
    Direct,
    /// None: its queue is full or has no room to exist, and it has to be refused.
    Full,
    /// Publishing, as to all subscribers.
    Open,
}

impl Exchange {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            addresses: RwLock::default(),
            replies: Mutex::default(),
            asking: Mutex::default(),
        }
    }

    /// Notes an uplink whose device wants a command once a receiver has accepted it; none if it wants none.
    pub(super) fn note_asking(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        offer: &Offer,
    ) -> Option<AskingGuard> {
        let uplink = &offer.offered.uplink;
        if !uplink.origin.wants_command {
            return None;
        }
        let (_, device) = uplink.message.topic.split_once('/')?;
        let held = HeldCommands::default();
        locked(&self.asking).insert(device.into(), Arc::clone(&held));
        Some(AskingGuard {
            shared: Arc::clone(shared),
            exchange: Arc::clone(self),
            device: device.into(),
            shard: offer.shard,
            held,
        })
    }

    /// Keeps a command until the uplink of its device has its disposition. It comes back if none waits for one, or
    /// if too many commands are kept.
    pub(super) fn hold(&self, to: &Commanded<'_>, command: Sending) -> Result<(), Sending> {
        let asking = locked(&self.asking);
        let Some(held) = asking.get(key(to.tenant, to.device).as_str()) else {
            return Err(command);
        };
        let mut held = locked(held);
        if held.len() >= HELD_MAX {
            return Err(command);
        }
        held.push(command);
        Ok(())
    }

    pub(super) fn server(&self) -> &'static AmqpServer {
        &self.dialect.spec().server.amqp
    }

    pub(crate) fn passage(&self, topic: &str) -> Passage {
        let Some(surface) = (self.server().surface)(topic) else {
            return Passage::Open;
        };
        match surface.way {
            AmqpWay::Direct => Passage::Direct,
            AmqpWay::Stored if !self.has_room(surface.address) => Passage::Full,
            AmqpWay::Stored | AmqpWay::Reply | AmqpWay::Published => Passage::Open,
        }
    }

    /// True if the address can queue a message. A missing address is created, so that it cannot be refused later.
    fn has_room(&self, name: &str) -> bool {
        self.open(name).is_some_and(|at| !at.backlog.is_full())
    }

    /// Offers an uplink to the receivers of its address; it comes back at once if there are none.
    pub(crate) fn offer(&self, offer: Offer) -> Result<(), Offer> {
        let surface = (self.server().surface)(&offer.offered.uplink.message.topic);
        match surface.and_then(|surface| self.find(surface.address)) {
            Some(address) => address.offer(offer),
            None => Err(offer),
        }
    }

    /// Queues a message on each address that it is due to.
    pub(crate) fn store(&self, ctx: &Ctx<'_>, parcel: &mut Parcel<'_>) -> Routed {
        let mut routed = Routed::default();
        let topic = parcel.publish.topic;
        let Some(surface) = (self.server().surface)(topic) else {
            return routed;
        };
        match surface.way {
            AmqpWay::Direct => self.store_on(ctx, self.find(surface.address), parcel, &mut routed),
            AmqpWay::Stored => self.store_on(ctx, self.open(surface.address), parcel, &mut routed),
            AmqpWay::Reply => {
                let id = surface.correlation_id.unwrap_or_default();
                let to = self.reply_address(surface.address, id);
                let to = to.and_then(|to| self.find(&to));
                self.store_on(ctx, to, parcel, &mut routed);
            }
            AmqpWay::Published => {
                self.store_on(ctx, self.find(topic), parcel, &mut routed);
                for address in self.filters(topic) {
                    self.store_on(ctx, Some(address), parcel, &mut routed);
                }
            }
        }
        routed
    }

    fn store_on(
        &self,
        ctx: &Ctx<'_>,
        on: Option<Arc<Address>>,
        parcel: &mut Parcel<'_>,
        routed: &mut Routed,
    ) {
        let Some(address) = on else { return };
        routed.copies += 1;
        match address.backlog.store(parcel.keep(ctx.now())) {
            Room::Enough => {}
            Room::Little => routed.is_congested = true,
            Room::None => ctx.counts().overflowed.more(),
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<Arc<Address>> {
        let addresses = self.addresses.read().ok()?;
        addresses.by_name.get(name).cloned()
    }

    fn filters(&self, topic: &str) -> Vec<Arc<Address>> {
        let Ok(addresses) = self.addresses.read() else {
            return Vec::new();
        };
        let filters = addresses.filters.iter();
        let matching = filters.filter(|address| matches(address.name(), topic));
        matching.cloned().collect()
    }

    /// The address of that name, made if it is new; none if there are too many.
    pub(super) fn open(&self, name: &str) -> Option<Arc<Address>> {
        if let Some(known) = self.find(name) {
            return Some(known);
        }
        let mut addresses = self.addresses.write().ok()?;
        // Another thread may have made it meanwhile.
        if let Some(known) = addresses.by_name.get(name) {
            return Some(Arc::clone(known));
        }
        if addresses.by_name.len() >= ADDRESSES_MAX {
            return None;
        }
        let address = Arc::new(Address::new(name));
        addresses.by_name.insert(name.into(), Arc::clone(&address));
        if name.contains(['+', '#']) {
            addresses.filters.push(Arc::clone(&address));
        }
        Some(address)
    }

    /// Notes the address of the reply to a command: two levels, and a reply id.
    pub(super) fn expect_reply(&self, reply_to: &str, correlation_id: &str) {
        let end = reply_to.match_indices('/').nth(1);
        let Some((end, _)) = end else { return };
        let command: Box<str> = key(&reply_to[..end], correlation_id).into();
        let mut replies = locked(&self.replies);
        let known = replies.by_command.insert(command.clone(), reply_to.into());
        if known.is_none() {
            replies.in_order.push_back(command);
        }
        if replies.in_order.len() > REPLIES_MAX
            && let Some(oldest) = replies.in_order.pop_front()
        {
            replies.by_command.remove(&oldest);
        }
    }

    /// The address of the reply to a command.
    fn reply_address(&self, beginning: &str, correlation_id: &str) -> Option<Box<str>> {
        let replies = locked(&self.replies);
        let command = key(beginning, correlation_id);
        replies.by_command.get(command.as_str()).cloned()
    }
}

fn key(beginning: &str, end: &str) -> String {
    [beginning, "/", end].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_reply_address_is_forgotten_first() {
        let exchange = Exchange::new(Dialect::Hono);
        let reply = |id: usize| exchange.reply_address("command_response/t", &id.to_string());
        for id in 0..=REPLIES_MAX {
            exchange.expect_reply(&format!("command_response/t/{id}"), &id.to_string());
        }
        assert_eq!(reply(0), None);
        assert_eq!(reply(1).as_deref(), Some("command_response/t/1"));
        assert!(reply(REPLIES_MAX).is_some());
    }

    #[test]
    fn an_event_without_room_for_its_address_is_refused() {
        let exchange = Exchange::new(Dialect::Hono);
        for at in 0..ADDRESSES_MAX - 1 {
            assert!(exchange.open(&format!("event/{at}")).is_some());
        }
        assert_eq!(exchange.passage("event/last/d"), Passage::Open);
        assert_eq!(exchange.passage("event/more/d"), Passage::Full);
        assert_eq!(exchange.passage("event/last/d"), Passage::Open);
    }

    #[test]
    fn addresses_have_a_bound_and_filters_find_their_topics() {
        let exchange = Exchange::new(Dialect::Mqtt);
        for at in 0..ADDRESSES_MAX - 1 {
            assert!(exchange.open(&format!("a/{at}")).is_some());
        }
        assert!(exchange.open("a/+").is_some());
        assert!(exchange.open("a/0").is_some(), "a known one");
        assert!(exchange.open("b").is_none(), "one too many");
        let found = exchange.filters("a/7");
        assert_eq!(
            found.iter().map(|it| it.name()).collect::<Vec<_>>(),
            ["a/+"]
        );
    }
}
