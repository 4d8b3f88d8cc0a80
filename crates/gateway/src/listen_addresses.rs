//! The addresses of a gateway.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use muster_net::{ListenError, PortUse};
use serde::{Deserialize, Serialize};

/// Addresses of a gateway by protocol: `mqtt`, `coap`, `coaps`, `http`, `https`, `amqp` and `amqps` for
/// applications over AMQP 1.0, and `management` for the management API. Port 0 is a free port.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ListenAddresses(BTreeMap<String, SocketAddr>);

impl ListenAddresses {
    /// An address for MQTT alone.
    pub fn new(mqtt: SocketAddr) -> Self {
        Self::default().with("mqtt", Some(mqtt))
    }

    /// Adds the address of a protocol, if there is one.
    #[must_use]
    pub fn with(mut self, protocol: &str, address: Option<SocketAddr>) -> Self {
        self.0
            .extend(address.map(|address| (protocol.to_owned(), address)));
        self
    }

    /// The address of a protocol; none if the gateway does not serve it.
    pub fn get(&self, protocol: &str) -> Option<SocketAddr> {
        self.0.get(protocol).copied()
    }

    /// The address for MQTT, which every gateway has.
    pub(crate) fn mqtt(&self) -> SocketAddr {
        self.0["mqtt"]
    }
}

/// The addresses of a gateway while its threads begin to listen.
#[derive(Debug)]
pub(crate) struct ListenAt<'a> {
    /// Addresses that an earlier thread got.
    pub(crate) addresses: &'a mut ListenAddresses,
    pub(crate) port: PortUse,
}

impl ListenAt<'_> {
    /// Listens at the address that an earlier thread got, else at the configured one, if there is one.
    pub(crate) fn listen<T>(
        &mut self,
        scheme: &str,
        configured: &ListenAddresses,
        listen: impl FnOnce(SocketAddr, PortUse) -> Result<(T, SocketAddr), ListenError>,
    ) -> Result<Option<T>, ListenError> {
        let at = self.addresses.get(scheme).or(configured.get(scheme));
        let Some(at) = at else {
            return Ok(None);
        };
        let (listener, bound) = listen(at, self.port)?;
        self.addresses.0.insert(scheme.to_owned(), bound);
        Ok(Some(listener))
    }
}
