//! Hono's addresses on AMQP 1.0, and the form of commands there.
//!
//! A reply has the properties that a record of Kafka has as headers, by the same names.

use super::commands::JSON;
use super::northbound::{NAME, write_body};
use crate::amqp::{Amqp, AmqpCommand};
use crate::command::{CommandScratch, OutboundCommand};

pub(super) const AMQP: Amqp = Amqp {
    messages: &["telemetry/${tenant}", "event/${tenant}"],
    device: "device_id",
    commands: "command/${tenant}",
    replies: "command_response/${tenant}/",
    command,
};

/// Renders a command. Its correlation id is its own id as text.
fn command<'a>(to: &OutboundCommand<'a>, out: &'a mut CommandScratch) -> AmqpCommand<'a> {
    out.head(&["command/", to.tenant, "/", to.device]);
    write_body(to.stamp, out);
    AmqpCommand {
        to: &out.topic,
        subject: NAME,
        content_type: JSON,
        correlation_id: to.is_two_way.then_some(out.correlation_id.as_str()),
        payload: &out.payload,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::tests::{outbound, stamp};
    use crate::command::{named, read_named_text};

    #[test]
    fn a_command_has_the_address_of_its_device_and_its_own_id() {
        let (of, mut scratch) = (stamp(), CommandScratch::default());
        let to = outbound(&of, true);
        let command = (AMQP.command)(&to, &mut scratch);
        assert_eq!(command.to, "command/tload_tests/ns:d-17");
        assert_eq!(
            (command.subject, command.content_type),
            ("set", "application/json")
        );
        assert_eq!(
            command.correlation_id.and_then(read_named_text),
            Some(stamp())
        );
        assert_eq!(named(command.payload), Some(stamp()));
    }

    #[test]
    fn an_address_belongs_to_a_tenant() {
        for address in [
            "telemetry/t1",
            "event/t1",
            "command/t1",
            "command_response/t1/r-1",
        ] {
            assert_eq!(AMQP.tenant_of(address), Some("t1"), "{address}");
        }
        assert_eq!(AMQP.tenant_of("readings/t1"), None);
    }

    #[test]
    fn a_command_that_wants_no_reply_has_no_correlation_id() {
        let (of, mut scratch) = (stamp(), CommandScratch::default());
        let to = outbound(&of, false);
        let command = (AMQP.command)(&to, &mut scratch);
        assert_eq!(command.correlation_id, None);
        assert_eq!(named(command.payload), Some(stamp()));
    }
}
