//! Hints at TLS that is missing or too much at an address.

use crate::Scheme;
use muster_platform::Protocol;
use muster_protocol::http::Malformed;
use muster_protocol::layer::LayerError;

/// The scheme of an address, and the keys of the scenario for TLS there.
#[derive(Debug, Clone, Copy)]
pub struct Security {
    scheme: Scheme,
    /// The place of the keys of TLS in the scenario, such as `platform.tls`.
    keys: &'static str,
}

impl Security {
    /// The scheme of an address, with the place of its keys of TLS, such as `platform.tls`.
    pub const fn new(scheme: Scheme, keys: &'static str) -> Self {
        Self { scheme, keys }
    }

    /// The scheme of the devices' addresses.
    pub const fn of_devices(scheme: Scheme) -> Self {
        Self::new(scheme, "platform.tls")
    }

    /// The remedy for a failed handshake, as the end of a sentence; empty where none is known.
    pub fn remedy(self, error: LayerError) -> String {
        match error {
            LayerError::Tls(failure) => failure.remedy(self.keys),
            LayerError::Dtls(_) | LayerError::WebSocket(_) => String::new(),
        }
    }

    /// The likely reason why a peer hung up without a byte, as the end of a sentence.
    pub fn hint_on_silence(self) -> String {
        let Some(other) = self.other() else {
            return String::new();
        };
        let with = if self.scheme.is_tls() {
            "without"
        } else {
            "with"
        };
        format!("; a port {with} TLS does that: if it is one, write `{other}://`")
    }

    /// The likely reason why a peer answered in another protocol, as the end of a sentence.
    pub fn hint_on_nonsense(self) -> String {
        match self.scheme.is_tls() {
            true => String::new(),
            false => self.hint_on_silence(),
        }
    }

    /// The words with which a session reports bytes of another protocol; empty if it has none.
    pub fn words_on_nonsense(self) -> String {
        match self.scheme.protocol() {
            Protocol::Http => Malformed::Head.to_string(),
            Protocol::Mqtt | Protocol::Coap => String::new(),
        }
    }

    /// The scheme that differs by TLS alone.
    fn other(self) -> Option<&'static str> {
        self.scheme.other_by_tls().map(Scheme::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_another_protocol_may_be_those_of_tls_where_none_is_spoken() {
        let hint = |scheme| Security::new(scheme, "platform.tls").hint_on_nonsense();
        assert!(hint(Scheme::Mqtt).contains("`mqtts://`"));
        assert_eq!(hint(Scheme::Mqtts), "");
    }
}
