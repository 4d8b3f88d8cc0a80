//! What became of a command by the error that it ended with.

use muster_model::{Delivery, Reason};
use rdkafka::error::RDKafkaErrorCode;

/// Errors of a broker after which it may have the record nonetheless.
const UNCERTAIN: [RDKafkaErrorCode; 3] = [
    RDKafkaErrorCode::RequestTimedOut,
    RDKafkaErrorCode::NetworkException,
    RDKafkaErrorCode::NotEnoughReplicasAfterAppend,
];
/// What the library says where a broker would have said [`RDKafkaErrorCode::UnknownTopicOrPartition`].
const NO_TOPIC: [RDKafkaErrorCode; 2] = [
    RDKafkaErrorCode::UnknownTopic,
    RDKafkaErrorCode::UnknownPartition,
];

/// What an error says of a command. The library's own codes are negative; what it did not hear of
/// may have been written.
pub(crate) fn delivery(code: RDKafkaErrorCode) -> Delivery {
    let code = if NO_TOPIC.contains(&code) {
        RDKafkaErrorCode::UnknownTopicOrPartition
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
            (RDKafkaErrorCode::TopicAuthorizationFailed, refused(29)),
            (RDKafkaErrorCode::MessageSizeTooLarge, refused(10)),
            (RDKafkaErrorCode::UnknownTopic, refused(3)),
            (RDKafkaErrorCode::MessageTimedOut, Delivery::Unknown),
            (RDKafkaErrorCode::PurgeInflight, Delivery::Unknown),
            (RDKafkaErrorCode::RequestTimedOut, Delivery::Unknown),
        ] {
            assert_eq!(delivery(code), expected, "{code}");
        }
    }
}
