//! Commands that the business application issues by calls of a REST API.

use crate::command::{CommandScratch, OutboundCommand, Returned};

/// Commands by calls of a REST API, each answered once its command is delivered or replied to.
#[derive(Debug)]
pub struct RestCommands {
    /// Renders the body of a call, with the milliseconds for which the platform waits for the device.
    pub write: fn(&OutboundCommand<'_>, u64, &mut CommandScratch),
    /// Reads the body of an answer that is the device's reply.
    pub returned: fn(&[u8]) -> Returned,
}
