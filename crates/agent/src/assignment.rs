//! Work of one agent.

use std::net::SocketAddr;

use muster_conduct::{Slice, Trial};
use muster_model::{BackendId, ConsumerId, RunId};
use muster_plan::Plan;
use muster_platform::Protocol;
use serde::{Deserialize, Serialize};

/// The share of a run that one process carries.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Assignment {
    /// The process's name, which begins the names of its threads; empty where there is only one.
    pub name: String,
    /// The plan of the whole run.
    pub plan: Plan,
    /// Run that this is a share of.
    pub run: RunId,
    /// The share of the links; none where the process has consumers alone, and so no shards.
    pub slice: Option<Slice>,
    /// T0 as a raw reading of `CLOCK_MONOTONIC`, in nanoseconds.
    pub t0_ns: u64,
    /// The wall clock at T0, in milliseconds since the Unix epoch: one for all processes, since
    /// `${due_ms}` in a payload must read the same at its sender and at its consumer.
    pub wall_ms_at_t0: u64,
    /// Device shards, one thread each; at least 1 where there are links.
    pub shards: u32,
    /// Addresses that devices connect to, each with the protocol of its devices.
    #[serde(with = "scoped")]
    pub targets: Vec<(Protocol, SocketAddr)>,
    /// The consumers: the backend and number of each, and the address it connects to.
    #[serde(with = "scoped")]
    pub consumers: Vec<((BackendId, ConsumerId), SocketAddr)>,
    /// The processes of an embedded gateway on this host, whose CPU wait counts as our own.
    pub gateways: Vec<u32>,
    /// Settings that only tests change.
    pub trial: Trial,
}

/// Addresses as they travel: as text, which alone keeps the zone of an IPv6 address.
mod scoped {
    use std::net::SocketAddr;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    struct Scoped(SocketAddr);

    impl Serialize for Scoped {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(&self.0)
        }
    }

    impl<'de> Deserialize<'de> for Scoped {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            text.parse().map(Self).map_err(de::Error::custom)
        }
    }

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        addresses: &[(T, SocketAddr)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let addresses = addresses.iter();
        serializer.collect_seq(addresses.map(|(owner, address)| (owner, Scoped(*address))))
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(T, SocketAddr)>, D::Error> {
        let addresses = Vec::<(T, Scoped)>::deserialize(deserializer)?.into_iter();
        let addresses = addresses.map(|(owner, Scoped(address))| (owner, address));
        Ok(addresses.collect())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn an_address_keeps_its_zone_on_the_way_to_a_worker_process() {
            for text in ["[fe80::1%7]:1883", "[::1]:1883", "127.0.0.1:5683"] {
                let address: SocketAddr = text.parse().expect("an address");
                let bytes = postcard::to_stdvec(&Scoped(address)).expect("it can be written");
                let back: Scoped = postcard::from_bytes(&bytes).expect("it can be read");
                assert_eq!(back.0, address);
            }
        }
    }
}
