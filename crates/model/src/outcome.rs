//! Outcomes of an attempt.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Reason, TlsFailure};

/// The one final state of a message on the device side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Outcome {
    /// The platform took responsibility, in the dialect's word (PUBACK, PUBREC, 2xx).
    Accepted,
    /// The platform answered no.
    Rejected(Reason),
    /// No answer within the stream's time-out, counted from `sent`.
    TimedOut,
    /// The link ended before the answer.
    Broken(Cause),
    /// Sent, and no answer exists by design (QoS 0).
    Unacknowledged,
    /// Never sent.
    Shed(ShedCause),
    /// Still open when settling ended.
    InFlight,
}

/// Cause of a link's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cause {
    /// The peer closed the connection in order (FIN).
    PeerClosed,
    /// The peer reset the connection (RST).
    Reset,
    /// The network reported another error on the socket.
    Network,
    /// The peer said goodbye with a code (MQTT 5 DISCONNECT).
    PeerDisconnect(Reason),
    /// A ping had no answer in time: the peer's silence.
    PingUnanswered,
    /// The peer ended the link after we had sent nothing for one and a half keep-alives: our own
    /// silence.
    KeepAliveMissed,
    /// The peer's bytes were not the protocol.
    Malformed,
    /// Own fault: a packet was larger than we receive, and the peer did not know that limit.
    OwnLimit,
    /// TLS could not go on, or the peer ended it with an alert.
    Tls(TlsFailure),
    /// We closed it on purpose (`connect.lifetime`).
    Lifetime,
    /// We closed it on purpose, for the device to be offline for a while (`offline`).
    Offline,
    /// The session was not resumed, so the attempt can have no answer any more.
    SessionLost,
    /// The session was resumed by a peer that takes less now than the message that was to be sent
    /// again.
    Unsendable,
    /// The connection ended between two requests of HTTP, as the scenario asks or as the peer had
    /// announced.
    BetweenRequests,
    /// The peer closed a connection of HTTP on which no request was open.
    ClosedIdle,
    /// We closed a connection of HTTP on which a request had no answer in time: a later one could be taken
    /// for the answer to another request.
    Unanswered,
    /// The connection ended within the body of an answer: before its length was reached, or its last chunk.
    AnswerCutOff,
    /// We closed a connection of HTTP on which an answer had begun and did not end in time.
    AnswerUnfinished,
}

/// Reason that a message was never sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ShedCause {
    /// The declared bound on messages in flight.
    InFlight,
    /// The protocol's window: receive maximum, NSTART, one request at a time.
    Window,
    /// The link was down.
    Offline,
    /// The platform asked the device to wait, or the device had decided to.
    BackOff,
    /// The platform asked the device to wait, by `Retry-After` of HTTP.
    RetryAfter,
    /// The device's queue was at its bound.
    QueueFull,
    /// A query was outstanding.
    Busy,
    /// The socket took no more bytes.
    SocketFull,
    /// The peer said when it took the link that it never takes such a message: its size, its QoS,
    /// or that it be retained.
    Unsendable,
    /// Own fault: taken later than `validity.max-lateness`.
    GeneratorLate,
    /// Own fault: a pool, descriptor or port bound of ours.
    GeneratorLimit,
    /// Own fault: the run was interrupted.
    Interrupted,
}

impl Cause {
    /// Returns true if we ended the link ourselves, as the scenario asks.
    pub const fn is_on_purpose(self) -> bool {
        matches!(self, Self::Lifetime | Self::Offline)
    }

    /// Returns true if the device needs no connection until its next message is due, as one of HTTP:
    /// such a link is not lost.
    pub const fn rests(self) -> bool {
        matches!(
            self,
            Self::BetweenRequests | Self::ClosedIdle | Self::Unanswered | Self::AnswerUnfinished
        )
    }

    /// Returns true if the platform, or the network on the way to it, ended the link: rule
    /// `disconnects` counts these.
    pub const fn is_of_platform(self) -> bool {
        match self {
            Self::PeerClosed
            | Self::Reset
            | Self::Network
            | Self::PeerDisconnect(_)
            | Self::PingUnanswered
            | Self::Malformed
            | Self::Tls(_)
            | Self::AnswerCutOff => true,
            Self::KeepAliveMissed
            | Self::Lifetime
            | Self::Offline
            | Self::SessionLost
            | Self::OwnLimit
            | Self::Unsendable
            | Self::BetweenRequests
            | Self::ClosedIdle
            | Self::Unanswered
            | Self::AnswerUnfinished => false,
        }
    }
}

