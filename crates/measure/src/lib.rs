//! Measuring: histograms, counters, windows, identity sets, and the ledger that closes.
//!
//! Layer 1, pure. A [`Recorder`] receives Facts and makes of them Windows (sums by second, merged
//! all the time) and an Identity (sets of messages, merged at the end). The session's own
//! [`Account`] is kept apart from the Facts; the ledger compares the two with the schedule's own
//! count. This crate must never know of protocols, platforms, sockets, clocks, verdicts or
//! formats of reports.
//!
//! ```
//! use muster_measure::{Account, Bounds, Cold, Recorder, PublishedPlan, RecorderPlan, Role, StreamTrack};
//! use muster_model::*;
//!
//! let plan = RecorderPlan {
//!     run: RunId(7),
//!     warm_up: Micros::ZERO,
//!     measure: Micros::from_secs(10),
//!     streams: vec![StreamTrack {
//!         fleet: FleetId(0),
//!         first_device: DeviceId(0),
//!         devices: 1,
//!         most_per_device: 100,
//!         role: Role::Uplink,
//!         answers: true,
//!         closed: None,
//!         by_order: false,
//!         deadline: None,
//!         bounds: Bounds::default(),
//!     }],
//!     fleets: vec![],
//!     backends: 0,
//!     store: None,
//!     cold: Cold::Nothing,
//!     groups: Vec::new(),
//!     published: PublishedPlan::Nothing,
//! };
//! let id = MessageId { run: RunId(7), device: DeviceId(0), stream: StreamId(0), seq: 0 };
//!
//! // The session counts for itself, where things happen, and passes the fact to the recorder.
//! let mut own = Account::new(&plan);
//! own.sent(&id);
//! own.ended(&id, &Outcome::Accepted, false);
//! let mut recorder = Recorder::new(plan);
//! recorder.start(Micros::ZERO);
//! recorder.attempt(&Attempt {
//!     id,
//!     due: Micros(1_000),
//!     taken: Some(Micros(1_010)),
//!     sent: Some(Micros(1_015)),
//!     ended: Micros(1_900),
//!     outcome: Outcome::Accepted,
//!     resent: false,
//!     own: Micros(10),
//! });
//!
//! let windows = recorder.flush(Micros::from_secs(1));
//! assert_eq!(windows.progress.sent, 1);
//! let identity = recorder.finish();
//! assert_eq!(identity.facts().streams[0].states, own.streams[0].states);
//! ```
//!
//! Windows and identities of several recorders are merged, and a [`Closing`] makes the
//! [`Summary`] of them.

mod above;
mod account;
mod at_least;
mod bitmap;
mod calendar;
mod cells;
mod checksummed_count;
mod closing;
mod cohort;
mod command;
mod copies;
mod counts;
mod delivery;
mod digest_of_times;
mod distribution;
mod down_by_us;
mod drain;
mod equations;
mod facts;
mod frame;
mod gather;
mod identity;
mod ledger;
mod link_counters;
mod link_ledger;
mod live;
mod lost;
mod merge;
mod order;
mod own;
mod pages;
mod per_device_close;
mod plan;
mod published;
mod published_second;
mod reception;
mod recorder;
mod resting;
mod scope;
mod seq_set;
mod series;
mod set_merge;
mod slot_times;
mod state;
mod steps;
mod summary;
mod target_counts;
mod window;

pub use account::{Account, BackendAccount, LinkAccount, StreamAccount};
pub use at_least::{AtLeast, Bounded};
pub use calendar::Calendar;
pub use checksummed_count::{ChecksummedCount, digest};
pub use closing::Closing;
pub use command::{
    ANSWERINGS, CommandAccount, CommandCounts, CommandLedger, CommandSummary, CommandTimes,
    CommandWindow, DELIVERIES, DeliveryCounts, Leg, LegCounts, LegSummary, PRESENCES, PresenceRow,
    QUERIES, QueriesDue, answering_at, delivery_at, presence_at, query_at,
};
pub use counts::{
    CopyCounts, CountBy, Counts, Flow, LinkCounts, Outcomes, SessionCounts, TimeSums,
};
pub use distribution::{Cell, Distribution, Latency, TOP};
pub use drain::{DrainLedger, DrainSummary};
pub use facts::{FACTS_HEADER, encode_fact};
pub use frame::{Record, RecordError, Records, encode_record};
pub use identity::Identity;
pub use ledger::{
    ArrivalFigures, Arrivals, BackendLedger, Equation, Ledger, LostIds, LostOf, Table, TableRow,
    own_shed,
};
pub use link_counters::{Counter, CounterLine, LinkCounters};
pub use link_ledger::LinkLedger;
pub use own::{ReadDelay, RecentLateness, WaitHistory};
pub use plan::{
    Bounds, Cold, FleetTrack, Phase, PublishedPlan, RecorderPlan, Role, StreamTrack, Timeline,
};
pub use published::DeviceFigures;
pub use published_second::PublishedSecond;
pub use reception::{
    PAIRS_MAX, ReceptionAccount, ReceptionLedger, ReceptionSummary, ReceptionWindow, SubscriberRow,
};
pub use recorder::Recorder;
pub use seq_set::{Runs, SeqSet};
pub use slot_times::SlotTimes;
pub use state::State;
pub use summary::{
    Above, ArrivalRow, DeliverySecond, DeliverySeconds, GroupSummary, LatencyFigures, LatencyTable,
    LatencyView, Percentiles, Rates, Scope, ScopeSummary, SecondRow, Summary,
};
pub use target_counts::TargetCounts;
pub use window::{
    ArrivalWindow, CommandProgress, LinkWindow, LinksSecond, Progress, UplinkWindow, WindowDelta,
    WindowKey,
};
