//! At which addresses of AMQP 1.0 a platform publishes, and how it takes commands there.

use crate::command::{CommandScratch, OutboundCommand};
use crate::kafka::TENANT;

/// A platform's use of AMQP 1.0. [`TENANT`](crate::TENANT) stands for the tenant in its addresses.
#[derive(Debug)]
pub struct Amqp {
    /// Addresses of messages. A message surfaces as a topic of the address and, behind a slash, its device.
    pub messages: &'static [&'static str],
    /// The application property that names the device.
    pub device: &'static str,
    /// The address that takes commands.
    pub commands: &'static str,
    /// The address of replies, without the reply id that follows it.
    pub replies: &'static str,
    /// Renders a command.
    pub command: for<'a> fn(&OutboundCommand<'a>, &'a mut CommandScratch) -> AmqpCommand<'a>,
}

impl Amqp {
    /// The tenant that an address belongs to; none if it is no address of the platform.
    pub fn tenant_of<'a>(&self, address: &'a str) -> Option<&'a str> {
        let further = [self.commands, self.replies];
        let mut known = self.messages.iter().chain(&further);
        known.find_map(|known| {
            let (before, _) = known.split_once(TENANT)?;
            address.strip_prefix(before)?.split('/').next()
        })
    }
}

/// A command as a business application sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AmqpCommand<'a> {
    /// The property `to`, which names the device.
    pub to: &'a str,
    /// The property `subject`: the command's name.
    pub subject: &'static str,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The property `correlation-id`, with the address of replies; none where no reply is wanted.
    pub correlation_id: Option<&'a str>,
    /// The body, one section of data.
    pub payload: &'a [u8],
}