impl ShedCause {
    /// Every cause, in the order of the report.
    pub const ALL: [ShedCause; 12] = [
        ShedCause::InFlight,
        ShedCause::Window,
        ShedCause::Offline,
        ShedCause::BackOff,
        ShedCause::RetryAfter,
        ShedCause::QueueFull,
        ShedCause::Busy,
        ShedCause::SocketFull,
        ShedCause::Unsendable,
        ShedCause::GeneratorLate,
        ShedCause::GeneratorLimit,
        ShedCause::Interrupted,
    ];

    /// Returns true if the generator is to blame, which makes the run invalid.
    pub const fn is_own(self) -> bool {
        matches!(
            self,
            Self::GeneratorLate | Self::GeneratorLimit | Self::Interrupted
        )
    }

    /// The name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InFlight => "in-flight",
            Self::Window => "window",
            Self::Offline => "offline",
            Self::BackOff => "back-off",
            Self::RetryAfter => "retry-after",
            Self::QueueFull => "queue-full",
            Self::Busy => "busy",
            Self::SocketFull => "socket-full",
            Self::Unsendable => "unsendable",
            Self::GeneratorLate => "generator-late",
            Self::GeneratorLimit => "generator-limit",
            Self::Interrupted => "interrupted",
        }
    }
}

impl fmt::Display for ShedCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PeerClosed => f.write_str("closed-by-peer"),
            Self::Reset => f.write_str("reset"),
            Self::Network => f.write_str("network"),
            Self::PeerDisconnect(reason) => write!(f, "disconnect-{reason}"),
            Self::PingUnanswered => f.write_str("ping-unanswered"),
            Self::KeepAliveMissed => f.write_str("keep-alive-missed-by-us"),
            Self::Malformed => f.write_str("malformed"),
            Self::OwnLimit => f.write_str("own-limit"),
            Self::Tls(failure) => failure.fmt(f),
            Self::Lifetime => f.write_str("lifetime"),
            Self::Offline => f.write_str("offline"),
            Self::SessionLost => f.write_str("session-lost"),
            Self::Unsendable => f.write_str("unsendable"),
            Self::BetweenRequests => f.write_str("between-requests"),
            Self::ClosedIdle => f.write_str("closed-while-idle"),
            Self::Unanswered => f.write_str("request-unanswered"),
            Self::AnswerCutOff => f.write_str("answer-cut-off"),
            Self::AnswerUnfinished => f.write_str("answer-unfinished"),
        }
    }
}

/// Reason that a link could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConnectFailure {
    /// The name could not be resolved.
    Dns,
    /// The address refused the connection.
    Refused,
    /// No route to the address, or another network error.
    Unreachable,
    /// The handshake was not over within `connect.timeout`.
    TimedOut,
    /// The peer ended the connection during the handshake.
    Closed,
    /// The TLS handshake failed.
    Tls(TlsFailure),
    /// The server refused the upgrade to WebSocket with this HTTP status.
    UpgradeRefused(u16),
    /// The peer's bytes were not the protocol.
    Malformed,
    /// The protocol said no (CONNACK code): judged, not an unreachable target.
    Rejected(Reason),
    /// A subscription the dialect needs was refused.
    SubscribeRejected(Reason),
    /// The peer takes no packet such as the link has to send before it is up.
    Unsendable,
    /// Own fault: no descriptor or port was left.
    GeneratorLimit,
    /// The run ended before the handshake did.
    RunEnded,
    /// The platform did not answer, within `connect.timeout`, the announcement of a device that the link
    /// carries.
    AnnouncementUnanswered,
    /// The platform did not answer, within `connect.timeout`, a SUBSCRIBE that the link needs.
    SubscribeUnanswered,
}

