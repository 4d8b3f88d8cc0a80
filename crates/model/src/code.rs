//! The wire code of a refusal, as the protocol prints it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Reason of a rejection: the code on the wire, and its namespace.
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
    /// CoAP response code (RFC 7252 section 5.9), the class in the upper three bits and the detail in the
    /// lower five, printed `5.03`.
    Coap(u8),
    /// Error code of Kafka's protocol, with which a broker refused a record, printed `kafka-29`.
    Kafka(u16),
    /// Outcome with which a peer of AMQP 1.0 settled a delivery, by the code of its descriptor (section 3.4),
    /// printed `amqp-released`.
    Amqp(u8),
    /// Status of HTTP (RFC 9110 section 15), printed `http-503`.
    Http(u16),
    /// Status of HTTP of an answer that lacks the id which a success has to name, printed
    /// `http-200-no-id`.
    HttpNoId(u16),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Mqtt(code) => write!(f, "0x{code:02x}"),
            Reason::MqttConnack(code) => write!(f, "connack-{code}"),
            Reason::MqttSuback(code) => write!(f, "suback-0x{code:02x}"),
            Reason::Application(code) => write!(f, "{code}"),
            Reason::Coap(code) => write!(f, "{}.{:02}", code >> 5, code & 0x1f),
            Reason::Kafka(code) => write!(f, "kafka-{code}"),
            Reason::Amqp(code) => match named_in(&AMQP_OUTCOMES, *code) {
                Some(outcome) => write!(f, "amqp-{outcome}"),
                None => write!(f, "amqp-0x{code:02x}"),
            },
            Reason::Http(status) => write!(f, "http-{status}"),
            Reason::HttpNoId(status) => write!(f, "http-{status}-no-id"),
        }
    }
}

impl Reason {
    /// Descriptor of the outcome `rejected`: the message is not valid.
    pub const AMQP_REJECTED: u8 = 0x25;
    /// Descriptor of the outcome `released`: the message was not delivered, and may be sent again.
    pub const AMQP_RELEASED: u8 = 0x26;
    /// Descriptor of the outcome `modified`: the message was not delivered, and bears marks of the attempt.
    pub const AMQP_MODIFIED: u8 = 0x27;

    /// Returns the name that the code's standard gives it (MQTT 5 section 2.4, MQTT 3.1.1 section
    /// 3.2.2.3, RFC 7252 section 5.9, Kafka's protocol guide, RFC 9110 section 15); none if the
    /// standard does not list it as a refusal, and for codes of an application.
    pub fn meaning(self) -> Option<&'static str> {
        let code = match self {
            Self::Mqtt(code) => code,
            Self::MqttConnack(code) => *AS_MQTT_5.get(usize::from(code))?,
            Self::MqttSuback(_) => 0x80,
            Self::Application(_) => return None,
            Self::Coap(code) => return named_in(&COAP_MEANINGS, code),
            Self::Kafka(code) => return named_in(&KAFKA_MEANINGS, u8::try_from(code).ok()?),
            Self::Amqp(code) => return named_in(&AMQP_MEANINGS, code),
            Self::Http(status) => return named_in(&HTTP_MEANINGS, status),
            Self::HttpNoId(_) => return Some("a success without the id"),
        };
        named_in(&MEANINGS, code)
    }

    /// The reason that prints this text; none if there is no such.
    pub fn named(text: &str) -> Option<Self> {
        let hex = |digits| u8::from_str_radix(digits, 16).ok();
        if let Some(digits) = text.strip_prefix("0x") {
            return hex(digits).map(Self::Mqtt);
        }
        if let Some(digits) = text.strip_prefix("suback-0x") {
            return hex(digits).map(Self::MqttSuback);
        }
        if let Some(digits) = text.strip_prefix("connack-") {
            return digits.parse().ok().map(Self::MqttConnack);
        }
        if let Some(digits) = text.strip_prefix("kafka-") {
            return digits.parse().ok().map(Self::Kafka);
        }
        if let Some(outcome) = text.strip_prefix("amqp-") {
            let known = AMQP_OUTCOMES.iter().find(|(_, name)| *name == outcome);
            let code = || hex(outcome.strip_prefix("0x")?);
            return known.map(|(code, _)| *code).or_else(code).map(Self::Amqp);
        }
        if let Some(status) = text.strip_prefix("http-") {
            return match status.strip_suffix("-no-id") {
                Some(digits) => digits.parse().ok().map(Self::HttpNoId),
                None => status.parse().ok().map(Self::Http),
            };
        }
        if let Some((class, detail)) = text.split_once('.') {
            let class: u8 = class.parse().ok().filter(|class| *class < 8)?;
            let detail: u8 = detail.parse().ok().filter(|detail| *detail < 32)?;
            return Some(Self::Coap(class << 5 | detail));
        }
        text.parse().ok().map(Self::Application)
    }

    /// Returns true if the peer rejected our credentials.
    pub fn is_of_credentials(self) -> bool {
        match self {
            Self::Mqtt(code) => matches!(code, 0x86 | 0x87 | 0x8c),
            Self::MqttConnack(code) => matches!(code, 4 | 5),
            Self::Coap(code) => matches!(code, 0x81 | 0x83),
            Self::Kafka(code) => matches!(code, 29 | 31),
            Self::Http(status) => matches!(status, 401 | 403),
            Self::MqttSuback(_) | Self::Application(_) | Self::Amqp(_) | Self::HttpNoId(_) => false,
        }
    }

    /// Returns true if the answer leads to another address (RFC 9110 section 15.4), which no device follows.
    pub const fn is_redirect(self) -> bool {
        matches!(self, Self::Http(300..=303 | 305..=399))
    }

    /// True if the same request would get the same answer again, so that trying again does not help. MQTT
    /// 3.1.1 has one code for every refused subscription: it counts as final.
    pub const fn is_final(self) -> bool {
        match self {
            Self::Mqtt(code) => is_final_in_mqtt(code),
            Self::MqttConnack(code) => matches!(code, 1 | 2 | 4 | 5),
            Self::MqttSuback(_) => true,
            Self::Coap(code) => matches!(code, 0x81 | 0x83),
            Self::Kafka(code) => matches!(code, 29 | 31),
            Self::Amqp(code) => code == Self::AMQP_REJECTED,
            Self::Http(status) => is_final_in_http(status),
            Self::Application(_) | Self::HttpNoId(_) => false,
        }
    }

    /// The code, and what it means where that is known: `0x86 (bad user name or password)`.
    pub fn in_words(self) -> String {
        match self.meaning() {
            Some(meaning) => format!("{self} ({meaning})"),
            None => self.to_string(),
        }
    }
}

