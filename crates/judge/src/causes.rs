//! Links that never came up: the cause, and the key of the scenario to look at.

mod addresses;
mod messages;
mod requests;

use std::collections::BTreeMap;
use std::fmt;

use muster_measure::{Phase, ScopeSummary, TargetCounts};
use muster_model::{Cause, ConnectFailure, FleetId, Reason, StreamId, TlsFailure, figure};
use serde::{Deserialize, Serialize};

use crate::Evidence;

/// Causes of one fleet that are named; the others are counted.
const CAUSES_MAX: usize = 3;
/// Bytes of the platform's own words that are quoted.
const SAID_MAX: usize = 200;
/// Addresses that are named; the others are counted.
const ADDRESSES_MAX: usize = 3;

/// Links of one fleet or consumers of one backend that did not come up; or messages or requests that ended by a
/// fault of an address or a credential, and not by the load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCause {
    /// The fleet; empty for a backend, and for all fleets together.
    pub fleet: String,
    /// The backend whose consumers did not come up, or that took no request; null for a fleet.
    pub backend: Option<String>,
    /// Links that are not up, messages without success, consumers that are away, or requests refused.
    pub count: u64,
    /// Links or consumers wanted, messages sent, or requests.
    pub of: u64,
    /// The most frequent cause; see the table of causes.
    pub cause: String,
    /// The key of the scenario to look at.
    pub see: String,
    /// All causes in a sentence, with the first refused device.
    pub text: String,
}

/// Further words for causes, known to the caller alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hints {
    /// Words for the links of each fleet, at the index of its id.
    pub fleets: Vec<FleetHints>,
    /// The first device that was refused, with its place, by fleet and cause.
    pub first_refused: BTreeMap<(String, String), String>,
    /// Reasons why consumers never came up, where that ended the run, or took none of the requests that came.
    pub consumers: Vec<LinkCause>,
}

/// Words for the links of a fleet, by the protocol of the addresses that they connect to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FleetHints {
    /// The addresses, as the scenario has them.
    pub addresses: Vec<String>,
    /// The likely reason why a peer hangs up in the handshake, as the end of a sentence.
    pub closed_in_handshake: String,
    /// The likely reason why a peer answers in another protocol, as the end of a sentence.
    pub other_protocol: String,
    /// The words of the session for bytes of another protocol; empty if it has none.
    pub other_protocol_words: String,
    /// True if a peer that does not know a device leaves its handshake without an answer, as over DTLS.
    pub is_refused_in_silence: bool,
    /// True if each message is a request, whose answer says by itself if the platform took it.
    pub has_requests: bool,
    /// Words for the requests of each stream whose form is the scenario's.
    pub requests: Vec<RequestHints>,
}

/// Words for the requests of one stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHints {
    /// The stream.
    pub stream: StreamId,
    /// Its method and path, such as `POST /v1/devices/${id}/readings`.
    pub line: String,
    /// The key with the answers that accept a message, such as `success: 202`.
    pub success: String,
}

/// The end of a try to connect, or of a link that had come up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LinkEnd {
    Failed(ConnectFailure),
    Ended(Cause),
}