impl ConnectFailure {
    /// The cause behind a number of links, such as "refused: not authorized (0x87)".
    pub fn in_words(self) -> String {
        let refused = |what: &str, reason: Reason| match reason.meaning() {
            Some(meaning) => format!("refused{what}: {meaning} ({reason})"),
            None => format!("refused{what}: {reason}"),
        };
        match self {
            Self::Rejected(reason) => refused("", reason),
            Self::SubscribeRejected(reason) => refused(" a subscription", reason),
            Self::UpgradeRefused(status) => format!("refused the upgrade to WebSocket: {status}"),
            Self::Dns => "without an address: the name could not be resolved (dns)".to_owned(),
            Self::Refused => "turned away: nobody listens there (refused)".to_owned(),
            Self::Unreachable => "without a way to the address (unreachable)".to_owned(),
            Self::TimedOut => "without an answer in time (timed-out)".to_owned(),
            Self::Closed => "closed by the peer in the handshake (closed-by-peer)".to_owned(),
            Self::Tls(failure) => format!("failed {}", failure.in_words()),
            Self::Malformed => "answered in bytes of another protocol (malformed)".to_owned(),
            Self::Unsendable => "at a peer that takes no such packet (unsendable)".to_owned(),
            Self::GeneratorLimit => {
                "without a descriptor or port on this machine (generator-limit)".to_owned()
            }
            Self::AnnouncementUnanswered => {
                "without an answer to their announcement (announcement-unanswered)".to_owned()
            }
            Self::SubscribeUnanswered => {
                "without an answer to their SUBSCRIBE (subscribe-unanswered)".to_owned()
            }
            Self::RunEnded => "cut off by the end of the run (run-ended)".to_owned(),
        }
    }

    /// Returns true if the peer refused the link in its protocol: by a code of CONNACK or SUBACK,
    /// or by 401 or 403 to the upgrade to WebSocket. Nonsense, or a path without WebSocket, is no
    /// refusal of a platform.
    pub const fn is_refusal(self) -> bool {
        match self {
            Self::Rejected(_) | Self::SubscribeRejected(_) | Self::UpgradeRefused(401 | 403) => {
                true
            }
            Self::Dns
            | Self::Refused
            | Self::Unreachable
            | Self::TimedOut
            | Self::Closed
            | Self::Tls(_)
            | Self::UpgradeRefused(_)
            | Self::Malformed
            | Self::Unsendable
            | Self::GeneratorLimit
            | Self::RunEnded
            | Self::AnnouncementUnanswered
            | Self::SubscribeUnanswered => false,
        }
    }

    /// True if the peer refused the link for good: the next try gets the same answer.
    pub const fn is_final(self) -> bool {
        if let Self::Rejected(reason) | Self::SubscribeRejected(reason) = self {
            reason.is_final()
        } else {
            self.is_refusal()
        }
    }

    /// Returns true if the time to connect was over before an answer came.
    pub const fn is_time_out(self) -> bool {
        matches!(
            self,
            Self::TimedOut | Self::AnnouncementUnanswered | Self::SubscribeUnanswered
        )
    }
}

impl fmt::Display for ConnectFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns => f.write_str("dns"),
            Self::Refused => f.write_str("refused"),
            Self::Unreachable => f.write_str("unreachable"),
            Self::TimedOut => f.write_str("timed-out"),
            Self::Closed => f.write_str("closed-by-peer"),
            Self::Tls(failure) => failure.fmt(f),
            Self::UpgradeRefused(status) => write!(f, "upgrade-refused-{status}"),
            Self::Malformed => f.write_str("malformed"),
            Self::Rejected(reason) => write!(f, "rejected-{reason}"),
            Self::SubscribeRejected(reason) => write!(f, "subscribe-rejected-{reason}"),
            Self::Unsendable => f.write_str("unsendable"),
            Self::GeneratorLimit => f.write_str("generator-limit"),
            Self::RunEnded => f.write_str("run-ended"),
            Self::AnnouncementUnanswered => f.write_str("announcement-unanswered"),
            Self::SubscribeUnanswered => f.write_str("subscribe-unanswered"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_by_our_own_doing_is_not_the_platforms() {
        for ours in [
            Cause::KeepAliveMissed,
            Cause::OwnLimit,
            Cause::Lifetime,
            Cause::Offline,
            Cause::Unanswered,
            Cause::AnswerUnfinished,
        ] {
            assert!(!ours.is_of_platform(), "{ours}");
        }
        for allowed in [Cause::BetweenRequests, Cause::ClosedIdle] {
            assert!(allowed.rests() && !allowed.is_of_platform(), "{allowed}");
        }
        for theirs in [
            Cause::PeerClosed,
            Cause::Reset,
            Cause::PingUnanswered,
            Cause::AnswerCutOff,
        ] {
            assert!(theirs.is_of_platform(), "{theirs}");
        }
    }

    #[test]
    fn the_generator_is_to_blame_for_what_it_sheds_by_its_own_limits_alone() {
        let own = ShedCause::ALL.into_iter().filter(|cause| cause.is_own());
        let names: Vec<&str> = own.map(ShedCause::name).collect();
        assert_eq!(names, ["generator-late", "generator-limit", "interrupted"]);
    }
}