/// The others are states of the server (busy, unavailable, shutting down), of its quotas and rates, or
/// give no reason.
const fn is_final_in_mqtt(code: u8) -> bool {
    matches!(
        code,
        0x81 | 0x82 | 0x84..=0x87 | 0x8a | 0x8c | 0x8f | 0x90 | 0x95 | 0x99..=0x9b | 0x9d | 0x9e | 0xa1 | 0xa2
    )
}

/// The outcomes of a delivery other than acceptance, by the codes of their descriptors (AMQP 1.0 section 3.4).
const AMQP_OUTCOMES: [(u8, &str); 3] = [
    (Reason::AMQP_REJECTED, "rejected"),
    (Reason::AMQP_RELEASED, "released"),
    (Reason::AMQP_MODIFIED, "modified"),
];
const AMQP_MEANINGS: [(u8, &str); 3] = [
    (Reason::AMQP_REJECTED, "not valid"),
    (Reason::AMQP_RELEASED, "not delivered"),
    (Reason::AMQP_MODIFIED, "delivery failed"),
];
/// The others are states of the server or its limits, may be answered otherwise at another time (404, 409),
/// or are of one message alone (422).
const fn is_final_in_http(status: u16) -> bool {
    matches!(
        status,
        400 | 401 | 403 | 405 | 406 | 410 | 411 | 413..=415 | 426 | 431 | 501 | 505
    )
}

