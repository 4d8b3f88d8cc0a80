//! What a broker refuses, and what would help.

use std::fmt;

use muster_model::Reason;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::session::CREDENTIAL_KEYS;

/// Why a consumer cannot come up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    what: String,
    /// What would help, with the key where the scenario says it.
    pub(crate) remedy: &'static str,
    nature: Nature,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    /// Nobody answered at all.
    Silence,
    /// It passes by itself when the brokers have agreed on who leads.
    Passing,
    /// It stays until somebody does something.
    Lasting,
}

impl Refusal {
    /// What was tried, and the code that it ended with.
    pub(crate) fn of(code: RDKafkaErrorCode, tried: impl fmt::Display) -> Self {
        Self::said(code, &format!("failed to {tried}: {code}"))
    }

    /// What the library says by itself.
    pub(crate) fn said(code: RDKafkaErrorCode, reason: &str) -> Self {
        let (nature, remedy) = remedy(code);
        Self {
            what: reason.to_owned(),
            remedy,
            nature,
        }
    }

    /// The library does not take the settings, as where it was built without what they need.
    pub(crate) fn unbuilt(error: &KafkaError) -> Self {
        Self {
            what: format!("set up a consumer: {error}"),
            remedy: "see docs/kafka.md for what needs the feature `kafka-tls`",
            nature: Nature::Lasting,
        }
    }

    pub(crate) fn missing(topic: &str) -> Self {
        Self {
            what: format!("topic `{topic}` was created and does not appear"),
            remedy: OF_BROKERS,
            nature: Nature::Passing,
        }
    }

    /// The brokers refuse commands.
    pub(crate) fn of_command(code: RDKafkaErrorCode, reason: Reason) -> Self {
        Self {
            what: format!("commands are refused with {reason}: {code}"),
            remedy: remedy_of_command(code),
            nature: Nature::Lasting,
        }
    }

    pub(crate) fn leaderless(topic: &str, partition: i32) -> Self {
        Self {
            what: format!("partition {partition} of topic `{topic}` has no leader"),
            remedy: OF_BROKERS,
            nature: Nature::Passing,
        }
    }

    /// Nothing is known of commands that were handed over.
    pub(crate) fn of_unknown(code: RDKafkaErrorCode) -> Self {
        Self {
            what: format!("no broker said whether it has commands: {code}"),
            remedy: remedy_of_command(code),
            nature: Nature::Lasting,
        }
    }

    /// The library does not take commands, which no broker has seen then.
    pub(crate) fn of_untaken(code: RDKafkaErrorCode) -> Self {
        Self {
            what: format!("commands cannot be handed over and are withheld: {code}"),
            remedy: "see docs/kafka.md for what a command is made of",
            nature: Nature::Lasting,
        }
    }

    /// The library issues no further command.
    pub(crate) fn of_producer(code: RDKafkaErrorCode, reason: &str) -> Self {
        Self {
            what: format!("no further command can be issued: {reason} ({code})"),
            remedy: remedy_of_command(code),
            nature: Nature::Lasting,
        }
    }

    /// Whether nobody answered at all.
    pub(crate) fn is_silence(&self) -> bool {
        self.nature == Nature::Silence
    }

    /// Whether it passes by itself when the brokers have agreed on who leads.
    pub(crate) fn is_passing(&self) -> bool {
        self.nature == Nature::Passing
    }

    /// Whether only a group is refused.
    pub(crate) fn is_of_group(code: RDKafkaErrorCode) -> bool {
        code == RDKafkaErrorCode::GroupAuthorizationFailed
    }

    /// Whether the consumer goes without what it lost until somebody does something.
    pub(crate) fn is_final(code: RDKafkaErrorCode) -> bool {
        OF_CREDENTIALS.contains(&code) || OF_RIGHTS.contains(&code) || OF_TOPICS.contains(&code)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let see = if self.remedy.starts_with("platform") {
            "see "
        } else {
            ""
        };
        write!(f, "{}; {see}{}", self.what, self.remedy)
    }
}

