//! Devices over CoAP and MQTT, the business application over AMQP 1.0.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::types::messaging::{MessageId, Outcome, Properties};
use fe2o3_amqp::types::primitives::SimpleValue;
use muster_gateway::{
    Dialect, Gateway, GatewayAccount, GatewayConfig, GatewayCounts, User, payload_hash,
};
use muster_model::Micros;
use muster_model::behaviour::{Amount, Behaviour, Delayed, Reject};
use muster_protocol::coap::Code;
use muster_protocol::mqtt::{Publish, Qos, Version};

use crate::application::{Application, Settling, to};
use crate::device::{Answer, Ask, Device, PATIENCE};
use crate::peer::Peer;

/// A gateway with both ends.
struct Rig {
    gateway: Gateway,
    coap: SocketAddr,
    amqp: SocketAddr,
}

impl Rig {
    fn new() -> Self {
        Self::with(GatewayConfig {
            dialect: Dialect::Hono,
            ..GatewayConfig::default()
        })
    }

    fn with(config: GatewayConfig) -> Self {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let gateway = Gateway::start(GatewayConfig {
            listen: config
                .listen
                .with("coap", Some(here))
                .with("amqp", Some(here)),
            disposition_within: PATIENCE,
            ..config
        });
        let gateway = gateway.expect("a gateway");
        let at = |name| gateway.addresses().get(name).expect("it listens");
        let (coap, amqp) = (at("coap"), at("amqp"));
        Self {
            gateway,
            coap,
            amqp,
        }
    }

    fn application(&self) -> Application {
        Application::new(self.amqp)
    }

    fn device(&self) -> Device {
        Device::new(self.coap)
    }

    fn account(self) -> GatewayAccount {
        self.gateway.stop()
    }

    /// Waits until the account says so.
    fn until(&self, what: &str, holds: impl Fn(&GatewayCounts) -> bool) {
        let give_up = Device::now() + PATIENCE;
        while !holds(&self.gateway.account().counts) {
            let counts = self.gateway.account().counts;
            assert!(Device::now() < give_up, "never: {what}; {counts:?}");
            std::thread::yield_now();
        }
    }
}

fn telemetry(device: &str, body: &[u8]) -> Ask {
    Ask::put(&format!("telemetry/T1/{device}"), body)
}

fn event(device: &str, body: &[u8]) -> Ask {
    Ask::put(&format!("event/T1/{device}"), body)
}

fn is_unavailable(answer: &Answer) {
    assert_eq!(answer.code, Code::new(5, 3), "{answer:?}");
    assert_eq!(answer.max_age, Some(2));
    assert_eq!(answer.payload, b"no credit available");
}

#[test]
fn telemetry_without_a_receiver_is_refused_for_two_seconds() {
    let rig = Rig::new();
    let mut device = rig.device();
    is_unavailable(&device.answer(telemetry("d-1", b"{}")));
    let application = rig.application();
    let _other = application.receiver("telemetry/T2", 100);
    is_unavailable(&device.answer(telemetry("d-1", b"{}")));
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.rejected), (2, 2));
    assert_eq!((counts.unavailable, counts.accepted), (2, 0));
    assert_eq!((counts.processed, counts.delivered), (0, 0));
}

#[test]
fn credit_withheld_refuses_and_credit_granted_lets_pass() {
    let rig = Rig::new();
    let (application, mut device) = (rig.application(), rig.device());
    let receiver = application.receiver("telemetry/T1", 0);
    is_unavailable(&device.answer(telemetry("d-1", b"1")));
    receiver.grant(2);
    application.wait_until_read();
    for body in [b"2", b"3"] {
        let request = device.ask(telemetry("d-1", body));
        assert_eq!(receiver.take(1)[0].body(), body);
        device.until("its answer", |device| device.answers.contains_key(&request));
        assert_eq!(device.answers[&request].code, Code::CHANGED);
    }
    is_unavailable(&device.answer(telemetry("d-1", b"4")));
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.accepted), (4, 2));
    assert_eq!((counts.unavailable, counts.rejected), (2, 2));
    assert_eq!((counts.delivered, counts.delivered_acknowledged), (2, 2));
    assert_eq!(counts.processed, 2);
}

