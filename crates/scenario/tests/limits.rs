//! Bounds of what sessions receive and send.

use muster_plan::Plan;
use muster_scenario::{NoFiles, Overrides, Source, parse};

fn plan(payload: &str) -> Plan {
    let text = format!(
        "name: big\nplatform: {{ kind: mqtt, devices: [ \"mqtt://127.0.0.1:1883\" ] }}\n\
         fleet: [ {{ name: m, count: 1, streams: [ {{ rate: 1/s, topic: \"t/${{id}}\", payload: {payload} }} ] }} ]\n"
    );
    let source = Source {
        name: "big.yaml",
        text: &text,
    };
    parse(source, &Overrides::default(), &NoFiles).expect("a plan")
}

#[test]
fn what_is_received_is_bounded_by_the_largest_payload() {
    let mib = 1 << 20;
    let log_normal = "{ size: { log-normal: { median: 1MiB, p99: 2MiB } } }";
    for (payload, least) in [
        ("{ size: 100 }", 100),
        ("{ size: 1MiB }", mib),
        ("{ size: 200MiB }", 200 * mib),
        // The draws reach far beyond the p99.
        (log_normal, 4 * mib),
    ] {
        let limit = plan(payload).receive_limit();
        assert!(limit > least + 65_536, "{payload}: {limit}");
        assert!(limit <= 268_435_460, "{payload}: {limit}");
    }
    assert_eq!(plan("{ size: 100 }").receive_limit(), mib);
}

#[test]
fn a_packet_is_larger_than_its_payload() {
    let packet = plan("{ size: 1000 }").fleets[0].largest_packet();
    assert!((1_001..1_200).contains(&packet), "{packet}");
}
