//! Checks before the load that topics may be read: a user with the right to describe only is
//! refused nothing until it fetches.

use std::time::Duration;

use muster_conduct::RefusalCause;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::refusal;
use super::topics::{REQUEST_MAX, code_of};

/// Settings that make the answer to a fetch visible.
const ANSWERING: [(&str, &str); 3] = [
    ("auto.offset.reset", "error"),
    ("enable.auto.commit", "false"),
    ("statistics.interval.ms", "0"),
];
/// An offset beyond the end of every partition: a fetch from there is answered at once, without records.
const BEYOND: Offset = Offset::Offset(i64::MAX / 2);
/// Codes of the library for a fetch that was not refused.
const ALLOWED: [RDKafkaErrorCode; 2] = [
    RDKafkaErrorCode::AutoOffsetReset,
    RDKafkaErrorCode::OffsetOutOfRange,
];
/// Longest wait for the library at a time, and number of waits.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS: u32 = (REQUEST_MAX.as_millis() / LOOK.as_millis()) as u32;

/// Fetches once from beyond the end of each topic, by a client that is in no group and takes nothing from others.
///
/// # Errors
/// A broker's refusal for good. Silence is none: whoever consumes finds out itself.
pub(crate) fn may_read(config: &ClientConfig, topics: &[&str]) -> Result<(), RefusalCause> {
    let mut config = config.clone();
    for (key, value) in ANSWERING {
        config.set(key, value);
    }
    let client: BaseConsumer = config.create().map_err(|error| refusal::unbuilt(&error))?;
    let mut looks = LOOKS;
    for topic in topics {
        fetch(&client, topic, &mut looks)?;
    }
    Ok(())
}

/// Rights hold for a whole topic, so that its first partition is enough.
fn fetch(client: &BaseConsumer, topic: &str, looks: &mut u32) -> Result<(), RefusalCause> {
    let refused = |code: RDKafkaErrorCode| refusal::failed(code, format!("read topic `{topic}`"));
    let mut first = TopicPartitionList::new();
    let assigned = first
        .add_partition_offset(topic, 0, BEYOND)
        .and_then(|()| client.assign(&first));
    assigned.map_err(|error| refused(code_of(&error)))?;
    while *looks > 0 {
        *looks -= 1;
        match client.poll(LOOK) {
            Some(Ok(_)) => return Ok(()),
            Some(Err(error)) => {
                let code = code_of(&error);
                if ALLOWED.contains(&code) {
                    return Ok(());
                }
                if is_lasting(code) {
                    return Err(refused(code));
                }
            }
            None => {}
        }
    }
    Ok(())
}

/// The library asks for a group all the same, which is the consumer's own affair.
fn is_lasting(code: RDKafkaErrorCode) -> bool {
    refusal::is_final(code) && !refusal::is_of_group(code)
}
