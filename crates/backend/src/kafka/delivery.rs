//! Delivery of a command by the error that it ended with.

use muster_model::{Delivery, Reason};
use rdkafka::error::RDKafkaErrorCode as Code;

/// Errors of a broker after which it may have the record nonetheless.
const UNCERTAIN: [Code; 3] = [
    Code::RequestTimedOut,
    Code::NetworkException,
    Code::NotEnoughReplicasAfterAppend,
];
/// Codes of the library in place of a broker's [`Code::UnknownTopicOrPartition`].
const NO_TOPIC: [Code; 2] = [Code::UnknownTopic, Code::UnknownPartition];

/// Returns the delivery by an error. The library's own codes are negative; a record without an
/// answer may have been written.
pub(crate) fn delivery(code: Code) -> Delivery {
    let code = if NO_TOPIC.contains(&code) {
        Code::UnknownTopicOrPartition
    } else {
        code
    };
    match u16::try_from(code as i32) {
        Ok(refused) if !UNCERTAIN.contains(&code) => {
            Delivery::Undeliverable(Reason::Kafka(refused))
        }
        Ok(_) | Err(_) => Delivery::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_broker_refused_is_undeliverable_and_what_it_may_have_is_unknown() {
        let refused = |code| Delivery::Undeliverable(Reason::Kafka(code));
        for (code, expected) in [
            (Code::TopicAuthorizationFailed, refused(29)),
            (Code::MessageSizeTooLarge, refused(10)),
            (Code::UnknownTopic, refused(3)),
            (Code::MessageTimedOut, Delivery::Unknown),
            (Code::PurgeInflight, Delivery::Unknown),
            (Code::RequestTimedOut, Delivery::Unknown),
        ] {
            assert_eq!(delivery(code), expected, "{code}");
        }
    }
}
