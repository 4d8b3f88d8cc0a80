//! A gateway with devices that send requests, and an application that hears all of it.

use std::net::SocketAddr;

use muster_gateway::{Dialect, Gateway, GatewayAccount, GatewayConfig, User};
use muster_protocol::mqtt::{Connect, Qos, Version};

use crate::peer::Peer;

/// The application's name, and its password.
const APPLICATION: &str = "application";

pub(crate) struct Rig {
    pub(crate) gateway: Gateway,
    pub(crate) application: Peer,
    /// The address of devices.
    pub(crate) at: SocketAddr,
}

impl Rig {
    /// A gateway whose devices come by a scheme.
    pub(crate) fn new(scheme: &str) -> Self {
        Self::with(scheme, GatewayConfig::default())
    }

    pub(crate) fn with(scheme: &str, config: GatewayConfig) -> Self {
        Self::of(Dialect::Hono, scheme, config)
    }

    pub(crate) fn of(dialect: Dialect, scheme: &str, config: GatewayConfig) -> Self {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let gateway = Gateway::start(GatewayConfig {
            dialect,
            listen: config.listen.with(scheme, Some(here)),
            northbound: Some(User {
                name: APPLICATION.to_owned(),
                password: APPLICATION.into(),
            }),
            ..config
        });
        let gateway = gateway.expect("a gateway");
        let connect = Connect {
            user: Some(APPLICATION),
            password: Some(APPLICATION.as_bytes()),
            ..Connect::new(APPLICATION)
        };
        let mut application = Peer::open(gateway.addr(), Version::V5, &connect);
        application.subscribe("#", Qos::AtLeastOnce);
        let at = gateway.addresses().get(scheme).expect("it listens");
        Self {
            gateway,
            application,
            at,
        }
    }

    /// Topics and payloads of what surfaced, when there are so many.
    pub(crate) fn surfaced(&mut self, count: usize) -> Vec<(String, Vec<u8>)> {
        let got = self.application.messages(count).into_iter();
        got.map(|got| (got.topic, got.payload)).collect()
    }

    pub(crate) fn account(self) -> GatewayAccount {
        self.gateway.stop()
    }
}
