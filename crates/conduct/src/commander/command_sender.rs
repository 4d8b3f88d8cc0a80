//! Seam between the commander and a session: sends commands to the platform.

use muster_model::{Delivery, Micros, Reason};
use muster_platform::{CommandScratch, Dialect, OutboundCommand};
use muster_protocol::mqtt::{self, Client, Publish, Qos, Refused, Token};

/// The commander's name of a command that was handed over, used again once its delivery is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommandToken(pub u32);

/// Takes commands to the platform.
pub trait CommandSender {
    /// Returns true if the session is connected.
    fn is_connected(&self) -> bool;

    /// Returns true if it can take another command now, at least of some tenant.
    fn has_room(&self) -> bool;

    /// Returns true if it has room for commands to this tenant, whenever it has any: most have one way for all.
    fn has_room_for(&self, _tenant: &str) -> bool {
        true
    }

    /// Takes a command.
    ///
    /// # Errors
    /// [`Untaken`]: nothing was taken.
    fn take(
        &mut self,
        now: Micros,
        token: CommandToken,
        command: &OutboundCommand<'_>,
    ) -> Result<(), Untaken>;
}

/// One that may not be there yet.
impl<C: CommandSender> CommandSender for Option<C> {
    fn is_connected(&self) -> bool {
        self.as_ref().is_some_and(C::is_connected)
    }

    fn has_room(&self) -> bool {
        self.as_ref().is_some_and(C::has_room)
    }

    fn has_room_for(&self, tenant: &str) -> bool {
        let sender = self.as_ref();
        sender.is_some_and(|sender| sender.has_room_for(tenant))
    }

    fn take(
        &mut self,
        now: Micros,
        token: CommandToken,
        command: &OutboundCommand<'_>,
    ) -> Result<(), Untaken> {
        let sender = self.as_mut().ok_or(Untaken::Yet)?;
        sender.take(now, token, command)
    }
}

/// Reason that a command was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untaken {
    /// No room now.
    Yet,
    /// The platform takes no such command.
    Ever,
}

/// A session of MQTT that publishes commands at QoS 1 and renders them to the end of `out`.
#[derive(Debug)]
pub struct MqttSender<'a> {
    /// The dialect in which commands are written.
    pub dialect: Dialect,
    /// Buffers in which a command is rendered.
    pub scratch: &'a mut CommandScratch,
    /// The session.
    pub session: &'a mut Client,
    /// Output of the session.
    pub out: &'a mut Vec<u8>,
}

impl CommandSender for MqttSender<'_> {
    fn is_connected(&self) -> bool {
        self.session.is_connected()
    }

    fn has_room(&self) -> bool {
        self.session.is_connected() && self.session.window_free() > 0
    }

    fn take(
        &mut self,
        now: Micros,
        token: CommandToken,
        command: &OutboundCommand<'_>,
    ) -> Result<(), Untaken> {
        (self.dialect.application.write_command)(command, self.scratch);
        let publish = Publish {
            qos: Qos::AtLeastOnce,
            ..Publish::new(&self.scratch.topic, &self.scratch.payload)
        };
        let taken = self
            .session
            .publish(now, Token(token.0), &publish, self.out);
        taken.map_err(|why| match why {
            Refused::Window | Refused::PacketIds | Refused::NotConnected => Untaken::Yet,
            Refused::TooLarge { .. }
            | Refused::TextTooLong
            | Refused::RetainUnavailable
            | Refused::QosUnavailable
            | Refused::Unknown
            | Refused::Authentication => Untaken::Ever,
        })
    }
}

/// Returns the delivery of a command by an accepting PUBACK: its code may say that nobody
/// subscribed.
pub const fn delivery_by_puback(code: u8) -> Delivery {
    if code == mqtt::reason::NO_MATCHING_SUBSCRIBERS {
        Delivery::Undeliverable(Reason::Mqtt(code))
    } else {
        Delivery::Delivered
    }
}
