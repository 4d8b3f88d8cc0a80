//! Memory that the gateway holds without use, seen from outside: a process of one test, since others would use memory, too.

use muster_gateway::{Gateway, GatewayConfig};
use muster_model::behaviour::{Behaviour, Leak, Sawtooth};
use muster_model::{Micros, Rate};
use muster_net::Clock;

const MB: i64 = 1_000_000;
/// A generous limit: only memory that does not change reaches it.
const PATIENCE: Micros = Micros::from_secs(60);

/// Resident bytes of this process.
fn resident() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next());
    1_024 * kib.and_then(|kib| kib.parse::<i64>().ok()).expect("KiB")
}

fn start(behaviour: Behaviour) -> Gateway {
    let gateway = Gateway::start(GatewayConfig {
        behaviour,
        ..GatewayConfig::default()
    });
    gateway.expect("it starts")
}

/// Waits until the process has so much more memory than before.
fn until(before: i64, is_so: impl Fn(i64) -> bool) {
    let clock = Clock::start();
    while !is_so(resident() - before) {
        let grown = (resident() - before) / MB;
        assert!(clock.now() < PATIENCE, "{grown} MB more than before");
        std::thread::yield_now();
    }
}

#[test]
fn a_leak_is_resident_up_to_its_limit_and_a_sawtooth_is_released() {
    let before = resident();
    let leaking = start(Behaviour {
        leak: Some(Leak {
            bytes: Rate::per_second(1e9).expect("a rate"),
            at_most: 100_000_000,
        }),
        ..Behaviour::default()
    });
    until(before, |grown| grown >= 100 * MB);
    assert!(resident() - before < 150 * MB, "it stays at its limit");
    leaking.stop();
    until(before, |grown| grown < 50 * MB);
    let collecting = start(Behaviour {
        sawtooth: Some(Sawtooth {
            bytes: 200_000_000,
            every: Micros::from_secs(2),
        }),
        ..Behaviour::default()
    });
    for _ in 0..2 {
        until(before, |grown| grown >= 100 * MB);
        until(before, |grown| grown < 50 * MB);
    }
    collecting.stop();
}
