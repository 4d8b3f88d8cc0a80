//! The checked plan of a run: a `Plan` that exists can run.
//!
//! Everything is resolved: units are numbers, defaults are filled in, ids are given out, templates
//! parse, and no two keys contradict each other. A plan crosses process borders in a binary form
//! (postcard), so no type in it needs a self-describing format.
//!
//! Layer 3: `scenario` writes it; the crates that carry out a run read it. It must never know the
//! language of scenarios, or how a run is carried out.

use std::collections::BTreeMap;

use muster_judge::Rules;
use muster_measure::Cold;
use muster_model::{BackendId, DeviceId, DeviceSample, LinkId, Micros, StreamId};
use muster_platform::{Dialect, Protocol};
use serde::{Deserialize, Serialize};

mod adding;
mod amqp;
mod backend_kind;
mod coap;
mod connecting;
mod fleet;
mod hook;
mod http;
mod limits;
mod monitor;
mod mqtt;
mod one_of_each;
mod only_connecting;
mod problem;
mod provision;
mod reconnect;
mod rpc;
mod saturating;
mod scale;
mod scheme;
mod secret;
mod security;
mod selector;
mod step_needs;
mod steps;
mod stream;
mod target;
mod transport;
mod webhook;

pub use adding::AddedLoad;
pub use amqp::{AmqpAddress, AmqpLogin, AmqpNorthbound};
pub use backend_kind::{BackendKind, BackendSpec};
pub use coap::{CoapSettings, SocketUse, shared_receive_buffer};
pub use fleet::{ClientPlan, ConnectPlan, Credential, FleetPlan, Login};
pub use hook::{HookPlan, HookTime};
pub use http::{AnswerId, HttpCall, HttpSettings};
pub use monitor::{MonitorPlan, PagePlan, PageSeries, Watched};
pub use mqtt::{Authentication, ClientId, MqttSettings, Will};
pub use problem::Problem;
pub use provision::{
    ApiCredential, BoardProvision, CertificateCheck, DatabasePlan, PasswordHash, ProvisionMode,
    ProvisionPlan, RegistryApi, WebAddress,
};
pub use reconnect::{BackOff, Offline};
pub use rpc::RpcNorthbound;
pub use scale::{
    ActuatorPlan, ComponentPlan, InstancePorts, KubernetesPlan, PublishedPolicy, ScalePlan,
    ScalePolicy, SweepPlan, UnitOfLoad, Variable, WorkloadKind,
};
pub use scheme::{PathUse, Scheme, SchemeSpec};
pub use secret::{MASK, Secret};
pub use security::Security;
pub use selector::{LabelMatch, Selector, quoted_label};
pub use step_needs::StepNeeds;
pub use steps::StepPlan;
pub use stream::{Ack, Policy, StreamKind, StreamPlan};
pub use target::{
    BackendPlan, KafkaNorthbound, KafkaTopic, MqttNorthbound, Northbound, Pause, PlatformKind,
    PlatformPlan, Sasl,
};
pub use transport::{Endpoint, PemFile, TlsPlan, TlsVersions, is_loopback};
pub use webhook::{WebhookNorthbound, WebhookProof};

/// The name of the account of what was read back from the platform's store.
pub const STORE: &str = "store";

/// One run, ready to be carried out by any number of processes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The scenario's name; names the result folder.
    pub name: String,
    /// Reproduces phases, payloads and jitter.
    pub seed: u64,
    /// Copied into the result.
    pub labels: BTreeMap<String, String>,
    /// The system under test.
    pub platform: PlatformPlan,
    /// The northbound accounts, at the index of their `BackendId`; empty where there is none.
    pub backends: Vec<BackendPlan>,
    /// Registration of devices with the platform; none where nothing can be registered, or nothing
    /// was asked for.
    #[serde(skip)]
    pub provision: Option<ProvisionPlan>,
    /// Uses of the platform's management API besides registration before the run.
    pub management: ManagementUses,
    /// Parts of the target that are watched; only whoever starts the run has a use for them.
    #[serde(skip)]
    pub monitor: Vec<MonitorPlan>,
    /// The fleets, at the index of their `FleetId`; never empty.
    pub fleets: Vec<FleetPlan>,
    /// Lengths of the phases.
    pub phases: Phases,
    /// Holds that are added while the run goes on; none where the schedules are all there is.
    pub added: Option<AddedLoad>,
    /// Messages that are kept apart as cold.
    pub cold: Cold,
    /// The resolved rules of the verdict.
    pub rules: Rules,
    /// The scenario as run, in its own keys as JSON text: `--set` applied, secrets masked.
    pub resolved: String,
    /// Warnings that `muster check` prints although the plan can run.
    pub warnings: Vec<Problem>,
}