#[test]
fn a_message_has_honos_shape_and_its_answer_waits_for_the_disposition() {
    let rig = Rig::new();
    let (application, mut device) = (rig.application(), rig.device());
    let receiver = application.receiver("telemetry/T1", 10);
    let request = device.ask(Ask {
        query: "hono-ttd=5",
        ..telemetry("ns:d-17", b"{\"a\":1}")
    });
    let came = receiver.next();
    assert_eq!(came.body(), b"{\"a\":1}");
    let properties = came.properties();
    assert_eq!(properties.to.as_deref(), Some("telemetry/T1"));
    let media_type = properties.content_type.as_ref().map(|it| it.0.as_str());
    assert_eq!(media_type, Some("application/json"));
    assert!(properties.creation_time.is_some());
    let property = |name| came.application_property(name);
    assert_eq!(property("device_id"), Some(SimpleValue::from("ns:d-17")));
    assert_eq!(
        property("orig_adapter"),
        Some(SimpleValue::from("hono-coap"))
    );
    assert_eq!(property("ttd"), Some(SimpleValue::from(5)));
    assert_eq!(property("tenant_id"), None);
    device.read_all();
    assert!(device.answers.is_empty(), "it is not settled yet");
    receiver.settle(&came, Settling::Accepted);
    // The disposition is read before the command comes.
    rig.until("it waits", |counts| counts.queries == 1);
    let outcome = application.command("T1", to("ns:d-17"), b"on");
    assert!(outcome.is_accepted(), "{outcome:?}");
    device.until("its answer", |device| device.answers.contains_key(&request));
    assert_eq!(device.answers[&request].payload, b"on");
}

#[test]
fn every_disposition_but_accepted_refuses_the_device() {
    let rig = Rig::new();
    let (application, mut device) = (rig.application(), rig.device());
    let receiver = application.receiver("telemetry/T1", 10);
    for how in [Settling::Released, Settling::Rejected, Settling::Modified] {
        let request = device.ask(telemetry("d-1", b"{}"));
        let came = receiver.next();
        receiver.settle(&came, how);
        device.until("its answer", |device| device.answers.contains_key(&request));
        is_unavailable(&device.answers[&request]);
    }
    let counts = rig.account().counts;
    assert_eq!((counts.delivered, counts.delivered_acknowledged), (3, 0));
    assert_eq!((counts.returned, counts.unavailable), (3, 3));
    assert_eq!(counts.processed, 0);
}

#[test]
fn uplinks_without_a_disposition_when_the_gateway_stops_are_unanswered() {
    let rig = Rig::new();
    let (application, mut device) = (rig.application(), rig.device());
    let receiver = application.receiver("telemetry/T1", 10);
    // Answered, so that the account has both.
    let accepted = device.ask(telemetry("d-1", b"1"));
    receiver.take(1);
    device.until("its answer", |it| it.answers.contains_key(&accepted));
    for query in ["", "hono-ttd=20"] {
        device.ask(Ask {
            query,
            ..telemetry("d-1", b"2")
        });
        receiver.next();
    }
    let counts = rig.account().counts;
    assert_eq!((counts.received, counts.accepted), (3, 1));
    assert_eq!((counts.rejected, counts.unanswered), (0, 2));
}

#[test]
fn what_travels_at_most_once_needs_credit_and_no_disposition() {
    let rig = Rig::new();
    let (application, mut device) = (rig.application(), rig.device());
    let receiver = application.receiver("telemetry/T1", 1);
    let non = |body| Ask {
        is_confirmable: false,
        ..telemetry("d-1", body)
    };
    assert_eq!(device.answer(non(b"1")).code, Code::CHANGED);
    is_unavailable(&device.answer(non(b"2")));
    assert_eq!(receiver.next().body(), b"1");
}

