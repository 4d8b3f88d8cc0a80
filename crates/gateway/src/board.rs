//! ThingsBoard's own part of the gateway: what it keeps behind the acknowledgement, and the REST calls that
//! read and change it.
//!
//! [`Board`] owns the store. The event loops pass each processed message to it and go on; one thread writes
//! messages in batches as the root rule chain says. The REST calls are answered once the store has their change.
//! Nothing here knows a socket of a device.

mod attributes;
mod bulk_import;
mod calls;
mod chains;
mod customers;
mod devices;
mod flow;
mod login;
mod owners;
mod points;
mod profiles;
mod questions;
mod queue;
mod records;
mod refusal;
pub(crate) mod rest;
mod serial;
mod series;
mod statistics;
mod store;
#[cfg(test)]
mod tests;
mod total;
mod writer;

use std::sync::atomic::{AtomicU64, Ordering};

use muster_model::Micros;
use muster_net::Clock;
use muster_platform::board_rest::{EntityId, EntityType};

use self::calls::Calls;
use self::login::Logins;
pub use self::login::TENANT_USER;
use self::owners::TokenOwner;
use self::queue::{Queue, Queued, Subject};
use self::rest::RestLimit;
use self::serial::Serial;
use self::statistics::Statistics;
use self::store::Store;
use self::total::MessageTotal;
pub(crate) use self::writer::Writer;
use crate::backlog::Room;
use crate::config::{GatewayConfig, ManagementConfig};
use crate::message::Parcel;
use crate::start_error::StartError;

/// The store of a ThingsBoard, and the state of its users and its writer.
#[derive(Debug)]
pub(crate) struct Board {
    store: Store,
    clock: Clock,
    logins: Logins,
    /// The service in the keys of counts.
    service: String,
    /// True if a device whose token is not in the store is refused.
    only_provisioned: bool,
    /// Devices of the tenant at the most; none is no limit.
    device_limit: Option<u32>,
    messages: MessageTotal,
    rest_limit: Option<RestLimit>,
    /// True if a full queue holds publishers back: the store is not to stand still.
    holds_back: bool,
    queue: Queue,
    statistics: Statistics,
    calls: Calls,
    /// Changes of rule chains so far.
    chain_changes: AtomicU64,
}

impl Board {
    /// Opens the store that the configuration names, and fills an empty one.
    ///
    /// # Errors
    /// [`StartError`] if the file is not to be had or is no store.
    pub(crate) fn open(
        config: &GatewayConfig,
        management: &ManagementConfig,
        clock: Clock,
    ) -> Result<Self, StartError> {
        let failed = |why: String| StartError::Store {
            place: management
                .store
                .as_ref()
                .map_or_else(|| "in memory".to_owned(), |file| file.display().to_string()),
            why,
        };
        let store = Store::open(management.store.as_deref()).map_err(failed)?;
        let logins = Logins::new(management.token.as_deref(), &store);
        let behaviour = config.behaviour;
        let board = Self {
            logins: logins.map_err(|refusal| failed(refusal.to_string()))?,
            store,
            clock,
            service: management.gateway.clone(),
            only_provisioned: management.only_provisioned,
            device_limit: behaviour.device_limit,
            messages: MessageTotal::new(behaviour.message_limit),
            rest_limit: behaviour.rest_rate.map(RestLimit::new),
            holds_back: behaviour.stall_store.is_none(),
            queue: Queue::default(),
            statistics: Statistics::default(),
            calls: Calls::default(),
            chain_changes: AtomicU64::new(0),
        };
        let now_ms = board.now_ms();
        let filled = board.store.write(|tables| {
            if records::tenant(tables)?.is_some() {
                return Ok(());
            }
            records::found_tenant(tables)?;
            profiles::create_default(tables)?;
            chains::create_root(tables, now_ms)
        });
        filled.map_err(|refusal| failed(refusal.to_string()))?;
        Ok(board)
    }

    /// Returns the device of an access token; none if no device has it.
    pub(crate) fn owner_of(&self, token: &str) -> Option<TokenOwner> {
        self.store.owner_of(token)
    }

    /// True if a device whose token is not in the store is refused.
    pub(crate) const fn only_provisioned(&self) -> bool {
        self.only_provisioned
    }

    /// True if the tenant may send no more messages.
    pub(crate) fn is_used_up(&self, now: Micros) -> bool {
        self.messages.is_exceeded(now)
    }

    /// Queues what an uplink stores, if it is telemetry or attributes. With
    /// [`Take::Congested`] its publisher has to wait.
    pub(crate) fn take(&self, now: Micros, parcel: &mut Parcel<'_>) -> Take {
        let kept = parcel.kept.as_ref();
        let is_uplink = parcel.via.is_some() || kept.is_some_and(|message| message.via.is_some());
        let is_lost = kept.is_some_and(|message| message.is_unstored);
        if !is_uplink || Subject::of(parcel.publish.topic).is_none() {
            return Take::Other;
        }
        self.messages.note(now);
        if is_lost {
            self.statistics.note_message(true);
            self.statistics.note_failed(1);
            return Take::Other;
        }
        let message = parcel.keep(now);
        let room = self.queue.push(Queued { message, at: now });
        self.statistics.note_message(room != Room::None);
        match room {
            Room::Enough => Take::Queued,
            Room::Little if self.holds_back => Take::Congested,
            Room::Little => Take::Queued,
            Room::None => Take::NoRoom,
        }
    }

    /// Takes a device's reply to a command, by the topic that it surfaces on.
    pub(crate) fn reply(&self, topic: &str, number: u32, payload: &[u8]) {
        let device = topic.strip_prefix("thingsboard-rpc/");
        if let Some(device) = device.and_then(|rest| rest.strip_suffix("/response")) {
            self.calls.reply(device, number, payload);
        }
    }

    /// Milliseconds of the wall clock.
    fn now_ms(&self) -> i64 {
        self.wall_ms(self.clock.now())
    }

    /// Milliseconds of the wall clock at an instant of the gateway.
    fn wall_ms(&self, at: Micros) -> i64 {
        let since_t0 = at.get() / 1_000;
        i64::try_from(self.clock.wall_ms_at_t0() + since_t0).unwrap_or(i64::MAX)
    }

    fn note_chain_change(&self) {
        self.chain_changes.fetch_add(1, Ordering::Release);
    }

    fn chain_changes(&self) -> u64 {
        self.chain_changes.load(Ordering::Acquire)
    }
}

/// Result of passing an uplink to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    /// Nothing of it is stored.
    Other,
    Queued,
    /// The queue is nearly full: its publisher has to wait.
    Congested,
    /// The queue is full: nothing of it is stored.
    NoRoom,
}

/// The id of the tenant in the words of the API.
fn tenant_id() -> EntityId {
    EntityId::new(EntityType::Tenant, &Serial::TENANT.uuid())
}
