//! What a broker refuses, and what would help.

use std::fmt;

use muster_model::Reason;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

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
    /// So it looks, if nobody answers afterwards either.
    Suspected,
}

impl Refusal {
    /// What was tried, and the code that it ended with.
    pub(crate) fn of(code: Code, tried: impl fmt::Display) -> Self {
        Self::said(code, &format!("failed to {tried}: {code}"))
    }

    /// What the library says by itself. Its words may say more than its code.
    pub(crate) fn said(code: Code, reason: &str) -> Self {
        let at_listener = remedy_at_listener(reason).map(|remedy| (Nature::Lasting, remedy));
        let (nature, remedy) = if is_ended_at_once(reason) {
            (Nature::Suspected, OF_LOGIN)
        } else {
            at_listener.unwrap_or_else(|| remedy(code))
        };
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
    pub(crate) fn of_command(code: Code, reason: Reason) -> Self {
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
    pub(crate) fn of_unknown(code: Code) -> Self {
        Self {
            what: format!("no broker said whether it has commands: {code}"),
            remedy: remedy_of_command(code),
            nature: Nature::Lasting,
        }
    }

    /// The library does not take commands, which no broker has seen then.
    pub(crate) fn of_untaken(code: Code) -> Self {
        Self {
            what: format!("commands cannot be handed over and are withheld: {code}"),
            remedy: "see docs/kafka.md for what a command is made of",
            nature: Nature::Lasting,
        }
    }

    /// The library issues no further command.
    pub(crate) fn of_producer(code: Code, reason: &str) -> Self {
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

    /// Whether a connection that ended may have wanted a login, or its broker only ended: that nobody answers
    /// the next time tells.
    pub(crate) fn is_suspicion(&self) -> bool {
        self.nature == Nature::Suspected
    }

    /// Whether words of the library tell that a listener is not as the scenario has it, or refuses who it is.
    pub(crate) fn is_of_listener(reason: &str, has_login: bool) -> bool {
        remedy_at_listener(reason).is_some() || (!has_login && is_ended_at_once(reason))
    }

    /// Whether only a group is refused.
    pub(crate) fn is_of_group(code: Code) -> bool {
        code == Code::GroupAuthorizationFailed
    }

    /// Whether the login is refused.
    pub(crate) fn is_of_credentials(code: Code) -> bool {
        OF_CREDENTIALS.contains(&code)
    }

    /// Whether the consumer goes without what it lost until somebody does something.
    pub(crate) fn is_final(code: Code) -> bool {
        OF_CREDENTIALS.contains(&code) || OF_RIGHTS.contains(&code) || OF_TOPICS.contains(&code)
    }

    /// Whether brokers know no such topic, or partition.
    pub(crate) fn is_of_missing_topic(code: Code) -> bool {
        matches!(code, Code::UnknownTopicOrPartition | Code::UnknownTopic)
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

/// What would help where no broker answered.
const OF_NOTHING: &str = "does a broker listen there, and can the address that it advertises be \
                          reached from here? see platform.backend.url";

/// What would help where a listener is not as the scenario has it, by parts of what librdkafka and OpenSSL say: the
/// code is mostly that of a connection that ended.
const AT_LISTENERS: [(&[&str], &str); 10] = [
    (&["alert certificate required"], OWN_CERTIFICATE),
    (&["alert bad certificate"], OWN_CERTIFICATE),
    (&["alert certificate unknown"], OWN_CERTIFICATE),
    (&["alert certificate expired"], OWN_CERTIFICATE),
    (&["alert unknown ca"], OWN_CERTIFICATE),
    (
        &["certificate verify failed"],
        "does `ca` of platform.backend.tls hold who signed the brokers' certificate, and is that one for the \
         host by which they are reached?",
    ),
    (
        &["connecting to a PLAINTEXT broker listener"],
        "do the brokers speak TLS there? else use `kafka://` in platform.backend.url",
    ),
    // The first request of all is not understood.
    (
        &["Disconnected", "in state APIVERSION_QUERY"],
        "do the brokers speak TLS there? then use `kafkas://` in platform.backend.url",
    ),
    (
        &["Unsupported SASL mechanism"],
        "name one of those that the brokers support under platform.backend.sasl",
    ),
    (
        &["current SASL state"],
        "do the brokers want a login there? else remove platform.backend.user and `password`",
    ),
];
const OWN_CERTIFICATE: &str =
    "name under platform.backend.tls a `cert` that the brokers trust, and its `key`";

/// What would help where a listener ends a connection at the first request that is no login.
const OF_LOGIN: &str =
    "do the brokers want a login there? then see platform.backend.user, `password` and `sasl`";
/// Who is used for longer was allowed in: librdkafka's own bound for the same guess.
const AT_ONCE_MS: u64 = 2_000;

/// Where a broker refused something and nothing more is known.
const OF_BROKERS: &str = "see the log of the brokers";

/// What would help where commands are refused, by what a broker answers a Produce request with, or the
/// library says in its place.
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

fn remedy_at_listener(reason: &str) -> Option<&'static str> {
    let mut known = AT_LISTENERS.iter();
    let known = known.find(|(parts, _)| parts.iter().all(|part| reason.contains(part)));
    known.map(|(_, remedy)| *remedy)
}

/// Whether a connection ended soon after both had agreed on how to speak. The library says it once in half a
/// minute, however often it happens. Brokers that restart, or end what is idle, were in use for longer.
fn is_ended_at_once(reason: &str) -> bool {
    let lasted = reason
        .split_once("Disconnected")
        .and_then(|(_, rest)| rest.split_once("(after "))
        .and_then(|(_, rest)| rest.split_once("ms in state UP"));
    let lasted = lasted.and_then(|(lasted, _)| lasted.parse::<u64>().ok());
    lasted.is_some_and(|lasted| lasted < AT_ONCE_MS)
}

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
        CREDENTIAL_KEYS
    } else if code == Code::SSL {
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
    fn a_listener_that_is_not_as_the_scenario_has_it_is_named_though_the_connection_only_ended() {
        for (said, part) in [
            (
                "Receive failed: error:0A00045C:SSL routines::tlsv13 alert certificate required",
                "`cert`",
            ),
            (
                "127.0.0.1:9092/bootstrap: Disconnected (after 1ms in state APIVERSION_QUERY)",
                "use `kafkas://`",
            ),
            (
                "SSL handshake failed: connecting to a PLAINTEXT broker listener?",
                "use `kafka://`",
            ),
        ] {
            let refusal = Refusal::said(Code::BrokerTransportFailure, said);
            assert!(!refusal.is_silence(), "{refusal}");
            assert!(refusal.remedy.contains(part), "{refusal}");
        }
        assert!(Refusal::said(Code::BrokerTransportFailure, "Connection refused").is_silence());
    }

    #[test]
    fn only_a_connection_without_a_login_that_ends_at_once_may_have_wanted_one() {
        let ended =
            |lasted| format!("127.0.0.1:9092/1: Disconnected (after {lasted}ms in state UP)");
        for (reason, has_login, may) in [
            (ended("301"), false, true),
            (ended("301"), true, false),
            // A restart, and what a broker ends because it was idle.
            (ended("60000"), false, false),
            (ended("599999"), false, false),
            (
                "Disconnected (after 3ms in state CONNECT)".to_owned(),
                false,
                false,
            ),
        ] {
            assert_eq!(Refusal::is_of_listener(&reason, has_login), may, "{reason}");
        }
        let suspected = Refusal::said(Code::BrokerTransportFailure, &ended("301"));
        assert!(suspected.is_suspicion() && !suspected.is_silence());
        assert!(suspected.remedy.contains("platform.backend.user"));
        let ended = Refusal::said(Code::BrokerTransportFailure, &ended("60000"));
        assert!(ended.is_silence(), "{ended}");
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