impl LinkEnd {
    const fn noun(self, count: u64) -> &'static str {
        match (self, count) {
            (Self::Failed(_), 1) => "try",
            (Self::Failed(_), _) => "tries",
            (Self::Ended(_), 1) => "link",
            (Self::Ended(_), _) => "links",
        }
    }

    /// The cause behind a number of links, such as "refused: not authorized (0x87)".
    fn in_words(self) -> String {
        match self {
            Self::Failed(failure) => failure.in_words(),
            Self::Ended(Cause::PeerDisconnect(reason)) => match reason.meaning() {
                Some(meaning) => format!("closed by the platform: {meaning} ({reason})"),
                None => format!("closed by the platform: {reason}"),
            },
            Self::Ended(cause @ Cause::PeerClosed) => format!("closed by the platform ({cause})"),
            Self::Ended(Cause::Tls(failure)) => format!("ended {}", failure.in_words()),
            Self::Ended(cause) => format!("ended again ({cause})"),
        }
    }

    /// True if the address that a link connects to, or its server, may be to blame.
    const fn is_of_address(self) -> bool {
        matches!(
            self,
            Self::Failed(
                ConnectFailure::Dns
                    | ConnectFailure::Refused
                    | ConnectFailure::Unreachable
                    | ConnectFailure::TimedOut
                    | ConnectFailure::Closed
                    | ConnectFailure::Tls(_)
                    | ConnectFailure::Malformed
            ) | Self::Ended(
                Cause::PeerClosed
                    | Cause::Reset
                    | Cause::Malformed
                    | Cause::Tls(_)
                    | Cause::AnswerCutOff
            )
        )
    }

    /// The key of the scenario that decides over it.
    fn key(self, fleet: &str, hints: &FleetHints) -> String {
        match self {
            Self::Failed(ConnectFailure::TimedOut) if hints.is_refused_in_silence => {
                format!("platform.devices, fleet.{fleet}.credential and fleet.{fleet}.connect")
            }
            Self::Failed(failure) => key(failure, fleet),
            Self::Ended(Cause::PeerDisconnect(reason)) => of_refusal(reason, fleet),
            Self::Ended(Cause::Tls(failure)) => of_tls(failure, fleet),
            Self::Ended(Cause::PeerClosed | Cause::Reset) => {
                format!("platform.devices, fleet.{fleet}.credential and fleet.{fleet}.client.id")
            }
            Self::Ended(Cause::PingUnanswered) => format!("fleet.{fleet}.connect"),
            Self::Ended(
                Cause::Network
                | Cause::KeepAliveMissed
                | Cause::Malformed
                | Cause::OwnLimit
                | Cause::Lifetime
                | Cause::Offline
                | Cause::SessionLost
                | Cause::Unsendable
                | Cause::BetweenRequests
                | Cause::ClosedIdle
                | Cause::Unanswered
                | Cause::AnswerCutOff
                | Cause::AnswerUnfinished,
            ) => "platform.devices".to_owned(),
        }
    }
}

impl fmt::Display for LinkEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(failure) => failure.fmt(f),
            Self::Ended(cause) => cause.fmt(f),
        }
    }
}

/// A line for each backend without its consumers, for each fleet whose links were not all up when
/// connecting ended, one for addresses that took nothing of several fleets, one for addresses that fail far more
/// often than the best, then one for each fault for which messages of a fleet found no success.
pub(crate) fn of_links(evidence: &Evidence<'_>) -> Vec<LinkCause> {
    let fleets = || evidence.summary.fleets.iter().enumerate();
    let links = fleets().filter_map(|(at, scope)| missing(at, scope, evidence));
    let messages = fleets().flat_map(|(at, scope)| messages::of(at, scope, evidence));
    let consumers = evidence.hints.consumers.iter().cloned();
    consumers
        .chain(links)
        .chain(addresses::dead(evidence))
        .chain(addresses::failing(evidence))
        .chain(messages)
        .collect()
}

