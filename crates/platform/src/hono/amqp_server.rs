//! Hono's addresses over AMQP 1.0, at the server end.

use super::northbound::{COMMAND, RESPONSE};
use super::requests::Endpoint;
use crate::amqp_server::{AmqpSent, AmqpServer, AmqpSurface, AmqpValue, AmqpWay};
use crate::protocol::Protocol;

/// Application properties.
const DEVICE_ID: &str = "device_id";
const TENANT_ID: &str = "tenant_id";
const STATUS: &str = "status";
const ADAPTER: &str = "orig_adapter";
/// The one property of a message that is a number: seconds for which the device waits.
const TTD: &str = "ttd";

pub(super) const AMQP: AmqpServer = AmqpServer {
    surface,
    property,
    origin,
    is_source: |address| {
        let (word, rest) = address.split_once('/').unwrap_or((address, ""));
        match word {
            "telemetry" | "event" => is_level(rest),
            RESPONSE => rest
                .split_once('/')
                .is_some_and(|(tenant, reply_id)| is_level(tenant) && !reply_id.is_empty()),
            _ => false,
        }
    },
    is_target: |address| tenant_of(address, COMMAND).is_some(),
    write_topic,
};

/// True for one level of a topic.
fn is_level(text: &str) -> bool {
    !text.is_empty() && !text.contains('/')
}

/// The tenant of an address that ends with it.
fn tenant_of<'a>(address: &'a str, word: &str) -> Option<&'a str> {
    let tenant = address.strip_prefix(word)?.strip_prefix('/')?;
    is_level(tenant).then_some(tenant)
}

fn surface(topic: &str) -> Option<AmqpSurface<'_>> {
    let (word, rest) = topic.split_once('/')?;
    let (tenant, rest) = rest.split_once('/')?;
    let address = &topic[..word.len() + 1 + tenant.len()];
    if word == RESPONSE {
        let mut levels = rest.split('/');
        let [device, id, status] = [levels.next()?, levels.next()?, levels.next()?];
        let status = status.parse().ok()?;
        let mut reply = AmqpSurface::new(address, AmqpWay::Reply)
            .with(DEVICE_ID, AmqpValue::Text(device))
            .with(TENANT_ID, AmqpValue::Text(tenant))
            .with(STATUS, AmqpValue::Int(status));
        reply.correlation_id = Some(id);
        return Some(reply);
    }
    let way = match Endpoint::named(word)? {
        (Endpoint::Telemetry, false) => AmqpWay::Direct,
        (Endpoint::Event, false) => AmqpWay::Stored,
        (_, true) => return None,
    };
    Some(AmqpSurface::new(address, way).with(DEVICE_ID, AmqpValue::Text(rest)))
}

fn property<'a>(name: &str, value: &'a str) -> AmqpValue<'a> {
    let number = value.parse().ok().filter(|_| name == TTD);
    number.map_or(AmqpValue::Text(value), AmqpValue::Int)
}

fn origin(protocol: Protocol) -> Option<(&'static str, &'static str)> {
    let adapter = match protocol {
        Protocol::Mqtt => "hono-mqtt",
        Protocol::Coap => "hono-coap",
        Protocol::Http => "hono-http",
    };
    Some((ADAPTER, adapter))
}

