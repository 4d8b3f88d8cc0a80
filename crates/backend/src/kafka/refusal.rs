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
            remedy: "see the log of the brokers",
            nature: Nature::Passing,
        }
    }

    /// The brokers refuse commands.
    pub(crate) fn of_command(code: RDKafkaErrorCode, reason: Reason) -> Self {
        Self {
            what: format!("commands are refused with {}", reason.in_words()),
            remedy: remedy_of_command(code),
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

fn remedy_of_command(code: RDKafkaErrorCode) -> &'static str {
    if OF_RIGHTS.contains(&code) {
        return "allow platform.backend.user to write the topic of commands, and before Kafka 3.0 to \
                write idempotently to the cluster";
    }
    remedy(code).1
}

fn remedy(code: RDKafkaErrorCode) -> (Nature, &'static str) {
    if OF_LEADERS.contains(&code) {
        return (Nature::Passing, "see the log of the brokers");
    }
    let lasting = if OF_CREDENTIALS.contains(&code) {
        CREDENTIAL_KEYS
    } else if code == RDKafkaErrorCode::SSL {
        "see platform.backend.tls"
    } else if code == RDKafkaErrorCode::GroupAuthorizationFailed {
        "allow platform.backend.user to read the group, which platform.backend.shared names \
         (without it, one that begins with `muster-`)"
    } else if OF_RIGHTS.contains(&code) {
        "allow platform.backend.user to describe and read the topics, and to create those that are \
         missing, or create them before the run"
    } else if OF_TOPICS.contains(&code) {
        "see platform.backend.topics"
    } else {
        return (Nature::Silence, OF_NOTHING);
    };
    (Nature::Lasting, lasting)
}

#[cfg(test)]
mod tests {
    use super::*;

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
