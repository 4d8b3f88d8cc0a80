//! Refusals of brokers, by the codes of librdkafka and Kafka, with their remedies.

use std::fmt::Display;

use muster_conduct::{RefusalCause, RefusalKind, Remedy};
use muster_model::Reason;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

/// Returns the cause for which an operation failed with a code.
pub(crate) fn failed(code: Code, operation: impl Display) -> RefusalCause {
    reported(code, &format!("failed to {operation}: {code}"))
}

/// Returns the cause of an error that the library reports in its own words.
pub(crate) fn reported(code: Code, reason: &str) -> RefusalCause {
    let (kind, remedy) = kind_and_remedy(code);
    RefusalCause {
        kind,
        reason: reason_of(code),
        what: reason.to_owned(),
        remedy,
    }
}

/// Returns the cause for settings that the library rejects, as it does if it was built without TLS.
pub(crate) fn unbuilt(error: &KafkaError) -> RefusalCause {
    let remedy = Remedy::see("docs/kafka.md for what needs the feature `kafka-tls`");
    let what = format!("set up a consumer: {error}");
    RefusalCause {
        remedy,
        ..RefusalCause::new(RefusalKind::Refused, what)
    }
}

pub(crate) fn missing(topic: &str) -> RefusalCause {
    not_ready(format!("topic `{topic}` was created and does not appear"))
}

pub(crate) fn leaderless(topic: &str, partition: i32) -> RefusalCause {
    not_ready(format!(
        "partition {partition} of topic `{topic}` has no leader"
    ))
}

fn not_ready(what: String) -> RefusalCause {
    RefusalCause {
        remedy: OF_BROKERS,
        ..RefusalCause::new(RefusalKind::NotReady, what)
    }
}

/// Returns the cause for which brokers refuse commands.
pub(crate) fn of_command(code: Code, reason: Reason) -> RefusalCause {
    let what = format!("commands are refused with {reason}: {code}");
    of_commands(code, what, remedy_of_command(code))
}

/// Returns the cause for which the outcome of a command is unknown.
pub(crate) fn of_unknown(code: Code) -> RefusalCause {
    let what = format!("no broker said whether it has commands: {code}");
    of_commands(code, what, remedy_of_command(code))
}

/// Returns the cause for which the library does not accept a command, which no broker receives then.
pub(crate) fn of_untaken(code: Code) -> RefusalCause {
    let what = format!("commands cannot be handed over and are withheld: {code}");
    let remedy = Remedy::see("docs/kafka.md for what a command is made of");
    of_commands(code, what, remedy)
}

/// Returns the cause for which the library issues no further command.
pub(crate) fn of_producer(code: Code, reason: &str) -> RefusalCause {
    let what = format!("no further command can be issued: {reason} ({code})");
    of_commands(code, what, remedy_of_command(code))
}

fn of_commands(code: Code, what: String, remedy: Remedy) -> RefusalCause {
    RefusalCause {
        kind: RefusalKind::Commands,
        reason: reason_of(code),
        what,
        remedy,
    }
}

/// Returns a broker's code; none for a code of the library, which is negative.
fn reason_of(code: Code) -> Option<Reason> {
    let code = u16::try_from(code as i32).ok()?;
    Some(Reason::Kafka(code))
}

/// Returns true if only a group is refused.
pub(crate) fn is_of_group(code: Code) -> bool {
    code == Code::GroupAuthorizationFailed
}

/// Returns true if the login is refused.
pub(crate) fn is_of_credentials(code: Code) -> bool {
    OF_CREDENTIALS.contains(&code)
}

/// Returns true if the consumer lacks the lost part until somebody acts.
pub(crate) fn is_final(code: Code) -> bool {
    OF_CREDENTIALS.contains(&code) || OF_RIGHTS.contains(&code) || OF_TOPICS.contains(&code)
}

/// Returns true if brokers know no such topic, or partition.
pub(crate) fn is_of_missing_topic(code: Code) -> bool {
    matches!(code, Code::UnknownTopicOrPartition | Code::UnknownTopic)
}

