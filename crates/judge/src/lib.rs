//! Decides what a run has shown: SLOs, validity of the generator, stability, and the one verdict.
//!
//! Layer 2, pure. In the straight line it stands between the merged windows and ledgers of
//! `measure` and the report: it turns figures into [`Rules`] that hold or not. It must never know
//! where a figure came from: no sockets, files, clocks, protocols or scenario text, and it never
//! moves a threshold after the run began.
//!
//! ```
//! use muster_judge::{Rules, Scope, SloBound};
//!
//! let rules = Rules::builder(true).build();
//! let names_nothing = rules.slos.iter().all(|slo| !slo.named && slo.scope == Scope::Run);
//! assert!(names_nothing);
//! assert!(matches!(rules.slos[0].bound, SloBound::Loss(_)));
//! ```

mod bounds;
mod builder;
pub mod capacity;
mod causes;
mod ceiling;
mod commands;
pub mod compare;
mod completion;
pub mod cycle;
mod delivery;
mod evidence;
mod failures;
mod health;
mod judge;
mod keep_alive;
mod latency;
mod loss;
mod margin;
mod meanwhile;
pub mod outlook;
mod own_delay;
mod reach;
mod reason;
mod rule_name;
mod rules;
mod set_names;
mod share;
mod slo;
mod soak;
pub mod stability;
mod stable;
mod starved;
mod step;
mod stop;
mod strain;
mod unevaluated;
pub mod validity;
mod verdict;
mod warnings;

pub use bounds::{StabilityBounds, ValidityBounds};
pub use builder::RulesBuilder;
pub use causes::{FleetHints, Hints, LinkCause, RequestHints};
pub use ceiling::{
    Bottleneck, Ceiling, Cost, GENERATOR_SHARE_MAX, GeneratorPart, PartCeiling, SizedCeiling,
};
pub use delivery::UnknownDelivery;
pub use evidence::{Ending, Evidence, Hold, StreamEvidence, StreamRole, holds};
pub use health::{
    GeneratorHealth, HostHealth, Incident, IncidentKind, ThreadHealth, ThreadRole, ThreadWindow,
};
pub use judge::judge;
pub use margin::step_margin;
pub use muster_model::figure::Figure;
pub use own_delay::OwnDelay;
pub use reason::Reason;
pub use rule_name::RuleName;
pub use rules::{
    Allowance, Latency, Rules, Scope, Slo, SloBound, StopIf, StopTrigger, SwitchedOff,
};
pub use set_names::SetNames;
pub use share::{Percentile, Share};
pub use soak::ResourceOutlook;
pub use step::{StepVerdict, is_judged_in_steps, judge_step};
pub use stop::{Stop, StopLatency, StopWatch, StopWindow};
pub use strain::{Strain, StrainKind, strains};
pub use unevaluated::Unevaluated;
pub use verdict::{Consequence, RuleKind, RuleOutcome, RuleResult, RunResult, Verdict};
pub use warnings::{MISSING_LINKS_SHARE, NO_LINK_MIN_S, UNTOLD_SHARE, Warning, WarningKind};
