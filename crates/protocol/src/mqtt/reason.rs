//! Reason codes (section 2.4) and the return codes of MQTT 3.1.1 (section 3.2.2.3).

/// Success, normal disconnection, or granted QoS 0.
pub const SUCCESS: u8 = 0x00;
/// DISCONNECT that asks for the will to be published.
pub const DISCONNECT_WITH_WILL: u8 = 0x04;
/// The publish was accepted and nobody subscribes to its topic.
pub const NO_MATCHING_SUBSCRIBERS: u8 = 0x10;
/// The subscription to remove did not exist.
pub const NO_SUBSCRIPTION_EXISTED: u8 = 0x11;
/// AUTH: the exchange goes on.
pub const CONTINUE_AUTHENTICATION: u8 = 0x18;
/// AUTH: the client authenticates again.
pub const REAUTHENTICATE: u8 = 0x19;
/// The first code that means failure.
pub const UNSPECIFIED_ERROR: u8 = 0x80;
/// The bytes are no packet.
pub const MALFORMED_PACKET: u8 = 0x81;
/// The packet is not allowed here.
pub const PROTOCOL_ERROR: u8 = 0x82;
/// The protocol level is not served.
pub const UNSUPPORTED_PROTOCOL_VERSION: u8 = 0x84;
/// The client id is not acceptable.
pub const CLIENT_ID_NOT_VALID: u8 = 0x85;
/// Wrong user name or password.
pub const BAD_USER_OR_PASSWORD: u8 = 0x86;
/// The client may not do this.
pub const NOT_AUTHORIZED: u8 = 0x87;
/// The server is busy.
pub const SERVER_BUSY: u8 = 0x89;
/// The client is banned.
pub const BANNED: u8 = 0x8a;
/// The server goes down.
pub const SERVER_SHUTTING_DOWN: u8 = 0x8b;
/// The authentication method is not supported.
pub const BAD_AUTHENTICATION_METHOD: u8 = 0x8c;
/// No packet within one and a half times the keep-alive.
pub const KEEP_ALIVE_TIMEOUT: u8 = 0x8d;
/// Another connection uses the same client id.
pub const SESSION_TAKEN_OVER: u8 = 0x8e;
/// The topic filter is not valid.
pub const TOPIC_FILTER_INVALID: u8 = 0x8f;
/// The topic name is not valid.
pub const TOPIC_NAME_INVALID: u8 = 0x90;
/// The packet id is not known.
pub const PACKET_ID_NOT_FOUND: u8 = 0x92;
/// More unanswered publishes than the receive maximum.
pub const RECEIVE_MAXIMUM_EXCEEDED: u8 = 0x93;
/// The topic alias is zero, unknown or above the maximum.
pub const TOPIC_ALIAS_INVALID: u8 = 0x94;
/// The packet is larger than the maximum packet size.
pub const PACKET_TOO_LARGE: u8 = 0x95;
/// A quota is exceeded.
pub const QUOTA_EXCEEDED: u8 = 0x97;
/// The payload is not what its format indicator says.
pub const PAYLOAD_FORMAT_INVALID: u8 = 0x99;
/// The server does not retain.
pub const RETAIN_NOT_SUPPORTED: u8 = 0x9a;
/// The server does not serve this QoS.
pub const QOS_NOT_SUPPORTED: u8 = 0x9b;
/// Links come too fast.
pub const CONNECTION_RATE_EXCEEDED: u8 = 0x9f;

/// MQTT 3.1.1 CONNACK: the protocol level is not served.
pub const V311_UNACCEPTABLE_VERSION: u8 = 1;
/// MQTT 3.1.1 CONNACK: the client id is not acceptable.
pub const V311_IDENTIFIER_REJECTED: u8 = 2;
/// MQTT 3.1.1 CONNACK: the server is not available.
pub const V311_SERVER_UNAVAILABLE: u8 = 3;
/// MQTT 3.1.1 CONNACK: wrong user name or password.
pub const V311_BAD_USER_OR_PASSWORD: u8 = 4;
/// MQTT 3.1.1 CONNACK: the client may not connect.
pub const V311_NOT_AUTHORIZED: u8 = 5;

/// The MQTT 3.1.1 return code that comes nearest to a reason code of MQTT 5.
pub const fn v311_connack(code: u8) -> u8 {
    match code {
        SUCCESS => 0,
        UNSUPPORTED_PROTOCOL_VERSION => V311_UNACCEPTABLE_VERSION,
        CLIENT_ID_NOT_VALID => V311_IDENTIFIER_REJECTED,
        BAD_USER_OR_PASSWORD => V311_BAD_USER_OR_PASSWORD,
        NOT_AUTHORIZED | BANNED => V311_NOT_AUTHORIZED,
        _ => V311_SERVER_UNAVAILABLE,
    }
}