const OF_CREDENTIALS: [Code; 3] = [
    Code::Authentication,
    Code::SaslAuthenticationFailed,
    Code::UnsupportedSASLMechanism,
];
const OF_TOPICS: [Code; 6] = [
    Code::UnknownTopicOrPartition,
    Code::UnknownTopic,
    Code::InvalidTopic,
    Code::InvalidPartitions,
    Code::InvalidReplicationFactor,
    Code::PolicyViolation,
];
const OF_RIGHTS: [Code; 3] = [
    Code::TopicAuthorizationFailed,
    Code::ClusterAuthorizationFailed,
    Code::GroupAuthorizationFailed,
];

const OF_LEADERS: [Code; 3] = [
    Code::LeaderNotAvailable,
    Code::NotLeaderForPartition,
    Code::UnknownPartition,
];

/// The remedy where no broker answered. Brokers that want TLS, a certificate or a login only end the
/// connection, and librdkafka has one code for that and for nobody at all.
const OF_NOTHING: Remedy = Remedy::act(
    "does a broker listen there, and can the address that it advertises be reached from \
                          here? see platform.backend.url: `kafkas://` where it speaks TLS, else `kafka://`; \
                          if it wants a certificate, name `cert` and `key` under platform.backend.tls; if it \
                          wants a login, set platform.backend.user and `password`",
);
/// The remedy where TLS fails.
const OF_TLS: Remedy = Remedy::act(
    "does `ca` of platform.backend.tls hold who signed the brokers' certificate, and is that \
                      one for the host in their addresses?",
);
/// The remedy where a login fails.
const OF_LOGIN: Remedy =
    Remedy::see("platform.backend.user, platform.backend.password and platform.backend.sasl");

/// Remedy if a broker refused something and nothing more is known.
const OF_BROKERS: Remedy = Remedy::see("the log of the brokers");

/// Remedies for refused commands, by a broker's answer to a Produce request, or the library's code
/// in its place.
const OF_COMMANDS: [(&[Code], &str); 7] = [
    (
        &[
            Code::TopicAuthorizationFailed,
            Code::ClusterAuthorizationFailed,
        ],
        "allow platform.backend.user to write the topic of commands, and before Kafka 3.0 to write \
             idempotently to the cluster",
    ),
    (
        &[
            Code::MessageSizeTooLarge,
            Code::MessageBatchTooLarge,
            Code::InvalidMessageSize,
        ],
        "raise `max.message.bytes` of the topic of commands, or `message.max.bytes` of the brokers",
    ),
    (
        &[Code::PolicyViolation, Code::InvalidRecord],
        "look at the rules that the brokers have for records on the topic of commands",
    ),
    (
        &[Code::InvalidTimestamp],
        "compare the clock of this machine with the brokers', and see \
             `message.timestamp.before.max.ms` of the topic of commands",
    ),
    (
        &[
            Code::NotEnoughReplicas,
            Code::NotEnoughReplicasAfterAppend,
            Code::ISRInsufficient,
            Code::MessageTimedOut,
        ],
        "has each partition of the topic of commands a leader, and as many replicas in sync as its \
             `min.insync.replicas` wants?",
    ),
    (
        &[Code::UnsupportedVersion, Code::UnsupportedForMessageFormat],
        "commands have headers, which Kafka knows from 0.11 on: see `log.message.format.version` of \
             the brokers",
    ),
    (
        &[Code::ThrottlingQuotaExceeded],
        "raise the quota that the brokers have for platform.backend.user",
    ),
];

fn remedy_of_command(code: Code) -> Remedy {
    let mut known = OF_COMMANDS.iter();
    let known = known.find(|(codes, _)| codes.contains(&code));
    known.map_or_else(
        || kind_and_remedy(code).1,
        |(_, action)| Remedy::act(action),
    )
}

fn kind_and_remedy(code: Code) -> (RefusalKind, Remedy) {
    if OF_LEADERS.contains(&code) {
        return (RefusalKind::NotReady, OF_BROKERS);
    }
    let remedy = if OF_CREDENTIALS.contains(&code) {
        OF_LOGIN
    } else if code == Code::SSL {
        OF_TLS
    } else if is_of_group(code) {
        Remedy::act(
            "allow platform.backend.user to read (ACL: operation Read on resource Group) the group that \
             platform.backend.shared names, or leave `shared` out",
        )
    } else if OF_RIGHTS.contains(&code) {
        Remedy::act(
            "allow platform.backend.user to describe and read the topics, and to create those that are \
             missing, or create them before the run",
        )
    } else if OF_TOPICS.contains(&code) {
        Remedy::see("platform.backend.topics")
    } else if reason_of(code).is_some() {
        // An answer of a broker, whatever it means.
        OF_BROKERS
    } else {
        return (RefusalKind::Unreachable, OF_NOTHING);
    };
    (RefusalKind::Refused, remedy)
}

