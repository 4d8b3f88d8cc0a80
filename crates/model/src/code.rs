//! The wire code of a refusal, as the protocol prints it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why the other side said no: the code on the wire, and whose code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    /// MQTT 5 reason code (section 2.4), printed `0x97`.
    Mqtt(u8),
    /// MQTT 3.1.1 CONNACK return code (section 3.2.2.3), printed `connack-5`.
    MqttConnack(u8),
    /// MQTT 3.1.1 SUBACK failure (section 3.9.3), printed `suback-0x80`.
    MqttSuback(u8),
    /// The code of an application's acknowledgement (SAP Edge: as in HTTP), printed `503`.
    Application(u16),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Mqtt(code) => write!(f, "0x{code:02x}"),
            Reason::MqttConnack(code) => write!(f, "connack-{code}"),
            Reason::MqttSuback(code) => write!(f, "suback-0x{code:02x}"),
            Reason::Application(code) => write!(f, "{code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_prints_its_wire_code() {
        assert_eq!(Reason::Mqtt(0x97).to_string(), "0x97");
        assert_eq!(Reason::MqttConnack(5).to_string(), "connack-5");
        assert_eq!(Reason::Application(503).to_string(), "503");
    }
}
