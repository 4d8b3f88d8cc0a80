//! Content and timing of messages: shapes, stateless schedules, payload templates and device names.
//!
//! Layer 1, between the plan and the device: `Plan -> Schedule (n -> due, device, seq) -> device`.
//! Everything here is a pure function of the plan and its seed, so any message can be made again
//! by any process of the run. This crate must never know a clock, a socket, a file, a protocol or
//! what became of a message.
//!
//! ```
//! use muster_load::{HoldRate, Phase, Schedule, ScheduleSpec, Shape, StreamSchedule};
//! use muster_model::{DeviceId, Micros, Rate};
//!
//! let schedule = StreamSchedule::new(ScheduleSpec {
//!     shape: Shape::Constant,
//!     rate: Rate::per_second(1_000.0).unwrap(),
//!     phase: Phase::Even,
//!     hold_rate: HoldRate::default(),
//!     poisson: false,
//!     first_device: DeviceId(0),
//!     devices: 100,
//!     limit_per_device: None,
//!     warm_up: Micros::ZERO,
//!     measure: Micros::from_secs(60),
//!     seed: 1,
//! })?;
//! assert_eq!(schedule.due(5), Some(Micros::from_millis(5)));
//! assert_eq!(schedule.owner(205), (DeviceId(5), 2));
//! assert_eq!(schedule.count_until(Micros::from_secs(60)), 60_000);
//! # Ok::<(), muster_load::ScheduleError>(())
//! ```

mod active;
mod check;
mod cursor;
mod layout;
mod mix;
mod name;
mod names;
mod octets;
mod payload;
mod permutation;
mod poisson;
mod profile;
mod random;
mod recall;
mod records;
#[cfg(test)]
mod sample;
mod schedule;
mod shape;
mod table;
mod template;
mod text;
mod unique;

pub use active::{ActiveOrder, active_devices};
pub use check::{MAX_HORIZON, MAX_MESSAGES, MAX_RATE, MIN_SINE_PERIOD, ScheduleError};
pub use cursor::{Cursor, Due};
pub use mix::{MixSpec, RareSpec};
pub use name::NameTemplate;
pub use names::{MAX_NAME_BYTES, NameList, NameTable, NameTableError, Names};
pub use octets::{Encoding, Octets, OctetsError};
pub use payload::{
    MAX_PAYLOAD, MAX_REDRAWN, Payload, PayloadError, PayloadSpec, StampAt, StampForm,
};
pub use recall::Recall;
pub use records::{Record, RecordError, Records};
pub use schedule::{Schedule, StreamSchedule};
pub use shape::{Active, AddedHold, HoldRate, Phase, ScheduleSpec, Shape, Stage, Stretch};
pub use table::{MAX_TABLE_BYTES, Row, Table, TableError};
pub use template::{
    Bounds, MAX_HEX, MAX_TEMPLATE, Scope, Template, TemplateError, VARIABLES, escape_json,
    escaped_for_json, escaped_length, is_inside_string, needs_escapes,
};
pub use text::{Lines, TextError, text};
pub use unique::UniqueMs;
