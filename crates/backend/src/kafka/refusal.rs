//! Refusals of brokers, by the codes of librdkafka and Kafka, with their remedies.

use std::fmt;

use muster_model::Reason;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

/// Reason that a consumer cannot start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    what: String,
    /// The remedy, with the key of the scenario if it has one.
    pub(crate) remedy: &'static str,
    nature: Nature,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    /// Nobody answered at all.
    Silence,
    /// Passes by itself when the brokers have agreed on a leader.
    Passing,
    /// Stays until somebody acts.
    Lasting,
}

impl Refusal {
    /// Returns the refusal of an operation by its code.
    pub(crate) fn of(code: Code, tried: impl fmt::Display) -> Self {
        Self::said(code, &format!("failed to {tried}: {code}"))
    }

    /// A refusal that the library reports: its words are shown, and its code is read.
    pub(crate) fn said(code: Code, reason: &str) -> Self {
        let (nature, remedy) = remedy(code);
        Self {
            what: reason.to_owned(),
            remedy,
            nature,
        }
    }

    fn lasting(what: String, remedy: &'static str) -> Self {
        let nature = Nature::Lasting;
        Self {
            what,
            remedy,
            nature,
        }
    }

    fn passing(what: String) -> Self {
        Self {
            nature: Nature::Passing,
            ..Self::lasting(what, OF_BROKERS)
        }
    }

    /// The library does not take the settings, as where it was built without what they need.
    pub(crate) fn unbuilt(error: &KafkaError) -> Self {
        let what = format!("set up a consumer: {error}");
        Self::lasting(
            what,
            "see docs/kafka.md for what needs the feature `kafka-tls`",
        )
    }

    pub(crate) fn missing(topic: &str) -> Self {
        Self::passing(format!("topic `{topic}` was created and does not appear"))
    }

    pub(crate) fn leaderless(topic: &str, partition: i32) -> Self {
        Self::passing(format!(
            "partition {partition} of topic `{topic}` has no leader"
        ))
    }

    /// The brokers refuse commands.
    pub(crate) fn of_command(code: Code, reason: Reason) -> Self {
        let what = format!("commands are refused with {reason}: {code}");
        Self::lasting(what, remedy_of_command(code))
    }

    /// Nothing is known of commands that were handed over.
    pub(crate) fn of_unknown(code: Code) -> Self {
        let what = format!("no broker said whether it has commands: {code}");
        Self::lasting(what, remedy_of_command(code))
    }

    /// The library does not take commands, which no broker has seen then.
    pub(crate) fn of_untaken(code: Code) -> Self {
        let what = format!("commands cannot be handed over and are withheld: {code}");
        Self::lasting(what, "see docs/kafka.md for what a command is made of")
    }

    /// The library issues no further command.
    pub(crate) fn of_producer(code: Code, reason: &str) -> Self {
        let what = format!("no further command can be issued: {reason} ({code})");
        Self::lasting(what, remedy_of_command(code))
    }

    /// Returns true if no broker answered at all.
    pub(crate) fn is_silence(&self) -> bool {
        self.nature == Nature::Silence
    }

    /// Returns true if it passes by itself when the brokers have agreed on a leader.
    pub(crate) fn is_passing(&self) -> bool {
        self.nature == Nature::Passing
    }

    /// Returns true if only a group is refused.
    pub(crate) fn is_of_group(code: Code) -> bool {
        code == Code::GroupAuthorizationFailed
    }

    /// True if the login is refused.
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
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.remedy)
    }
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
const OF_NOTHING: &str = "does a broker listen there, and can the address that it advertises be reached from \
                          here? see platform.backend.url: `kafkas://` where it speaks TLS, else `kafka://`; \
                          if it wants a certificate, name `cert` and `key` under platform.backend.tls; if it \
                          wants a login, set platform.backend.user and `password`";
/// The remedy where TLS fails.
const OF_TLS: &str = "does `ca` of platform.backend.tls hold who signed the brokers' certificate, and is that \
                      one for the host by which they are reached?";
/// The remedy where a login fails.
const OF_LOGIN: &str =
    "see platform.backend.user, platform.backend.password and platform.backend.sasl";

/// Remedy if a broker refused something and nothing more is known.
const OF_BROKERS: &str = "see the log of the brokers";

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

fn remedy_of_command(code: Code) -> &'static str {
    let mut known = OF_COMMANDS.iter();
    let known = known.find(|(codes, _)| codes.contains(&code));
    known.map_or_else(|| remedy(code).1, |(_, remedy)| remedy)
}

fn remedy(code: Code) -> (Nature, &'static str) {
    if OF_LEADERS.contains(&code) {
        return (Nature::Passing, OF_BROKERS);
    }
    let lasting = if OF_CREDENTIALS.contains(&code) {
        OF_LOGIN
    } else if code == Code::SSL {
        OF_TLS
    } else if Refusal::is_of_group(code) {
        "allow platform.backend.user to read (ACL: operation Read on resource Group) the group that \
         platform.backend.shared names, or leave `shared` out"
    } else if OF_RIGHTS.contains(&code) {
        "allow platform.backend.user to describe and read the topics, and to create those that are \
         missing, or create them before the run"
    } else if OF_TOPICS.contains(&code) {
        "see platform.backend.topics"
    } else if code as i32 > 0 {
        // It is a broker's own word, whatever it means: the library's codes are negative.
        OF_BROKERS
    } else {
        return (Nature::Silence, OF_NOTHING);
    };
    (Nature::Lasting, lasting)
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
            let refusal = Refusal::of(code, "find topic `t`");
            assert!(!refusal.is_silence(), "{code}");
            let reason = Reason::Kafka(code as u16);
            for refusal in [refusal, Refusal::of_command(code, reason)] {
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
            let refusal = Refusal::of_command(code, Reason::Kafka(code as u16));
            assert!(refusal.remedy.contains(part), "{code}: {refusal}");
        }
    }

    #[test]
    fn a_group_that_may_not_be_joined_names_the_acl_of_the_group_and_its_key() {
        let refusal = Refusal::of(Code::GroupAuthorizationFailed, "join the group");
        assert!(refusal.remedy.contains("resource Group"), "{refusal}");
        assert!(refusal.remedy.contains("platform.backend.shared"));
        assert!(!refusal.remedy.contains("topic"), "{refusal}");
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
            let refusal = Refusal::said(code, "h:9092: in its own words");
            let is_silent = code == Code::BrokerTransportFailure;
            assert_eq!(refusal.is_silence(), is_silent, "{refusal}");
            let told = refusal.to_string();
            assert!(told.starts_with("h:9092: in its own words; "), "{told}");
            assert!(parts.iter().all(|part| told.contains(part)), "{told}");
        }
    }

    #[test]
    fn who_refuses_is_not_silent_whatever_would_help() {
        let of = |code| Refusal::of(code, "find topic `t`");
        assert!(of(Code::AllBrokersDown).is_silence());
        for code in OF_CREDENTIALS.iter().chain(&OF_RIGHTS).chain(&OF_TOPICS) {
            assert!(!of(*code).is_silence() && !of(*code).is_passing(), "{code}");
        }
        for code in OF_LEADERS {
            assert!(of(code).is_passing() && !of(code).is_silence(), "{code}");
        }
    }
}
