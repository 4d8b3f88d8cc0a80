//! A platform's end over AMQP 1.0: addresses on which messages surface, and addresses that take commands.

use crate::protocol::Protocol;

/// The platform's end over AMQP 1.0.
#[derive(Debug)]
pub struct AmqpServer {
    /// Reads the topic on which something surfaces; none if it surfaces on no address.
    pub surface: for<'a> fn(&'a str) -> Option<AmqpSurface<'a>>,
    /// The value of a message's property as it travels, from its name and its text.
    pub property: for<'a> fn(&'a str, &'a str) -> AmqpValue<'a>,
    /// Name and value of the property that names the protocol a message came by; none if there is no such
    /// property.
    pub origin: fn(Protocol) -> Option<(&'static str, &'static str)>,
    /// True for an address that receivers may attach to.
    pub is_source: fn(&str) -> bool,
    /// True for an address that senders may attach to.
    pub is_target: fn(&str) -> bool,
    /// Puts the topic of a message that came on an address into the last argument, which is emptied first.
    /// The error names the field that is missing or wrong.
    pub write_topic: fn(&str, &AmqpSent<'_>, &mut String) -> Result<(), &'static str>,
}

/// The address on which something surfaces, and its fields.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AmqpSurface<'a> {
    /// The address; of a reply it is the beginning, which the reply id of its command ends.
    pub address: &'a str,
    /// The way to the receivers.
    pub way: AmqpWay,
    /// The id of the command that a reply is about.
    pub correlation_id: Option<&'a str>,
    properties: [(&'static str, AmqpValue<'a>); PROPERTIES_MAX],
    count: usize,
}

/// Most properties that a topic gives: device, tenant and status of a reply.
const PROPERTIES_MAX: usize = 3;

/// The way of a message to its receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AmqpWay {
    /// To one receiver, at once: without one that has credit the device is refused.
    Direct,
    /// To one receiver, through a queue that keeps it until one has credit. If the queue is full, the device
    /// is refused.
    Stored,
    /// To one receiver of the address that the command named for its reply.
    Reply,
    /// To one receiver of each address that matches the topic, as a broker does.
    Published,
}

/// A value of a property.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AmqpValue<'a> {
    /// A text.
    Text(&'a str),
    /// A number of 32 bits.
    Int(i32),
}

/// Fields of a message that came from an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AmqpSent<'a> {
    /// Its destination, `to`.
    pub to: Option<&'a str>,
    /// Its `subject`.
    pub subject: Option<&'a str>,
    /// Its `correlation-id`, else its `message-id`, if that is a text.
    pub correlation_id: Option<&'a str>,
    /// The address of the reply, `reply-to`.
    pub reply_to: Option<&'a str>,
}

impl<'a> AmqpSurface<'a> {
    /// An address without further fields.
    pub(crate) const fn new(address: &'a str, way: AmqpWay) -> Self {
        Self {
            address,
            way,
            correlation_id: None,
            properties: [("", AmqpValue::Int(0)); PROPERTIES_MAX],
            count: 0,
        }
    }

    /// With one property more; beyond the bound it stays as it is.
    pub(crate) fn with(mut self, name: &'static str, value: AmqpValue<'a>) -> Self {
        if let Some(place) = self.properties.get_mut(self.count) {
            *place = (name, value);
            self.count += 1;
        }
        self
    }

    /// The properties that the topic gives, in order.
    pub fn properties(&self) -> &[(&'static str, AmqpValue<'a>)] {
        &self.properties[..self.count]
    }
}

/// A broker: addresses are topics, or filters of topics.
pub(crate) const PLAIN_AMQP: AmqpServer = AmqpServer {
    surface: |topic| Some(AmqpSurface::new(topic, AmqpWay::Published)),
    property: |_, value| AmqpValue::Text(value),
    origin: |_| None,
    is_source: |address| !address.is_empty(),
    is_target: |address| !address.is_empty() && !address.contains(['+', '#']),
    write_topic: |address, _, out| {
        out.clear();
        out.push_str(address);
        Ok(())
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brokers_addresses_are_its_topics() {
        let surface = (PLAIN_AMQP.surface)("muster/d-1/t").expect("it surfaces");
        assert_eq!(surface.address, "muster/d-1/t");
        assert_eq!(surface.way, AmqpWay::Published);
        assert!(surface.properties().is_empty());
        let mut topic = "left over".to_owned();
        let written = (PLAIN_AMQP.write_topic)("a/b", &AmqpSent::default(), &mut topic);
        assert_eq!((written, topic.as_str()), (Ok(()), "a/b"));
        assert!((PLAIN_AMQP.is_source)("muster/+/t") && !(PLAIN_AMQP.is_target)("muster/+/t"));
    }
}
