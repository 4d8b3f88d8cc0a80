//! From devices to subscribers: filters, groups, retained messages, quality of service.

use muster_gateway::{Gateway, GatewayConfig};
use muster_model::Micros;
use muster_protocol::mqtt::{Filter, Publish, Qos, RetainHandling, Version};

use crate::peer::Peer;

fn gateway(threads: u16) -> Gateway {
    Gateway::start(GatewayConfig {
        threads,
        ..GatewayConfig::default()
    })
    .expect("a gateway")
}

fn peer(gateway: &Gateway, name: &str) -> Peer {
    Peer::new(gateway.addr(), Version::V5, name)
}

/// MQTT-3.8.4-8.
#[test]
fn the_quality_of_service_is_the_lower_of_both_sides() {
    let gateway = gateway(1);
    let levels = [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce];
    for version in [Version::V311, Version::V5] {
        let mut device = Peer::new(gateway.addr(), version, "device");
        for wanted in levels {
            let mut consumer = Peer::new(gateway.addr(), version, "consumer");
            consumer.subscribe("t", wanted);
            for sent in levels {
                device.publish("t", &[sent.bits()], sent);
            }
            for got in consumer.messages(3) {
                let sent = Qos::from_bits(got.payload[0]).expect("a level");
                assert_eq!(got.qos, sent.min(wanted), "{version:?}");
            }
            consumer.watch(Micros::from_millis(30));
            assert_eq!(consumer.got().len(), 3);
            consumer.disconnect();
        }
    }
    assert_eq!(gateway.stop().counts.delivered, 18);
}

#[test]
fn an_uplink_without_subscriber_is_accepted_and_says_so() {
    let gateway = gateway(1);
    let mut device = peer(&gateway, "device");
    device.publish("t", b"x", Qos::AtLeastOnce);
    device.publish("t", b"y", Qos::ExactlyOnce);
    device.answers(2);
    let counts = gateway.stop().counts;
    assert_eq!((counts.accepted, counts.no_subscriber), (2, 2));
}

#[test]
fn a_group_shares_what_others_get_whole() {
    for threads in [1, 2] {
        let gateway = gateway(threads);
        let mut sharers: Vec<Peer> = (0..4).map(|n| peer(&gateway, &format!("s{n}"))).collect();
        for sharer in &mut sharers {
            sharer.subscribe("$share/g/t/+", Qos::AtLeastOnce);
        }
        let mut whole = peer(&gateway, "whole");
        whole.subscribe("t/#", Qos::AtLeastOnce);
        let mut device = peer(&gateway, "device");
        for n in 0..100u8 {
            device.publish("t/x", &[n], Qos::AtLeastOnce);
        }
        assert_eq!(whole.messages(100).len(), 100);
        let mut all: Vec<u8> = sharers
            .iter_mut()
            .flat_map(|sharer| sharer.messages(25))
            .map(|got| got.payload[0])
            .collect();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<u8>>(), "{threads} threads");
    }
}

/// MQTT-4.2.0-1, MQTT-4.6.0-5, MQTT-4.6.0-6.
#[test]
fn order_is_kept_for_each_device_also_between_threads() {
    let gateway = gateway(2);
    let mut consumers: Vec<Peer> = (0..4).map(|n| peer(&gateway, &format!("c{n}"))).collect();
    for consumer in &mut consumers {
        consumer.subscribe("t/#", Qos::AtLeastOnce);
    }
    let mut devices: Vec<Peer> = (0..4).map(|n| peer(&gateway, &format!("d{n}"))).collect();
    for n in 0..250u8 {
        for (at, device) in devices.iter_mut().enumerate() {
            device.publish(&format!("t/{at}"), &[n], Qos::AtLeastOnce);
        }
    }
    for consumer in &mut consumers {
        let all = consumer.messages(1_000);
        for at in 0..4 {
            let topic = format!("t/{at}");
            let numbers: Vec<u8> = all
                .iter()
                .filter(|got| got.topic == topic)
                .map(|got| got.payload[0])
                .collect();
            assert_eq!(numbers, (0..250).collect::<Vec<u8>>());
        }
    }
    for device in &mut devices {
        device.answers(250);
    }
    let counts = gateway.stop().counts;
    assert_eq!(
        (counts.received, counts.accepted, counts.delivered),
        (1_000, 1_000, 4_000)
    );
}

