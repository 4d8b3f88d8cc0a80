//! What the gateway's threads share, and the mail between them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use muster_model::Micros;
use muster_net::Waker;
use muster_platform::Waiting;
use muster_transport::PeerIdentity;
use rustc_hash::FxHashMap;

use crate::account::{Counts, GatewayAccount, Subject, hash};
use crate::config::GatewayConfig;
use crate::known::Known;
use crate::management::{Counted, Registry};
use crate::message::Message;
use crate::plot::Plot;
use crate::resumable::Resumable;
use crate::routes::{Gauge, Routes, SessionRef};
use crate::secrets::Secrets;
use crate::shard::{QUERIES_MAX, SPOKEN_FOR_MAX, Session, Waiter};

/// No uplink has come yet.
const NEVER: u64 = u64::MAX;
/// Most subjects of certificates in the account: one for each of the devices that one process of a
/// gateway can have, several times over.
const SUBJECTS_MAX: usize = 100_000;

/// Most devices that gateways announced of which it is known whose they are; those beyond get no
/// commands.
const ANNOUNCED_MAX: usize = 1_000_000;

/// What the threads of one gateway share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: GatewayConfig,
    /// Whether there is no misbehaviour to plot, so that uplinks take the short way.
    pub(crate) behaves: bool,
    pub(crate) routes: RwLock<Routes>,
    /// Where the session of a client id lives.
    pub(crate) registry: Mutex<FxHashMap<Box<str>, SessionRef>>,
    pub(crate) retained: Mutex<Retained>,
    pub(crate) plot: Mutex<Plot>,
    /// Of devices that a gateway announced, what that gateway's link logged in as.
    pub(crate) gateways: Mutex<FxHashMap<Box<str>, Arc<str>>>,
    /// The devices that it knows over CoAP; none is all.
    pub(crate) known: Option<Known>,
    /// The keys that devices share with the gateway.
    pub(crate) secrets: Arc<Secrets>,
    /// The sessions that they may resume.
    pub(crate) resumable: Resumable,
    /// Requests that wait for a command, by their devices.
    pub(crate) waiting: Mutex<Waiting<Waiter>>,
    /// Commands that were given a number.
    pub(crate) requests: AtomicU32,
    /// What it was told of, where it has a management API.
    pub(crate) registered: Mutex<Registry>,
    /// What was processed each second, where a count node stores it.
    pub(crate) counted: Mutex<Counted>,
    pub(crate) counts: Vec<Counts>,
    pub(crate) stopping: AtomicBool,
    refused: Mutex<BTreeMap<u8, u64>>,
    handshakes_failed: Mutex<BTreeMap<String, u64>>,
    subjects: Mutex<BTreeMap<String, Subject>>,
    posts: Vec<Post>,
    first_uplink: AtomicU64,
}

/// Where a thread gets its mail.
#[derive(Debug, Default)]
struct Post {
    inbox: Mutex<VecDeque<Mail>>,
    waker: OnceLock<Waker>,
}

/// What one thread tells another.
#[derive(Debug)]
pub(crate) enum Mail {
    /// A copy for a session that lives there; the sender has counted it in the session's gauge,
    /// which bounds how much mail there can be.
    Deliver {
        to: SessionRef,
        grant: Grant,
        message: Arc<Message>,
    },
    /// A client came back on another thread.
    Claim(Claim),
    /// The answer: what the session was, if it was to be kept.
    Granted {
        to: SessionRef,
        session: Option<Box<Session>>,
    },
    /// The first uplink of all came at this instant.
    FirstUplink(Micros),
    /// A full queue has room again.
    Room,
    /// A command for a request that waits there.
    Command { to: Waiter, message: Arc<Message> },
}

/// A client's session is wanted on another thread.
#[derive(Debug)]
pub(crate) struct Claim {
    /// The session it was.
    pub(crate) of: SessionRef,
    /// The session it becomes.
    pub(crate) by: SessionRef,
    /// The gauge of that one.
    pub(crate) gauge: Arc<Gauge>,
    /// Whether it is to be thrown away (section 3.1.2.4).
    pub(crate) discard: bool,
}

/// How one copy goes to its subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) qos: muster_protocol::mqtt::Qos,
    pub(crate) retain: bool,
    pub(crate) id: Option<u32>,
}

