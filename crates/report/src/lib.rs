//! One [`Report`] value, and one function for each form in which it is shown.
//!
//! Place in the straight line: the last station. A verdict and merged windows come in, bytes for
//! people and machines go out. A report copies and renders; it never computes a figure, so that
//! every form of it says the same.
//!
//! It must never know how a figure came about: no schedule, no socket, no file, no clock.
//!
//! ```
//! use muster_report::Report;
//!
//! let mut report = Report::default();
//! report.name = "first".to_owned();
//! let json = report.to_json();
//! assert_eq!(Report::from_json(&json)?, report);
//! # Ok::<(), muster_report::ReadError>(())
//! ```

mod assemble;
mod capacity;
mod certificate;
mod compare;
mod csv;
mod downlink;
mod figures;
mod hdr;
mod hono;
mod hook;
mod html;
mod junit;
mod ledger;
mod monitor;
mod number;
mod repeat;
mod result;
mod sap;
mod server_count;
mod steps;
mod text;
mod thingsboard;
mod unfinished;
mod verdict;
mod window;

pub use assemble::{Assembly, JudgedStep, Names};
pub use capacity::{
    CAPACITY_SCHEMA, CapacityCeiling, CapacityReport, CapacityStep, Noise, NoiseKind, OutcomeOfSet,
    Saturation, SetAnswer, lengths_in_words, outcome_of,
};
pub use certificate::{
    CERTIFICATE_SCHEMA, Certificate, CertifiedFigures, ClockQuality, DeclaredRule, FileDigest,
};
pub use compare::{
    COMPARE_SCHEMA, Compare, ComparedFigure, ComparedRun, Comparison, HISTORY_SCHEMA, History,
    HistoryChange, HistoryCourse, HistoryFigure, HistoryResult, OverlaidRun, SetupDifference, Side,
    Unit,
};
pub use csv::csv;
pub use downlink::{CommandAccount, DrainAccount, QueriesDue, ReceiveAccount, SubscriberRow};
pub use figures::{
    CounterGrowth, Event, GeneratorUse, HealthFigure, Latencies, Phase, Recovery, TargetUse,
};
pub use hdr::hdr;
pub use hono::{HonoClasses, HonoFigures, SlotFigures, hono_simulator};
pub use hook::HookRun;
pub use html::{capacity_html, certificate_html, compare_html, html, scale_html};
pub use junit::junit;
pub use ledger::{BackendAccount, Ledgers, LostIds, SampleAccount, StreamAccount};
pub use monitor::{MonitoredSeries, ResourceTrend, Sustainability, monitor_csv};
pub use muster_judge::{Consequence, RuleKind, RunResult};
pub use muster_measure::{LatencyFigures, LinkLedger, Percentiles, Rates};
pub use repeat::{REPEAT_SCHEMA, Repeat, RepeatVerdict, RepeatedRun, Spread};
pub use result::{ReadError, Report, SCHEMA, SEARCHED, Schema};
pub use sap::{SapDevice, SapFigures, SapVerdict, sap};
pub use server_count::{NodeCount, ServerCount, counts_csv};
pub use steps::{Step, StepCommands, steps_csv};
pub use text::text;
pub use thingsboard::thingsboard;
pub use unfinished::Unfinished;
pub use verdict::{Figure, InvalidReason, Rule, RuleCounts, RuleResult, SwitchedOff, Verdict};
pub use window::{Heat, MAX_WINDOWS, PercentileSpans, Window, WindowHealth};