#[cfg(test)]
mod tests {
    use rdkafka::types::RDKafkaRespErr;

    use super::*;

    /// Every code that a broker answers with.
    fn of_brokers() -> impl Iterator<Item = Code> {
        (1..=i32::from(i16::MAX))
            .filter_map(|code| RDKafkaRespErr::try_from(code).ok())
            .map(Code::from)
            .filter(|code| *code != Code::EndAll)
    }

    #[test]
    fn whatever_a_broker_says_it_is_not_called_silent() {
        assert!(of_brokers().count() > 100);
        for code in of_brokers() {
            let refusal = failed(code, "find topic `t`");
            assert!(refusal.kind != RefusalKind::Unreachable, "{code}");
            let reason = Reason::Kafka(code as u16);
            for refusal in [refusal, of_command(code, reason)] {
                assert!(refusal.to_string().contains(&code.to_string()), "{refusal}");
                assert_ne!(refusal.remedy, OF_NOTHING, "{code}");
            }
        }
    }

    #[test]
    fn a_command_that_is_refused_has_its_own_remedy() {
        for (code, part) in [
            (Code::TopicAuthorizationFailed, "to write the topic"),
            (Code::ClusterAuthorizationFailed, "idempotently"),
            (Code::MessageSizeTooLarge, "`max.message.bytes`"),
            (Code::PolicyViolation, "rules that the brokers have"),
            (Code::InvalidRecord, "rules that the brokers have"),
            (Code::InvalidTimestamp, "clock of this machine"),
            (Code::NotEnoughReplicas, "`min.insync.replicas`"),
            (Code::UnknownTopicOrPartition, "platform.backend.topics"),
            (Code::UnknownTopic, "platform.backend.topics"),
            (Code::SaslAuthenticationFailed, "platform.backend.password"),
            (Code::KafkaStorageError, "log of the brokers"),
        ] {
            let refusal = of_command(code, Reason::Kafka(code as u16));
            assert!(
                refusal.remedy.to_string().contains(part),
                "{code}: {refusal}"
            );
        }
    }

    #[test]
    fn a_group_that_may_not_be_joined_names_the_acl_of_the_group_and_its_key() {
        let refusal = failed(Code::GroupAuthorizationFailed, "join the group");
        assert!(
            refusal.remedy.to_string().contains("resource Group"),
            "{refusal}"
        );
        assert!(
            refusal
                .remedy
                .to_string()
                .contains("platform.backend.shared")
        );
        assert!(!refusal.remedy.to_string().contains("topic"), "{refusal}");
    }

    #[test]
    fn what_the_library_reports_is_shown_and_its_code_names_the_keys() {
        for (code, parts) in [
            (Code::SSL, &["`ca` of platform.backend.tls"][..]),
            (
                Code::BrokerTransportFailure,
                &[
                    "platform.backend.url",
                    "`kafkas://`",
                    "`cert`",
                    "platform.backend.user",
                ],
            ),
            (
                Code::Authentication,
                &[
                    "platform.backend.user",
                    "platform.backend.password",
                    "platform.backend.sasl",
                ],
            ),
        ] {
            let refusal = reported(code, "h:9092: in its own words");
            let is_silent = code == Code::BrokerTransportFailure;
            let kind = refusal.kind;
            assert_eq!(kind == RefusalKind::Unreachable, is_silent, "{refusal}");
            let told = refusal.to_string();
            assert!(told.starts_with("h:9092: in its own words; "), "{told}");
            assert!(parts.iter().all(|part| told.contains(part)), "{told}");
        }
    }

    #[test]
    fn who_refuses_is_not_silent_whatever_would_help() {
        let kind = |code| failed(code, "find topic `t`").kind;
        assert_eq!(kind(Code::AllBrokersDown), RefusalKind::Unreachable);
        for code in OF_CREDENTIALS.iter().chain(&OF_RIGHTS).chain(&OF_TOPICS) {
            assert_eq!(kind(*code), RefusalKind::Refused, "{code}");
        }
        for code in OF_LEADERS {
            assert_eq!(kind(code), RefusalKind::NotReady, "{code}");
        }
    }
}
