//! Subscribers that are slower than publishers.

use std::thread;

use muster_gateway::{Gateway, GatewayConfig, SlowReader};
use muster_model::Micros;
use muster_protocol::mqtt::{Connect, Qos, Version};

use crate::peer::Peer;

#[test]
fn a_subscriber_with_a_window_of_one_gets_everything_in_order() {
    let gateway = Gateway::start(GatewayConfig::default()).expect("a gateway");
    let connect = Connect {
        receive_maximum: 1,
        ..Connect::new("narrow")
    };
    let mut consumer = Peer::open(gateway.addr(), Version::V5, &connect);
    consumer.subscribe("t", Qos::ExactlyOnce);
    let mut device = Peer::new(gateway.addr(), Version::V5, "device");
    for n in 0..200u8 {
        device.publish("t", &[n], Qos::ExactlyOnce);
    }
    let got: Vec<u8> = consumer
        .messages(200)
        .iter()
        .map(|got| got.payload[0])
        .collect();
    assert_eq!(got, (0..200).collect::<Vec<u8>>());
}

#[test]
fn publishers_wait_for_a_slow_subscriber_and_nothing_is_lost() {
    const MESSAGES: usize = 60_000;
    for threads in [1, 2] {
        let config = GatewayConfig {
            threads,
            ..GatewayConfig::default()
        };
        let gateway = Gateway::start(config).expect("a gateway");
        let addr = gateway.addr();
        let mut consumer = Peer::new(addr, Version::V5, "slow");
        consumer.subscribe("t/#", Qos::AtLeastOnce);
        let publisher = thread::spawn(move || {
            let mut device = Peer::new(addr, Version::V5, "device");
            let payload = [7; 600];
            for n in 0..MESSAGES {
                device.publish("t/1", &payload, Qos::AtLeastOnce);
                if n % 64 == 0 {
                    device.read();
                }
            }
            device.answers(MESSAGES);
        });
        // The consumer sleeps while its queue fills.
        let give_up = consumer.now() + Micros::from_secs(20);
        while gateway.account().counts.held_back == 0 {
            assert!(consumer.now() < give_up, "nobody was held back");
            thread::sleep(std::time::Duration::from_millis(5));
        }
        let counts = gateway.account().counts;
        assert!(
            counts.received < MESSAGES as u64,
            "{threads} threads: {counts:?}"
        );
        assert_eq!(consumer.messages(MESSAGES).len(), MESSAGES);
        publisher.join().expect("the publisher");
        let counts = gateway.stop().counts;
        assert_eq!((counts.delivered, counts.overflowed), (MESSAGES as u64, 0));
    }
}

#[test]
fn copies_at_qos_0_that_find_no_room_are_counted() {
    const MESSAGES: usize = 150_000;
    let gateway = Gateway::start(GatewayConfig::default()).expect("a gateway");
    let mut consumer = Peer::new(gateway.addr(), Version::V5, "slow");
    consumer.subscribe("t", Qos::AtMostOnce);
    let mut device = Peer::new(gateway.addr(), Version::V5, "device");
    let payload = [7; 200];
    for _ in 0..MESSAGES {
        device.publish("t", &payload, Qos::AtMostOnce);
    }
    // The last one is answered, so all before it have been dealt with.
    device.publish("u", b"the end", Qos::AtLeastOnce);
    device.answers(1);
    let dropped = gateway.account().counts.overflowed as usize;
    assert!(dropped > 0, "the queue is bounded");
    consumer.messages(MESSAGES - dropped);
    consumer.watch(Micros::from_millis(50));
    assert_eq!(consumer.got().len(), MESSAGES - dropped);
}

#[test]
fn a_slow_reader_reads_at_its_rate_and_loses_nothing() {
    let slow = SlowReader {
        bytes: 2_000,
        every: Micros::from_millis(10),
    };
    let config = GatewayConfig {
        slow_reader: Some(slow),
        ..GatewayConfig::default()
    };
    let gateway = Gateway::start(config).expect("a gateway");
    let mut device = Peer::new(gateway.addr(), Version::V5, "device");
    // Once one is answered, it is known as a publisher, and is read slowly.
    device.publish("t", &[7; 500], Qos::AtLeastOnce);
    device.answers(1);
    let began = device.now();
    for _ in 0..99 {
        device.publish("t", &[7; 500], Qos::AtLeastOnce);
    }
    device.answers(100);
    // 50,000 bytes at 200,000 a second, less what the first turn reads.
    let took = device.now() - began;
    assert!(took >= Micros::from_millis(150), "{took}");
    assert_eq!(gateway.stop().counts.accepted, 100);
}

#[test]
fn a_receive_maximum_is_announced_and_held() {
    let config = GatewayConfig {
        receive_maximum: 1,
        ..GatewayConfig::default()
    };
    let gateway = Gateway::start(config).expect("a gateway");
    let mut device = Peer::new(gateway.addr(), Version::V5, "device");
    assert_eq!(device.client.window_free(), 1);
    for n in 0..20 {
        device.publish("t", b"one at a time", Qos::AtLeastOnce);
        assert_eq!(device.client.window_free(), 0);
        device.answers(n + 1);
    }
    assert_eq!(gateway.stop().counts.accepted, 20);
}
