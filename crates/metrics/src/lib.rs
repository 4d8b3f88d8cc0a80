//! The figures of a run on their way to those who watch it: Prometheus, InfluxDB and OpenTelemetry.
//!
//! Layer 8, outside the straight line: it receives windows and the state of the run, and the result at its end.
//! [`TABLE`] names each metric once; names in each system follow from it. Nothing here changes the run: it is fed
//! once a second, its threads are waited for by no one, and what fails is a warning. It must never know how a
//! figure is computed.
//!
//! ```
//! use muster_metrics::TABLE;
//!
//! let sent = TABLE.iter().find(|metric| metric.name == "messages.sent").expect("it is there");
//! assert_eq!(sent.prometheus(), "muster_messages_sent_total");
//! assert_eq!((sent.otlp(), sent.ucum()), ("muster.messages.sent".to_owned(), "{message}".to_owned()));
//! assert_eq!((sent.measurement(), sent.field()), ("muster_messages".to_owned(), "sent".to_owned()));
//! ```

mod exporter;
mod finals;
mod identity;
mod influx;
mod names;
mod otlp;
mod prometheus;
mod push;
mod running;
mod server;
mod snapshot;
mod table;
mod totals;
mod url;

pub use exporter::{Exporter, OpenError, Outlets, Settings};
pub use identity::Identity;
pub use influx::Names;
pub use table::{Kind, Metric, Place, TABLE, Unit};
pub use url::AddressError;
