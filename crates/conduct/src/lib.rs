//! The run as a state machine: connect, warm-up, measure, settle, finish.
//!
//! Layer 5. It receives the time and the merged [`Progress`] of all agents, and returns
//! [`Order`]s. One process, many agents and the simulator drive the same [`Conductor`]. It must
//! never know a clock, a socket, or how an order travels.
//!
//! ```
//! use muster_conduct::{Conductor, Delivery, Order, Progress, Timetable};
//! use muster_model::Micros;
//! let mut run = Conductor::new(Timetable {
//!     connect_at_most: Micros::from_secs(10),
//!     lead: Micros::from_millis(100),
//!     warm_up: Micros::ZERO,
//!     measure: Micros::from_secs(5),
//!     settle_at_most: Micros::from_secs(30),
//!     quiet: Micros::from_secs(3),
//!     agreed_origin: None,
//!     is_part: false,
//!     has_links: true,
//!     registers_refused: false,
//!     devices_receive: false,
//! });
//! assert_eq!(run.step(Micros::ZERO, &Progress::default(), &Delivery::default()), Some(Order::Connect));
//! ```

mod audience;
mod commander;
mod conductor;
mod dispatch;
mod part;
mod placement;
mod process;
mod progress;
mod recording;
mod refusal;
mod rendering;
mod run_data;
mod settling;
mod store_account;
mod timetable;
mod trial;
mod views;

pub use commander::{
    CommandSender, CommandSink, CommandToken, Commander, MqttSender, NOTICE_WAIT, Untaken,
    delivery_by_puback,
};
pub use conductor::{Conductor, Ending, Order, Phase};
pub use dispatch::{
    DISPATCH_EVERY, DISPATCHES_MAX, Diagnostic, Dispatch, Handover, REFUSED_MAX, Refused, Slice,
};
pub use part::{NoPart, Part};
pub use placement::Placement;
pub use process::{Afterlife, ProcessSample, ThreadSample};
pub use progress::{Delivery, Progress};
pub use recording::{FactWriter, RecordingSink};
pub use refusal::{
    ConsumerAbsence, ConsumerName, ConsumerRefusal, PushRefusal, RefusalCause, RefusalKind,
    RefusedRequests, Remedy,
};
pub use rendering::{PointInstants, directory, reader, uplink};
pub use run_data::{Incidents, RunData, Standing, Steer};
pub use store_account::StoreAccount;
pub use timetable::Timetable;
pub use trial::{LostCopy, Trial};
pub use views::{PlanCalendar, recorder_plan, registered_bounds, schedules, timetable};
