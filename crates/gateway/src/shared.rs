//! State that the gateway's threads share.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use muster_model::Micros;
use muster_platform::Waiting;
use rustc_hash::FxHashMap;

use crate::account::{Book, GatewayAccount};
use crate::board::Board;
use crate::config::GatewayConfig;
use crate::fault_plan::FaultPlan;
use crate::lock::locked;
use crate::mail::{Mail, Post};
use crate::message::Message;
use crate::outlets::Outlets;
use crate::registered_devices::RegisteredDevices;
use crate::registry::Registry;
use crate::routes::{Routes, SessionRef};
use crate::waiter::Waiter;

/// Most requests that wait for a command, of a thread and of all: one for each of the devices that one
/// process of a generator can have, several times over.
pub(crate) const QUERIES_MAX: usize = 100_000;
/// Devices whose gateway is known at least: as many as a large run has, at some 150 bytes each.
const SPOKEN_FOR_MAX: usize = 500_000;
/// Most announced devices with a known gateway; devices beyond get no commands.
const ANNOUNCED_MAX: usize = 1_000_000;

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: GatewayConfig,
    /// True if there is no misbehaviour to plan, so that uplinks take the short way.
    pub(crate) behaves: bool,
    pub(crate) routes: RwLock<Routes>,
    pub(crate) registry: Mutex<FxHashMap<Box<str>, SessionRef>>,
    pub(crate) retained: Mutex<Retained>,
    pub(crate) fault_plan: Mutex<FaultPlan>,
    /// Of devices that a gateway announced, what that gateway's link logged in as.
    pub(crate) gateways: Mutex<FxHashMap<Box<str>, Arc<str>>>,
    /// The devices that it knows over CoAP; none is all.
    pub(crate) registered_devices: Option<RegisteredDevices>,
    /// Requests that wait for a command, by their devices.
    pub(crate) waiting: Mutex<Waiting<Waiter>>,
    /// Commands that were given a number.
    requests: AtomicU32,
    pub(crate) managed: Managed,
    pub(crate) outlets: Outlets,
    pub(crate) account: Book,
    pub(crate) stopping: AtomicBool,
    posts: Vec<Post>,
}

/// State of the management API.
#[derive(Debug)]
pub(crate) struct Managed {
    /// Provisioned things of SAP Edge.
    pub(crate) registered: Mutex<Registry>,
    /// The store of ThingsBoard; none if there is none.
    pub(crate) board: Option<Arc<Board>>,
}

/// The device, or the gateway, that a link belongs to.
#[derive(Debug)]
pub(crate) struct LinkOwner<'a> {
    pub(crate) name: Cow<'a, str>,
    /// True if it may speak for other devices.
    pub(crate) is_gateway: bool,
}

impl Shared {
    /// The same with a store.
    pub(crate) fn with_board(self, board: Option<Board>) -> Self {
        let managed = Managed {
            board: board.map(Arc::new),
            ..self.managed
        };
        Self { managed, ..self }
    }

    pub(crate) fn new(config: GatewayConfig) -> Self {
        let threads = config.threads.max(1);
        let management = config.management.as_ref();
        let gateway = management.map_or("", |management| &management.gateway);
        Self {
            managed: Managed {
                registered: Mutex::new(Registry::new(gateway)),
                board: None,
            },
            behaves: config.behaviour.behaves(),
            routes: RwLock::default(),
            registry: Mutex::default(),
            retained: Mutex::default(),
            gateways: Mutex::default(),
            registered_devices: config.devices.as_deref().map(RegisteredDevices::new),
            waiting: Mutex::new(Waiting::new(QUERIES_MAX, SPOKEN_FOR_MAX)),
            requests: AtomicU32::default(),
            fault_plan: Mutex::new(FaultPlan::new(&config)),
            outlets: Outlets::new(&config),
            account: Book::new(threads),
            stopping: AtomicBool::new(false),
            posts: (0..threads).map(|_| Post::default()).collect(),
            config,
        }
    }

