//! Bounds of what our own sessions receive: they follow from the scenario, and never bind a platform
//! that delivers what the devices sent.

use muster_protocol::mqtt;

use crate::{FleetPlan, Plan};

/// Bytes of the least limit.
const LEAST: u64 = 1 << 20;
/// Bytes around a payload: topic, properties and fixed header. A text of MQTT has at most 64 KiB.
const AROUND: u64 = 128 * 1024;
/// A platform may deliver a payload within another text, such as in base64.
const WRAPPED: u64 = 2;
/// Most bytes of a PUBLISH of a device without topic and payload: fixed header, packet id,
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