#[test]
fn a_receiver_that_detaches_takes_nothing_more_and_another_does() {
    let rig = Rig::new();
    let (application, mut device) = (rig.application(), rig.device());
    let receiver = application.receiver("telemetry/T1", 100);
    let request = device.ask(telemetry("d-1", b"1"));
    receiver.take(1);
    device.until("its answer", |device| device.answers.contains_key(&request));
    receiver.detach();
    is_unavailable(&device.answer(telemetry("d-1", b"2")));
    let second = application.receiver("telemetry/T1", 100);
    let request = device.ask(telemetry("d-1", b"3"));
    assert_eq!(second.take(1)[0].body(), b"3");
    device.until("its answer", |device| device.answers.contains_key(&request));
    assert_eq!(device.answers[&request].code, Code::CHANGED);
}

#[test]
fn receivers_of_an_address_share_its_messages_and_one_without_credit_gets_none() {
    let rig = Rig::new();
    let (one, other, mut device) = (rig.application(), rig.application(), rig.device());
    let first = one.receiver("telemetry/T1", 2);
    let _without = other.receiver("telemetry/T1", 0);
    let bodies = [b"1", b"2"];
    let requests = bodies.map(|body| device.ask(telemetry("d-1", body)));
    let came: Vec<Vec<u8>> = first.take(2).iter().map(|came| came.body()).collect();
    assert_eq!(came, bodies);
    device.until("both answers", |device| {
        requests.iter().all(|it| device.answers.contains_key(it))
    });
}

#[test]
fn events_wait_for_a_receiver_and_come_again_until_they_are_accepted() {
    let rig = Rig::new();
    let mut device = rig.device();
    for body in [b"1", b"2"] {
        assert_eq!(device.answer(event("d-1", body)).code, Code::CHANGED);
    }
    let application = rig.application();
    let receiver = application.receiver("event/T1", 1);
    let came = receiver.next();
    assert_eq!(came.body(), b"1");
    assert_eq!(came.properties().to.as_deref(), Some("event/T1"));
    let header = came.message.header.as_ref();
    assert!(header.is_some_and(|header| header.durable));
    receiver.settle(&came, Settling::Released);
    rig.until("it came back", |counts| counts.returned == 1);
    receiver.grant(10);
    let came = receiver.take(2);
    let bodies: Vec<Vec<u8>> = came.iter().map(|came| came.body()).collect();
    assert_eq!(bodies, [b"1", b"2"]);
    rig.until("all accepted", |counts| counts.delivered_acknowledged == 2);
    let counts = rig.account().counts;
    assert_eq!((counts.accepted, counts.processed), (2, 2));
    assert_eq!((counts.delivered, counts.redelivered), (2, 1));
    assert_eq!((counts.returned, counts.unavailable), (1, 0));
}

#[test]
fn a_reply_goes_to_the_address_that_its_command_named() {
    let rig = Rig::new();
    let (application, mut device) = (rig.application(), rig.device());
    let replies = application.receiver("command_response/T1/r-1", 10);
    let request = device.ask(Ask {
        query: "hono-ttd=20",
        ..event("dev-1", b"{}")
    });
    rig.until("it waits", |counts| counts.queries == 1);
    let outcome = application.command("T1", to("dev-1"), b"on");
    assert!(outcome.is_accepted(), "{outcome:?}");
    device.until("its command", |device| {
        device.answers.contains_key(&request)
    });
    let command = device.answers[&request].clone();
    assert_eq!(command.payload, b"on");
    assert_eq!(command.parameters, ["hono-command=set"]);
    let reply = device.answer(Ask {
        query: "hono-cmd-status=204",
        ..Ask::put(&command.location.join("/"), b"done")
    });
    assert_eq!(reply.code, Code::CHANGED);
    let came = replies.take(1).remove(0);
    assert_eq!(came.body(), b"done");
    let properties = came.properties();
    let id = Some(MessageId::String("7f3a".to_owned()));
    assert_eq!(properties.to.as_deref(), Some("command_response/T1/r-1"));
    assert_eq!(properties.correlation_id, id);
    let property = |name| came.application_property(name);
    assert_eq!(property("device_id"), Some(SimpleValue::from("dev-1")));
    assert_eq!(property("tenant_id"), Some(SimpleValue::from("T1")));
    assert_eq!(property("status"), Some(SimpleValue::from(204)));
    let counts = rig.account().counts;
    assert_eq!((counts.commands, counts.commands_handed), (1, 1));
    assert_eq!(counts.replies, 1);
}