    /// Notes which gateway speaks for a device, or that none does any more.
    pub(crate) fn announce(&self, device: &str, gateway: Option<Arc<str>>) {
        let mut gateways = locked(&self.gateways);
        match gateway {
            Some(gateway) if gateways.len() < ANNOUNCED_MAX => {
                gateways.insert(device.into(), gateway);
            }
            Some(_) => {}
            None => {
                gateways.remove(device);
            }
        }
    }

    /// The next number of a command: from 1 to 2^31 - 1, and then again.
    pub(crate) fn next_request(&self) -> u32 {
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        before % (i32::MAX as u32) + 1
    }

    pub(crate) fn threads(&self) -> u16 {
        self.posts.len() as u16
    }

    pub(crate) fn post(&self, shard: u16) -> &Post {
        &self.posts[usize::from(shard)]
    }

    /// A full queue outside of the threads has room again: their publishers may be read.
    pub(crate) fn announce_room(&self) {
        self.posts
            .iter()
            .for_each(|post| post.send(&mut vec![Mail::Room]));
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.posts.iter().for_each(Post::wake);
    }

    /// True if a device was provisioned, or need not be. With a store, its token says so.
    pub(crate) fn is_registered(&self, name: &str) -> bool {
        let management = self.config.management.as_ref();
        self.managed.board.is_some()
            || !management.is_some_and(|management| management.only_provisioned)
            || locked(&self.managed.registered).has_device(name)
    }

    /// True if the tenant of the store may send no more messages.
    pub(crate) fn is_used_up(&self, now: Micros) -> bool {
        let board = self.managed.board.as_ref();
        board.is_some_and(|board| board.is_used_up(now))
    }

    /// Returns the owner of a link that gave this name. With a store it is the token's device; none if the token
    /// is unknown and has to be known.
    pub(crate) fn link_owner<'a>(&self, given: Cow<'a, str>) -> Option<LinkOwner<'a>> {
        let has_gateways = !self.config.behaviour.no_gateways;
        let free = LinkOwner {
            name: given,
            is_gateway: has_gateways,
        };
        let Some(board) = &self.managed.board else {
            return Some(free);
        };
        let server = &self.config.dialect.server;
        let is_free = (server.answers_unasked)(&free.name) || !board.only_provisioned();
        match board.owner_of(&free.name) {
            Some(owner) => Some(LinkOwner {
                name: owner.name.into(),
                is_gateway: has_gateways && owner.is_gateway,
            }),
            None => is_free.then_some(free),
        }
    }

    pub(crate) fn account(&self) -> GatewayAccount {
        let mut account = self.account.read();
        account.subscriptions = self.routes.read().map_or(0, |routes| routes.len() as u64);
        account.misbehaved = locked(&self.fault_plan).account();
        account
    }
}

/// Retained messages by topic (section 3.3.1.3).
#[derive(Debug, Default)]
pub(crate) struct Retained(BTreeMap<Box<str>, Arc<Message>>);

impl Retained {
    /// Most topics with a retained message: one for each of the devices that one process of a
    /// gateway can have, several times over.
    const MAX: usize = 100_000;

    /// Retains a message, or forgets the topic's one if the payload is empty; false if full.
    pub(crate) fn set(&mut self, message: Message) -> bool {
        if message.payload.is_empty() {
            self.0.remove(&message.topic);
        } else if self.0.len() < Self::MAX || self.0.contains_key(&message.topic) {
            self.0.insert(message.topic.clone(), Arc::new(message));
        } else {
            return false;
        }
        true
    }

    pub(crate) fn matching(&self, filter: &str, now: Micros) -> Vec<Arc<Message>> {
        let matches = |topic: &str| muster_protocol::mqtt::topic::matches(filter, topic);
        let wanted = self
            .0
            .iter()
            .filter(|(topic, message)| matches(topic) && !message.is_void(now));
        wanted.map(|(_, message)| Arc::clone(message)).collect()
    }
}