/// Looks up a code in a table sorted by codes.
fn named_in<C: Ord + Copy>(table: &[(C, &'static str)], code: C) -> Option<&'static str> {
    let at = table.binary_search_by(|(known, _)| known.cmp(&code));
    at.ok().map(|at| table[at].1)
}

/// The refusals of CoAP, by code (RFC 7252 section 5.9; RFC 7959 section 2.9 for 4.08, RFC 8132 section 4
/// for 4.09 and 4.22, RFC 8516 for 4.29), and the reset, which is an empty message.
const COAP_MEANINGS: [(u8, &str); 20] = [
    (0x00, "reset"),
    (0x80, "bad request"),
    (0x81, "unauthorized"),
    (0x82, "bad option"),
    (0x83, "forbidden"),
    (0x84, "not found"),
    (0x85, "method not allowed"),
    (0x86, "not acceptable"),
    (0x88, "request entity incomplete"),
    (0x89, "conflict"),
    (0x8c, "precondition failed"),
    (0x8d, "request entity too large"),
    (0x8f, "unsupported content-format"),
    (0x96, "unprocessable entity"),
    (0x9d, "too many requests"),
    (0xa0, "internal server error"),
    (0xa1, "not implemented"),
    (0xa2, "bad gateway"),
    (0xa3, "service unavailable"),
    (0xa4, "gateway timeout"),
];

/// The statuses of HTTP that are no success, by number (RFC 9110 section 15; RFC 6585 for 428, 429, 431 and
/// 511, RFC 8470 for 425), and those of proxies in wide use that have none there.
const HTTP_MEANINGS: [(u16, &str); 41] = [
    (300, "multiple choices"),
    (301, "moved permanently"),
    (302, "found elsewhere"),
    (303, "see other"),
    (304, "not modified"),
    (307, "temporary redirect"),
    (308, "permanent redirect"),
    (400, "bad request"),
    (401, "unauthorized"),
    (402, "payment required"),
    (403, "forbidden"),
    (404, "not found"),
    (405, "method not allowed"),
    (406, "not acceptable"),
    (407, "proxy authentication required"),
    (408, "request timeout"),
    (409, "conflict"),
    (410, "gone"),
    (411, "length required"),
    (412, "precondition failed"),
    (413, "content too large"),
    (414, "URI too long"),
    (415, "unsupported media type"),
    (416, "range not satisfiable"),
    (417, "expectation failed"),
    (421, "misdirected request"),
    (422, "unprocessable content"),
    (425, "too early"),
    (426, "upgrade required"),
    (428, "precondition required"),
    (429, "too many requests"),
    (431, "request header fields too large"),
    (499, "client closed request"),
    (500, "internal server error"),
    (501, "not implemented"),
    (502, "bad gateway"),
    (503, "service unavailable"),
    (504, "gateway timeout"),
    (505, "HTTP version not supported"),
    (507, "insufficient storage"),
    (511, "network authentication required"),
];

/// Error codes of Kafka's protocol for a rejected record.
const KAFKA_MEANINGS: [(u8, &str); 14] = [
    (2, "corrupt message"),
    (3, "unknown topic or partition"),
    (10, "message too large"),
    (17, "invalid topic"),
    (18, "record list too large"),
    (19, "not enough replicas"),
    (29, "topic authorization failed"),
    (31, "cluster authorization failed"),
    (32, "invalid timestamp"),
    (35, "unsupported version"),
    (44, "policy violation"),
    (56, "storage error"),
    (87, "invalid record"),
    (89, "throttling quota exceeded"),
];

/// The reason codes of MQTT 5 that mean what the CONNACK return codes of MQTT 3.1.1 mean.
const AS_MQTT_5: [u8; 6] = [0x00, 0x84, 0x85, 0x88, 0x86, 0x87];

/// The refusals of MQTT 5 (section 2.4), by code.
const MEANINGS: [(u8, &str); 35] = [
    (0x80, "unspecified error"),
    (0x81, "malformed packet"),
    (0x82, "protocol error"),
    (0x83, "implementation specific error"),
    (0x84, "unsupported protocol version"),
    (0x85, "client identifier not valid"),
    (0x86, "bad user name or password"),
    (0x87, "not authorized"),
    (0x88, "server unavailable"),
    (0x89, "server busy"),
    (0x8a, "banned"),
    (0x8b, "server shutting down"),
    (0x8c, "bad authentication method"),
    (0x8d, "keep alive timeout"),
    (0x8e, "session taken over"),
    (0x8f, "topic filter invalid"),
    (0x90, "topic name invalid"),
    (0x91, "packet identifier in use"),
    (0x92, "packet identifier not found"),
    (0x93, "receive maximum exceeded"),
    (0x94, "topic alias invalid"),
    (0x95, "packet too large"),
    (0x96, "message rate too high"),
    (0x97, "quota exceeded"),
    (0x98, "administrative action"),
    (0x99, "payload format invalid"),
    (0x9a, "retain not supported"),
    (0x9b, "QoS not supported"),
    (0x9c, "use another server"),
    (0x9d, "server moved"),
    (0x9e, "shared subscriptions not supported"),
    (0x9f, "connection rate exceeded"),
    (0xa0, "maximum connect time"),
    (0xa1, "subscription identifiers not supported"),
    (0xa2, "wildcard subscriptions not supported"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_prints_its_wire_code() {
        assert_eq!(Reason::Mqtt(0x97).to_string(), "0x97");
        assert_eq!(Reason::MqttConnack(5).to_string(), "connack-5");
        assert_eq!(Reason::Application(503).to_string(), "503");
        assert_eq!(Reason::Coap(0xa3).to_string(), "5.03");
        assert_eq!(Reason::Kafka(29).to_string(), "kafka-29");
        assert_eq!(Reason::Amqp(0x26).to_string(), "amqp-released");
        assert_eq!(Reason::Http(503).to_string(), "http-503");
        assert_eq!(Reason::HttpNoId(200).to_string(), "http-200-no-id");
    }

    #[test]
    fn a_reason_is_told_with_what_it_means() {
        assert_eq!(
            Reason::Mqtt(0x86).in_words(),
            "0x86 (bad user name or password)"
        );
        assert_eq!(Reason::MqttConnack(5).meaning(), Some("not authorized"));
        assert_eq!(Reason::Mqtt(0x97).meaning(), Some("quota exceeded"));
        assert_eq!(Reason::MqttConnack(0).meaning(), None);
        assert_eq!(Reason::MqttConnack(200).in_words(), "connack-200");
        assert_eq!(Reason::Application(503).in_words(), "503");
        assert_eq!(Reason::Coap(0x84).in_words(), "4.04 (not found)");
        assert_eq!(Reason::Coap(0x44).meaning(), None);
        let refused = Reason::Kafka(29).in_words();
        assert_eq!(refused, "kafka-29 (topic authorization failed)");
        assert_eq!(Reason::Kafka(300).meaning(), None);
        let refused = Reason::Http(429).in_words();
        assert_eq!(refused, "http-429 (too many requests)");
        assert_eq!(Reason::Http(200).meaning(), None);
        let is_sorted = HTTP_MEANINGS.is_sorted_by_key(|(status, _)| *status);
        assert!(is_sorted, "a status is found by halves");
        assert!(Reason::Http(401).is_of_credentials() && !Reason::Http(404).is_of_credentials());
        assert!(Reason::MqttConnack(4).is_of_credentials());
        assert!(!Reason::Mqtt(0x97).is_of_credentials());
    }

    #[test]
    fn a_refusal_is_final_if_the_same_request_gets_it_again() {
        let of_mqtt = |code| Reason::Mqtt(code).is_final();
        for code in [0x86, 0x87, 0x8a, 0x8f, 0x9d, 0x9e, 0xa1, 0xa2] {
            assert!(of_mqtt(code), "0x{code:02x}");
        }
        for code in [0x80, 0x83, 0x88, 0x89, 0x8b, 0x97, 0x9c, 0x9f] {
            assert!(!of_mqtt(code), "0x{code:02x}");
        }
        assert!(Reason::MqttConnack(5).is_final() && !Reason::MqttConnack(3).is_final());
        assert!(Reason::MqttSuback(0x80).is_final());
        assert!(Reason::Kafka(29).is_final() && !Reason::Kafka(89).is_final());
        assert!(Reason::Amqp(0x25).is_final() && !Reason::Amqp(0x26).is_final());
        assert!(!Reason::Application(503).is_final());
        for status in [401, 403, 405, 413, 415] {
            assert!(Reason::Http(status).is_final(), "{status}");
        }
        for status in [302, 404, 408, 429, 500, 503] {
            assert!(!Reason::Http(status).is_final(), "{status}");
        }
        for (status, leads_on) in [(302, true), (308, true), (304, false), (404, false)] {
            assert_eq!(Reason::Http(status).is_redirect(), leads_on, "{status}");
        }
    }

    #[test]
    fn every_reason_is_found_by_what_it_prints() {
        let of_mqtt = [
            Reason::Mqtt,
            Reason::MqttConnack,
            Reason::MqttSuback,
            Reason::Coap,
        ];
        let all = (0..=u8::MAX).flat_map(|code| of_mqtt.map(|reason| reason(code)));
        let others = [Reason::Application(503), Reason::Kafka(29)];
        let amqp = [0x25, 0x26, 0x27, 0x2f].map(Reason::Amqp);
        let of_http =
            (100..1_000).flat_map(|status| [Reason::Http(status), Reason::HttpNoId(status)]);
        for reason in all.chain(others).chain(amqp).chain(of_http) {
            assert_eq!(Reason::named(&reason.to_string()), Some(reason));
        }
        assert_eq!(Reason::named("timed-out"), None);
    }
}