/// Hono registers who waits before it passes the message on.
#[test]
fn a_command_that_comes_before_the_disposition_waits_for_it() {
    let rig = Rig::new();
    let (application, mut device) = (rig.application(), rig.device());
    let receiver = application.receiver("telemetry/T1", 10);
    for (how, code) in [
        (Settling::Accepted, Code::CHANGED),
        (Settling::Released, Code::new(5, 3)),
    ] {
        let request = device.ask(Ask {
            query: "hono-ttd=20",
            ..telemetry("dev-1", b"{}")
        });
        let came = receiver.next();
        let issued = application.issue("T1", to("dev-1"), b"on");
        receiver.settle(&came, how);
        let is_accepted = issued.outcome().is_accepted();
        assert_eq!(is_accepted, code == Code::CHANGED, "{how:?}");
        device.until("its answer", |device| device.answers.contains_key(&request));
        assert_eq!(device.answers[&request].code, code, "{how:?}");
    }
    let counts = rig.account().counts;
    assert_eq!((counts.commands, counts.commands_handed), (2, 1));
}

/// Law: no command waits for the one before it on its link.
#[test]
fn a_command_that_waits_for_a_disposition_holds_back_no_other_of_its_link() {
    let rig = Rig::new();
    let (application, mut device) = (rig.application(), rig.device());
    let receiver = application.receiver("telemetry/T1", 10);
    let request = device.ask(Ask {
        query: "hono-ttd=20",
        ..telemetry("dev-1", b"{}")
    });
    let came = receiver.next();
    let commands = ["dev-1", "dev-1", "absent"].map(|device| (to(device), b"on".to_vec()));
    let issued = application.issue_all("T1", commands.into());
    let [first, second, other] = <[_; 3]>::try_from(issued).ok().expect("one for each");
    let outcome = other.outcome();
    assert!(matches!(outcome, Outcome::Released(_)), "{outcome:?}");
    receiver.settle(&came, Settling::Accepted);
    // The answer carries the first one.
    assert!(first.outcome().is_accepted());
    assert!(matches!(second.outcome(), Outcome::Released(_)));
    device.until("its answer", |device| device.answers.contains_key(&request));
    assert_eq!(device.answers[&request].payload, b"on");
}

/// A property of a message says nothing of commands.
#[test]
fn only_an_uplink_that_waits_for_a_command_holds_back_those_to_its_device() {
    let rig = Rig::new();
    let application = rig.application();
    let receiver = application.receiver("telemetry/T1", 10);
    let mut device = Peer::new(rig.gateway.addr(), Version::V5, "device");
    device.send(&Publish {
        qos: Qos::AtLeastOnce,
        user_properties: &[("ttd", "20")],
        ..Publish::new("telemetry/T1/dev-1", b"{}")
    });
    let came = receiver.next();
    let outcome = application.command("T1", to("dev-1"), b"on");
    assert!(matches!(outcome, Outcome::Released(_)), "{outcome:?}");
    receiver.settle(&came, Settling::Accepted);
    device.answers(1);
}

