//! ThingsBoard's own counters, as Prometheus reads them.

use muster_model::Micros;
use muster_model::behaviour::{Behaviour, Stall};
use muster_protocol::mqtt::Qos;

use crate::browser::Browser;
use crate::peer::CLOCK;
use crate::tenant::{PATIENCE, Tenant};

const TELEMETRY: &str = "v1/devices/me/telemetry";

fn page(tenant: &Tenant) -> String {
    let addresses = tenant.gateway.addresses();
    let mut browser = Browser::new(addresses.get("management").expect("it is served"));
    let answer = browser.answer("GET /actuator/prometheus", &[], "");
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.body).expect("text")
}

/// Reads the page until it has these lines.
fn has(tenant: &Tenant, lines: &[&str]) {
    let give_up = CLOCK.now() + PATIENCE;
    loop {
        let page = page(tenant);
        if lines.iter().all(|line| page.lines().any(|of| of == *line)) {
            return;
        }
        assert!(CLOCK.now() < give_up, "{page}");
    }
}

/// Twenty messages of two values each.
fn publish(tenant: &Tenant) {
    tenant.create("d");
    let mut peer = tenant.device("d");
    for ts in 1..=20 {
        let body = format!(r#"{{"ts":{ts},"values":{{"n":{ts},"m":1}}}}"#);
        peer.publish(TELEMETRY, body.as_bytes(), Qos::AtLeastOnce);
    }
    peer.answers(20);
}

#[test]
fn what_is_lost_behind_its_acknowledgement_shows_in_the_counters() {
    let behaviour = Behaviour {
        lose_stored: 3,
        ..Behaviour::default()
    };
    let tenant = Tenant::with(behaviour, None);
    publish(&tenant);
    has(
        &tenant,
        &[
            r#"ruleEngine_producer_total{statsName="successfulMsgs"} 20.0"#,
            r#"ruleEngine_Main_total{statsName="totalMsgs",tenantId="system"} 20.0"#,
            r#"ruleEngine_Main_total{statsName="successfulMsgs",tenantId="system"} 17.0"#,
            r#"ruleEngine_Main_total{statsName="failedMsgs",tenantId="system"} 3.0"#,
            r#"ts_queue_0_total{statsName="successfulMsgs"} 34.0"#,
        ],
    );
}

#[test]
fn a_store_that_stands_still_shows_as_messages_in_the_queue() {
    let stall = Stall {
        at: Micros::ZERO,
        lasts: Micros::from_secs(600),
    };
    let behaviour = Behaviour {
        stall_store: Some(stall),
        ..Behaviour::default()
    };
    let tenant = Tenant::with(behaviour, None);
    publish(&tenant);
    has(
        &tenant,
        &[
            r#"ruleEngine_producer_total{statsName="successfulMsgs"} 20.0"#,
            r#"ruleEngine_Main_total{statsName="totalMsgs",tenantId="system"} 0.0"#,
            r#"ts_queue_0_total{statsName="totalMsgs"} 0.0"#,
        ],
    );
}