/// MQTT-3.3.1-12, MQTT-3.3.1-13.
#[test]
fn retained_messages_come_as_the_subscription_asks() {
    let gateway = gateway(1);
    let mut device = peer(&gateway, "device");
    let retained = Publish {
        retain: true,
        qos: Qos::AtLeastOnce,
        ..Publish::new("t/1", b"old")
    };
    device.send(&retained);
    device.send(&Publish {
        payload: b"new",
        ..retained
    });
    device.send(&Publish {
        topic: "t/2",
        ..retained
    });
    device.send(&Publish {
        topic: "t/2",
        payload: b"",
        ..retained
    });
    device.answers(4);
    let mut consumer = peer(&gateway, "consumer");
    consumer.subscribe("t/+", Qos::AtLeastOnce);
    let got = consumer.messages(1);
    assert_eq!(
        (got[0].payload.as_slice(), got[0].retain),
        (b"new".as_slice(), true)
    );
    let filter = Filter::new("t/+", Qos::AtLeastOnce);
    let if_new = Filter {
        retain_handling: RetainHandling::SendIfNew,
        ..filter
    };
    let never = Filter {
        filter: "#",
        retain_handling: RetainHandling::Keep,
        ..filter
    };
    consumer.ask([if_new, never], None);
    consumer.watch(Micros::from_millis(50));
    assert_eq!(consumer.got().len(), 1);
    device.send(&Publish {
        payload: b"live",
        ..retained
    });
    let live = consumer.messages(2);
    assert!(
        !live[1].retain,
        "a live copy is not marked unless asked for"
    );
    consumer.ask(
        [Filter {
            retain_as_published: true,
            ..never
        }],
        None,
    );
    device.send(&Publish {
        topic: "u",
        ..retained
    });
    assert!(consumer.messages(3)[2].retain);
}

/// MQTT-3.3.4-2, MQTT-3.3.4-3, MQTT-3.3.4-5.
#[test]
fn subscriptions_with_ids_of_their_own_get_copies_of_their_own() {
    let gateway = gateway(1);
    let mut consumer = peer(&gateway, "consumer");
    consumer.ask([Filter::new("t/#", Qos::AtMostOnce)], Some(7));
    consumer.ask([Filter::new("t/+", Qos::AtLeastOnce)], Some(8));
    let mut plain = peer(&gateway, "plain");
    plain.subscribe("t/#", Qos::AtMostOnce);
    plain.subscribe("t/+", Qos::AtLeastOnce);
    peer(&gateway, "device").publish("t/1", b"x", Qos::AtLeastOnce);
    let mut ids: Vec<u32> = consumer
        .messages(2)
        .into_iter()
        .flat_map(|got| got.subscription_ids)
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [7, 8]);
    assert_eq!(
        plain.messages(1)[0].qos,
        Qos::AtLeastOnce,
        "one copy at the higher level"
    );
    plain.watch(Micros::from_millis(30));
    assert_eq!(plain.got().len(), 1);
}

#[test]
fn properties_travel_with_the_message() {
    let gateway = gateway(2);
    let mut consumers: Vec<Peer> = (0..4).map(|n| peer(&gateway, &format!("c{n}"))).collect();
    for consumer in &mut consumers {
        consumer.subscribe("t", Qos::AtLeastOnce);
    }
    let publish = Publish {
        user_properties: &[("stamp", "abc"), ("stamp", "def")],
        content_type: Some("text/plain"),
        ..Publish::new("t", b"x")
    };
    peer(&gateway, "device").send(&publish);
    for consumer in &mut consumers {
        let pairs = [("stamp", "abc"), ("stamp", "def")];
        let expected = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(consumer.messages(1)[0].user, expected);
    }
}

/// MQTT-3.8.3-3.
#[test]
fn no_local_keeps_a_clients_own_messages_away() {
    let gateway = gateway(1);
    let mut both = peer(&gateway, "both");
    both.ask(
        [Filter {
            no_local: true,
            ..Filter::new("t", Qos::AtMostOnce)
        }],
        None,
    );
    both.subscribe("u", Qos::AtMostOnce);
    both.publish("t", b"own", Qos::AtMostOnce);
    both.publish("u", b"own", Qos::AtMostOnce);
    assert_eq!(both.messages(1)[0].topic, "u");
}

/// MQTT-3.10.4-2.
#[test]
fn an_ended_subscription_brings_nothing_more() {
    let gateway = gateway(1);
    let mut consumer = peer(&gateway, "consumer");
    consumer.subscribe("t", Qos::AtMostOnce);
    consumer.unsubscribe("t");
    peer(&gateway, "device").publish("t", b"x", Qos::AtMostOnce);
    consumer.watch(Micros::from_millis(50));
    assert!(consumer.got().is_empty());
}

/// MQTT-3.8.4-1, MQTT-3.8.4-5, MQTT-3.8.4-6, MQTT-3.8.4-7, MQTT-3.9.3-1, MQTT-3.9.3-2,
/// MQTT-4.7.1-1.
#[test]
fn a_filter_that_is_none_is_refused_in_the_standards_words() {
    let gateway = gateway(1);
    let filters = || {
        [
            Filter::new("a#", Qos::AtMostOnce),
            Filter::new("a/#", Qos::AtLeastOnce),
        ]
    };
    assert_eq!(peer(&gateway, "new").ask(filters(), None), [0x8f, 1]);
    let mut old = Peer::new(gateway.addr(), Version::V311, "old");
    assert_eq!(old.ask(filters(), None), [0x80, 1]);
}