#[test]
fn a_command_is_released_without_a_device_and_rejected_if_it_is_wrong() {
    let rig = Rig::new();
    let application = rig.application();
    let outcome = application.command("T1", to("absent"), b"on");
    assert!(matches!(outcome, Outcome::Released(_)), "{outcome:?}");
    let nameless = Properties {
        subject: None,
        ..to("absent")
    };
    let elsewhere = Properties {
        to: Some("command/T2/d-1".to_owned()),
        ..to("absent")
    };
    let long = Properties {
        correlation_id: Some(MessageId::String("x".repeat(256))),
        ..to("absent")
    };
    for (properties, named) in [(nameless, "`subject`"), (elsewhere, "`to`"), (long, "255")] {
        let outcome = application.command("T1", properties, b"on");
        let Outcome::Rejected(rejected) = &outcome else {
            panic!("{named}: {outcome:?}");
        };
        let why = rejected
            .error
            .as_ref()
            .and_then(|it| it.description.as_deref());
        assert!(
            why.is_some_and(|why| why.contains(named)),
            "{named}: {why:?}"
        );
    }
    let counts = rig.account().counts;
    assert_eq!((counts.commands, counts.commands_handed), (1, 0));
}

#[test]
fn an_unknown_address_is_refused_with_its_name() {
    let rig = Rig::new();
    let application = rig.application();
    for address in ["telemetry", "telemetry/T1/d-1", "control/T1"] {
        let refusal = application.refusal(address).expect("it is refused");
        assert!(refusal.contains(address), "{refusal}");
    }
}

#[test]
fn only_those_with_credentials_are_admitted_where_users_are_named() {
    let user = User {
        name: "consumer@HONO".to_owned(),
        password: b"verysecret".to_vec(),
    };
    let rig = Rig::with(GatewayConfig {
        dialect: Dialect::Hono,
        users: vec![user],
        ..GatewayConfig::default()
    });
    let plain = |password: &str| SaslProfile::Plain {
        username: "consumer@HONO".to_owned(),
        password: password.to_owned(),
    };
    assert!(Application::open(rig.amqp, plain("verysecret")).is_ok());
    assert!(Application::open(rig.amqp, plain("wrong")).is_err());
    assert!(Application::open(rig.amqp, SaslProfile::Anonymous).is_err());
    assert_eq!(rig.account().refused.get(&0x86), Some(&1));
}

#[test]
fn only_the_northbound_user_is_admitted_where_there_is_one() {
    let user = |name: &str| User {
        name: name.to_owned(),
        password: b"secret".to_vec(),
    };
    let plain = |name: &str, password: &str| SaslProfile::Plain {
        username: name.to_owned(),
        password: password.to_owned(),
    };
    for users in [Vec::new(), vec![user("device")]] {
        let rig = Rig::with(GatewayConfig {
            dialect: Dialect::Hono,
            northbound: Some(user("north")),
            users,
            ..GatewayConfig::default()
        });
        assert!(Application::open(rig.amqp, plain("north", "secret")).is_ok());
        assert!(Application::open(rig.amqp, plain("north", "wrong")).is_err());
        assert!(Application::open(rig.amqp, plain("device", "secret")).is_err());
        assert!(Application::open(rig.amqp, SaslProfile::Anonymous).is_err());
    }
}

#[test]
fn links_that_have_ended_do_not_count_towards_the_links_of_a_session() {
    let rig = Rig::new();
    let application = rig.application();
    // A receiver asks for a second link on its way.
    for _ in 0..=500 {
        application.receiver("telemetry/T1", 1).detach();
    }
    let receiver = application.receiver("telemetry/T1", 1);
    let mut device = rig.device();
    let request = device.ask(telemetry("d-1", b"1"));
    assert_eq!(receiver.take(1)[0].body(), b"1");
    device.until("its answer", |device| device.answers.contains_key(&request));
}

/// Section 2.2, and section 5.3 with the mechanisms as figure 5.3 has them.
#[test]
fn the_first_bytes_are_the_standards() {
    let rig = Rig::new();
    let mut stream = TcpStream::connect(rig.amqp).expect("it listens");
    stream.write_all(b"AMQP\x03\x01\x00\x00").expect("it reads");
    let mut header = [0; 8];
    stream.read_exact(&mut header).expect("it answers");
    assert_eq!(&header, b"AMQP\x03\x01\x00\x00");
    let mut size = [0; 4];
    stream.read_exact(&mut size).expect("a frame");
    let mut frame = vec![0; u32::from_be_bytes(size) as usize - 4];
    stream.read_exact(&mut frame).expect("the whole of it");
    // Data offset, type SASL, channel 0; a described type with the small code of sasl-mechanisms.
    assert_eq!(frame[..7], [2, 1, 0, 0, 0x00, 0x53, 0x40]);
    let text = String::from_utf8_lossy(&frame);
    assert!(
        text.contains("PLAIN") && text.contains("ANONYMOUS"),
        "{text}"
    );
}

