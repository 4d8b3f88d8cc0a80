//! The gateway as SAP Edge, towards a client that does not wait for its subscription.

use muster_gateway::{Dialect, Gateway, GatewayConfig};
use muster_model::Micros;
use muster_model::behaviour::{Behaviour, ServiceTime};
use muster_protocol::mqtt::{Connect, Qos, Version};

use crate::peer::Peer;

/// As the published utility does: its first message is on its way before its subscription.
#[test]
fn a_client_that_subscribes_after_its_first_message_is_acknowledged() {
    let behaviour = Behaviour {
        // Longer than the default, so that a busy machine is no reason to fail.
        service_time: Some(ServiceTime::Fixed(Micros::from_millis(300))),
        ..Behaviour::default()
    };
    let gateway = Gateway::start(GatewayConfig {
        dialect: Dialect::SapEdge,
        behaviour,
        ..GatewayConfig::default()
    });
    let gateway = gateway.expect("a gateway");
    let mut peer = Peer::open(gateway.addr(), Version::V311, &Connect::new("PerfTest_0"));
    let measure = br#"{"measureMessageId":"0","measures":[]}"#;
    peer.publish("measures/PerfTest_0", measure, Qos::AtMostOnce);
    peer.subscribe("ack/PerfTest_0", Qos::AtMostOnce);
    let acknowledged = peer.messages(1);
    let text = String::from_utf8_lossy(&acknowledged[0].payload).into_owned();
    assert!(text.contains(r#""id":"0","code":202"#), "{text}");
    assert_eq!(gateway.stop().counts.unanswerable, 0);
}
