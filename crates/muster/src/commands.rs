//! One file a command.

pub(crate) mod agent;
pub(crate) mod capacity;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod gateway;
pub(crate) mod import;
pub(crate) mod manual;
pub(crate) mod merge;
pub(crate) mod provision;
pub(crate) mod repeat;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scale;
pub(crate) mod schema;
pub(crate) mod verify;