#[test]
fn at_a_broker_addresses_are_topics_or_filters_of_them() {
    let rig = Rig::with(GatewayConfig::default());
    let application = rig.application();
    let one = application.receiver("muster/d-1/t", 10);
    let every = application.receiver("muster/+/t", 10);
    let mut device = Peer::new(rig.gateway.addr(), Version::V5, "device");
    device.publish("muster/d-1/t", b"1", Qos::AtLeastOnce);
    device.publish("muster/d-2/t", b"2", Qos::AtLeastOnce);
    let came = every.take(2);
    let topics = came.iter().map(|came| came.properties().to.as_deref());
    assert!(topics.eq([Some("muster/d-1/t"), Some("muster/d-2/t")]));
    assert_eq!(one.take(1)[0].body(), b"1");
    rig.until("all accepted", |counts| counts.delivered_acknowledged == 3);
    assert_eq!(rig.account().counts.delivered, 3);
}

fn faults() -> Behaviour {
    Behaviour {
        lose_after_accept: 5,
        duplicate: 6,
        deliver_late: Delayed {
            count: 7,
            by: Micros::from_millis(300),
        },
        corrupt: 8,
        reorder: 9,
        reject: Some(Reject {
            code: 503,
            amount: Amount::Count(10),
        }),
        ..Behaviour::default()
    }
}

/// Each fault happens as often as it is asked for, and is booked.
#[test]
fn every_misbehaviour_is_what_the_account_says() {
    const UPLINKS: usize = 200;
    let rig = Rig::with(GatewayConfig {
        dialect: Dialect::Hono,
        behaviour: faults(),
        expected_uplinks: UPLINKS as u64,
        ..GatewayConfig::default()
    });
    let (application, mut device) = (rig.application(), rig.device());
    let receiver = application.receiver("telemetry/T1", 1_000);
    let sent: Vec<Vec<u8>> = (0..UPLINKS).map(|at| format!("{at} {at}").into()).collect();
    for body in &sent {
        device.ask(telemetry("d-1", body));
    }
    let came: Vec<Vec<u8>> = {
        let came = receiver.take(UPLINKS - 5 - 10 + 6);
        came.iter().map(|came| came.body()).collect()
    };
    device.until("all answers", |device| device.answers.len() == UPLINKS);
    rig.until("all accepted", |counts| {
        counts.delivered_acknowledged == came.len() as u64
    });
    let account = rig.account();
    let mut copies: BTreeMap<u64, usize> = BTreeMap::new();
    came.iter()
        .for_each(|body| *copies.entry(payload_hash(body)).or_default() += 1);
    let of = |name: &str| account.misbehaved.get(name).cloned().unwrap_or_default();
    let counts = |name: &str| of(name).len();
    let names = [
        "lose-after-accept",
        "duplicate",
        "deliver-late",
        "corrupt",
        "reorder",
        "reject",
    ];
    assert_eq!(names.map(counts), [5, 6, 7, 8, 9, 10]);
    for body in &sent {
        let hash = payload_hash(body);
        let is = |name: &str| of(name).contains(&hash);
        let expected = match () {
            () if is("lose-after-accept") || is("reject") || is("corrupt") => 0,
            () if is("duplicate") => 2,
            () => 1,
        };
        let got = copies.remove(&hash).unwrap_or(0);
        assert_eq!(got, expected, "{}", String::from_utf8_lossy(body));
    }
    assert_eq!(copies.len(), 8, "the damaged ones");
    assert_eq!(account.counts.accepted, UPLINKS as u64 - 10);
    assert_eq!(
        (account.counts.rejected, account.counts.unavailable),
        (10, 0)
    );
}