/// A command names its device in `to`; one that wants a reply names an address for it, and an id.
fn write_topic(address: &str, sent: &AmqpSent<'_>, out: &mut String) -> Result<(), &'static str> {
    out.clear();
    let to = sent
        .to
        .and_then(|to| to.strip_prefix(address)?.strip_prefix('/'));
    let device = to.filter(|device| is_level(device));
    let device = device.ok_or("`to` has to be the address of the link, and a device")?;
    let name = sent.subject.filter(|name| is_level(name));
    let name = name.ok_or("`subject` has to be the name of the command, without `/`")?;
    let correlation_id = match sent.reply_to {
        None => "",
        Some(reply_to) => {
            let tenant = tenant_of(address, COMMAND).unwrap_or_default();
            let reply_id = reply_to.strip_prefix(RESPONSE).and_then(|rest| {
                let rest = rest.strip_prefix('/')?.strip_prefix(tenant)?;
                rest.strip_prefix('/')
            });
            if reply_id.is_none_or(str::is_empty) {
                return Err("`reply-to` has to be `command_response/`, the tenant, and a reply id");
            }
            let id = sent.correlation_id.filter(|id| is_level(id));
            id.ok_or("a command with `reply-to` needs a text without `/` as its id")?
        }
    };
    out.extend([address, "/", device, "/", correlation_id, "/", name]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hono::northbound::{self, FAILURE};

    /// Section by section what Hono's API for applications promises.
    #[test]
    fn messages_surface_on_the_address_of_their_tenant() {
        let telemetry = surface("telemetry/t1/ns:d-17").expect("it surfaces");
        assert_eq!(telemetry.address, "telemetry/t1");
        assert_eq!(telemetry.way, AmqpWay::Direct);
        let device = [(DEVICE_ID, AmqpValue::Text("ns:d-17"))];
        assert_eq!(telemetry.properties(), device);
        let event = surface("event/t1/ns:d-17").expect("it surfaces");
        assert_eq!((event.address, event.way), ("event/t1", AmqpWay::Stored));
        assert_eq!(event.properties(), device);
        let reply = surface("command_response/t1/d-17/7f3a/200").expect("it surfaces");
        assert_eq!(reply.address, "command_response/t1");
        assert_eq!(
            (reply.way, reply.correlation_id),
            (AmqpWay::Reply, Some("7f3a"))
        );
        let golden = [
            (DEVICE_ID, AmqpValue::Text("d-17")),
            (TENANT_ID, AmqpValue::Text("t1")),
            (STATUS, AmqpValue::Int(200)),
        ];
        assert_eq!(reply.properties(), golden);
        for none in [
            "command/t1/d/7f3a/set",
            "command_failure/t1/d/7f3a/503",
            "t/t1/d",
            "x",
        ] {
            assert_eq!(surface(none), None, "{none}");
        }
        assert!(surface(&format!("{FAILURE}/t1/d/7/503")).is_none());
    }

    #[test]
    fn the_time_that_a_device_waits_is_a_number() {
        assert_eq!(property("ttd", "10"), AmqpValue::Int(10));
        assert_eq!(property("ttd", "soon"), AmqpValue::Text("soon"));
        assert_eq!(property("other", "10"), AmqpValue::Text("10"));
    }

    #[test]
    fn only_addresses_of_one_tenant_are_known() {
        let known = [
            "telemetry/t1",
            "event/t1",
            "command_response/t1/r",
            "command_response/t1/r/s",
        ];
        for address in known {
            assert!((AMQP.is_source)(address), "{address}");
        }
        for address in [
            "telemetry",
            "telemetry/",
            "telemetry/t1/d",
            "command/t1",
            "",
            "x/t1",
        ] {
            assert!(!(AMQP.is_source)(address), "{address}");
        }
        assert!((AMQP.is_target)("command/t1"));
        for address in ["command", "command/", "command/t1/d", "telemetry/t1"] {
            assert!(!(AMQP.is_target)(address), "{address}");
        }
    }

    const SENT: AmqpSent<'static> = AmqpSent {
        to: Some("command/t1/d-17"),
        subject: Some("set"),
        correlation_id: Some("7f3a"),
        reply_to: Some("command_response/t1/r-1"),
    };

    #[test]
    fn a_command_is_taken_as_one_over_mqtt() {
        let mut topic = "left over".to_owned();
        assert_eq!(write_topic("command/t1", &SENT, &mut topic), Ok(()));
        assert_eq!(topic, "command/t1/d-17/7f3a/set");
        let command = northbound::command(&topic).expect("it is a command");
        assert_eq!((command.tenant, command.device), ("t1", "d-17"));
        let one_way = AmqpSent {
            reply_to: None,
            ..SENT
        };
        assert_eq!(write_topic("command/t1", &one_way, &mut topic), Ok(()));
        let command = northbound::command(&topic).expect("it is a command");
        assert_eq!((command.correlation_id, command.name), (None, "set"));
    }

    #[test]
    fn a_command_with_a_wrong_field_is_refused_with_its_name() {
        let to = |to| AmqpSent { to, ..SENT };
        let subject = |subject| AmqpSent { subject, ..SENT };
        let id = |correlation_id| AmqpSent {
            correlation_id,
            ..SENT
        };
        let reply_to = |reply_to| AmqpSent { reply_to, ..SENT };
        let cases = [
            (to(None), "`to`"),
            (to(Some("command/t2/d-17")), "`to`"),
            (to(Some("command/t1/")), "`to`"),
            (subject(None), "`subject`"),
            (subject(Some("a/b")), "`subject`"),
            (id(None), "id"),
            (id(Some("a/b")), "id"),
            (reply_to(Some("command_response/t2/r-1")), "`reply-to`"),
            (reply_to(Some("command_response/t1/")), "`reply-to`"),
        ];
        for (sent, named) in cases {
            let why = write_topic("command/t1", &sent, &mut String::new()).unwrap_err();
            assert!(why.contains(named), "{why} does not name {named}");
        }
    }
}