fn missing(at: usize, scope: &ScopeSummary, evidence: &Evidence<'_>) -> Option<LinkCause> {
    let links = &scope.links;
    let missing = links.wanted.saturating_sub(links.up_at_start);
    let causes = causes(FleetId(u8::try_from(at).ok()?), evidence);
    let (first, _) = causes.first().copied().filter(|_| missing > 0)?;
    let fleet = fleet_name(at, evidence);
    let hints = evidence.hints.fleets.get(at).cloned().unwrap_or_default();
    let (count, of) = (figure::count(missing), figure::count(links.wanted));
    let whose = match evidence.summary.fleets.len() {
        1 => String::new(),
        _ => format!(" of fleet `{fleet}`"),
    };
    // Where all are missing, the first one is like any other.
    let is_partly_up = links.up_at_start > 0;
    let words = |end: LinkEnd| {
        let device = is_partly_up.then(|| first_device(end, &fleet, evidence));
        let device = device.flatten().unwrap_or_default();
        let place = match end.is_of_address() {
            true => place(&hints, evidence, |of| of.failed > 0 && of.connected == 0),
            false => String::new(),
        };
        let hint = match end {
            LinkEnd::Failed(ConnectFailure::TimedOut) if hints.is_refused_in_silence => {
                ", as if the platform did not know the identity or the key"
            }
            // Where others came up, the port speaks the protocol.
            _ if is_partly_up => "",
            LinkEnd::Failed(ConnectFailure::Closed) => &hints.closed_in_handshake,
            LinkEnd::Failed(ConnectFailure::Malformed) | LinkEnd::Ended(Cause::Malformed) => {
                &hints.other_protocol
            }
            LinkEnd::Failed(_) | LinkEnd::Ended(_) => "",
        };
        let words = quoted(end.in_words() + &place, &end.to_string(), evidence);
        let see = end.key(&fleet, &hints);
        format!("{words}{device}{hint}; see {see}")
    };
    let ended: u64 = causes.iter().map(|(_, count)| count).sum();
    let text = if let ([(only, _)], true) = (causes.as_slice(), ended >= missing) {
        format!("{count} of {of} links{whose} {}", words(*only))
    } else {
        let shown = causes.iter().take(CAUSES_MAX);
        let shown = shown.map(|(end, count)| {
            let ends = end.noun(*count);
            format!("{} {ends} {}", figure::count(*count), words(*end))
        });
        let open = match missing.saturating_sub(ended) {
            0 => String::new(),
            open => format!("; {} still connecting", figure::count(open)),
        };
        let more = match causes.len().saturating_sub(CAUSES_MAX) {
            0 => String::new(),
            more => format!(", and {more} more causes"),
        };
        let all: Vec<String> = shown.collect();
        format!(
            "{count} of {of} links{whose} did not come up: {}{more}{open}",
            all.join(", ")
        )
    };
    Some(LinkCause {
        see: first.key(&fleet, &hints),
        fleet,
        backend: None,
        count: missing,
        of: links.wanted,
        cause: first.to_string(),
        text,
    })
}

/// The addresses at which links of a fleet are at fault, as the end of a phrase: those of several whose counts say
/// so, or all.
fn place(
    hints: &FleetHints,
    evidence: &Evidence<'_>,
    is_at_fault: impl Fn(&TargetCounts) -> bool,
) -> String {
    let targets = &evidence.summary.run.links.targets;
    let at_fault = targets.iter().filter(|(_, of)| is_at_fault(of));
    let at_fault: Vec<&str> = at_fault.map(|(address, _)| address.as_str()).collect();
    // Counts by address are those of all fleets.
    let mut others = evidence.hints.fleets.iter();
    let is_shared = others.all(|of| of.addresses == hints.addresses);
    if is_shared && !at_fault.is_empty() {
        let (at, all) = (listed(&at_fault), targets.len());
        return format!(", at {at} of {all} addresses");
    }
    let all: Vec<&str> = hints.addresses.iter().map(String::as_str).collect();
    match all.is_empty() {
        true => String::new(),
        false => format!(", at {}", listed(&all)),
    }
}

/// The first addresses, and how many more there are.
fn listed(addresses: &[&str]) -> String {
    let shown = &addresses[..addresses.len().min(ADDRESSES_MAX)];
    let more = match addresses.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

/// Reasons why tries of a fleet ended without a link while connecting, and why the platform ended
/// links again; the most frequent cause first.
fn causes(fleet: FleetId, evidence: &Evidence<'_>) -> Vec<(LinkEnd, u64)> {
    let windows = evidence.windows.links.iter();
    let connecting = windows.filter(|((of, key), _)| *of == fleet && key.phase == Phase::Connect);
    let mut sums: BTreeMap<LinkEnd, u64> = BTreeMap::new();
    for (_, window) in connecting {
        let failures = window.counts.failures.iter();
        let failures = failures.map(|(failure, count)| (LinkEnd::Failed(failure), count));
        let ended = window.counts.disconnects.iter();
        let ended = ended.filter(|(cause, _)| cause.is_of_platform());
        let ended = ended.map(|(cause, count)| (LinkEnd::Ended(cause), count));
        for (end, count) in failures.chain(ended) {
            *sums.entry(end).or_default() += count;
        }
    }
    sums.remove(&LinkEnd::Failed(ConnectFailure::RunEnded));
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, count)| *count > 0).collect();
    sums.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sums
}

/// The most frequent of the wanted refusals.
fn most_frequent(
    refused: &BTreeMap<Reason, u64>,
    is_wanted: impl Fn(Reason) -> bool,
) -> Option<(Reason, u64)> {
    let wanted = refused.iter().filter(|(reason, _)| is_wanted(**reason));
    let most = wanted.max_by_key(|(_, count)| **count);
    most.map(|(reason, count)| (*reason, *count))
}