const OF_CREDENTIALS: [RDKafkaErrorCode; 3] = [
    RDKafkaErrorCode::Authentication,
    RDKafkaErrorCode::SaslAuthenticationFailed,
    RDKafkaErrorCode::UnsupportedSASLMechanism,
];
const OF_TOPICS: [RDKafkaErrorCode; 6] = [
    RDKafkaErrorCode::UnknownTopicOrPartition,
    RDKafkaErrorCode::UnknownTopic,
    RDKafkaErrorCode::InvalidTopic,
    RDKafkaErrorCode::InvalidPartitions,
    RDKafkaErrorCode::InvalidReplicationFactor,
    RDKafkaErrorCode::PolicyViolation,
];
const OF_RIGHTS: [RDKafkaErrorCode; 3] = [
    RDKafkaErrorCode::TopicAuthorizationFailed,
    RDKafkaErrorCode::ClusterAuthorizationFailed,
    RDKafkaErrorCode::GroupAuthorizationFailed,
];

const OF_LEADERS: [RDKafkaErrorCode; 3] = [
    RDKafkaErrorCode::LeaderNotAvailable,
    RDKafkaErrorCode::NotLeaderForPartition,
    RDKafkaErrorCode::UnknownPartition,
];

/// What would help where no broker answered.
const OF_NOTHING: &str = "does a broker listen there, and can the address that it advertises be \
                          reached from here? see platform.backend.url";

/// Where a broker refused something and nothing more is known.
const OF_BROKERS: &str = "see the log of the brokers";

/// What would help where commands are refused, by what a broker answers a Produce request with, or the
/// library says in its place.
const OF_COMMANDS: [(&[RDKafkaErrorCode], &str); 7] = {
    use RDKafkaErrorCode as Code;
    [
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
    ]
};

fn remedy_of_command(code: RDKafkaErrorCode) -> &'static str {
    let mut known = OF_COMMANDS.iter();
    let known = known.find(|(codes, _)| codes.contains(&code));
    known.map_or_else(|| remedy(code).1, |(_, remedy)| remedy)
}

fn remedy(code: RDKafkaErrorCode) -> (Nature, &'static str) {
    if OF_LEADERS.contains(&code) {
        return (Nature::Passing, OF_BROKERS);
    }
    let lasting = if OF_CREDENTIALS.contains(&code) {
        CREDENTIAL_KEYS
    } else if code == RDKafkaErrorCode::SSL {
        "see platform.backend.tls"
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
    fn of_brokers() -> impl Iterator<Item = RDKafkaErrorCode> {
        (1..=i32::from(i16::MAX))
            .filter_map(|code| RDKafkaRespErr::try_from(code).ok())
            .map(RDKafkaErrorCode::from)
            .filter(|code| *code != RDKafkaErrorCode::EndAll)
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
        use RDKafkaErrorCode as Code;
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
        let refusal = Refusal::of(RDKafkaErrorCode::GroupAuthorizationFailed, "join the group");
        assert!(refusal.remedy.contains("resource Group"), "{refusal}");
        assert!(refusal.remedy.contains("platform.backend.shared"));
        assert!(!refusal.remedy.contains("topic"), "{refusal}");
    }

    #[test]
    fn who_refuses_is_not_silent_whatever_would_help() {
        let of = |code| Refusal::of(code, "find topic `t`");
        assert!(of(RDKafkaErrorCode::AllBrokersDown).is_silence());
        for code in OF_CREDENTIALS.iter().chain(&OF_RIGHTS).chain(&OF_TOPICS) {
            assert!(!of(*code).is_silence() && !of(*code).is_passing(), "{code}");
        }
        for code in OF_LEADERS {
            assert!(of(code).is_passing() && !of(code).is_silence(), "{code}");
        }
    }
}
