//! Bounds of what our own sessions receive: they follow from the scenario, and never bind a platform
//! that delivers what the devices sent.

use muster_protocol::mqtt;

use super::{FleetPlan, Plan};

/// Bytes of the least limit.
const LEAST: u64 = 1 << 20;
/// Bytes around a payload: topic, properties and fixed header. A text of MQTT has at most 64 KiB.
const AROUND: u64 = 128 * 1024;
/// A platform may deliver a payload within another text, such as in base64.
const WRAPPED: u64 = 2;
/// Bytes of a PUBLISH beside topic and payload that a device sends at most: fixed header, packet id,
/// and the property with the message id.
const OWN_AROUND: u32 = 128;

impl Plan {
    /// Bytes of the largest packet or body that a session of ours receives.
    pub fn receive_limit(&self) -> u32 {
        let largest = self.streams().map(|(_, stream)| stream.largest).max();
        let needed = u64::from(largest.unwrap_or(0)) * WRAPPED + AROUND;
        let limit = needed.clamp(LEAST, u64::from(mqtt::MAXIMUM_PACKET_SIZE));
        u32::try_from(limit).unwrap_or(mqtt::MAXIMUM_PACKET_SIZE)
    }
}

impl FleetPlan {
    /// Bytes of the largest packet that a device of the fleet sends.
    pub fn largest_packet(&self) -> u32 {
        let uplinks = self.streams.iter().filter(|stream| stream.is_uplink());
        let packets = uplinks.map(|stream| {
            let topic = u32::try_from(stream.topic.source().len()).unwrap_or(u32::MAX);
            stream
                .largest
                .saturating_add(topic)
                .saturating_add(OWN_AROUND)
        });
        packets.max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use crate::{NoFiles, Overrides, Plan, Source, parse};

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
}