impl Shared {
    pub(crate) fn new(config: GatewayConfig) -> Self {
        let threads = config.threads.max(1);
        let management = config.management.as_ref();
        let dtls = config.coaps.as_ref();
        let of_others = dtls.and_then(|dtls| dtls.secret.as_deref());
        let secrets = Secrets::new(&config.users, of_others);
        let gateway = management.map_or("", |management| &management.gateway);
        Self {
            registered: Mutex::new(Registry::new(gateway)),
            behaves: config.behaviour.behaves(),
            routes: RwLock::default(),
            registry: Mutex::default(),
            retained: Mutex::default(),
            gateways: Mutex::default(),
            known: config.devices.as_deref().map(Known::new),
            secrets: Arc::new(secrets),
            resumable: Resumable::default(),
            waiting: Mutex::new(Waiting::new(QUERIES_MAX, SPOKEN_FOR_MAX)),
            requests: AtomicU32::default(),
            plot: Mutex::new(Plot::new(&config)),
            counted: Mutex::default(),
            counts: (0..threads).map(|_| Counts::default()).collect(),
            stopping: AtomicBool::new(false),
            refused: Mutex::default(),
            handshakes_failed: Mutex::default(),
            subjects: Mutex::default(),
            posts: (0..threads).map(|_| Post::default()).collect(),
            first_uplink: AtomicU64::new(NEVER),
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

    /// How many uplinks went on so far.
    pub(crate) fn processed(&self) -> u64 {
        let of_threads = self.counts.iter();
        of_threads.map(|counts| counts.read().processed).sum()
    }

    pub(crate) fn threads(&self) -> u16 {
        self.posts.len() as u16
    }

    pub(crate) fn set_waker(&self, shard: u16, waker: Waker) {
        // Each thread sets its own, once.
        let _ = self.posts[usize::from(shard)].waker.set(waker);
    }

    /// Sends mail in order and wakes its reader.
    pub(crate) fn post(&self, shard: u16, mail: &mut Vec<Mail>) {
        if mail.is_empty() {
            return;
        }
        locked(&self.posts[usize::from(shard)].inbox).extend(mail.drain(..));
        self.wake(shard);
    }

    /// The next mail of a thread.
    pub(crate) fn collect(&self, shard: u16, into: &mut VecDeque<Mail>) {
        std::mem::swap(&mut *locked(&self.posts[usize::from(shard)].inbox), into);
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        (0..self.threads()).for_each(|shard| self.wake(shard));
    }

    /// Notes an uplink; true for the first one of all.
    pub(crate) fn is_first_uplink(&self, now: Micros) -> bool {
        self.first_uplink.load(Ordering::Relaxed) == NEVER
            && self
                .first_uplink
                .compare_exchange(NEVER, now.get(), Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    }

    pub(crate) fn refuse(&self, code: u8) {
        *locked(&self.refused).entry(code).or_default() += 1;
    }

    /// Notes a connection whose layers failed; the causes are few.
    pub(crate) fn handshake_failed(&self, cause: &str) {
        let mut failed = locked(&self.handshakes_failed);
        *failed.entry(cause.to_owned()).or_default() += 1;
    }

    /// Notes a client that showed a certificate.
    pub(crate) fn note_subject(&self, peer: PeerIdentity, client_id: &str) {
        let mut subjects = locked(&self.subjects);
        if subjects.len() < SUBJECTS_MAX || subjects.contains_key(&peer.subject) {
            let subject = subjects.entry(peer.subject).or_default();
            subject.note(peer.is_resumed, client_id);
        }
    }

    pub(crate) fn account(&self) -> GatewayAccount {
        let subscriptions = self.routes.read().map_or(0, |routes| routes.len() as u64);
        let mut account = GatewayAccount {
            subscriptions,
            misbehaved: {
                let plot = locked(&self.plot);
                let mut all = plot.misdeeds.read();
                all.extend(plot.command_misdeeds.read_commands());
                all
            },
            refused: locked(&self.refused).clone(),
            handshakes_failed: locked(&self.handshakes_failed).clone(),
            subjects: locked(&self.subjects).clone(),
            ..GatewayAccount::default()
        };
        for counts in &self.counts {
            let counts = counts.read();
            account.merge(&GatewayAccount {
                counts,
                ..GatewayAccount::default()
            });
        }
        account
    }

    fn wake(&self, shard: u16) {
        if let Some(waker) = self.posts[usize::from(shard)].waker.get() {
            waker.wake();
        }
    }
}

/// Takes a lock; a thread that panicked while holding it leaves counts that still add up.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Message {
    /// The name of the message in the account.
    pub(crate) fn hash(&self) -> u64 {
        hash(&self.payload)
    }
}
