//! The values that cross a border in Muster: ids, instants, rates, outcomes and facts.
//!
//! Layer 0. Every other crate speaks in these types, so this crate knows nothing of protocols,
//! schedules, files, clocks or sockets.
//!
//! ```
//! use muster_model::{Micros, MessageId, RunId, DeviceId, StreamId};
//! let id = MessageId { run: RunId(7), device: DeviceId(3), stream: StreamId(0), seq: 41 };
//! assert_eq!(id.seq, 41);
//! assert_eq!(Micros::from_millis(3).get(), 3_000);
//! ```

pub mod behaviour;
mod code;
mod command;
mod device_sample;
mod dimension;
mod fact;
pub mod figure;
mod id;
mod listening;
mod mix;
mod outcome;
pub mod percent;
mod promise;
mod reception;
mod resource;
mod stamp;
mod time;
mod tls;

pub use code::Reason;
pub use command::{
    ABSENT, Answer, Answering, Command, CommandTarget, Delivery, Issue, Met, Presence, Query,
    QueryOutcome, Receipt, Reply,
};
pub use device_sample::DeviceSample;
pub use dimension::Dimension;
pub use fact::{Arrival, Attempt, Fact, Integrity, LinkEvent, LinkFact};
pub use id::{BackendId, ConsumerId, DeviceId, FleetId, LinkId, MessageId, RunId, StreamId};
pub use listening::Listening;
pub use mix::{mix, unit};
pub use outcome::{Cause, ConnectFailure, Outcome, ShedCause};
pub use promise::Promise;
pub use reception::Reception;
pub use resource::{Resource, ResourceUnit};
pub use stamp::{STAMP_BYTES, STAMP_KEY_BYTES, STAMP_KEY_TEXT, STAMP_TEXT, Stamp, StampError};
pub use time::{Micros, Rate, Turn};
pub use tls::TlsFailure;