fn fleet_name(at: usize, evidence: &Evidence<'_>) -> String {
    let name = evidence.fleets.get(at);
    name.cloned().unwrap_or_else(|| at.to_string())
}

/// The first device that was refused for a cause, as the end of a phrase.
fn first_device(end: LinkEnd, fleet: &str, evidence: &Evidence<'_>) -> Option<String> {
    let key = (fleet.to_owned(), end.to_string());
    let device = evidence.hints.first_refused.get(&key)?;
    Some(format!(", first device {device}"))
}

/// The cause in words, with the platform's own where it has given any.
fn quoted(words: String, cause: &str, evidence: &Evidence<'_>) -> String {
    match evidence.reason_strings.get(cause) {
        Some(text) => format!("{words}, \"{}\"", cut(text)),
        None => words,
    }
}

fn cut(text: &str) -> &str {
    let end = (0..=SAID_MAX.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// The key of the scenario that decides over a cause.
fn key(failure: ConnectFailure, fleet: &str) -> String {
    let of_fleet = |key: &str| format!("fleet.{fleet}.{key}");
    match failure {
        ConnectFailure::Rejected(reason) => of_refusal(reason, fleet),
        ConnectFailure::SubscribeRejected(_) => {
            format!("{} and {}", of_fleet("credential"), of_fleet("streams"))
        }
        ConnectFailure::UpgradeRefused(401 | 403) => of_fleet("credential"),
        ConnectFailure::Tls(failure) => of_tls(failure, fleet),
        ConnectFailure::Closed => format!("platform.devices and {}", of_fleet("credential")),
        ConnectFailure::TimedOut => format!("platform.devices and {}", of_fleet("connect")),
        ConnectFailure::Dns
        | ConnectFailure::Refused
        | ConnectFailure::Unreachable
        | ConnectFailure::UpgradeRefused(_)
        | ConnectFailure::Malformed => "platform.devices".to_owned(),
        ConnectFailure::AnnouncementUnanswered => {
            format!("{}, which announces its devices", of_fleet("gateway"))
        }
        ConnectFailure::Unsendable | ConnectFailure::SubscribeUnanswered => of_fleet("streams"),
        ConnectFailure::GeneratorLimit => "`muster check`".to_owned(),
        ConnectFailure::RunEnded => of_fleet("connect"),
    }
}

/// Key to check after a refusal of CONNECT (MQTT 5 section 3.2.2.2, MQTT 3.1.1 section 3.2.2.3).
fn of_refusal(reason: Reason, fleet: &str) -> String {
    let of_fleet = |key: &str| format!("fleet.{fleet}.{key}");
    match reason {
        _ if reason.is_of_credentials() => of_fleet("credential"),
        Reason::Mqtt(0x84) | Reason::MqttConnack(1) => of_fleet("client.version"),
        Reason::Mqtt(0x85 | 0x8e) | Reason::MqttConnack(2) => of_fleet("id"),
        Reason::Mqtt(0x90 | 0x99 | 0x9a | 0x9b) => of_fleet("client.will"),
        Reason::Mqtt(0x97 | 0x9f) => of_fleet("connect.rate"),
        Reason::Mqtt(_)
        | Reason::MqttConnack(_)
        | Reason::MqttSuback(_)
        | Reason::Application(_)
        | Reason::Coap(_)
        | Reason::Kafka(_)
        | Reason::Amqp(_)
        | Reason::Http(_)
        | Reason::HttpNoId(_) => "platform.devices".to_owned(),
    }
}

fn of_tls(failure: TlsFailure, fleet: &str) -> String {
    match failure {
        TlsFailure::UnknownIssuer => "platform.tls.ca".to_owned(),
        TlsFailure::Alert(_) | TlsFailure::OwnCredential => format!("fleet.{fleet}.credential"),
        TlsFailure::Malformed => "platform.devices".to_owned(),
        TlsFailure::Expired
        | TlsFailure::NotYetValid
        | TlsFailure::WrongName
        | TlsFailure::BadCertificate
        | TlsFailure::NothingInCommon => "platform.tls".to_owned(),
    }
}