/// Uses of the platform's management API while the load lasts and after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ManagementUses {
    /// True if devices that the platform refuses by their credentials are registered meanwhile, so that no such
    /// refusal is final.
    pub registers_refused: bool,
    /// Devices whose stored messages are read back when the load has ended; none if the store is not read.
    pub reads_back: Option<DeviceSample>,
}

impl Plan {
    /// Devices of all fleets: device ids are below this.
    pub fn devices(&self) -> u32 {
        self.fleets
            .last()
            .map_or(0, |fleet| fleet.first_device.0 + fleet.devices)
    }

    /// Links of all fleets: link ids are below this.
    pub fn links(&self) -> u32 {
        self.fleets
            .last()
            .map_or(0, |fleet| fleet.first_link.0 + fleet.links)
    }

    /// Sockets of all links: as many as links, but where these share some.
    pub fn device_sockets(&self) -> u32 {
        self.fleets.iter().map(FleetPlan::sockets).sum()
    }

    /// Sockets of the links that speak a protocol.
    pub fn sockets_of(&self, protocol: Protocol) -> u32 {
        let fleets = self.fleets.iter();
        let fleets = fleets.filter(|fleet| fleet.client.protocol() == protocol);
        fleets.map(FleetPlan::sockets).sum()
    }

    /// The scheme of the addresses that the devices of a fleet connect to: its protocol has some.
    pub fn scheme_of(&self, fleet: &FleetPlan) -> Scheme {
        let scheme = self.platform.scheme_of(fleet.client.protocol());
        scheme.unwrap_or(Scheme::Mqtt)
    }

    /// Every stream with its fleet, in the order of `StreamId`.
    pub fn streams(&self) -> impl Iterator<Item = (&FleetPlan, &StreamPlan)> {
        self.fleets
            .iter()
            .flat_map(|fleet| fleet.streams.iter().map(move |stream| (fleet, stream)))
    }

    /// Every stream whose messages are the devices' own, with its fleet.
    pub fn uplinks(&self) -> impl Iterator<Item = (&FleetPlan, &StreamPlan)> {
        self.streams().filter(|(_, stream)| stream.is_uplink())
    }

    /// Returns true if commands are issued, or devices subscribe to other devices' messages: then
    /// all of them are to meet on one platform.
    pub fn has_downlink(&self) -> bool {
        self.streams().any(|(_, stream)| !stream.is_uplink())
    }

    /// Number of accounts of arrivals: one of each backend that consumes messages, which are the first ones, and that
    /// of the store, or none if messages of some stream never surface, as these would look like losses.
    pub fn accounts(&self) -> usize {
        let dialect = self.platform.dialect();
        match all_surface(dialect, &self.fleets) {
            true => self.account_names().len(),
            false => 0,
        }
    }

    /// The account of what was read back from the platform's store, which is the last one; none where nothing is.
    pub fn store(&self) -> Option<BackendId> {
        let last = self.accounts().checked_sub(1)?;
        self.management.reads_back.map(|_| BackendId(last as u8))
    }

    /// The names of the accounts of arrivals, in their order.
    pub fn account_names(&self) -> Vec<String> {
        let backends = self.backends.iter();
        let backends = backends.filter(|backend| !backend.kind().only_commands);
        let backends = backends.map(|backend| backend.name.clone());
        let store = self.management.reads_back.map(|_| STORE.to_owned());
        backends.chain(store).collect()
    }

    /// The stream of this id and its fleet.
    pub fn stream(&self, id: StreamId) -> Option<(&FleetPlan, &StreamPlan)> {
        self.streams().nth(id.index())
    }

    /// The fleet a device belongs to.
    pub fn fleet_of(&self, device: DeviceId) -> Option<&FleetPlan> {
        let after = self
            .fleets
            .partition_point(|fleet| fleet.first_device <= device);
        let fleet = self.fleets.get(after.checked_sub(1)?)?;
        fleet.contains(device).then_some(fleet)
    }

    /// The link that carries a device.
    pub fn link_of(&self, device: DeviceId) -> Option<LinkId> {
        self.fleet_of(device).map(|fleet| fleet.link_of(device))
    }
}

/// Returns true if the messages of all streams surface northbound.
pub fn all_surface(dialect: Dialect, fleets: &[FleetPlan]) -> bool {
    let streams = fleets.iter().flat_map(|fleet| &fleet.streams);
    let mut uplinks = streams.filter(|stream| stream.is_uplink());
    dialect.has_northbound && uplinks.all(|stream| (dialect.topic)(stream.topic.source()).surfaces)
}

/// Lengths of the phases; the connect phase lasts as long as its rate needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// Load at the shape's first value, not measured.
    pub warm_up: Micros,
    /// The measured cohort is due in this time.
    pub measure: Micros,
    /// End of the wait for answers and arrivals.
    pub settle: Settle,
}

/// End of settling (docs/semantics.md#settling).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settle {
    /// At the latest.
    pub at_most: Micros,
    /// Earlier, once every attempt is final and no arrival came for this long.
    pub quiet: Micros,
}
